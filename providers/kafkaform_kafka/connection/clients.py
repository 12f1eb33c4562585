"""Settings for both clients, kafka-python, which sends requests, and librdkafka, which publishes;
and which cluster a connection must lead to.

Neither client writes to the terminal or logs on the level on which it shows passwords.

A broker of another cluster can take over an address (a proxy, a DNS name, a rebuilt test cluster),
and clients open connections on their own. So the cluster id is checked on each connection before it
carries anything else, and again around each write.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from kafkaform.core.errors import ConfigurationError, ConnectError, OtherSystem
from kafkaform.core.resource import Fault
from kafkaform.core.secret import Secret
from kafkaform.provider.block_checks import is_pem
from kafkaform.provider.http import tls
from kafkaform.provider.http.tls import CertificateFault, tls_context

from .provider_block import KEYSTORE, TRUSTSTORE
from .settings import KafkaSettings

_NEEDED = "kafkaform has to know which cluster answers before it sends anything."
_ADVICE = {
    "UNSUPPORTED_VERSION": f"{_NEEDED} Upgrade brokers older than Kafka 2.8. If a proxy or another "
    "system answers at this address, it has to support DescribeCluster (API key 60).",
    # KIP-700: a broker of Apache Kafka answers without any right.
    "CLUSTER_AUTHORIZATION_FAILED": f"{_NEEDED} Kafka's own brokers answer DescribeCluster without "
    "any right, so a proxy or another system refuses it: allow it there for this principal.",
}
"""Code of the fault -> what to do."""


class ClusterProof(Struct, eq=False):
    """The cluster that one session belongs to. Several threads use it."""

    instance: str = ""
    """The provider instance, for messages."""
    expected: str | None = None
    """Id of the cluster; None before the first broker has answered, which sets it."""
    answers: dict[str, str] = field(default_factory=dict)
    """Address -> the id in its last answer."""
    # One foreign answer is enough, and no later answer takes it back: nobody knows what the other
    # cluster received in between.
    foreign: tuple[str, str] | None = None
    """Address and id of the first other cluster."""
    unproven: ConnectError | None = None
    """Why the last broker that did not say its cluster's id did not."""

    def hear(self, address: str, cluster_id: str) -> bool:
        """Record which cluster answers there. True if it is the cluster of the session."""
        self.answers[address] = cluster_id
        if self.expected is None:
            self.expected = cluster_id
        if cluster_id != self.expected and self.foreign is None:
            self.foreign = address, cluster_id
        return cluster_id == self.expected

    def miss(self, address: str, fault: Fault) -> None:
        """Record why a broker does not say its cluster's id."""
        self.unproven = make_unproven_error(address, fault)

    def refuse(self) -> None:
        """Raise OtherSystem if another cluster has answered on any connection."""
        if self.foreign is None:
            return
        address, cluster_id = self.foreign
        raise OtherSystem(
            f"{address} answers as cluster {cluster_id}, and provider instance "
            f'"{self.instance}" was opened for cluster {self.expected}',
            "Nothing more is sent, and the answers of the other cluster are ignored. Find out why "
            "this address leads there (a proxy, a DNS name, a broker that was set up again). When "
            f"cluster {self.expected} answers again, run the same command again: an apply first "
            "finds out what happened to the requests that were under way.",
        )


def make_unproven_error(address: str, fault: Fault) -> ConnectError:
    """The error for an address that does not say its cluster's id."""
    return ConnectError(
        f"{address} does not say which cluster it belongs to: {fault.message}",
        _ADVICE.get(fault.code, fault.advice),
    )


CLIENT_ID = "kafkaform"
PATIENCE = 8.0
"""Seconds to wait for the first broker."""
LOOK = 2.0
"""Seconds in which the addresses of a bootstrap list must say which cluster they lead to."""
# kafka-python's own maximum of 30 s would hide for that long that a broker is back.
RECONNECT_MS = 1000
"""The longest pause before another attempt to reach a lost broker."""

LIBRDKAFKA_LOGGER = "kafkaform.native"
# botocore logs what it signs, with the session token.
_PARENTS = ("kafka", "botocore", "boto3", LIBRDKAFKA_LOGGER)
_OFF = logging.CRITICAL + 1


