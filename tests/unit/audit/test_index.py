"""One pass over the log says what is open, what can be resumed and what may be deleted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.audit import journal, records
from kafkaform.audit.index import LogIndex, Origin, index_log, list_instances, list_pending
from kafkaform.audit.journal import Journal
from kafkaform.audit.records import RecordKind, verify_log
from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.errors import StorageError
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.state.codec import encode_row

from ...kit import audit_story as story
from ...kit.audit_story import APPROVAL, MADE, MOVE, OLD, ORDERS, OTHER, PLAN, USER, MemorySink
from ...kit.states import topic


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
def log(sink: MemorySink) -> Journal:
    first = story.journal(sink, "run-1")
    story.begin(first)
    return first


def read(sink: MemorySink, **options: object) -> LogIndex:
    return index_log(story.records_of(sink), **options)  # type: ignore[arg-type]


def open_steps(sink: MemorySink) -> list[str]:
    return [record.body["step"] for record in read(sink).open_intents]


# ── intents ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("outcome", ["applied", "failed", "started", "skipped"])
def test_terminal_outcomes_close(sink: MemorySink, log: Journal, outcome: str) -> None:
    """Each terminal outcome closes its intent and no other."""
    story.intend(log, ORDERS)
    story.intend(log, USER)
    story.conclude(log, ORDERS, outcome)
    assert open_steps(sink) == [USER.step]


def test_unknown_leaves_open(sink: MemorySink, log: Journal) -> None:
    """An unknown outcome is not an end."""
    story.intend(log, ORDERS)
    story.conclude(log, ORDERS, "unknown")
    assert open_steps(sink) == [ORDERS.step]


def test_attempts_are_apart(sink: MemorySink, log: Journal) -> None:
    """The outcome of one attempt does not close another."""
    story.intend(log, ORDERS)
    story.conclude(log, ORDERS, "failed")
    story.intend(log, replace(ORDERS, attempt=2))
    assert [record.body["attempt"] for record in read(sink).open_intents] == [2]


def test_the_same_step_of_another_run_is_apart(sink: MemorySink, log: Journal) -> None:
    """A later run's outcome closes its own intent; the earlier one needs a `recover`."""
    lost = story.intend(log, USER)
    later = story.journal(sink, "run-2")
    story.begin(later)
    story.intend(later, USER)
    story.conclude(later, USER)
    assert read(sink).open_intents == (lost,)
    failed = journal.make_outcome_body(USER, "failed")
    later.write(RecordKind.RECOVER, journal.make_recover_body(failed, "run-1"))
    assert read(sink).open_intents == ()


def test_pending(sink: MemorySink, log: Journal) -> None:
    """The planner sees what an open intent would have made, when, and of which run."""
    record = story.intend(log, ORDERS)
    story.intend(log, OLD, None)
    create, delete = list_pending(read(sink))
    assert (create.identity, create.run, create.action) == (ORDERS.identity, "run-1", "create")
    assert create.target == MADE
    assert abs(create.time - records.parse_time(record.time)) < 1e-6
    assert (delete.target, delete.incarnation) == (EMPTY, "id-old")


def test_pending_work(sink: MemorySink, log: Journal) -> None:
    """A move is pending until it is discharged; an open intent of its object is told after it."""
    duty = log.write(RecordKind.OBLIGATION, journal.make_obligation_body(MOVE, "t-1", "move"))
    story.intend(log, replace(MOVE, attempt=2))
    move, intent = list_pending(read(sink))
    assert (move.identity, move.run, move.action, move.step) == (
        MOVE.identity,
        "run-1",
        "move",
        "t-1",
    )
    assert move.target == EMPTY and abs(move.time - records.parse_time(duty.time)) < 1e-6
    assert intent.action == "update"
    ended = Outcome("t-1", OutcomeStatus.APPLIED)
    log.write(RecordKind.DISCHARGED, journal.make_discharge_body(duty, ended))
    assert [item.action for item in list_pending(read(sink))] == ["update"]


# ── runs ────────────────────────────────────────────────────────────────────────────────


