"""Login tokens from an endpoint of OAuth 2.0, each kept until a fifth of its life is left.

The grant is that of client credentials (RFC 6749 §4.4).
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from msgspec import Struct

from ...core.errors import ConnectError
from ...core.secret import Secret
from .connection import (
    NO_CONNECTION,
    REFUSED_CERTIFICATE,
    ServerConnection,
    advise_certificate,
)
from .exchange import Call, CallFailed
from .tls import CertificateFault, trust_also

PATIENCE = 5.0
"""Seconds for the token endpoint to answer."""

_KEEP = 0.8
_KEEP_UNKNOWN = 300.0
"""Seconds that a token is kept if neither it nor the endpoint says how long it is valid."""

_NO_CLOCK = 1 << 40
LARGEST = 64 * 1024
"""Bytes of a token, and of an endpoint's answer."""
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", re.ASCII)
BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)
"""What a token can be (RFC 6750 §2.1)."""


class EndpointNames(Struct, frozen=True):
    """What the attributes of a token endpoint are called in a provider block, for advice."""

    url: str = "oauth_token_url"
    client_id: str = "oauth_client_id"
    client_secret: str = "oauth_client_secret"
    scopes: str = "oauth_scopes"


class TokenEndpoint(Struct, frozen=True):
    """A token endpoint, and who asks there."""

    url: str
    """https, or http on this computer."""
    client_id: str
    client_secret: Secret
    scopes: tuple[str, ...] = ()
    ca: str | None = None
    """Certificates to trust, a path or PEM text; None for those of the operating system."""
    names: EndpointNames = EndpointNames()


class LoginToken(Struct, frozen=True):
    """A token to log in with."""

    text: Secret
    expires: float
    """Seconds since 1970."""
    subject: str = ""
    """The user whose token it is."""


class TokenRefused(Exception):
    """A token endpoint refused. status: of HTTP; code: the endpoint's word for the cause (RFC 6749
    §5.2)."""

    # Only the code is repeated. The endpoint's free text can contain the secret that was sent.
    def __init__(self, status: int, code: Any) -> None:
        has_code = isinstance(code, str) and re.fullmatch(r"[\w.-]{1,60}", code, re.ASCII)
        super().__init__(f"HTTP {status}" + (f", {code}" if has_code else ""))
        self.status = status


