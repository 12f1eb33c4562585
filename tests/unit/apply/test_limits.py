"""Systems that take only some changes at a time: an apply finishes, in one run, and records what it
really sent."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from kafkaform.apply.execution import LOOK_SECONDS
from kafkaform.apply.rate_limits import (
    LEAST_PAUSE,
    LONGEST_GUESS,
    LONGEST_PAUSE,
    Limited,
    Pace,
    send_in_parts,
)
from kafkaform.apply.recovery import INTENT_SECONDS, MARGIN_SECONDS
from kafkaform.core.change import Evidence, OutcomeStatus, Repeat, Request, Step
from kafkaform.core.clock import SimulatedClock
from kafkaform.core.errors import exit_code
from kafkaform.core.progress import Message, Progress
from kafkaform.core.resource import Desired, Fault, FaultClass, Identity
from kafkaform.core.value import EMPTY
from kafkaform.plan.model import Options
from kafkaform.workflow.model import Applied
from kafkaform_kafka.kinds.simulation import Killed
from kafkaform_kafka.memory import killed_after, killed_before, throttled_items
from kafkaform_kafka.rules import quotas

from ...kit.simulated.engine import TIMEOUT, House, Screen, apply, desired, house, removed, topic
from ...kit.simulated.managed_topics import built, codes, complete, on_append, statuses, writes

ADMIN: Mapping[str, str | None] = {"user": "admin"}
PATIENCE = TIMEOUT + MARGIN_SECONDS
OVER = "THROTTLING_QUOTA_EXCEEDED"
THROTTLE_TEXT = "The cluster refuses"


def many(count: int, size: int, *more: Any, **options: Any) -> Desired:
    """So many topics of so many partitions."""
    return desired(*(topic(f"t{n:03}", size) for n in range(count)), *more, **options)


def gone(count: int) -> Desired:
    """These topics are deleted, and one stays."""
    names = tuple(removed(f"kafka_topic.t{n:03}", destroy=True) for n in range(count))
    return desired(topic("z"), removed=names)


def limited(rate: Decimal | int) -> House:
    """A house whose administrator has this mutation rate and a full bucket."""
    where = house()
    where.cluster.mutations.limit(ADMIN, rate)
    return where


def code_of(done: Applied) -> int:
    """The exit code of this apply."""
    error = done.report.make_error() if done.report else None
    return exit_code(error) if error else 0


def count_intents(where: House, run: str) -> Counter[str]:
    """How many intents each object got in a run."""
    return Counter(r.body["key"] for r in where.records("intent") if r.run == run)


def list_ends(where: House, run: str) -> list[str]:
    """The outcomes that a run recorded, in order."""
    return [r.body["outcome"] for r in where.records("outcome") if r.run == run]


def list_messages(where: House) -> list[str]:
    """From now on, the messages of the run."""
    texts: list[str] = []

    def keep(event: object) -> None:
        if isinstance(event, Message):
            texts.append(event.text)

    where.screen = Screen(progress=keep)
    return texts


# ── a whole plan goes through ───────────────────────────────────────────────────────────

WISHES: dict[str, tuple[Desired | None, Desired]] = {
    "CreateTopics": (None, many(150, 3)),
    "CreatePartitions": (many(150, 3), many(150, 6)),
    "DeleteTopics": (many(150, 3, topic("z")), gone(150)),
}


@pytest.fixture(params=[True, False], ids=["told", "untold"])
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the login may read its own quota."""
    if not request.param:
        monkeypatch.setattr(quotas, "find_limit", lambda *_: None)
    return bool(request.param)


@pytest.mark.parametrize("api", WISHES)
def test_a_plan_of_twice_the_quota_takes_one_run(api: str, told: bool) -> None:
    """150 topics of 3 partitions at 20 a second: each request leaves when the cluster takes it, so
    the run is hardly longer than the quota makes it. Each step has one intent and one outcome,
    however often it was refused."""
    before, said = WISHES[api]
    where = house()
    if before is not None:
        assert complete(apply(where, before))
    where.cluster.mutations.limit(ADMIN, 20)
    start = where.clock.monotonic()
    done = apply(where, said, Options(max_deletes=150))
    assert complete(done) and code_of(done) == 0
    # A dry run spends as much as the request, and a full bucket has 220; there is none of deletes.
    least = ((450 if api == "DeleteTopics" else 900) - 220) / 20
    assert least - 1 <= where.clock.monotonic() - start <= least * 1.2 + 2
    tried = count_intents(where, done.run)
    assert len(tried) == 150 and set(tried.values()) == {1}
    assert list_ends(where, done.run) == ["applied"] * 150
    assert where.index.open_intents == ()
    where.check_log()


