"""The nouns of one apply from the command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..apply.again import Again
from ..apply.ledger import Ledger
from ..apply.recover import Recovered
from ..apply.report import Report, Work
from ..audit.index import Index
from ..core.change import Outcome
from ..core.diagnostics import Diagnostics
from ..core.progress import Report as ReportTo
from ..plan.model import Options, Plan
from ..provider.contract import Session
from ..state.backend import Lease
from ..state.model import State
from .workspace import Workspace


class Ask(Struct, frozen=True):
    """How this apply was asked for. plan_file: a saved plan; expect: a reviewed token; how: how
    it is approved if nobody is asked (`auto_approve`); wait: poll for visibility; confirm: scope
    ids of systems whose objects a destroy may delete; imported: (address, id) to record only;
    instance, make: the provider instance and the plan of a command that needs no block."""

    options: Options
    plan_file: Path | None = None
    expect: str | None = None
    how: str | None = None
    fail_on: tuple[str, ...] = ()
    wait: bool = True
    lock_timeout: float = 0.0
    command: str = "apply"
    confirm: tuple[str, ...] = ()
    imported: tuple[str, str] | None = None
    instance: str | None = None
    make: Callable[[Scene], Plan] | None = None

    @property
    def again(self) -> Again:
        """How the user goes on if this run is refused or ends in part."""
        plan = [shlex.quote(str(self.plan_file))] if self.plan_file else []
        token = ["--expect", self.expect] if self.expect else []
        words = " ".join(("kafkaform", self.command, *plan, *token))
        named = self.command == "apply"
        same = f"`{words}`" if named else f"the same `{words}`"
        return Again(self.command, same, reviewed=bool(plan or token))


class Screen(Protocol):
    """What an apply shows and asks while it runs."""

    @property
    def progress(self) -> ReportTo: ...

    def recovered(self, found: Recovered) -> None: ...

    def plan(self, plan: Plan) -> None: ...

    def approve(self, plan: Plan) -> bool: ...

    def note(self, text: str) -> None: ...

    def stands(self, work: Work) -> None: ...


class Applied(Struct, frozen=True):
    """plan: what was applied; report: None if nothing was sent; run: its id; already: the
    earlier run that had applied it whole; told: rules of the configuration that the apply has
    shown not to hold."""

    plan: Plan
    state: State
    run: str
    report: Report | None = None
    already: str = ""
    told: Diagnostics = ()


class Scene(Struct, frozen=True):
    """Everything that one apply works with, under the lock. lineage: what plans are made under:
    the state's, or empty as long as none was saved, as it was for who reviewed the first plan."""

    space: Workspace
    ask: Ask
    screen: Screen
    sessions: Mapping[str, Session]
    ledger: Ledger
    found: Index
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
