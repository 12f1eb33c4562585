"""Where login tokens come from: one source that both clients ask.

A token is kept until a fifth of its life is left, and then fetched again. What goes to the
broker from a file must be a JSON web token (RFC 7519), so that no other file can be sent away.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

from msgspec import Struct

from kafkaform.core.errors import ConnectError
from kafkaform.core.secret import Secret

from .pem import is_pem
from .settings import KafkaSettings

PATIENCE = 5.0
"""Seconds for the token endpoint to answer."""

_KEEP = 0.8
_UNTOLD = 300.0
"""Seconds that a token is kept if neither it nor the endpoint says how long it is valid."""

_NO_CLOCK = 1 << 40
_LARGEST = 64 * 1024
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", re.ASCII)
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)  # RFC 6750 §2.1
_TYPE = "application/x-www-form-urlencoded"


class LoginToken(Struct, frozen=True):
    """expires: seconds since 1970 at which the token is of no use; subject: for whom it is."""

    text: Secret
    expires: float
    subject: str = ""


class TokenRefused(Exception):
    """A token endpoint said no. status: of HTTP; code: its word for the cause (RFC 6749 §5.2),
    which holds no secret; its description may, and is not passed on."""

    def __init__(self, status: int, code: Any) -> None:
        known = isinstance(code, str) and re.fullmatch(r"[\w.-]{1,60}", code, re.ASCII)
        super().__init__(f"HTTP {status}" + (f", {code}" if known else ""))
        self.status = status


class TokenSource:
    """A token that is valid now, for any thread that asks."""

    def __init__(
        self, fetch: Callable[[], LoginToken], clock: Callable[[], float] = time.time
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._token: LoginToken | None = None
        self._renew = 0.0

    def get_token(self) -> LoginToken:
        """The token. Raises ConnectError with one sentence if there is none."""
        with self._lock:
            if self._token is None or self._clock() >= self._renew:
                fresh = self._fetch()
                began = self._clock()
                self._token, self._renew = fresh, began + _KEEP * (fresh.expires - began)
            return self._token


def open_token_source(settings: KafkaSettings) -> TokenSource | None:
    """The source that a provider block names; None if it logs in otherwise."""
    # A client asks from a thread of its own, and the token is a secret of the run that began it.
    here = copy_context()
    if settings.token_file:
        return TokenSource(partial(here.run, read_token_file, settings.token_file))
    if settings.token_url:
        return TokenSource(partial(here.run, fetch_token, settings))
    return None


def read_token_file(path: str) -> LoginToken:
    """The token in a file. Raises ConnectError; the file's content is never repeated."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(_LARGEST + 1).decode("ascii").strip()
    except OSError as error:
        raise _make_error(
            f"sasl_token_file {path} cannot be read: {error.strerror}", _FILE
        ) from None
    except UnicodeDecodeError:
        text = ""
    claims = _parse_claims(text)
    if claims is None:
        raise _make_error(f"sasl_token_file {path} holds no JSON web token", _FILE)
    token = _make_token(text, claims, None)
    if token.expires <= time.time():
        raise _make_error(f"the token in sasl_token_file {path} has expired", _FILE)
    return token


def fetch_token(settings: KafkaSettings) -> LoginToken:
    """A token for the client's own id and secret. Raises ConnectError, without the secret."""
    url, place = str(settings.token_url), _describe_endpoint(str(settings.token_url))
    try:
        answer = _request_grant(settings, url)
    except TokenRefused as error:
        advice = _LOGIN if error.status in (400, 401, 403) else _ENDPOINT
        raise _make_error(f"{place} gives no token: {error}", advice) from None
    except (OSError, HTTPException, ValueError) as error:
        cause = getattr(error, "reason", None) or error
        raise _make_error(
            f"{place} cannot be reached: {_describe_cause(cause)}", _ENDPOINT
        ) from None
    text = answer.get("access_token")
    if not isinstance(text, str) or _BEARER.fullmatch(text) is None:
        raise _make_error(f"{place} answers without an access_token", _ENDPOINT)
    return _make_token(text, _parse_claims(text) or {}, answer.get("expires_in"))


