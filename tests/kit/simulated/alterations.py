"""What `kafkaform alter` does to the simulated cluster."""

from __future__ import annotations

from collections.abc import Callable

from kafkaform.cli.terminal.screen import advise
from kafkaform.plan.model import Plan
from kafkaform.provider.commands import Alteration
from kafkaform.workflow.alter import plan_alteration
from kafkaform.workflow.applying import run_apply
from kafkaform.workflow.connection import Connection
from kafkaform.workflow.model import Applied, ApplyRequest

from .engine import KAFKA, House, Screen, desired, finish, space


def apply_alteration(
    where: House, wanted: Alteration, gap: Callable[[Plan], None] | None = None
) -> Applied:
    """gap: what happens between the plan and its approval. The plan stands in `where.screen`."""
    where.screen = Screen(gap or (lambda plan: None))
    said = desired()
    found = Connection(where.providers[KAFKA], said.providers[KAFKA], {})
    ask = ApplyRequest(
        approve=where.screen.approve,
        command="alter",
        instance=KAFKA,
        make=lambda scene: plan_alteration(scene, found, wanted),
        rerun=advise("alter"),
    )
    return finish(
        lambda stop: run_apply(space(where, said), ask, progress=where.screen.report, stop=stop)
    )
