"""Translate properties of the Java client into attributes of the provider block.

A property that changes who logs in, whom we trust or which code runs is obeyed or refused, and
never ignored. Only properties that tune the Java client are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

from kafkaform.core.diagnostics import Severity, suggest
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef, Value

from . import jaas
from .provider_block import MECHANISMS

SOURCE = "property"
"""The source in references to secrets that properties contain."""

_TEXTS: Mapping[str, str] = {
    "ssl.truststore.certificates": "ca_cert",
    "ssl.ca.location": "ca_cert",
    "ssl.ca.pem": "ca_cert",
    "ssl.keystore.certificate.chain": "client_cert",
    "ssl.certificate.location": "client_cert",
    "ssl.certificate.pem": "client_cert",
    "ssl.key.location": "client_key",
    "sasl.username": "sasl_username",
    "sasl.oauthbearer.client.credentials.client.id": "sasl_username",
}
_HIDDEN: Mapping[str, str] = {
    "ssl.keystore.key": "client_key",
    "ssl.key.pem": "client_key",
    "ssl.key.password": "client_key_passphrase",
    "sasl.password": "sasl_password",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl_password",
}
_STORES = {
    "ssl.truststore": ("ca_cert",),
    "ssl.keystore": ("client_cert", "client_key"),
}
"""A store of type PEM (KIP-651) -> the attributes that its file sets."""

_STORE_PASSWORDS = frozenset(f"{store}.password" for store in _STORES)
SECRET_KEYS = frozenset({*_HIDDEN, *_STORE_PASSWORDS, "sasl.jaas.config"})
"""Properties whose value is a password or contains one."""

_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_TIMEOUTS = ("default.api.timeout.ms", "request.timeout.ms")
_SPECIAL = frozenset(
    {
        "bootstrap.servers",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        _TOKEN_URL,
        "sasl.oauthbearer.scope",
        "ssl.endpoint.identification.algorithm",
        *_TIMEOUTS,
        *(f"{store}.{part}" for store in _STORES for part in ("location", "type", "password")),
    }
)
_IGNORED = frozenset(
    {
        *("client.id", "client.dns.lookup", "connections.max.idle.ms", "enable.metrics.push"),
        *("metadata.max.age.ms", "metadata.recovery.rebootstrap.trigger.ms"),
        *("metadata.recovery.strategy", "metrics.num.samples", "metrics.recording.level"),
        *("metrics.sample.window.ms", "receive.buffer.bytes", "send.buffer.bytes"),
        *("reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries"),
        *("retry.backoff.max.ms", "retry.backoff.ms"),
        *("socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms"),
        *("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"),
        *("sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds"),
        *("sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter"),
        *("sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms"),
    }
)
"""Tuning of the Java client, which has no counterpart here."""

KNOWN = frozenset({*_TEXTS, *_HIDDEN, *_SPECIAL, *_IGNORED})

_SCOPE = "sasl_oauth_scopes"
_JNDI = "com.sun.security.auth.module.JndiLoginModule"
_KAFKA = "org.apache.kafka.common.security"
_MODULES: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    f"{_KAFKA}.plain.PlainLoginModule": (
        ("PLAIN",),
        {"username": "sasl_username", "password": "sasl_password"},
    ),
    f"{_KAFKA}.scram.ScramLoginModule": (
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        {"username": "sasl_username", "password": "sasl_password"},
    ),
    f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule": (
        ("OAUTHBEARER",),
        {"clientId": "sasl_username", "clientSecret": "sasl_password", "scope": _SCOPE},
    ),
}
"""Login module -> its mechanisms, and its options with the attribute of each."""


class PropertyFault(NamedTuple):
    """What is wrong with one property. The values of secret properties are not repeated."""

    key: str
    text: str
    advice: str
    severity: Severity = Severity.ERROR


class BlockDraft(Struct):
    """A provider block that is being made."""

    attributes: dict[str, Value] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)
    """str(SecretRef) -> the secret."""
    faults: list[PropertyFault] = field(default_factory=list)

    def hide(self, attribute: str, secret: str) -> None:
        """Set an attribute to a reference to this secret."""
        ref = SecretRef(SOURCE, attribute)
        self.attributes[attribute] = ref
        self.secrets[str(ref)] = Secret(secret)


def read_provider_block(
    given: Mapping[str, str],
) -> tuple[FrozenMap, Mapping[str, Secret], list[PropertyFault]]:
    """The attributes that these properties mean, the secrets to which they refer, and all
    faults."""
    block = BlockDraft()
    block.faults += _find_refused(given)
    for key, attribute in _TEXTS.items():
        if given.get(key):
            block.attributes[attribute] = given[key]
    for key, attribute in _HIDDEN.items():
        if given.get(key):
            block.hide(attribute, given[key])
    for part in (
        _read_servers,
        _read_protocol,
        _read_stores,
        _read_login,
        _read_token,
        _read_timeout,
    ):
        part(given, block)
    return FrozenMap(block.attributes), block.secrets, block.faults


# ── keys ────────────────────────────────────────────────────────────────────────────────


def _find_refused(given: Mapping[str, str]) -> Iterator[PropertyFault]:
    for key in given:
        if key in _IGNORED:
            yield PropertyFault(key, f"{key} has no effect here", "remove it", Severity.WARNING)
        elif key not in KNOWN:
            yield _unknown_fault(key)


def _unknown_fault(key: str) -> PropertyFault:
    for pattern, why in _DANGEROUS:
        if pattern.search(key):
            return PropertyFault(key, f"{key} is refused: {why}", "remove it")
    return PropertyFault(
        key,
        f"{key} is not a connection setting",
        suggest(key, KNOWN) or "docs/commands.md lists all of them",
    )


_DANGEROUS = (
    # A file of properties often comes from elsewhere. sasl.kerberos.kinit.cmd names a program to
    # start, and JndiLoginModule loads classes over the network (CVE-2023-25194).
    (re.compile(r"kinit|^sasl\.kerberos\."), "Kerberos is not supported, and no command is run"),
    (re.compile(r"^config\.providers"), "plugins that fetch values are not loaded; use env:NAME"),
    (
        re.compile(r"\.class(es)?$|^metric\.reporters$|^security\.providers$|^interceptor\."),
        "it names a Java class, and plugins are not loaded",
    ),
)
"""Pattern of keys that would run other people's code -> why they are refused."""


