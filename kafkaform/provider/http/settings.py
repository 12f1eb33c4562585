"""Where a system is, how to log in there, and how long to wait: the attributes that all provider
blocks of systems that speak HTTP have, their faults, and the settings that follow from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Severity
from ...core.errors import ConfigurationError
from ...core.schema import ANY, NUMBER, STRING, AttributeSchema, list_of, map_of
from ...core.secret import Secret, remember_secret
from ...core.value import FrozenMap, SecretRef
from ..block_checks import CERTIFICATES, is_pem, is_safe_url, parse_seconds
from .tokens import BEARER, TokenEndpoint

TIMEOUT = 30.0
CONCURRENCY = 8
# An answer is held in memory as a whole, and a proxy or a wrong address can answer anything.
MAX_BYTES = 32 * 1024 * 1024


class BasicLogin(Struct, frozen=True):
    """User and password (RFC 7617)."""

    username: str
    password: Secret


class BearerToken(Struct, frozen=True):
    """A token that somebody else made (RFC 6750)."""

    token: Secret


Auth = BasicLogin | BearerToken | TokenEndpoint
"""How to log in. TokenEndpoint: with a token of OAuth 2.0 (client credentials)."""


class HttpSettings(Struct, frozen=True):
    """A provider block without faults, with its secrets."""

    urls: tuple[str, ...]
    """Addresses of the same system, `https://HOST:PORT/PATH`. The next one is asked if one cannot
    be reached."""
    timeout: float = TIMEOUT
    """Seconds for one call, from its first byte to the last one of the answer; and for the
    connection before it."""
    concurrency: int = CONCURRENCY
    """Calls in flight at most."""
    ca: str | None = None
    """Certificates to trust, a path or PEM text; None for those of the operating system."""
    certificate: str | None = None
    """Our certificate for mutual TLS, a path or PEM text."""
    key: str | Secret | None = None
    """Its key: a path, or PEM text as a secret."""
    passphrase: Secret | None = None
    """Of the key."""
    auth: Auth | None = None
    headers: Mapping[str, Secret] = {}
    """Further headers of every call."""
    max_bytes: int = MAX_BYTES
    """The largest answer that is read."""


MAX_CONCURRENCY = 64
LOGIN_HEADER = "Authorization"
OWN_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "expect"),
        *("host", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding"),
        *("upgrade", "user-agent"),
    }
)
"""Headers that say how a call is sent, in lower case (RFC 9110, RFC 9112): kafkaform sets them."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_HEADER_VALUE = re.compile(r"[!-~]([ \t!-~]{0,8190}[!-~])?")


