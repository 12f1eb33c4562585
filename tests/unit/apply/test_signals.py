"""Signals: the first one finishes what is in flight, the second stops waiting."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Annotated

import msgspec
import pytest

from kafkaform.apply.stop import Stop
from kafkaform.audit.records import Record
from kafkaform.cli.terminal.signals import SIGNALS, end_on_signals, stop_on_signals
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.errors import Ended, Interrupted, exit_code
from kafkaform.workflow.model import Applied
from kafkaform_kafka.memory import lost_request, throttled_items

from ...kit.simulated.engine import Clock, House, apply, desired, plan, removed, topic
from ...kit.simulated.managed_topics import MS, between, built, complete, on_append, statuses

APPLIED, SKIPPED, UNKNOWN = OutcomeStatus.APPLIED, OutcomeStatus.SKIPPED, OutcomeStatus.UNKNOWN
SAID = desired(topic("z", 1, MS), topic("a"), topic("b", depends_on=("kafka_topic.a",)), topic("k"))


def signalled(where: House, api: str, *numbers: int) -> None:
    """The process gets these signals just before it sends this request."""

    def strike() -> None:
        for number in numbers:
            signal.raise_signal(number)

    between(where, api, strike)


def code_of(done: Applied) -> int:
    error = done.report.make_error() if done.report else None
    return exit_code(error) if error else 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_finishes_the_batch_in_flight(number: int, code: int) -> None:
    """What was sent is recorded, what was not is skipped, and the run says how to go on."""
    where = built(desired(topic("z"), topic("k")))
    signalled(where, "CreateTopics", number)
    done = apply(where, SAID)
    assert statuses(done) == {"a#1": APPLIED, "b#1": SKIPPED, "z#2": SKIPPED}
    assert code_of(done) == code and where.index.open_intents == ()
    assert where.row("a") is not None
    assert done.report is not None and done.report.stopped is not None
    assert "again" in done.report.stopped.advice
    assert complete(apply(where, SAID)) and plan(where, SAID).changes == ()


def test_the_first_signal_still_waits_for_an_answer() -> None:
    """A lost answer is settled before the run ends: the outcome is known, not open."""
    where = built(desired(topic("z"), topic("k")))
    where.cluster.faults.schedule(lost_request(), "CreateTopics")
    signalled(where, "CreateTopics", signal.SIGINT)
    done = apply(where, SAID)
    assert statuses(done)["a#1"] is OutcomeStatus.FAILED and where.index.open_intents == ()


@pytest.mark.parametrize(
    ("kind", "outcome", "open_intents"),
    [("intent", UNKNOWN, 1), ("outcome", APPLIED, 0)],
)
def test_the_second_signal_never_breaks_the_log(
    kind: str, outcome: OutcomeStatus, open_intents: int
) -> None:
    """It comes in the middle of an append: the append is finished, then the run ends, and the
    records that follow still make a chain."""
    where = built(desired(topic("z"), topic("k")))

    def strike(records: Sequence[Record]) -> None:
        if records[0].kind == kind:
            on_append(where, lambda records: None)
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    on_append(where, strike)
    done = apply(where, SAID)
    assert statuses(done) == {"a#1": outcome, "b#1": SKIPPED, "z#2": SKIPPED}
    where.check_log()
    assert code_of(done) == 130 and len(where.index.open_intents) == open_intents
    assert complete(apply(where, SAID)) and plan(where, SAID).changes == ()


def test_the_second_signal_stops_waiting() -> None:
    """What is in flight is reported as unknown, not as skipped; its intent is on record and the
    next run finds out."""
    where = built(desired(topic("z"), topic("k")))
    where.cluster.faults.schedule(lost_request(), "CreateTopics")
    interrupt_sleep(where)
    done = apply(where, SAID)
    assert statuses(done) == {"a#1": UNKNOWN, "b#1": SKIPPED, "z#2": SKIPPED}
    assert code_of(done) == 130 and len(where.index.open_intents) == 1
    assert complete(apply(where, SAID)) and plan(where, SAID).changes == ()


def interrupt_sleep(where: House) -> None:
    """Two signals come in the first sleep of the run."""
    sleep = where.clock.sleep

    def strike(seconds: float) -> None:
        where.clock.sleep = sleep  # type: ignore[method-assign]
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    where.clock.sleep = strike  # type: ignore[method-assign]


def test_what_is_certain_is_told_even_if_the_rest_is_left() -> None:
    """The second signal comes while a part of the batch is being read again."""
    where = built(desired(topic("z"), topic("k")))
    said = desired(topic("z"), topic("k"), topic("a"), topic("b"))
    where.cluster.faults.schedule(throttled_items(60.0, first=1), "CreateTopics")
    interrupt_sleep(where)
    done = apply(where, said)
    assert statuses(done)["a#1"] is APPLIED and statuses(done)["b#1"] is OutcomeStatus.FAILED
    assert code_of(done) == 130 and where.index.open_intents == ()


def test_a_stop_skips_the_deletions() -> None:
    """Nothing is deleted by a run that somebody stopped."""
    where = built(desired(topic("z"), topic("k"), topic("d")))
    gone = (removed("kafka_topic.d", destroy=True),)
    signalled(where, "CreateTopics", signal.SIGINT)
    done = apply(where, desired(topic("z"), topic("k"), topic("a"), removed=gone))
    assert statuses(done) == {"a#1": APPLIED, "d#1": SKIPPED}
    assert "d" in where.cluster.topics


def test_a_wait_ends_within_a_slice() -> None:
    """A sleep of an hour notices a signal at once."""
    clock, stop = Clock(), Stop()
    slices = 0
    pause: Callable[[float], None] = clock.sleep

    def sleep(seconds: float) -> None:
        nonlocal slices
        slices += 1
        pause(seconds)
        if slices == 3:
            stop.ask(2)

    clock.sleep = sleep  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        stop.sleep(clock, 3600)
    assert slices == 3


def test_handlers_are_given_back() -> None:
    """After an apply Ctrl-C means again what it meant before."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(RuntimeError), stop_on_signals():
        raise RuntimeError
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_another_thread_can_apply() -> None:
    """Only the main thread can listen to signals; elsewhere the run goes on without."""
    where = built(desired(topic("z")))
    done: list[Applied] = []
    thread = threading.Thread(target=lambda: done.append(apply(where, desired(topic("z", 2)))))
    thread.start()
    thread.join()
    assert complete(done[0])