# ── the parts of a connection ───────────────────────────────────────────────────────────


def _read_servers(given: Mapping[str, str], block: BlockDraft) -> None:
    servers = [part.strip() for part in given.get("bootstrap.servers", "").split(",")]
    block.attributes["bootstrap_servers"] = tuple(filter(None, servers))


def _read_protocol(given: Mapping[str, str], block: BlockDraft) -> None:
    """Read security.protocol. A certificate or a login without TLS or SASL is a fault."""
    # As in Java, the default is PLAINTEXT, unlike in a provider block.
    protocol = given.get("security.protocol", "").strip().upper() or "PLAINTEXT"
    block.attributes["security_protocol"] = protocol
    tls = [key for key in given if key.startswith("ssl.")]
    if tls and "SSL" not in protocol:
        block.faults.append(
            PropertyFault(
                tls[0],
                f"{tls[0]} has no effect with security.protocol={protocol}",
                "set security.protocol to SSL or SASL_SSL, or remove it",
            )
        )
    if not given.get("ssl.endpoint.identification.algorithm", "https").strip():
        block.faults.append(
            PropertyFault(
                "ssl.endpoint.identification.algorithm",
                "certificates are always checked against the host name",
                "remove it, and connect by the name in the certificate",
            )
        )


def _read_stores(given: Mapping[str, str], block: BlockDraft) -> None:
    for store, attributes in _STORES.items():
        place = given.get(f"{store}.location")
        kind = given.get(f"{store}.type", "").strip().upper()
        if not place and kind in ("", "PEM"):
            continue
        if kind != "PEM":
            said = (
                f"of type {kind}" if kind else f"of Java's default type, as {store}.type is unset"
            )
            block.faults.append(
                PropertyFault(
                    f"{store}.location",
                    f"{store} is {said}; only PEM is read",
                    _describe_conversion(store),
                )
            )
        elif given.get(f"{store}.password"):
            block.faults.append(
                PropertyFault(
                    f"{store}.password",
                    "a PEM store has no password",
                    "remove it; ssl.key.password is the one of an encrypted key",
                )
            )
        else:
            block.attributes.update(dict.fromkeys(attributes, place))


