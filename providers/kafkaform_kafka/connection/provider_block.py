"""The schema of the provider block, and the faults that a schema cannot express: its addresses,
Java's key stores, and the login.

With a user name and nothing else, the connection is SASL_SSL, so that no omission sends a password
in the clear. Certificates are always verified. Where Terraform's Mongey provider has an attribute,
ours has the same name; key stores have the names of Java's properties.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.schema import ANY, BOOL, STRING, AttributeSchema, list_of, make_schema
from kafkaform.provider.block_checks import CERTIFICATES, parse_seconds

from ..protocol.config_keys import parse_size
from ..protocol.rates import LIMITS, RATES
from ..vendors.profile import PROFILES
from .login_attributes import (
    AWS_ATTRIBUTES,
    AWS_MECHANISM,
    AWS_NAMES,
    AWS_SPELLINGS,
    KERBEROS_ATTRIBUTES,
    KERBEROS_NAMES,
    KERBEROS_SPELLINGS,
    OAUTH_ATTRIBUTES,
    OAUTH_SPELLINGS,
    REFUSED_ATTRIBUTES,
    Fault,
    find_aws_faults,
    find_kerberos_faults,
    find_oauth_faults,
    find_refused_faults,
    make_fault,
    make_stray_fault,
)

TRUSTSTORE, KEYSTORE = "ssl_truststore_location", "ssl_keystore_location"
TRUSTSTORE_PASSWORD, KEYSTORE_PASSWORD = "ssl_truststore_password", "ssl_keystore_password"

ATTRIBUTES = (
    AttributeSchema(
        TRUSTSTORE, STRING, "JKS or PKCS12 file with the certificates to trust, for ca_cert."
    ),
    AttributeSchema(
        TRUSTSTORE_PASSWORD, STRING, "Password of ssl_truststore_location.", secret=True
    ),
    AttributeSchema(
        KEYSTORE,
        STRING,
        "JKS or PKCS12 file with our certificate and its private key, for client_cert and "
        "client_key.",
    ),
    AttributeSchema(KEYSTORE_PASSWORD, STRING, "Password of ssl_keystore_location.", secret=True),
)
NAMES = frozenset(attribute.name for attribute in ATTRIBUTES)

_NEEDS = (
    (TRUSTSTORE_PASSWORD, TRUSTSTORE),
    (KEYSTORE_PASSWORD, KEYSTORE),
    (KEYSTORE, KEYSTORE_PASSWORD),
)
"""An attribute and another one without which it cannot be used."""
_INSTEAD = ((TRUSTSTORE, "ca_cert"), (KEYSTORE, "client_cert"), (KEYSTORE, "client_key"))
"""Two attributes of which only one can be given."""


def find_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of these attributes. block: its values."""
    for name, partner in _NEEDS:
        if block.get(name) and not block.get(partner):
            yield make_fault(name, f"{name} cannot be used without {partner}", f"give {partner}")
    for name, partner in _INSTEAD:
        if block.get(name) and block.get(partner):
            yield make_fault(
                name, f"{name} and {partner} exclude each other", "give only one of them"
            )
    protocol = block.get("security_protocol")
    if protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
        for name in (TRUSTSTORE, KEYSTORE):
            if block.get(name):
                yield make_fault(
                    name,
                    f"{name} has no effect with {protocol}",
                    "remove it, or choose SSL or SASL_SSL",
                )


PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\],@]+):(\d{1,5})", re.ASCII)
"""What clients read: a host and a port."""
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://", re.ASCII)
_DEFAULT_PORT = "9092"


# ── addresses ───────────────────────────────────────────────────────────────────────────


def list_servers(block: Mapping[str, Any]) -> tuple[str, ...]:
    """The brokers of a provider block to ask first, each once and without its protocol.

    A text can name several between commas, as consoles of clouds and properties of Java do.
    """
    servers = (_split_protocol(server)[1] for server in split_servers(block))
    return tuple(dict.fromkeys(servers))


def split_servers(block: Mapping[str, Any]) -> Iterator[str]:
    """The addresses as they are written, without the blanks and empty texts between them."""
    for text in block.get("bootstrap_servers") or ():
        # A value that is not known yet has no text.
        yield from filter(None, (server.strip() for server in str(text or "").split(",")))


def find_protocols(servers: Iterable[str]) -> Mapping[str, str]:
    """Address -> the security protocol in front of it, for those that name one, as Confluent Cloud
    and `advertised.listeners` write it."""
    pairs = ((server, _split_protocol(server)[0]) for server in servers)
    return {server: protocol for server, protocol in pairs if protocol}


