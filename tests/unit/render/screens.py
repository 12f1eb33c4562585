"""Fixed plans as a reviewer meets them: many equal changes, a few dangerous ones, long names."""

from __future__ import annotations

from typing import Any

from kafkaform.core.change import Action, Change, Evidence, Impact, Ownership
from kafkaform.core.finding import Block, Harm
from kafkaform.core.resource import Output
from kafkaform.plan.model import OutputChange, Plan, PlanInstance, Unmanaged

from ...kit.findings import block, risk
from . import plans
from .plans import change, frozen, path, plan

DAY = 86_400_000
RULES = ("acl_principal", "acl_host", "acl_operation", "resource_name")
ACTIONS = tuple(action for action in Action if action is not Action.REFRESH)


def retention(days: int) -> str:
    return str(days * DAY)


def topic(name: str, action: Action, *requests: tuple[str, Evidence], **fields: Any) -> Change:
    return change(f'kafka_topic.events["{name}"]', name, action, *requests, **fields)


def kept_shorter(name: str, before: str, after: str, **fields: Any) -> Change:
    return topic(
        name,
        Action.UPDATE,
        ("IncrementalAlterConfigs", Evidence.REMOTE),
        before=frozen(name=name, partitions=6, config={"retention.ms": before}),
        after=frozen(name=name, partitions=6, config={"retention.ms": after}),
        paths=(path("config.retention.ms", before, after, unit="ms"),),
        **fields,
    )


def topic_created(name: str) -> Change:
    config = {"retention.ms": retention(7), "segment.bytes": str(2**29)}
    return topic(
        name,
        Action.CREATE,
        ("CreateTopics", Evidence.REMOTE),
        after=frozen(name=name, partitions=12, config=config),
        paths=(
            path("config.retention.ms", None, config["retention.ms"], unit="ms"),
            path("config.segment.bytes", None, config["segment.bytes"], unit="bytes"),
            path("name", None, name),
            path("partitions", None, 12),
        ),
        row_after=Ownership((f'kafka_topic.events["{name}"]',), "default"),
    )


def topic_deleted(name: str, size: int) -> Change:
    return topic(
        name,
        Action.DELETE,
        ("DeleteTopics", Evidence.LOCAL),
        before=frozen(name=name, partitions=3),
        impact=Impact(f"Deletes up to {size:,} records.", frozen(bytes=size * 100, offsets=size)),
        risks=(risk(Harm.DATA_LOSS, "the topic and all its records are deleted"),),
        reason="no longer declared",
    )


def grant(who: str, action: Action, operation: str = "Read", **fields: Any) -> Change:
    key = f"User:{who}|*|{operation}|orders"
    whole = frozen(**dict(zip(RULES, key.split("|"), strict=True)))
    verb = "gains" if action is Action.CREATE else "loses"
    return change(
        f'kafka_acl.read["{who}"]',
        key,
        action,
        ("CreateAcls" if action is Action.CREATE else "DeleteAcls", Evidence.LOCAL),
        before=None if action is Action.CREATE else whole,
        after=whole if action is Action.CREATE else None,
        notes=(f"User:{who} {verb} {operation} on Topic orders",),
        **fields,
    )


