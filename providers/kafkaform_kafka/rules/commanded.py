"""Rules of what only commands change: tokens, leaders, moves that are stopped, levels of features,
and offsets of groups.

Tokens, leaders and stopped moves are judged by the commands, because only they read what the
findings are about. How many records are skipped or read again follows from the offsets alone, so an
`undo` is judged as well. How far a group is behind only the command reads, which finds LAG itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from msgspec import Struct

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.text import render_amount, render_count
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..kinds.commanded.group_offsets import (
    GROUP_OFFSETS,
    MEMBERS,
    OFFSETS,
    SHARE,
    describe_members,
    parse_partition,
    render_partition,
)
from ..kinds.commanded.resource_types import FEATURE, UNSAFE, read_levels, render_time
from ..protocol.cluster_facts import FEATURES, METADATA_VERSION, UNKNOWN, render_level

TOKEN_CREATED = Rule(
    "token-created",
    "A delegation token is created",
    Level.CAUTION,
    Harm.ACCESS_GAINED,
    ("kafka_delegation_token",),
    Needs.BLOCK,
    "A login with a token has the principal of its owner (KIP-48), until the token expires.",
    "kafkaform alter delegation-tokens create --owner User:app",
    "Keep its file secret, and let it expire early.",
    proof="tests/cluster/kafka/test_token_logins.py::test_a_token_has_the_rights_of_its_owner",
)
TOKEN_EXPIRES = Rule(
    "token-expires",
    "The time of a delegation token changes",
    Level.NOTE,
    Harm.NONE,
    ("kafka_delegation_token",),
    Needs.OBJECT,
    "Brokers shorten periods beyond delegation.token.expiry.time.ms, and no token lives longer "
    "than its maximum (KIP-48).",
    "kafkaform alter delegation-tokens renew ID --period 1d",
    proof="tests/cluster/kafka/test_token_logins.py::test_a_time_is_shortened_to_what_the_broker_and_the_token_allow",
)
TOKEN_CONNECTIONS = Rule(
    "token-connections-stay",
    "Clients stay connected when their token ends",
    Level.NOTE,
    Harm.NONE,
    ("kafka_delegation_token",),
    Needs.OBJECT,
    "Brokers check a token at each login (KIP-48). An open connection ends when the token was to "
    "expire at the time of the login (KIP-368).",
    "kafkaform alter delegation-tokens expire ID",
    proof="tests/cluster/kafka/test_token_logins.py::test_a_token_that_has_ended",
)
LEADERS_ELECTED = Rule(
    "leaders-elected",
    "Preferred leaders are elected",
    Level.NOTE,
    Harm.NONE,
    ("kafka_topic_leaders",),
    Needs.OBJECT,
    "A partition pauses for a moment while its leader changes; a replica that is not in sync "
    "cannot lead (KIP-460).",
    "kafkaform alter leaders elect --topic orders",
    proof="tests/cluster/claims/test_replicas.py::test_a_replica_that_is_not_in_sync_is_not_elected",
)
MOVE_STOPPED = Rule(
    "move-stopped",
    "A move of replicas is stopped",
    Level.NOTE,
    Harm.NONE,
    ("kafka_topic",),
    Needs.OBJECT,
    "The replicas stay where they were before the move; what was copied is removed (KIP-455).",
    "kafkaform alter moves cancel --topic orders",
    proof="tests/cluster/kafka/test_placement.py::test_alter_stops_a_move_of_a_managed_topic",
)
NOTHING_TO_REMOVE = Rule(
    "config-not-set",
    "A config that is to be removed is not set",
    Level.CAUTION,
    Harm.NONE,
    ("kafka_topic", "kafka_topic_config", "kafka_broker_config", "kafka_cluster_config"),
    Needs.OBJECT,
    "Kafka accepts the removal of an override that does not exist, and changes nothing.",
    "kafkaform alter topic orders --delete-config retention.mss",
    "Check the name of the config.",
    proof="tests/cluster/claims/test_brokers.py::test_an_override_that_is_not_set_can_be_removed",
)

# ── levels of features ──────────────────────────────────────────────────────────────

_FEATURE_TYPES = (FEATURE,)
_FEATURE_CLAIMS = "tests/cluster/claims/test_brokers.py"

LEVEL_CHANGED = Rule(
    "feature-changed",
    "A feature gets another level",
    Level.NOTE,
    Harm.NONE,
    _FEATURE_TYPES,
    Needs.OBJECT,
    "All brokers use the level at once (KIP-584).",
    "kafkaform alter features group.version=1",
    proof="tests/cluster/cli/test_features.py::test_a_feature_is_switched_off_and_on",
)
LEVEL_DOWNGRADED = Rule(
    "feature-downgraded",
    "A feature is downgraded",
    Level.DANGER,
    Harm.AVAILABILITY,
    _FEATURE_TYPES,
    Needs.OBJECT,
    "Requests that need the higher level are refused with UNSUPPORTED_VERSION (35), and what was "
    "stored with it may be lost (KIP-584, KIP-1022).",
    "kafkaform alter features group.version=0 --downgrade",
    "Stop what uses the feature first.",
    proof=f"{_FEATURE_CLAIMS}::test_a_downgrade_cuts_off_consumers_of_the_new_protocol",
)
LEVEL_ONE_WAY = Rule(
    "feature-one-way",
    "A feature cannot be lowered again",
    Level.DANGER,
    Harm.ONE_WAY,
    _FEATURE_TYPES,
    Needs.OBJECT,
    "Kafka refuses every lower level of kraft.version (KIP-853), and one of metadata.version that "
    "would lose metadata (KIP-778).",
    "kafkaform alter features kraft.version=1",
    "Make sure that every broker and controller can stay at the new level.",
    proof=f"{_FEATURE_CLAIMS}::test_downgrades_that_kafka_refuses",
)
LEVEL_LOSSY = Rule(
    "feature-unsafe-downgrade",
    "An unsafe downgrade can lose metadata",
    Level.DANGER,
    Harm.DATA_LOSS,
    _FEATURE_TYPES,
    Needs.OBJECT,
    "The protocol allows an unsafe downgrade to drop what the lower level cannot hold (KIP-584). "
    "Kafka up to 4.3 has none for metadata.version (KAFKA-13896).",
    "kafkaform alter features group.version=0 --unsafe-downgrade",
    "Use --downgrade, with which Kafka refuses to lose metadata.",
    proof=f"{_FEATURE_CLAIMS}::test_downgrades_that_kafka_refuses",
)


def _judge_level(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action is not Action.UPDATE or not change.paths:
        return
    (before, after), name = read_levels(change), change.identity.key
    feature = FEATURES.get(name, UNKNOWN)
    path = change.paths[0].path
    levels = f"{name} {render_level(name, before)} → {render_level(name, after)}"
    yield LEVEL_CHANGED.find(f"{levels}: all brokers use the level at once", path)
    if after < before:
        yield LEVEL_DOWNGRADED.find(f"{levels}: {feature.loss}", path)
        if path == (UNSAFE,):
            refused = (
                "; Kafka up to 4.3 has no such downgrade of it" if name == METADATA_VERSION else ""
            )
            yield LEVEL_LOSSY.find(
                f"{levels} is an unsafe downgrade, which goes on even if metadata is lost{refused}",
                path,
            )
    elif feature.one_way:
        yield LEVEL_ONE_WAY.find(f"{levels}: {feature.one_way}", path)


# ── offsets of groups ───────────────────────────────────────────────────────────────

_OFFSET_TYPES = (GROUP_OFFSETS,)
_OFFSET_CLAIMS = "tests/cluster/cli/test_group_offsets.py"
GROUP_ACTIVE = Rule(
    "group-active",
    "The group has members",
    Level.BLOCK,
    Harm.NONE,
    _OFFSET_TYPES,
    Needs.OBJECT,
    "A coordinator takes offsets from the members of a group and from nobody else "
    "(UNKNOWN_MEMBER_ID), and deletes no group with members (NON_EMPTY_GROUP). Consumers that "
    "choose their partitions themselves are no members.",
    "kafkaform alter group billing --reset-offsets --to-earliest --all-topics",
    "Stop the members, and run the command again.",
    block=Block.IMPOSSIBLE,
    proof=f"{_OFFSET_CLAIMS}::test_a_group_with_members_is_left_alone",
)
RECORDS_SKIPPED = Rule(
    "group-records-skipped",
    "Records are skipped",
    Level.DANGER,
    Harm.DATA_LOSS,
    _OFFSET_TYPES,
    Needs.OBJECT,
    "Members begin at the offset that is committed (KafkaConsumer), so they never read the records "
    "before it. The number is that of offsets: compacted logs have fewer records.",
    "kafkaform alter group billing --reset-offsets --to-latest --topic orders",
    "Make sure that nobody needs these records from this group.",
    proof=f"{_OFFSET_CLAIMS}::test_skipped_records_are_never_read",
)
RECORDS_READ_AGAIN = Rule(
    "group-records-read-again",
    "Records are read again",
    Level.CAUTION,
    Harm.NONE,
    _OFFSET_TYPES,
    Needs.OBJECT,
    "Members begin at the offset that is committed (KafkaConsumer). State stores and topics of a "
    "Kafka Streams application keep what they have. The number is that of offsets.",
    "kafkaform alter group billing --reset-offsets --by-duration 2h --all-topics",
    "Make sure that the application can process records twice.",
    proof=f"{_OFFSET_CLAIMS}::test_records_are_read_again_and_an_undo_sets_the_offsets_back",
)
OFFSETS_FORGOTTEN = Rule(
    "group-offsets-forgotten",
    "A group forgets its offsets",
    Level.DANGER,
    Harm.DATA_LOSS,
    _OFFSET_TYPES,
    Needs.OBJECT,
    "Without an offset, members begin where auto.offset.reset says, and those of a share group "
    "where share.auto.offset.reset says (KIP-932). Both are `latest` by default.",
    "kafkaform alter group billing --delete-offsets --topic orders",
    "Set the offsets with --reset-offsets if the group is still used.",
    proof=f"{_OFFSET_CLAIMS}::test_a_group_that_forgets_its_offsets_starts_at_the_end",
)
GROUP_CREATED = Rule(
    "group-created",
    "A group is created",
    Level.CAUTION,
    Harm.NONE,
    _OFFSET_TYPES,
    Needs.OBJECT,
    "A commit creates the group that it names, as a classic group without members "
    "(GroupMetadataManager of Kafka).",
    "kafkaform alter group biling --reset-offsets --to-earliest --topic orders",
    "Check the name: `kafkaform describe groups` lists the groups that exist.",
    proof=f"{_OFFSET_CLAIMS}::test_a_reset_creates_a_group_that_begins_there",
)
REMOVED_BY_TOPIC = Rule(
    "group-share-by-topic",
    "Offsets of a share group go by topic",
    Level.BLOCK,
    Harm.NONE,
    _OFFSET_TYPES,
    Needs.OBJECT,
    "DeleteShareGroupOffsets names topics and no partitions (KIP-932).",
    "kafkaform undo RUN   # of a run that set the first offset of one partition of a topic",
    "Delete the offsets of the whole topic.",
    block=Block.IMPOSSIBLE,
    proof=f"{_OFFSET_CLAIMS}::test_offsets_of_a_share_group",
)
LAG = Rule(
    "group-lag-changed",
    "The lag of a group changes",
    Level.NOTE,
    Harm.NONE,
    _OFFSET_TYPES,
    Needs.SYSTEM,
    "The lag is the end of the log without the offset of the group. Times are those of records, "
    "found with ListOffsets (KIP-79): exact to a second if producers set no times themselves.",
    "kafkaform alter group billing --reset-offsets --shift-by -1000 --topic orders",
    proof=f"{_OFFSET_CLAIMS}::test_records_are_read_again_and_an_undo_sets_the_offsets_back",
)


class _Move(Struct, frozen=True):
    """One partition whose offset changes; None for no offset."""

    partition: str
    before: int | None
    after: int | None

    @property
    def distance(self) -> int:
        """By how many records, negative for those that are read again; 0 if nobody knows."""
        return 0 if self.before is None or self.after is None else self.after - self.before


def _judge_offsets(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action not in (Action.CREATE, Action.UPDATE, Action.DELETE):
        return
    before, after = change.before or EMPTY, change.after or EMPTY
    name, members = change.identity.key, before.get(MEMBERS)
    if members and (change.action is Action.DELETE or change.paths):
        yield GROUP_ACTIVE.find(f"the group {name} has {describe_members(members)}", (MEMBERS,))
    if change.action is Action.CREATE:
        yield GROUP_CREATED.find(f"there is no group {name}, so it is created")
    topics: dict[str, list[_Move]] = {}
    for item in change.paths:
        if item.path[0] == OFFSETS:
            move = _Move(item.path[1], *(cast(int | None, v) for v in (item.before, item.after)))
            topics.setdefault(parse_partition(move.partition)[0], []).append(move)
    for topic, moves in topics.items():
        yield from _judge_topic(topic, moves)
        if change.action is Action.UPDATE and after.get("type") == SHARE:
            yield from _judge_removal(topic, moves, after)


def _judge_topic(topic: str, moves: Sequence[_Move]) -> Iterator[Finding]:
    skipping = [move for move in moves if move.distance > 0]
    if skipping:
        yield _count(RECORDS_SKIPPED, topic, skipping, "skipped: the group never reads them")
    returning = [move for move in moves if move.distance < 0]
    if returning:
        yield _count(RECORDS_READ_AGAIN, topic, returning, "read again")
    forgotten = tuple(move.partition for move in moves if move.after is None)
    if forgotten:
        partitions = render_count(len(forgotten), "partition")
        yield OFFSETS_FORGOTTEN.find(
            f"{topic}: the offsets in {partitions} are deleted, so members begin at the end "
            "(`latest`, the default) or at the beginning (`earliest`)",
            (OFFSETS,),
            figures=FrozenMap(partitions=len(forgotten), offsets=forgotten),
        )


def _count(rule: Rule, topic: str, moves: Sequence[_Move], verb: str) -> Finding:
    records = sum(abs(move.distance) for move in moves)
    noun, partitions = render_count(records, "record"), render_count(len(moves), "partition")
    return rule.find(
        f"{topic}: {noun} in {partitions} {'is' if records == 1 else 'are'} {verb}",
        (OFFSETS,),
        figures=FrozenMap(
            records=records,
            partitions=len(moves),
            offsets=tuple(f"{move.partition}: {move.before} → {move.after}" for move in moves),
        ),
    )


def _judge_removal(topic: str, moves: Sequence[_Move], after: FrozenMap) -> Iterator[Finding]:
    """A removal that would take the offsets of other partitions of the topic along."""
    remaining = [
        partition
        for partition in after.get(OFFSETS) or ()
        if parse_partition(partition)[0] == topic
    ]
    for move in moves if remaining else ():
        if move.after is None:
            yield REMOVED_BY_TOPIC.find(
                f"the offset of {move.partition} cannot be deleted without that of {remaining[0]}",
                (OFFSETS, move.partition),
            )


def note_lag(topic: str, rows: Sequence[FrozenMap]) -> Finding:
    """How far the group is behind in a topic, before and after a reset. rows: as `make_position`
    makes them, of the partitions whose offsets change."""
    lags = [max(0, row["end_offset"] - row["offset"]) for row in rows if row["offset"] is not None]
    lag_after = sum(row["end_offset"] - row["target"] for row in rows)
    now = f"{render_count(sum(lags), 'record')} behind now" if lags else "no offsets now"
    moments = [row["target_time"] for row in rows if row["target_time"] is not None]
    begin = f"; the first record after it is of {render_time(min(moments))}" if moments else ""
    spans = [
        abs(row["time"] - row["target_time"]) // 1000
        for row in rows
        if row["time"] is not None and row["target_time"] is not None
        if row["time"] != row["target_time"]
    ]
    figures: dict[str, Value] = {
        "lag": sum(lags),
        "lag_after": lag_after,
        "partitions": len(rows),
        "offsets": tuple(map(_render_row, rows)),
    }
    if spans:
        begin += f", {render_amount(max(spans), 's')} from where it is now"
        figures["seconds"] = max(spans)
    text = f"{topic}: {now}, {lag_after:,} afterwards{begin}"
    return LAG.find(text, (OFFSETS,), figures=FrozenMap(figures))


def _render_row(row: FrozenMap) -> str:
    """One partition: `orders:0: 120 → 40; the log has 0 to 130`."""
    before = "none" if row["offset"] is None else row["offset"]
    partition = render_partition((row["topic"], row["partition"]))
    log = f"{row['start_offset']} to {row['end_offset']}"
    return f"{partition}: {before} → {row['target']}; the log has {log}"


RULES = (
    LAG,
    LEADERS_ELECTED,
    MOVE_STOPPED,
    NOTHING_TO_REMOVE,
    TOKEN_CREATED,
    TOKEN_CONNECTIONS,
    TOKEN_EXPIRES,
)
"""The rows that no judge finds."""
JUDGES = (
    Judge(
        (LEVEL_CHANGED, LEVEL_DOWNGRADED, LEVEL_LOSSY, LEVEL_ONE_WAY),
        _FEATURE_TYPES,
        Needs.OBJECT,
        _judge_level,
    ),
    Judge(
        (
            GROUP_ACTIVE,
            RECORDS_SKIPPED,
            RECORDS_READ_AGAIN,
            OFFSETS_FORGOTTEN,
            GROUP_CREATED,
            REMOVED_BY_TOPIC,
        ),
        _OFFSET_TYPES,
        Needs.OBJECT,
        _judge_offsets,
    ),
)
