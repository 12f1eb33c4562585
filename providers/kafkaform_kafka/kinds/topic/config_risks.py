"""Finds the risks of changed topic configs. Every topic config of Kafka 4.3 has a row in `JUDGES`.

Values are effective ones: the value that an override replaces, or that takes effect without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from kafkaform.core.change import Action, Change, Path, PathChange
from kafkaform.core.legacy import Risk, RiskKind
from kafkaform.core.resource import Facts
from kafkaform.core.text.quantity import LONG_MAX, render_with_exact
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol.config_keys import ALL_TOPIC_KEYS
from ...protocol.config_values import parse_integer

DELETE, COMPACT = "delete", "compact"


class Values(Struct, frozen=True):
    """One config of one topic, before and after the change."""

    old: str
    new: str
    unit: str
    before: Mapping[str, str]
    """All effective configs of the topic before the change."""
    after: Mapping[str, str]
    """All effective configs of the topic after the change."""

    @property
    def lowered(self) -> bool:
        return read_limit(self.new) < read_limit(self.old)

    @property
    def raised(self) -> bool:
        return read_limit(self.new) > read_limit(self.old)

    @property
    def amount(self) -> str:
        """The new value with its unit, and the exact value."""
        return render_with_exact(self.new, self.unit)


Harm = tuple[RiskKind, str]
Judge = Callable[[Values], Iterator[Harm]]


def read_limit(value: str) -> Decimal:
    """A number that can be compared: -1 means no limit in every config that accepts it."""
    number = parse_integer(value)
    if number is None:
        try:
            return Decimal(value)
        except ArithmeticError:
            return Decimal(0)
    return Decimal(LONG_MAX if number == -1 else number)


def _has_policy(configs: Mapping[str, str], policy: str) -> bool:
    return policy in {word.strip() for word in configs["cleanup.policy"].split(",")}


def _when_lowered(kind: RiskKind, text: str) -> Judge:
    def judge(values: Values) -> Iterator[Harm]:
        if values.lowered:
            yield kind, text.format(new=values.amount)

    return judge


def _when_compacted(judge: Judge) -> Judge:
    """The judge, but only for topics that are compacted after the change."""
    return lambda values: judge(values) if _has_policy(values.after, COMPACT) else iter(())


def _judge_cleanup(values: Values) -> Iterator[Harm]:
    if _has_policy(values.after, DELETE) and not _has_policy(values.before, DELETE):
        # Until now, compaction has kept the latest record of each key for ever.
        age = render_with_exact(values.after["retention.ms"], "ms")
        yield (
            RiskKind.DATA_LOSS,
            f"records older than retention.ms = {age} are deleted, also the latest of each key",
        )
    if _has_policy(values.after, COMPACT) and not _has_policy(values.before, COMPACT):
        yield RiskKind.DATA_LOSS, "compaction deletes all but the latest record of each key"
        # The broker refuses them with INVALID_RECORD (87).
        yield RiskKind.REFUSED_WRITES, "records without a key are refused"
    if _has_policy(values.before, COMPACT) and not _has_policy(values.after, COMPACT):
        yield (
            RiskKind.ORDERING,
            "the topic is no longer compacted: consumers see every record of a key again",
        )


def _judge_retention_ms(values: Values) -> Iterator[Harm]:
    if values.lowered and _has_policy(values.after, DELETE):
        yield RiskKind.DATA_LOSS, f"records older than {values.amount} are deleted"


def _judge_retention_bytes(values: Values) -> Iterator[Harm]:
    if values.lowered and _has_policy(values.after, DELETE):
        yield (
            RiskKind.DATA_LOSS,
            f"the oldest records are deleted from each partition that exceeds {values.amount}",
        )


def _judge_min_insync(values: Values) -> Iterator[Harm]:
    if values.raised:
        yield (
            RiskKind.AVAILABILITY,
            f"producers with acks=all are refused while fewer than {values.new} replicas are in "
            "sync",
        )
    if values.lowered:
        yield (
            RiskKind.AVAILABILITY,
            f"a record counts as written at {values.new} of its replicas, and is lost with them",
        )


def _judge_unclean_election(values: Values) -> Iterator[Harm]:
    if values.new == "true" != values.old:
        yield (
            RiskKind.AVAILABILITY,
            "acknowledged records are lost when a replica that lags behind becomes leader",
        )
    if values.old == "true" != values.new:
        yield (
            RiskKind.AVAILABILITY,
            "a partition stays offline until a replica that was in sync returns",
        )


def _judge_remote_storage(values: Values) -> Iterator[Harm]:
    # KIP-950: a topic leaves remote storage only with remote.log.delete.on.disable=true.
    if values.old == "true" != values.new:
        yield RiskKind.DATA_LOSS, "all data in remote storage is deleted"


def _judge_remote_delete(values: Values) -> Iterator[Harm]:
    if values.new == "true" != values.old and values.after["remote.storage.enable"] == "true":
        yield (
            RiskKind.DATA_LOSS,
            "all data in remote storage is deleted once remote.storage.enable is set to false",
        )


def _judge_local_retention(values: Values) -> Iterator[Harm]:
    # -2 means "as retention.ms" or "as retention.bytes", which is never shorter.
    if values.new != "-2" and (values.old == "-2" or values.lowered):
        yield (
            RiskKind.THROUGHPUT,
            f"consumers read records beyond {values.amount} from remote storage",
        )


def _judge_timestamp_type(values: Values) -> Iterator[Harm]:
    whose = "the broker's" if values.new == "LogAppendTime" else "the producers'"
    yield (
        RiskKind.ORDERING,
        f"timestamps are {whose} from now on, and retention depends on them",
    )


def _judge_compression(values: Values) -> Iterator[Harm]:
    if values.new == "zstd":
        # KIP-110: older consumers get UNSUPPORTED_COMPRESSION_TYPE (76).
        yield RiskKind.THROUGHPUT, "consumers before Kafka 2.1 cannot read the topic any more"


def _find_no_harm(_: Values) -> Iterator[Harm]:
    return iter(())


def _judge_down_conversion(values: Values) -> Iterator[Harm]:
    if values.new == "false":
        # The broker answers their fetches with UNSUPPORTED_VERSION (35).
        yield RiskKind.AVAILABILITY, "consumers before Kafka 0.11 cannot read the topic any more"


_SLOWER_DISK = _when_lowered(RiskKind.THROUGHPUT, "brokers write to disk at least every {new}")

JUDGES: Mapping[str, Judge] = {
    "cleanup.policy": _judge_cleanup,
    "compression.gzip.level": _find_no_harm,  # new batches only; all levels can be read
    "compression.lz4.level": _find_no_harm,
    "compression.type": _judge_compression,
    "compression.zstd.level": _find_no_harm,
    "delete.retention.ms": _when_compacted(
        _when_lowered(
            RiskKind.ORDERING,
            "a consumer that is more than {new} behind misses deletions of keys",
        )
    ),
    "file.delete.delay.ms": _find_no_harm,  # only files whose records are already deleted
    "flush.messages": _SLOWER_DISK,
    "flush.ms": _SLOWER_DISK,
    "follower.replication.throttled.replicas": _find_no_harm,  # limits only replication
    "index.interval.bytes": _find_no_harm,
    "leader.replication.throttled.replicas": _find_no_harm,
    "local.retention.bytes": _judge_local_retention,
    "local.retention.ms": _judge_local_retention,
    "max.compaction.lag.ms": _when_compacted(
        _when_lowered(
            RiskKind.ORDERING,
            "a consumer that is more than {new} behind misses older records of a key",
        )
    ),
    "max.message.bytes": _when_lowered(
        RiskKind.REFUSED_WRITES, "record batches over {new} are refused"
    ),
    "message.downconversion.enable": _judge_down_conversion,
    "message.format.version": _find_no_harm,  # ignored since 3.0 (KIP-724)
    "message.timestamp.after.max.ms": _when_lowered(
        RiskKind.REFUSED_WRITES,
        "records whose timestamp is more than {new} in the future are refused",
    ),
    "message.timestamp.before.max.ms": _when_lowered(
        RiskKind.REFUSED_WRITES,
        "records whose timestamp is more than {new} in the past are refused",
    ),
    "message.timestamp.difference.max.ms": _when_lowered(
        RiskKind.REFUSED_WRITES,
        "records whose timestamp differs by more than {new} from the broker's clock are refused",
    ),
    "message.timestamp.type": _judge_timestamp_type,
    "min.cleanable.dirty.ratio": _find_no_harm,
    "min.compaction.lag.ms": _when_compacted(
        _when_lowered(
            RiskKind.ORDERING,
            "a consumer that is more than {new} behind may miss older records of a key",
        )
    ),
    "min.insync.replicas": _judge_min_insync,
    "preallocate": _find_no_harm,
    "remote.log.copy.disable": _find_no_harm,  # KIP-950: what was copied stays readable
    "remote.log.delete.on.disable": _judge_remote_delete,
    "remote.storage.enable": _judge_remote_storage,
    "retention.bytes": _judge_retention_bytes,
    "retention.ms": _judge_retention_ms,
    "segment.bytes": _find_no_harm,
    "segment.index.bytes": _find_no_harm,
    "segment.jitter.ms": _find_no_harm,
    "segment.ms": _find_no_harm,
    "unclean.leader.election.enable": _judge_unclean_election,
}


class Retention(Struct, frozen=True):
    """The limits of a topic after a change."""

    ms: int | None
    """Older records are deleted; None if no record is deleted because of its age."""
    bytes: int | None
    """Larger partitions are cut; None if no record is deleted because of its partition's size."""


