"""An `alter` that sends nothing: its plan, and its dry run if that is wanted. Takes no lock and
writes nothing, as `plan` does."""

from __future__ import annotations

from ...apply.ledger import Ledger
from ...apply.preflight import checked
from ...apply.stop import Stop
from ...audit.journal import Journal
from ...plan.model import Plan
from ...state.backend import Held
from ..events import Announcer, Listener
from ..plan_choice import choose
from ..planning import refuse_dry_run, refuse_if_blocked
from ..run import Ask, Scene
from ..secrecy import keep_secrets
from ..workspace import (
    Workspace,
    connected,
    first_state,
    new_run_id,
    read_log,
    refuse_lost_state,
)


def rehearse(workspace: Workspace, ask: Ask, listener: Listener, *, validate: bool) -> Plan:
    """Make the plan of `ask.make`; validate: do its dry run, too. Raises Blocked for a plan that
    could not be applied, DryRunRefused naming every refused step."""
    announce = Announcer(listener)
    with keep_secrets(workspace.known):
        loaded = workspace.backend.load()
        state = loaded.state or first_state(workspace.sink)
        found = read_log(workspace.sink, loaded.state)
        refuse_lost_state(loaded.state, found, workspace)
        journal = Journal(
            workspace.sink, workspace.clock, new_run_id(), workspace.actor, state.lineage
        )
        ledger = Ledger(workspace.backend, journal, state, loaded.version, found.obligations)
        with connected(workspace, state, found, ask.instance) as sessions:
            lineage = state.lineage
            scene = Scene(
                workspace, ask, announce, Stop(), sessions, ledger, found, lineage, Held()
            )
            plan = choose(scene).plan
            if validate:
                verdicts = checked(plan, (), sessions, workspace.clock, announce)
                refuse_dry_run(workspace, plan, verdicts, announce)
        refuse_if_blocked(plan, (), excludes=False)
        return plan