class TokenSource:
    """Gives any thread a token that is valid now."""

    def __init__(
        self, fetch: Callable[[], LoginToken], clock: Callable[[], float] = time.time
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._token: LoginToken | None = None
        self._renew = 0.0

    def get_token(self) -> LoginToken:
        """A valid token. Raises ConnectError with one sentence if there is none."""
        # Under the lock, so that connections that begin at the same time fetch one token.
        with self._lock:
            if self._token is None or self._clock() >= self._renew:
                fresh = self._fetch()
                began = self._clock()
                self._token, self._renew = fresh, began + _KEEP * (fresh.expires - began)
            return self._token


def fetch_token(endpoint: TokenEndpoint) -> LoginToken:
    """A token from the endpoint, for the client's id and secret. Raises ConnectError without the
    secret."""
    endpoint_name, names = _describe_endpoint(endpoint.url), endpoint.names
    check = f"check {names.url}, ca_cert if its authority is your own, and the network"
    try:
        answer = _request_grant(endpoint)
    except TokenRefused as error:
        login = (
            f"check {names.client_id} (client id), {names.client_secret} (client secret) and "
            f"{names.scopes}"
        )
        advice = login if error.status in (400, 401, 403) else check
        raise make_error(f"{endpoint_name} refused to give a token: {error}", advice) from None
    except CertificateFault as fault:
        raise make_error(fault.summary, fault.advice) from None
    except CallFailed as failure:
        cause = failure.cause.removeprefix(NO_CONNECTION)
        if cause.startswith(REFUSED_CERTIFICATE):
            check = advise_certificate(cause, names.url, "endpoint")
        raise make_error(f"{endpoint_name} cannot be reached: {cause}", check) from None
    text = answer.get("access_token")
    if not isinstance(text, str) or BEARER.fullmatch(text) is None:
        raise make_error(f"{endpoint_name} answers without an access_token", check)
    return make_token(text, parse_claims(text) or {}, answer.get("expires_in"))


def _request_grant(endpoint: TokenEndpoint) -> Mapping[str, Any]:
    """The answer of the endpoint to a request with id and secret."""
    # HTTP Basic first, which every server must support (RFC 6749 §2.3.1); after a 401 in the body,
    # which some servers demand instead. Both parts are form-encoded before they are joined, or a
    # colon in a client id would end it early.
    form = {"grant_type": "client_credentials"}
    if endpoint.scopes:
        form["scope"] = " ".join(endpoint.scopes)
    user, secret = endpoint.client_id, endpoint.client_secret.reveal()
    credentials = f"{quote_plus(user)}:{quote_plus(secret)}".encode()
    basic = {"Authorization": "Basic " + base64.b64encode(credentials).decode()}
    try:
        return _post_form(endpoint, form, basic)
    except TokenRefused as error:
        if error.status != 401:
            raise
        return _post_form(endpoint, {**form, "client_id": user, "client_secret": secret}, {})


def _post_form(
    endpoint: TokenEndpoint, form: Mapping[str, str], headers: Mapping[str, str]
) -> Mapping[str, Any]:
    address, context = urlsplit(endpoint.url), None
    if address.scheme == "https":
        context = ssl.create_default_context()
        if endpoint.ca is not None:
            trust_also(context, endpoint.ca)
    target = (address.path or "/") + (f"?{address.query}" if address.query else "")
    origin = f"{address.scheme}://{address.netloc}"
    connection = ServerConnection(origin, context, PATIENCE, LARGEST)
    connection.connect()
    answer = connection.send(Call("POST", target, form=Secret(urlencode(form))), headers)
    connection.close()
    members = answer.body if isinstance(answer.body, dict) else None
    # A redirection is not followed: the secret is meant for this address alone.
    if answer.status != 200:
        raise TokenRefused(answer.status, (members or {}).get("error"))
    if members is None:
        raise CallFailed("it does not answer with a JSON object")
    return members


def parse_claims(text: str) -> Mapping[str, Any] | None:
    """The claims of a JSON web token, None if the text is not one."""
    # The signature is not checked here: that is the task of the server, which has the keys.
    if len(text) > LARGEST or _JWT.fullmatch(text) is None:
        return None
    header, body = (_decode_part(segment) for segment in text.split(".")[:2])
    return body if header is not None and "alg" in header else None


def _decode_part(text: str) -> Mapping[str, Any] | None:
    try:
        return _parse_object(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return None


def _parse_object(text: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # Who answers is not trusted, and nesting that is too deep ends the parser.
        return None
    return value if isinstance(value, dict) else None


def make_token(text: str, claims: Mapping[str, Any], lifetime: Any) -> LoginToken:
    """The token with the time when it expires. lifetime: `expires_in` of the endpoint (seconds), or
    whatever stands there."""
    # The earlier of both times: an endpoint can hand out a token that it kept for a while.
    moment = time.time()
    ends = [claims["exp"]] if _is_number(claims.get("exp")) else []
    ends += [moment + float(lifetime)] if _is_number(lifetime) else []
    return LoginToken(
        Secret(text), float(min(ends, default=moment + _KEEP_UNKNOWN)), str(claims.get("sub", ""))
    )


def _is_number(value: Any) -> bool:
    """Whether this can be a number of seconds; NaN and times beyond any clock are not."""
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return number and abs(value) < _NO_CLOCK


def _describe_endpoint(url: str) -> str:
    """The endpoint without its query, which can contain a key."""
    address = urlsplit(url)
    return f"the token endpoint {address.scheme}://{address.netloc}{address.path}"


def make_error(sentence: str, advice: str) -> ConnectError:
    """The error if there is no token. sentence: why."""
    return ConnectError(f"no token to log in with: {sentence}", advice)
