"""Plans to render: small ones for golden texts, hostile ones, and a large one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from kafkaform.core.change import (
    Action,
    Change,
    Evidence,
    Impact,
    Ownership,
    PathChange,
    Repeat,
    Request,
    Step,
)
from kafkaform.core.diagnostics import Diagnostic, Range, Severity
from kafkaform.core.finding import Block, Harm
from kafkaform.core.resource import Facts, Identity, Output, Pending
from kafkaform.core.value import FrozenMap, SecretRef, freeze
from kafkaform.plan.model import Mode, Options, OutputChange, Plan, PlanInstance, Unmanaged
from kafkaform_kafka.resource_kinds import WORDS as KAFKA

from ...kit.findings import block, join_findings, note, risk

WORDS = dict.fromkeys(("kafka", "kafka.eu"), KAFKA)
REMOVED_ADVICE = "removed { from = kafka_topic.legacy  lifecycle { destroy = true } }"


def frozen(**items: Any) -> FrozenMap:
    result = freeze(items)
    assert isinstance(result, FrozenMap)
    return result


def path(dotted: str, before: Any, after: Any, **more: Any) -> PathChange:
    head, _, rest = dotted.partition(".")
    parts = (head, rest) if rest else (head,)
    return PathChange(parts, freeze(before), freeze(after), **more)


def step(identity: Identity, address: str, name: str, evidence: Evidence) -> Step:
    request = Request(name, 1, 1, 1000, 5000)
    return Step(
        f"{identity.instance}:{identity.kind}/{identity.key}#{name}",
        identity,
        address,
        request,
        FrozenMap(),
        1,
        (),
        Repeat.SAFE,
        evidence,
    )


def change(
    address: str,
    key: str,
    action: Action,
    *requests: tuple[str, Evidence],
    instance: str = "kafka",
    **fields: Any,
) -> Change:
    kind = address.split("[")[0].split(".")[-2]
    identity = Identity(instance, kind, key)
    steps = tuple(step(identity, address, name, evidence) for name, evidence in requests)
    return Change(identity, address, action, steps=steps, **join_findings(**fields))


def plan(*changes: Change, **fields: Any) -> Plan:
    defaults: dict[str, Any] = {
        "lineage": "5c3d1f0e",
        "serial": 7,
        "configuration": "9f86d081884c7d659a2feaa0c55ad015",
        "instances": {"kafka": CLUSTER},
        "unchanged": 1204,
        "created": "2026-11-20T10:00:00Z",
        "kafkaform_version": "0.1.0",
        "approval": "a3f5c7d9e1b2",
    }
    return Plan(changes=changes, **(defaults | fields))


CLUSTER = PlanInstance(
    Facts("MkU3OEVBNTcwNTJENDM2Qg", ("1", "2", "3"), "User:deploy"),
    frozen(bootstrap_servers=["broker1.example:9092", "broker2.example:9092"]),
)

CREATED = change(
    "kafka_topic.payments",
    "payments",
    Action.CREATE,
    ("CreateTopics", Evidence.REMOTE),
    after=frozen(
        name="payments",
        partitions=12,
        replication_factor=3,
        config={"cleanup.policy": "compact", "min.insync.replicas": "2"},
        replica_assignment=None,
    ),
    row_after=Ownership(("kafka_topic.payments",), "default"),
    owner="team-pay",
)

UPDATED = change(
    'kafka_topic.orders["eu"]',
    "orders-eu",
    Action.UPDATE,
    ("CreatePartitions", Evidence.REMOTE),
    ("IncrementalAlterConfigs", Evidence.REMOTE),
    before=frozen(
        name="orders-eu",
        partitions=6,
        replication_factor=3,
        config={"retention.ms": "1000", "segment.bytes": "1", "max.message.bytes": "9"},
    ),
    after=frozen(
        name="orders-eu",
        partitions=12,
        replication_factor=3,
        config={"segment.bytes": "1", "max.message.bytes": "1048576"},
    ),
    paths=(
        path("partitions", 6, 12),
        path("config.retention.ms", "1000", None, effective="604800000"),
        path("config.max.message.bytes", "9", "1048576"),
        path("owner", None, "team-orders"),
    ),
    notes=("more partitions move keys: records of one key are no longer in one partition",),
)

LOSING = change(
    "kafka_topic.clicks",
    "clicks",
    Action.UPDATE,
    ("IncrementalAlterConfigs", Evidence.REMOTE),
    before=frozen(name="clicks", config={"retention.ms": "604800000"}),
    after=frozen(name="clicks", config={"retention.ms": "3600000"}),
    paths=(path("config.retention.ms", "604800000", "3600000"),),
    impact=Impact("records older than 1 hour go at once", frozen(bytes=12_884_901_888)),
)

DELETED = change(
    "kafka_topic.legacy",
    "legacy",
    Action.DELETE,
    ("DeleteTopics", Evidence.LOCAL),
    before=frozen(name="legacy", partitions=3, config={"retention.ms": "-1"}),
    row_before=Ownership(("kafka_topic.legacy",), "default"),
    reason="a removed block with destroy = true names it",
    impact=Impact(
        "3 partitions with 1,234,567 offsets go; 2 groups read it",
        frozen(bytes=98_765_432, groups=2),
    ),
)

PROTECTED = change(
    "kafka_topic.ledger",
    "ledger",
    Action.DELETE,
    before=frozen(name="ledger", partitions=3),
    blocked=block(Block.PROTECTED, "the topic is protected (default)", REMOVED_ADVICE),
    reason="its block is not in the configuration any more",
)

IMPOSSIBLE = change(
    "kafka_topic.audit",
    "audit",
    Action.UPDATE,
    before=frozen(name="audit", partitions=12),
    after=frozen(name="audit", partitions=6),
    paths=(path("partitions", 12, 6),),
    blocked=block(
        Block.IMPOSSIBLE,
        "a topic cannot have fewer partitions",
        "set partitions = 12, or make a new topic",
    ),
)

ADOPTED = change(
    "kafka_topic.metrics",
    "metrics",
    Action.ADOPT,
    after=frozen(name="metrics", partitions=3),
    before=frozen(name="metrics", partitions=3),
    adopts=True,
    row_after=Ownership(("kafka_topic.metrics",), "default"),
)

ADOPTED_WRITING = change(
    "kafka_quota.web",
    "client=web",
    Action.UPDATE,
    ("AlterClientQuotas", Evidence.REMOTE),
    before=frozen(config={"producer_byte_rate": 1000}),
    after=frozen(config={"producer_byte_rate": Decimal("1500.5")}),
    paths=(path("config.producer_byte_rate", 1000, Decimal("1500.5")),),
    adopts=True,
)

IMPORTED = change(
    "kafka_acl.readers",
    "User:alice|*|Read|Allow|Topic|orders|Prefixed",
    Action.IMPORT,
    before=frozen(acl_principal="User:alice"),
    after=frozen(acl_principal="User:alice"),
)

FORGOTTEN = change(
    "kafka_topic.scratch",
    "scratch",
    Action.FORGET,
    before=frozen(name="scratch"),
    row_before=Ownership(("kafka_topic.scratch",)),
)

CREDENTIAL = change(
    "kafka_user_scram_credential.app",
    "app/SCRAM-SHA-512",
    Action.UPDATE,
    ("AlterUserScramCredentials", Evidence.LOCAL),
    before=frozen(username="app", scram_iterations=4096),
    after=frozen(username="app", scram_iterations=8192, password=SecretRef("env", "APP_PASSWORD")),
    paths=(
        path("scram_iterations", 4096, 8192),
        PathChange(("password",), None, SecretRef("env", "APP_PASSWORD"), sensitive=True),
    ),
    row_before=Ownership(("kafka_user_scram_credential.app",), None, "3"),
    row_after=Ownership(("kafka_user_scram_credential.app",), None, "4"),
)

ROLE = change(
    "kafka_access.shop",
    "shop",
    Action.UPDATE,
    ("CreateAcls", Evidence.LOCAL),
    before=frozen(topics=[f"shop.orders.region-{i:03}" for i in range(40)]),
    after=frozen(topics=[f"shop.orders.region-{i:03}" for i in range(1, 41)]),
    paths=(
        path(
            "topics",
            [f"shop.orders.region-{i:03}" for i in range(40)],
            [f"shop.orders.region-{i:03}" for i in range(1, 41)],
        ),
    ),
)

MOVED_REPLICAS = change(
    "kafka_topic.wide",
    "wide",
    Action.UPDATE,
    ("AlterPartitionReassignments", Evidence.LOCAL),
    before=frozen(replica_assignment=[[1, 2, 3]] * 12),
    after=frozen(replica_assignment=[[1, 2, 3]] * 11 + [[2, 3, 4]]),
    paths=(path("replica_assignment", [[1, 2, 3]] * 12, [[1, 2, 3]] * 11 + [[2, 3, 4]]),),
)


def drifted(number: int) -> Change:
    return change(
        f"kafka_topic.t{number:02}",
        f"t{number:02}",
        Action.NOOP,
        drift=(path("config.retention.ms", "1000", "2000"), path("partitions", 3, 6)),
    )


def everything() -> Plan:
    """One change of each sort, in a partial plan with outputs, drift and warnings."""
    return plan(
        *(CREATED, UPDATED, LOSING, DELETED, PROTECTED, ADOPTED, ADOPTED_WRITING, IMPORTED),
        *(FORGOTTEN, CREDENTIAL, ROLE, MOVED_REPLICAS),
        *(drifted(number) for number in range(23)),
        options=Options(target=("kafka_topic.*",), exclude=("module.old",)),
        instances={
            "kafka": PlanInstance(
                CLUSTER.facts,
                CLUSTER.display,
                (Unmanaged("kafka_topic", 12, ("a", "b", "c")),),
                (note("brokers do not say who is a super user; lock-out was not checked"),),
            )
        },
        outputs=(
            OutputChange(None, Output("topic_id", None, deferred=True)),
            OutputChange(Output("names", ("a",)), Output("names", ("a", "b"))),
            OutputChange(Output("token", "old", sensitive=True), Output("token", "new", True)),
            OutputChange(Output("gone", True), None),
        ),
        diagnostics=(
            Diagnostic(
                Severity.WARNING,
                "Deprecated attribute",
                "Mongey's name still works.",
                Range("main.kf.hcl", 3, 3, 3, 12),
                '  acl_host = "*"',
                "write host",
            ),
        ),
        pending=(
            Pending(
                Identity("kafka", "kafka_topic", "invoices"),
                "run-41",
                "kafka:kafka_topic/invoices#0",
                "create",
                frozen(partitions=3),
                1_795_168_800.0,
            ),
        ),
    )


def impossible() -> Plan:
    """A plan that an apply refuses."""
    return plan(IMPOSSIBLE, CREATED)


def unchanged() -> Plan:
    return plan()


def destroy() -> Plan:
    """Everything goes, on two clusters."""
    eu = change(
        "kafka_topic.legacy",
        "legacy",
        Action.DELETE,
        ("DeleteTopics", Evidence.NONE),
        instance="kafka.eu",
        before=frozen(name="legacy"),
    )
    return plan(
        DELETED,
        eu,
        instances={"kafka": CLUSTER, "kafka.eu": PlanInstance(Facts("eu-cluster"))},
        options=Options(mode=Mode.DESTROY),
        unchanged=0,
    )


GOLDEN = {
    "everything": everything,
    "impossible": impossible,
    "unchanged": unchanged,
    "destroy": destroy,
}


def large(size: int) -> Plan:
    """A plan of this many changes: updates, creates and deletes."""
    changes = []
    for number in range(size):
        base = (UPDATED, CREATED, DELETED)[number % 3]
        identity = Identity("kafka", "kafka_topic", f"t{number}")
        fields = {name: getattr(base, name) for name in ("before", "after", "paths", "steps")}
        changes.append(Change(identity, f'kafka_topic.t["{number}"]', base.action, **fields))
    return plan(*changes)


GRAVE = (
    change(
        'kafka_topic.events["audit"]',
        "shop.audit",
        Action.UPDATE,
        ("IncrementalAlterConfigs", Evidence.REMOTE),
        before=frozen(name="shop.audit", config={"retention.ms": "2592000000"}),
        after=frozen(name="shop.audit", config={"retention.ms": "86400000"}),
        paths=(path("config.retention.ms", "2592000000", "86400000", unit="ms"),),
        impact=Impact(
            "Deletes up to 1.2 TiB: 8,123,456,789 records are older than 1 d",
            frozen(bytes=1_319_413_953_331, offsets=8_123_456_789),
        ),
        risks=(
            risk(
                Harm.DATA_LOSS,
                "retention.ms falls from 30 d to 1 d: older records are deleted at once",
                ("config", "retention.ms"),
            ),
        ),
    ),
    change(
        "kafka_topic.invoices",
        "billing.invoices",
        Action.DELETE,
        ("DeleteTopics", Evidence.LOCAL),
        before=frozen(name="billing.invoices", partitions=24, config={"retention.ms": "-1"}),
        row_before=Ownership(("kafka_topic.invoices",), "no"),
        reason="no longer declared",
        impact=Impact(
            "Deletes up to 5,000,000 records (14.3 GiB); 2 consumer groups read it",
            frozen(bytes=15_354_508_083, groups=2),
        ),
        risks=(risk(Harm.DATA_LOSS, "the topic and all its records are deleted"),),
    ),
    change(
        "kafka_acl.checkout_reads",
        "User:checkout|*|Read|Allow|Topic|shop.payments|Literal",
        Action.DELETE,
        ("DeleteAcls", Evidence.LOCAL),
        before=frozen(acl_principal="User:checkout", acl_operation="Read"),
        row_before=Ownership(("kafka_acl.checkout_reads",)),
        reason="no longer declared",
        risks=(risk(Harm.ACCESS_LOST, "User:checkout loses Read on Topic shop.payments"),),
    ),
)
"""Three changes that reviewers must not overlook."""

_TEAMS = ("shop", "billing", "search", "fraud", "logistics")


def _make_harmless(number: int) -> Change:
    """One of many changes, each different from all others."""
    team = _TEAMS[number % len(_TEAMS)]
    name = f"{team}.stream-{number:04}"
    if number % 4 == 0:
        return change(
            f'kafka_acl.reads["{number}"]',
            f"User:{team}-{number}|*|Read|Allow|Topic|{name}|Literal",
            Action.CREATE,
            ("CreateAcls", Evidence.LOCAL),
            after=frozen(
                acl_principal=f"User:{team}-{number}", acl_operation="Read", resource_name=name
            ),
            notes=(f"User:{team}-{number} gains Read, Describe on Topic {name}",),
        )
    address = f'kafka_topic.streams["{name}"]'
    if number % 4 == 1:
        return change(
            address,
            name,
            Action.CREATE,
            ("CreateTopics", Evidence.REMOTE),
            after=frozen(name=name, partitions=number, config={"cleanup.policy": "compact"}),
            row_after=Ownership((address,), "default"),
        )
    days, fewer = str((number + 1) * 3_600_000), str(number * 3_600_000)
    more = number % 4 == 3
    return change(
        address,
        name,
        Action.UPDATE,
        ("IncrementalAlterConfigs", Evidence.REMOTE),
        before=frozen(name=name, partitions=12, config={"retention.ms": fewer}),
        after=frozen(name=name, partitions=24 if more else 12, config={"retention.ms": days}),
        paths=(
            path("config.retention.ms", fewer, days, unit="ms"),
            *((path("partitions", 12, 24),) if more else ()),
        ),
        risks=(risk(Harm.ORDERING, "partitions grow from 12 to 24: keys move"),) if more else (),
    )


def review(size: int) -> Plan:
    """A plan of this many changes, no two of them equal, with `GRAVE` among them."""
    alike = tuple(
        change(
            f'kafka_topic.logs["{number}"]',
            f"logs.{number}",
            Action.UPDATE,
            ("IncrementalAlterConfigs", Evidence.REMOTE),
            before=frozen(name=f"logs.{number}", config={"max.message.bytes": "1048576"}),
            after=frozen(name=f"logs.{number}", config={"max.message.bytes": "4194304"}),
            paths=(path("config.max.message.bytes", "1048576", "4194304", unit="bytes"),),
        )
        for number in range(12)
    )
    rest = size - len(GRAVE) - len(alike)
    many = [*alike, *(_make_harmless(number) for number in range(1, rest + 1))]
    return plan(*many[: rest // 2], *GRAVE, *many[rest // 2 :])
