"""Random logs: every kind of record in any order, also those that no run would write so."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.audit import journal
from kafkaform.audit.journal import Journal, Subject
from kafkaform.audit.records import Record, RecordKind, Unseen
from kafkaform.audit.sink import Torn
from kafkaform.core.change import Outcome, OutcomeStatus, PathChange
from kafkaform.core.resource import SETTING, TASK, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.state.codec import encode_row

from . import audit_story as story
from .audit_story import MOVE, ORDERS, USER, MemorySink
from .states import topic

APPROVALS = ("a1" * 32, "b2" * 32)
ACTIONS = ("create", "update", "delete", "forget", "adopt", "import", "refresh")
OUTCOMES = ("applied", "applied", "applied", "started", "failed", "unknown", "skipped")
SUBJECTS = (ORDERS, USER, MOVE, replace(ORDERS, scope_id="cluster-2"))
PATHS = (
    (PathChange(("partitions",), 3, 6),),
    (PathChange(("config", "retention.ms"), "1", "2"),),
    (PathChange(("config", "retention.ms"), "2", None), PathChange(("owner",), None, "team")),
    (),
)
TARGETS = (
    FrozenMap(name="orders", partitions=6, config=FrozenMap({"retention.ms": "2"})),
    FrozenMap(name="orders", config=FrozenMap({"cleanup.policy": "compact"})),
    None,
)
Draw = tuple[int, int, int, int]
"""What happens, and three choices about it."""

DRAWS = st.lists(
    st.tuples(st.integers(0, 15), st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)),
    min_size=1,
    max_size=40,
)


def write_log(draws: Sequence[Draw], *, mended: bool = True) -> list[Record]:
    """The records of the log with these draws. mended: `audit mend` may have joined branches."""
    sink, clock = MemorySink(), story.Ticking()
    writer = _Writer(sink, clock, mended)
    for draw in draws:
        writer.write(*draw)
    return story.records_of(sink)


class _Writer:
    def __init__(self, sink: MemorySink, clock: story.Ticking, mended: bool) -> None:
        self.sink, self.clock, self.mended = sink, clock, mended
        self.approval = APPROVALS[0]
        self.duties: list[Record] = []
        self.runs: list[str] = []
        self.intents: list[tuple[str, Subject]] = []
        self._begin(1, 0)

    def _begin(self, first: int, third: int) -> None:
        # A run is resumed by one with another id; the present one can only begin once more.
        if first or not self.runs:
            self.runs.append(f"run-{len(self.runs)}")
        self.log = self._open(self.runs[-1])
        story.begin(self.log, self.approval, FrozenMap(number=third))

    def _open(self, run: str) -> Journal:
        return story.journal(self.sink, run, self.clock)

    def write(self, what: int, first: int, second: int, third: int) -> None:
        subject = self._choose_subject(first, second, third)
        log = self.log
        match what:
            case 0 | 1:
                if first:
                    self.approval = APPROVALS[second % 2]
                self._begin(first, third)
            case 2 | 3 | 4:
                target = TARGETS[first % 3]
                theirs = (("config", "cleanup.policy"),) if third == 0 else ()
                body = journal.make_intent_body(subject, "verify", None, target, theirs)
                log.write(RecordKind.INTENT, body)
                self.intents.append((log.run, subject))
            case 5 | 6 | 7 | 8:
                body = journal.make_outcome_body(subject, OUTCOMES[first], ticket=None)
                log.write(RecordKind.OUTCOME, self._age(body, third))
            case 9 if self.intents:
                run, intended = self.intents.pop(first % len(self.intents))
                body = journal.make_outcome_body(intended, OUTCOMES[second])
                log.write(RecordKind.RECOVER, journal.make_recover_body(body, run))
            case 10:
                duty = SETTING if first % 2 else TASK
                body = journal.make_obligation_body(subject, f"t-{second}", duty)
                self.duties.append(log.write(RecordKind.OBLIGATION, body))
            case 11 if self.duties:
                duty_record = self.duties[first % len(self.duties)]
                ended = Outcome(duty_record.body["ticket"], OutcomeStatus.APPLIED)
                body = journal.make_discharge_body(duty_record, ended)
                log.write(RecordKind.DISCHARGED, body)
            case 12:
                gone = Unseen("kafka_topic.old", "2", subject.identity, "id")
                unseen = [Unseen("kafka_topic.orders", "1"), gone][: first % 3]
                log.write(RecordKind.VERIFY, journal.make_verify_body(self.approval, 2, unseen))
            case 13:
                story.end(log, self.approval, complete=bool(first % 3))
            case 14:
                log.write(RecordKind.STATE, self._make_edit(subject.identity, second))
            case _:
                self._write_seal(subject, first)

    def _choose_subject(self, first: int, second: int, third: int) -> Subject:
        subject = SUBJECTS[third]
        action = ACTIONS[second]
        owners = () if action in ("delete", "forget") or first == 6 else ORDERS.owners
        return replace(
            subject,
            action=action,
            adopts=action in ("adopt", "import"),
            incarnation=f"id-{first}",
            paths=PATHS[(first + second) % len(PATHS)],
            owners=owners,
            attempt=1 + first % 2,
        )

    def _age(self, body: FrozenMap, third: int) -> FrozenMap:
        return body.without(["owners"]) if third == 3 else body

    def _make_edit(self, identity: Identity, second: int) -> FrozenMap:
        row = encode_row(topic(name=identity.key)) if second % 3 == 0 else None
        instance = identity.instance if second == 5 else None
        scopes = {identity.instance: "cluster-1"} if second == 6 else None
        body = journal.make_state_edit_body(7, "6", "state rm", {identity: row}, instance, scopes)
        if second != 4:
            return body
        vague = tuple(item.without(["row"]) for item in body["objects"])
        return body.with_items({"objects": vague})

    def _write_seal(self, subject: Subject, first: int) -> None:
        torn = Torn("torn-9", 3, "0" * 64)
        if not self.mended or first % 3:
            self.log.write(RecordKind.RECOVER, journal.make_torn_body([torn]))
            return
        self.log.write(RecordKind.RECOVER, journal.make_fork_body(torn, 1))
        was = FrozenMap(seq=1, time="2020-01-01T00:00:00.000000Z", hash="0" * 64)
        body = journal.make_outcome_body(subject, "applied").with_items({"forked": was})
        self.log.write(RecordKind.OUTCOME, body)
