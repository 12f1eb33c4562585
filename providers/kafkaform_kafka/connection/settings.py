"""The provider block: its schema, and one mapping from it to both Kafka clients.

A password never travels in the clear by omission: with a user name and nothing said about TLS
the connection is SASL_SSL. Certificates are always verified. The names are those of Terraform's
Mongey provider where it has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.errors import ConfigurationError
from kafkaform.core.schema import ANY, BOOL, STRING, AttributeSchema, list_of, make_schema
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value

from ..protocol.sizes import parse_size
from . import mongey_arguments, oauth, reassignment_throttle
from .pem import is_pem

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = {
    "PLAIN": "PLAIN",
    "SCRAM-SHA-256": "SCRAM-SHA-256",
    "SCRAM-SHA-512": "SCRAM-SHA-512",
    "plain": "PLAIN",
    "scram-sha256": "SCRAM-SHA-256",
    "scram-sha512": "SCRAM-SHA-512",
    **oauth.SPELLINGS,
}
"""Spelling in the configuration -> Kafka's name."""

DEFAULT_TIMEOUT = 30.0
MIN_TIMEOUT, MAX_TIMEOUT = 0.001, 3600.0
"""Seconds; the wire carries whole milliseconds, and 0 of them have no dependable meaning."""

_PORT = re.compile(r":\d{1,5}$", re.ASCII)
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|m)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "ms": 0.001, "m": 60.0}

CONFIG = make_schema(
    "A connection to one Kafka cluster.",
    AttributeSchema(
        "bootstrap_servers",
        list_of(STRING),
        "Brokers to ask first, as host:port.",
        required=True,
    ),
    AttributeSchema(
        "security_protocol",
        STRING,
        "How to connect. Left out: SASL_SSL with a user name, SSL with certificates, else "
        "PLAINTEXT.",
        choices=PROTOCOLS,
    ),
    AttributeSchema(
        "sasl_mechanism",
        STRING,
        "How to log in. Left out: PLAIN. aws-iam is refused.",
        choices=(*MECHANISMS, *mongey_arguments.LOGINS),
    ),
    AttributeSchema("sasl_username", STRING, "User to log in as."),
    AttributeSchema("sasl_password", STRING, "Password of that user.", secret=True),
    AttributeSchema(
        "ca_cert",
        STRING,
        "Certificates to trust: a PEM file or PEM text. Left out: those of the system.",
        aliases=("ca_cert_file",),
    ),
    AttributeSchema(
        "client_cert",
        STRING,
        "Our certificate for mutual TLS: a PEM file or PEM text.",
        aliases=("client_cert_file",),
    ),
    AttributeSchema(
        "client_key",
        STRING,
        "Private key of client_cert: a PEM file or PEM text.",
        sensitive=True,
        aliases=("client_key_file",),
    ),
    AttributeSchema("client_key_passphrase", STRING, "Passphrase of client_key.", secret=True),
    AttributeSchema("tls_enabled", BOOL, "Another way to choose security_protocol."),
    AttributeSchema(
        "skip_tls_verify", BOOL, "Only false is accepted: TLS is always verified.", policy=True
    ),
    AttributeSchema(
        "operation_timeout",
        ANY,
        "How long the cluster may take for one request: seconds, or text such as 30s or 2m.",
        default=30,
        aliases=("timeout",),
        policy=True,
    ),
    AttributeSchema(
        "acl_order",
        STRING,
        "Whether new ACLs come before the removal of old ones, or after it (KIP-4).",
        default="create_first",
        choices=("create_first", "delete_first"),
        policy=True,
    ),
    AttributeSchema(
        "protect_topics",
        BOOL,
        "Topics cannot be deleted unless a reviewed change says so.",
        default=True,
        policy=True,
    ),
    reassignment_throttle.ATTRIBUTE,
    AttributeSchema(
        "principal",
        STRING,
        "Who we are for the authorizer, such as User:ci. Left out: User:sasl_username.",
        policy=True,
    ),
    *oauth.ATTRIBUTES,
    *mongey_arguments.ATTRIBUTES,
    blocks={
        "authorizer": make_schema(
            "Settings of the brokers' authorizer, which they do not tell.",
            AttributeSchema(
                "super_users", list_of(STRING), "Principals that may do everything.", policy=True
            ),
            AttributeSchema(
                "allow_if_no_acl", BOOL, "Whether resources without ACLs are open.", policy=True
            ),
        )
    },
    conflicts=(("security_protocol", "tls_enabled"),),
)


