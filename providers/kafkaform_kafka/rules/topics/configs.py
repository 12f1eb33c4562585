"""Rules of topic configs, judged by the values that take effect before and after a change.

Whoever sets a value, a topic's override, a broker or the cluster, the same function judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from decimal import Decimal

from msgspec import Struct

from kafkaform.core.finding import Finding, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Rule

from ...protocol.cluster_facts import get_release, is_before
from ...protocol.config_keys import (
    ALL_TOPIC_KEYS,
    FOLLOWS,
    parse_integer,
    parse_items,
    parse_limit,
    render_config,
)
from . import config_rows as rows

DELETE, COMPACT = "delete", "compact"
MIN_IN_SYNC_IS_CAPPED = "3.7"
"""From this release on, brokers count the smaller one of min.insync.replicas and the replicas
(KAFKA-15583, `effectiveMinIsr` in Partition.scala)."""
ZSTD_IS_FOR_ALL = "4.0"
"""Brokers before this release refuse old consumers of a topic with compression.type = zstd."""

Values = Mapping[str, str]


class TopicConfigs(Struct, frozen=True):
    """The configs of one topic, or of topics that have them in common, before and after."""

    before: Values
    """All effective topic configs before: override, else default of broker or cluster, else
    Kafka's. Empty for a topic that does not exist yet."""
    after: Values
    """All effective topic configs after."""
    replicas: int | None
    """Replicas of each partition after the change, None if unknown."""
    facts: Facts
    inherited_before: Set[str] = frozenset()
    """Configs that had no override, for the text: `7 d (default)`."""
    inherited_after: Set[str] = frozenset()
    """Configs that have no override after the change."""
    replicas_before: int | None = None
    """Replicas before the change; None if they stay the same, or are unknown."""


def judge_topic_configs(configs: TopicConfigs) -> Iterator[Finding]:
    """What the change of these configs does to records and clients. The path of each finding is
    ("config", KEY)."""
    yield from judge_in_sync_replicas(configs)
    yield from judge_records_and_clients(configs)


def judge_records_and_clients(configs: TopicConfigs) -> Iterator[Finding]:
    """The same without what depends on the number of replicas."""
    # Nothing was written to a new topic, and nobody reads it yet.
    if configs.before and configs.before != configs.after:
        for judge in _JUDGES:
            yield from judge(configs)


def has_policy(values: Values, policy: str) -> bool:
    """True if cleanup.policy contains `delete` or `compact`."""
    return policy in parse_items(values["cleanup.policy"])


def show_change(configs: TopicConfigs, key: str) -> str:
    """`retention.ms 7 d (default) → 1 h`."""
    old = _show_value(key, configs.before, configs.inherited_before)
    return f"{key} {old} → {_show_value(key, configs.after, configs.inherited_after)}"


def _show_value(key: str, values: Values, inherited: Set[str]) -> str:
    text = render_config(ALL_TOPIC_KEYS[key], values[key]) or "(empty)"
    return f"{text} (default)" if key in inherited else text


def _render(key: str, values: Values) -> str:
    return render_config(ALL_TOPIC_KEYS[key], values[key])


# ── records that are deleted or kept ────────────────────────────────────────────────────

_POLICY = "cleanup.policy"


def _judge_cleanup(configs: TopicConfigs) -> Iterator[Finding]:
    before, after, path = configs.before, configs.after, ("config", _POLICY)
    if before[_POLICY] == after[_POLICY]:
        return
    change = show_change(configs, _POLICY)
    if has_policy(after, COMPACT) and not has_policy(before, COMPACT):
        yield rows.COMPACTION_STARTED.find(
            f"{change}: compaction deletes all but the latest record of each key, and every record "
            "without a key",
            path,
        )
        yield rows.KEYLESS_REFUSED.find(f"{change}: records without a key are refused", path)
    if has_policy(before, COMPACT) and not has_policy(after, COMPACT):
        yield rows.COMPACTION_STOPPED.find(
            f"{change}: the topic is no longer compacted, so it keeps every new record of a key",
            path,
        )
    if has_policy(after, DELETE) and not has_policy(before, DELETE):
        limits = _list_limits(after)
        if limits:
            # Until now, compaction has kept the latest record of each key for ever.
            yield rows.EXPIRY_STARTED.find(
                f"{change}: records are deleted {' and '.join(limits)}, also the "
                "latest of each key",
                path,
            )
    if has_policy(before, DELETE) and not has_policy(after, DELETE):
        records = (
            "the latest record of each key is" if has_policy(after, COMPACT) else "records are"
        )
        yield rows.EXPIRY_STOPPED.find(
            f"{change}: nothing is deleted because of its age or size any more, {records} kept for "
            "ever, and disks can fill up",
            path,
        )


