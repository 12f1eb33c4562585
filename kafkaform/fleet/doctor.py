"""Whether this computer has what the pipeline needs, and what to do where it has not."""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..core.dataclass import dataclass
from ..core.errors import KafkaformError, StorageError
from ..core.objects import Changed, Exists, Objects
from . import java
from .manifest import FOLDER
from .session import Place, packages

NEEDED = (
    ("pyspark", (4,), (4, 3)),
    ("delta-spark", (4,), (5,)),
    ("deltalake", (1,), (2,)),
    ("pandas", (2, 2), (3,)),
    ("pyarrow", (18,), None),
)
"""Package, the first version that will do, the first that will not."""
LEAST_BYTES = 2 << 30
_GIB = 1 << 30
_INSTALL = "Run `pip install 'kafkaform[fleet]'`."


@dataclass(frozen=True, slots=True)
class Check:
    """good: None if it cannot be told here; told: what was found; advice: empty if all is well."""

    name: str
    good: bool | None
    told: str
    advice: str = ""


def checks(place: Place, objects: Objects | None, folder: Path | None) -> Iterator[Check]:
    """objects: of the root, None: it was not named; folder: the root, if it is one of this
    computer's."""
    yield Check("python", True, sys.version.split()[0])
    yield from _packages()
    yield _java(place)
    yield _jars(place)
    for name, path in (("temporary files", Path(tempfile.gettempdir())), ("root", folder)):
        if path is not None:
            yield _disk(name, path)
    if objects is not None:
        yield _writes(objects)


def _packages() -> Iterator[Check]:
    for name, first, end in NEEDED:
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Check(name, False, "it is not installed", _INSTALL)
            continue
        numbers = _numbers(found)
        good = first <= numbers and (end is None or numbers < end)
        yield Check(name, good, found, "" if good else _INSTALL)


def _numbers(text: str) -> tuple[int, ...]:
    """`4.2.0rc1` -> (4, 2)."""
    parts = text.split(".")
    whole = next((n for n, part in enumerate(parts) if not part.isdecimal()), len(parts))
    return tuple(map(int, parts[:whole]))


def _java(place: Place) -> Check:
    if place.connect:
        return Check("java", None, f"the Connect server's counts ({place.master})")
    try:
        found = java.find(place.cache)
    except KafkaformError as error:
        return Check("java", False, error.message, error.advice)
    about = "" if found.whole else ", without vector instructions"
    return Check("java", True, f"{found.version} ({found.found}{about})")


def _jars(place: Place) -> Check:
    if place.connect:
        return Check("jars", None, "the Connect server must have Delta Lake's")
    missing = [jar for jar in place.jars if "://" not in jar and not Path(jar).is_file()]
    if missing:
        return Check("jars", False, f"{missing[0]} is not there", "Correct --jars.")
    if place.jars:
        return Check("jars", True, ", ".join(place.jars))
    try:
        group, name, number = packages().split(":")
    except PackageNotFoundError:
        return Check("jars", False, "the packages come first", _INSTALL)
    jar = place.cache / "ivy" / "jars" / f"{group}_{name}-{number}.jar"
    if jar.is_file():
        return Check("jars", True, f"{name} {number} is in {jar.parent}")
    return Check(
        "jars",
        None,
        f"{name} {number} will be fetched from Maven when Spark starts first",
        "Without a way to Maven, name the jars with --jars or a mirror with --ivy-settings.",
    )


def _disk(name: str, path: Path) -> Check:
    there = next(
        folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists()
    )
    free = shutil.disk_usage(there).free
    told = f"{free / _GIB:.1f} GiB free in {there}"
    if free >= LEAST_BYTES:
        return Check(name, True, told)
    return Check(name, False, told, f"Free some space: {LEAST_BYTES / _GIB:.0f} GiB at least.")


def _writes(objects: Objects) -> Check:
    """Whether two writers could lose each other's work in the root."""
    key = f"{FOLDER}/probe-{secrets.token_hex(8)}"
    try:
        told = _promises(objects, key)
    except StorageError as error:
        return Check("writes", False, error.message, error.advice)
    advice = "" if told is None else "Use a store whose writes can be made conditional."
    return Check("writes", told is None, told or f"{objects.location} keeps its promises", advice)


def _promises(objects: Objects, key: str) -> str | None:
    """The one that is broken, if any."""
    first = objects.create(key, b"one")
    try:
        objects.create(key, b"two")
        return "a write over what is there was not refused"
    except Exists:
        pass
    try:
        objects.replace(key, b"three", objects.replace(key, b"two", first))
        objects.replace(key, b"four", first)
        return "a write over a newer version was not refused"
    except Changed:
        return None
    finally:
        objects.delete(key)
