"""The rows of `configs`: what a change of a topic's effective configs can do."""

from __future__ import annotations

from kafkaform.core.finding import Harm, Level
from kafkaform.core.rule import Needs, Rule

TOPIC, OVERRIDES = "kafka_topic", "kafka_topic_config"
TYPES = (TOPIC, OVERRIDES, "kafka_cluster_config", "kafka_broker_config")
"""Everything that can change what takes effect for a topic."""
MIN_IN_SYNC = "min.insync.replicas"
_PROOFS = "tests/cluster/claims/test_topics.py"
_OLD_PROOFS = "tests/cluster/claims/test_topics_of_kafka_3.py"
_TIERED_PROOFS = "tests/cluster/claims/test_tiered_storage.py"
_DISK_PROOFS = "tests/cluster/claims/test_broker_work.py"


def _make_row(
    id: str,
    title: str,
    level: Level,
    harm: Harm,
    reason: str,
    example: str,
    fix: str = "",
    proof: str = "",
    needs: Needs = Needs.OBJECT,
    file: str = _PROOFS,
) -> Rule:
    """A row. file: with the proof."""
    proof_id = f"{file}::{proof}" if proof else ""
    return Rule(id, title, level, harm, TYPES, needs, reason, example, fix, proof=proof_id)


def _change(key: str, old: str, new: str) -> str:
    return f'config = {{ "{key}" = {new} }}   # was {old}'


# ── records that are deleted or kept ────────────────────────────────────────────────────

RETENTION_CUT = _make_row(
    "topic-retention-cut",
    "Records are deleted earlier",
    Level.DANGER,
    Harm.DATA_LOSS,
    "A broker deletes a segment once its newest record is older than retention.ms "
    "(UnifiedLog.deleteRetentionMsBreachedSegments); it looks every "
    "log.retention.check.interval.ms.",
    _change("retention.ms", "7 d", "3600000"),
    "Keep the retention, or make sure that nobody needs the older records.",
    "test_a_shorter_retention_deletes_older_records",
)
SIZE_CUT = _make_row(
    "topic-size-cut",
    "Records are deleted because partitions are too large",
    Level.DANGER,
    Harm.DATA_LOSS,
    "A broker deletes the oldest segments of each partition that would still have retention.bytes "
    "without them (UnifiedLog.deleteRetentionSizeBreachedSegments). The limit is for each "
    "partition, not for the topic.",
    _change("retention.bytes", "-1", "1073741824"),
    "Keep the limit, or make sure that nobody needs the oldest records.",
    "test_a_smaller_size_deletes_the_oldest_records",
)
COMPACTION_STARTED = _make_row(
    "topic-compaction-started",
    "The topic is compacted from now on",
    Level.DANGER,
    Harm.DATA_LOSS,
    "The log cleaner keeps the last record of each key, and no record without a key "
    "(Cleaner.shouldRetainRecord).",
    _change("cleanup.policy", "delete", '"compact"'),
    "Make sure that every record has a key, and that only the latest of each key is needed.",
    "test_compaction_deletes_older_records_and_those_without_a_key",
)
KEYLESS_REFUSED = _make_row(
    "topic-keyless-refused",
    "Records without a key are refused",
    Level.CAUTION,
    Harm.REFUSED_WRITES,
    "A broker refuses a record without a key for a compacted topic with INVALID_RECORD (87; "
    "LogValidator.validateKey).",
    _change("cleanup.policy", "delete", '"compact"'),
    "Make sure that all producers set a key.",
    "test_a_compacted_topic_refuses_records_without_a_key",
)
COMPACTION_STOPPED = _make_row(
    "topic-compaction-stopped",
    "The topic is no longer compacted",
    Level.CAUTION,
    Harm.ORDERING,
    "Without compact in cleanup.policy, the log cleaner leaves the topic alone.",
    _change("cleanup.policy", "compact", '"delete"'),
    "Make sure that consumers expect every record of a key, and not only the latest.",
    "test_a_topic_that_is_no_longer_compacted_keeps_every_record",
)
EXPIRY_STARTED = _make_row(
    "topic-expiry-started",
    "Records are deleted because of their age or size from now on",
    Level.DANGER,
    Harm.DATA_LOSS,
    "With delete in cleanup.policy, retention.ms and retention.bytes have an effect, also for the "
    "latest record of a key.",
    _change("cleanup.policy", "compact", '"compact,delete"'),
    "Keep the policy, or raise retention.ms first.",
    "test_expiry_deletes_the_latest_records_of_keys_too",
)
EXPIRY_STOPPED = _make_row(
    "topic-expiry-stopped",
    "Nothing expires any more",
    Level.CAUTION,
    Harm.CAPACITY,
    "Without delete in cleanup.policy, retention.ms and retention.bytes have no effect "
    "(LogConfig.delete). A topic without any policy exists since Kafka 4.2 (KIP-1161).",
    _change("cleanup.policy", "delete", '"compact"'),
    'Use "compact,delete" if old records must go, or make sure that the number of keys is limited.',
    "test_a_compacted_topic_keeps_old_records_of_keys",
)
REMOTE_DATA_DELETED = _make_row(
    "topic-remote-data-deleted",
    "The topic leaves remote storage",
    Level.DANGER,
    Harm.DATA_LOSS,
    "A topic leaves remote storage only with remote.log.delete.on.disable = true, which deletes "
    "its remote segments (KIP-950).",
    _change("remote.storage.enable", "true", "false"),
    "Set remote.log.copy.disable = true instead to keep what was copied.",
    proof="test_a_topic_that_leaves_remote_storage_loses_what_is_only_there",
    file=_TIERED_PROOFS,
)
REMOTE_DATA_AT_RISK = _make_row(
    "topic-remote-data-at-risk",
    "Remote data goes when remote storage is disabled",
    Level.CAUTION,
    Harm.DATA_LOSS,
    "remote.log.delete.on.disable decides what happens once remote.storage.enable becomes false "
    "(KIP-950).",
    _change("remote.log.delete.on.disable", "false", "true"),
    fix="Set remote.log.delete.on.disable = false to keep the remote data.",
    proof="test_a_topic_that_leaves_remote_storage_loses_what_is_only_there",
    file=_TIERED_PROOFS,
)

