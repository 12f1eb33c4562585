"""What was applied counts as done once every live broker shows it; what a broker keeps, hides or
only reports is told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.apply.confirm import NO_EFFECT
from kafkaform.apply.recovery import SUPERSEDED
from kafkaform.apply.report import Report
from kafkaform.apply.verify import STUCK_SECONDS, Sight
from kafkaform.core.address import parse_address
from kafkaform.core.change import Action, Batch, Outcome, OutcomeStatus
from kafkaform.core.errors import AppliedInPart, OutcomeUnknown, exit_code
from kafkaform.core.resource import Absent, Declared, Hidden, Identity, Observed, Reading
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Mode, Options
from kafkaform.workflow.model import Applied
from kafkaform.workflow.operations import apply_changes
from kafkaform_kafka.memory import refused_items
from kafkaform_kafka.memory.session import MemorySession
from kafkaform_kafka.protocol.acl import Acl
from kafkaform_kafka.provider import TYPES

from ...kit.simulated.engine import (
    NORMAL,
    PLACE,
    House,
    Screen,
    apply,
    desired,
    house,
    identity,
    plan,
    removed,
    space,
    topic,
    topic_config,
)
from ...kit.simulated.managed_topics import MS, built, complete

ALTER = "IncrementalAlterConfigs"
UNSET = {
    "compression.type": "producer",
    "max.message.bytes": "1048588",
    "retention.bytes": "-1",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
}
"""What a broker reports as overrides although nothing sets it: its own defaults."""


class Brokers:
    """What brokers show of configs beside what the controller knows. kept: key of an object ->
    configs that come back until somebody sets them; stubborn: also then; unset: reported of every
    topic."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.stubborn = False
        self.unset: Mapping[str, str] = {}
        self.sent: list[tuple[str, FrozenMap, tuple[str, ...]]] = []
        read, send = MemorySession.read, MemorySession.apply

        def look(
            session: MemorySession, ids: Sequence[Identity], **how: Any
        ) -> Mapping[Identity, Reading]:
            return {i: self._show(r) for i, r in read(session, ids, **how).items()}

        def note(session: MemorySession, batch: Batch, secrets: Any) -> Sequence[Outcome]:
            for step in (step for step in batch.steps if "set" in step.payload):
                put = step.payload["set"]
                gone = step.payload["delete" if batch.request.name == ALTER else "remove"]
                self.sent.append((step.id, put, gone))
                for key in put if not self.stubborn else ():
                    self.kept.get(step.identity.key, {}).pop(key, None)
            return send(session, batch, secrets)

        patch.setattr(MemorySession, "read", look)
        patch.setattr(MemorySession, "apply", note)

    def _show(self, reading: Reading) -> Reading:
        is_topic = reading.identity.kind in ("kafka_topic", "kafka_topic_config")
        more = {**self.unset} if is_topic else {}
        more |= self.kept.get(reading.identity.key, {})
        if isinstance(reading, Absent) and more and reading.identity.kind == "kafka_topic_config":
            empty = FrozenMap(topic=reading.identity.key, config=FrozenMap())
            reading = Observed(reading.identity, empty)
        if not isinstance(reading, Observed) or not more or "config" not in reading.attributes:
            return reading
        config = FrozenMap({**more, **reading.attributes["config"]})
        below = {f"config.{key}": DEFAULTS[key] for key in more if key in DEFAULTS}
        return replace(
            reading,
            attributes=reading.attributes.with_items({"config": config}),
            fallbacks=reading.fallbacks.with_items(below),
        )


DEFAULTS = {**UNSET, "retention.ms": "604800000"}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    return Brokers(monkeypatch)


def report(done: Applied) -> Report:
    assert done.report is not None
    return done.report


def ends(done: Applied) -> int:
    error = report(done).make_error()
    return 0 if error is None else exit_code(error)


def changes(where: House, *declared: Any) -> list[tuple[Action, tuple[Any, ...]]]:
    """What a plan would do and what it calls drift."""
    return [(c.action, c.drift) for c in plan(where, desired(*declared)).changes]


# ── (a) late ────────────────────────────────────────────────────────────────────────────