def find_new_retention(change: Change, facts: Facts) -> Retention:
    """The limits that delete records after the change, of one that can lose data."""
    defaults = facts.values.get("topic_defaults") or EMPTY
    after = _list_after(change, defaults)
    if not _has_policy(after, DELETE):
        return Retention(None, None)
    limits = (parse_integer(after[name]) for name in ("retention.ms", "retention.bytes"))
    return Retention(*(None if limit is None or limit < 0 else limit for limit in limits))


def find_topic_config_risks(change: Change, facts: Facts) -> Sequence[Risk]:
    """The risks of one change of a `kafka_topic_config`. Its topic is there before the block and
    after it, so overrides that come or go with the block concern records as much as an update."""
    if change.action not in (Action.CREATE, Action.UPDATE, Action.DELETE):
        return ()
    return tuple(find_config_risks(change, facts))


def find_topic_unit(path: Path) -> str:
    """The unit of a topic's value: `ms` for `config.retention.ms`."""
    key = ALL_TOPIC_KEYS.get(path[1]) if len(path) == 2 and path[0] == "config" else None
    return key.unit if key is not None else ""


def find_config_risks(change: Change, facts: Facts) -> Iterator[Risk]:
    """The risks of the topic configs that a change writes or removes."""
    changed = {item.path[1]: item for item in change.paths if _is_config(item)}
    if not changed:
        return
    defaults = facts.values.get("topic_defaults") or EMPTY
    before = _list_effective(change.before, defaults)
    after = _list_after(change, defaults)
    for key in sorted(changed.keys() & JUDGES.keys()):
        old, new = before[key], after[key]
        if old == new:
            continue
        values = Values(old, new, ALL_TOPIC_KEYS[key].unit, before, after)
        for kind, text in JUDGES[key](values):
            yield Risk(kind, f"{key}: {text}", ("config", key))


def _list_after(change: Change, defaults: FrozenMap) -> dict[str, str]:
    """All topic configs as they take effect after the change."""
    removed = {
        item.path[1]: str(item.effective)
        for item in change.paths
        if _is_config(item) and item.after is None and item.effective is not None
    }
    return {**_list_effective(change.after, defaults), **removed}


def _is_config(item: PathChange) -> bool:
    return len(item.path) == 2 and item.path[0] == "config"


def _list_effective(attributes: FrozenMap | None, defaults: FrozenMap) -> dict[str, str]:
    """All topic configs as they take effect: the override, or the default of cluster or Kafka."""
    # Without the right to read the brokers' configs, Kafka's own defaults are assumed.
    overrides = (attributes or EMPTY).get("config") or EMPTY
    return {
        name: str(overrides.get(name) or defaults.get(name) or key.default)
        for name, key in ALL_TOPIC_KEYS.items()
    }
