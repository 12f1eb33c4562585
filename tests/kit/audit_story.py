"""Two runs as the log keeps them: one that dies in the middle, and one that recovers it.

Every kind of record occurs. The golden file of `tests/cases/audit` is this story.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from kafkaform.audit import records
from kafkaform.audit.journal import (
    Journal,
    Subject,
    make_approval_body,
    make_checkpoint_body,
    make_discharge_body,
    make_intent_body,
    make_obligation_body,
    make_outcome_body,
    make_plan_body,
    make_recover_body,
    make_run_begin_body,
    make_run_end_body,
    make_state_edit_body,
    make_torn_body,
    make_validate_body,
    make_verify_body,
)
from kafkaform.audit.records import Record, RecordKind, Unseen
from kafkaform.audit.sink import Sink, Tail, Torn, find_tail
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.canonical import Rendered
from kafkaform.core.change import Evidence, Outcome, OutcomeStatus, PathChange, Verdict
from kafkaform.core.errors import StorageError
from kafkaform.core.resource import Fault, FaultClass, Identity
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.plan.model import Plan

LINEAGE = "0d9c6f5e-lineage"
APPROVAL, OTHER = "a1" * 32, "b2" * 32
PLAN = FrozenMap(lineage=LINEAGE, serial=1, changes=())
GOLDEN = Path(__file__).parent.parent / "cases" / "audit" / "golden.jsonl"

ORDERS = Subject(
    LINEAGE,
    "cluster-1",
    "kafka/kafka_topic/orders#0",
    "kafka_topic.orders",
    Identity("kafka", "kafka_topic", "orders"),
    "create",
    False,
    None,
    (
        PathChange(("partitions",), None, 12),
        PathChange(("config", "retention.ms"), None, "86400000"),
    ),
    "c3" * 32,
    APPROVAL,
    "1.1 CreateTopics",
    owners=("kafka_topic.orders",),
)
USER = replace(
    ORDERS,
    step="kafka/kafka_user_scram_credential/ada SCRAM-SHA-512#0",
    address='kafka_user_scram_credential.users["ada"]',
    identity=Identity("kafka", "kafka_user_scram_credential", "ada SCRAM-SHA-512"),
    action="update",
    paths=(
        PathChange(("password",), SecretRef("env", "OLD"), SecretRef("env", "ADA"), sensitive=True),
        PathChange(("password_wo_version",), "1", "2"),
    ),
    phase="1.0 AlterUserScramCredentials",
)
OLD = replace(
    ORDERS,
    step="kafka/kafka_topic/old#0",
    address="kafka_topic.old",
    identity=Identity("kafka", "kafka_topic", "old"),
    action="delete",
    incarnation="id-old",
    paths=(PathChange(("partitions",), 3, None),),
    phase="2.4 DeleteTopics",
    owners=(),
)
MOVE = replace(
    ORDERS,
    step="kafka/kafka_topic/big#0",
    address="kafka_topic.big",
    identity=Identity("kafka", "kafka_topic", "big"),
    action="update",
    incarnation="id-big",
    paths=(PathChange(("replication_factor",), 2, 3),),
    phase="1.6 AlterPartitionReassignments",
)
MADE = FrozenMap(name="orders", partitions=12, config=FrozenMap({"retention.ms": "86400000"}))
NEW_USER = FrozenMap(username="ada", password=SecretRef("env", "ADA"), password_wo_version="2")
DENIED = Fault(
    "CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.", FaultClass.PERMISSION, "1"
)


class Ticking:
    """A clock that moves one second and one microsecond a look."""

    def __init__(self) -> None:
        self.at = 1_767_225_600.0

    def now(self) -> float:
        self.at += 1.000001
        return self.at

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class MemorySink:
    """A log in memory; `full` makes the next append fail."""

    stored: list[bytes] = field(default_factory=list)
    full: bool = False
    location: str = "memory"
    sealed: None = None

    def lines(self, after: int = 0) -> Iterator[bytes]:
        yield from self.stored[after:]

    def tail(self, count: int) -> Tail:
        return find_tail(self, count)

    def last(self) -> bytes | None:
        return self.stored[-1] if self.stored else None

    def claim(self) -> bytes | None:
        return self.last()

    def pass_over_torn(self) -> None:
        """Half a line is all that can be torn here."""

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        return ()

    def append(self, lines: Sequence[bytes]) -> None:
        if self.full:
            raise StorageError("the disk is full")
        self.stored.extend(lines)

    def check_writable(self, size: int = 0) -> None:
        return


def journal(sink: Sink, run: str, clock: Ticking | None = None) -> Journal:
    return Journal(sink, clock or Ticking(), run, "ada@ci", LINEAGE)


def begin(log: Journal, approval: str = APPROVAL, plan: FrozenMap | Plan = PLAN) -> None:
    """The frame that opens a run."""
    log.write_all(
        [
            (
                RecordKind.RUN_BEGIN,
                make_run_begin_body(
                    approval,
                    ["d4" * 32],
                    {"kafka": "cluster-1"},
                    command="apply",
                    host="runner-7",
                    commit="e5" * 20,
                    kafkaform_version="0.1.0",
                ),
            ),
            (
                RecordKind.PLAN,
                make_plan_body(Rendered.make(plan), approval, "c3" * 32),
            ),
            (RecordKind.APPROVAL, make_approval_body(approval, "expect", "c3" * 32)),
        ]
    )


def end(log: Journal, approval: str = APPROVAL, *, complete: bool = True) -> None:
    body = make_run_end_body(approval, complete=complete, counts={"applied": 2, "failed": 1})
    log.write(RecordKind.RUN_END, body)


def intend(log: Journal, subject: Subject, target: FrozenMap | None = MADE) -> Record:
    return log.write(RecordKind.INTENT, make_intent_body(subject, "verify", None, target))


def conclude(log: Journal, subject: Subject, outcome: str = "applied", **more: object) -> Record:
    made = replace(subject, incarnation=more.pop("incarnation", subject.incarnation))  # type: ignore[arg-type]
    body = make_outcome_body(made, outcome, **more)  # type: ignore[arg-type]
    return log.write(RecordKind.OUTCOME, body)


def tell(sink: Sink) -> None:
    """Write the whole story."""
    clock = Ticking()
    first = journal(sink, "run-1", clock)
    begin(first)
    verdicts = [
        Verdict(ORDERS.step, Evidence.REMOTE),
        Verdict(USER.step, Evidence.LOCAL, DENIED),
    ]
    first.write(RecordKind.VALIDATE, make_validate_body(APPROVAL, verdicts))
    first.write_all(
        [
            (RecordKind.INTENT, make_intent_body(ORDERS, "verify", None, MADE)),
            (RecordKind.INTENT, make_intent_body(USER, "never", "2", NEW_USER)),
            (RecordKind.INTENT, make_intent_body(MOVE, "never", None, MADE)),
        ]
    )
    conclude(first, ORDERS, incarnation="id-orders", duration_ms=41)
    conclude(first, USER, "failed", fault=DENIED, duration_ms=7)
    conclude(first, MOVE, "started", ticket="big-0", duration_ms=12)
    obligation = first.write(RecordKind.OBLIGATION, make_obligation_body(MOVE, "big-0", "move"))
    intend(first, OLD, None)
    second = journal(sink, "run-2", clock)
    found = make_outcome_body(OLD, "applied")
    second.write(RecordKind.RECOVER, make_recover_body(found, "run-1"))
    ended = Outcome("big-0", OutcomeStatus.APPLIED)
    second.write(RecordKind.DISCHARGED, make_discharge_body(obligation, ended))
    begin(second)
    second.write(
        RecordKind.VERIFY,
        make_verify_body(APPROVAL, 2, [Unseen("kafka_topic.orders", "3")]),
    )
    end(second)
    third = journal(sink, "run-3", clock)
    touched = {ORDERS.identity: None}
    third.write(
        RecordKind.STATE,
        make_state_edit_body(7, "6-" + "f6" * 32, "state rm", touched),
    )
    torn = [Torn("torn-22", 17, "07" * 32)]
    third.write(RecordKind.RECOVER, make_torn_body(torn))
    covers = third.head
    third.write(RecordKind.CHECKPOINT, make_checkpoint_body(covers, "08" * 32, 1_200))


def records_of(sink: Sink) -> list[Record]:
    return [records.decode(line) for line in sink.lines()]


def written(path: Path) -> bytes:
    """The bytes of the story in a file."""
    tell(LocalSink(path))
    return path.read_bytes()