def test_a_broker_that_makes_progress_is_waited_for_beyond_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One topic more every 3 s, with a limit of 4 s: 30 s are not too long."""
    where = house(brokers=2)
    read, first = MemorySession.read, {}

    def slowly(
        session: MemorySession, ids: Sequence[Identity], **how: Any
    ) -> Mapping[Identity, Reading]:
        found = read(session, ids, **how)
        if how.get("at") != "2" or not where.cluster.requests["CreateTopics"]:
            return found
        begun = first.setdefault("at", where.clock.monotonic())
        shown = (where.clock.monotonic() - begun) / 3
        return {
            i: Absent(i) if isinstance(r, Observed) and int(i.key[1:]) > shown else r
            for i, r in found.items()
        }

    monkeypatch.setattr(MemorySession, "read", slowly)
    done = apply(where, desired(*(topic(f"t{n}") for n in range(10))))
    assert complete(done) and report(done).invisible == () and ends(done) == 0
    assert where.clock.monotonic() - first["at"] > 5 * 4


def test_what_stays_late_ends_with_6_and_what_to_run() -> None:
    """The steps are applied and recorded, and nobody has seen them on broker 2."""
    where = house(brokers=2)
    where.cluster.lag(seconds=3600, broker=2)
    done = apply(where, desired(topic("t"), topic("u")))
    error = report(done).make_error()
    assert isinstance(error, OutcomeUnknown) and exit_code(error) == 6
    assert error.message == (
        "2 objects were applied, but not every live broker shows them as applied"
    )
    assert error.advice.startswith("Run `kafkaform apply` again in a minute: it looks again.")
    assert report(done).count(OutcomeStatus.APPLIED) == 2
    [end] = where.records("run_end")
    assert end.body["complete"] is True


def test_the_next_run_looks_again_for_what_was_not_seen() -> None:
    """Also if it changes nothing, or something else: 6 until every broker shows it."""
    where = house(brokers=2)
    where.cluster.lag(seconds=3600, broker=2)
    said = desired(topic("t"))
    assert ends(apply(where, said)) == 6
    again = apply(where, said)
    assert ends(again) == 6 and report(again).results == ()
    more = desired(topic("t"), topic_config("other", MS))
    with where.cluster.others() as outside:
        outside.create("other")
    where.cluster.lag(seconds=0, broker=2)
    done = apply(where, more)
    assert {item.address for item in report(done).invisible} == {
        "kafka_topic.t",
        "kafka_topic_config.other",
    }
    where.clock.advance(3600)
    last = apply(where, more)
    assert last.report is None
    assert [r.body["invisible"] for r in where.records("verify")][-1] == ()
    assert apply(where, more).report is None
    assert len(where.records("verify")) == 4
    where.check_log()


def test_a_saved_plan_that_was_applied_looks_again_too() -> None:
    """It says "already applied", which is not the same as "seen"."""
    where = house(brokers=2)
    where.cluster.lag(seconds=3600, broker=2)
    said = desired(topic("t"))
    made = plan(where, said)
    assert ends(apply(where, said, saved=made)) == 6
    again = apply(where, said, saved=made)
    assert again.already and ends(again) == 6
    where.clock.advance(3600)
    last = apply(where, said, saved=made)
    assert last.already and last.report is None


def delete_unseen(*more: Declared) -> House:
    """A house whose last apply deleted the topic t, which broker 2 still shows."""
    where = built(desired(topic("t"), *more), brokers=2)
    where.cluster.lag(seconds=3600, broker=2)
    gone = desired(*more, removed=(removed("kafka_topic.t", destroy=True),))
    done = apply(where, gone, NORMAL if more else Options(mode=Mode.DESTROY))
    assert ends(done) == 6
    [item] = report(done).invisible
    assert item.text == "not yet gone on broker 2"
    return where


@pytest.mark.parametrize("more", [(), (topic("z"),)], ids=["the last one", "one of two"])
def test_the_next_run_looks_again_for_a_deletion(more: tuple[Declared, ...]) -> None:
    """The state has no row of the topic any more: the log says which object it was."""
    where = delete_unseen(*more)
    again = apply(where, desired(*more))
    assert ends(again) == 6 and report(again).results == ()
    assert {item.address for item in report(again).invisible} == {"kafka_topic.t"}
    where.clock.advance(3600)
    assert apply(where, desired(*more)).report is None
    assert where.records("verify")[-1].body["invisible"] == ()
    where.check_log()


def test_a_topic_of_the_same_name_is_not_the_deleted_one() -> None:
    """Somebody has created it since: it has another id."""
    where = delete_unseen(topic("z"))
    where.cluster.lag(seconds=0, broker=2)
    where.clock.advance(3600)
    with where.cluster.others() as outside:
        outside.create("t")
    assert apply(where, desired(topic("z"))).report is None


def test_what_is_declared_again_is_not_looked_for_as_deleted() -> None:
    """It has a row again, which says how it has to be."""
    where = delete_unseen(topic("z"))
    where.cluster.lag(seconds=0, broker=2)
    where.clock.advance(3600)
    done = apply(where, desired(topic("z"), topic("t", 2)))
    assert complete(done) and ends(done) == 0
    assert where.records("verify")[-1].body["invisible"] == ()


def test_a_deleted_object_without_an_id_that_exists_everywhere_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody can tell it from one that was created since, so no run fails because of it."""
    where = built(desired(topic("z"), rule("Read"), rule("Write")), brokers=2)
    read = MemorySession.read
    shown: dict[Identity, Reading] = {}

    def keep(
        session: MemorySession, ids: Sequence[Identity], **how: Any
    ) -> Mapping[Identity, Reading]:
        found = read(session, ids, **how)
        acls = {i: r for i, r in found.items() if i.kind == "kafka_acl"}
        shown.update((i, r) for i, r in acls.items() if isinstance(r, Observed))
        return {i: shown.get(i, r) if how.get("at") else r for i, r in found.items()}

    monkeypatch.setattr(MemorySession, "read", keep)
    said = desired(topic("z"), rule("Write"))
    assert ends(apply(where, said)) == 6
    texts: list[str] = []
    where.screen = Screen(progress=lambda e: texts.append(e.text) if hasattr(e, "text") else None)
    assert apply(where, said).report is None
    assert any("somebody has created it again, or its deletion had no effect" in t for t in texts)
    assert where.records("verify")[-1].body["invisible"] == ()