def _list_limits(values: Values) -> tuple[str, ...]:
    """What the retention deletes, in words; nothing without a limit."""
    phrases = {
        "retention.ms": "once they are older than {}",
        "retention.bytes": "beyond {} of a partition",
    }
    return tuple(
        phrase.format(_render(key, values))
        for key, phrase in phrases.items()
        if parse_limit(values[key]) < _NO_LIMIT
    )


_NO_LIMIT = parse_limit("-1")


class _Limit(Struct, frozen=True):
    """A config that allows less when it is lower."""

    key: str
    rule: Rule
    text: str
    """What a lower value does; `{new}` stands for it, `{behind}` for what is later by it."""
    counts: Callable[[Values], bool] = lambda _: True
    """Whether the config has an effect with these values."""
    gate: str = ""
    """The config on which `counts` depends."""
    starts: bool = False
    """The config also matters if it has an effect only after the change."""

    def read(self, values: Values) -> Decimal | None:
        """The limit with these values; None if it has no effect, or if no broker takes it."""
        number = parse_integer(values[self.key])
        if number is None or not ALL_TOPIC_KEYS[self.key].allows(Decimal(number)):
            return None
        return parse_limit(values[self.key]) if self.counts(values) else None


def _is_compacted(values: Values) -> bool:
    return has_policy(values, COMPACT)


def _expires(values: Values) -> bool:
    return has_policy(values, DELETE)


def _has_own_time(values: Values) -> bool:
    """True if records keep the time of their producers."""
    return values["message.timestamp.type"] != "LogAppendTime"


def _has_local_limit(key: str) -> Callable[[Values], bool]:
    """Whether a limit of local data has an effect."""
    return lambda values: (
        values["remote.storage.enable"] == "true" and parse_integer(values[key]) != FOLLOWS
    )


_REFUSED = "records whose timestamp is more than {new} in the "
_BEHIND = "a consumer that is {behind} "

_LIMITS = (
    _Limit(
        "retention.ms", rows.RETENTION_CUT, "records older than that are deleted", _expires, _POLICY
    ),
    _Limit(
        "retention.bytes",
        rows.SIZE_CUT,
        "the oldest records of each partition that is larger are deleted",
        _expires,
        _POLICY,
    ),
    _Limit("max.message.bytes", rows.BATCHES_REFUSED, "record batches over {new} are refused"),
    _Limit(
        "message.timestamp.after.max.ms",
        rows.TIMESTAMPS_REFUSED,
        f"{_REFUSED}future are refused",
        _has_own_time,
        "message.timestamp.type",
        starts=True,
    ),
    _Limit(
        "message.timestamp.before.max.ms",
        rows.TIMESTAMPS_REFUSED,
        f"{_REFUSED}past are refused",
        _has_own_time,
        "message.timestamp.type",
        starts=True,
    ),
    _Limit(
        "message.timestamp.difference.max.ms",
        rows.TIMESTAMPS_REFUSED,
        "records whose timestamp differs by more than {new} from the broker's clock are refused",
        _has_own_time,
        "message.timestamp.type",
        starts=True,
    ),
    _Limit(
        "delete.retention.ms",
        rows.TOMBSTONES_MISSED,
        f"{_BEHIND}misses deletions of keys",
        _is_compacted,
        _POLICY,
    ),
    _Limit(
        "max.compaction.lag.ms",
        rows.OLD_VALUES_MISSED,
        f"{_BEHIND}misses older records of a key",
        _is_compacted,
        _POLICY,
    ),
    _Limit(
        "min.compaction.lag.ms",
        rows.OLD_VALUES_MISSED,
        f"{_BEHIND}may miss older records of a key",
        _is_compacted,
        _POLICY,
    ),
    _Limit(
        "flush.messages",
        rows.FLUSHED_MORE,
        "brokers write each partition to disk after that many records",
    ),
    _Limit("flush.ms", rows.FLUSHED_MORE, "brokers write each partition to disk after that time"),
    _Limit(
        "local.retention.ms",
        rows.LOCAL_DATA_CUT,
        "consumers read records that are older than {new} from remote storage",
        _has_local_limit("local.retention.ms"),
        "remote.storage.enable",
        starts=True,
    ),
    _Limit(
        "local.retention.bytes",
        rows.LOCAL_DATA_CUT,
        "consumers read records beyond {new} of a partition from remote storage",
        _has_local_limit("local.retention.bytes"),
        "remote.storage.enable",
        starts=True,
    ),
)


