"""After the last write every live broker is asked until it shows what was applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from kafkaform.apply import verify
from kafkaform.apply.verify import SILENT_SECONDS, Invisible
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.progress import Event, Message
from kafkaform.core.resource import Depth, Identity, Reading
from kafkaform_kafka.memory.session import MemorySession

from ...kit.simulated.engine import House, apply, desired, house, removed, topic
from ...kit.simulated.managed_topics import MS, built, complete, statuses


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_broker_that_stays_behind_is_named(broker: int) -> None:
    """What the controller committed is applied, whoever does not show it yet; broker and object
    are in the report and in the log."""
    where = house(brokers=3)
    where.cluster.lag(seconds=3600, broker=broker)
    done = apply(where, desired(topic("t")))
    assert complete(done)
    assert done.report is not None
    assert set(statuses(done).values()) == {OutcomeStatus.APPLIED}
    assert done.report.invisible == (Invisible("kafka_topic.t", str(broker), noun="broker"),)
    [record] = where.records("verify")
    assert record.body["invisible"] == ({"address": "kafka_topic.t", "node": str(broker)},)


def test_a_broker_that_needs_a_moment_is_waited_for() -> None:
    """Within the operation timeout; then nothing is said."""
    where = house(brokers=3)
    where.cluster.lag(seconds=1, broker=3)
    done = apply(where, desired(topic("t")))
    assert done.report is not None and done.report.invisible == ()


def test_a_change_and_a_deletion_are_looked_for_too() -> None:
    """The old value, and the topic that is still shown, are not what was applied."""
    where = built(desired(topic("t"), topic("u")), brokers=3)
    where.cluster.lag(seconds=3600, broker=2)
    done = apply(where, desired(topic("t", config=MS), topic("u")))
    assert done.report is not None
    shown = Invisible("kafka_topic.t", "2", "config.retention.ms is not set", "broker")
    assert done.report.invisible == (shown,)


def heard(where: House, hook: Callable[[str], None] = lambda text: None) -> list[str]:
    """The messages of the runs to come. hook: called with each."""
    said: list[str] = []

    def progress(event: Event) -> None:
        if isinstance(event, Message):
            said.append(event.text)
            hook(event.text)

    where.screen.progress = progress
    return said


@pytest.mark.parametrize("silent", [(1,), (2,), (1, 3)])
def test_brokers_that_do_not_answer_are_waited_for_once(silent: tuple[int, ...]) -> None:
    """All of them together, for less than the operation timeout; it is said for how long, and why
    what was applied does not show."""
    where = house(brokers=3)
    said = heard(where)
    for number in silent:
        where.cluster.hang(number)
    begun = where.clock.monotonic()
    done = apply(where, desired(topic("t"), topic("u"), timeout=60))
    assert complete(done) and done.report is not None
    assert SILENT_SECONDS <= where.clock.monotonic() - begun < SILENT_SECONDS + 2
    late = done.report.invisible
    assert {item.node for item in late} == set(map(str, silent)) and len(late) == 2 * len(silent)
    assert all("does not answer" in item.reason for item in late)
    verb = "do" if len(silent) > 1 else "does"
    [text] = said
    assert text.startswith("Waiting up to 15 s for broker") and f"which {verb} not" in text


def test_a_broker_that_turns_out_to_be_dead_need_not_show_anything() -> None:
    """As soon as the cluster does not list it any more the verification ends, and all is well."""
    where = house(brokers=3)
    said = heard(where, lambda text: where.cluster.stop(2))
    where.cluster.hang(2)
    begun = where.clock.monotonic()
    done = apply(where, desired(topic("t"), timeout=60))
    assert complete(done) and done.report is not None and done.report.invisible == ()
    assert said and where.clock.monotonic() - begun < SILENT_SECONDS / 2


def test_a_broker_that_answers_again_shows_it() -> None:
    """One that only paused is not left out."""
    where = house(brokers=3)
    heard(where, lambda text: where.cluster.start(3))
    where.cluster.hang(3)
    done = apply(where, desired(topic("t")))
    assert done.report is not None and done.report.invisible == ()
    assert where.cluster.numbers == (1, 2, 3)


@pytest.mark.parametrize("late", [1, 3600])
def test_a_node_is_asked_about_a_part_of_many_objects(
    monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    """About all of them at first and when time is up; otherwise about the first ones, and about
    twice as many of those behind them when it shows these."""
    asked: list[int] = []
    read = MemorySession.read

    def spy(self: MemorySession, ids: Sequence[Identity], **how: Any) -> Mapping[Identity, Reading]:
        asked.extend([len(ids)] if how.get("at") == "2" else [])
        return read(self, ids, **how)

    where = house(brokers=2)
    where.cluster.lag(seconds=late, broker=2)
    monkeypatch.setattr(verify, "FIRST", 2)
    monkeypatch.setattr(MemorySession, "read", spy)
    done = apply(where, desired(*(topic(f"t{i}") for i in range(9))))
    assert done.report is not None
    assert len(done.report.invisible) == (9 if late > 60 else 0)
    assert asked[0] == 9 and asked[1:5] == [2] * 4
    assert asked[-3:] == ([2, 2, 9] if late > 60 else [2, 4, 3])


def test_a_deleted_topic_is_not_read_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """While brokers still show it, its configs would cost them more than the deletion itself."""
    asked: list[Depth] = []
    read = MemorySession.read

    def spy(self: MemorySession, ids: Sequence[Identity], **how: Any) -> Mapping[Identity, Reading]:
        if how.get("at"):
            asked.append(how["depth"])
        return read(self, ids, **how)

    where = built(desired(topic("t"), topic("u")), brokers=3)
    where.cluster.lag(seconds=1, broker=3)
    monkeypatch.setattr(MemorySession, "read", spy)
    gone = removed("kafka_topic.t", destroy=True)
    done = apply(where, desired(topic("u", config=MS), removed=(gone,)))
    assert done.report is not None and done.report.invisible == ()
    assert set(asked) == {Depth.NAMES, Depth.FULL} and asked.count(Depth.NAMES) > 3
