"""Object stores through obstore: places of a remote state, and requests to them. Each request is
sent once, and each doubt is settled by a read.

Places are addresses and options with Terraform's names, a table for each store. Nothing secret is
taken from them: credentials come from the environment or from the computer.

obstore would repeat requests by itself. A conditional write whose answer was lost would then be
refused because of its own first attempt. So obstore repeats nothing here: after every refusal and
every lost answer the object is read, and the bytes that are there decide.

obstore distinguishes few failures by class and the rest by text. The text is searched for causes
and never shown: it contains addresses, and an address of Azure can contain a signature.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import obstore
import obstore.store
from msgspec import Struct
from obstore.exceptions import BaseError

from ...core.clock import Clock, SystemClock
from ...core.errors import StorageError, UsageError
from ...core.objects import Entry, ObjectChanged, ObjectExists, Objects, StoredObject
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


TIMEOUT_SECONDS = 10.0


class StoreKind(Struct, frozen=True):
    """One kind of store."""

    start: str
    """The scheme of its addresses."""
    bucket: str
    """The option for the first part of an address."""
    folder: str
    """The option for the rest of an address."""
    store: str = ""
    """The class of obstore; empty for a store in memory."""
    settings: Mapping[str, str] = {}
    """Option -> obstore's name for it."""
    endpoints: tuple[str, ...] = ()
    """Environment variables that name an endpoint; the first one that is set counts."""


COMMON = ("allow_http", "timeout")
KINDS: Mapping[str, StoreKind] = {
    "s3": StoreKind(
        "s3",
        "bucket",
        "key",
        "S3Store",
        {
            "region": "region",
            "endpoint": "endpoint",
            "use_path_style": "virtual_hosted_style_request",
            "encrypt": "server_side_encryption",
            "kms_key_id": "sse_kms_key_id",
        },
        ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    ),
    "gcs": StoreKind("gs", "bucket", "prefix", "GCSStore"),
    "azurerm": StoreKind(
        "az",
        "container_name",
        "key",
        "AzureStore",
        {"storage_account_name": "account_name", "endpoint": "endpoint"},
        ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    ),
    "memory": StoreKind("memory", "name", "key"),
}
"""Name of a `backend` block -> its kind of store."""
SCHEMES: Mapping[str, str] = {
    "s3": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azurerm",
    "abfs": "azurerm",
    "abfss": "azurerm",
    "azurerm": "azurerm",
    "memory": "memory",
}


def is_remote(address: str) -> bool:
    """True if `--state` names a store and not a file."""
    return "://" in address


def open_objects(url: str, options: Mapping[str, str], clock: Clock | None = None) -> Objects:
    """The objects under an address such as `s3://bucket/prefix`; nothing is sent yet.

    What the address leaves out (`s3://`) comes from the options, which it can also contain as a
    query. Raises UsageError.
    """
    address = urlsplit(url)
    name = SCHEMES.get(address.scheme)
    if name is None:
        raise UsageError(
            f"{address.scheme}:// is not a store for state",
            f"Known are {', '.join(f'{kind.start}://' for kind in KINDS.values())}.",
        )
    kind, settings = KINDS[name], dict(parse_qsl(address.query)) | dict(options)
    _refuse_unknown(name, kind, settings)
    bucket = _choose_once(kind.bucket, address.netloc, settings)
    folder = _choose_once(kind.folder, address.path.strip("/"), settings).strip("/")
    if not bucket:
        raise UsageError(f"{url}: the {kind.bucket.partition('_')[0]} is not named")
    location = f"{kind.start}://{bucket}/{folder}".rstrip("/")
    prefix = f"{folder}/" if folder else ""
    timeout = _parse_timeout(settings)
    return Obstore(
        location, prefix, _make_opener(kind, bucket, settings), timeout, clock or SystemClock()
    )


def _choose_once(name: str, in_address: str, settings: Mapping[str, str]) -> str:
    option = settings.get(name, "")
    if option and in_address and option != in_address:
        raise UsageError(f"the address names {in_address!r}, the option {name} {option!r}")
    return option or in_address


def _refuse_unknown(name: str, kind: StoreKind, settings: Mapping[str, str]) -> None:
    names = sorted({kind.bucket, kind.folder, *kind.settings, *COMMON})
    for option in settings.keys() - set(names):
        raise UsageError(
            f"{option!r} is not an option of the {name} backend",
            f"Known are {', '.join(names)}. Credentials are taken from the environment only.",
        )


def _parse_timeout(settings: Mapping[str, str]) -> float:
    text = settings.get("timeout", str(TIMEOUT_SECONDS))
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:
        raise UsageError(f"timeout {text!r} is not a number of seconds", "Write it as 10s.")
    return seconds


def _parse_flag(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise UsageError(f"{name} is {text!r}, expected true or false")
    return text == "true"


# ── stores ──────────────────────────────────────────────────────────────────────────────


def _make_opener(
    kind: StoreKind, bucket: str, settings: Mapping[str, str]
) -> Callable[[float], ObjectStore]:
    if not kind.store:
        return lambda _: _get_memory_store(bucket)
    config = _make_config(kind, settings)
    endpoint = config.get("endpoint") or next(filter(None, map(os.environ.get, kind.endpoints)), "")
    plain = _parse_flag("allow_http", settings.get("allow_http", "false")) or _is_loopback(
        str(endpoint)
    )
    if str(endpoint).startswith("http://") and not plain:
        raise UsageError(
            f"the endpoint {endpoint} is not encrypted",
            "Use https://, or set allow_http = true for a store in your own network.",
        )
    return cache(partial(_open_store, kind.store, bucket, config, plain))


def _make_config(kind: StoreKind, settings: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {
        key: settings[setting] for setting, key in kind.settings.items() if setting in settings
    }
    if kind.store == "S3Store":
        # Whatever the environment says: without conditional writes two runs overwrite each other,
        # and not every compatible store knows bulk deletes.
        config |= {"conditional_put": "etag", "disable_bulk_delete": True}
        if "use_path_style" in settings:
            path = _parse_flag("use_path_style", settings["use_path_style"])
            config["virtual_hosted_style_request"] = not path
        if "encrypt" in settings or "kms_key_id" in settings:
            encrypt = _parse_flag("encrypt", settings.get("encrypt", "true"))
            kms = "aws:kms" if "kms_key_id" in settings else "AES256"
            config["server_side_encryption"] = kms if encrypt else None
    return {name: value for name, value in config.items() if value is not None}


def _open_store(
    store: str, bucket: str, config: Mapping[str, Any], plain: bool, seconds: float
) -> ObjectStore:
    store_client: ObjectStore = getattr(obstore.store, store)(
        bucket,
        **config,
        client_options={
            "allow_http": plain,
            "connect_timeout": timedelta(seconds=min(seconds, TIMEOUT_SECONDS)),
            "read_timeout": timedelta(seconds=seconds),
            "timeout": timedelta(seconds=max(seconds, LONGEST_SECONDS)),
        },
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=1)},
    )
    return store_client


LONGEST_SECONDS = 3600.0
"""Seconds that a large answer can take while it keeps arriving."""


@cache
def _get_memory_store(name: str) -> ObjectStore:
    return obstore.store.MemoryStore()


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