@pytest.mark.parametrize("silent", [(2,), (1, 2)])
def test_a_node_that_may_be_out_of_service_does_not_count(
    monkeypatch: pytest.MonkeyPatch, silent: tuple[int, ...]
) -> None:
    """Of a system that does not say which of its nodes are live, one that shows the object is
    enough; without any, nobody has seen it."""
    facts = MemorySession.facts.fget
    assert facts is not None
    unlisted = property(lambda session: replace(facts(session), lists_nodes=False))
    monkeypatch.setattr(MemorySession, "facts", unlisted)
    where = house(brokers=2)

    def fall_silent(records: Sequence[Any]) -> None:
        if records[0].kind == "outcome":
            for number in silent:
                where.cluster.hang(number)

    where.sink.after_append = fall_silent
    done = apply(where, desired(topic("t")))
    assert {item.sight for item in report(done).invisible} == {Sight.SILENT}
    assert ends(done) == (0 if silent == (2,) else 6)


def test_what_others_may_set_on_a_new_topic_keeps_nobody_waiting() -> None:
    """A throttle that somebody sets meanwhile is theirs: the topic is as it was applied."""
    where = house()

    def throttle(records: Sequence[Any]) -> None:
        if records[0].kind == "outcome":
            with where.cluster.others() as outside:
                outside.alter("t", {"leader.replication.throttled.replicas": "*"})

    where.sink.after_append = throttle
    assert ends(apply(where, desired(topic("t")))) == 0


def rule(operation: str, user: str = "ci") -> Declared:
    """An ACL on the topic t."""
    acl = Acl(f"User:{user}", "*", operation, "Allow", "Topic", "t", "Literal")
    address = parse_address(f"kafka_acl.{operation.lower()}")
    return Declared(identity(acl.key, "kafka_acl"), address, acl.attributes, PLACE)


# ── (b) hidden ──────────────────────────────────────────────────────────────────────────