def find_address_fault(server: str) -> tuple[str, str] | None:
    """What is wrong with an address, for a sentence that begins with it, and what to do."""
    match = _ADDRESS.fullmatch(_split_protocol(server)[1])
    if match and 0 < int(match[2]) < 1 << 16:
        return None
    scheme, host, port = _take_apart(server)
    advice = _advise_address(host, port)
    checks = (
        (not server, "is empty"),
        (bool(match) or len(port) > 5, "has a port that does not exist"),
        (bool(scheme) and scheme.upper() not in PROTOCOLS, "is a URL of another protocol"),
        ("@" in server, "contains a login"),
        (bool(re.search(r"\s", server)), "contains a space"),
        (host.startswith("[") and "[" not in server, "is an IPv6 address without brackets"),
        (not port, "has no port"),
        ("/" in server.rpartition("://")[2], "has a path"),
    )
    return next((text for wrong, text in checks if wrong), "is not an address"), advice


def _advise_address(host: str, port: str) -> str:
    possible = port.isdigit() and 0 < int(port[:6]) < 1 << 16
    right = f"{host}:{port if possible else _DEFAULT_PORT}"
    if not _ADDRESS.fullmatch(right):
        return 'write each broker as host and port, such as ["kafka-1:9092", "kafka-2:9092"]'
    return f"write {right}" if possible else f"write host and port, such as {right}"


def render_address(server: str) -> str:
    """The address for a message, without a login that it may contain."""
    scheme, slashes, location = server.rpartition("://")
    return repr(f"{scheme}{slashes}{location.rpartition('@')[2]}")


def _split_protocol(server: str) -> tuple[str, str]:
    """The security protocol in front of an address, empty without one, and the rest."""
    match = _SCHEME.match(server)
    if match and match[1].upper() in PROTOCOLS:
        return match[1].upper(), server[match.end() :]
    return "", server


def _take_apart(server: str) -> tuple[str, str, str]:
    """Scheme, host (an IPv6 address in brackets) and port as they were meant, as far as there."""
    scheme, _, location = server.rpartition("://")
    authority = re.split(r"[/?#]", re.sub(r"\s+", "", location))[0].rpartition("@")[2]
    bare = authority.strip("[]")
    if _is_ipv6(bare):
        # 2001:db8::1:9092 is an address as a whole, and who writes it means a port.
        host, _, port = bare.rpartition(":")
        meant = len(port) > 3 and port.isdigit() and _is_ipv6(host)
        return (scheme, f"[{host}]", port) if meant else (scheme, f"[{bare}]", "")
    host, _, port = (
        authority.rpartition(":") if re.search(r":\d*$", authority) else (authority, "", "")
    )
    bare = host.strip("[]")
    return scheme, f"[{bare}]" if _is_ipv6(bare) else host.rstrip(":"), port


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


MECHANISMS = {
    "PLAIN": "PLAIN",
    "SCRAM-SHA-256": "SCRAM-SHA-256",
    "SCRAM-SHA-512": "SCRAM-SHA-512",
    "plain": "PLAIN",
    "scram-sha256": "SCRAM-SHA-256",
    "scram-sha512": "SCRAM-SHA-512",
    **OAUTH_SPELLINGS,
    **KERBEROS_SPELLINGS,
    **AWS_SPELLINGS,
}
"""Spelling in the configuration -> Kafka's name for it."""
WITHOUT_PASSWORD = frozenset({*OAUTH_SPELLINGS, *KERBEROS_SPELLINGS, *AWS_SPELLINGS})
"""Spellings of the mechanisms that need neither sasl_username nor sasl_password."""

DEFAULT_TIMEOUT = 30.0

