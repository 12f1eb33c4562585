"""The rows of `broker_configs` and `group_configs`: configs that brokers, the cluster, groups and
client metrics have."""

from __future__ import annotations

from kafkaform.core.finding import Block, Harm, Level
from kafkaform.core.rule import Needs, Rule

BROKER, CLUSTER = "kafka_broker_config", "kafka_cluster_config"
GROUP, METRICS = "kafka_group_config", "kafka_client_metrics"
SERVERS = (BROKER, CLUSTER)
TYPES = (BROKER, CLUSTER, GROUP, METRICS)
_PROOFS = "tests/cluster/claims/test_brokers.py"


def _make_block(
    id: str,
    title: str,
    needs: Needs,
    why: str,
    example: str,
    fix: str,
    types: tuple[str, ...] = SERVERS,
    proof: str = "",
) -> Rule:
    return Rule(
        id,
        title,
        Level.BLOCK,
        Harm.NONE,
        types,
        needs,
        why,
        example,
        fix,
        Block.IMPOSSIBLE,
        proof=f"{_PROOFS}::{proof}" if proof else "",
    )


UNKNOWN = _make_block(
    "broker-config-unknown",
    "Brokers do not know the config",
    Needs.BLOCK,
    "A broker takes any name, because plugins can read it, and reports an unknown one as "
    "sensitive, so its value can never be compared (DynamicBrokerConfig).",
    'config = { "log.retention.mss" = "1000" }',
    "Correct the name. If a plugin reads it, put it into secret_config.",
    proof="test_a_config_that_no_broker_knows_is_sensitive",
)
SECRET_MISPLACED = _make_block(
    "broker-config-secret-misplaced",
    "A secret is in config, or a plain value in secret_config",
    Needs.BLOCK,
    "Values of config are recorded and shown; values of secret_config never are.",
    'config = { "ssl.keystore.password" = "…" }',
    "Put secrets into secret_config, by reference, and all other values into config.",
)
READ_ONLY = _make_block(
    "broker-config-read-only",
    "The config is read only at startup",
    Needs.BLOCK,
    "Only some configs are dynamic (KIP-226): INVALID_REQUEST (42), Cannot update these configs "
    "dynamically.",
    'config = { "log.dirs" = "/data" }',
    "Set it in server.properties, restart the brokers one after the other, and remove it from the "
    "block.",
    proof="test_a_config_that_is_read_at_startup_is_refused",
)
WRONG_LEVEL = _make_block(
    "broker-config-wrong-level",
    "The config belongs to another level",
    Needs.BLOCK,
    "Listeners, keys and disks belong to one broker, and some of their configs to one listener "
    "(KIP-226): INVALID_REQUEST (42).",
    'kafka_cluster_config "all" { config = { "ssl.keystore.location" = "…" } }',
    "Set it in a kafka_broker_config for each broker.",
    proof="test_configs_of_listeners_are_refused_for_all_brokers",
)
ONE_FOR_ALL = _make_block(
    "broker-config-elr",
    "Eligible leader replicas need one number for all brokers",
    Needs.FACTS,
    "The controller computes eligible leader replicas with one min.insync.replicas (KIP-966): "
    "INVALID_CONFIG (40).",
    'kafka_broker_config "one" { config = { "min.insync.replicas" = "2" } }',
    "Set it in kafka_cluster_config, or for single topics.",
    (BROKER,),
)
VALUE_INVALID = _make_block(
    "broker-config-value-invalid",
    "No broker takes the value",
    Needs.BLOCK,
    "Each config has a type and a range (ConfigDef): INVALID_CONFIG (40).",
    'config = { "num.io.threads" = "many" }',
    "Correct the value.",
    TYPES,
    "test_values_out_of_range_are_refused",
)
ABSENT = _make_block(
    "broker-config-absent",
    "The brokers of this cluster do not have the config",
    Needs.FACTS,
    "Configs come and go with releases of Kafka.",
    'config = { "log.message.downconversion.enable" = "false" }   # gone in Kafka 4.0',
    "Remove it from the block.",
    TYPES,
)
UNSUPPORTED = _make_block(
    "broker-config-unsupported",
    "The cluster cannot have such configs",
    Needs.FACTS,
    "Configs of groups need KIP-848, subscriptions to client metrics need KIP-714 and KRaft.",
    'kafka_client_metrics "all" { … }   # Kafka 3.6',
    "Upgrade the cluster, or remove the block.",
    (GROUP, METRICS),
)
NAME_UNKNOWN = _make_block(
    "broker-config-misspelt",
    "The name looks like a known config",
    Needs.BLOCK,
    "Kafka has a table of the configs of groups and of client metrics, and refuses all others: "
    "INVALID_CONFIG (40).",
    'kafka_group_config "app" { config = { "consumer.sesion.timeout.ms" = "45000" } }',
    "Correct the name.",
    (GROUP, METRICS),
)
MATCH_INVALID = _make_block(
    "client-metrics-match-invalid",
    "An element of match selects nothing",
    Needs.BLOCK,
    "Each element is NAME=PATTERN with a known NAME (KIP-714, ClientMetricsConfigs): "
    "INVALID_CONFIG (40).",
    'config = { match = "client=app" }',
    "Write NAME=PATTERN.",
    (METRICS,),
)
EMPTY_BLOCK = _make_block(
    "broker-config-empty",
    "The block has no config",
    Needs.BLOCK,
    "Such an object exists only as long as it has configs of its own.",
    'kafka_cluster_config "all" { config = {} }',
    "Name at least one config, or remove the block.",
    TYPES,
)
NEWER = Rule(
    "broker-config-newer",
    "This version does not know the config",
    Level.CAUTION,
    Harm.NONE,
    (GROUP, METRICS),
    Needs.BLOCK,
    "A newer broker can have it; one that does not know it refuses it in the dry run.",
    'kafka_group_config "app" { config = { "consumer.new.feature" = "1" } }',
    "Make sure that your brokers know it.",
)
SECRET_UNKNOWN = Rule(
    "broker-config-secret-unknown",
    "Brokers do not know the secret config",
    Level.CAUTION,
    Harm.NONE,
    SERVERS,
    Needs.BLOCK,
    "Brokers pass unknown configs to plugins without a check and never reveal their values.",
    'secret_config = { "my.plugin.password" = secret_env("P") }',
    "Make sure that a plugin reads it.",
)
SECRET_LOST = Rule(
    "broker-config-secret-lost",
    "A secret is removed that nobody can restore",
    Level.CAUTION,
    Harm.ONE_WAY,
    SERVERS,
    Needs.OBJECT,
    "A broker never reveals the value of a secret, so nobody can read it before it is removed.",
    'kafka_broker_config "one" { … }   # without a secret that is set',
    'Declare it in secret_config, or set config_mode = "additive", to keep it.',
)


