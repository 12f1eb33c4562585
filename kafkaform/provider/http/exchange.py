"""A call and what became of it: an answer, nothing sent, or an answer that was lost; the fault that
follows from it; and the JSON of an answer, read strictly.

NotSent and AnswerLost are the line that decides about safety: after the first, the server has not
seen the call; after the second, it may have executed it. JSON that two readers could understand
differently is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from ...core.resource import Fault, FaultClass
from ...core.secret import Secret, mask_secrets

NO_QUERY: Mapping[str, str] = {}
ErrorTable = Mapping[tuple[int, int | None], tuple[FaultClass, str]]
"""(status of HTTP, `error_code` of the body) -> what it says about the effect, and what to do.
None as a code stands for every other code of that status."""
MAX_MESSAGE = 1000
"""Characters of what a server says."""
NOT_SENT, ANSWER_LOST = "NOT_SENT", "ANSWER_LOST"
"""Codes of faults without an answer."""
_STATUSES: Mapping[int, tuple[FaultClass, str]] = {
    401: (FaultClass.PERMISSION, "check the login in the provider block"),
    403: (FaultClass.PERMISSION, "give the user of the provider block the right to do this"),
    407: (FaultClass.PERMISSION, "check the login of the proxy"),
    429: (FaultClass.NOT_APPLIED, "run the same command again later"),
}
_TOO_MANY, _UNAVAILABLE = 429, 503
_FOR_NOW = (_TOO_MANY, _UNAVAILABLE)
"""Statuses of a server that has too much to do."""
_REDIRECTED = (
    FaultClass.DEFINITE,
    "write the address that answers itself into url: redirections are not followed, because the "
    "login must not go to another host",
)
_REFUSED = (FaultClass.DEFINITE, "correct the configuration")
_UNNAMED = {
    404: "check url: there is another service, or the path in front of the API is missing",
    409: "wait until the servers have agreed on their work, then run the same command again",
    429: _STATUSES[429][1],
    503: "the server is starting or has too much to do: run the same command again later",
}
"""Status of a system that does not say who it is -> what to do."""
_BROKEN = "look at the server's log, then run the same command again"
MAX_DEPTH = 100
"""Levels of lists and objects. Python's own limit depends on who calls."""
MAX_DIGITS = 400
"""Of a number, and of its exponent as a power of ten: the largest double has 309 digits."""
_LONG_NUMBER = b"0" * MAX_DIGITS
_DIGITS = bytes.maketrans(b"123456789", b"000000000")


class Call(Struct, frozen=True):
    """One request of HTTP."""

    method: str
    """`GET`, `PUT` …"""
    path: str
    """Below the url of the settings, with a leading slash, from `join_path`."""
    body: Any = None
    """What is sent as JSON; None for nothing."""
    query: Mapping[str, str] = NO_QUERY
    """The parameters of the URL."""
    reads: bool = False
    """It changes nothing, so it can be sent twice."""
    opaque: bool = False
    """The status says everything: the body of the answer need not be JSON, and is dropped."""
    form: Secret | None = None
    """What is sent instead of a body, URL-encoded (RFC 6749 §4.4.2): it can contain a secret."""

    @property
    def target(self) -> str:
        """Path and query as they are sent."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class HttpAnswer(Struct, frozen=True):
    """What the server answered, whatever its status."""

    status: int
    """Status of HTTP. Redirections are answers, too: they are not followed."""
    body: Any = None
    """The JSON value as from `parse_json`. None for an empty body, and for the body of an error
    that is not JSON, such as a proxy's page."""
    headers: Mapping[str, str] = NO_QUERY
    """Names in lower case."""

    @property
    def succeeded(self) -> bool:
        """True for 2xx."""
        return 200 <= self.status < 300


class CallFailed(Exception):
    """A call without an answer that can be used. cause: a sentence without its final stop, without
    secrets."""

    def __init__(self, cause: str, advice: str = "", location: str = "") -> None:
        """location: the server and the call."""
        super().__init__(cause)
        self.cause = cause
        self.advice = advice
        self.where = location


