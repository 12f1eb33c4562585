"""What an apply tells of the steps that earlier runs left open."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from kafkaform.apply.ledger import make_bookkeeping_step
from kafkaform.apply.recovery import SUPERSEDED, Recovered
from kafkaform.apply.report import Result
from kafkaform.cli.terminal.console import Console
from kafkaform.cli.terminal.screen import JsonScreen, TextScreen
from kafkaform.core.change import Action, Change, Outcome, OutcomeStatus
from kafkaform.core.resource import Fault, FaultClass

from ...kit.simulated.engine import apply, identity
from ...kit.simulated.moving_boxes import THERE, TICKET, arrive, moving

GONE = Fault(SUPERSEDED, "the next plan asks for the same values", FaultClass.NOT_APPLIED)
LOST = Fault("NO_ANSWER", "the request was not executed", FaultClass.NOT_APPLIED)


def closed(names: Iterable[str], fault: Fault | None = None) -> tuple[Result, ...]:
    """The recovered steps of these topics, which ended alike."""
    status = OutcomeStatus.FAILED if fault else OutcomeStatus.APPLIED
    changes = [Change(identity(n), f"kafka_topic.{n}", Action.UPDATE) for n in names]
    return tuple(
        Result(c, s := make_bookkeeping_step(c), Outcome(s.id, status, fault)) for c in changes
    )


def told(capsys: pytest.CaptureFixture[str], *results: Result, runs: tuple[str, ...]) -> list[str]:
    """The lines on stderr."""
    TextScreen(Console.make_standard()).show_recovered(Recovered(closed=results, runs=runs))
    return capsys.readouterr().err.splitlines()


def test_a_few_are_told_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    """What somebody else makes so is no failure, and a failure has its cause."""
    results = (*closed("a"), *closed("b", GONE), *closed("c", LOST))
    assert told(capsys, *results, runs=("R",)) == [
        "Recovered kafka_topic.a: applied.",
        "Recovered kafka_topic.b: superseded, the next plan asks for the same values.",
        "Recovered kafka_topic.c: not applied; the request was not executed.",
    ]


@pytest.mark.parametrize(("runs", "whose"), [(("R",), "run R"), (("Q", "R"), "2 runs")])
def test_many_that_ended_alike_are_one_line(
    capsys: pytest.CaptureFixture[str], runs: tuple[str, ...], whose: str
) -> None:
    """One line for each outcome and cause; what ended otherwise keeps its own."""
    many = [f"t{n}" for n in range(300)]
    results = (*closed(many, GONE), *closed(many[:6]), *closed("ab", LOST))
    assert told(capsys, *results, runs=runs) == [
        f"Recovered 300 steps that {whose} left open: superseded, the next plan asks for the "
        "same values: kafka_topic.t0, kafka_topic.t1, kafka_topic.t2, kafka_topic.t3, "
        "kafka_topic.t4, … and 295 more.",
        f"Recovered 6 steps that {whose} left open: applied: kafka_topic.t0, kafka_topic.t1, "
        "kafka_topic.t2, kafka_topic.t3, kafka_topic.t4, … and 1 more.",
        "Recovered kafka_topic.a: not applied; the request was not executed.",
        "Recovered kafka_topic.b: not applied; the request was not executed.",
    ]


def test_five_are_not_many(capsys: pytest.CaptureFixture[str]) -> None:
    """Each of them still has its line."""
    assert len(told(capsys, *closed("abcde", GONE), runs=("R",))) == 5


def test_only_programs_read_the_ticket_of_a_move(capsys: pytest.CaptureFixture[str]) -> None:
    """People read what moved, in words; a program finds its obligation in the audit log."""
    where, first = moving()
    arrive(where)
    apply(where, THERE)
    [work] = where.screen.recoveries[0].work
    sentence = f"the move of its replicas that run {first.run} started has ended."
    TextScreen(Console.make_standard()).show_work(work)
    JsonScreen(Console.make_standard()).show_work(work)
    text, data = capsys.readouterr()[::-1]
    assert sentence in text and TICKET not in text
    line = json.loads(data)
    assert sentence in line["@message"] and line["kafkaform"] == {"ticket": TICKET}