def _refuse_headers(headers: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Faults of the names, which files contain."""
    names: dict[str, str] = {}
    for name in headers:
        if not _HEADER_NAME.fullmatch(name):
            yield (
                f"{name[:40]!r} in headers is no name of a header",
                "write letters, digits and hyphens (RFC 9110, section 5.1); in a variable of the "
                "environment, a line is NAME: VALUE",
            )
        elif name.lower() in OWN_HEADERS:
            yield (
                f"the header {name} cannot be set: kafkaform sets it itself, or it says how a "
                "request is sent",
                "remove it from headers",
            )
        elif name.lower() in names:
            yield (
                f"the headers {names[name.lower()]} and {name} are the same",
                "remove one of them: names of headers have no case",
            )
        names.setdefault(name.lower(), name)


ATTRIBUTES = (
    AttributeSchema(
        "url",
        STRING,
        "Where the system is, such as https://HOST:PORT. Several addresses of the same system are "
        "separated by commas; the next one is asked if one cannot be reached.",
        required=True,
    ),
    AttributeSchema("username", STRING, "User to log in as, with HTTP Basic."),
    AttributeSchema("password", STRING, "Password of that user.", secret=True),
    AttributeSchema("token", STRING, "Bearer token to log in with.", secret=True),
    AttributeSchema(
        "oauth_token_url",
        STRING,
        "Token endpoint (OAuth 2.0 client credentials), https. Its tokens are renewed before they "
        "expire.",
    ),
    AttributeSchema("oauth_client_id", STRING, "Client id at the token endpoint."),
    AttributeSchema("oauth_client_secret", STRING, "Secret of that client.", secret=True),
    AttributeSchema("oauth_scopes", list_of(STRING), "Scopes to ask the token endpoint for."),
    AttributeSchema(
        "headers",
        map_of(STRING),
        "Further headers of every request, by name. Their values are secrets, which are sent to "
        "url alone, and neither shown nor recorded. In the environment: a line `NAME: VALUE` for "
        "each.",
        secret=True,
        refuses=_refuse_headers,
    ),
    *CERTIFICATES,
    AttributeSchema("client_key_passphrase", STRING, "Passphrase of client_key.", secret=True),
    AttributeSchema(
        "operation_timeout",
        ANY,
        "How long one request can take: seconds, or text such as 30s or 2m.",
        default=30,
        aliases=("timeout",),
        policy=True,
    ),
    AttributeSchema(
        "concurrency",
        NUMBER,
        "How many requests are sent at the same time.",
        whole=True,
        default=CONCURRENCY,
        policy=True,
    ),
)
"""The attributes of a connection, for `make_schema`."""

_Fault = tuple[str, str, str]
"""The attribute to blame, what is wrong, what to do."""


def list_urls(config_values: Mapping[str, Any]) -> tuple[str, ...]:
    """The addresses of a block, without blanks and final slashes."""
    urls = str(config_values.get("url") or "").split(",")
    return tuple(filter(None, (url.strip().rstrip("/") for url in urls)))


def find_faults(config_values: Mapping[str, Any]) -> tuple[tuple[str, Diagnostic], ...]:
    """The faults of these attributes that a schema cannot express, each with the attribute to
    blame. config_values: the values of a block, with secrets or references to them. No secret is
    repeated."""
    return tuple(
        (name, Diagnostic(Severity.ERROR, summary, advice=advice))
        for name, summary, advice in (
            *_check_urls(config_values),
            *_check_login(config_values),
            *_check_headers(config_values),
            *_check_tls(config_values),
            *_check_limits(config_values),
        )
    )


def read_settings(instance: str, config: FrozenMap, secrets: Mapping[str, Secret]) -> HttpSettings:
    """The settings that a block means. secrets: str(SecretRef) -> the secret. Raises
    ConfigurationError with all faults."""
    references = {n: value for n, value in config.items() if isinstance(value, SecretRef)}
    config_values: dict[str, Any] = {
        **config,
        **{n: secrets.get(str(r)) for n, r in references.items()},
    }
    headers = config.get("headers")
    if isinstance(headers, Mapping):
        references |= {f"{name} in headers": value for name, value in headers.items()}
        config_values["headers"] = {n: secrets.get(str(value)) for n, value in headers.items()}
    faults = [
        Diagnostic(
            Severity.ERROR,
            f"{name} refers to {reference}, which has no value",
            advice="set it and run the command again",
        )
        for name, reference in references.items()
        if str(reference) not in secrets
    ]
    # A missing secret has faults of its own, such as a login without a password, which would hide
    # the cause.
    faults = faults or [fault for _, fault in find_faults(config_values)]
    if faults:
        raise _make_refusal(instance, faults)
    key = config_values.get("client_key") or None
    ca = config_values.get("ca_cert") or None
    return HttpSettings(
        list_urls(config_values),
        timeout=parse_seconds(config_values.get("operation_timeout")) or TIMEOUT,
        concurrency=config_values.get("concurrency") or CONCURRENCY,
        ca=ca,
        certificate=config_values.get("client_cert") or None,
        # PEM text of a key is always a secret, also in an attribute that is not one.
        key=Secret(key) if isinstance(key, str) and is_pem(key) else key,
        passphrase=_to_secret(config_values.get("client_key_passphrase")),
        auth=_read_auth(config_values, ca),
        headers=dict(_read_headers(config_values.get("headers"))),
    )


def _read_auth(config_values: Mapping[str, Any], ca: str | None) -> Auth | None:
    if config_values.get("username"):
        return BasicLogin(
            config_values["username"], _to_secret(config_values.get("password")) or Secret("")
        )
    # The faults of a block with several logins were told before, so the order decides nothing.
    token = _to_secret(config_values.get("token"))
    if token is not None:
        return BearerToken(token)
    if config_values.get("oauth_token_url"):
        return TokenEndpoint(
            config_values["oauth_token_url"],
            config_values["oauth_client_id"],
            _to_secret(config_values["oauth_client_secret"]) or Secret(""),
            tuple(config_values.get("oauth_scopes") or ()),
            ca,
        )
    return None


def _read_headers(headers: object) -> Iterator[tuple[str, Secret]]:
    """Name and value of each header. headers: secrets by name, or one secret with a line for each
    header, as a variable of the environment has it."""
    if isinstance(headers, Mapping):
        yield from headers.items()
    elif isinstance(headers, Secret):
        for line in filter(None, map(str.strip, headers.reveal().splitlines())):
            name, colon, value = line.partition(":")
            if not colon:
                # It may be the secret, so nothing must repeat it as a name.
                name, value = "", line
            remember_secret(value.strip())
            yield name.strip(), Secret(value.strip())


def _to_secret(value: str | Secret | None) -> Secret | None:
    return (Secret(value) if isinstance(value, str) else value) or None


def _check_urls(config_values: Mapping[str, Any]) -> Iterator[_Fault]:
    urls = list_urls(config_values)
    if not urls and config_values.get("url") is not None:
        yield "url", "url is empty", "write an address such as https://HOST:PORT"
    for url in urls:
        login = "login" if _list_logins(config_values) else ""
        cause = _find_url_fault(url, login or ("headers" if config_values.get("headers") else ""))
        if cause:
            yield "url", *cause


def _find_url_fault(url: str, secrets: str) -> tuple[str, str] | None:
    """secrets: what is sent there that nobody else may read; empty for nothing."""
    try:
        address = urlsplit(url)
        # `port` raises for one that is no number from 0 to 65535, and `urlsplit` for an unpaired
        # bracket.
        host, _ = address.hostname, address.port
    except ValueError:
        host = None
    if not host or not url.isascii() or any(c <= " " for c in url):
        return f"{_strip_login(url)!r} in url is not an address", "write https://HOST:PORT"
    if address.username is not None or address.password is not None:
        return "url contains a login", "remove it, and set username and password"
    if address.scheme not in ("http", "https") or address.query or address.fragment:
        return f"{url!r} in url is not an address", "write https://HOST:PORT, without ? and #"
    if secrets and not is_safe_url(url):
        return (
            f"{url} would get the {secrets} in the clear",
            "write https://; http is only for a system on this computer",
        )
    return None


def _strip_login(url: str) -> str:
    """The URL as far as it can be shown."""
    scheme, slashes, location = url.partition("//")
    return f"{scheme}{slashes}{location.rpartition('@')[2]}"


_LOGINS = {
    "username": ("username", "password"),
    "token": ("token",),
    "oauth_token_url": (
        "oauth_token_url",
        "oauth_client_id",
        "oauth_client_secret",
        "oauth_scopes",
    ),
}
"""Attribute that chooses a login -> the attributes that belong to it."""


def _list_logins(config_values: Mapping[str, Any]) -> Sequence[str]:
    """The logins of which a block has an attribute."""
    return [
        name
        for name, arguments in _LOGINS.items()
        if any(config_values.get(argument) for argument in arguments)
    ]


def _check_login(config_values: Mapping[str, Any]) -> Iterator[_Fault]:
    logins = _list_logins(config_values)
    if len(logins) > 1:
        yield (
            logins[1],
            f"the block has several logins: {' and '.join(logins)}",
            "keep one of them",
        )
        return
    for name in logins:
        for argument in _LOGINS[name]:
            if argument != "oauth_scopes" and not config_values.get(argument):
                advice = f"set {argument}, or remove {', '.join(_LOGINS[name])}"
                yield (
                    name,
                    f"{name} needs {argument}" if argument != name else f"{argument} is missing",
                    advice,
                )
    user, token, url = (
        config_values.get(name) for name in ("username", "token", "oauth_token_url")
    )
    if isinstance(user, str) and (":" in user or any(c < " " for c in user)):
        yield (
            "username",
            "username contains a colon or a control character",
            "HTTP Basic cannot carry it (RFC 7617); remove it",
        )
    if isinstance(token, Secret) and not BEARER.fullmatch(token.reveal()):
        yield (
            "token",
            "token contains characters that a bearer token cannot have",
            "give the token alone, without the word Bearer, spaces or line breaks (RFC 6750)",
        )
    if url and not is_safe_url(str(url)):
        yield (
            "oauth_token_url",
            "oauth_token_url must begin with https:// and contain no login",
            "the client secret is sent there; http is only for an endpoint on this computer",
        )


def _check_headers(config_values: Mapping[str, Any]) -> Iterator[_Fault]:
    headers = config_values.get("headers")
    # Names and values are in the secret, and no secret is read before the connection is opened.
    if isinstance(headers, SecretRef):
        return
    pairs = dict(_read_headers(headers))
    for summary, advice in _refuse_headers(pairs):
        yield "headers", summary, advice
    logins = _list_logins(config_values)
    for name, value in pairs.items():
        # Two logins in one call would leave it to the server which of them counts.
        if name.lower() == LOGIN_HEADER.lower() and logins:
            yield (
                "headers",
                f"the block has several logins: {logins[0]}, and {name} in headers",
                "keep one of them",
            )
        if isinstance(value, Secret) and not _HEADER_VALUE.fullmatch(value.reveal()):
            yield (
                "headers",
                f"the value of {name[:40]!r} in headers is one that no header can have",
                "it has up to 8,192 printable ASCII characters, and no blanks at its ends "
                "(RFC 9110, section 5.5)",
            )


def _check_tls(config_values: Mapping[str, Any]) -> Iterator[_Fault]:
    if bool(config_values.get("client_key")) != bool(config_values.get("client_cert")):
        name = "client_cert" if config_values.get("client_cert") else "client_key"
        yield name, "client_cert and client_key belong together", "give both, or neither"
    plain = [url for url in list_urls(config_values) if not url.startswith("https:")]
    # Without TLS no server asks for a certificate, so the calls would go out without any login.
    if plain and config_values.get("client_cert"):
        yield (
            "client_cert",
            f"client_cert has no effect with {plain[0]}",
            "write https://, or remove it",
        )


def _check_limits(config_values: Mapping[str, Any]) -> Iterator[_Fault]:
    timeout, concurrency = config_values.get("operation_timeout"), config_values.get("concurrency")
    if timeout is not None and parse_seconds(timeout) is None:
        yield (
            "operation_timeout",
            f"operation_timeout {str(timeout)[:40]!r} is not a duration over 0 and up to an hour",
            'write seconds, or text such as "30s"',
        )
    if concurrency is not None and not 1 <= concurrency <= MAX_CONCURRENCY:
        yield (
            "concurrency",
            f"concurrency {concurrency} is not between 1 and {MAX_CONCURRENCY}",
            f"write a number from 1 to {MAX_CONCURRENCY}",
        )


def _make_refusal(instance: str, faults: Sequence[Diagnostic]) -> ConfigurationError:
    items = tuple(
        replace(fault, summary=f'provider "{instance}": {fault.summary}') for fault in faults
    )
    return ConfigurationError(items[0].summary, items[0].advice, items)