def test_a_right_that_the_run_took_from_itself_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operation, resource and principal; waiting would not bring it back."""
    where = built(desired(topic("t")), brokers=2)
    read = MemorySession.read

    def hide(
        session: MemorySession, ids: Sequence[Identity], **how: Any
    ) -> Mapping[Identity, Reading]:
        found = read(session, ids, **how)
        if not where.cluster.requests["IncrementalAlterConfigs"]:
            return found
        return {i: Hidden(i, f"Describe on Topic {i.key}") for i in found}

    monkeypatch.setattr(MemorySession, "read", hide)
    begun = where.clock.monotonic()
    done = apply(where, desired(topic("t", config=MS)))
    error = report(done).make_error()
    assert isinstance(error, OutcomeUnknown)
    assert "kafka_topic.t was applied, but cannot be seen: User:" in error.message
    assert error.message.endswith("no longer has the right Describe on Topic t")
    assert "not yet visible" not in error.message
    assert {item.sight for item in report(done).invisible} == {Sight.HIDDEN}
    assert where.clock.monotonic() - begun < STUCK_SECONDS + 2


def test_the_change_that_took_the_right_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run deletes the ACL by which it saw the topic that it changes."""
    where = built(desired(topic("t"), rule("Describe", "admin"), rule("Write")), brokers=2)
    read = MemorySession.read

    def hide(
        session: MemorySession, ids: Sequence[Identity], **how: Any
    ) -> Mapping[Identity, Reading]:
        found = read(session, ids, **how)
        if not where.cluster.requests["DeleteAcls"]:
            return found
        return {
            i: Hidden(i, f"Describe on Topic {i.key}") if i.kind == "kafka_topic" else r
            for i, r in found.items()
        }

    monkeypatch.setattr(MemorySession, "read", hide)
    said = desired(topic("t", config=MS), rule("Write"))
    done = apply(where, said, Options(accept=("access-unproven",)))
    error = report(done).make_error()
    assert isinstance(error, OutcomeUnknown)
    assert error.message.endswith(
        "no longer has the right Describe on Topic t: the deletion of kafka_acl.describe took it"
    )


# ── (c) kept ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["kafka_topic", "kafka_topic_config"])
def test_a_removal_without_effect_is_repaired(brokers: Brokers, kind: str) -> None:
    """The value is set as it is and removed again; both have an intent before and an outcome
    after, under the step that they repair."""
    said = topic("t", config={"segment.ms": "5"})
    if kind == "kafka_topic_config":
        where = house()
        with where.cluster.others() as outside:
            outside.create("t")
        said = topic_config("t", {"segment.ms": "5"})
    else:
        where = house()
    assert complete(apply(where, desired(said)))
    where.clock.advance(3600)
    brokers.kept["t"], brokers.sent[:] = {"retention.ms": "60000"}, []
    done = apply(where, desired(said))
    step = brokers.sent[0][0]
    assert brokers.sent == [
        (step, {}, ("retention.ms",)),
        (f"{step}~set", {"retention.ms": "60000"}, ()),
        (f"{step}~remove", {}, ("retention.ms",)),
    ]
    assert complete(done) and ends(done) == 0
    told = [
        (r.kind, r.body["step"], r.body["paths"][0]["before"], r.body["paths"][0]["after"])
        for r in where.records("intent", "outcome")
        if r.body["paths"] and r.body["paths"][0]["path"] == "config.retention.ms"
    ]
    assert told == [
        (kind, step + end, "60000", after)
        for end, after in (("", None), ("~set", "60000"), ("~remove", None))
        for kind in ("intent", "outcome")
    ]
    assert changes(where, said) == []
    where.check_log()


TIMEOUT, PULSE = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
CLEANERS, DELAY = "log.cleaner.threads", "log.segment.delete.delay.ms"
OTHERS: dict[str, tuple[dict[str, Any], str, Any, str, Any]] = {
    "kafka_group_config": ({"group": "g"}, TIMEOUT, "50000", PULSE, "6000"),
    "kafka_client_metrics": ({"name": "m"}, "interval.ms", "5000", "metrics", "org.apache"),
    "kafka_broker_config": ({"broker_id": 1}, CLEANERS, "2", DELAY, "61000"),
    "kafka_cluster_config": ({}, CLEANERS, "2", DELAY, "61000"),
    "kafka_quota": (
        {"entity_name": "ci", "entity_type": "user"},
        "producer_byte_rate",
        Decimal(1000),
        "consumer_byte_rate",
        Decimal(2000),
    ),
}
"""Kind -> what names an object, a config with its value, and one that comes back."""