def night() -> Plan:
    """What a reviewer gets at night: 96 changes, of which three need thought."""
    before = {f"shop.{n}": {"partitions": 3, "owner": "team-shop"} for n in range(6)}
    after = {**before, "shop.2": {"partitions": 6, "owner": "team-shop"}}
    return plan(
        *(kept_shorter(f"shop.{n:02}", retention(7), retention(3)) for n in range(40)),
        *(topic_created(f"fresh.{n:02}") for n in range(30)),
        kept_shorter(
            "orders",
            retention(30),
            "1000",
            risks=(
                risk(Harm.DATA_LOSS, "retention.ms: records older than 1 s are deleted"),
                risk(Harm.THROUGHPUT, "retention.ms: more segments are rolled"),
            ),
            impact=Impact("Deletes up to 1,234,567 records (84 GiB).", frozen(bytes=84 * 2**30)),
        ),
        *(topic_deleted(f"old.{n}", 1000 * n) for n in range(1, 5)),
        *(
            grant(
                f"app{n}",
                Action.DELETE,
                risks=(risk(Harm.ACCESS_LOST, f"User:app{n} loses Read on Topic orders"),),
            )
            for n in range(4)
        ),
        *(grant(f"new{n:02}", Action.CREATE) for n in range(12)),
        *(grant(f"odd{n}", Action.CREATE, f"Odd{n}") for n in range(3)),
        *(
            topic(f"mild.{n}", Action.NOOP, drift=(path("config.retention.ms", "1", "2"),))
            for n in range(3)
        ),
        plans.PROTECTED,
        plans.UPDATED,
        outputs=(
            OutputChange(Output("topics", frozen(**before)), Output("topics", frozen(**after))),
        ),
        instances={
            "kafka": PlanInstance(
                plans.CLUSTER.facts,
                plans.CLUSTER.display,
                (Unmanaged("kafka_topic", 12, ("a", "b", "c")), Unmanaged("kafka_acl", 4, ())),
            )
        },
    )


def stopped() -> Plan:
    """A guard stops the plan for one reason, and a policy of the cluster for another."""
    guard = block(Block.GUARD, "the plan could destroy data of 12 of 30 objects", "Check.")
    loss = risk(Harm.DATA_LOSS, "retention.ms: records older than 3 d are deleted")
    return plan(
        *(
            kept_shorter(f"shop.{n}", retention(7), retention(3), blocked=guard, risks=(loss,))
            for n in range(12)
        ),
        topic_created("fresh"),
    )


def long_names() -> Plan:
    """Names and values that are wider than a small screen."""
    wide = [f"{'a-very-long-name-' * 5}{n}" for n in range(4)]
    return plan(
        *(kept_shorter(name, retention(7), retention(3)) for name in wide),
        kept_shorter("mixed", "1500000001", retention(1), notes=("word " * 40,)),
        change(
            "kafka_x.value",
            "value",
            Action.UPDATE,
            paths=(
                path("text", "a sentence with spaces " * 6, "short"),
                path("word", "", "w" * 130),
            ),
        ),
    )


SCREENS = {"night": night, "stopped": stopped, "long_names": long_names}


def many(size: int) -> Plan:
    """A plan of this many changes with every action, of several kinds, three of them dangerous."""
    loss = risk(Harm.DATA_LOSS, "records older than 1 s are deleted")
    cut = risk(Harm.ACCESS_LOST, "User:checkout loses Read on Topic orders")
    down = risk(Harm.AVAILABILITY, "only 1 of 3 replicas stays")
    return plan(
        kept_shorter("dangerous.cut", retention(30), "1000", risks=(loss,)),
        kept_shorter("dangerous.thin", retention(30), retention(40), risks=(down,)),
        grant("checkout", Action.DELETE, risks=(cut,)),
        *(_make_change(n) for n in range(size - 3)),
    )


def _make_change(n: int) -> Change:
    """One of many: equal ones, different ones, and blocked ones."""
    action = ACTIONS[n % len(ACTIONS)]
    kind = ("topic", "acl", "quota", "client_metrics")[n // len(ACTIONS) % 4]
    key = f"object-{n:04}"
    value = n if n % 50 == 0 else 7
    whole = frozen(name=key, config={"retention.ms": str(value * DAY)})
    item = path("config.retention.ms", retention(9), str(value * DAY), unit="ms")
    blocked = block(Block.PROTECTED, "it is protected", "Remove the protection.")
    return change(
        f'kafka_{kind}.many["{key}"]',
        key,
        action,
        before=None if action is Action.CREATE else whole,
        after=None if action is Action.DELETE else whole,
        paths=(item,) if action is Action.UPDATE else (),
        drift=(item,) if action is Action.NOOP else (),
        notes=(f"{key} is shared by several teams, which all read it",) if n % 7 == 0 else (),
        blocked=blocked if n % 41 == 0 else None,
    )