def test_a_dead_run_is_open(sink: MemorySink, log: Journal) -> None:
    """A run without an end can be resumed: its plan and what it has done are there."""
    story.intend(log, ORDERS)
    story.conclude(log, ORDERS, incarnation="id-1")
    run = read(sink).open_run
    assert run is not None
    assert (run.run, run.approval, run.plan) == ("run-1", APPROVAL, PLAN)
    assert {step: r.body["incarnation"] for step, r in run.outcomes.items()} == {
        ORDERS.step: "id-1"
    }


def test_a_log_is_read_once(sink: MemorySink, log: Journal) -> None:
    """Also what is open is known as a whole after one pass over the records."""
    lost = story.intend(log, USER)
    ended = story.conclude(log, ORDERS)
    found = index_log(iter(story.records_of(sink)))
    assert found.open_intents == (lost,)
    assert found.open_run is not None
    assert (found.open_run.plan, found.open_run.outcomes) == (PLAN, {ORDERS.step: ended})


def test_a_saved_open_run_keeps_its_plan(sink: MemorySink, log: Journal) -> None:
    """A run whose outcomes are all in the state can still be resumed."""
    story.conclude(log, ORDERS)
    story.end(log, complete=False)
    run = read(sink, saved=log.head).open_run
    assert run is not None
    assert run.plan == PLAN
    assert list(run.outcomes) == [ORDERS.step]


def test_an_incomplete_end_leaves_the_run_open(sink: MemorySink, log: Journal) -> None:
    """Only a complete end closes a run."""
    story.end(log, complete=False)
    assert read(sink).open_run is not None
    past = read(sink).find_last_run(APPROVAL)
    assert past is not None
    assert not past.complete
    story.end(log)
    assert read(sink).open_run is None
    past = read(sink).find_last_run(APPROVAL)
    assert past is not None
    assert past.complete


def test_another_approval_closes(sink: MemorySink, log: Journal) -> None:
    """A run under another approval ends what was open; the old approval is not resumed."""
    story.conclude(log, ORDERS)
    later = story.journal(sink, "run-2")
    story.begin(later, OTHER)
    run = read(sink).open_run
    assert run is not None
    assert (run.run, run.approval, dict(run.outcomes)) == ("run-2", OTHER, {})
    story.end(later, OTHER)
    assert read(sink).open_run is None


def test_a_resumed_run_is_one_run(sink: MemorySink, log: Journal) -> None:
    """What several runs under one approval did counts together, under the first one's id."""
    story.intend(log, ORDERS)
    story.conclude(log, ORDERS, incarnation="id-1")
    story.intend(log, OLD, None)
    later = story.journal(sink, "run-2")
    found = journal.make_outcome_body(OLD, "applied")
    later.write(RecordKind.RECOVER, journal.make_recover_body(found, "run-1"))
    story.begin(later, plan=FrozenMap(other=1))
    story.intend(later, USER)
    story.conclude(later, USER, "failed")
    run = read(sink).open_run
    assert run is not None
    assert (run.run, run.plan) == ("run-1", PLAN)
    assert {s: r.body["outcome"] for s, r in run.outcomes.items()} == {
        ORDERS.step: "applied",
        OLD.step: "applied",
        USER.step: "failed",
    }


def test_a_run_that_died_before_its_plan(sink: MemorySink) -> None:
    """Without a recorded plan there is nothing to resume, and it says so."""
    log = story.journal(sink, "run-1")
    body = journal.make_run_begin_body(APPROVAL, [], {}, command="apply", host="h")
    log.write(RecordKind.RUN_BEGIN, body)
    run = read(sink).open_run
    assert run is not None
    assert run.plan is None


def test_plans_are_kept_while_something_is_open(sink: MemorySink, log: Journal) -> None:
    """An intent that stays open across later runs keeps its plan, closed runs let theirs go."""
    lost = story.intend(log, USER)
    for number in (2, 3):
        later = story.journal(sink, f"run-{number}")
        story.begin(later, OTHER, FrozenMap(number=number))
        story.end(later, OTHER)
    found = read(sink)
    assert found.open_intents == (lost,)
    assert {run.run: run.plan for run in found.runs.values()} == {
        "run-1": PLAN,
        "run-2": None,
        "run-3": None,
    }