@pytest.mark.parametrize("spent", [0, 100, 440])
def test_others_may_have_spent_from_the_same_quota(spent: int) -> None:
    """Nobody tells how full the bucket is: a refusal says so, and one more for what was tried."""
    where = limited(20)
    charge = where.cluster.mutations.charge("admin", "other", where.clock.monotonic())
    assert charge(spent) is None
    assert complete(apply(where, many(150, 3)))
    start = where.clock.monotonic()
    done = apply(where, gone(150), Options(max_deletes=150))
    assert complete(done) and where.clock.monotonic() - start < 30
    assert set(count_intents(where, done.run).values()) == {1}


def test_a_step_that_waits_for_minutes_gets_a_new_intent_before_it_is_sent() -> None:
    """Recovery reckons with a request as young as the intent allows. So an intent covers requests
    for a minute; then its refusal is recorded, and the next request has an intent of its own."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(throttled_items(INTENT_SECONDS + 1), "CreateTopics")
    done = apply(where, desired(topic("z"), topic("a")))
    assert complete(done)
    pairs = [
        (record.kind, record.body["attempt"])
        for record in where.records("intent", "outcome")
        if record.run == done.run
    ]
    assert pairs == [(kind, number) for number in (1, 2) for kind in ("intent", "outcome")]
    assert list_ends(where, done.run) == ["failed", "applied"]


def test_a_request_that_was_sent_again_is_reckoned_with_after_a_death() -> None:
    """The second request leaves 50 s after the intent and takes effect at the last moment. The run
    dies with it, and the next one still waits for it instead of sending a third."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(throttled_items(50.0), "CreateTopics")
    where.cluster.faults.schedule(killed_after(float(TIMEOUT)), "CreateTopics")
    said = desired(topic("z"), topic("a"))
    with pytest.raises(Killed):
        apply(where, said)
    assert len(where.index.open_intents) == 1
    sent = where.cluster.requests["CreateTopics"]
    done = apply(where, said)
    assert complete(done) and where.cluster.requests["CreateTopics"] == sent
    [recovered] = where.records("recover")
    assert recovered.body["outcome"] == "applied"


def test_what_waits_is_closed_when_the_run_ends_for_another_reason() -> None:
    """A refused step whose object somebody changes while it waits: the refusal is its outcome."""
    where = built(desired(topic("z"), topic("a")))
    where.cluster.faults.schedule(throttled_items(LOOK_SECONDS + 5), "CreatePartitions")

    def meddle(records: Any) -> None:
        if records[0].kind == "intent":
            with where.cluster.others() as others:
                others.delete("a")
                others.create("a", 3)

    on_append(where, meddle)
    done = apply(where, desired(topic("z"), topic("a", 6)))
    on_append(where, lambda records: None)
    assert code_of(done) == 4 and where.cluster.topics["a"].partitions == 3
    assert list_ends(where, done.run) == ["failed"] and codes(done) == {"a#1": OVER}
    assert where.index.open_intents == ()


@pytest.mark.parametrize("api", WISHES)
def test_a_refusal_without_a_time_is_not_final(api: str) -> None:
    """The quota can be refilled before the broker answers: it then asks to wait 0 ms."""
    before, said = {
        "CreateTopics": (desired(topic("z")), desired(topic("z"), topic("t000"))),
        "CreatePartitions": (many(1, 1, topic("z")), many(1, 2, topic("z"))),
        "DeleteTopics": (many(1, 1, topic("z")), gone(1)),
    }[api]
    where = built(before)
    where.cluster.faults.schedule(throttled_items(0.0), api, times=3)
    where.cluster.faults.schedule(throttled_items(0.0), f"{api}:validate", times=3)
    texts = list_messages(where)
    start = where.clock.monotonic()
    done = apply(where, said)
    assert complete(done)
    assert 2 * LEAST_PAUSE < where.clock.monotonic() - start < 5
    assert f"{THROTTLE_TEXT} 1 step for now: sending again as fast as it allows" in texts


