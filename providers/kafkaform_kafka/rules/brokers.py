"""Rules of dynamic configs of brokers and cluster: what a change does to clients and to brokers.

Every config of Kafka 4.3 that can be changed without a restart has a row in BROKER_HARMS, or sets a
default of topics, which `topic_configs` judges; a test checks that. Configs that need a restart
have none, because `broker_config_values` refuses them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.change import Change
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule

from ..kinds.config.resource_type import BROKER
from ..kinds.topic.configs import BROKER_CONFIG, CLUSTER_CONFIG
from .config_harms import ConfigHarm, Harms, When, judge_harms

_TYPES = (BROKER_CONFIG, CLUSTER_CONFIG)
_CLAIMS = "tests/cluster/claims/test_brokers.py"
_WORK_CLAIMS = "tests/cluster/claims/test_broker_work.py"
_REPLICA_CLAIMS = "tests/cluster/claims/test_replicas.py"
_TIERED_CLAIMS = "tests/cluster/claims/test_tiered_storage.py"


def _make_row(
    id: str,
    title: str,
    level: Level,
    harm: Harm,
    reason: str,
    example: str,
    fix: str = "",
    proof: str = "",
    file: str = _CLAIMS,
) -> Rule:
    """A row. file: with the proof."""
    proof_id = f"{file}::{proof}" if proof else ""
    return Rule(
        id,
        title,
        level,
        harm,
        _TYPES,
        Needs.OBJECT,
        reason,
        f"config = {{ {example} }}",
        fix,
        proof=proof_id,
    )


_LATER = (
    "A listener that runs keeps the setting with which it started: Kafka asks to restart the "
    "broker or to create a new listener (DynamicListenerConfig). A setting with the prefix of a "
    "listener that runs also makes the broker refuse changes of max.connections and the like."
)

# ── clients that cannot connect or log in ───────────────────────────────────────────────

CONNECTIONS_REFUSED = _make_row(
    "broker-connections-refused",
    "Connections of an address are refused",
    Level.DANGER,
    Harm.AVAILABILITY,
    "A broker closes new connections of an address that has max.connections.per.ip already "
    "(ConnectionQuotas, TooManyConnectionsException).",
    '"max.connections.per.ip" = 10',
    "Check how many connections the clients behind one address have.",
    "test_connections_of_an_address_beyond_the_limit_are_closed",
)
CONNECTIONS_WAIT = _make_row(
    "broker-connections-wait",
    "Connections wait for others to end",
    Level.DANGER,
    Harm.AVAILABILITY,
    "A broker with max.connections accepts no further one until another ends (KIP-402, "
    "ConnectionQuotas.waitForConnectionSlot); those of the listener between brokers go first.",
    '"max.connections" = 100',
    "Check how many connections the broker has.",
    "test_connections_beyond_the_limit_of_a_broker_wait",
)
CONNECTION_RATE_CUT = _make_row(
    "broker-connection-rate-cut",
    "Clients wait when they connect",
    Level.CAUTION,
    Harm.THROUGHPUT,
    "A broker delays the acceptance of connections beyond max.connection.creation.rate (KIP-612).",
    '"max.connection.creation.rate" = 10',
    fix="Choose a limit above the rate at which clients connect after a restart.",
    proof="test_connections_beyond_the_rate_wait",
)
LISTENERS_CHANGED = _make_row(
    "broker-listeners-changed",
    "A listener gets another address",
    Level.CAUTION,
    Harm.AVAILABILITY,
    "A broker opens and closes listeners by their names: one that gets another address keeps the "
    "old one while the broker runs (DynamicListenerConfig.reconfigure). A listener that is "
    "advertised cannot be removed.",
    '"listeners" = "PLAINTEXT://:9093"   # was PLAINTEXT://:9092',
    "Add a listener for the new address, and move the clients to it.",
    "test_a_listener_that_runs_keeps_its_address",
)
PRINCIPALS_CHANGED = _make_row(
    "broker-principals-changed",
    "Logins get other principals",
    Level.CAUTION,
    Harm.ACCESS_LOST,
    f"The builder makes the principal of a login, which ACLs and quotas name (KIP-189). {_LATER}",
    '"principal.builder.class" = "com.example.Builder"',
    "Make sure that the builder gives the principals that ACLs and quotas name.",
    proof="test_listeners_that_run_keep_their_logins",
)
MECHANISM_REMOVED = _make_row(
    "broker-mechanism-removed",
    "Clients with a mechanism cannot log in",
    Level.CAUTION,
    Harm.ACCESS_LOST,
    f"A listener refuses a mechanism that is not enabled. {_LATER}",
    '"listener.name.sasl.sasl.enabled.mechanisms" = "SCRAM-SHA-512"',
    "Move the clients to another mechanism first.",
    proof="test_listeners_that_run_keep_their_logins",
)
LOGIN_CHANGED = _make_row(
    "broker-login-changed",
    "Clients may be unable to log in as before",
    Level.CAUTION,
    Harm.ACCESS_LOST,
    f"It decides who can log in, and as whom (JaasContext, SaslChannelBuilder). {_LATER}",
    '"sasl.kerberos.principal.to.local.rules" = "DEFAULT"',
    "Try the login of a client against one broker first.",
    proof="test_listeners_that_run_keep_their_users_and_the_life_of_a_login",
)
PEERS_CHANGED = _make_row(
    "broker-peer-login-changed",
    "Brokers log in to each other in another way",
    Level.DANGER,
    Harm.AVAILABILITY,
    "A broker that cannot log in to another one replicates nothing from it. It uses the new login "
    "once it begins to replicate from another broker; what it replicates already goes on.",
    '"sasl.mechanism.inter.broker.protocol" = "SCRAM-SHA-512"',
    "Enable the mechanism on the listener between brokers first.",
    "test_a_broker_that_cannot_log_in_to_another_replicates_nothing_from_it",
    _REPLICA_CLAIMS,
)
REAUTHENTICATION_SHORTENED = _make_row(
    "broker-reauthentication-shortened",
    "Clients must log in again more often",
    Level.CAUTION,
    Harm.AVAILABILITY,
    "A broker disconnects a client that goes on after that time without a new login (KIP-368); "
    f"clients before Kafka 2.2 cannot log in again on a connection. {_LATER}",
    '"listener.name.sasl.plain.connections.max.reauth.ms" = 60000',
    "Make sure that all clients are of Kafka 2.2 or newer.",
    proof="test_listeners_that_run_keep_their_users_and_the_life_of_a_login",
)
STORE_CHANGED = _make_row(
    "broker-store-changed",
    "A listener gets another key store or trust store",
    Level.DANGER,
    Harm.AVAILABILITY,
    "The listener uses it for new connections at once (KIP-226, SslFactory.reconfigure), and the "
    "handshake fails where one side does not trust the other.",
    '"listener.name.tls.ssl.keystore.location" = "/etc/kafka/new.pem"',
    "Change one broker first, and connect a client to it.",
    proof="test_a_new_key_store_is_used_at_once",
)
TLS_CHANGED = _make_row(
    "broker-tls-changed",
    "Clients may have no TLS setting in common with the broker",
    Level.CAUTION,
    Harm.AVAILABILITY,
    "The handshake fails for a client that has no protocol or cipher suite in common with the "
    f"broker. {_LATER}",
    '"listener.name.tls.ssl.enabled.protocols" = "TLSv1.3"',
    "Try a client against one broker first.",
    "test_listeners_that_run_keep_their_logins",
)
CERTIFICATE_REQUIRED = _make_row(
    "broker-certificate-required",
    "Clients without a certificate are refused",
    Level.CAUTION,
    Harm.AVAILABILITY,
    "With ssl.client.auth = required, the handshake fails without a certificate that the broker "
    f"trusts. {_LATER}",
    '"ssl.client.auth" = "required"',
    "Give all clients certificates first.",
    proof="test_listeners_that_run_keep_their_logins",
)
CERTIFICATE_OPTIONAL = _make_row(
    "broker-certificate-optional",
    "Clients without a certificate can connect",
    Level.CAUTION,
    Harm.ACCESS_GAINED,
    "Without a certificate, the principal of a TLS connection is User:ANONYMOUS "
    f"(DefaultKafkaPrincipalBuilder). {_LATER}",
    '"ssl.client.auth" = "none"   # was required',
    "Make sure that no ACL allows User:* or User:ANONYMOUS what must not be open.",
    proof="test_listeners_that_run_keep_their_logins",
)

# ── records and their order ─────────────────────────────────────────────────────────────

PRODUCERS_FORGOTTEN = _make_row(
    "broker-producers-forgotten",
    "Brokers forget silent producers earlier",
    Level.CAUTION,
    Harm.ORDERING,
    "Brokers find a repeated batch by the producer's id and sequence, which they keep for "
    "producer.id.expiration.ms (KIP-854).",
    '"producer.id.expiration.ms" = 60000',
    fix="Keep the time longer than the longest pause of an idempotent producer.",
    proof="test_a_producer_that_is_forgotten_writes_a_record_twice",
    file=_WORK_CLAIMS,
)
TRANSACTIONS_UNVERIFIED = _make_row(
    "broker-transactions-unverified",
    "Brokers no longer verify transactions",
    Level.CAUTION,
    Harm.ORDERING,
    "A late record of a transaction that has ended begins one that nobody ends, and consumers with "
    "read_committed wait for it (KIP-890).",
    '"transaction.partition.verification.enable" = false',
    "Keep true.",
    proof="test_without_verification_a_late_record_begins_a_transaction_that_nobody_ends",
    file=_WORK_CLAIMS,
)

# ── work of brokers ─────────────────────────────────────────────────────────────────────

THREADS_REMOVED = _make_row(
    "broker-threads-removed",
    "Brokers have fewer threads",
    Level.CAUTION,
    Harm.THROUGHPUT,
    "Requests, replicas and copies wait for a free thread (DynamicThreadPool).",
    '"num.io.threads" = 4',
    fix="Check the idle ratio of the threads before, and lower the number in small steps.",
    proof="test_a_lower_number_ends_threads_at_once",
    file=_WORK_CLAIMS,
)
REPLICATION_THROTTLED = _make_row(
    "broker-replication-throttled",
    "Replicas get less of the network or disk",
    Level.CAUTION,
    Harm.THROUGHPUT,
    "The limit counts for the replicas that topics name as throttled (KIP-73), and for copies "
    "between disks of a broker (KIP-113). Before Kafka 3.9, one of all brokers has no effect "
    "(KAFKA-10190).",
    '"leader.replication.throttled.rate" = 1048576',
    "Set a rate above what producers write, or replicas never catch up.",
    "test_a_rate_slows_the_copies_that_topics_name",
    _REPLICA_CLAIMS,
)
REMOTE_STORAGE_THROTTLED = _make_row(
    "broker-remote-storage-throttled",
    "Remote storage gets less of the network",
    Level.CAUTION,
    Harm.THROUGHPUT,
    "The limit counts for each broker (KIP-956).",
    '"remote.log.manager.copy.max.bytes.per.second" = 1048576',
    fix="Choose a limit above the rate at which segments are written, or copies fall behind.",
    proof="test_a_lower_rate_delays_copies_to_remote_storage",
    file=_TIERED_CLAIMS,
)
DISKS_CORDONED = _make_row(
    "broker-disks-cordoned",
    "New partitions go to fewer disks",
    Level.CAUTION,
    Harm.CAPACITY,
    "A broker places no new partition in a cordoned log directory (KIP-1066).",
    '"cordoned.log.dirs" = "/data/1"',
    fix="Check that the other log directories have room for new partitions.",
    proof="test_a_cordoned_disk_gets_no_new_partitions",
    file=_WORK_CLAIMS,
)


# ── the table ───────────────────────────────────────────────────────────────────────────

_SECOND = "get at most {new}"
_KEPT = "; listeners that run keep their setting"
_CONNECTIVITY: Harms = {
    "max.connections": (
        ConfigHarm(
            CONNECTIONS_WAIT, When.LOWERED, "connections beyond {new} wait until others end"
        ),
    ),
    "max.connections.per.ip": (
        ConfigHarm(
            CONNECTIONS_REFUSED,
            When.LOWERED,
            "connections of an address beyond {new} are refused",
        ),
    ),
    "max.connections.per.ip.overrides": (
        ConfigHarm(
            CONNECTIONS_REFUSED,
            When.CHANGED,
            "connections beyond the new limits of these addresses are refused",
        ),
    ),
    "max.connection.creation.rate": (
        ConfigHarm(
            CONNECTION_RATE_CUT,
            When.LOWERED,
            "new connections beyond {new} a second wait",
        ),
    ),
    "listeners": (
        ConfigHarm(
            LISTENERS_CHANGED,
            When.REMOVED,
            f"clients that know only {{gone}} cannot connect{_KEPT}",
        ),
    ),
}
_LOGINS: Harms = {
    "principal.builder.class": (
        ConfigHarm(
            PRINCIPALS_CHANGED, When.CHANGED, f"clients can get principals that no ACL names{_KEPT}"
        ),
    ),
    "sasl.enabled.mechanisms": (
        ConfigHarm(
            MECHANISM_REMOVED, When.REMOVED, f"clients that log in with {{gone}} are refused{_KEPT}"
        ),
    ),
    **{
        name: (
            ConfigHarm(
                LOGIN_CHANGED, When.CHANGED, f"clients may be unable to log in as before{_KEPT}"
            ),
        )
        for name in (
            *("sasl.jaas.config", "sasl.kerberos.principal.to.local.rules"),
            *("sasl.kerberos.service.name", "sasl.login.callback.handler.class"),
            *("sasl.login.class", "sasl.server.callback.handler.class"),
        )
    },
    "sasl.mechanism.inter.broker.protocol": (
        ConfigHarm(
            PEERS_CHANGED,
            When.CHANGED,
            "brokers that cannot log in to each other no longer replicate",
        ),
    ),
    "connections.max.reauth.ms": (
        ConfigHarm(
            REAUTHENTICATION_SHORTENED,
            When.LOWERED,
            f"clients that do not log in again within {{new}} are disconnected{_KEPT}",
            unlimited="0",
        ),
    ),
}
_TLS: Harms = {
    "ssl.client.auth": (
        ConfigHarm(
            CERTIFICATE_REQUIRED,
            When.BECOMES,
            f"clients without a certificate are refused{_KEPT}",
            "required",
        ),
        ConfigHarm(
            CERTIFICATE_OPTIONAL,
            When.LEAVES,
            f"clients without a certificate can connect{_KEPT}",
            "required",
        ),
    ),
    "ssl.enabled.protocols": (
        ConfigHarm(
            TLS_CHANGED, When.REMOVED, f"clients that have only {{gone}} cannot connect{_KEPT}"
        ),
    ),
    **{
        name: (
            ConfigHarm(
                TLS_CHANGED,
                When.CHANGED,
                f"clients that do not support the new setting cannot connect{_KEPT}",
            ),
        )
        for name in (
            *("ssl.cipher.suites", "ssl.endpoint.identification.algorithm"),
            *("ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.protocol"),
            *("ssl.provider", "ssl.trustmanager.algorithm"),
        )
    },
    **{
        name: (
            ConfigHarm(
                STORE_CHANGED,
                When.CHANGED,
                "clients that do not trust the broker's certificate cannot connect",
            ),
        )
        for name in (
            *("ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key"),
            *("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type"),
        )
    },
    **{
        name: (
            ConfigHarm(
                STORE_CHANGED,
                When.CHANGED,
                "clients whose certificate the broker does not trust any more cannot connect",
            ),
        )
        for name in (
            *("ssl.truststore.certificates", "ssl.truststore.location"),
            *("ssl.truststore.password", "ssl.truststore.type"),
        )
    },
}
_WORK: Harms = {
    "producer.id.expiration.ms": (
        ConfigHarm(
            PRODUCERS_FORGOTTEN,
            When.LOWERED,
            "a producer that is silent for {new} may write a record twice",
        ),
    ),
    "transaction.partition.verification.enable": (
        ConfigHarm(
            TRANSACTIONS_UNVERIFIED,
            When.BECOMES,
            "a transaction that was aborted late can hang",
            "false",
        ),
    ),
    **{
        name: (ConfigHarm(THREADS_REMOVED, When.LOWERED, "clients and replicas wait longer"),)
        for name in (
            *("background.threads", "num.io.threads", "num.network.threads"),
            *("num.replica.fetchers", "remote.log.manager.copier.thread.pool.size"),
            *("remote.log.manager.follower.thread.pool.size", "remote.log.reader.threads"),
        )
    },
    **{
        name: (ConfigHarm(REPLICATION_THROTTLED, When.LOWERED, f"replicas and moves {_SECOND}"),)
        for name in (
            *("follower.replication.throttled.rate", "leader.replication.throttled.rate"),
            "replica.alter.log.dirs.io.max.bytes.per.second",
        )
    },
    **{
        name: (
            ConfigHarm(
                REMOTE_STORAGE_THROTTLED, When.LOWERED, f"transfers of remote storage {_SECOND}"
            ),
        )
        for name in (
            "remote.log.manager.copy.max.bytes.per.second",
            "remote.log.manager.fetch.max.bytes.per.second",
        )
    },
    "cordoned.log.dirs": (
        ConfigHarm(
            DISKS_CORDONED,
            When.CHANGED,
            "new partitions go only to the other log directories",
        ),
    ),
}

# A change of these affects only how busy brokers are; it harms neither data nor clients. Brokers
# refuse another protocol for a listener that runs.
HARMLESS = frozenset(
    """
    compression.gzip.level compression.lz4.level compression.zstd.level
    config.providers follower.fetch.last.tiered.offset.enable
    group.consumer.assignment.interval.ms group.coordinator.cached.buffer.max.bytes
    group.share.assignment.interval.ms group.streams.assignment.interval.ms
    listener.security.protocol.map log.cleaner.backoff.ms
    log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
    log.cleaner.io.max.bytes.per.second log.cleaner.threads metric.reporters
    num.recovery.threads.per.data.dir remote.fetch.max.wait.ms
    remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.manager.expiration.thread.pool.size sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter share.coordinator.cached.buffer.max.bytes
    ssl.secure.random.implementation
    """.split()  # noqa: SIM905  # a list of words is read more easily than one of strings
)

BROKER_HARMS: Harms = {
    **_CONNECTIVITY,
    **_LOGINS,
    **_TLS,
    **_WORK,
    **dict.fromkeys(HARMLESS, ()),
}


def _judge(change: Change, _: Facts) -> Iterator[Finding]:
    return judge_harms(BROKER_HARMS, BROKER.find, change)


JUDGES = (
    Judge(
        tuple({harm.rule.id: harm.rule for row in BROKER_HARMS.values() for harm in row}.values()),
        _TYPES,
        Needs.OBJECT,
        _judge,
    ),
)
