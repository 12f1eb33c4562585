"""List what has landed, and compute the name of the build that is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from ...core.errors import UsageError
from ...core.landing import REGISTER, ROOT
from ...core.objects import Objects
from ..landed.register import Register, read_register
from ..tables.definitions import SCHEMA_VERSION


def list_inputs(objects: Objects) -> Mapping[str, int]:
    """Return path below the landing folder -> size in bytes."""
    return {e.key.removeprefix(f"{ROOT}/"): e.size for e in objects.names(f"{ROOT}/")}


def get_source(file: str) -> str:
    """Return the folder of a file: register, live, state, desired or audit."""
    return file.split("/", 1)[0]


def get_subject(file: str) -> str:
    """Return the cluster or lineage that a file is about."""
    return file.split("/", 2)[1]


def compute_fingerprint(files: Mapping[str, int], options: Iterable[object]) -> str:
    """Return the SHA-256 of everything that decides what a build makes. Landing files never change,
    so name and size stand for their bytes."""
    lines = sorted(f"{name} {size}" for name, size in files.items())
    about = (f"schema {SCHEMA_VERSION}", *map(str, options))
    return sha256("\n".join((*lines, *about)).encode()).hexdigest()


def read_newest_register(objects: Objects, files: Iterable[str]) -> Register | None:
    """Return the newest register among these files; None: there is none."""
    # Names are times of equal width, so they sort by time.
    names = sorted(name for name in files if get_source(name) == REGISTER)
    register_object = objects.read(f"{ROOT}/{names[-1]}") if names else None
    return None if register_object is None else read_register(register_object.data.decode())


def read_current_register(objects: Objects, files: Iterable[str]) -> Register:
    """Return the newest register. Raises UsageError: nothing has landed."""
    register = read_newest_register(objects, files)
    if register is None:
        raise UsageError(
            f"{objects.location}: there are no landing files",
            "Run `kafkaform fleet snapshot` first; it reads the clusters and writes landing files.",
        )
    return register
