"""What is sent, in which order, and what becomes of everything that does not go well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from kafkaform.apply.recovery import MARGIN_SECONDS
from kafkaform.audit.records import Record
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.errors import DryRunRefused, StorageError, exit_code
from kafkaform.core.resource import Desired, Lifecycle
from kafkaform.workflow.model import Applied
from kafkaform_kafka.memory import (
    Mishap,
    late_effect,
    lost_reply,
    lost_request,
    not_sent,
    refused_items,
    throttled_items,
)

from ...kit.simulated.engine import TIMEOUT, apply, desired, house, plan, removed, topic
from ...kit.simulated.managed_topics import (
    MS,
    between,
    blinded,
    built,
    codes,
    complete,
    ends,
    on_append,
    statuses,
    writes,
)

APPLIED, FAILED, SKIPPED, UNKNOWN = (
    OutcomeStatus.APPLIED,
    OutcomeStatus.FAILED,
    OutcomeStatus.SKIPPED,
    OutcomeStatus.UNKNOWN,
)
PATIENCE = TIMEOUT + MARGIN_SECONDS


def code_of(done: Applied) -> int:
    """The exit code of this apply."""
    error = done.report.make_error() if done.report else None
    return exit_code(error) if error else 0


# ── intents come first ──────────────────────────────────────────────────────────────────


def test_every_request_leaves_after_its_intents_are_durable() -> None:
    """When intents become durable their request has not left; when outcomes do, it has."""
    where = built(desired(topic("a"), topic("d")))
    seen: list[tuple[str, int]] = []

    def note(records: Sequence[Record]) -> None:
        seen.extend((record.kind, sum(writes(where).values())) for record in records)

    before = sum(writes(where).values())
    on_append(where, note)
    gone = (removed("kafka_topic.d", destroy=True),)
    assert complete(apply(where, desired(topic("a", 2, MS), topic("b"), removed=gone)))
    steps = [(kind, count - before) for kind, count in seen if kind in ("intent", "outcome")]
    assert steps == [
        *[("intent", 0), ("outcome", 1)],  # create b
        *[("intent", 1), ("outcome", 2)],  # grow a
        *[("intent", 2), ("outcome", 3)],  # alter a
        *[("intent", 3), ("outcome", 4)],  # delete d
    ]


def test_an_intent_that_cannot_be_written_sends_nothing() -> None:
    """A full disk under the log stops the run before the request."""
    where = built(desired(topic("a")))
    before = writes(where)

    def fill(records: Sequence[Record]) -> None:
        where.sink.full = records[-1].kind == "validate"

    on_append(where, fill)
    with pytest.raises(StorageError):
        apply(where, desired(topic("a", 2)))
    assert writes(where) == before
    assert where.cluster.topics["a"].partitions == 1


def test_a_state_that_cannot_be_saved_is_rescued_and_taken_in_later() -> None:
    """The outcome is in the log and the state elsewhere; the next run loses nothing."""
    said = desired(topic("a", 2), topic("b"))
    where = built(desired(topic("a")))

    def fill(records: Sequence[Record]) -> None:
        where.backend.full = records[-1].kind == "outcome"

    on_append(where, fill)
    with pytest.raises(StorageError, match="another disk"):
        apply(where, said)
    assert len(where.backend.rescued[0].objects) == 2
    on_append(where, lambda records: None)
    where.backend.full = False
    assert complete(apply(where, said))
    assert where.screen.recoveries[0].taken_in == 1
    assert plan(where, said).changes == ()


# ── partial failure ─────────────────────────────────────────────────────────────────────

GONE = (removed("kafka_topic.old", destroy=True),)
MANY = desired(
    topic("z"),
    topic("a"),
    topic("b"),
    topic("c", depends_on=("kafka_topic.b",)),
    topic("d", depends_on=("kafka_topic.c",)),
    removed=GONE,
)


@pytest.mark.parametrize("code", [44, 41, 29, 36])
def test_what_fails_takes_its_dependents_and_the_deletions_with_it(code: int) -> None:
    """Independent steps go on, nothing is deleted after a failure, what succeeded is kept."""
    where = built(desired(topic("old"), topic("z")))
    where.cluster.faults.schedule(refused_items(code, names="b"), "CreateTopics")
    done = apply(where, MANY)
    assert statuses(done) == {
        "a#1": APPLIED,
        "b#1": FAILED,
        "c#1": SKIPPED,
        "d#1": SKIPPED,
        "old#1": SKIPPED,
    }
    assert code_of(done) == 5
    assert where.row("a") is not None and where.row("b") is None
    assert where.cluster.topics.keys() == {"old", "z", "a"}


def test_the_next_apply_finishes_what_is_left() -> None:
    """Nothing that was applied is sent again."""
    where = built(desired(topic("old"), topic("z")))
    where.cluster.faults.schedule(refused_items(44, names="b"), "CreateTopics")
    apply(where, MANY)
    again = apply(where, MANY)
    assert statuses(again).keys() == {"b#1", "c#1", "d#1", "old#1"}
    assert complete(again) and where.cluster.topics.keys() == {"z", "a", "b", "c", "d"}


def test_the_second_step_of_a_change_may_fail_alone() -> None:
    """The row has what succeeded; the plan that follows asks for the rest."""
    where = built(desired(topic("a")))
    where.cluster.faults.schedule(refused_items(44), "IncrementalAlterConfigs")
    done = apply(where, desired(topic("a", 2, MS)))
    assert statuses(done) == {"a#1": APPLIED, "a#2": FAILED}
    row = where.row("a")
    assert row is not None and row.attributes["partitions"] == 2
    assert row.attributes["config"] == {}
    (rest,) = plan(where, desired(topic("a", 2, MS))).changes
    assert [item.path for item in rest.paths] == [("config", "retention.ms")] and not rest.drift


def test_a_failed_update_leaves_the_row_as_it_was() -> None:
    """The state never says more than what was applied."""
    where = built(desired(topic("a", 1, MS)))
    where.cluster.faults.schedule(refused_items(44), "IncrementalAlterConfigs")
    apply(where, desired(topic("a", 1, {"retention.ms": "2"})))
    row = where.row("a")
    assert row is not None and row.attributes["config"] == MS


def test_a_protected_row_that_is_only_shown_keeps_its_record() -> None:
    """A blocked deletion in a plan that changes something else touches nothing of its own."""
    where = built(desired(topic("a", 1, MS), topic("b")))
    before = where.row("a")
    done = apply(where, desired(topic("b", 2)))
    assert complete(done) and [c.blocked is not None for c in done.plan.changes] == [True, False]
    assert where.row("a") == before


def test_drift_that_is_overwritten_or_accepted_is_recorded() -> None:
    """After an apply the row says what is live, on paths that were not written too."""
    both = {"retention.ms": "1000", "segment.ms": "60000"}
    where = built(desired(topic("a", 1, both)))
    with where.cluster.others() as others:
        others.alter("a", {"segment.ms": "70000"})
    said = desired(topic("a", 2, {**both, "segment.ms": "70000"}))
    assert complete(apply(where, said))
    row = where.row("a")
    assert row is not None and row.attributes["config"]["segment.ms"] == "70000"
    assert plan(where, said).changes == ()


def test_an_object_that_needs_nothing_takes_the_live_values() -> None:
    """A configuration that follows what somebody did by hand ends the drift."""
    where = built(desired(topic("a", 1, MS)))
    with where.cluster.others() as others:
        others.alter("a", {"retention.ms": "7"})
    said = desired(topic("a", 1, {"retention.ms": "7"}))
    assert plan(where, said).drifted
    assert complete(apply(where, said))
    assert plan(where, said).changes == ()


def test_an_adoption_in_two_steps_keeps_both() -> None:
    """Grown and altered in one adoption: the row has both."""
    where = house()
    with where.cluster.others() as others:
        others.create("a", 1, config={"segment.ms": "60000"})
    wish = topic("a", 3, MS, lifecycle=Lifecycle(adopt=True))
    assert complete(apply(where, desired(wish)))
    row = where.row("a")
    assert row is not None and row.attributes["partitions"] == 3
    assert row.attributes["config"] == {"retention.ms": "1000", "segment.ms": "60000"}
    assert row.protected == "default"
    assert complete(apply(where, desired(wish)))
    assert where.cluster.topics["a"].config == MS


def test_deletions_go_last_and_backwards() -> None:
    """A topic that others depend on is deleted after them."""
    first = desired(topic("z"), topic("a"), topic("b", depends_on=("kafka_topic.a",)))
    where = built(first)
    gone = tuple(removed(f"kafka_topic.{name}", destroy=True) for name in "ab")
    done = apply(where, desired(topic("z"), topic("n"), removed=gone))
    assert complete(done)
    order = [record.body["key"] for record in where.records("intent")][-3:]
    assert order == ["n", "b", "a"]


# ── the broker asks to wait ─────────────────────────────────────────────────────────────


def test_what_is_throttled_is_sent_again_when_the_broker_said() -> None:
    """Only the steps that were refused, each under the intent that it has; one outcome each."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(throttled_items(3.0, first=1), "CreateTopics")
    start = where.clock.monotonic()
    done = apply(where, desired(topic("z"), topic("a"), topic("b"), topic("c")))
    assert complete(done) and where.clock.monotonic() - start >= 3
    tried = [(r.body["key"], r.body["attempt"]) for r in where.records("intent")][1:]
    assert tried == [("a", 1), ("b", 1), ("c", 1)]
    assert [end for _, end in ends(where)][1:] == ["applied"] * 3


