"""Places of a remote state: addresses and options with Terraform's names, a table for each store.

Nothing secret is taken from them: credentials come from the environment or from the computer.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import obstore.store
from msgspec import Struct

from ...core.clock import Clock, SystemClock
from ...core.errors import UsageError
from ...core.objects import Objects
from .certain import Obstore

if TYPE_CHECKING:
    from obstore.store import ObjectStore

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