@pytest.mark.parametrize("kind", OTHERS)
def test_removals_of_other_kinds_are_repaired(brokers: Brokers, kind: str) -> None:
    """All that consists of named values: configs of groups, brokers, all brokers, client metrics,
    and quotas."""
    named, key, value, kept, live = OTHERS[kind]
    where = house()
    known = TYPES[kind].schema.attributes.values()
    left_out = dict.fromkeys(item.name for item in known if not item.computed)
    attributes = {**left_out, **named, "config": FrozenMap({key: value})}
    said = Declared(
        Identity("kafka", kind, TYPES[kind].key(FrozenMap(attributes))),
        parse_address(f"{kind}.x"),
        FrozenMap(attributes),
        PLACE,
    )
    assert ends(apply(where, desired(said))) == 0
    brokers.kept[said.identity.key] = {kept: live}
    brokers.sent.clear()
    done = apply(where, desired(said))
    assert ends(done) == 0
    assert [step.rpartition("#")[2] for step, _, _ in brokers.sent] == ["1", "1~set", "1~remove"]
    assert [(dict(put), gone) for _, put, gone in brokers.sent] == [
        ({}, (kept,)),
        ({kept: live}, ()),
        ({}, (kept,)),
    ]
    assert changes(where, said) == []


def test_a_value_that_stays_after_the_repair_is_a_failed_step(brokers: Brokers) -> None:
    """Exit code 5 and not "1 changed"; the next plan still removes it, and calls it no drift."""
    said = topic("t", config={"segment.ms": "5"})
    where = built(desired(said), brokers=2)
    brokers.kept["t"], brokers.stubborn = {"retention.ms": "60000"}, True
    done = apply(where, desired(said))
    error = report(done).make_error()
    assert isinstance(error, AppliedInPart) and exit_code(error) == 5
    [result] = report(done).results
    fault = result.outcome.fault
    assert fault is not None and fault.code == NO_EFFECT
    assert "brokers 1, 2 still show the value, also after it was set and removed" in fault.message
    assert fault.message.endswith("config.retention.ms is 1 min (60000)")
    assert where.records("run_end")[-1].body["complete"] is False
    [(action, drift)] = changes(where, said)
    assert action is Action.UPDATE and drift == ()


def test_a_removal_that_is_only_late_is_waited_for(brokers: Brokers) -> None:
    """No repair is sent before the time limit has passed."""
    where = built(desired(topic("t", config=MS)), brokers=2)
    brokers.sent.clear()
    where.cluster.lag(seconds=3, broker=2)
    done = apply(where, desired(topic("t")))
    assert ends(done) == 0 and len(brokers.sent) == 1


def test_a_repair_that_is_refused_is_told_as_such(brokers: Brokers) -> None:
    """The step failed, for the reason that the broker gave."""
    said = topic("t", config={"segment.ms": "5"})
    where = built(desired(said))
    brokers.kept["t"] = {"retention.ms": "60000"}
    where.cluster.faults.schedule(refused_items(40), ALTER, skip=1)
    done = apply(where, desired(said))
    [result] = report(done).results
    assert result.outcome.fault is not None and result.outcome.fault.code == "INVALID_CONFIG"
    assert ends(done) == 5 and len(brokers.sent) == 2


@pytest.mark.parametrize("end", ["~set", "~remove"])
def test_a_run_that_dies_in_the_repair_is_recovered(brokers: Brokers, end: str) -> None:
    """Its intent is closed, and the next run removes the value."""
    said = topic("t", config={"segment.ms": "5"})
    where = built(desired(said))
    brokers.kept["t"] = {"retention.ms": "60000"}

    class Death(BaseException):
        pass

    def die(records: Sequence[Any]) -> None:
        if records[0].kind == "intent" and records[0].body["step"].endswith(end):
            raise Death

    where.sink.after_append = die
    with pytest.raises(Death):
        apply(where, desired(said))
    where.sink.after_append = lambda records: None
    done = apply(where, desired(said))
    assert ends(done) == 0 and changes(where, said) == []
    assert where.index.open_intents == ()
    [record] = where.records("recover")
    assert record.body["step"].endswith(end) and record.body["error"]["code"] == SUPERSEDED


# ── (d) reported ────────────────────────────────────────────────────────────────────────


def test_what_is_reported_of_a_new_topic_although_nothing_sets_it_is_no_difference(
    brokers: Brokers,
) -> None:
    """It is recorded with the topic, so no plan lists a removal or a change from outside."""
    brokers.unset = UNSET
    where = house(brokers=2)
    done = apply(where, desired(topic("t", config=MS)))
    assert ends(done) == 0
    row = where.row("t")
    assert row is not None and row.reported == {f"config.{k}": v for k, v in UNSET.items()}
    assert changes(where, topic("t", config=MS)) == []
    [record] = where.records("verify")
    assert [item["path"] for item in record.body["reported"]] == [
        f"config.{key}" for key in sorted(UNSET)
    ]