# ── proofs and duties ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("action", "adopts", "outcome", "proves"),
    [
        ("create", False, "applied", True),
        ("adopt", True, "applied", True),
        ("import", True, "applied", True),
        ("update", True, "applied", True),
        ("update", True, "started", True),
        ("create", False, "started", True),
        ("update", False, "applied", False),
        ("delete", False, "applied", False),
        ("create", False, "failed", False),
        ("create", False, "unknown", False),
    ],
)
def test_origins(
    sink: MemorySink, log: Journal, action: str, adopts: bool, outcome: str, proves: bool
) -> None:
    """Only an applied or started creation, adoption or import proves that an object is ours."""
    subject = replace(ORDERS, action=action, adopts=adopts)
    record = story.conclude(log, subject, outcome, incarnation="id-1")
    wanted = {record.seq: Origin(ORDERS.identity, "id-1", "cluster-1")} if proves else {}
    assert read(sink).origins == wanted


def test_recovered_creation_is_an_origin(sink: MemorySink, log: Journal) -> None:
    """A creation that was found by reading later counts from the record that says so."""
    story.intend(log, ORDERS)
    made = journal.make_outcome_body(replace(ORDERS, incarnation="id-1"), "applied")
    record = log.write(RecordKind.RECOVER, journal.make_recover_body(made, "run-1"))
    assert read(sink).origins == {record.seq: Origin(ORDERS.identity, "id-1", "cluster-1")}


@pytest.mark.parametrize("outcome", ["applied", "failed", "unknown"])
@pytest.mark.parametrize(
    ("action", "owners", "ends"),
    [
        ("delete", (), True),
        ("forget", (), True),
        ("update", (), True),
        ("update", ORDERS.owners, False),
        ("delete", None, True),
        ("forget", None, True),
        ("update", None, False),
    ],
)
def test_origins_end(
    sink: MemorySink,
    log: Journal,
    outcome: str,
    action: str,
    owners: tuple[str, ...] | None,
    ends: bool,
) -> None:
    """An applied delete, forget or release ends the origin of its object, also a delete or forget
    of a log that does not tell owners; whatever did not succeed ends none, nor does an object of
    that name in another cluster."""
    made = story.conclude(log, ORDERS, incarnation="id-1")
    elsewhere = story.conclude(log, replace(ORDERS, scope_id="cluster-2"), incarnation="id-2")
    gone = journal.make_outcome_body(replace(ORDERS, action=action, owners=owners or ()), outcome)
    log.write(RecordKind.OUTCOME, gone.without(["owners"]) if owners is None else gone)
    left = {elsewhere.seq} | ({made.seq} if not ends or outcome != "applied" else set())
    assert set(read(sink).origins) == left


def test_an_object_has_one_origin(sink: MemorySink, log: Journal) -> None:
    """What was made anew is proven by its own record, not by that of its predecessor."""
    story.conclude(log, ORDERS, incarnation="id-1")
    again = story.conclude(log, ORDERS, incarnation="id-2")
    assert list(read(sink).origins) == [again.seq]


@pytest.mark.parametrize(("day", "proves"), [("2025-12-31", False), ("2026-01-02", True)])
def test_what_was_joined_later_proves_by_its_own_time(
    sink: MemorySink, log: Journal, day: str, proves: bool
) -> None:
    """A creation that another branch of the log tells of ends with a delete that came after it,
    although it stands behind that; one that came after the delete is the origin."""
    story.conclude(log, replace(ORDERS, action="delete", owners=()))
    was = FrozenMap(seq=2, time=f"{day}T09:00:00.000000Z", hash="a" * 64)
    body = journal.make_outcome_body(ORDERS, "applied").with_items({"forked": was})
    joined = log.write(RecordKind.OUTCOME, body)
    assert set(read(sink).origins) == ({joined.seq} if proves else set())


def test_what_nobody_owns_has_no_origin(sink: MemorySink, log: Journal) -> None:
    """`alter` makes objects that no block owns and no row records: nothing proves them ours."""
    story.conclude(log, replace(ORDERS, owners=()), incarnation="id-1")
    assert read(sink).origins == {}


ROW = encode_row(topic("orders"))


