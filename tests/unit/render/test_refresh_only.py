"""A refresh-only plan is its drift: it leads every form, and all of it is listed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.plan.model import Mode, Options, Plan
from kafkaform.render.plan_text import DRIFT_LIMIT, render_plan_text
from kafkaform.render.review.comment import render_markdown
from kafkaform.render.terraform import to_json
from kafkaform.render.text import Detail

from ...kit.simulated.engine import desired, topic
from ..plan.worlds import live, planned, row, state

MANY = DRIFT_LIMIT + 5
SINCE = "last set here 2026-11-20 14:03 UTC by User:ci (run 4f0c9a1be772)"


@pytest.fixture
def plan() -> Plan:
    """Somebody has set a config of 25 topics."""
    names = [f"t{number:02}" for number in range(MANY)]
    made = planned(
        desired(*map(topic, names)),
        [live(name, config={"retention.ms": "5"}, id=f"id-{name}") for name in names],
        state(*(row(name, id=f"id-{name}") for name in names)),
        options=Options(Mode.REFRESH),
    )
    return replace(made, changes=tuple(replace(c, last_set=SINCE) for c in made.changes))


@pytest.mark.parametrize("detail", ["concise", "grouped", "full"])
def test_text_lists_all_of_it(plan: Plan, detail: Detail) -> None:
    """Each object has its values, from what was in effect before (`default` in these worlds), and
    who set it last; nothing is shortened."""
    said = render_plan_text(plan, detail=detail)
    assert said.count("retention.ms default ms (default) → 5 ms") == said.count(SINCE) == MANY
    assert "Shortened" not in said
    assert said.endswith(f"Plan: 0 to add, 0 to change, 0 to destroy, {MANY} to refresh.\n")


def test_a_comment_leads_with_it(plan: Plan) -> None:
    """Title and first section are the drift, and no table of changes comes before it."""
    said = render_markdown(plan)
    title, rest = said.split("\n", 1)
    assert title == f"### kafkaform plan: drift of {MANY} objects"
    assert rest.lstrip().startswith(f"**Changed outside kafkaform ({MANY})**")
    assert said.count(SINCE) == MANY
    assert "This is a refresh-only plan" in said and "Changes in detail" not in said


def test_programs_get_it_at_the_drift(plan: Plan) -> None:
    """Nothing is planned for the objects, as in Terraform."""
    data = to_json(plan)
    assert {one["kafkaform"]["last_set"] for one in data["resource_drift"]} == {SINCE}
    assert {tuple(one["change"]["actions"]) for one in data["resource_changes"]} == {("no-op",)}
    assert data["applyable"]
