"""One mapping from settings to both clients, and one sentence for every failed connection.

Both clients are kept from writing to the terminal, and from the level on which they show
passwords.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Iterator
from typing import Any

from kafkaform.core.errors import ConfigurationError, ConnectError

from .settings import Settings
from .tls import is_pem, tls_context

CLIENT_ID = "kafkaform"
PATIENCE = 8.0
"""Seconds to wait for the first broker."""

NATIVE_LOGGER = "kafkaform.native"

_ADVICE = {
    "_AUTHENTICATION": "check sasl_mechanism, sasl_username and sasl_password, and that "
    "security_protocol is the one of that listener",
    "_SSL": "check ca_cert, client_cert and client_key, and the host name in bootstrap_servers",
    "_RESOLVE": "check the host names in bootstrap_servers",
    "_TRANSPORT": "check bootstrap_servers, security_protocol, the network, and that the broker "
    "runs",
}
"""librdkafka's name of the cause -> what to do."""

_UNREAD = {
    "KAFKA_CA_CERT": ("ca_cert", "ca"),
    "KAFKA_CLIENT_CERT": ("client_cert", "certificate"),
    "KAFKA_CLIENT_KEY": ("client_key", "key"),
    "KAFKA_SASL_USERNAME": ("sasl_username", "username"),
    "KAFKA_SASL_PASSWORD": ("sasl_password", "password"),
}
"""Environment variable that other tools connect with -> the attribute and the field of Settings
that it would fill."""

_OTHERWISE = (
    "check bootstrap_servers, and that security_protocol is the one of that listener "
    "(a controller's listener takes no clients)"
)


def fence_logs() -> None:
    """Keep both clients' loggers off the terminal and above DEBUG, where they show passwords."""
    for name in ("kafka", NATIVE_LOGGER):
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.setLevel(logging.CRITICAL)


def native_config(settings: Settings) -> dict[str, Any]:
    """The settings in librdkafka's words."""
    given = {
        "bootstrap.servers": ",".join(settings.servers),
        "security.protocol": settings.protocol,
        "sasl.mechanism": settings.mechanism,
        "sasl.username": settings.username,
        "sasl.password": settings.password,
        _pem_key("ssl.ca", settings.ca): settings.ca,
        _pem_key("ssl.certificate", settings.certificate): settings.certificate,
        _pem_key("ssl.key", settings.key): settings.key,
        "ssl.key.password": settings.passphrase,
    }
    used = {name: value for name, value in given.items() if value is not None}
    return {**used, "client.id": CLIENT_ID}


def pure_config(settings: Settings) -> dict[str, Any]:
    """The settings in kafka-python's words. Raises ConfigurationError for bad certificates."""
    login = {
        "sasl_mechanism": settings.mechanism,
        "sasl_plain_username": settings.username,
        "sasl_plain_password": settings.password,
    }
    return {
        "bootstrap_servers": list(settings.servers),
        "security_protocol": settings.protocol,
        "client_id": CLIENT_ID,
        **(login if settings.sasl else {}),
        **({"ssl_context": _context(settings)} if settings.tls else {}),
    }


def connect_error(settings: Settings, cause: tuple[str, str] | None) -> ConnectError:
    """One sentence with broker and cause. cause: the client's name for it and its text."""
    name, text = cause or ("", "the broker closed the connection, or did not answer")
    servers = ", ".join(settings.servers)
    advice = (_ADVICE.get(name, _OTHERWISE), *_unread(settings), *_tls_hint(settings))
    return ConnectError(
        f"cannot reach Kafka at {servers}: {_plain(text, settings)}", "; ".join(advice)
    )


def _unread(settings: Settings) -> Iterator[str]:
    """Terraform's provider fills what its block leaves out from the environment; a connection
    here is what the block says, so that everybody who reads it knows who connects."""
    given = {
        variable: attribute
        for variable, (attribute, field) in _UNREAD.items()
        if os.environ.get(variable) and getattr(settings, field) is None
    }
    if given:
        yield (
            f"the provider block does not take {', '.join(given)} from the environment: "
            f"write {', '.join(given.values())} into it"
        )


def _tls_hint(settings: Settings) -> Iterator[str]:
    if settings.protocol == "PLAINTEXT":
        yield "for TLS without a login write tls_enabled = true"


def unusable(settings: Settings, cause: str) -> ConfigurationError:
    """The error for settings that a client refuses before it connects."""
    return ConfigurationError(
        f'provider "{settings.instance}" cannot be used: {_plain(cause, settings)}',
        "check the certificates and the other connection settings",
    )


def _plain(text: str, settings: Settings) -> str:
    """The client's text without its own words for settings and, come what may, without secrets."""
    plain = text.split(" (after ")[0].split(", verify that ")[0].split("/bootstrap: ")[-1]
    for secret in (settings.password, settings.passphrase):
        plain = plain.replace(secret, "(secret)") if secret else plain
    return plain


def _context(settings: Settings) -> ssl.SSLContext:
    try:
        return tls_context(settings.ca, settings.certificate, settings.key, settings.passphrase)
    except OSError as error:
        raise unusable(settings, f"TLS: {error}") from None


def _pem_key(prefix: str, value: str | None) -> str:
    return f"{prefix}.{'pem' if is_pem(value) else 'location'}"
