"""Rules of what a look at the cluster finds, because only brokers know it: whether the disks have
room for what a plan adds (`capacity/forecast.py`), and who uses a cluster at the moment of a plan:
groups, producers, and what of them is hidden (`impact/`).

No approval covers what is found about users: it is another number a second later
(docs/decisions/035-figures-are-not-approved.md).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec import UNSET

from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.rule import Needs, Rule
from kafkaform.core.text import render_amount, render_count, render_days
from kafkaform.core.value import FrozenMap, Value

from ..capacity.amounts import EGRESS, INGRESS, Cost, find_limits
from ..capacity.forecast import Forecast, Share
from ..capacity.projection import Disk
from ..protocol.cluster_facts import KafkaFacts
from ..protocol.rates import GUIDANCE
from .topics.config_rows import TOPIC, TYPES

FULLEST = 0.85
"""The part of a disk beyond which it counts as nearly full."""
_LEAST = 0.01
"""The least part of a disk that is nearly full already that is worth a word."""
_SOON_DAYS, _LATER_DAYS, _FAR_DAYS = 30.0, 365.0, 3650.0
"""Days until a disk is full. Within the first, unlimited growth is a danger, within the second a
retention that the disk does not hold; beyond the last, today's rate says nothing."""
_NAMED = 3
"""Disks and topics in a sentence; the figures have all disks."""
_CENT = Decimal("0.01")
_PROOFS = "tests/cluster/claims/test_disks.py"
_REPLICATE = "replication_factor = 3   # was 1"

TOO_SMALL = Rule(
    "disk-too-small",
    "A disk of a broker does not hold what the plan adds",
    Level.DANGER,
    Harm.CAPACITY,
    TYPES,
    Needs.SYSTEM,
    "A broker that cannot write to a log directory takes it out of service with all its replicas "
    "(LogDirFailureChannel, KIP-112), and stops without another one. The room is what brokers "
    "report (DescribeLogDirs, KIP-827), the growth what partitions got within the last day. How "
    "much they keep follows from their retention, with one segment more.",
    'config = { "retention.ms" = 2592000000 }   # was 7 d',
    "Keep less, add disks or brokers, or move replicas: `kafkaform propose placement` knows what "
    "fits.",
    proof=f"{_PROOFS}::test_room_and_sizes_are_those_of_the_file_system",
)
NEARLY_FULL = Rule(
    "disk-nearly-full",
    "A disk of a broker gets nearly full",
    Level.CAUTION,
    Harm.CAPACITY,
    TYPES,
    Needs.SYSTEM,
    f"More than {FULLEST:.0%} of the disk would be used, or the disk is full within years. A "
    "broker needs free room for segments that wait for their deletion (file.delete.delay.ms), for "
    "compaction and for copies.",
    _REPLICATE,
    "Check when you will have more disks, or keep less.",
    proof=f"{_PROOFS}::test_records_grow_as_fast_as_was_computed",
)
ROOM_UNKNOWN = Rule(
    "disk-room-unknown",
    "Nobody knows whether what the plan adds fits",
    Level.NOTE,
    Harm.CAPACITY,
    TYPES,
    Needs.SYSTEM,
    "Brokers say how large their disks are from Kafka 3.3 on (KIP-827), and to principals with "
    "Describe on the cluster. How fast a partition grows shows once its records cover an hour.",
    _REPLICATE,
    "Compare what is added with what is free on the disks of these brokers.",
    proof=f"{_PROOFS}::test_a_topic_that_is_minutes_old_has_no_growth_yet",
)
ABOVE_LIMIT = Rule(
    "broker-replicas-above-limit",
    "Brokers hold more replicas than the limit",
    Level.CAUTION,
    Harm.CAPACITY,
    (TOPIC,),
    Needs.SYSTEM,
    "Each replica costs its brokers files and memory, and its leader's failure an election. The "
    "limit is that of `limits` in the provider block (a danger), or with ZooKeeper what Kafka's "
    f"developers recommend since 1.1.0: {GUIDANCE.replicas_per_broker:,} on a broker, "
    f'{GUIDANCE.replicas:,} in a cluster (blogs.apache.org/kafka, "Apache Kafka Supports 200K '
    'Partitions Per Cluster"). With KRaft, no such number is published.',
    "partitions = 5000   # was 50",
    "Use fewer partitions, delete topics, or add brokers and move replicas to them.",
    proof=f"{_PROOFS}::test_replicas_are_counted_as_brokers_have_them",
)
MONTHLY_COST = Rule(
    "topic-monthly-cost",
    "The change costs or saves something each month",
    Level.NOTE,
    Harm.CAPACITY,
    TYPES,
    Needs.SYSTEM,
    "The `rates` of the provider block, times what the change adds or frees: topics, partitions, "
    "replicas, and bytes on all disks once the change has had its full effect, which are estimated "
    "as for `disk-too-small`. Ingress is what `expected_rate` of a new topic says; how much is "
    "read, and what a deleted topic got, is left out and named.",
    'partitions = 6   # was 3, and rates { currency = "EUR", partition = 0.25 }',
    proof=f"{_PROOFS}::test_what_a_deletion_frees_is_what_the_disks_had",
)