def _judge_limits(configs: TopicConfigs) -> Iterator[Finding]:
    changed = {
        key for key, value in configs.after.items() if configs.before.get(key, value) != value
    }
    for limit in _LIMITS:
        if limit.key not in changed and limit.gate not in changed:
            continue
        before, after = limit.read(configs.before), limit.read(configs.after)
        if before is None:
            before = _NO_LIMIT if limit.starts else None
        if before is None or after is None or after >= before:
            continue
        key, values = limit.key, configs.after
        is_equal = configs.before[key] == values[key]
        subject = (
            f"{key} {_render(key, values)} takes effect" if is_equal else show_change(configs, key)
        )
        new = _render(key, values)
        text = limit.text.format(new=new, behind=f"more than {new} behind" if after else "behind")
        yield limit.rule.find(f"{subject}: {text}", ("config", key))


HARMLESS = frozenset(
    (
        "compression.gzip.level",  # new batches only; all levels can be read
        "compression.lz4.level",
        "compression.zstd.level",
        "file.delete.delay.ms",  # only files whose records are already deleted
        "follower.replication.throttled.replicas",  # limits only replication
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "message.format.version",  # ignored since 3.0 (KIP-724)
        "min.cleanable.dirty.ratio",
        "preallocate",
        "remote.log.copy.disable",  # KIP-950: what was copied stays readable
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
    )
)
"""Topic configs of which no change is dangerous."""

# ── switches and words ──────────────────────────────────────────────────────────────────


class _Switch(Struct, frozen=True):
    """A config whose new value has an effect, whatever it was before."""

    key: str
    value: str
    rule: Rule
    text: str
    counts: Callable[[Values], bool] = lambda _: True
    """Whether the new value has an effect with the values after the change."""


_SWITCHES = (
    _Switch(
        "unclean.leader.election.enable",
        "true",
        rows.UNCLEAN_ELECTION,
        "acknowledged records are lost when a replica that lags behind becomes leader",
    ),
    _Switch(
        "unclean.leader.election.enable",
        "false",
        rows.CLEAN_ELECTION,
        "a partition stays offline until a replica that was in sync returns",
    ),
    _Switch(
        # KIP-950: a topic leaves remote storage only with remote.log.delete.on.disable=true.
        "remote.storage.enable",
        "false",
        rows.REMOTE_DATA_DELETED,
        "all data in remote storage is deleted",
    ),
    _Switch(
        "remote.log.delete.on.disable",
        "true",
        rows.REMOTE_DATA_AT_RISK,
        "all data in remote storage is deleted once remote.storage.enable is set to false",
        lambda values: values["remote.storage.enable"] == "true",
    ),
    _Switch(
        # The broker answers their fetches with UNSUPPORTED_VERSION (35).
        "message.downconversion.enable",
        "false",
        rows.OLD_CONSUMERS_REFUSED,
        "consumers before Kafka 0.11 cannot read the topic any more",
    ),
    _Switch(
        "message.timestamp.type",
        "LogAppendTime",
        rows.TIMESTAMPS_CHANGED,
        "new records get the broker's time, and retention goes by it",
    ),
    _Switch(
        "message.timestamp.type",
        "CreateTime",
        rows.TIMESTAMPS_CHANGED,
        "new records keep the producer's time, and retention goes by it",
    ),
)


def _judge_switches(configs: TopicConfigs) -> Iterator[Finding]:
    for switch in _SWITCHES:
        key = switch.key
        changes = configs.before[key] != configs.after[key] == switch.value
        if changes and switch.counts(configs.after):
            yield switch.rule.find(f"{show_change(configs, key)}: {switch.text}", ("config", key))


def _judge_compression(configs: TopicConfigs) -> Iterator[Finding]:
    key = "compression.type"
    codec = configs.after[key]
    # `producer` keeps each batch as it comes.
    if codec == configs.before[key] or codec == "producer":
        return
    task = (
        "unpack batches" if codec == "uncompressed" else f"recompress batches that are not {codec}"
    )
    yield rows.RECOMPRESSED.find(
        f"{show_change(configs, key)}: brokers {task}, which costs them processor time",
        ("config", key),
    )
    release = get_release(configs.facts)
    if codec == "zstd" and release and is_before(release, ZSTD_IS_FOR_ALL):
        yield rows.ZSTD_CONSUMERS_REFUSED.find(
            f"{show_change(configs, key)}: consumers before Kafka 2.1 cannot read the topic any "
            "more",
            ("config", key),
        )