def fence_logs() -> None:
    """Silence the loggers of both clients and of AWS's libraries, whatever is set for the root
    logger or for one of theirs. Our own errors say what a user has to know."""
    # At DEBUG kafka-python logs its whole configuration with the password, and each request with
    # salted SCRAM passwords. A handler of the root logger would print that on the terminal.
    for name in (*_PARENTS, *list(logging.root.manager.loggerDict)):
        if name.partition(".")[0] in _PARENTS or name == LIBRDKAFKA_LOGGER:
            logger = logging.getLogger(name)
            logger.setLevel(_OFF)
            logger.propagate = name not in _PARENTS


def make_librdkafka_config(settings: KafkaSettings) -> dict[str, Any]:
    """The settings for confluent-kafka (librdkafka)."""
    # Certificates are always verified: enable.ssl.certificate.verification and
    # ssl.endpoint.identification.algorithm keep their defaults (true, https).
    properties = {
        "bootstrap.servers": ",".join(settings.servers),
        "security.protocol": settings.protocol,
        "sasl.mechanism": settings.mechanism,
        "sasl.username": settings.username,
        "sasl.password": _reveal(settings.password),
        _pem_key("ssl.ca", settings.ca): settings.ca,
        _pem_key("ssl.certificate", settings.certificate): settings.certificate,
        _pem_key("ssl.key", _reveal(settings.key)): _reveal(settings.key),
        "ssl.key.password": _reveal(settings.passphrase),
    }
    used = {name: value for name, value in properties.items() if value is not None}
    return {**used, "client.id": CLIENT_ID}


# kafka-python refuses a request beyond this number (5 by default), which keeps a producer's records
# in order. A broker takes the requests of a connection one after the other anyway.
IN_FLIGHT = 100
"""Unanswered requests on one connection: more than all threads send at the same time."""


def make_client_config(settings: KafkaSettings) -> dict[str, Any]:
    """The settings for kafka-python. Raises ConfigurationError for bad certificates."""
    return {
        "bootstrap_servers": list(settings.servers),
        # The names with `plain` are those of SCRAM, too (KIP-84).
        "security_protocol": settings.protocol,
        "client_id": CLIENT_ID,
        "reconnect_backoff_max_ms": RECONNECT_MS,
        "max_in_flight_requests_per_connection": IN_FLIGHT,
        "sasl_mechanism": settings.mechanism,
        "sasl_plain_username": settings.username,
        "sasl_plain_password": _reveal(settings.password),
        **({"ssl_context": ssl_context(settings)} if settings.tls else {}),
    }


def refuse_two_clusters(settings: KafkaSettings, answers: Mapping[str, str]) -> None:
    """Raise ConfigurationError if the bootstrap list leads to several clusters. answers: address ->
    cluster id."""
    # Clients take any address of the list, so that each run could change another cluster.
    clusters = sorted(set(answers.values()))
    if len(clusters) < 2:
        return
    led = "; ".join(
        f"{', '.join(sorted(a for a, id_ in answers.items() if id_ == cluster))} to {cluster}"
        for cluster in clusters
    )
    raise ConfigurationError(
        f'bootstrap_servers of provider instance "{settings.instance}" leads to '
        f"{len(clusters)} clusters: {led}",
        "Name brokers of one cluster only, and give each other cluster its own "
        "provider block, with an alias.",
    )


def ssl_context(settings: KafkaSettings) -> ssl.SSLContext:
    """A TLS context that verifies the broker. Raises ConfigurationError for certificates that
    cannot be used."""
    try:
        key, passphrase = _reveal(settings.key), _reveal(settings.passphrase)
        return tls_context(settings.ca, settings.certificate, key, passphrase)
    except CertificateFault as fault:
        raise _make_certificate_error(settings, fault) from None


def _make_certificate_error(settings: KafkaSettings, fault: CertificateFault) -> ConfigurationError:
    advice = fault.advice
    if fault.form in tls.STORES:
        store = KEYSTORE if fault.attribute != tls.CA else TRUSTSTORE
        advice = f"name it in {store} instead of {fault.attribute}; or {advice}"
    return ConfigurationError(
        f'provider "{settings.instance}" cannot be used: {fault.summary}', advice
    )


def _reveal(value: str | Secret | None) -> str | None:
    """The value for a client library."""
    return value.reveal() if isinstance(value, Secret) else value


def _pem_key(prefix: str, value: str | None) -> str:
    return f"{prefix}.{'pem' if is_pem(value) else 'location'}"