def find_full_disks(forecast: Forecast) -> Iterator[tuple[Identity, Finding]]:
    """What the changes do to disks, each with the object that changes."""
    for identity, shares in forecast.shares.items():
        finding = _judge_shares(shares)
        if finding is not None:
            yield identity, finding
    for identity, topics in forecast.unknown.items():
        yield identity, _tell_unknown(identity, topics)


def find_exceeded_limits(forecast: Forecast, facts: Facts) -> Iterator[tuple[None, Finding]]:
    """What the plan brings above the limits, each once for the cluster."""
    limits = find_limits(facts)
    if limits is None:
        return
    declared = KafkaFacts.of(facts).limits is not UNSET
    source = "limits" if declared else "what Kafka's developers recommend with ZooKeeper"
    level = Level.DANGER if declared else None
    most = limits.replicas_per_broker
    above = sorted(
        (
            (count, broker)
            for broker, count in forecast.replicas.items()
            if most is not None and count.before < count.after > most
        ),
        key=lambda pair: (-pair[0].after, pair[1]),
    )
    if above:
        count, broker = above[0]
        brokers = render_count(len(above) - 1, "broker")
        ending = f", and so would {brokers} more" if above[1:] else ""
        text = (
            f"broker {broker} would hold about {render_count(count.after, 'replica')} "
            f"({count.before:,} now), more than the {most:,} of {source}{ending}"
        )
        figures = FrozenMap(
            brokers=tuple(str(broker) for _, broker in above),
            replicas=count.after,
            replicas_before=count.before,
            limit=most,
        )
        yield None, ABOVE_LIMIT.find(text, figures=figures, level=level)
    before = sum(count.before for count in forecast.replicas.values())
    after = sum(count.after for count in forecast.replicas.values())
    if limits.replicas is not None and before < after > limits.replicas:
        text = (
            f"the cluster would hold {render_count(after, 'replica')} ({before:,} now), more than "
            f"the {limits.replicas:,} of {source}"
        )
        figures = FrozenMap(replicas=after, replicas_before=before, limit=limits.replicas)
        yield None, ABOVE_LIMIT.find(text, figures=figures, level=level)


def find_costs(
    costs: Mapping[Identity, Cost], currency: str
) -> Iterator[tuple[Identity | None, Finding]]:
    """What each change costs a month, and the sum if there are several."""
    for identity, cost in costs.items():
        yield identity, _tell_cost("it", cost, currency)
    if len(costs) > 1:
        amounts: dict[str, float] = defaultdict(float)
        for cost in costs.values():
            for name, amount in cost.amounts.items():
                amounts[name] += amount
        monthly = sum(cost.monthly for cost in costs.values())
        obstacles: dict[str, str] = {}
        for name, reason in (pair for cost in costs.values() for pair in cost.obstacles.items()):
            obstacles[name] = max(obstacles.get(name, ""), reason)
        yield None, _tell_cost("this plan", Cost(amounts, monthly, obstacles), currency)


