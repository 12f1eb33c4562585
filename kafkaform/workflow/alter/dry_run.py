"""Make the plan of an `alter` without applying it, and its dry run if wanted. Like `plan`, this
takes no lock and writes nothing."""

from __future__ import annotations

from ...apply.ledger import Ledger
from ...apply.preflight import run_first_pass
from ...apply.stop import Stop
from ...audit.journal import Journal
from ...plan.model import Plan
from ...state.backend import Held
from ..events import Announcer, Listener
from ..plan_choice import choose_plan
from ..planning import refuse_dry_run, refuse_if_blocked
from ..run import ApplyRequest, Scene, list_named
from ..secrecy import keep_secrets
from ..workspace import (
    Workspace,
    make_first_state,
    make_run_id,
    open_sessions,
    read_log,
    refuse_lost_state,
)


def rehearse(
    workspace: Workspace, ask: ApplyRequest, listener: Listener, *, validate: bool
) -> Plan:
    """Make the plan with `ask.make`. validate: make its dry run, too. Raises Blocked for a plan
    that cannot be applied, DryRunRefused with all refused steps."""
    announce = Announcer(listener)
    with keep_secrets(workspace.known):
        loaded = workspace.backend.load()
        state = loaded.state or make_first_state(workspace.sink)
        index = read_log(workspace.sink, loaded.state)
        refuse_lost_state(loaded.state, index, workspace)
        journal = Journal(
            workspace.sink, workspace.clock, make_run_id(), workspace.actor, state.lineage
        )
        ledger = Ledger(workspace.backend, journal, state, loaded.version, index.obligations)
        with open_sessions(workspace, state, index, list_named(ask)) as reached:
            lineage = state.lineage
            scene = Scene(workspace, ask, announce, Stop(), reached, ledger, index, lineage, Held())
            plan = choose_plan(scene).plan
            if validate:
                verdicts = run_first_pass(plan, (), reached.sessions, workspace.clock, announce)
                refuse_dry_run(workspace, plan, verdicts, announce)
        refuse_if_blocked(plan, (), leaves_out=False)
        return plan
