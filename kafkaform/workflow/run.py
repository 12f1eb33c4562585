"""The data of one run: what was asked for, what it works with, and what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..apply.ledger import Ledger
from ..apply.report import PLAIN_APPLY, Report, Rerun, Result
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
from .configuration.recorded_outputs import read_recorded_outputs as recorded_outputs
from .events import Announcer
from .workspace import Reached, Workspace

Approve = Callable[[Plan], bool]
"""Decides whether a plan is applied. Only True approves it."""


class ApplyRequest(Struct, frozen=True):
    """What the caller of a run asked for."""

    options: Options = Options()
    plan: Plan | None = None
    """Apply this plan and no other."""
    expect: str | None = None
    """The token of a reviewed plan: any other plan is refused."""
    reviewed: FrozenMap | None = None
    """The plan that `expect` approves, as its JSON: a refusal says what differs from it."""
    approve: Approve | None = None
    """Approves the plan, unless `expect` or `confirm` does."""
    approved_by: str = "callback"
    """What the log calls the approval."""
    fail_on: tuple[str, ...] = ()
    """Conditions of --fail-on."""
    wait: bool = True
    """Wait until every node shows the changes."""
    lock_timeout: float = 0.0
    """Seconds to wait for the lock of the state."""
    command: str = "apply"
    """The name of the command, for the lock, the log and messages."""
    confirm: tuple[str, ...] = ()
    """The scope ids of the systems that a destroy can delete from."""
    imported: tuple[str, str] | None = None
    """The address and the id of an object that is only recorded."""
    instance: str | None = None
    """The provider instance of a command that needs no block."""
    make: Callable[[Scene], Plan] | None = None
    """Makes the plan of such a command."""
    rerun: Rerun = PLAIN_APPLY
    """How errors name the way to continue."""


def list_named(ask: ApplyRequest) -> tuple[str, ...]:
    """The provider instance of a command that needs no block."""
    return () if ask.instance is None else (ask.instance,)


class Applied(Struct, frozen=True):
    """What a run did."""

    plan: Plan
    """The plan that was applied."""
    state: State
    """The state after the run."""
    run: str
    """The id of the run in the log."""
    report: Report | None = None
    """How each request ended, None if nothing was sent."""
    already: str = ""
    """The earlier run that had applied the whole plan, "" if there is none."""
    diagnostics: Diagnostics = ()
    """Rules of the configuration that do not hold after the apply."""

    @property
    def results(self) -> tuple[Result, ...]:
        """How each step of the plan ended."""
        return () if self.report is None else self.report.results

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs that the state records after the run; a sensitive one has no value."""
        return recorded_outputs(self.state.outputs)


class Scene(Struct, frozen=True):
    """Everything that one apply works with under the lock."""

    space: Workspace
    ask: ApplyRequest
    announce: Announcer
    stop: Stop
    reached: Reached
    """The systems that the run works with."""
    ledger: Ledger
    """The state and the log as the run changes them."""
    found: LogIndex
    """The log as it was when the run began, with what earlier runs left open closed."""
    lineage: str
    """The lineage that plans are made with: the one that was saved, or an empty one."""
    lease: Lease

    @property
    def sessions(self) -> Mapping[str, Session]:
        """The open session of each provider instance."""
        return self.reached.sessions

    @property
    def planned(self) -> State:
        """The state as plans see it."""
        # A first run has given its state a lineage already. The plan that was reviewed before it
        # had none, and the approval covers the lineage.
        return replace(self.ledger.state, lineage=self.lineage)


class Chosen(Struct, frozen=True):
    """The plan that a run applies."""

    plan: Plan
    done: Mapping[str, Outcome]
    """The outcomes of steps that an open run has applied, by step id."""
    already: str = ""
    """The run that had applied all of the plan, "" if there is none."""
    made_now: bool = False
    """The plan was made in this run, and not read from a file or the log. Only then are its rows
    of unchanged objects recorded, because no approval covers them."""