def _describe_conversion(store: str) -> str:
    what = "-nokeys " if store == "ssl.truststore" else ""
    return (
        f"convert it: `keytool -importkeystore -srckeystore STORE -destkeystore store.p12 "
        f"-deststoretype PKCS12`, then `openssl pkcs12 -in store.p12 {what}-out store.pem`, and "
        f"set {store}.type=PEM and {store}.location=store.pem"
    )


def _read_login(given: Mapping[str, str], block: BlockDraft) -> None:
    mechanism = given.get("sasl.mechanism", "").strip().upper()
    if mechanism:
        _read_mechanism(mechanism, block)
    text = given.get("sasl.jaas.config")
    if text is None:
        return
    try:
        login = jaas.parse_login(text)
    except ValueError as error:
        block.faults.append(
            PropertyFault("sasl.jaas.config", f"it cannot be read: {error}", _JAAS_FORM)
        )
        return
    if login.module not in _MODULES:
        block.faults.append(_module_fault(login.module))
        return
    mechanisms, options = _MODULES[login.module]
    if mechanism not in mechanisms:
        block.faults.append(
            PropertyFault(
                "sasl.mechanism",
                f"sasl.jaas.config logs in with {' or '.join(mechanisms)}, but sasl.mechanism is "
                f"{mechanism or 'not set'}",
                f"set sasl.mechanism={mechanisms[0]}",
            )
        )
    _read_options(login.options, options, block)


_JAAS_FORM = f'write it as: {_KAFKA}.plain.PlainLoginModule required username="…" password="…";'


def _read_mechanism(name: str, block: BlockDraft) -> None:
    if name in MECHANISMS:
        block.attributes["sasl_mechanism"] = name
        return
    block.faults.append(
        PropertyFault(
            "sasl.mechanism",
            f"sasl.mechanism {name} is not supported",
            "possible: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        )
    )


def _module_fault(name: str) -> PropertyFault:
    if name == _JNDI:
        text = "JndiLoginModule is refused: it loads code from any address that is given to it"
    else:
        text = f"the login module {name} is refused: only Kafka's own modules are supported"
    return PropertyFault("sasl.jaas.config", text, suggest(name, _MODULES) or _JAAS_FORM)


def _read_options(given: Mapping[str, str], known: Mapping[str, str], block: BlockDraft) -> None:
    for name, value in given.items():
        attribute = known.get(name)
        if attribute is None:
            block.faults.append(
                PropertyFault(
                    "sasl.jaas.config",
                    f"its option {name} is not supported",
                    suggest(name, known) or f"possible: {', '.join(known)}",
                )
            )
        elif attribute == _SCOPE:
            block.attributes[attribute] = tuple(value.split())
        elif attribute == "sasl_password":
            block.hide(attribute, value)
        else:
            block.attributes[attribute] = value


def _read_token(given: Mapping[str, str], block: BlockDraft) -> None:
    """Read where a token comes from: an endpoint or, as in Java, the file of a file: URL."""
    url = given.get(_TOKEN_URL, "")
    if url.startswith("file:"):
        block.attributes["sasl_token_file"] = unquote(urlsplit(url).path)
    elif url:
        block.attributes["sasl_token_url"] = url
    if given.get("sasl.oauthbearer.scope"):
        block.attributes[_SCOPE] = tuple(given["sasl.oauthbearer.scope"].split())


def _read_timeout(given: Mapping[str, str], block: BlockDraft) -> None:
    for key in _TIMEOUTS:
        text = given.get(key, "").strip()
        if text and not text.isdecimal():
            block.faults.append(
                PropertyFault(key, f"{key} is not a number of milliseconds", "correct it")
            )
        elif text:
            block.attributes.setdefault("operation_timeout", f"{text}ms")
