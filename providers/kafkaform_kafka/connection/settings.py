"""What a provider block means: where to connect, as which user, and how; the same for both clients,
kafka-python, which sends requests, and librdkafka, which publishes; and which cluster a connection
must lead to.

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

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.errors import ConfigurationError, ConnectError, OtherSystem
from kafkaform.core.resource import Fault
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef
from kafkaform.provider.block_checks import is_pem, parse_seconds
from kafkaform.provider.http import tls
from kafkaform.provider.http.tls import CertificateFault, tls_context

from ..protocol.config_keys import parse_size
from ..protocol.rates import ReplicaLimits
from . import provider_block
from .login_attributes import (
    AWS_MECHANISM,
    KERBEROS_SPELLINGS,
    SESSION_NAME,
    AwsLogin,
    KerberosSettings,
    find_region,
    read_kerberos,
)
from .provider_block import (
    DEFAULT_TIMEOUT,
    KEYSTORE,
    MECHANISMS,
    TRUSTSTORE,
    WITHOUT_PASSWORD,
    check,
    derive_protocol,
    list_servers,
)


class KafkaSettings(Struct, frozen=True):
    """A provider block without faults, with its secrets."""

    instance: str
    servers: tuple[str, ...]
    """host:port of the brokers to ask first."""
    protocol: str
    """One of PROTOCOLS."""
    mechanism: str | None = None
    username: str | None = None
    password: Secret | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | Secret | None = None
    """A path, or PEM text as a secret."""
    passphrase: Secret | None = None
    timeout: float = DEFAULT_TIMEOUT
    """Seconds that the cluster can take for one request."""
    principal: str | None = None
    cluster_id: str | None = None
    """The only cluster that may answer."""
    acl_order: str = "create_first"
    protect_topics: bool = True
    authorizer: FrozenMap = EMPTY
    reassignment_throttle: int | None = None
    """Bytes per second and broker."""
    rates: FrozenMap | UnsetType = UNSET
    """The block, as `protocol.rates.read_rates` takes it."""
    limits: ReplicaLimits | UnsetType = UNSET
    profile: str | None = None
    """One of `vendors.names.PROFILES`; None: to be found."""
    token_url: str | None = None
    token_file: str | None = None
    scopes: tuple[str, ...] = ()
    token_auth: bool = False
    """username and password are those of a delegation token."""
    kerberos: KerberosSettings | None = None
    aws_login: AwsLogin | None = None
    """Set if AWS credentials sign the token."""

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")


def read_settings(instance: str, config: FrozenMap, secrets: Mapping[str, Secret]) -> KafkaSettings:
    """The settings that a provider block means. secrets: str(SecretRef) -> the secret. Raises
    ConfigurationError with all faults."""
    references = {n: value for n, value in config.items() if isinstance(value, SecretRef)}
    block: dict[str, Any] = {**config, **{n: secrets.get(str(r)) for n, r in references.items()}}
    faults = [fault for _, fault in check(block) if fault.severity is Severity.ERROR]
    faults += [
        Diagnostic(
            Severity.ERROR,
            f"{name} refers to {reference}, which has no value",
            advice="set it and run the command again",
        )
        for name, reference in references.items()
        if str(reference) not in secrets
    ]
    if faults:
        raise _make_refusal(instance, faults)
    if block.get(provider_block.TRUSTSTORE) or block.get(provider_block.KEYSTORE):
        block.update(_open_stores(instance, block))
    protocol = derive_protocol(block)
    # PEM text of a key is always a secret, also in an attribute that is not one; a path is not.
    key = block.get("client_key") or None
    login: dict[str, Any] = {
        "mechanism": MECHANISMS[block.get("sasl_mechanism") or "PLAIN"],
        "username": block.get("sasl_username") or None,
        "password": _to_secret(block.get("sasl_password")),
        "token_url": block.get("sasl_token_url") or None,
        "token_file": block.get("sasl_token_file") or None,
        "scopes": tuple(block.get("sasl_oauth_scopes") or ()),
        "token_auth": block.get("sasl_token_auth") is True,
    }
    if block.get("sasl_mechanism") in KERBEROS_SPELLINGS:
        login["kerberos"] = read_kerberos(block)
    servers = list_servers(block)
    if block.get("sasl_mechanism") == AWS_MECHANISM:
        login["aws_login"] = _read_aws_login(block, servers)
    return KafkaSettings(
        instance=instance,
        servers=servers,
        protocol=protocol,
        **(login if protocol.startswith("SASL") else {}),
        ca=block.get("ca_cert") or None,
        certificate=block.get("client_cert") or None,
        key=Secret(key) if isinstance(key, str) and is_pem(key) else key,
        passphrase=_to_secret(block.get("client_key_passphrase")),
        timeout=parse_seconds(block.get("operation_timeout")) or DEFAULT_TIMEOUT,
        principal=_derive_principal(block, protocol),
        cluster_id=block.get("cluster_id") or None,
        acl_order=block.get("acl_order") or "create_first",
        protect_topics=block.get("protect_topics") is not False,
        authorizer=block.get("authorizer") or EMPTY,
        reassignment_throttle=parse_size(block.get("reassignment_throttle")),
        profile=block.get("profile") or None,
        rates=block.get("rates") or UNSET,
        limits=ReplicaLimits(**block["limits"]) if block.get("limits") else UNSET,
    )


def _read_aws_login(block: Mapping[str, Any], servers: tuple[str, ...]) -> AwsLogin:
    return AwsLogin(
        # The host name first: AWS_REGION is where this computer is, which can be elsewhere.
        region=block.get("sasl_aws_region") or find_region(servers),
        profile=block.get("sasl_aws_profile") or None,
        access_key=block.get("sasl_aws_access_key") or None,
        secret_key=_to_secret(block.get("sasl_aws_secret_key")),
        session_token=_to_secret(block.get("sasl_aws_token")),
        role=block.get("sasl_aws_role_arn") or None,
        session_name=block.get("sasl_aws_role_session_name") or SESSION_NAME,
        external_id=block.get("sasl_aws_external_id") or None,
    )


def _open_stores(instance: str, block: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the content of Java's key stores means in other attributes. Raises
    ConfigurationError."""
    from .key_stores import StoreFault, read_key_pair, read_trusted  # noqa: PLC0415  # few provider blocks name a store

    attributes: dict[str, Any] = {}
    try:
        if block.get(provider_block.TRUSTSTORE):
            password = _to_secret(block.get(provider_block.TRUSTSTORE_PASSWORD))
            attributes["ca_cert"] = read_trusted(block[provider_block.TRUSTSTORE], password)
        if block.get(provider_block.KEYSTORE):
            password = _to_secret(block.get(provider_block.KEYSTORE_PASSWORD))
            key_pair = read_key_pair(
                block[provider_block.KEYSTORE],
                password,
                _to_secret(block.get("client_key_passphrase")),
            )
            attributes |= {"client_cert": key_pair.chain, "client_key": key_pair.key}
            attributes["client_key_passphrase"] = None
    except StoreFault as fault:
        item = Diagnostic(Severity.ERROR, fault.summary, advice=fault.advice)
        raise _make_refusal(instance, [item]) from None
    return attributes