def _tell_cost(subject: str, cost: Cost, currency: str) -> Finding:
    """`it costs about 12.40 EUR more a month (+6 partitions, +34 GiB)`."""
    money = Decimal(cost.monthly).quantize(_CENT)
    amounts = [
        f"{'-' if amount < 0 else '+'}{_render_counted(name, abs(round(amount)))}"
        for name, amount in cost.amounts.items()
        if round(amount)
    ]
    counted = f" ({', '.join(amounts)})" if amounts else ""
    ending = "".join(_list_obstacles(cost.obstacles))
    figures = {name: round(amount) for name, amount in cost.amounts.items()}
    saved = f"{subject} saves about {-money:,} {currency} a month{counted}{ending}"
    spent = f"{subject} costs about {money:,} {currency} more a month{counted}{ending}"
    return MONTHLY_COST.find(
        saved if money < 0 else spent,
        figures=FrozenMap(figures, monthly_cost=money, currency=currency),
    )


def _list_obstacles(obstacles: Mapping[str, str]) -> Iterator[str]:
    """`, without ingress and egress, whose amount is unknown`, once for each reason."""
    for reason in dict.fromkeys(obstacles.values()):
        *most, last = [_LEFT_OUT[name] for name, cause in obstacles.items() if cause == reason]
        names = f"{', '.join(most)} and {last}" if most else last
        yield f", without {names}, {reason}"


_LEFT_OUT: Mapping[str, str] = {"bytes": "bytes on disks", INGRESS: "ingress", EGRESS: "egress"}


def _render_counted(name: str, amount: int) -> str:
    if name == "bytes":
        return render_amount(amount, "bytes")
    if name == INGRESS:
        return f"{render_amount(amount, 'bytes')} written a day"
    return render_count(amount, name.removesuffix("s"))


def _tell_unknown(identity: Identity, topics: Sequence[str]) -> Finding:
    # The name of a topic says nothing new about a change of this very topic.
    names = [name for name in topics if name != identity.key]
    count = render_count(len(names), "topic")
    subject = f"{count} ({_join_names(names, ', ')})" if names else "the topic"
    return ROOM_UNKNOWN.find(
        f"how much room {subject} will need is unknown: the brokers do not show how fast "
        f"{'they grow' if len(names) > 1 else 'it grows'}",
        figures=FrozenMap(topics=tuple(topics)),
    )


def _judge_shares(shares: Sequence[Share]) -> Finding | None:
    """What one change does to its disks, told by the worst of them; None if it leaves enough
    room."""
    ranked = sorted(shares, key=_rank, reverse=True)
    concerned = [share for share in ranked if _choose_rule(share) is not None]
    rule = _choose_rule(concerned[0]) if concerned else None
    if rule is None:
        unknown = [share for share in ranked if share.projection.needed is None]
        return _tell_unknown_room(unknown) if unknown else None
    hidden_count = len(concerned) - 1
    ending = f"; and {render_count(hidden_count, 'disk')} more" if hidden_count else ""
    return rule.find(f"{_describe(concerned[0])}{ending}", figures=_make_figures(concerned))


def _tell_unknown_room(shares: Sequence[Share]) -> Finding:
    disks = _join_names([name_disk(share.projection.disk) for share in shares], "; ")
    return ROOM_UNKNOWN.find(
        f"adds up to {_render_bytes(_sum_added(shares))} to {disks}: how much fits there is "
        "unknown, because the broker does not say how large its disk is",
        figures=_make_figures(shares),
    )