# ── acknowledged records, and clients that stop ─────────────────────────────────────────

UNCLEAN_ELECTION = _make_row(
    "topic-unclean-election",
    "A replica that lags behind can become leader",
    Level.DANGER,
    Harm.DURABILITY,
    "If all replicas in sync are down, the controller elects one that is not, and all records that "
    "it does not have are gone (KIP-106; ReplicationControlManager). Controllers with KRaft elect "
    "no such replica before Kafka 3.9 (KAFKA-12670).",
    _change("unclean.leader.election.enable", "false", "true"),
    "Keep false, unless a topic that can be written is worth more than its records.",
    "test_an_unclean_election_loses_acknowledged_records_and_a_clean_one_waits",
)
CLEAN_ELECTION = _make_row(
    "topic-clean-election",
    "Only replicas in sync become leaders",
    Level.CAUTION,
    Harm.AVAILABILITY,
    "A partition whose replicas in sync are all down has no leader until one of them returns.",
    _change("unclean.leader.election.enable", "true", "false"),
    fix="Check that the topic has enough replicas in sync before a broker is taken down.",
    proof="test_an_unclean_election_loses_acknowledged_records_and_a_clean_one_waits",
)
MIN_IN_SYNC_RAISED = _make_row(
    "topic-min-insync-raised",
    "More replicas must be in sync",
    Level.CAUTION,
    Harm.AVAILABILITY,
    "A leader refuses acks=all with NOT_ENOUGH_REPLICAS (19) while fewer replicas are in sync "
    "(Partition.appendRecordsToLeader).",
    _change(MIN_IN_SYNC, "1", "2"),
    "Check that so many brokers stay up during restarts.",
    "test_a_broker_that_is_down_stops_acks_all_if_all_replicas_must_be_in_sync",
)
MIN_IN_SYNC_LOWERED = _make_row(
    "topic-min-insync-lowered",
    "Fewer replicas must have a record",
    Level.DANGER,
    Harm.DURABILITY,
    "A leader acknowledges acks=all once all replicas in sync have the record, and these can be as "
    "few as min.insync.replicas.",
    _change(MIN_IN_SYNC, "2", "1"),
    "Keep the number, or raise it again when the brokers are back.",
    "test_a_broker_that_is_down_stops_acks_all_if_all_replicas_must_be_in_sync",
)
ALL_IN_SYNC_REQUIRED = _make_row(
    "topic-all-insync-required",
    "All replicas must be in sync",
    Level.DANGER,
    Harm.AVAILABILITY,
    "A leader refuses acks=all with NOT_ENOUGH_REPLICAS (19) while fewer replicas than "
    "min.insync.replicas are in sync (Partition.appendRecordsToLeader).",
    'partitions = 1, replication_factor = 2, config = { "min.insync.replicas" = 2 }',
    "Use one replica more than min.insync.replicas.",
    "test_a_broker_that_is_down_stops_acks_all_if_all_replicas_must_be_in_sync",
    Needs.BLOCK,
)
MIN_IN_SYNC_ABOVE_REPLICAS = _make_row(
    "topic-min-insync-above-replicas",
    "More replicas must be in sync than there are",
    Level.CAUTION,
    Harm.AVAILABILITY,
    "Since Kafka 3.7, a leader counts the smaller one of min.insync.replicas and the number of "
    "replicas (KAFKA-15583; Partition.effectiveMinIsr).",
    'replication_factor = 2, config = { "min.insync.replicas" = 3 }',
    "Lower min.insync.replicas, or raise the replication factor.",
    "test_more_replicas_in_sync_than_there_are_protect_nothing_more",
    Needs.BLOCK,
)
MIN_IN_SYNC_UNREACHABLE = _make_row(
    "topic-min-insync-unreachable",
    "Brokers refuse acks=all, because the topic has too few replicas",
    Level.DANGER,
    Harm.AVAILABILITY,
    "Brokers before Kafka 3.7 compare the replicas in sync with min.insync.replicas itself, and "
    "answer NOT_ENOUGH_REPLICAS (19).",
    'replication_factor = 2, config = { "min.insync.replicas" = 3 }   # Kafka 3.6',
    "Lower min.insync.replicas, or raise the replication factor.",
    needs=Needs.FACTS,
    proof="test_before_kafka_3_7_acks_all_needs_more_replicas_than_there_are",
    file="tests/cluster/claims/test_older_brokers.py",
)
OLD_CONSUMERS_REFUSED = _make_row(
    "topic-old-consumers-refused",
    "Consumers before Kafka 0.11 are refused",
    Level.DANGER,
    Harm.AVAILABILITY,
    "Without conversion, a broker before Kafka 4.0 answers their fetches with UNSUPPORTED_VERSION "
    "(35; KIP-283). Newer brokers never convert.",
    _change("message.downconversion.enable", "true", "false"),
    "Upgrade these consumers first.",
    proof="test_without_conversion_consumers_before_kafka_0_11_stop",
    file=_OLD_PROOFS,
)
ZSTD_CONSUMERS_REFUSED = _make_row(
    "topic-zstd-consumers-refused",
    "Consumers before Kafka 2.1 are refused",
    Level.CAUTION,
    Harm.AVAILABILITY,
    "A broker before Kafka 4.0 answers their fetches of a topic with compression.type = zstd with "
    "UNSUPPORTED_COMPRESSION_TYPE (76; KIP-110).",
    _change("compression.type", "producer", '"zstd"   # Kafka 3.9'),
    "Upgrade these consumers first.",
    proof="test_zstd_stops_consumers_before_kafka_2_1",
    needs=Needs.FACTS,
    file=_OLD_PROOFS,
)