def test_the_order_stays_and_what_depends_waits() -> None:
    """A part that was refused comes before what was not sent yet, and before its dependents."""
    where = limited(2)
    said = desired(
        *(topic(f"a{n:02}", 3) for n in range(20)), topic("b", depends_on=("kafka_topic.a19",))
    )
    assert complete(apply(where, said))
    order = [r.body["key"] for r in where.records("outcome") if r.body["outcome"] == "applied"]
    assert order == sorted(order)


def test_progress_counts_what_is_left() -> None:
    """A single request that becomes several has a bar of its own, from the first refusal on."""
    where = limited(20)
    seen: list[Progress] = []

    def keep(event: object) -> None:
        if isinstance(event, Progress) and event.label == "Applying CreateTopics":
            seen.append(event)

    where.screen = Screen(progress=keep)
    assert complete(apply(where, many(150, 3)))
    done = [event.done for event in seen]
    assert done == sorted(done) and len(set(done)) > 20
    assert (done[-1], seen[-1].finished) == (150, True)


# ── how long it waits ───────────────────────────────────────────────────────────────────


def test_it_waits_as_long_as_something_gets_through() -> None:
    """Hours, if the quota is that small: each topic comes in time, and the last one does, too."""
    where = limited(Decimal("0.02"))
    start = where.clock.monotonic()
    assert complete(apply(where, many(20, 1)))
    assert where.clock.monotonic() - start > 10 * PATIENCE


@pytest.mark.parametrize(("asked", "least", "most"), [(0.0, 1, 3), (1.0, 9, 11)])
def test_without_any_progress_it_gives_up(asked: float, least: int, most: int) -> None:
    """What waited was not sent and has no intent; the rest of the plan goes on; exit code 5."""
    where = built(desired(topic("z"), topic("y")))
    where.cluster.faults.schedule(throttled_items(asked, first=1), "CreateTopics")
    where.cluster.faults.schedule(throttled_items(asked), "CreateTopics", times=9999)
    start = where.clock.monotonic()
    names = ("a", "b", "c", "d")
    said = desired(topic("z"), topic("y", 2), *map(topic, names))
    done = apply(where, said)
    assert least * PATIENCE <= where.clock.monotonic() - start <= most * PATIENCE + LONGEST_PAUSE
    assert statuses(done) == {
        "a#1": OutcomeStatus.APPLIED,
        "b#1": OutcomeStatus.FAILED,
        "c#1": OutcomeStatus.FAILED,
        "d#1": OutcomeStatus.FAILED,
        "y#1": OutcomeStatus.APPLIED,
    }
    assert codes(done) == dict.fromkeys(("b#1", "c#1", "d#1"), OVER)
    tried = count_intents(where, done.run)
    # What waits for longer than an intent covers gets a new one for its next request.
    assert tried["c"] == tried["d"] == 1 <= tried["b"] <= most * PATIENCE / INTENT_SECONDS + 1
    assert code_of(done) == 5 and where.index.open_intents == ()
    where.cluster.faults.clear()
    assert complete(apply(where, said))


def test_what_was_never_sent_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster takes the dry run and then nothing any more: the requests that follow are not
    sent at all."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(throttled_items(1e6), "CreateTopics", times=9999)
    done = apply(where, many(450, 1, topic("z")))
    ends = Counter(statuses(done).values())
    assert ends[OutcomeStatus.FAILED] == 200 and ends[OutcomeStatus.SKIPPED] == 250
    assert writes(where)["CreateTopics"] == 2
    faults = {r.outcome.fault.message for r in done.report.results if r.outcome.fault}
    assert "the cluster takes no more changes for now" in faults
    assert code_of(done) == 5 and len(count_intents(where, done.run)) == 200


def test_what_somebody_changes_while_it_waits_is_not_overwritten() -> None:
    """A step leaves minutes after its object was looked at. A topic that was made anew meanwhile is
    not the reviewed one: nothing more is sent, and the next plan shows it."""
    where = house()
    assert complete(apply(where, many(40, 3)))
    where.cluster.mutations.limit(ADMIN, Decimal("0.5"))
    anew = False

    def meddle(records: Any) -> None:
        nonlocal anew
        if records[0].kind == "outcome" and not anew:
            anew = True
            with where.cluster.others() as others:
                others.delete("t035")
                others.create("t035", 3)

    on_append(where, meddle)
    done = apply(where, many(40, 6))
    on_append(where, lambda records: None)
    assert anew and code_of(done) == 5
    assert where.cluster.topics["t035"].partitions == 3
    assert done.report is not None and done.report.stopped is not None
    assert "kafka_topic.t035: it was deleted and recreated" in done.report.stopped.message
    ends = Counter(statuses(done).values())
    assert ends[OutcomeStatus.APPLIED] >= 10 and where.index.open_intents == ()


