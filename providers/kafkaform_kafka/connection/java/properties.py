"""Translate properties of the Java client into attributes of the provider block.

A property that changes who logs in, whom we trust or which code runs is obeyed or refused, and
never ignored. Only properties that tune the Java client are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from kafkaform.core.diagnostics import Severity, suggest
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap

from .login import SCOPE, BlockDraft, PropertyFault, is_aws_class, read_login

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
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.kerberos.principal": "sasl_kerberos_principal",
    "sasl.kerberos.keytab": "sasl_kerberos_keytab",
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

_JAVA_STORES = ("", "JKS", "PKCS12")
"""Types whose content decides which format it is; Kafka's default is JKS."""

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
        *("sasl.kerberos.min.time.before.relogin", "sasl.kerberos.ticket.renew.jitter"),
        "sasl.kerberos.ticket.renew.window.factor",
        *("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"),
        *("sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds"),
        *("sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter"),
        *("sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms"),
    }
)
"""Tuning of the Java client, which has no counterpart here."""

KNOWN = frozenset({*_TEXTS, *_HIDDEN, *_SPECIAL, *_IGNORED})


def read_provider_block(
    properties: Mapping[str, str],
) -> tuple[FrozenMap, Mapping[str, Secret], list[PropertyFault]]:
    """The attributes that these properties mean, the secrets to which they refer, and all
    faults."""
    block = BlockDraft()
    block.faults += _find_refused(properties)
    for key, attribute in _TEXTS.items():
        if properties.get(key):
            block.attributes[attribute] = properties[key]
    for key, attribute in _HIDDEN.items():
        if properties.get(key):
            block.hide(attribute, properties[key])
    for read in (
        _read_servers,
        _read_protocol,
        _read_stores,
        read_login,
        _read_token,
        _read_timeout,
    ):
        read(properties, block)
    return FrozenMap(block.attributes), block.secrets, block.faults


# ── keys ────────────────────────────────────────────────────────────────────────────────


def _find_refused(properties: Mapping[str, str]) -> Iterator[PropertyFault]:
    for key in properties:
        if is_aws_class(key, properties[key]):
            continue
        if key in _IGNORED:
            yield PropertyFault(key, f"{key} has no effect here", "remove it", Severity.WARNING)
        elif key not in KNOWN:
            yield _unknown_fault(key)


def _unknown_fault(key: str) -> PropertyFault:
    for pattern, reason in _DANGEROUS:
        if pattern.search(key):
            return PropertyFault(key, f"{key} is refused: {reason}", "remove it")
    return PropertyFault(
        key,
        f"{key} is not a connection setting",
        suggest(key, KNOWN) or "docs/commands.md lists all of them",
    )


_DANGEROUS = (
    # A file of properties often comes from elsewhere. sasl.kerberos.kinit.cmd names a program to
    # start, and JndiLoginModule loads classes over the network (CVE-2023-25194).
    (re.compile(r"kinit"), "no command is run; name a keytab or a ticket cache"),
    (re.compile(r"^config\.providers"), "plugins that fetch values are not loaded; use env:NAME"),
    (
        re.compile(r"\.class(es)?$|^metric\.reporters$|^security\.providers$|^interceptor\."),
        "it names a Java class, and plugins are not loaded",
    ),
)
"""Pattern of keys that would run other people's code -> why they are refused."""


# ── the parts of a connection ───────────────────────────────────────────────────────────


def _read_servers(properties: Mapping[str, str], block: BlockDraft) -> None:
    servers = [server.strip() for server in properties.get("bootstrap.servers", "").split(",")]
    block.attributes["bootstrap_servers"] = tuple(filter(None, servers))


def _read_protocol(properties: Mapping[str, str], block: BlockDraft) -> None:
    """Read security.protocol. A certificate or a login without TLS or SASL is a fault."""
    # As in Java, the default is PLAINTEXT, unlike in a provider block.
    protocol = properties.get("security.protocol", "").strip().upper() or "PLAINTEXT"
    block.attributes["security_protocol"] = protocol
    tls = [key for key in properties if key.startswith("ssl.")]
    if tls and "SSL" not in protocol:
        block.faults.append(
            PropertyFault(
                tls[0],
                f"{tls[0]} has no effect with security.protocol={protocol}",
                "set security.protocol to SSL or SASL_SSL, or remove it",
            )
        )
    if not properties.get("ssl.endpoint.identification.algorithm", "https").strip():
        block.faults.append(
            PropertyFault(
                "ssl.endpoint.identification.algorithm",
                "certificates are always checked against the host name",
                "remove it, and connect by the name in the certificate",
            )
        )


def _read_stores(properties: Mapping[str, str], block: BlockDraft) -> None:
    for store, attributes in _STORES.items():
        path = properties.get(f"{store}.location")
        kind = properties.get(f"{store}.type", "").strip().upper()
        if not path and kind in ("", "PEM"):
            continue
        name = store.replace(".", "_")
        password = properties.get(f"{store}.password")
        if kind in _JAVA_STORES:
            block.attributes[f"{name}_location"] = path
            if password:
                block.hide(f"{name}_password", password)
        elif kind != "PEM":
            block.faults.append(
                PropertyFault(
                    f"{store}.type",
                    f"{store} is of type {kind}; only JKS, PKCS12 and PEM are read",
                    "convert it: keytool -importkeystore -srckeystore STORE -destkeystore "
                    f"store.p12 -deststoretype PKCS12, and set {store}.type=PKCS12",
                )
            )
        elif password:
            block.faults.append(
                PropertyFault(
                    f"{store}.password",
                    "a PEM store has no password",
                    "remove it; ssl.key.password is the one of an encrypted key",
                )
            )
        else:
            block.attributes.update(dict.fromkeys(attributes, path))


def _read_token(properties: Mapping[str, str], block: BlockDraft) -> None:
    """Read where a token comes from: an endpoint or, as in Java, the file of a file: URL."""
    url = properties.get(_TOKEN_URL, "")
    if url.startswith("file:"):
        block.attributes["sasl_token_file"] = unquote(urlsplit(url).path)
    elif url:
        block.attributes["sasl_token_url"] = url
    if properties.get("sasl.oauthbearer.scope"):
        block.attributes[SCOPE] = tuple(properties["sasl.oauthbearer.scope"].split())


def _read_timeout(properties: Mapping[str, str], block: BlockDraft) -> None:
    for key in _TIMEOUTS:
        text = properties.get(key, "").strip()
        if text and not text.isdecimal():
            block.faults.append(
                PropertyFault(key, f"{key} is not a number of milliseconds", "correct it")
            )
        elif text:
            block.attributes.setdefault("operation_timeout", f"{text}ms")