def test_a_broker_that_never_has_time_is_left() -> None:
    """The waiting is bounded; what is left is failed, and exit code 5."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(throttled_items(30.0), "CreateTopics", times=99)
    start = where.clock.monotonic()
    done = apply(where, desired(topic("z"), topic("a")))
    assert codes(done) == {"a#1": "THROTTLING_QUOTA_EXCEEDED"} and code_of(done) == 5
    assert where.clock.monotonic() - start < 20 * PATIENCE
    assert where.index.open_intents == ()


# ── answers that do not come ────────────────────────────────────────────────────────────

WISHES: dict[str, tuple[str, Desired]] = {
    "create": ("CreateTopics", desired(topic("z"), topic("d"), topic("a"))),
    "alter": ("IncrementalAlterConfigs", desired(topic("z", 1, MS), topic("d"))),
    "grow": ("CreatePartitions", desired(topic("z", 2), topic("d"))),
    "delete": (
        "DeleteTopics",
        desired(topic("z"), removed=(removed("kafka_topic.d", destroy=True),)),
    ),
}


@pytest.mark.parametrize("what", WISHES)
@pytest.mark.parametrize("mishap", [lost_reply(), late_effect(1.0), late_effect(TIMEOUT)], ids=repr)
def test_a_lost_answer_is_read_and_found_applied(what: str, mishap: Mishap) -> None:
    """The effect is there, or lands while the run waits; nothing is sent twice."""
    api, said = WISHES[what]
    where = built(desired(topic("z"), topic("d")))
    before = where.cluster.requests[api]
    where.cluster.faults.schedule(mishap, api)
    done = apply(where, said)
    assert complete(done) and where.cluster.requests[api] - before == 1
    assert where.index.open_intents == () and plan(where, said).changes == ()
    row = where.row("a")
    assert what != "create" or (row and row.incarnation == where.cluster.topics["a"].id)


@pytest.mark.parametrize("what", WISHES)
def test_a_swallowed_request_is_failed_after_the_deadline(what: str) -> None:
    """Not before: until then the effect might still land."""
    api, said = WISHES[what]
    where = built(desired(topic("z"), topic("d")))
    where.cluster.faults.schedule(lost_request(), api)
    start = where.clock.monotonic()
    done = apply(where, said)
    assert set(codes(done).values()) == {"TRANSPORT"} and code_of(done) == 5
    assert where.clock.monotonic() - start >= PATIENCE
    assert where.index.open_intents == ()
    assert complete(apply(where, said)) and plan(where, said).changes == ()


@pytest.mark.parametrize("what", WISHES)
def test_a_request_that_never_left_is_failed_at_once(what: str) -> None:
    """Nothing happened, so nothing is waited for."""
    api, said = WISHES[what]
    where = built(desired(topic("z"), topic("d")))
    where.cluster.faults.schedule(not_sent(), api)
    start = where.clock.monotonic()
    done = apply(where, said)
    assert set(codes(done).values()) == {"NOT_SENT"}
    assert where.clock.monotonic() - start < 1


@pytest.mark.parametrize("what", WISHES)
def test_an_outcome_that_cannot_be_read_stays_open(what: str) -> None:
    """Exit code 6; the intent has no outcome until the next run reads again."""
    api, said = WISHES[what]
    where = built(desired(topic("z"), topic("d")))
    where.cluster.faults.schedule(lost_reply(), api)
    see = blinded(where, api)
    done = apply(where, said)
    see()
    assert UNKNOWN in statuses(done).values() and code_of(done) == 6
    assert len(where.index.open_intents) == 1
    assert complete(apply(where, said))
    assert where.index.open_intents == () and plan(where, said).changes == ()


def test_a_broker_that_lags_does_not_fake_an_outcome() -> None:
    """A revert whose answer was swallowed: one broker still shows the old value, which is the
    target. Only when all brokers agree is it an answer."""
    where = built(desired(topic("a", 1, MS)), brokers=3)
    assert complete(apply(where, desired(topic("a", 1, {"retention.ms": "2"}))))
    where.cluster.lag(seconds=6, broker=2)
    with where.cluster.others() as others:
        others.alter("a", {"retention.ms": "3"})
    where.cluster.faults.schedule(lost_request(), "IncrementalAlterConfigs")
    done = apply(where, desired(topic("a", 1, {"retention.ms": "2"})))
    assert statuses(done) == {"a#2": FAILED}
    assert where.cluster.topics["a"].config == {"retention.ms": "3"}


def test_a_topic_is_not_called_deleted_because_one_broker_never_saw_it() -> None:
    """A swallowed deletion; the first broker dies, and the next one does not know the topic."""
    where = house(brokers=3)
    where.cluster.lag(seconds=6, broker=2)
    assert complete(apply(where, desired(topic("a"), topic("z"))))
    where.cluster.lag(seconds=60, broker=2)
    with where.cluster.others() as others:
        others.grow("z", 2)
    gone = desired(topic("z", 2), removed=(removed("kafka_topic.a", destroy=True),))
    where.cluster.faults.schedule(lost_request(), "DeleteTopics")
    between(where, "DeleteTopics", lambda: where.cluster.stop(1))
    done = apply(where, gone)
    assert "a" in where.cluster.topics and where.row("a") is not None
    assert APPLIED not in statuses(done).values()


# ── conflicts ───────────────────────────────────────────────────────────────────────────


def test_a_topic_that_somebody_made_in_the_gap_is_a_conflict() -> None:
    """Even one that is exactly what we wanted: nobody asked us to adopt it."""
    where = built(desired(topic("z")))

    def others_create() -> None:
        with where.cluster.others() as others:
            others.create("a")

    between(where, "CreateTopics", others_create)
    done = apply(where, desired(topic("z"), topic("a")))
    assert codes(done) == {"a#1": "TOPIC_ALREADY_EXISTS"}
    assert where.row("a") is None
    (blocked,) = plan(where, desired(topic("z"), topic("a"))).changes
    assert blocked.blocked is not None and blocked.blocked.block == "unmanaged"


def test_our_own_topic_after_a_lost_answer_is_no_conflict() -> None:
    """The answer of the create was lost, so the topic that exists now is ours."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(lost_reply(), "CreateTopics")
    done = apply(where, desired(topic("z"), topic("a")))
    assert statuses(done) == {"a#1": APPLIED}
    row = where.row("a")
    assert row is not None and row.incarnation == where.cluster.topics["a"].id