def _rank(share: Share) -> tuple[bool, float]:
    """Known sizes first, then the part of the disk that is needed."""
    projection = share.projection
    if projection.needed is None or not projection.disk.total:
        return False, share.added
    return True, projection.needed / projection.disk.total


def _choose_rule(share: Share) -> Rule | None:
    projection = share.projection
    needed, used, total = projection.needed, projection.disk.used, projection.disk.total
    if needed is None or used is None or not total:
        return None
    if needed > total:
        days = projection.days or 0.0
        limit = _SOON_DAYS if math.isinf(needed) else _LATER_DAYS
        return None if days > _FAR_DAYS else TOO_SMALL if days <= limit else NEARLY_FULL
    # A little more on a disk that is nearly full anyway is no news of this plan.
    is_more = used <= total * FULLEST or share.added >= total * _LEAST
    return NEARLY_FULL if needed > total * FULLEST and is_more else None


def _describe(share: Share) -> str:
    """`broker 3, /data/1: 412 GiB → 655 GiB of 700 GiB (94 %), full in about 9 days …`"""
    projection, disk = share.projection, share.projection.disk
    used, total = disk.used or 0, disk.total or 1
    needed = projection.needed or 0.0
    if math.isinf(needed):
        step = f"{_render_bytes(used)} of {_render_bytes(total)}, and nothing stops the growth"
    else:
        step = (
            f"{_render_bytes(used)} → {_render_bytes(needed)} of {_render_bytes(total)} "
            f"({needed / total:.0%}; {_render_bytes(share.added)} of it by this change)"
        )
    return f"{name_disk(disk)}: {step}{_render_end(share)}"


def _render_end(share: Share) -> str:
    projection = share.projection
    if projection.days:
        rate = "the expected rates" if share.expected else "today's rate"
        return f"; full in about {render_days(projection.days)} at {rate}"
    # Nothing grows, so it is what is copied that does not fit.
    full = (projection.needed or 0) > (projection.disk.total or 0)
    return "; it is full before the copies are complete" if full else ""


def name_disk(disk: Disk) -> str:
    """`broker 3, /data/1`."""
    return f"broker {disk.broker}, {' and '.join(disk.directories)}"


def _join_names(names: Sequence[str], separator: str) -> str:
    """The first names, and how many there are beyond them."""
    hidden_count = len(names) - _NAMED
    ending = f"{separator}and {hidden_count:,} more" if hidden_count > 0 else ""
    return f"{separator.join(names[:_NAMED])}{ending}"


def _sum_added(shares: Iterable[Share]) -> float:
    return sum(share.added for share in shares)


def _render_bytes(amount: float) -> str:
    return "an unlimited amount" if math.isinf(amount) else render_amount(round(amount), "bytes")


def _make_figures(shares: Sequence[Share]) -> FrozenMap:
    """The figures of a finding: of all its disks, of which the worst comes first."""
    worst, added = shares[0].projection, _sum_added(shares)
    figures: dict[str, Value] = {
        "disks": tuple(name_disk(share.projection.disk) for share in shares),
        "added_bytes": None if math.isinf(added) else round(added),
        "used_bytes": worst.disk.used,
        "needed_bytes": None
        if worst.needed is None or math.isinf(worst.needed)
        else round(worst.needed),
        "total_bytes": worst.disk.total,
        "days": None if worst.days is None else round(worst.days),
    }
    return FrozenMap({name: value for name, value in figures.items() if value is not None})


# ── who uses the cluster now ────────────────────────────────────────────────────────

_TOPICS = ("kafka_topic", "kafka_topic_config", "kafka_cluster_config", "kafka_broker_config")
_CLAIMS = "tests/cluster/claims/test_users_now.py"