class NotSent(CallFailed):
    """The server has not seen the call: no connection, no TLS, no login token, or nobody could say
    which system answers there. answer: what it said instead of its name, if it said something."""

    answer: HttpAnswer | None = None


class AnswerLost(CallFailed):
    """From the first byte on: the call may have been executed. timed_out: nothing came in time."""

    timed_out = False


def join_path(*segments: str) -> str:
    """The path with these segments, each percent-encoded whole: no name reaches another path."""
    return "".join([f"/{_quote_segment(segment)}" for segment in segments])


# Most segments occur in every call of a kind.
@lru_cache(maxsize=4096)
def _quote_segment(segment: str) -> str:
    # A server or proxy that takes "." and ".." away as steps must not see them as such.
    return {".": "%2E", "..": "%2E%2E"}.get(segment) or quote(segment, safe="")


def make_transport_fault(failure: CallFailed) -> Fault:
    """The fault of a call without an answer."""
    if not isinstance(failure, NotSent):
        advice = failure.advice or _BROKEN
        return Fault(ANSWER_LOST, failure.cause, FaultClass.AMBIGUOUS, failure.where, advice)
    kind, advice = FaultClass.NOT_APPLIED, failure.advice or "run the same command again"
    pause, quota = None, False
    if failure.answer is not None:
        status = failure.answer.status
        quota = status == _TOO_MANY
        if status in _FOR_NOW:
            pause = read_retry_after(failure.answer) or 0.0
        if status in (401, 403, 407):
            kind, advice = _STATUSES[status]
        elif status in _UNNAMED:
            advice = _UNNAMED[status]
        elif 300 <= status < 400:
            advice = _REDIRECTED[1]
        else:
            advice = _BROKEN if status >= 500 else "check url and what runs there"
    return Fault(NOT_SENT, failure.cause, kind, failure.where, advice, pause, quota)


def make_fault(answer: HttpAnswer, table: ErrorTable, call: Call) -> Fault:
    """The fault of an answer that is not a success.

    A row of the table counts first. Without one, a login or right that is missing is PERMISSION,
    429 is NOT_APPLIED, another refusal (3xx, 4xx) is DEFINITE, and 5xx is AMBIGUOUS for a write:
    a proxy's 502 can come after the effect. A server that refused the call only for now may name
    the time to wait or not.
    """
    code = read_error_code(answer)
    row = table.get((answer.status, code)) or table.get((answer.status, None))
    kind, advice = row or _judge_status(answer.status, reads=call.reads)
    return Fault(
        f"HTTP_{answer.status}" if code is None else str(code),
        read_message(answer),
        kind,
        f"{call}",
        advice,
        _choose_pause(answer, kind, call, listed=row is not None),
        quota=answer.status == _TOO_MANY,
    )


def _choose_pause(
    answer: HttpAnswer, kind: FaultClass, call: Call, *, listed: bool
) -> float | None:
    """Seconds after which the server takes the same call; None if it does not ask to wait."""
    retry_after = read_retry_after(answer)
    if answer.status in _FOR_NOW:
        # A read that meets 503 changes nothing: whoever needs it fails at once and says so.
        return retry_after if call.reads and answer.status == _UNAVAILABLE else retry_after or 0.0
    # A row that says that nothing happened describes a server that is not ready yet, such as one
    # that has no leader.
    if kind is FaultClass.NOT_APPLIED and (listed or retry_after is not None):
        return retry_after or 0.0
    return None


def _judge_status(status: int, *, reads: bool) -> tuple[FaultClass, str]:
    if status in _STATUSES:
        return _STATUSES[status]
    if 300 <= status < 400:
        return _REDIRECTED
    if 400 <= status < 500:
        return _REFUSED
    return (FaultClass.NOT_APPLIED if reads else FaultClass.AMBIGUOUS), _BROKEN


