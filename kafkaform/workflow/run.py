"""The nouns of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..apply.again import APPLY, Again
from ..apply.ledger import Ledger
from ..apply.report import Report, Result
from ..apply.stop import Stop
from ..audit.index import LogIndex
from ..core.change import Outcome
from ..core.diagnostics import Diagnostics
from ..core.resource import Output
from ..core.value import FrozenMap
from ..plan.model import Options, Plan
from ..provider.contract import Session
from ..state.backend import Lease
from ..state.model import State
from .configuration.evaluation import read_recorded_outputs as recorded_outputs
from .events import Announcer
from .workspace import Workspace

Approve = Callable[[Plan], bool]
"""Decides about the plan that would be applied. Only True approves it."""


class ApplyRequest(Struct, frozen=True):
    """How this run was asked for. plan: apply this one and no other; expect: a reviewed token;
    approve, approved_by: who is asked, and what the log calls him; wait: poll for visibility;
    confirm: the scope ids whose objects a destroy can delete; imported: (address, id) to record
    only; instance, make: the provider instance and the plan of a command that needs no block."""

    options: Options = Options()
    plan: Plan | None = None
    expect: str | None = None
    reviewed: FrozenMap | None = None
    """The plan that `expect` approves, as its JSON: a refusal tells what differs from it."""
    approve: Approve | None = None
    approved_by: str = "callback"
    fail_on: tuple[str, ...] = ()
    wait: bool = True
    lock_timeout: float = 0.0
    command: str = "apply"
    confirm: tuple[str, ...] = ()
    imported: tuple[str, str] | None = None
    instance: str | None = None
    make: Callable[[Scene], Plan] | None = None
    again: Again = APPLY


class Applied(Struct, frozen=True):
    """What a run did. plan: what was applied; run: its id in the log; report: how each request
    ended, None if nothing was sent; already: the earlier run that had applied it whole;
    diagnostics: rules of the configuration that the apply has shown not to hold."""

    plan: Plan
    state: State
    run: str
    report: Report | None = None
    already: str = ""
    diagnostics: Diagnostics = ()

    @property
    def results(self) -> tuple[Result, ...]:
        """Each request's share of a change, and how it ended."""
        return () if self.report is None else self.report.results

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs that are recorded now; a sensitive one has no value."""
        return recorded_outputs(self.state.outputs)


class Scene(Struct, frozen=True):
    """Everything that one apply works with, under the lock. lineage: what plans are made under:
    the state's, or empty as long as none was saved, as it was for who reviewed the first plan."""

    space: Workspace
    ask: ApplyRequest
    announce: Announcer
    stop: Stop
    sessions: Mapping[str, Session]
    ledger: Ledger
    found: LogIndex
    lineage: str
    lease: Lease

    @property
    def planned(self) -> State:
        """The state as plans see it."""
        return replace(self.ledger.state, lineage=self.lineage)


class Chosen(Struct, frozen=True):
    """The plan to apply. done: steps of it that an open run has applied; already: the run that
    had applied all of it; made_now: from what was read just now, and not from a file or the log:
    only then it is believed about objects that need nothing, which no approval covers."""

    plan: Plan
    done: Mapping[str, Outcome]
    already: str = ""
    made_now: bool = False