@pytest.mark.parametrize(
    ("reason", "version", "item", "ends"),
    [
        ("state rm", "3-ab", {"row": None}, True),
        ("state rm", "3-ab", {"row": ROW}, False),
        ("state mv", "3-ab", {"row": ROW}, False),
        ("state push", "3-ab", {"row": None}, True),
        ("state push", "3-ab", {"row": ROW}, False),
        ("state rm", "3-ab", {}, True),
        ("state mv", "3-ab", {}, False),
        ("state push", "3-ab", {}, True),
        ("state push", "", {}, False),
    ],
)
def test_edits_end_origins(
    sink: MemorySink,
    log: Journal,
    reason: str,
    version: str,
    item: dict[str, FrozenMap | None],
    ends: bool,
) -> None:
    """An edit that takes a row out ends its origin, one that moves it does not; of edits that do
    not say which, those that can have taken it out do."""
    made = story.conclude(log, ORDERS, incarnation="id-1")
    named = FrozenMap(instance="kafka", kind="kafka_topic", key="orders", **item)
    body = FrozenMap(serial=4, version=version, reason=reason, objects=(named,))
    log.write(RecordKind.STATE, body)
    found = read(sink, saved=log.head)
    assert set(found.origins) == (set() if ends else {made.seq})
    assert (found.vague, found.unsaved) == (not item, ())


def test_the_log_knows_its_clusters(sink: MemorySink, log: Journal) -> None:
    """Which cluster an instance is, is told by what was applied there; an edit that the state
    lacks is among what it lacks."""
    story.conclude(log, replace(ORDERS, scope_id="elsewhere"), "failed")
    assert read(sink).scopes == {}
    story.conclude(log, ORDERS)
    saved = log.head
    edit = log.write(
        RecordKind.STATE,
        journal.make_state_edit_body(4, "", "state rm", {ORDERS.identity: None}),
    )
    found = read(sink, saved=saved)
    assert (found.scopes, found.unsaved) == ({"kafka": "cluster-1"}, (edit,))
    assert list_instances(edit) == {"kafka"}


def test_a_log_of_an_earlier_version(sink: MemorySink) -> None:
    """One that tells neither owners nor what an edit left is read, and its edit is vague."""
    path = story.GOLDEN.with_name("before_owners.jsonl")
    sink.stored = path.read_bytes().splitlines()
    assert verify_log(sink.lines()).ok
    found = read(sink)
    assert found.vague == 1 and [o.incarnation for o in found.origins.values()] == ["id-orders"]


def test_obligations(sink: MemorySink, log: Journal) -> None:
    """A started move stays a duty until it is discharged, also across runs."""
    duty = log.write(RecordKind.OBLIGATION, journal.make_obligation_body(MOVE, "t-1", "move"))
    other = log.write(RecordKind.OBLIGATION, journal.make_obligation_body(MOVE, "t-1", "throttle"))
    story.end(log)
    assert read(sink).obligations == (duty, other)
    ended = Outcome("t-1", OutcomeStatus.APPLIED)
    story.journal(sink, "run-2").write(
        RecordKind.DISCHARGED, journal.make_discharge_body(duty, ended)
    )
    assert read(sink).obligations == (other,)


def test_unsaved(sink: MemorySink, log: Journal) -> None:
    """Applied records after the state's head are those that the state may lack."""
    story.conclude(log, ORDERS)
    saved = log.head
    later = story.conclude(log, OLD)
    story.conclude(log, USER, "failed")
    started = story.conclude(log, MOVE, "started", ticket="t")
    assert read(sink, saved=saved).unsaved == (later, started)
    assert len(read(sink).unsaved) == 3


def test_torn_seal_closes_nothing(sink: MemorySink, log: Journal) -> None:
    """A record that seals a torn append is passed over."""
    story.intend(log, ORDERS)
    log.write(RecordKind.RECOVER, journal.make_torn_body([]))
    assert open_steps(sink) == [ORDERS.step]


def test_the_story(sink: MemorySink) -> None:
    """At the end of the golden story nothing is open."""
    story.tell(sink)
    found = read(sink)
    assert (found.open_intents, found.obligations, found.open_run) == ((), (), None)
    assert found.head.seq == len(sink.stored)
    assert list(found.runs) == ["run-1", "run-2"]


def test_records_of_another_version(sink: MemorySink, log: Journal) -> None:
    """A record that lacks what is needed is refused by number, not with a traceback."""
    log.write(RecordKind.INTENT, FrozenMap(step="x"))
    with pytest.raises(StorageError, match=r"record 4 of the audit log \(intent\) lacks 'attempt'"):
        read(sink)
