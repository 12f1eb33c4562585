"""What an apply ends with: one exit code, and what to do next."""

from __future__ import annotations

import pytest

from kafkaform.apply.ledger import STATE
from kafkaform.apply.report import Report, Rerun, Result, group_by_change
from kafkaform.core.change import Action, Change, Evidence, Outcome, OutcomeStatus, Repeat, Step
from kafkaform.core.errors import (
    Interrupted,
    KafkaformError,
    Locked,
    OtherSystem,
    PlanRefused,
    exit_code,
)
from kafkaform.core.value import EMPTY
from kafkaform.plan.lower import DELETING

from ...kit.simulated.engine import identity

A, F, U, S, R = (
    OutcomeStatus.APPLIED,
    OutcomeStatus.FAILED,
    OutcomeStatus.UNKNOWN,
    OutcomeStatus.SKIPPED,
    OutcomeStatus.STARTED,
)


def result(name: str, status: OutcomeStatus, number: int = 1) -> Result:
    step = Step(
        f"kafka/kafka_topic/{name}#{number}",
        identity(name),
        name,
        STATE,
        EMPTY,
        1,
        (),
        Repeat.SAFE,
        Evidence.LOCAL,
    )
    return Result(Change(identity(name), name, Action.UPDATE), step, Outcome(step.id, status))


@pytest.mark.parametrize(
    ("statuses", "stopped", "code", "complete"),
    [
        ([], None, 0, True),
        ([A, A], None, 0, True),
        ([A, R], None, 0, True),
        ([A, F], None, 5, False),
        ([A, S], None, 5, False),
        ([F, U], None, 6, False),
        ([S, S], PlanRefused("stale"), 4, False),
        ([A, S], PlanRefused("stale"), 5, False),
        ([R, S], PlanRefused("stale"), 5, False),
        ([A, U, S], PlanRefused("stale"), 6, False),
        ([S, S], OtherSystem("another cluster"), 4, False),
        ([A, S], OtherSystem("another cluster"), 5, False),
        ([A, U, S], OtherSystem("another cluster"), 6, False),
        ([U], Locked("moved on"), 7, False),
        ([A, S], Interrupted("stop", signal_number=2), 130, False),
        ([U, S], Interrupted("stop", signal_number=15), 143, False),
        ([A], Interrupted("stop", signal_number=2), 130, False),
    ],
)
def test_one_exit_code_for_all_that_happened(
    statuses: list[OutcomeStatus], stopped: KafkaformError | None, code: int, complete: bool
) -> None:
    """An interrupt tells most, then what is unknown, then why it stopped, then the failures."""
    results = tuple(result(f"t{n}", status) for n, status in enumerate(statuses))
    report = Report(results, stopped=stopped)
    error = report.make_error()
    assert (exit_code(error) if error else 0, report.complete) == (code, complete)


def test_an_unknown_outcome_says_why_the_run_ended() -> None:
    """If another system answered, the user first has to reach the right one."""
    stopped = OtherSystem("cluster two answers", "Check bootstrap_servers.")
    error = Report((result("a", U),), stopped=stopped).make_error()
    assert error is not None and "cluster two answers" in error.message
    assert error.advice.startswith("Check bootstrap_servers. ")


def test_steps_are_grouped_under_their_change() -> None:
    """People read changes, not requests."""
    results = [result("a", A), result("b", F), result("a", S, 2)]
    groups = [(c.address, [o.status for o in outcomes]) for c, outcomes in group_by_change(results)]
    assert groups == [("a", [A, S]), ("b", [F])]
    assert STATE.part != DELETING


@pytest.mark.parametrize("statuses", [[F], [A, U]])
def test_what_to_do_next_names_the_command_that_ran(statuses: list[OutcomeStatus]) -> None:
    """An `alter` is not gone on with by `apply`, and has no approval that could be given again."""
    report = Report(tuple(result(f"t{n}", status) for n, status in enumerate(statuses)))
    for command in ("apply", "alter"):
        error = report.make_error(Rerun(command, f"`kafkaform {command}`"))
        assert error is not None and f"`kafkaform {command}" in error.advice
        assert command == "apply" or "--expect" not in error.advice
