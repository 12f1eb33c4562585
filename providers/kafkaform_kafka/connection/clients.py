"""Settings for both clients, and one sentence for each failed connection.

Neither client writes to the terminal or logs on the level on which it shows passwords.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from kafkaform.core.errors import ConfigurationError, ConnectError
from kafkaform.core.redaction import MASK, mask_secrets
from kafkaform.core.secret import Secret
from kafkaform.provider.http.pem import is_pem
from kafkaform.provider.http.tls import tls_context

from .listener import Listener
from .settings import KafkaSettings

CLIENT_ID = "kafkaform"
PATIENCE = 8.0
"""Seconds to wait for the first broker."""
LOOK = 2.0
"""Seconds in which the addresses of a bootstrap list must say which cluster they lead to."""
# kafka-python's own maximum of 30 s would hide for that long that a broker is back.
RECONNECT_MS = 1000
"""The longest pause before another attempt to reach a lost broker."""

NATIVE_LOGGER = "kafkaform.native"
# botocore logs what it signs, with the session token.
_PARENTS = ("kafka", "botocore", "boto3", NATIVE_LOGGER)
_OFF = logging.CRITICAL + 1

_ADVICE = {
    "_AUTHENTICATION": "check sasl_mechanism, sasl_username and sasl_password",
    "_SSL": "check ca_cert, client_cert and client_key, and the host name in bootstrap_servers",
    "_RESOLVE": "check the host names in bootstrap_servers",
    "_TRANSPORT": "check bootstrap_servers, security_protocol, the network, and that the broker "
    "runs",
}
"""librdkafka's name for the cause -> what to do."""

_UNREAD = {
    "KAFKA_CA_CERT": ("ca_cert", "ca"),
    "KAFKA_CLIENT_CERT": ("client_cert", "certificate"),
    "KAFKA_CLIENT_KEY": ("client_key", "key"),
    "KAFKA_SASL_USERNAME": ("sasl_username", "username"),
    "KAFKA_SASL_PASSWORD": ("sasl_password", "password"),
    "KAFKA_SASL_TOKEN_URL": ("sasl_token_url", "token_url"),
}
"""Environment variable with which other tools connect -> the attribute and the field of
KafkaSettings that have the same meaning."""

_OTHERWISE = (
    "check bootstrap_servers, and that security_protocol is the one of that listener "
    "(a controller's listener takes no clients)"
)


def fence_logs() -> None:
    """Silence the loggers of both clients and of AWS's libraries, whatever is set for the root
    logger or for one of theirs. Our own errors say what a user has to know."""
    # At DEBUG kafka-python logs its whole configuration with the password, and each request with
    # salted SCRAM passwords. A handler of the root logger would print that on the terminal.
    for name in (*_PARENTS, *list(logging.root.manager.loggerDict)):
        if name.partition(".")[0] in _PARENTS or name == NATIVE_LOGGER:
            logger = logging.getLogger(name)
            logger.setLevel(_OFF)
            logger.propagate = name not in _PARENTS


def native_config(settings: KafkaSettings) -> dict[str, Any]:
    """The settings in librdkafka's words."""
    # Certificates are always verified: enable.ssl.certificate.verification and
    # ssl.endpoint.identification.algorithm keep their defaults (true, https).
    given = {
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
    used = {name: value for name, value in given.items() if value is not None}
    return {**used, "client.id": CLIENT_ID}


def pure_config(settings: KafkaSettings) -> dict[str, Any]:
    """The settings in kafka-python's words. Raises ConfigurationError for bad certificates."""
    return {
        "bootstrap_servers": list(settings.servers),
        # The names with `plain` are those of SCRAM, too (KIP-84).
        "security_protocol": settings.protocol,
        "client_id": CLIENT_ID,
        "reconnect_backoff_max_ms": RECONNECT_MS,
        "sasl_mechanism": settings.mechanism,
        "sasl_plain_username": settings.username,
        "sasl_plain_password": _reveal(settings.password),
        **({"ssl_context": ssl_context(settings)} if settings.tls else {}),
    }


def connect_error(
    settings: KafkaSettings, cause: tuple[str, str] | None, found: Listener | None = None
) -> ConnectError:
    """The error for a failed connection: one sentence with broker and cause. cause: the client's
    name for it and its text; found: what an inspection of the listener showed, which is more exact.
    """
    name, text = cause or ("", "the broker closed the connection, or did not answer")
    seen = _explain_listener(settings, text, found) if found is not None else None
    sentence, todo = seen or (_redact_text(text, settings), _choose_advice(settings, name))
    servers = ", ".join(settings.servers)
    advice = (todo, *_find_unread_variables(settings))
    return ConnectError(f"cannot reach Kafka at {servers}: {sentence}", "; ".join(advice))


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
        "Name brokers of one cluster only, and give each other cluster a provider block of its "
        "own, with an alias.",
    )