def _to_secret(value: str | Secret | None) -> Secret | None:
    """The value as a secret, None if it is empty."""
    return (Secret(value) if isinstance(value, str) else value) or None


def _derive_principal(block: Mapping[str, Any], protocol: str) -> str | None:
    """The declared principal, or the one that PLAIN and SCRAM give to this user."""
    # For certificates, tokens and tickets only the broker knows it (ssl.principal.mapping.rules,
    # principal.builder.class, sasl.oauthbearer.sub.claim.name,
    # sasl.kerberos.principal.to.local.rules). A delegation token stands for its owner.
    foreign = block.get("sasl_mechanism") in WITHOUT_PASSWORD or block.get("sasl_token_auth")
    if block.get("principal") or foreign:
        return block.get("principal") or None
    name = block.get("sasl_username")
    return f"User:{name}" if name and protocol.startswith("SASL") else None


def _make_refusal(instance: str, faults: list[Diagnostic]) -> ConfigurationError:
    items = tuple(
        replace(fault, summary=f'provider "{instance}": {fault.summary}') for fault in faults
    )
    return ConfigurationError(items[0].summary, items[0].advice, items)


# ── which cluster answers ───────────────────────────────────────────────────────────

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


# ── settings of both clients ────────────────────────────────────────────────────────

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