def test_another_topic_after_a_lost_answer_is_a_conflict() -> None:
    """Ours was swallowed and somebody made another one: it is left alone."""
    where = built(desired(topic("z")))

    def others_create() -> None:
        with where.cluster.others() as others:
            others.create("a", 7)

    between(where, "CreateTopics", others_create)
    where.cluster.faults.schedule(lost_request(), "CreateTopics")
    done = apply(where, desired(topic("z"), topic("a")))
    assert codes(done) == {"a#1": "CONFLICT"}
    assert where.row("a") is None and where.cluster.topics["a"].partitions == 7


@pytest.mark.parametrize(
    ("api", "said", "outside"),
    [
        ("CreatePartitions", desired(topic("z", 3)), lambda others: others.grow("z", 3)),
        (
            "DeleteTopics",
            desired(topic("k"), removed=(removed("kafka_topic.z", destroy=True),)),
            lambda others: others.delete("z"),
        ),
        (
            "DeleteTopics",
            desired(topic("k"), removed=(removed("kafka_topic.z", destroy=True),)),
            lambda others: others.recreate("z"),
        ),
    ],
)
def test_what_somebody_did_for_us_counts_as_done(
    api: str, said: Desired, outside: Callable[..., None]
) -> None:
    """The broker refuses because it is so already: a fresh reading says applied."""
    where = built(desired(topic("z"), topic("k")))

    def act() -> None:
        with where.cluster.others() as others:
            outside(others)

    between(where, api, act)
    survivors = desired(*said.declared, topic("k"), removed=said.removed)
    done = apply(where, said if len(said.declared) > 1 or said.removed else survivors)
    assert set(statuses(done).values()) == {APPLIED}


