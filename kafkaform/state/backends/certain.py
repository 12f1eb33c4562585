"""Object stores through obstore: each request is sent once, and each doubt is settled by a read.

obstore would repeat requests by itself. A conditional write whose answer was lost would then be
refused because of its own first attempt. So obstore repeats nothing here: after every refusal and
every lost answer the object is read, and the bytes that are there decide.

obstore distinguishes few failures by class and the rest by text. The text is searched for causes
and never shown: it contains addresses, and an address of Azure can contain a signature.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import obstore
from msgspec import Struct
from obstore.exceptions import BaseError

from ...core.clock import Clock
from ...core.errors import StorageError
from ...core.objects import Entry, ObjectChanged, ObjectExists, StoredObject
from ...core.progress import SlowTask

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult, UpdateVersion
    from obstore.store import ObjectStore


CREDENTIALS = (
    "Set them in the environment (AWS_ACCESS_KEY_ID ..., GOOGLE_APPLICATION_CREDENTIALS, "
    "AZURE_STORAGE_ACCOUNT_KEY ...) or run on a computer that gets them from its cloud."
)
RIGHTS = "Give this identity the rights that docs/remote-state.md lists, on this prefix."
REGION = "Set `region` to the region of the bucket."
CLOCK = "Set the clock of this computer."
LATER = "Run the command again. If that does not help, check the status page of the store."
NETWORK = "Check the endpoint, the network and the proxy settings of this computer."

CAUSES: tuple[tuple[str, str, str], ...] = (
    (r"NoSuchBucket|ContainerNotFound|bucket does not exist", "there is no such bucket",
     "Create it first (kafkaform creates no buckets), or correct its name."),
    (r"169\.254\.\d+\.\d+|metadata\.google\.internal|[Cc]redential[s ]+(not found|provider)"
     r"|AWS_WEB_IDENTITY|sts\.", "no credentials were found", CREDENTIALS),
    (r"ExpiredToken|TokenRefreshRequired", "the credentials have expired", CREDENTIALS),
    (r"InvalidAccessKeyId|SignatureDoesNotMatch|Unauthenticated|status code: 401",
     "the credentials are not accepted", CREDENTIALS),
    (r"RequestTimeTooSkewed", "the clock of this computer is wrong", CLOCK),
    (r"PermanentRedirect|AuthorizationHeaderMalformed|redirect without LOCATION"
     r"|IllegalLocationConstraint", "the bucket is in another region", REGION),
    (r"AccessDenied|PermissionDenied|status code: 403|AuthorizationFailure",
     "permission denied", RIGHTS),
    (r"SlowDown|status code: (429|503)|ServerBusy", "the store is overloaded", LATER),
    (r"status code: 5\d\d", "the store reports an internal error", LATER),
    (r"status code: 304|status code: 409|status code: 412|AlreadyExists|Precondition|NotModified",
     "the store refused a write although its condition is met",
     "Use a store that honours If-Match and If-None-Match; `kafkaform init` checks it."),
    (r"kind: Timeout|TimedOut|timed out", "no answer came in time", NETWORK),
    (r"dns error|failed to lookup|Name or service not known",
     "the name of the endpoint cannot be resolved", NETWORK),
    (r"certificate|InvalidCertificate|UnknownIssuer", "its certificate is not trusted",
     "Use an endpoint with a certificate that this computer trusts."),
    (r"URL scheme is not allowed|BadScheme", "the endpoint is not encrypted",
     "Use https://, or set allow_http = true for a store in your own network."),
    (r"kind: Connect|ConnectionRefused|ConnectionReset|error sending request|connection closed"
     r"|IncompleteMessage|kind: (Request|Interrupted|Decode)", "the connection failed", NETWORK),
)  # fmt: skip
UNSURE = re.compile(
    r"status code: (304|408|409|412|429|5\d\d)|HTTP error|HttpError|ETag Header missing"
    r"|^(AlreadyExists|Precondition|NotModified)Error|kind: (Timeout|Connect|Request|Decode)"
)
"""Failures after which a write may have happened, or may succeed the next time."""
NAMELESS = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
"""Failures that look like a missing object, but are about the whole bucket."""


class NoSuchObject(Exception):
    """The store says that there is no such object."""


class Unclear(Exception):
    """Nobody knows whether a write happened, or it may succeed the next time."""

    def make_error(self, task: str) -> StorageError:
        """The error to show if no attempt succeeded."""
        return _make_store_error(task, str(self))


class ConditionFailed(Unclear):
    """The store says that the condition of a write is not met. The object shows why."""


@contextlib.contextmanager
def translate_errors(task: str) -> Iterator[None]:
    """Turn what obstore raises into NoSuchObject, Unclear or StorageError."""
    try:
        yield
    except FileNotFoundError as error:
        if NAMELESS.search(str(error)):
            raise _make_store_error(task, str(error)) from None
        raise NoSuchObject from None
    except (BaseError, OSError, ValueError) as error:
        text = f"{type(error).__name__} {error}"
        # Missing credentials look like a failed connection, to the address that gives them out in a
        # cloud. Repeating the request would not help.
        if not UNSURE.search(text) or re.search(CAUSES[1][0], text):
            raise _make_store_error(task, text) from None
        raise Unclear(text) from None


def _make_store_error(task: str, text: str) -> StorageError:
    for pattern, cause, advice in CAUSES:
        if re.search(pattern, text):
            return StorageError(f"{task}: {cause}", advice)
    return StorageError(f"{task}: the store gave an unexpected answer", NETWORK)


PAUSES = (0.0, 0.1, 0.3, 1.0, 2.0, 4.0)
"""Seconds before each attempt."""
PAGE = 1000
LARGE = 1 << 20
"""Bytes from which on the duration of a write depends on its size."""
SLOW_SECONDS = 600.0
"""Seconds that a large write can take."""

T = TypeVar("T")


class Obstore(Struct, frozen=True):
    """`core.objects.Objects` below one prefix of an object store."""

    location: str
    """The name of the place in messages."""
    prefix: str
    """What all keys begin with: empty, or ending with a slash."""
    opened: Callable[[float], ObjectStore]
    """Seconds -> the store whose requests can take that long."""
    timeout: float
    """Seconds for a request without much data."""
    clock: Clock
    """Waits between attempts."""

    def read(self, key: str) -> StoredObject | None:
        return self._repeat_request(f"cannot read {self._render_key(key)}", lambda: self._get(key))

    def create(self, key: str, data: bytes) -> str:
        return self._put(key, data, None)

    def replace(self, key: str, data: bytes, version: str) -> str:
        return self._put(key, data, version)

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        task = f"cannot list {self._render_key(prefix)}"
        entries = self._repeat_request(task, lambda: list(self._list(prefix, after)))
        return tuple(sorted(entries, key=lambda entry: entry.key))

    def delete(self, key: str) -> None:
        self._repeat_request(f"cannot delete {self._render_key(key)}", lambda: self._delete(key))

    def _render_key(self, key: str) -> str:
        return f"{self.location.rstrip('/')}/{key}"

    # ── attempts ────────────────────────────────────────────────────────────────────────

    def _put(self, key: str, data: bytes, version: str | None) -> str:
        """Write, and find out for certain whether it happened. Raises ObjectExists, ObjectChanged,
        StorageError."""
        task, trouble = f"cannot write {self._render_key(key)}", Unclear("")
        for _ in self._pause_between_attempts():
            try:
                return self._send(task, key, data, version)
            except Unclear as error:
                trouble = error
            stored = self.read(key)
            if stored is not None and stored.data == data:
                return stored.version
            if version is None and stored is not None:
                raise ObjectExists(stored)
            if version is not None and (stored is None or stored.version != version):
                raise ObjectChanged(stored)
        raise trouble.make_error(task)

    def _repeat_request(self, task: str, request: Callable[[], T]) -> T:
        """The answer of a request that can be repeated. Raises StorageError."""
        trouble = Unclear("")
        for _ in self._pause_between_attempts():
            try:
                with translate_errors(task):
                    return request()
            except Unclear as error:
                trouble = error
        raise trouble.make_error(task)

    def _pause_between_attempts(self) -> Iterator[None]:
        slow = SlowTask(f"Waiting for {self.location}", "attempts", clock=self.clock)
        for attempt, pause in enumerate(PAUSES, 1):
            slow.report(attempt, len(PAUSES))
            # Many runs that the store turned away must not all come back at the same time.
            self.clock.sleep(pause * random.uniform(0.5, 1.5))
            yield

    # ── single requests ─────────────────────────────────────────────────────────────────

    def _send(self, task: str, key: str, data: bytes, version: str | None) -> str:
        mode: PutMode = "create" if version is None else _parse_version(version)
        seconds = self.timeout if len(data) < LARGE else max(self.timeout, SLOW_SECONDS)
        try:
            with translate_errors(task):
                answer = obstore.put(
                    self.opened(seconds), self.prefix + key, data, mode=mode, use_multipart=False
                )
        except NoSuchObject:  # how some stores say that there is nothing to replace
            raise ConditionFailed("it is gone") from None
        return _make_version(self.location, answer)

    def _get(self, key: str) -> StoredObject | None:
        try:
            with translate_errors(f"cannot read {self._render_key(key)}"):
                answer = obstore.get(self.opened(self.timeout), self.prefix + key)
                meta, data = answer.meta, bytes(answer.bytes())
        except NoSuchObject:
            return None
        return StoredObject(
            data, _make_version(self.location, meta), meta["last_modified"].timestamp()
        )

    def _list(self, prefix: str, after: str | None) -> Iterator[Entry]:
        pages = obstore.list(
            self.opened(self.timeout),
            self.prefix + prefix,
            offset=None if after is None else self.prefix + after,
            chunk_size=PAGE,
        )
        for page in pages:
            for meta in page:
                key = meta["path"].removeprefix(self.prefix)
                yield Entry(key, meta["size"], meta["last_modified"].timestamp())

    def _delete(self, key: str) -> None:
        with (
            contextlib.suppress(NoSuchObject),
            translate_errors(f"cannot delete {self._render_key(key)}"),
        ):
            obstore.delete(self.opened(self.timeout), self.prefix + key)


def _make_version(location: str, meta: ObjectMeta | PutResult) -> str:
    """ETag and version of the store in one text; obstore knows which of them counts."""
    tag, number = meta.get("e_tag") or "", meta.get("version") or ""
    if not tag and not number:
        raise StorageError(
            f"{location}: the store gives objects no version (ETag)",
            "Use a store that does; without it two runs could overwrite each other's state.",
        )
    return f"{tag}\n{number}"


def _parse_version(version: str) -> UpdateVersion:
    tag, _, number = version.partition("\n")
    condition: UpdateVersion = {}
    if tag:
        condition["e_tag"] = tag
    if number:
        condition["version"] = number
    return condition