_FILE = "write a valid token into it (one line, three parts with dots between them)"
_ENDPOINT = "check sasl_token_url, ca_cert if its authority is your own, and the network"
_LOGIN = "check sasl_username (client id), sasl_password (client secret) and sasl_oauth_scopes"


def _request_grant(settings: KafkaSettings, url: str) -> Mapping[str, Any]:
    """The endpoint's answer: first with HTTP Basic, which every server must take (RFC 6749
    §2.3.1), then in the body, which some take instead."""
    form = {"grant_type": "client_credentials"}
    if settings.scopes:
        form["scope"] = " ".join(settings.scopes)
    user, secret = settings.username or "", (settings.password or Secret("")).reveal()
    pair = f"{quote_plus(user)}:{quote_plus(secret)}".encode()
    basic = {"Authorization": "Basic " + base64.b64encode(pair).decode()}
    try:
        return _post_form(settings, url, form, basic)
    except TokenRefused as error:
        if error.status != 401:
            raise
        return _post_form(settings, url, {**form, "client_id": user, "client_secret": secret}, {})


def _post_form(
    settings: KafkaSettings, url: str, form: Mapping[str, str], headers: Mapping[str, str]
) -> Mapping[str, Any]:
    sent = {"Content-Type": _TYPE, "Accept": "application/json", **headers}
    request = Request(url, urlencode(form).encode(), sent, method="POST")
    with _build_opener(settings, url).open(request, timeout=PATIENCE) as response:
        status, body = response.status, response.read(_LARGEST)
    answer = _parse_object(body)
    # A redirection is not followed: the secret is for this place alone.
    if status != 200:
        raise TokenRefused(status, (answer or {}).get("error"))
    if answer is None:
        raise ValueError("it does not answer with a JSON object")
    return answer


def _build_opener(settings: KafkaSettings, url: str) -> OpenerDirector:
    """Speaks HTTP and nothing else: no files, no redirections, and no proxy on this computer."""
    opener = OpenerDirector()
    if urlsplit(url).scheme == "http":
        opener.add_handler(HTTPHandler())
        return opener
    context = ssl.create_default_context()
    if settings.ca is not None:
        text = is_pem(settings.ca)
        context.load_verify_locations(
            cafile=None if text else settings.ca, cadata=settings.ca if text else None
        )
    opener.add_handler(ProxyHandler())
    opener.add_handler(HTTPSHandler(context=context))
    return opener


def _parse_claims(text: str) -> Mapping[str, Any] | None:
    """What a JSON web token says; None if this is not one. Its signature is the broker's to
    check."""
    if len(text) > _LARGEST or _JWT.fullmatch(text) is None:
        return None
    header, body = (_decode_part(part) for part in text.split(".")[:2])
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
        return None
    return value if isinstance(value, dict) else None


def _make_token(text: str, claims: Mapping[str, Any], lifetime: Any) -> LoginToken:
    """lifetime: seconds, as the endpoint says it, or anything else."""
    now = time.time()
    ends = [claims["exp"]] if _is_number(claims.get("exp")) else []
    ends += [now + lifetime] if _is_number(lifetime) else []
    return LoginToken(
        Secret(text), float(min(ends, default=now + _UNTOLD)), str(claims.get("sub", ""))
    )


def _is_number(value: Any) -> bool:
    """Whether these can be seconds; NaN and what no clock can show are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _NO_CLOCK


def _describe_endpoint(url: str) -> str:
    """The endpoint without a query, in which somebody may have put a key."""
    parts = urlsplit(url)
    return f"the token endpoint {parts.scheme}://{parts.netloc}{parts.path}"


def _describe_cause(cause: Any) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {cause.verify_message}"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _make_error(sentence: str, advice: str) -> ConnectError:
    return ConnectError(f"no token to log in with: {sentence}", advice)