def test_a_recreated_topic_survives_a_deletion_on_its_way() -> None:
    """Deletes go by id: the new topic of that name is not the one that was approved."""
    where = built(desired(topic("z"), topic("k")))

    def act() -> None:
        with where.cluster.others() as others:
            others.recreate("z")

    between(where, "DeleteTopics", act)
    gone = desired(topic("k"), removed=(removed("kafka_topic.z", destroy=True),))
    assert complete(apply(where, gone))
    assert "z" in where.cluster.topics and where.row("z") is None


# ── looking again, and the dry run ──────────────────────────────────────────────────────


def test_a_later_wave_looks_again_before_it_sends() -> None:
    """A change in the middle of the run stops what comes after it: applied in part, exit code 5."""
    where = built(desired(topic("z")))

    def act() -> None:
        with where.cluster.others() as others:
            others.alter("z", {"retention.ms": "9"})

    between(where, "CreateTopics", act)
    done = apply(where, desired(topic("z", 1, MS), topic("a")))
    assert statuses(done) == {"a#1": APPLIED, "z#2": SKIPPED}
    assert code_of(done) == 5
    assert where.cluster.topics["z"].config == {"retention.ms": "9"}


def test_one_refusal_in_the_dry_run_and_nothing_is_sent() -> None:
    """All refusals are named together; no run has begun."""
    where = built(desired(topic("z")))
    before = writes(where)
    where.cluster.faults.schedule(refused_items(44, names="[ab]"), "CreateTopics:validate")
    with pytest.raises(DryRunRefused) as caught:
        apply(where, desired(topic("z"), topic("a"), topic("b"), topic("c")))
    assert [d.address for d in caught.value.diagnostics] == ["kafka_topic.a", "kafka_topic.b"]
    assert writes(where) == before and where.records("run_begin")[1:] == []