UNREAD_LOST = Rule(
    "topic-unread-lost",
    "A group has not read what the change deletes",
    Level.DANGER,
    Harm.DATA_LOSS,
    _TOPICS,
    Needs.SYSTEM,
    "A group goes on at its committed offset. If that record is gone, auto.offset.reset decides, "
    "and what lay between is never read. Brokers delete whole segments, so some of it can stay for "
    "a while.",
    '"retention.ms" = retention("1h")   # was "7d", and billing is 2 h behind',
    "Wait until the group has read on, or keep the records longer.",
    proof=f"{_CLAIMS}::test_a_slow_group_misses_what_the_plan_said",
)
READERS = Rule(
    "topic-readers",
    "Groups read the topic",
    Level.NOTE,
    Harm.NONE,
    _TOPICS,
    Needs.SYSTEM,
    "Groups of all protocols that have offsets or assigned partitions in it. The lag is what "
    "Kafka's own kafka-consumer-groups counts; the time is the age of the first unread record.",
    'resource "kafka_topic" "orders" { … }   # the block is removed, and billing reads it',
    "Tell those who run these groups before you apply.",
    proof=f"{_CLAIMS}::test_the_lag_is_that_of_kafkas_own_tool",
)
WRITERS = Rule(
    "topic-writers",
    "Producers write to the topic",
    Level.NOTE,
    Harm.NONE,
    _TOPICS,
    Needs.SYSTEM,
    "DescribeProducers (KIP-664) has the idempotent producers of a partition, and ListOffsets the "
    "newest record (KIP-734). Producers without idempotence are in no list.",
    'resource "kafka_topic" "orders" { … }   # the block is removed, and something writes to it',
    "Tell those who run these producers before you apply.",
    proof=f"{_CLAIMS}::test_producers_and_their_last_write_are_seen",
)
ACCESS_USED = Rule(
    "access-used-now",
    "A group uses what the lost right is about",
    Level.NOTE,
    Harm.NONE,
    ("kafka_acl",),
    Needs.SYSTEM,
    "Brokers show the client ids and hosts of a group's members, and not their principals. So the "
    "group can be one of the principal that loses the right, or of another one.",
    'resource "kafka_acl" "billing" { … }   # the block is removed, and billing reads the topic',
    "Check whether these clients log in as the principal that loses the right.",
    proof=f"{_CLAIMS}::test_the_clients_of_a_lost_right_are_named",
)
KEYS_SAMPLED = Rule(
    "topic-keys-sampled",
    "The records of a topic that gets more partitions have keys, or none",
    Level.NOTE,
    Harm.ORDERING,
    ("kafka_topic",),
    Needs.SYSTEM,
    "With --sample, a plan reads one of the newest records of each partition and keeps nothing of "
    "it but whether it has a key; without, it reads none. Only the order of records with keys "
    "depends on the number of partitions. Brokers refuse records without a key in a compacted "
    "topic, so that one is not read.",
    "kafkaform plan --sample   # and partitions = 6 was 3",
    "Make sure that consumers do not need the order of older and newer records of a key.",
    proof=f"{_CLAIMS}::test_sampled_records_have_keys_or_none",
)
USERS_UNSEEN = Rule(
    "users-unseen",
    "Not all users of dangerous changes were looked at",
    Level.NOTE,
    Harm.NONE,
    (),
    Needs.SYSTEM,
    "The looks take 5 s and 500 topics, and brokers leave out what the principal may not see: "
    "groups need Describe on Group, producers need Read on Topic.",
    "kafkaform plan --impact fast   # of 10,000 dangerous changes",
    "Grant the missing rights, or plan with --impact full.",
    proof=f"{_CLAIMS}::test_what_may_not_be_seen_is_said",
)
USER_RULES = (ACCESS_USED, KEYS_SAMPLED, READERS, UNREAD_LOST, USERS_UNSEEN, WRITERS)
RULES = (ABOVE_LIMIT, MONTHLY_COST, NEARLY_FULL, ROOM_UNKNOWN, TOO_SMALL, *USER_RULES)
"""The rows; no judge finds them."""