def _make_harm(
    id: str, title: str, harm: Harm, why: str, example: str, fix: str = "", proof: str = ""
) -> Rule:
    level = Level.DANGER if harm in (Harm.ACCESS_LOST, Harm.AVAILABILITY) else Level.CAUTION
    place = f"{_PROOFS}::{proof}" if proof else ""
    change = f"config = {{ {example} }}"
    return Rule(id, title, level, harm, SERVERS, Needs.OBJECT, why, change, fix, proof=place)


CONNECTIONS_REFUSED = _make_harm(
    "broker-connections-refused",
    "Fewer connections are allowed",
    Harm.ACCESS_LOST,
    "A broker closes a connection beyond max.connections.per.ip at once, and stops to accept new "
    "ones beyond max.connections (ConnectionQuotas in SocketServer).",
    '"max.connections.per.ip" = "10"   # was 2147483647',
    "Keep the limit above what clients need.",
    "test_connections_beyond_the_limit_are_closed",
)
ADDRESSES_CHANGED = _make_harm(
    "broker-addresses-changed",
    "Brokers listen elsewhere",
    Harm.ACCESS_LOST,
    "A client connects to an address that it knows or that Metadata returns.",
    '"listeners" = "SASL_SSL://:9094"   # was :9093',
    "Add the new listener first, and remove the old one when nobody uses it.",
)
PRINCIPALS_CHANGED = _make_harm(
    "broker-principals-changed",
    "Clients can get other principals",
    Harm.ACCESS_LOST,
    "The builder makes a principal of a login (KIP-189), and ACLs name principals.",
    '"principal.builder.class" = "com.example.Builder"',
    "Create ACLs for the new principals first.",
)
LOGINS_CHANGED = _make_harm(
    "broker-logins-changed",
    "Clients may be unable to log in as before",
    Harm.ACCESS_LOST,
    "A broker refuses a login whose mechanism or credentials it does not have any more.",
    '"sasl.enabled.mechanisms" = "SCRAM-SHA-512"   # was PLAIN,SCRAM-SHA-512',
    "Move the clients to another login first.",
)
LOGINS_EXPIRE = _make_harm(
    "broker-logins-expire",
    "Clients must log in again earlier",
    Harm.ACCESS_LOST,
    "A broker closes connections of clients that do not log in again in time (KIP-368); clients "
    "before Kafka 2.2 cannot.",
    '"connections.max.reauth.ms" = "60000"   # was 0',
    "Make sure that all clients can log in again.",
)
TLS_CHANGED = _make_harm(
    "broker-tls-changed",
    "Clients that do not support the new TLS setting are refused",
    Harm.ACCESS_LOST,
    "A TLS handshake needs a version, a cipher and certificates that both sides accept.",
    '"ssl.client.auth" = "required"   # was none',
    "Check what clients use first.",
)
INTER_BROKER_LOGIN_CHANGED = _make_harm(
    "broker-inter-broker-login-changed",
    "Brokers log in to each other in another way",
    Harm.AVAILABILITY,
    "A broker that cannot log in to the others does not replicate.",
    '"sasl.mechanism.inter.broker.protocol" = "PLAIN"',
    "Enable the mechanism on all brokers first.",
)
PRODUCER_IDS_EXPIRE = _make_harm(
    "broker-producer-ids-expire",
    "Brokers forget producers earlier",
    Harm.ORDERING,
    "A broker forgets the sequence numbers of a producer that is silent that long, so a repeated "
    "record is written twice (KIP-679).",
    '"producer.id.expiration.ms" = "60000"   # was 86400000',
)
TRANSACTIONS_UNVERIFIED = _make_harm(
    "broker-transactions-unverified",
    "Transactions are not verified",
    Harm.ORDERING,
    "Without the check, a record that arrives after its transaction was aborted makes one that "
    "never ends (KIP-890).",
    '"transaction.partition.verification.enable" = "false"',
)
CONNECTIONS_SLOWED = _make_harm(
    "broker-connections-slowed",
    "Clients connect more slowly",
    Harm.THROUGHPUT,
    "A broker delays new connections beyond the rate (KIP-612).",
    '"max.connection.creation.rate" = "10"',
)
THREADS_REDUCED = _make_harm(
    "broker-threads-reduced",
    "Brokers have fewer threads",
    Harm.THROUGHPUT,
    "Requests and replication wait for a free thread.",
    '"num.io.threads" = "2"   # was 8',
)
REPLICATION_SLOWED = _make_harm(
    "broker-replication-slowed",
    "Replicas and moves get less throughput",
    Harm.THROUGHPUT,
    "A throttle limits the replicas that are listed as throttled (KIP-73), and copies between "
    "disks (KIP-113).",
    '"leader.replication.throttled.rate" = "1048576"',
)
REMOTE_SLOWED = _make_harm(
    "broker-remote-transfers-slowed",
    "Remote storage gets less throughput",
    Harm.THROUGHPUT,
    "A quota limits what a broker copies to and fetches from remote storage (KIP-956).",
    '"remote.log.manager.copy.max.bytes.per.second" = "1048576"',
)
DISKS_CORDONED = _make_harm(
    "broker-disks-cordoned",
    "New partitions go to fewer log directories",
    Harm.CAPACITY,
    "A broker places no new partition in a cordoned directory (KIP-1066).",
    '"cordoned.log.dirs" = "/data2"',
)