def test_the_second_dry_run_refuses_what_had_to_wait() -> None:
    """A step behind another one is validated just before its wave; its dependents are skipped."""
    where = built(desired(topic("z")))
    said = desired(
        topic("z"),
        topic("a"),
        topic("b", depends_on=("kafka_topic.a",)),
        topic("c", depends_on=("kafka_topic.b",)),
    )
    where.cluster.faults.schedule(refused_items(44, names="b"), "CreateTopics:validate", skip=1)
    done = apply(where, said)
    assert statuses(done) == {"a#1": APPLIED, "b#1": SKIPPED, "c#1": SKIPPED}
    assert codes(done)["b#1"] == "POLICY_VIOLATION" and code_of(done) == 5
    assert where.cluster.requests["CreateTopics"] == 2


def test_bookkeeping_is_recorded_before_anything_is_sent() -> None:
    """Owners and protection have their intents and outcomes too, and need no broker."""
    where = built(desired(topic("a")))
    before = writes(where)
    said = desired(topic("a", lifecycle=Lifecycle(prevent_destroy=True), owner="ann"))
    assert complete(apply(where, said)) and writes(where) == before
    row = where.row("a")
    assert row is not None and (row.protected, row.owner) == ("explicit", "ann")
    assert ends(where)[-1] == ("outcome", "applied")
    assert plan(where, said).changes == ()
