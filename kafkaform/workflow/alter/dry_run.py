"""An `alter` that sends nothing: its plan, and its dry run if that is wanted. Takes no lock and
writes nothing, as `plan` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...apply.ledger import Ledger
from ...apply.preflight import checked, refuse
from ...apply.secrets import in_plan, refuse_exposed, resolve
from ...audit.journal import Journal
from ...core.change import Verdict
from ...plan.model import Plan
from ...state.backend import Held
from ..plan_choice import choose
from ..planning import refuse_if_blocked
from ..run import Ask, Scene, Screen
from ..workspace import (
    Workspace,
    connected,
    first_state,
    new_run_id,
    read_log,
    refuse_lost_state,
    who,
)


class Stage(Screen, Protocol):
    """A screen that also shows what a dry run says."""

    def validated(self, plan: Plan, verdicts: Mapping[str, Verdict]) -> None: ...


def rehearse(space: Workspace, ask: Ask, screen: Stage, *, validate: bool) -> Plan:
    """Show the plan that `ask.make` makes; validate: do its dry run, too. Raises Blocked for a
    plan that could not be applied, DryRunRefused naming every refused step."""
    loaded = space.backend.load()
    state = loaded.state or first_state(space.sink)
    found = read_log(space.sink, loaded.state)
    refuse_lost_state(loaded.state, found, space)
    journal = Journal(space.sink, space.clock, new_run_id(), who(), state.lineage)
    ledger = Ledger(space.backend, journal, state, loaded.version, found.obligations)
    with connected(space, state, found, ask.instance) as sessions:
        scene = Scene(space, ask, screen, sessions, ledger, found, state.lineage, Held())
        plan = choose(scene).plan
        if validate:
            verdicts = checked(plan, (), sessions, space.clock, screen.progress)
            screen.validated(plan, verdicts)
            resolve(in_plan(plan), space.configuration.secret)
            refuse_exposed(plan)
            refuse(verdicts, {step.id: step for c in plan.effective for step in c.steps})
    refuse_if_blocked(plan, (), excludes=False)
    return plan
