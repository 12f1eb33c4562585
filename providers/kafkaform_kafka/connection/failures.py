"""One sentence for a failed connection: the clearest cause, and how many brokers had which.

librdkafka reports what each broker of the list did; an inspection of its listener shows more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.errors import ConnectError
from kafkaform.core.secret import MASK, mask_secrets
from kafkaform.provider.http.failures import advise_certificate

from .listener import Listener
from .settings import KafkaSettings

Report = tuple[str, str]
"""A client's name for a cause, and its text."""

NAMED = 3
"""How many brokers are named with a cause; more are counted."""

_AUTHENTICATION = "_AUTHENTICATION"
_ADVICE = {
    _AUTHENTICATION: "check sasl_mechanism, sasl_username and sasl_password",
    "_SSL": "check ca_cert, client_cert and client_key, and the host name in bootstrap_servers",
    "_RESOLVE": "check the host names in bootstrap_servers",
    "_TRANSPORT": "check bootstrap_servers, security_protocol, the network, and that the broker "
    "runs",
}
"""librdkafka's name for the cause -> what to do."""
_FINAL = (_AUTHENTICATION, "_SSL")
_OTHERWISE = (
    "check bootstrap_servers, and that security_protocol is the one of that listener "
    "(a controller's listener takes no clients)"
)
_SILENT = "the broker closed the connection, or did not answer"

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

_BROKER = re.compile(r"(?:[a-z_]+://)?(\S+:\d+)/\w+: ")
"""How librdkafka begins a report about one broker."""
_CLIENT_WORDS = re.compile(r"^(?:Connect to \S+ failed|Failed to resolve '[^']*'): ")

# The smaller the number, the more a cause says about what to change.
_LOGIN, _SEEN, _REPORTED, _UNRESOLVED, _NOBODY, _UNKNOWN = range(6)


class _Cause(Struct, frozen=True):
    rank: int
    sentence: str
    advice: str


def connect_error(
    settings: KafkaSettings,
    reports: Sequence[Report] = (),
    listeners: Mapping[str, Listener] = {},
) -> ConnectError:
    """The error for a failed connection. reports: what a client said, the oldest first; listeners:
    broker -> what an inspection of its listener showed, which is more exact."""
    groups: dict[str, list[str]] = {}
    causes: dict[str, _Cause] = {}
    for server in settings.servers:
        cause = _explain_server(settings, server, reports, listeners.get(server))
        causes.setdefault(cause.sentence, cause)
        groups.setdefault(cause.sentence, []).append(server)
    clearest, *others = sorted(causes.values(), key=lambda cause: cause.rank)
    reasons = clearest.sentence
    if others:
        reasons = "; ".join(
            cause.sentence + _render_count(groups[cause.sentence], len(settings.servers))
            for cause in (clearest, *others)
        )
    advice = "; ".join((clearest.advice, *_find_unread_variables(settings)))
    if clearest.rank == _LOGIN:
        servers = ", ".join(groups[clearest.sentence])
        return ConnectError(f"Kafka at {servers} refused the login: {reasons}", advice)
    servers = ", ".join(settings.servers)
    return ConnectError(f"cannot reach Kafka at {servers}: {reasons}", advice)


def _render_count(servers: Sequence[str], total: int) -> str:
    shown = ", ".join(servers[:NAMED]) + (" …" if servers[NAMED:] else "")
    return f" ({len(servers)} of {total}: {shown})"


def _explain_server(
    settings: KafkaSettings, server: str, reports: Sequence[Report], found: Listener | None
) -> _Cause:
    """The clearest cause of one broker."""
    own = [report for report in reports if _find_broker(report) == server.casefold()]
    listed = {server.casefold() for server in settings.servers}
    others = [report for report in reports if _find_broker(report) not in listed]
    # The first one, and a final one before others: what follows a refused login says less.
    ordered = sorted(own or others, key=lambda report: report[0] not in _FINAL)
    name, text = ordered[0] if ordered else ("", _SILENT)
    seen = _explain_listener(settings, text, found) if found is not None else None
    if seen is not None:
        return seen
    if found is not None and not found.reached and name not in _FINAL:
        return _Cause(_NOBODY, found.failure or _redact(text, settings), _advise(settings, name))
    if name == _AUTHENTICATION:
        sentence = f"{_redact(text, settings)} ({_describe_login(settings)})"
        return _Cause(_LOGIN, sentence, _advise(settings, name))
    ranks = {"_RESOLVE": _UNRESOLVED, "_SSL": _REPORTED, "": _UNKNOWN}
    return _Cause(ranks.get(name, _NOBODY), _redact(text, settings), _advise(settings, name))