# ── writes that are refused, order, speed ───────────────────────────────────────────────

BATCHES_REFUSED = _make_row(
    "topic-batches-refused",
    "Large batches are refused",
    Level.CAUTION,
    Harm.REFUSED_WRITES,
    "A broker refuses a batch over max.message.bytes, as compressed, with MESSAGE_TOO_LARGE (10).",
    _change("max.message.bytes", "1048588", "10000"),
    "Lower max.request.size and batch.size of the producers first.",
    "test_a_lower_size_refuses_larger_batches",
)
TIMESTAMPS_REFUSED = _make_row(
    "topic-timestamps-refused",
    "Records with other times are refused",
    Level.CAUTION,
    Harm.REFUSED_WRITES,
    "A broker refuses such records with INVALID_TIMESTAMP (32; KIP-937), unless "
    "message.timestamp.type is LogAppendTime (LogValidator.validateTimestamp).",
    _change("message.timestamp.before.max.ms", "no limit", "3600000"),
    "Check the clocks of the producers, and whether any of them writes old events.",
    "test_limits_of_timestamps_refuse_records",
)
TIMESTAMPS_CHANGED = _make_row(
    "topic-timestamps-changed",
    "Times of records come from another clock",
    Level.CAUTION,
    Harm.ORDERING,
    "With LogAppendTime a broker replaces the time of each batch by its own; retention.ms and "
    "searches by time use that.",
    _change("message.timestamp.type", "CreateTime", '"LogAppendTime"'),
    fix="Check consumers that read by time, and the retention of old records.",
    proof="test_the_time_of_the_broker_replaces_that_of_the_producer",
)
TOMBSTONES_MISSED = _make_row(
    "topic-tombstones-missed",
    "Slow consumers miss deletions of keys",
    Level.CAUTION,
    Harm.ORDERING,
    "Compaction removes a record without a value delete.retention.ms after it was compacted first; "
    "who reads later never learns that the key was deleted.",
    _change("delete.retention.ms", "1 d", "1000"),
    fix="Keep the time longer than the longest pause of a consumer.",
    proof="test_deletions_of_keys_go_too",
)
OLD_VALUES_MISSED = _make_row(
    "topic-old-values-missed",
    "Slow consumers miss older records of a key",
    Level.CAUTION,
    Harm.ORDERING,
    "Compaction may remove a record with a newer one of its key after min.compaction.lag.ms, and "
    "must after max.compaction.lag.ms (KIP-58, KIP-354).",
    _change("max.compaction.lag.ms", "no limit", "3600000"),
    fix="Keep the lag longer than the longest pause of a consumer.",
    proof="test_compaction_deletes_older_records_and_those_without_a_key",
)
RECOMPRESSED = _make_row(
    "topic-recompressed",
    "Brokers recompress batches",
    Level.CAUTION,
    Harm.THROUGHPUT,
    "Unless compression.type is `producer`, a broker brings every batch to that type "
    "(LogValidator.validateMessagesAndAssignOffsets).",
    _change("compression.type", "producer", '"zstd"'),
    "Set the compression in the producers, and leave `producer` here.",
    "test_another_compression_type_recompresses",
)
FLUSHED_MORE = _make_row(
    "topic-flushed-more",
    "Brokers write to disk more often",
    Level.CAUTION,
    Harm.THROUGHPUT,
    "A broker calls fsync after so many records or so much time; without a limit the operating "
    "system decides (UnifiedLog.append, LogManager.flushDirtyLogs).",
    _change("flush.messages", "no limit", "1"),
    fix="Rely on replication with min.insync.replicas instead, unless it does not suffice.",
    proof="test_a_limit_of_records_writes_to_disk_at_once",
    file=_DISK_PROOFS,
)
LOCAL_DATA_CUT = _make_row(
    "topic-local-data-cut",
    "Consumers read more from remote storage",
    Level.CAUTION,
    Harm.THROUGHPUT,
    "Segments that were copied leave the brokers' disks after local.retention.ms or beyond "
    "local.retention.bytes (KIP-405). Without remote storage these configs have no effect.",
    _change("local.retention.ms", "-2", "3600000"),
    fix="Keep locally what consumers usually read.",
    proof="test_copied_segments_leave_the_broker_and_are_read_from_remote_storage",
    file=_TIERED_PROOFS,
)