# ── it ends in between ──────────────────────────────────────────────────────────────────


def test_a_signal_while_it_waits() -> None:
    """Exit code 130 at once; what was refused or not sent is reported as such, no intent is open,
    and the next apply does the rest once."""
    where = limited(20)
    said = many(150, 3)

    def strike(records: Any) -> None:
        if records[0].kind == "outcome" and len(where.cluster.topics) > 40:
            on_append(where, lambda records: None)
            signal.raise_signal(signal.SIGINT)

    on_append(where, strike)
    done = apply(where, said)
    ends = Counter(statuses(done).values())
    made = len(where.cluster.topics)
    assert 40 < made < 150 and ends[OutcomeStatus.APPLIED] == made
    assert code_of(done) == 130 and where.index.open_intents == ()
    assert len(where.state.objects) == made
    again = apply(where, said)
    assert complete(again) and len(statuses(again)) == 150 - made
    where.check_log()


@pytest.mark.parametrize("request_number", [1, 2, 7])
def test_a_death_between_two_parts(request_number: int) -> None:
    """What the log has as applied is in the state afterwards, and the rest is made once."""
    where = limited(20)
    said = many(150, 3)
    where.cluster.faults.schedule(killed_before(), "CreateTopics", skip=request_number - 1)
    with pytest.raises(Killed):
        apply(where, said)
    made = {name: found.id for name, found in where.cluster.topics.items()}
    assert len(made) < 150 and bool(made) is (request_number > 1)
    assert complete(apply(where, said))
    assert len(where.cluster.topics) == 150
    assert {name: where.cluster.topics[name].id for name in made} == made
    applied = Counter(
        r.body["key"] for r in where.records("outcome", "recover") if r.body["outcome"] == "applied"
    )
    assert applied == Counter(where.cluster.topics.keys())
    assert where.index.open_intents == ()
    where.check_log()


# ── the pace ────────────────────────────────────────────────────────────────────────────


def make_steps(*weights: int) -> tuple[Step, ...]:
    request = Request("Make", part=1, phase=0, max_items=100, max_weight=1000)
    return tuple(
        Step(
            f"s/{number}",
            Identity("s", "thing", f"{number}"),
            f"thing.{number}",
            request,
            EMPTY,
            weight,
            (),
            Repeat.SAFE,
            Evidence.NONE,
        )
        for number, weight in enumerate(weights)
    )


class Bucket:
    """A system that takes a step while its bucket is not below empty, and counts what it gets."""

    def __init__(self, clock: SimulatedClock, rate: float, full: float) -> None:
        self.clock, self.rate, self.full = clock, rate, full
        self.tokens, self.filled = full, clock.monotonic()
        self.taken: list[str] = []
        self.tried = 0
        self.delay = 0.01
        self.names_time = True

    def send(self, part: tuple[Step, ...]) -> dict[str, Fault]:
        self.clock.sleep(self.delay)
        now = self.clock.monotonic()
        self.tokens = min(self.full, self.tokens + self.rate * (now - self.filled))
        self.filled = now
        faults: dict[str, Fault] = {}
        self.tried += len(part)
        for step in part:
            if self.tokens < 0:
                wait = -self.tokens / self.rate if self.names_time else 0.0
                fault = Fault("BUSY", "no", FaultClass.NOT_APPLIED, retry_after=wait, quota=True)
                faults[step.id] = fault
            else:
                self.tokens -= step.weight
                self.taken.append(step.id)
        return faults


def send_all(bucket: Bucket, steps: tuple[Step, ...], pace: Pace | None = None) -> float:
    """Send these steps, and the seconds that it took."""
    clock = bucket.clock
    how = Limited(
        pace or Pace(), clock, clock.sleep, 60.0, lambda e: None, "system", lambda n: None
    )
    start = clock.monotonic()
    assert send_in_parts(steps, bucket.send, how) == ()
    assert sorted(bucket.taken) == sorted(step.id for step in steps)
    return clock.monotonic() - start