def _find_broker(report: Report) -> str | None:
    """The address of the broker that a report is about: one of the list, or one that the cluster
    advertises; None if it is about none in particular."""
    match = _BROKER.match(report[1])
    return match[1].casefold() if match else None


def _describe_login(settings: KafkaSettings) -> str:
    """With which mechanism, and as whom."""
    user = settings.username or (settings.kerberos.principal if settings.kerberos else None)
    if settings.aws_login is not None:
        user = settings.aws_login.describe()
    return f"{settings.mechanism}" + (f", as {user}" if user else "")


def _explain_listener(settings: KafkaSettings, text: str, found: Listener) -> _Cause | None:
    """What is wrong and what to do, if the listener showed it."""
    ours, theirs = settings.protocol, found.protocol
    if not found.kafka:
        advice = "check host and port in bootstrap_servers"
        return _Cause(_SEEN, "the server there is not Kafka", advice)
    if found.tls and not settings.tls:
        secure = ours.replace("PLAINTEXT", "SSL")
        sentence = f"the listener expects TLS, but this connection uses {ours}"
        advice = f'write security_protocol = "{theirs or secure}" and give ca_cert'
        return _Cause(_SEEN, sentence, advice)
    if found.refused:
        sentence = f"the broker's certificate is refused: {found.refused}"
        more = " (and into the broker's advertised.listeners)"
        advice = advise_certificate(found.refused, "bootstrap_servers", "broker", more)
        return _Cause(_SEEN, sentence, advice)
    if theirs is not None and theirs != ours:
        sentence = f"the listener expects {theirs}, but this connection uses {ours}"
        advice = _advise_protocol(theirs, found.mechanisms or (), weaker=settings.tls)
        return _Cause(_SEEN, sentence, advice)
    # With TLS 1.3 a server refuses the client's certificate only after the handshake, by an alert
    # (RFC 8446 §4.4.2.4), so that the client has connected and then loses the connection.
    if found.tls and "alert" in text:
        if settings.certificate is None:
            sentence = "the broker requires a client certificate"
            return _Cause(_LOGIN, sentence, "give client_cert and client_key")
        advice = "give client_cert and client_key of an authority that the broker trusts"
        return _Cause(_LOGIN, "the broker refuses our client certificate", advice)
    if found.mechanisms and settings.mechanism not in found.mechanisms:
        sentence = f"the listener does not offer {settings.mechanism}"
        advice = f"choose another sasl_mechanism: {' or '.join(found.mechanisms)}"
        return _Cause(_LOGIN, sentence, advice)
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


def _advise(settings: KafkaSettings, name: str) -> str:
    if settings.aws_login and name == _AUTHENTICATION:
        return (
            f"check that the policy of {settings.aws_login.describe()} allows "
            "kafka-cluster:Connect on the cluster, that sasl_aws_region is its region, and that "
            "the clock is right"
        )
    if settings.mechanism == "OAUTHBEARER" and name == _AUTHENTICATION:
        return (
            "check that the broker accepts tokens of this issuer, audience and time "
            "(sasl_token_url or sasl_token_file, sasl_oauth_scopes), and that the clocks agree"
        )
    if settings.kerberos is not None and name == _AUTHENTICATION:
        return (
            "check the ticket or the keytab (klist, klist -k), sasl_kerberos_principal and "
            "sasl_kerberos_service_name, the brokers' host names, and that the clocks agree"
        )
    if settings.token_auth and name == _AUTHENTICATION:
        return (
            "check that sasl_username and sasl_password are the id and the HMAC of one token, and "
            "that it has not expired (`kafkaform describe delegation-tokens`)"
        )
    return "; ".join((_ADVICE.get(name, _OTHERWISE), *_hint_tls(settings)))


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


def _hint_tls(settings: KafkaSettings) -> Iterable[str]:
    hint = "for TLS without a login write tls_enabled = true"
    return (hint,) if settings.protocol == "PLAINTEXT" else ()


def _redact(text: str, settings: KafkaSettings) -> str:
    """The text of a report about one broker, without what the sentence says anyway."""
    return _CLIENT_WORDS.sub("", redact_text(text, settings))


def redact_text(text: str, settings: KafkaSettings) -> str:
    """The text of a client without its advice about its own settings, and without secrets."""
    plain = text.split(" (after ")[0].split(", verify that ")[0].split("/bootstrap: ")[-1]
    for secret in (settings.password, settings.passphrase):
        plain = plain.replace(secret.reveal(), MASK) if secret else plain
    return mask_secrets(plain)