_JUDGES = (_judge_cleanup, _judge_limits, _judge_switches, _judge_compression)


# ── replicas in sync ────────────────────────────────────────────────────────────────────


def judge_in_sync_replicas(configs: TopicConfigs) -> Iterator[Finding]:
    """What min.insync.replicas means for the topic's replicas, if one of them changes."""
    least, replicas = parse_integer(configs.after[rows.MIN_IN_SYNC]), configs.replicas
    old = parse_integer(configs.before[rows.MIN_IN_SYNC]) if configs.before else None
    replicas_before = configs.replicas_before or replicas
    if least is None or least < 1 or (least, replicas) == (old, replicas_before):
        return
    change = (
        f"{rows.MIN_IN_SYNC} is {least}"
        if old in (None, least)
        else show_change(configs, rows.MIN_IN_SYNC)
    )
    path = ("config", rows.MIN_IN_SYNC)
    if replicas is not None and least > replicas:
        yield _judge_excess(change, least, replicas, get_release(configs.facts))
    elif replicas is not None and least == replicas > 1:
        yield rows.ALL_IN_SYNC_REQUIRED.find(
            f"{change}, as many as the topic has replicas: one broker that is down stops producers "
            "with acks=all",
            path,
            # Nobody writes to a new topic yet.
            level=None if configs.before else Level.CAUTION,
        )
    elif old is not None and least > old:
        yield rows.MIN_IN_SYNC_RAISED.find(
            f"{change}: producers with acks=all are refused while fewer than {least} replicas are "
            "in sync",
            path,
            level=Level.DANGER if replicas is None else None,
        )
    if old is not None and least < min(old, replicas_before or old):
        count = "" if replicas is None else f" of its {replicas}"
        noun = "replica" if (replicas or least) == 1 else "replicas"
        yield rows.MIN_IN_SYNC_LOWERED.find(
            f"{change}: a record counts as written at {least}{count} {noun}, and is lost with "
            f"{'it' if least == 1 else 'them'}",
            path,
        )


def _judge_excess(change: str, least: int, replicas: int, release: str) -> Finding:
    noun = "replica" if replicas == 1 else "replicas"
    path = ("config", rows.MIN_IN_SYNC)
    if release and is_before(release, MIN_IN_SYNC_IS_CAPPED):
        return rows.MIN_IN_SYNC_UNREACHABLE.find(
            f"{change}, but the topic has only {replicas} {noun}: brokers refuse producers with "
            "acks=all",
            path,
        )
    stops = "" if replicas == 1 else ", and one broker that is down stops producers with acks=all"
    older = "" if release else f"; brokers before Kafka {MIN_IN_SYNC_IS_CAPPED} refuse acks=all"
    return rows.MIN_IN_SYNC_ABOVE_REPLICAS.find(
        f"{change}, but the topic has only {replicas} {noun}: it protects no more than {replicas}"
        f"{stops}{older}",
        path,
    )


# ── all of them ─────────────────────────────────────────────────────────────────────────

IN_SYNC_RULES = (
    rows.ALL_IN_SYNC_REQUIRED,
    rows.MIN_IN_SYNC_ABOVE_REPLICAS,
    rows.MIN_IN_SYNC_LOWERED,
    rows.MIN_IN_SYNC_RAISED,
    rows.MIN_IN_SYNC_UNREACHABLE,
)
"""What `judge_in_sync_replicas` finds."""
RULES = (
    rows.BATCHES_REFUSED,
    rows.CLEAN_ELECTION,
    rows.COMPACTION_STARTED,
    rows.COMPACTION_STOPPED,
    rows.EXPIRY_STARTED,
    rows.EXPIRY_STOPPED,
    rows.FLUSHED_MORE,
    rows.KEYLESS_REFUSED,
    rows.LOCAL_DATA_CUT,
    rows.OLD_CONSUMERS_REFUSED,
    rows.OLD_VALUES_MISSED,
    rows.RECOMPRESSED,
    rows.REMOTE_DATA_AT_RISK,
    rows.REMOTE_DATA_DELETED,
    rows.RETENTION_CUT,
    rows.SIZE_CUT,
    rows.TIMESTAMPS_CHANGED,
    rows.TIMESTAMPS_REFUSED,
    rows.TOMBSTONES_MISSED,
    rows.UNCLEAN_ELECTION,
    rows.ZSTD_CONSUMERS_REFUSED,
)
"""What `judge_records_and_clients` finds."""