@pytest.mark.parametrize("rate", [0.5, 20, 1000])
@pytest.mark.parametrize("weights", [(4,) * 300, tuple(range(1, 40)) * 8, (1, 90) * 100])
def test_few_steps_are_sent_in_vain(rate: float, weights: tuple[int, ...]) -> None:
    """Whatever the rate is and however unlike the steps are: about as fast as the system allows."""
    bucket = Bucket(SimulatedClock(), rate, full=rate * 11)
    seconds = send_all(bucket, make_steps(*weights))
    least = max(0.0, (sum(weights) - bucket.full) / rate)
    assert seconds <= least * 1.15 + 5
    # The first request is sent whole, because nothing is known then. Where a single step takes
    # minutes, it is tried once in between.
    times = 2.2 if rate > 1 else 2.5
    assert bucket.tried <= len(weights) * times, bucket.tried / len(weights)


def test_a_system_that_names_no_time_is_asked_less_and_less_often() -> None:
    """The pauses grow while nothing gets through, and start anew with the next success."""
    clock = SimulatedClock()
    bucket = Bucket(clock, rate=0.1, full=1)
    bucket.names_time = False
    send_all(bucket, make_steps(1, 1, 1, 1, 1))
    assert bucket.tried < 60


def test_a_system_that_was_not_ready_gets_everything_soon() -> None:
    """It refuses all of it while it elects its leader, and takes all of it afterwards: it is asked
    with one step, and then with twice as many each time."""
    clock, tried = SimulatedClock(), [0]
    ready = clock.monotonic() + 5

    def send(part: tuple[Step, ...]) -> dict[str, Fault]:
        tried.append(len(part))
        fault = Fault("NO_LEADER", "no", FaultClass.NOT_APPLIED, retry_after=0.0)
        return {step.id: fault for step in part} if clock.monotonic() < ready else {}

    how = Limited(Pace(), clock, clock.sleep, 60.0, lambda e: None, "system", lambda n: None)
    assert send_in_parts(make_steps(*(1,) * 500), send, how) == ()
    assert clock.monotonic() - ready < LONGEST_PAUSE
    assert sum(tried) <= 1010 and len(tried) < 25


def test_a_limit_that_is_raised_is_noticed() -> None:
    """The parts grow while each passes whole."""
    clock = SimulatedClock()
    bucket = Bucket(clock, rate=10, full=10)
    pace = Pace()
    send_all(bucket, make_steps(*(1,) * 100), pace)
    slow = pace.rate
    bucket.rate, bucket.full, bucket.taken = 1000.0, 1000.0, []
    seconds = send_all(bucket, make_steps(*(1,) * 1000), pace)
    assert slow is not None and pace.rate is not None
    assert slow == pytest.approx(10, rel=0.3) and pace.rate > 2 * slow
    assert seconds < 60


def test_a_rate_that_is_guessed_too_low_holds_up_little() -> None:
    """Without a refusal nobody waits for hours because of a number; after one, as long as asked."""
    pace, (step,) = Pace(rate=1e-9), make_steps(1)
    pace.note_answers((step,), {}, 100.0)
    assert pace.compute_pause((step,), 100.0) == LONGEST_GUESS
    busy = Fault("BUSY", "no", FaultClass.NOT_APPLIED, retry_after=300.0, quota=True)
    pace.note_answers((step,), {step.id: busy}, 200.0)
    assert pace.compute_pause((step,), 200.0) == pytest.approx(303)


def test_a_request_that_fits_has_no_bar_of_its_own() -> None:
    """Also where a limit is known."""
    where = limited(20)
    labels: list[str] = []

    def keep(event: object) -> None:
        if isinstance(event, Progress):
            labels.append(event.label)

    where.screen = Screen(progress=keep)
    assert complete(apply(where, many(3, 3)))
    assert "Applying" in labels and "Applying CreateTopics" not in labels


def test_nothing_is_held_back_before_a_refusal() -> None:
    """Without a limit each request is as large as the plan makes it."""
    pace, steps = Pace(), make_steps(*(1,) * 100)
    assert pace.choose_part(steps, 0.0) == steps and pace.compute_pause(steps, 0.0) == 0
    pace.note_answers(steps, {}, 1.0)
    assert pace.choose_part(steps, 0.0) == steps and not pace.limited
