"""How a plan is approved on a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from kafkaform.cli.terminal.console import Console
from kafkaform.cli.terminal.screen import JsonScreen, TextScreen
from kafkaform.core.errors import UsageError
from kafkaform.plan.model import Mode, Options, Plan

from ...kit.simulated.engine import desired, topic
from ..plan.worlds import live, planned, row, state
from ..render import plans

PEOPLE = Console(colour=False, errors_colour=False, interactive=True, width=100)
NOBODY = Console(colour=False, errors_colour=False, interactive=False, width=100)


def destroying(names: Sequence[str], protected: Sequence[str] = ()) -> Plan:
    """The plan that destroys these topics, except the protected ones."""
    rows = (row(n, id=f"id-{n}", protected="explicit" if n in protected else None) for n in names)
    return planned(
        desired(*map(topic, names)),
        [live(name, id=f"id-{name}") for name in names],
        state(*rows),
        options=Options(Mode.DESTROY),
    )


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        (destroying(["a"]), "1 object"),
        (destroying(["a", "b", "c"]), "all 3 objects"),
        (destroying(["a", "b", "c"], protected=["b"]), "2 objects"),
    ],
    ids=["one", "all", "some"],
)
def test_a_destroy_says_how_much_it_deletes(
    plan: Plan, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It asks for the cluster ID, and says "all" only if nothing stays."""
    scope = plan.instances["kafka"].facts.scope_id
    for reads in ("wait_until_readable", "discard_typed_ahead"):
        monkeypatch.setattr(f"kafkaform.cli.terminal.console.{reads}", lambda _: None)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{scope}\nyes\n"))
    screen = TextScreen(PEOPLE)
    assert screen.ask_approval(plan)
    assert not screen.ask_approval(plan)
    question = f'This deletes {what} that kafkaform manages on "kafka". Type the cluster ID'
    assert capsys.readouterr().err.count(f"{question} to confirm.\nCluster ID ({scope}): ") == 2


def test_without_a_terminal_nothing_is_approved() -> None:
    """The error names the flags that approve a plan, for a destroy those of a destroy."""
    with pytest.raises(UsageError, match="No terminal to ask for approval") as refused:
        TextScreen(NOBODY).ask_approval(destroying(["a"]))
    assert "--confirm CLUSTER" in refused.value.advice
    with pytest.raises(UsageError, match="--json asks no questions") as refused:
        JsonScreen(NOBODY).ask_approval(planned(desired(topic("a")), [live()]))
    assert "--auto-approve" in refused.value.advice


@pytest.mark.parametrize(
    ("console", "sends", "quiet", "approved", "shown"),
    [
        (PEOPLE, True, False, False, False),
        (PEOPLE, False, False, False, False),
        (PEOPLE, False, True, False, True),
        (NOBODY, False, False, False, True),
        (NOBODY, True, False, False, True),
        (NOBODY, True, False, True, False),
    ],
)
def test_the_approval_is_shown_where_somebody_has_to_type_it(
    console: Console,
    sends: bool,
    quiet: bool,
    approved: bool,
    shown: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not by an apply that asks, or that was approved; a plan on a terminal has it in the command
    that follows."""
    screen = TextScreen(console, sends=sends, quiet=quiet, approved=approved)
    screen.show_plan(plans.everything())
    assert ("Approval: " in capsys.readouterr().out) == shown