class KafkaSettings(Struct, frozen=True):
    """A provider block, checked, with its secrets.

    key: a path, or PEM text, which is a secret; timeout: seconds that the cluster may take for
    one request.
    """

    instance: str
    servers: tuple[str, ...]
    protocol: str
    mechanism: str | None = None
    username: str | None = None
    password: Secret | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | Secret | None = None
    passphrase: Secret | None = None
    timeout: float = DEFAULT_TIMEOUT
    principal: str | None = None
    acl_order: str = "create_first"
    protect_topics: bool = True
    authorizer: FrozenMap = EMPTY
    reassignment_throttle: int | None = None
    token_url: str | None = None
    token_file: str | None = None
    scopes: tuple[str, ...] = ()

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


def check(config: Mapping[str, Any]) -> tuple[tuple[str, Diagnostic], ...]:
    """What is wrong with a provider block beyond its schema, each with the attribute to blame.
    Secrets may be references; no value of one is repeated."""
    return tuple(
        (name, Diagnostic(severity, text, advice=advice))
        for name, severity, text, advice in (
            *_find_faults(config),
            *oauth.find_faults(config),
            *mongey_arguments.find_faults(config),
        )
    )


def read_settings(instance: str, config: FrozenMap, secrets: Mapping[str, Secret]) -> KafkaSettings:
    """The settings that a provider block means. secrets: str(SecretRef) -> the secret.
    Raises ConfigurationError with every fault found."""
    given: dict[str, Any] = {name: _resolve(value, secrets) for name, value in config.items()}
    faults = [fault for _, fault in check(given) if fault.severity is Severity.ERROR]
    faults += _find_missing(config, secrets)
    if faults:
        raise _make_refusal(instance, faults)
    protocol = _derive_protocol(given)
    login: dict[str, Any] = {
        "mechanism": MECHANISMS[given.get("sasl_mechanism") or "PLAIN"],
        "username": given.get("sasl_username") or None,
        "password": _to_secret(given.get("sasl_password")),
        "token_url": given.get("sasl_token_url") or None,
        "token_file": given.get("sasl_token_file") or None,
        "scopes": tuple(given.get("sasl_oauth_scopes") or ()),
    }
    return KafkaSettings(
        instance=instance,
        servers=_list_servers(given),
        protocol=protocol,
        **(login if protocol.startswith("SASL") else {}),
        ca=given.get("ca_cert") or None,
        certificate=given.get("client_cert") or None,
        key=_read_key(given.get("client_key")),
        passphrase=_to_secret(given.get("client_key_passphrase")),
        timeout=parse_seconds(given.get("operation_timeout")) or DEFAULT_TIMEOUT,
        principal=_derive_principal(given, protocol),
        acl_order=given.get("acl_order") or "create_first",
        protect_topics=given.get("protect_topics") is not False,
        authorizer=given.get("authorizer") or EMPTY,
        reassignment_throttle=parse_size(given.get("reassignment_throttle")),
    )


def parse_seconds(value: Value) -> float | None:
    """The duration that a number of seconds, or text such as `30s`, means; None if it is none,
    not positive, or over an hour."""
    match = _DURATION.fullmatch(str(value).strip()) if _is_duration(value) else None
    if match is None:
        return None
    length = float(match[1]) * _UNITS[match[2]]
    return length if MIN_TIMEOUT <= length <= MAX_TIMEOUT else None


def _is_duration(value: Value) -> bool:
    return isinstance(value, str | int | Decimal) and not isinstance(value, bool)


def _resolve(value: Any, secrets: Mapping[str, Secret]) -> Any:
    return secrets.get(str(value)) if isinstance(value, SecretRef) else value


def _to_secret(value: str | Secret | None) -> Secret | None:
    """Nothing, if it is empty."""
    return (Secret(value) if isinstance(value, str) else value) or None


def _read_key(value: str | Secret | None) -> str | Secret | None:
    """The path of a private key, or the key itself, which is a secret however it was given."""
    return _to_secret(value) if isinstance(value, Secret) or is_pem(value) else value or None


def _find_missing(config: FrozenMap, secrets: Mapping[str, Secret]) -> list[Diagnostic]:
    advice = "set it and run the command again"
    return [
        Diagnostic(Severity.ERROR, f"{name} refers to {value}, which has no value", advice=advice)
        for name, value in config.items()
        if isinstance(value, SecretRef) and str(value) not in secrets
    ]


