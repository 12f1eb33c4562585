"""Rules of the configs of groups, and of subscriptions to client metrics.

Every config that Kafka 4.3 has for these has a row in GROUP_HARMS or METRICS_HARMS; a test checks
that.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.value import Value

from ..kinds.config import faults
from ..protocol import broker_rules
from ..protocol.cluster_facts import (
    CLIENT_METRICS,
    GROUP_CONFIGS,
    capability_faults,
    presence_faults,
)
from ..protocol.config_keys import GROUP_KEYS, parse_items
from .config_harms import ConfigHarm, Harms, When, block_configs, judge_harms

GROUP, METRICS = "kafka_group_config", "kafka_client_metrics"
_TYPES = (GROUP, METRICS)
_CLAIMS = "tests/cluster/claims/test_brokers.py"
_MEMBERS = "tests/cluster/claims/test_groups.py"
_OLDER = "tests/cluster/claims/test_older_brokers.py"
_LISTED = "tests/cluster/kafka/test_broker_keys.py"
_REFUSED = f"{_CLAIMS}::test_configs_that_groups_and_client_metrics_refuse"


UNSUPPORTED = block_configs(
    "group-config-unsupported",
    "The cluster has no configs of groups",
    (GROUP,),
    Needs.FACTS,
    "Groups have configs since Kafka 4.0 (KIP-848), and only with KRaft.",
    'kafka_group_config "orders" { … }   # Kafka 3.9',
    "Upgrade the cluster, or remove the block.",
    f"{_OLDER}::test_older_brokers_have_no_configs_of_groups",
)
METRICS_UNSUPPORTED = block_configs(
    "client-metrics-unsupported",
    "The cluster has no client metrics",
    (METRICS,),
    Needs.FACTS,
    "Subscriptions to client metrics exist since Kafka 3.7 (KIP-714), and only with KRaft.",
    'kafka_client_metrics "all" { … }   # Kafka 3.6',
    "Upgrade the cluster, or remove the block.",
    f"{_OLDER}::test_older_brokers_and_zookeeper_have_no_client_metrics",
)
ABSENT = block_configs(
    "group-config-absent",
    "The brokers do not have the config",
    _TYPES,
    Needs.FACTS,
    "Releases add configs of groups (GroupConfig of each release).",
    'config = { "share.delivery.count.limit" = 3 }   # Kafka 4.2',
    "Remove the config.",
    f"{_LISTED}::test_groups_and_metrics_have_the_brokers_configs",
)
MISSPELT = block_configs(
    "group-config-misspelt",
    "There is no config of this name",
    _TYPES,
    Needs.BLOCK,
    "Brokers refuse unknown configs of groups and of client metrics with INVALID_CONFIG (40).",
    'config = { "consumer.sesion.timeout.ms" = 45000 }',
    "Correct the name.",
    _REFUSED,
)
INVALID = block_configs(
    "group-config-value-invalid",
    "No broker takes the value",
    _TYPES,
    Needs.BLOCK,
    "Brokers check type, range and words of a value (GroupConfig, ClientMetricsConfigs): "
    "INVALID_CONFIG (40) or INVALID_REQUEST (42).",
    'config = { "share.isolation.level" = "committed" }',
    "Correct the value.",
    _REFUSED,
)
MATCH_INVALID = block_configs(
    "client-metrics-match-invalid",
    "A pattern of match names no property of clients",
    (METRICS,),
    Needs.BLOCK,
    "Each element is NAME=PATTERN with one of six names (ClientMetricsConfigs.parseMatching"
    "Patterns; KIP-714): INVALID_CONFIG (40).",
    'config = { match = "client=app-.*" }',
    "Write client_id=app-.* or another name that Kafka has.",
    _REFUSED,
)
UNKNOWN = Rule(
    "group-config-unknown",
    "Kafka does not have the config",
    Level.CAUTION,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "Newer releases have further configs. A broker that does not know one refuses it in the dry "
    "run.",
    'config = { "consumer.new.limit" = 5 }',
    "Make sure that your brokers know it.",
    proof=_REFUSED,
)


def _make_row(
    id: str, title: str, harm: Harm, reason: str, example: str, fix: str = "", proof: str = ""
) -> Rule:
    proof_id = f"{_MEMBERS}::{proof}" if proof else ""
    return Rule(
        id,
        title,
        Level.CAUTION,
        harm,
        (GROUP,),
        Needs.OBJECT,
        reason,
        f"config = {{ {example} }}",
        fix,
        proof=proof_id,
    )


SESSION_SHORTENED = _make_row(
    "group-session-shortened",
    "Silent members are removed earlier",
    Harm.THROUGHPUT,
    "The coordinator removes a member that sends no heartbeat for that time, and gives its "
    "partitions to others (KIP-848).",
    '"consumer.session.timeout.ms" = 10000',
    "Leave room for several heartbeats.",
    proof="test_a_silent_member_loses_its_partitions_after_the_session_timeout",
)
START_CHANGED = _make_row(
    "group-start-changed",
    "A new share group starts elsewhere",
    Harm.ORDERING,
    "A share group that has no start offset of a partition takes it from there (KIP-932).",
    '"share.auto.offset.reset" = "earliest"',
    fix="Set it before the group reads a partition for the first time.",
    proof="test_a_share_group_begins_where_its_config_says",
)
DELIVERIES_CUT = _make_row(
    "group-deliveries-cut",
    "Records that fail are skipped earlier",
    Harm.ORDERING,
    "A share group archives a record after that many deliveries, and no member gets it again "
    "(KIP-932).",
    '"share.delivery.count.limit" = 2',
    fix="Keep a limit that a record reaches only if it can never be processed.",
    proof="test_a_record_that_fails_is_skipped_after_its_last_delivery",
)
ISOLATION_CHANGED = _make_row(
    "group-isolation-changed",
    "Members get other records of transactions",
    Harm.ORDERING,
    "With read_uncommitted, a share group also delivers records of open and aborted transactions "
    "(KIP-932).",
    '"share.isolation.level" = "read_committed"',
    fix="Check that the members can handle records of aborted transactions.",
    proof="test_a_share_group_gets_aborted_records_unless_it_reads_committed_ones",
)
LOCKS_CUT = _make_row(
    "group-locks-cut",
    "Members get fewer records at a time",
    Harm.THROUGHPUT,
    "A share group delivers no further record of a partition while that many are locked (KIP-932).",
    '"share.partition.max.record.locks" = 200',
    fix="Keep the limit above what the members process at the same time.",
    proof="test_a_group_gets_no_further_records_while_so_many_are_locked",
)
LOCK_SHORTENED = _make_row(
    "group-lock-shortened",
    "Slow members share their records with others",
    Harm.ORDERING,
    "A record whose lock ends goes to another member (KIP-932).",
    '"share.record.lock.duration.ms" = 15000',
    "Keep the time above what a member needs for one fetch.",
    proof="test_a_record_whose_lock_ends_goes_to_another_member",
)
RENEWAL_DISABLED = _make_row(
    "group-renewal-disabled",
    "Members cannot keep records for longer",
    Harm.ORDERING,
    "Without it, the coordinator refuses to renew the lock of a record (KIP-1222).",
    '"share.renew.acknowledge.enable" = false',
    fix="Set share.record.lock.duration.ms above the longest processing time.",
    proof="test_a_lock_is_not_renewed_where_that_is_disabled",
)
STANDBYS_REMOVED = _make_row(
    "group-standbys-removed",
    "Streams tasks have fewer standbys",
    Harm.AVAILABILITY,
    "A standby has a copy of a task's state; without one, the state is read from its changelog "
    "after a failure (KIP-1071).",
    '"streams.num.standby.replicas" = 0',
    fix="Keep a standby where a long restore of the state would hurt.",
    proof="test_a_streams_group_has_as_many_standbys_as_its_config_says",
)

_SESSION = ConfigHarm(
    SESSION_SHORTENED,
    When.LOWERED,
    "a member that is silent for {new} is removed, and the group rebalances",
)
GROUP_HARMS: Harms = {
    **dict.fromkeys(
        (
            *("consumer.assignment.interval.ms", "consumer.heartbeat.interval.ms"),
            *("share.assignment.interval.ms", "share.heartbeat.interval.ms"),
            *("streams.assignment.interval.ms", "streams.heartbeat.interval.ms"),
            "streams.initial.rebalance.delay.ms",
        ),
        (),
    ),
    **dict.fromkeys(
        ("consumer.session.timeout.ms", "share.session.timeout.ms", "streams.session.timeout.ms"),
        (_SESSION,),
    ),
    "share.auto.offset.reset": (
        ConfigHarm(START_CHANGED, When.CHANGED, "a new share group starts at another offset"),
    ),
    "share.delivery.count.limit": (
        ConfigHarm(DELIVERIES_CUT, When.LOWERED, "a record that fails {new} times is skipped"),
    ),
    "share.isolation.level": (
        ConfigHarm(
            ISOLATION_CHANGED,
            When.CHANGED,
            "members get other records of open and aborted transactions",
        ),
    ),
    "share.partition.max.record.locks": (
        ConfigHarm(
            LOCKS_CUT, When.LOWERED, "members get at most {new} records of a partition at a time"
        ),
    ),
    "share.record.lock.duration.ms": (
        ConfigHarm(
            LOCK_SHORTENED,
            When.LOWERED,
            "a record that takes longer than {new} is given to another member as well",
        ),
    ),
    "share.renew.acknowledge.enable": (
        ConfigHarm(
            RENEWAL_DISABLED,
            When.BECOMES,
            "members can no longer keep a record for longer",
            "false",
        ),
    ),
    "streams.num.standby.replicas": (
        ConfigHarm(
            STANDBYS_REMOVED, When.LOWERED, "a task takes longer to continue after a failure"
        ),
    ),
}
METRICS_HARMS: Harms = {"interval.ms": (), "match": (), "metrics": ()}

Fault = tuple[Rule, str, str]
"""The rule, the sentence, and what to do."""


def _judge_support(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action in (Action.CREATE, Action.UPDATE):
        of_group = change.identity.kind == GROUP
        rule = UNSUPPORTED if of_group else METRICS_UNSUPPORTED
        for summary, advice in capability_faults(
            GROUP_CONFIGS if of_group else CLIENT_METRICS, facts
        ):
            yield rule.find(summary, fix=advice)


def _judge_configs(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action not in (Action.CREATE, Action.UPDATE):
        return
    # What the cluster does not have at all has no single faults.
    if any(_judge_support(change, facts)):
        return
    for key, value in broker_rules.select_changed_configs(change).items():
        if value is not None:
            for rule, summary, advice in _find_faults(change.identity.kind, key, value, facts):
                yield rule.find(summary, ("config", key), fix=advice)


def _find_faults(kind: str, key: str, value: Value, facts: Facts) -> Iterator[Fault]:
    row = faults.TABLES[kind][0].get(key)
    if row is None:
        yield from ((MISSPELT, *fault) for fault in faults.misspelt_faults(key, kind))
        yield from ((UNKNOWN, *fault) for fault in faults.unheard_faults(key, kind))
    elif absences := [*presence_faults(row, key, facts)]:
        yield from ((ABSENT, *fault) for fault in absences)
    else:
        yield from ((INVALID, *fault) for fault in broker_rules.value_faults(row, key, value))
        for element in parse_items(str(value)) if (kind, key) == (METRICS, "match") else ():
            yield from ((MATCH_INVALID, *fault) for fault in faults.match_faults(element))


def _judge_harms(change: Change, _: Facts) -> Iterator[Finding]:
    return judge_harms(GROUP_HARMS, GROUP_KEYS.get, change)


JUDGES = (
    Judge((METRICS_UNSUPPORTED, UNSUPPORTED), _TYPES, Needs.FACTS, _judge_support),
    Judge((ABSENT, INVALID, MATCH_INVALID, MISSPELT, UNKNOWN), _TYPES, Needs.BLOCK, _judge_configs),
    Judge(
        tuple({harm.rule.id: harm.rule for row in GROUP_HARMS.values() for harm in row}.values()),
        (GROUP,),
        Needs.OBJECT,
        _judge_harms,
    ),
)