def _make_group_harm(
    id: str, title: str, harm: Harm, why: str, example: str, level: Level = Level.CAUTION
) -> Rule:
    change = f"config = {{ {example} }}"
    return Rule(id, title, level, harm, (GROUP,), Needs.OBJECT, why, change)


MEMBERS_REMOVED = _make_group_harm(
    "group-members-removed",
    "Silent members are removed earlier",
    Harm.THROUGHPUT,
    "A coordinator removes a member that sends no heartbeat in time, and the group rebalances "
    "(KIP-848).",
    '"consumer.session.timeout.ms" = "10000"   # was 45000',
)
OFFSETS_RESET = _make_group_harm(
    "group-offsets-reset",
    "A new share group starts at another offset",
    Harm.ORDERING,
    "share.auto.offset.reset decides where a share group without offsets begins (KIP-932).",
    '"share.auto.offset.reset" = "earliest"   # was latest',
)
RECORDS_SKIPPED = _make_group_harm(
    "group-records-skipped",
    "Records are given up earlier",
    Harm.ORDERING,
    "A share group archives a record after that many deliveries without an acknowledgement "
    "(KIP-932).",
    '"share.delivery.count.limit" = "2"   # was 5',
)
ISOLATION_CHANGED = _make_group_harm(
    "group-isolation-changed",
    "Members get other records of transactions",
    Harm.ORDERING,
    "read_committed hides records of open and aborted transactions (KIP-932).",
    '"share.isolation.level" = "read_uncommitted"',
)
LOCKS_REDUCED = _make_group_harm(
    "group-locks-reduced",
    "Members get fewer records at a time",
    Harm.THROUGHPUT,
    "A partition has at most that many records in flight (KIP-932).",
    '"share.partition.max.record.locks" = "200"   # was 2000',
)
RECORDS_REPEATED = _make_group_harm(
    "group-records-repeated",
    "Slow records are given to another member as well",
    Harm.ORDERING,
    "A record whose lock ends before its acknowledgement is delivered again (KIP-932).",
    '"share.record.lock.duration.ms" = "15000"   # was 30000',
)
STANDBYS_REDUCED = _make_group_harm(
    "group-standbys-reduced",
    "Tasks continue later after a failure",
    Harm.AVAILABILITY,
    "A task without a standby restores its state before it continues (KIP-1071).",
    '"streams.num.standby.replicas" = "0"   # was 1',
    Level.DANGER,
)