CONFIG = make_schema(
    "A connection to one Kafka cluster.",
    AttributeSchema(
        "bootstrap_servers",
        list_of(STRING),
        "Brokers to ask first, as host:port. One text can name several between commas.",
        required=True,
    ),
    AttributeSchema(
        "security_protocol",
        STRING,
        "How to connect. Default: SASL_SSL with a user name, SSL with certificates only, and "
        "PLAINTEXT without both.",
        choices=PROTOCOLS,
    ),
    AttributeSchema(
        "sasl_mechanism",
        STRING,
        "How to log in. Default: PLAIN.",
        choices=tuple(MECHANISMS),
    ),
    AttributeSchema("sasl_username", STRING, "User to log in as."),
    AttributeSchema("sasl_password", STRING, "Password of that user.", secret=True),
    *CERTIFICATES,
    AttributeSchema(
        "client_key_passphrase",
        STRING,
        "Passphrase of client_key, or of the key in ssl_keystore_location if it is not that of the "
        "store.",
        secret=True,
        aliases=("ssl_key_password",),
    ),
    *ATTRIBUTES,
    AttributeSchema("tls_enabled", BOOL, "Another way to choose security_protocol."),
    AttributeSchema(
        "skip_tls_verify", BOOL, "Only false is accepted: TLS is always verified.", policy=True
    ),
    AttributeSchema(
        "operation_timeout",
        ANY,
        "How long the cluster can take for one request: seconds, or text such as 30s or 2m.",
        default=30,
        aliases=("timeout",),
        policy=True,
    ),
    AttributeSchema(
        "acl_order",
        STRING,
        "Whether new ACLs are created before or after old ones are deleted (KIP-4).",
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
    AttributeSchema(
        "reassignment_throttle",
        ANY,
        "How many bytes per second each broker copies for a move, such as 50MiB. It is set before "
        "a move starts and removed afterwards. Default: moves are not throttled.",
        policy=True,
    ),
    AttributeSchema(
        "principal",
        STRING,
        "Our principal for the authorizer, such as User:ci. Default: User:sasl_username.",
        policy=True,
    ),
    AttributeSchema(
        "cluster_id",
        STRING,
        "The id of the cluster. If another one answers, nothing is planned or sent. `kafkaform "
        "describe cluster` shows it. Default: the one that the state records, after the first "
        "apply.",
        policy=True,
    ),
    AttributeSchema(
        "sasl_token_auth",
        BOOL,
        "sasl_username and sasl_password are the id and the HMAC of a delegation token (KIP-48).",
    ),
    AttributeSchema(
        "profile",
        STRING,
        "The vendor whose rules the cluster has in addition to Kafka's; apache: none. Default: "
        "found by the addresses and the id of the cluster, otherwise apache.",
        choices=PROFILES,
    ),
    *OAUTH_ATTRIBUTES,
    *KERBEROS_ATTRIBUTES,
    *AWS_ATTRIBUTES,
    *REFUSED_ATTRIBUTES,
    blocks={
        "authorizer": make_schema(
            "Settings of the brokers' authorizer, which brokers do not report.",
            AttributeSchema(
                "super_users", list_of(STRING), "Principals with all rights.", policy=True
            ),
            AttributeSchema(
                "allow_if_no_acl",
                BOOL,
                "Whether everybody can use resources without ACLs.",
                policy=True,
            ),
        ),
        "limits": LIMITS,
        "rates": RATES,
    },
    conflicts=(("security_protocol", "tls_enabled"),),
)


def check(config: Mapping[str, Any]) -> tuple[tuple[str, Diagnostic], ...]:
    """Faults of a provider block that its schema cannot express, each with the attribute to blame.
    Secrets can be references. The value of a secret is not repeated."""
    faults: list[Fault] = []
    for name, value in config.items():
        # SASL/PLAIN separates user and password with it (RFC 4616), and the texts of librdkafka end
        # there.
        if isinstance(value, str) and "\0" in value:
            faults.append((name, Severity.ERROR, f"{name} contains a NUL character", "remove it"))
    for wrong, name, text, advice in (*_check_values(config), *_check_login(config)):
        if wrong:
            faults.append((name, Severity.ERROR, text, advice))
    mechanism, user = config.get("sasl_mechanism"), config.get("sasl_username")
    if mechanism in MECHANISMS and not user and mechanism not in WITHOUT_PASSWORD:
        idle = "sasl_mechanism has no effect without sasl_username"
        advice = "give sasl_username and sasl_password, or remove it"
        faults.append(("sasl_mechanism", Severity.WARNING, idle, advice))
    if mechanism in KERBEROS_SPELLINGS:
        faults += find_kerberos_faults(config)
    else:
        stray = (name for name in KERBEROS_NAMES if config.get(name))
        faults += [make_stray_fault(name, "gssapi") for name in stray]
    if mechanism == AWS_MECHANISM or any(config.get(name) for name in AWS_NAMES):
        faults += find_aws_faults(config)
    if any(config.get(name) for name in NAMES):
        faults += find_faults(config)
    faults += [*find_oauth_faults(config), *find_refused_faults(config)]
    return tuple(
        (name, Diagnostic(severity, text, advice=advice)) for name, severity, text, advice in faults
    )


def derive_protocol(block: Mapping[str, Any]) -> str:
    """The security protocol of a connection, also where the block does not name it."""
    # A password must not be sent in the clear because tls_enabled was forgotten, so a login alone
    # means SASL_SSL. The Mongey provider has TLS on by default, too.
    if block.get("security_protocol"):
        return str(block["security_protocol"])
    login = bool(block.get("sasl_username")) or block.get("sasl_mechanism") in WITHOUT_PASSWORD
    tls = block.get("tls_enabled")
    certificates = bool(block.get("ca_cert") or block.get("client_cert"))
    secure = (login or certificates) if tls is None else bool(tls)
    return {
        (True, True): "SASL_SSL",
        (True, False): "SASL_PLAINTEXT",
        (False, True): "SSL",
        (False, False): "PLAINTEXT",
    }[login, secure]


_Check = tuple[bool, str, str, str]
"""Whether it is wrong, the attribute to blame, what is wrong, what to do."""


def _check_values(block: Mapping[str, Any]) -> tuple[_Check, ...]:
    protocol, timeout = block.get("security_protocol"), block.get("operation_timeout")
    throttle, profile = block.get("reassignment_throttle"), block.get("profile")
    return (
        (
            block.get("bootstrap_servers") is not None and not list_servers(block),
            "bootstrap_servers",
            "bootstrap_servers is empty",
            'name at least one broker, such as ["kafka-1:9092"]',
        ),
        *_check_servers(block),
        (
            block.get("skip_tls_verify") is True,
            "skip_tls_verify",
            "skip_tls_verify = true is refused: others on the network could read the password",
            "remove it, and give the certificate of your certificate authority in ca_cert",
        ),
        (
            protocol is not None and protocol not in PROTOCOLS,
            "security_protocol",
            f"security_protocol {protocol!r} is unknown",
            f"possible: {', '.join(PROTOCOLS)}",
        ),
        (
            bool(block.get("client_key")) != bool(block.get("client_cert")),
            "client_cert" if block.get("client_cert") else "client_key",
            "client_cert and client_key belong together",
            "give both, or neither",
        ),
        (
            timeout is not None and parse_seconds(timeout) is None,
            "operation_timeout",
            f"operation_timeout {str(timeout)[:40]!r} is not a duration over 0 and up to an hour",
            'write seconds, or text such as "30s"',
        ),
        (
            throttle is not None and parse_size(throttle) is None,
            "reassignment_throttle",
            f"reassignment_throttle {str(throttle)[:40]!r} is not a number of bytes over 0",
            'write bytes a second, or text such as "50MiB"',
        ),
        (
            profile is not None and profile not in PROFILES,
            "profile",
            f"profile {str(profile)[:40]!r} is unknown",
            f"possible: {', '.join(PROFILES)}",
        ),
    )


def _check_servers(block: Mapping[str, Any]) -> Iterator[_Check]:
    servers, protocol = tuple(split_servers(block)), derive_protocol(block)
    for server in servers:
        fault = find_address_fault(server)
        if fault:
            address = f"{render_address(server)} in bootstrap_servers {fault[0]}"
            yield True, "bootstrap_servers", address, fault[1]
    for server, named in find_protocols(servers).items():
        yield (
            named != protocol,
            "bootstrap_servers",
            f"{render_address(server)} in bootstrap_servers names another protocol than this "
            f"connection, which uses {protocol}",
            f'write security_protocol = "{named}", or the address without its protocol',
        )


def _check_login(block: Mapping[str, Any]) -> tuple[_Check, ...]:
    protocol, mechanism = block.get("security_protocol"), block.get("sasl_mechanism")
    user, password = block.get("sasl_username"), block.get("sasl_password")
    sasl = str(protocol).startswith("SASL")
    free = mechanism in WITHOUT_PASSWORD
    return (
        (
            mechanism is not None and mechanism not in MECHANISMS,
            "sasl_mechanism",
            f"sasl_mechanism {mechanism!r} is not supported",
            "possible: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, aws-iam",
        ),
        (
            bool(block.get("sasl_token_auth")) and "SCRAM" not in str(mechanism).upper(),
            "sasl_token_auth",
            "sasl_token_auth needs a SCRAM mechanism",
            'set sasl_mechanism = "scram-sha256" or "scram-sha512"',
        ),
        (
            sasl and not (user and password) and not free,
            "security_protocol",
            f"{protocol} needs a login",
            "set sasl_username and sasl_password",
        ),
        (
            # A reference can still turn out to be empty, as in a module without a login.
            isinstance(password, str) and bool(password) and not (user or sasl or free),
            "sasl_password",
            "sasl_password has no effect without sasl_username",
            "give sasl_username, or remove it",
        ),
        (
            (bool(user) or free) and protocol in ("PLAINTEXT", "SSL"),
            "sasl_username" if user else "sasl_mechanism",
            f"{'sasl_username' if user else 'sasl_mechanism'} has no effect with {protocol}",
            "remove it, or choose SASL_SSL or SASL_PLAINTEXT",
        ),
    )