def _list_servers(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Without blanks around them, and without empty ones, which a split("," …) leaves."""
    return tuple(filter(None, (server.strip() for server in given.get("bootstrap_servers") or ())))


def _find_faults(given: Mapping[str, Any]) -> Iterator[mongey_arguments.Fault]:
    for name, value in given.items():
        if isinstance(value, str) and "\0" in value:
            yield name, Severity.ERROR, f"{name} holds a NUL character", "remove it"
    for wrong, name, text, advice in (*_check_values(given), *_check_login(given)):
        if wrong:
            yield name, Severity.ERROR, text, advice
    mechanism, user = given.get("sasl_mechanism"), given.get("sasl_username")
    if mechanism in MECHANISMS and not user and not oauth.uses_token(given):
        yield (
            "sasl_mechanism",
            Severity.WARNING,
            "sasl_mechanism has no effect without sasl_username",
            "give sasl_username and sasl_password, or remove it",
        )


_Check = tuple[bool, str, str, str]
"""Whether it is wrong, the attribute to blame, what is wrong, what to do."""


def _check_values(given: Mapping[str, Any]) -> tuple[_Check, ...]:
    protocol, timeout = given.get("security_protocol"), given.get("operation_timeout")
    return (
        (
            given.get("bootstrap_servers") is not None and not _list_servers(given),
            "bootstrap_servers",
            "bootstrap_servers is empty",
            'name at least one broker, such as ["kafka-1:9092"]',
        ),
        *(
            (
                True,
                "bootstrap_servers",
                f"{server!r} in bootstrap_servers has no port",
                f"write host and port, such as {server.rstrip(':')}:9092",
            )
            for server in _list_servers(given)
            if not _PORT.search(server)
        ),
        (
            given.get("skip_tls_verify") is True,
            "skip_tls_verify",
            "skip_tls_verify = true is refused: anybody on the way could read the password",
            "remove it, and give the certificate of your certificate authority in ca_cert",
        ),
        (
            protocol is not None and protocol not in PROTOCOLS,
            "security_protocol",
            f"security_protocol {protocol!r} is unknown",
            f"possible: {', '.join(PROTOCOLS)}",
        ),
        (
            bool(given.get("client_key")) != bool(given.get("client_cert")),
            "client_cert" if given.get("client_cert") else "client_key",
            "client_cert and client_key belong together",
            "give both, or neither",
        ),
        (
            timeout is not None and parse_seconds(timeout) is None,
            "operation_timeout",
            f"operation_timeout {str(timeout)[:40]!r} is not a duration over 0 and up to an hour",
            'write seconds, or text such as "30s"',
        ),
        reassignment_throttle.find_fault(given.get("reassignment_throttle")),
    )


def _check_login(given: Mapping[str, Any]) -> tuple[_Check, ...]:
    protocol, mechanism = given.get("security_protocol"), given.get("sasl_mechanism")
    user, password = given.get("sasl_username"), given.get("sasl_password")
    sasl = str(protocol).startswith("SASL")
    return (
        (
            mechanism is not None and mechanism not in (*MECHANISMS, *mongey_arguments.LOGINS),
            "sasl_mechanism",
            f"sasl_mechanism {mechanism!r} is not supported",
            "possible: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        (
            sasl and not (user and password) and not oauth.uses_token(given),
            "security_protocol",
            f"{protocol} needs a login",
            "set sasl_username and sasl_password",
        ),
        (
            # A reference may still turn out to be empty, as in a module without a login.
            isinstance(password, str)
            and bool(password)
            and not (user or sasl or oauth.uses_token(given)),
            "sasl_password",
            "sasl_password is of no use without sasl_username",
            "give sasl_username, or remove it",
        ),
        (
            (bool(user) or oauth.uses_token(given)) and protocol in ("PLAINTEXT", "SSL"),
            "sasl_username" if user else "sasl_mechanism",
            f"{'sasl_username' if user else 'sasl_mechanism'} has no effect with {protocol}",
            "remove it, or choose SASL_SSL or SASL_PLAINTEXT",
        ),
    )


def _derive_protocol(given: Mapping[str, Any]) -> str:
    if given.get("security_protocol"):
        return str(given["security_protocol"])
    login = bool(given.get("sasl_username")) or oauth.uses_token(given)
    tls = given.get("tls_enabled")
    certificates = bool(given.get("ca_cert") or given.get("client_cert"))
    secure = (login or certificates) if tls is None else bool(tls)
    return {
        (True, True): "SASL_SSL",
        (True, False): "SASL_PLAINTEXT",
        (False, True): "SSL",
        (False, False): "PLAINTEXT",
    }[login, secure]


def _derive_principal(given: Mapping[str, Any], protocol: str) -> str | None:
    """As declared, else derived for PLAIN and SCRAM; a certificate's name depends on rules that
    only the broker knows, and so does a token's."""
    if given.get("principal") or oauth.uses_token(given):
        return given.get("principal") or None
    name = given.get("sasl_username")
    return f"User:{name}" if name and protocol.startswith("SASL") else None


def _make_refusal(instance: str, faults: list[Diagnostic]) -> ConfigurationError:
    items = tuple(
        replace(fault, summary=f'provider "{instance}": {fault.summary}') for fault in faults
    )
    return ConfigurationError(items[0].summary, items[0].advice, items)