def _explain_listener(
    settings: KafkaSettings, text: str, found: Listener
) -> tuple[str, str] | None:
    """What is wrong and what to do, if the listener showed it."""
    ours, theirs = settings.protocol, found.protocol
    if not found.kafka:
        return "the server there is not Kafka", "check host and port in bootstrap_servers"
    if found.tls and not settings.tls:
        secure = ours.replace("PLAINTEXT", "SSL")
        said = f"the listener expects TLS, but this connection uses {ours}"
        return said, f'write security_protocol = "{theirs or secure}" and give ca_cert'
    if found.refused:
        return f"the broker's certificate is refused: {found.refused}", _advise_certificate(
            found.refused
        )
    if theirs is not None and theirs != ours:
        said = f"the listener expects {theirs}, but this connection uses {ours}"
        return said, _advise_protocol(theirs, found.mechanisms or (), weaker=settings.tls)
    # With TLS 1.3 a server refuses the client's certificate only after the handshake, by an alert
    # (RFC 8446 §4.4.2.4), so that the client has connected and then loses the connection.
    if found.tls and "alert" in text:
        if settings.certificate is None:
            return "the broker requires a client certificate", "give client_cert and client_key"
        said = "the broker refuses our client certificate"
        return said, "give client_cert and client_key of an authority that the broker trusts"
    if found.mechanisms and settings.mechanism not in found.mechanisms:
        offered = " or ".join(found.mechanisms)
        said = f"the listener does not offer {settings.mechanism}"
        return said, f"choose another sasl_mechanism: {offered}"
    return None


def _advise_protocol(theirs: str, mechanisms: tuple[str, ...], *, weaker: bool) -> str:
    """What to do about another security protocol. weaker: this connection uses TLS, and the
    listener may not."""
    # A listener without TLS can be somebody who answers at that address to read a password, so the
    # first advice is to keep TLS.
    login = f" and log in with {' or '.join(mechanisms)}" if mechanisms else ""
    change = f'write security_protocol = "{theirs}"{login}'
    if weaker and "SSL" not in theirs:
        return (
            "name the port of a listener with TLS in bootstrap_servers; or, if others on the "
            f"network are allowed to read the traffic, {change}"
        )
    return change


def _advise_certificate(refused: str) -> str:
    """What to do about a certificate that OpenSSL does not accept, by OpenSSL's reason."""
    if "mismatch" in refused:
        return (
            "write the name from the certificate into bootstrap_servers (and into the broker's "
            "advertised.listeners), or have a certificate issued for this name"
        )
    if "expired" in refused or "not yet valid" in refused:
        return "have the broker's certificate renewed, and check the clock of this computer"
    return "give the certificate of the broker's authority in ca_cert"


def _choose_advice(settings: KafkaSettings, name: str) -> str:
    if settings.aws_login and name == "_AUTHENTICATION":
        return (
            f"check that the policy of {settings.aws_login.describe()} allows "
            "kafka-cluster:Connect on the cluster, that sasl_aws_region is its region, and that "
            "the clock is right"
        )
    if settings.mechanism == "OAUTHBEARER" and name == "_AUTHENTICATION":
        return (
            "check that the broker accepts tokens of this issuer, audience and time "
            "(sasl_token_url or sasl_token_file, sasl_oauth_scopes), and that the clocks agree"
        )
    if settings.kerberos is not None and name == "_AUTHENTICATION":
        return (
            "check the ticket or the keytab (klist, klist -k), sasl_kerberos_principal and "
            "sasl_kerberos_service_name, the brokers' host names, and that the clocks agree"
        )
    if settings.token_auth and name == "_AUTHENTICATION":
        return (
            "check that sasl_username and sasl_password are the id and the HMAC of one token, and "
            "that it has not expired (`kafkaform describe delegation-tokens`)"
        )
    advice = _ADVICE.get(name, _OTHERWISE)
    return "; ".join((advice, *_hint_tls(settings)))


def _find_unread_variables(settings: KafkaSettings) -> Iterator[str]:
    """Advice about environment variables that another tool would use."""
    # Terraform's provider fills the attributes that its block omits from these variables. Here the
    # block alone says who connects, so that a reviewer can read it.
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


def _hint_tls(settings: KafkaSettings) -> Iterator[str]:
    if settings.protocol == "PLAINTEXT":
        yield "for TLS without a login write tls_enabled = true"


def make_settings_error(settings: KafkaSettings, cause: str) -> ConfigurationError:
    """The error for settings that a client refuses before it connects."""
    return ConfigurationError(
        f'provider "{settings.instance}" cannot be used: {_redact_text(cause, settings)}',
        "check the certificates and the other connection settings",
    )


def _redact_text(text: str, settings: KafkaSettings) -> str:
    """The text of a client without its advice about its own settings, and without secrets."""
    plain = text.split(" (after ")[0].split(", verify that ")[0].split("/bootstrap: ")[-1]
    for secret in (_reveal(settings.password), _reveal(settings.passphrase)):
        plain = plain.replace(secret, MASK) if secret else plain
    return mask_secrets(plain)


def ssl_context(settings: KafkaSettings) -> ssl.SSLContext:
    """A TLS context that verifies the broker. Raises ConfigurationError for certificates that
    cannot be used."""
    try:
        key, passphrase = _reveal(settings.key), _reveal(settings.passphrase)
        return tls_context(settings.ca, settings.certificate, key, passphrase)
    except OSError as error:
        raise make_settings_error(settings, f"TLS: {error}") from None


def _reveal(value: str | Secret | None) -> str | None:
    """The value for a client library."""
    return value.reveal() if isinstance(value, Secret) else value


def _pem_key(prefix: str, value: str | None) -> str:
    return f"{prefix}.{'pem' if is_pem(value) else 'location'}"