def test_a_removal_that_changes_nothing_is_sent_once(brokers: Brokers) -> None:
    """The brokers were updated: they report five configs. The removals are accepted, nothing
    changes, and no later plan has them."""
    said = (topic("t", config=MS), topic("u"))
    where = built(desired(*said), brokers=2)
    brokers.unset = UNSET
    brokers.sent.clear()
    assert len(changes(where, *said)) == 2
    begun = where.clock.monotonic()
    done = apply(where, desired(*said))
    assert ends(done) == 0 and where.clock.monotonic() - begun < STUCK_SECONDS + 2
    assert [gone for _, _, gone in brokers.sent] == [tuple(sorted(UNSET))] * 2
    assert changes(where, *said) == []
    again = apply(where, desired(*said))
    assert again.report is None and len(brokers.sent) == 2


@pytest.mark.parametrize("value", ["5", "604800001"])
def test_a_later_change_of_such_a_config_is_seen(brokers: Brokers, value: str) -> None:
    """By somebody else: it is drift, and the plan removes it."""
    brokers.unset = UNSET
    where = built(desired(topic("t", config=MS)))
    brokers.unset = {**UNSET, "segment.ms": value}
    [change] = plan(where, desired(topic("t", config=MS))).changes
    assert [(i.path, i.before, i.after) for i in change.paths] == [
        (("config", "segment.ms"), value, None)
    ]
    assert [item.path for item in change.drift] == [("config", "segment.ms")]


def test_a_refresh_takes_no_such_config_into_the_state(brokers: Brokers) -> None:
    """It is not called a change from outside, either."""
    brokers.unset = UNSET
    where = built(desired(topic("t")))
    made = plan(where, desired(topic("t")), Options(mode=Mode.REFRESH))
    assert made.idle and not any(change.drift for change in made.changes)


def test_a_real_removal_of_such_a_config_is_seen(brokers: Brokers) -> None:
    """The value of somebody else is gone, and the broker reports the default again."""
    brokers.unset = UNSET
    where = built(desired(topic("t")))
    with where.cluster.others() as outside:
        outside.alter("t", {"segment.ms": "5"})
    done = apply(where, desired(topic("t")))
    assert complete(done) and ends(done) == 0
    assert changes(where, topic("t")) == []


def test_such_a_config_can_be_declared_and_let_go(brokers: Brokers) -> None:
    """From then on it is a config like others, and its removal is real."""
    brokers.unset = {"segment.ms": "604800000"}
    where = built(desired(topic("t")))
    said = topic("t", config={"segment.ms": "604800000"})
    assert ends(apply(where, desired(said))) == 0
    row = where.row("t")
    assert row is not None and row.reported == {}
    assert changes(where, said) == []
    assert ends(apply(where, desired(topic("t")))) == 0
    assert changes(where, topic("t")) == []


def test_a_change_of_something_else_is_not_stale_because_of_such_a_config(
    brokers: Brokers,
) -> None:
    """The second look before the apply leaves out what the plan left out; the change writes only
    its own path."""
    brokers.unset = UNSET
    where = built(desired(topic("t")))
    brokers.sent.clear()
    made = plan(where, desired(topic("t", config=MS)))
    done = apply(where, desired(topic("t", config=MS)), saved=made, expect=made.token)
    assert ends(done) == 0
    [(_, put, gone)] = brokers.sent
    assert put == MS and gone == ()
    row = where.row("t")
    assert row is not None and len(row.reported) == len(UNSET)
    again = apply(where, desired(topic("t", config=MS)), saved=made, expect=made.token)
    assert again.already


def test_no_look_is_taken_without_waiting(brokers: Brokers) -> None:
    """`--no-wait` ends with 0 and says nothing about what it did not see."""
    where = house(brokers=2)
    where.cluster.lag(seconds=3600, broker=2)
    here = space(where, desired(topic("t")))
    done = apply_changes(here, approve=lambda plan: True, wait=False)
    assert ends(done) == 0 and report(done).invisible == ()
    assert where.records("verify") == []
