"""Requests to a forge's API. The token goes to its address and nowhere else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, Concatenate, ParamSpec, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .job import JobError

PAGE = 100
"""Items of a page, the most that GitHub and GitLab give."""
TIMEOUT_SECONDS = 30.0
LARGEST_DOWNLOAD = 64 * 1024 * 1024
"""Bytes of a file that is downloaded."""


PAUSES = (2.0, 8.0, 30.0)
"""Seconds before the second, third and fourth attempt."""
LONGEST_PAUSE = 120.0
"""Seconds that a forge can ask to wait before the next attempt."""
_PASSING = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Statuses that another attempt can change."""

_Self = TypeVar("_Self")
_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


class Missing(JobError):
    """What was asked for does not exist."""


class Unavailable(JobError):
    """The forge did not answer, or asks for another attempt. Nobody knows whether a request that
    writes had an effect. pause: seconds that it asks to wait, 0 if it does not say."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


def repeat_if_unavailable(
    work: Callable[Concatenate[_Self, _Arguments], _Result],
) -> Callable[Concatenate[_Self, _Arguments], _Result]:
    """The same method, which starts again from its first request if the forge is unavailable.

    It must read before it writes, so that it finds what an earlier attempt has written.
    """

    @wraps(work)
    def attempt(self: _Self, /, *words: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        for pause in PAUSES:
            try:
                return work(self, *words, **named)
            except Unavailable as error:
                seconds = min(max(pause, error.pause), LONGEST_PAUSE)
                print(f"{error} Trying again in {seconds:g} s.", flush=True)
                time.sleep(seconds)
        return work(self, *words, **named)

    return attempt


class _NoRedirect(HTTPRedirectHandler):
    """Makes a redirect an error: urllib would take the token along to the host that it names."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


_OPENER = build_opener(_NoRedirect)


@dataclass(frozen=True)
class Api:
    """The API of a forge."""

    address: str
    """Such as `https://api.github.com`."""
    headers: Mapping[str, str] = field(repr=False)
    """Sent with each request; one of them contains the token."""

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send one request, once; the JSON of the answer. Raises JobError, and Unavailable if
        another attempt can succeed."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.address + path, data, dict(self.headers), method=method)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        answer = _read(request, f"{method} {path.partition('?')[0]}")
        try:
            return json.loads(answer) if answer else None
        except ValueError:
            raise JobError(f"The answer to {method} {path} is not JSON.") from None

    def read_all(self, path: str) -> Iterator[Any]:
        """Every item of a list, page by page. Raises JobError."""
        joint = "&" if "?" in path else "?"
        number = 1
        while True:
            items = self.send("GET", f"{path}{joint}per_page={PAGE}&page={number}")
            yield from items
            if len(items) < PAGE:
                return
            number += 1

    def download(self, path: str) -> bytes:
        """A file that the API itself sends. Raises JobError, also for a redirect."""
        return _read(Request(self.address + path, headers=dict(self.headers)), f"GET {path}")

    def download_elsewhere(self, path: str) -> bytes:
        """A file whose signed address the API answers with; it is fetched without the token."""
        request = Request(self.address + path, headers=dict(self.headers))
        try:
            with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return _limit(answer.read(LARGEST_DOWNLOAD + 1))
        except HTTPError as error:
            error.close()
            place = error.headers.get("Location", "")
            # Only as safe as the API itself: no file:, and no http: after https:.
            if error.code != 302 or urlsplit(place).scheme != urlsplit(self.address).scheme:
                raise _make_error(f"GET {path}", error) from None
        except (OSError, HTTPException) as error:
            raise Unavailable(f"GET {path} failed: {error}.") from None
        return _read(Request(place), "GET the artifact")


def _read(request: Request, what: str) -> bytes:
    try:
        with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as answer:
            return _limit(answer.read(LARGEST_DOWNLOAD + 1))
    except HTTPError as error:
        error.close()
        raise _make_error(what, error) from None
    except (OSError, HTTPException) as error:
        raise Unavailable(f"{what} failed: {error}.") from None


def _limit(data: bytes) -> bytes:
    if len(data) > LARGEST_DOWNLOAD:
        raise JobError("A file of the plan's job is larger than 64 MiB.")
    return data


def _make_error(what: str, error: HTTPError) -> JobError:
    retry_after = error.headers.get("Retry-After", "")
    # GitHub answers 403 with this header if there were too many requests in a short time.
    if error.code in _PASSING or (error.code == 403 and retry_after):
        pause = float(retry_after) if retry_after.isdecimal() else 0.0
        return Unavailable(f"{what} was answered with {error.code}.", pause)
    kind = Missing if error.code == 404 else JobError
    advice = {
        401: " Check the token.",
        403: " Give the job the permissions of the example file.",
    }
    return kind(f"{what} was answered with {error.code}.{advice.get(error.code, '')}")