# ── a signal whose exception is lost ─────────────────────────────────────────────────────


@pytest.fixture
def ending() -> Iterator[None]:
    """The command's handlers are installed, and those of the tests come back."""
    numbers = (*SIGNALS, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in numbers}
    timer = signal.getitimer(signal.ITIMER_REAL)
    signal.setitimer(signal.ITIMER_REAL, 0)
    end_on_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.setitimer(signal.ITIMER_REAL, *timer)


class Key:
    """A signal arrives while it is hashed."""

    loud = False

    def __hash__(self) -> int:
        if self.loud:
            signal.raise_signal(signal.SIGTERM)
        return 1


def lose_signal() -> None:
    """msgspec takes an error of __hash__ for a type that cannot be hashed, and goes on."""
    key = Key()
    kind = Annotated[int, key]
    key.loud = True
    msgspec.json.Decoder(kind)


def wait_for_reminder() -> None:
    for _ in range(500):
        time.sleep(0.01)


@pytest.mark.parametrize("running", [False, True], ids=["before a run", "in a run"])
def test_a_lost_signal_is_raised_again(ending: None, running: bool) -> None:
    """Nothing begins after it, and it has the signal's exit code."""
    with pytest.raises(Ended) as caught, ExitStack() as stack:
        if running:
            stack.enter_context(stop_on_signals())
        lose_signal()
        wait_for_reminder()
    assert caught.value.exit_code == 143


def test_a_signal_that_was_lost_before_a_run_prevents_it(ending: None) -> None:
    lose_signal()
    with pytest.raises(Ended), stop_on_signals():
        pytest.fail("it began")


def test_a_lost_signal_stops_a_run_that_sends(ending: None) -> None:
    """The batch in flight is finished, as if the signal came now; it counts once."""
    with stop_on_signals() as stop:
        lose_signal()
        with stop.listening():
            wait_for_reminder()
    assert stop.requested == signal.SIGTERM


def test_a_reminder_does_not_interrupt_what_cleans_up(ending: None) -> None:
    """While the exception is on its way, and after it was handled, it is not raised again."""
    cleaned = False
    try:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            time.sleep(0.5)
            cleaned = True
    except Ended as ended:
        ended.handled = True
    time.sleep(0.5)
    assert cleaned and not any(signal.getitimer(signal.ITIMER_REAL))