def read_error_code(answer: HttpAnswer) -> int | None:
    """`error_code` of the body, None without one."""
    code = answer.body.get("error_code") if isinstance(answer.body, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def read_message(answer: HttpAnswer) -> str:
    """What the server says in `message`, or the meaning of the status; never a secret."""
    text = answer.body.get("message") if isinstance(answer.body, dict) else None
    if isinstance(text, str) and text.strip():
        # Masked before it is cut: half of a secret is not found any more.
        message = " ".join(mask_secrets(text).split())
        return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
    phrases = {status.value: status.phrase for status in HTTPStatus}
    return f"HTTP {answer.status} {phrases.get(answer.status, '')}".strip()


def read_retry_after(answer: HttpAnswer) -> float | None:
    """Seconds that Retry-After asks to wait (RFC 9110 §10.2.3), as a number or as a date; None
    without it."""
    text = answer.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


class NotJson(ValueError):
    """The text is not JSON as RFC 8259 and RFC 7493 (I-JSON) want it. It repeats nothing of it."""


class _NotPlain(Exception):
    """Something that the short way cannot judge."""


def parse_json(data: bytes | str) -> Any:
    """Lists, dicts, texts, ints, Decimals, bools and None. data: UTF-8. Raises NotJson.

    Refused are NaN and infinity, duplicate keys, half of a surrogate pair, numbers without
    measure, and more than MAX_DEPTH levels.
    """
    # Not `core.canonical`, which reads our own files: there {"$secret": …} is a reference to a
    # secret, and no server can be allowed to write one.
    try:
        return _parse_plain(data if isinstance(data, bytes) else data.encode("utf-8"))
    except (_NotPlain, msgspec.MsgspecError, RecursionError, UnicodeError):
        return parse_slowly(data)


def _parse_plain(data: bytes) -> Any:
    """The value of what nearly every server sends, in a quarter of the time. Raises _NotPlain,
    MsgspecError, RecursionError, UnicodeError for anything that only `parse_slowly` can judge."""
    # One byte is found in a tenth of the time of two.
    if (b"\\" in data and b"\\u" in data) or _LONG_NUMBER in data.translate(_DIGITS):
        raise _NotPlain
    value = _DECODER.decode(data)
    # The decoder keeps the last of two equal keys without a word. Written again, the value then has
    # fewer colons: the texts have as many as before, and one is missing for each key that is.
    if msgspec.json.encode(value).count(b":") != data.count(b":"):
        raise _NotPlain
    # So few brackets cannot be nested too deeply. Halves of pairs are not UTF-8, and the decoder
    # refuses them.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _is_too_deep(value):
        raise _NotPlain
    return value


def _is_too_deep(value: Any) -> bool:
    """Level by level: recursion would end where Python's stack does."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def parse_slowly(data: bytes | str) -> Any:
    """The same with the whole check."""
    try:
        value = json.loads(
            data if isinstance(data, str) else data.decode("utf-8"),
            object_pairs_hook=_build_object,
            parse_float=_parse_decimal,
            parse_int=_parse_integer,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"it is not JSON ({error.msg} at character {error.pos})") from None
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None
    _check_parts(value)
    return value


def _check_parts(value: Any) -> None:
    """Depth and texts, level by level: recursion would end where Python's stack does."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, dict):
                for key in item:
                    _check_text(key)
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        if not inner:
            return
        level = inner
    raise NotJson("it is nested too deeply")


def _check_text(text: str) -> None:
    # Half of a pair cannot be written as UTF-8: the first file or screen would fail on it.
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise NotJson("it contains half of a surrogate pair") from None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotJson("an object has the same key twice")
    return members


def _parse_decimal(text: str) -> Decimal:
    try:
        number = Decimal(text) if len(text) <= MAX_DIGITS else None
    except InvalidOperation:  # an exponent that no Decimal can have
        number = None
    if number is None or abs(number.adjusted()) > MAX_DIGITS:
        raise NotJson("a number has too many digits")
    return number


def _parse_integer(text: str) -> int:
    # Python needs quadratic time to read a number.
    if len(text) > MAX_DIGITS:
        raise NotJson("a number has too many digits")
    return int(text)


def _refuse_constant(text: str) -> Any:
    raise NotJson(f"{text} is not a JSON number")


_DECODER = msgspec.json.Decoder(float_hook=_parse_decimal)
