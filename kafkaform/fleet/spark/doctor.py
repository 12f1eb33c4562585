"""Check whether the pipeline can run on this computer, and say what to do where it cannot."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from ...core.errors import KafkaformError, StorageError, UsageError
from ...core.installation import render_extra_command
from ...core.objects import ObjectChanged, ObjectExists, Objects
from ..tables.manifest import FOLDER
from . import requirements, session
from .session import SparkSetup, make_start_options, name_delta_package

READER_PACKAGES = (("deltalake", (1,), (2,)), ("pyarrow", (18,), None))
"""Package, first version that works, first version that does not (None: none is known)."""
NEEDED_PACKAGES = (*READER_PACKAGES, ("pandas", (2, 2), (3,)), ("hdfs-native", (0, 14), (0, 15)))
_PYSPARK = ((4,), (4, 3))
SPARK_PACKAGES = (("pyspark", *_PYSPARK), ("delta-spark", (4,), (5,)))
SAIL_PACKAGES = (("pysail", (0, 7, 2), (0, 8)),)
LEAST_BYTES = 2 << 30
"""Free disk space below which a check fails."""
_GIB = 1 << 30
_STORAGE = "delta-storage"
"""The second of Delta Lake's two jars."""
_SHIM_NOTE = ", started by a script that leaves out the vector module, which it lacks"


class DoctorCheck(Struct, frozen=True):
    """The result of one check."""

    name: str
    good: bool | None
    """None: it cannot be checked here."""
    finding: str
    """What was found."""
    advice: str = ""
    """What to do; empty if nothing."""


def run_checks(
    setup: SparkSetup, reason: str, objects: Objects | None, folder: Path | None
) -> Iterator[DoctorCheck]:
    """Yield every check.

    reason: why on this master; objects: of the root, None if it was not named; folder: the root if
    it is a local folder.
    """
    yield DoctorCheck("python", True, sys.version.split()[0])
    if find_spec("pyspark") is None:
        yield from _check_readers()
    else:
        yield from _check_builders(setup, reason)
    for name, path in _list_folders(folder):
        yield _check_disk(name, path)
    if objects is not None:
        yield _check_writes(objects)
    # Spark knows HDFS by itself. Other stores need Hadoop's jars, which only Spark uses.
    is_store = objects is not None and folder is None and not setup.connect
    if is_store and objects is not None and not objects.location.startswith("hdfs://"):
        yield DoctorCheck(
            "hadoop",
            None,
            f"Spark reaches {objects.location} through Hadoop's jars",
            "Put them and their settings into spark-defaults.conf. For s3:// they are hadoop-aws, "
            "in the version of Spark's own Hadoop.",
        )


def _check_readers() -> Iterator[DoctorCheck]:
    """Yield the checks of a computer that has neither Sail nor Spark: it can still read tables."""
    for name, first, end in READER_PACKAGES:
        yield _check_package(name, first, end, "fleet-read")
    yield DoctorCheck(
        "engine",
        False,
        "neither Sail nor Spark is installed, so `fleet run` cannot make tables here",
        f"Run `{render_extra_command('fleet-small')}` for Sail, or with [fleet] for Spark, too. "
        "Commands that only read need neither.",
    )


def _check_builders(setup: SparkSetup, reason: str) -> Iterator[DoctorCheck]:
    """Yield the checks of what makes tables on this master."""
    engine = _check_engine(setup, reason)
    yield engine
    if not engine.good:
        return
    extra = "fleet-small" if setup.embedded else "fleet"
    # Spark's own package has its client, too.
    client = ("pyspark" if find_spec("py4j") else "pyspark-client", *_PYSPARK)
    own_packages = (*SAIL_PACKAGES, client) if setup.embedded else SPARK_PACKAGES
    for name, first, end in (*own_packages, *NEEDED_PACKAGES):
        yield _check_package(name, first, end, extra)
    if not setup.embedded:
        yield _check_java(setup)
        yield _check_jars(setup)
    if setup.local:
        yield _check_memory(setup)
        yield _check_classes(setup)


def _check_engine(setup: SparkSetup, reason: str) -> DoctorCheck:
    try:
        session.need_spark(setup)
    except UsageError as error:
        return DoctorCheck("engine", False, error.message, error.advice)
    name = "Sail, in this process" if setup.embedded else f"Spark, --master {setup.master}"
    advice = f"`--master {session.LOCAL}` checks Spark instead." if setup.embedded else ""
    return DoctorCheck("engine", True, f"{name}: {reason}", advice)


def _check_package(
    name: str, first: Sequence[int], end: Sequence[int] | None, extra: str
) -> DoctorCheck:
    advice = f"Run `{render_extra_command(extra)}`."
    try:
        installed = version(name)
    except PackageNotFoundError:
        return DoctorCheck(name, False, "it is not installed", advice)
    # `4.2.0rc1` -> (4, 2). Tuples of different length compare as versions do.
    words = installed.split(".")
    count = next((n for n, word in enumerate(words) if not word.isdecimal()), len(words))
    numbers = tuple(map(int, words[:count]))
    good = tuple(first) <= numbers and (end is None or numbers < tuple(end))
    return DoctorCheck(name, good, installed, "" if good else advice)


def _check_java(setup: SparkSetup) -> DoctorCheck:
    if setup.connect:
        return DoctorCheck("java", None, f"the Connect server has its own ({setup.master})")
    try:
        java_used = session.find_java(setup.cache)
    except KafkaformError as error:
        return DoctorCheck("java", False, error.message, error.advice)
    description = (
        f"{java_used.version} ({java_used.origin}{'' if java_used.has_vector else _SHIM_NOTE})"
    )
    fault = requirements.find_fault(java_used.home / "bin" / "java")
    advice = "Set JAVA_HOME to another one." if fault else ""
    return DoctorCheck("java", not fault, f"{description} {fault}".rstrip(), advice)


def _check_jars(setup: SparkSetup) -> DoctorCheck:
    if setup.connect:
        return DoctorCheck("jars", None, "the Connect server must have Delta Lake's jars")
    missing = [jar for jar in setup.jars if "://" not in jar and not Path(jar).is_file()]
    if missing:
        return DoctorCheck("jars", False, f"{missing[0]} is not there", "Correct --jars.")
    if setup.jars:
        return DoctorCheck("jars", True, ", ".join(setup.jars))
    if setup.ivy is not None and not setup.ivy.is_file():
        return DoctorCheck("jars", False, f"{setup.ivy} is not there", "Correct --ivy-settings.")
    try:
        group, name, number = name_delta_package().split(":")
    except PackageNotFoundError:
        return DoctorCheck(
            "jars", False, "install the packages first", f"Run `{render_extra_command('fleet')}`."
        )
    folder, prefix = setup.cache / "jars", ""
    if setup.ivy is not None:
        folder, prefix = setup.cache / "ivy" / "jars", f"{group}_"
    if all((folder / f"{prefix}{jar}-{number}.jar").is_file() for jar in (name, _STORAGE)):
        return DoctorCheck("jars", True, f"{name} {number} is in {folder}")
    return DoctorCheck(
        "jars",
        None,
        f"{name} {number} will be downloaded when Spark starts for the first time",
        "If Maven cannot be reached, name the jars with --jars or a mirror with --ivy-settings.",
    )


def _check_classes(setup: SparkSetup) -> DoctorCheck:
    """A missing archive is not a fault: Spark only starts more slowly."""
    try:
        options = make_start_options(setup.cache)
    except (KafkaformError, PackageNotFoundError):
        return DoctorCheck("classes", None, "install Java and Spark first")
    if options:
        return DoctorCheck("classes", True, f"Spark starts from the archive in {setup.cache}")
    advice = "`kafkaform fleet prepare` archives Java's classes, so that Spark starts sooner."
    return DoctorCheck("classes", None, "each session loads them again", advice)


def _check_memory(setup: SparkSetup) -> DoctorCheck:
    try:
        fault = requirements.find_memory_fault(session.build_settings(setup))
    except (KafkaformError, PackageNotFoundError):
        return DoctorCheck("memory", None, "install Java and Spark first")
    size = f"{requirements.read_memory() / _GIB:.1f} GiB in this computer or container"
    return DoctorCheck(
        "memory", not fault, fault or size, requirements.MEMORY_ADVICE if fault else ""
    )


def _list_folders(root: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield the folders that Spark writes a lot to."""
    named = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    for path in filter(None, named):
        yield "temporary files", Path(path)
    if not any(named):
        yield "temporary files", Path(tempfile.gettempdir())
    if root is not None:
        yield "root", root


def _check_disk(name: str, path: Path) -> DoctorCheck:
    # The folder may not exist yet; its nearest parent is on the same disk.
    existing = next(
        folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists()
    )
    free = shutil.disk_usage(existing).free
    description = f"{free / _GIB:.1f} GiB free in {existing}"
    if not os.access(existing, os.W_OK | os.X_OK):
        return DoctorCheck(
            name,
            False,
            f"{existing} cannot be written",
            "Change its permissions, or use another folder.",
        )
    if free >= LEAST_BYTES:
        return DoctorCheck(name, True, description)
    return DoctorCheck(
        name, False, description, f"Free some space: {LEAST_BYTES / _GIB:.0f} GiB at least."
    )


def _check_writes(objects: Objects) -> DoctorCheck:
    """Check that the store refuses conflicting writes; without that, two builds could overwrite
    each other."""
    key = f"{FOLDER}/probe-{secrets.token_hex(8)}"
    try:
        broken = _find_broken_promise(objects, key)
    except StorageError as error:
        return DoctorCheck("writes", False, error.message, error.advice)
    advice = "" if broken is None else "Use a store that supports conditional writes."
    return DoctorCheck(
        "writes", broken is None, broken or f"{objects.location} refuses conflicting writes", advice
    )


def _find_broken_promise(objects: Objects, key: str) -> str | None:
    """Return the conditional write that was not refused; None: all of them were."""
    # A fresh key, so that a check never touches files of the root.
    first = objects.create(key, b"one")
    try:
        objects.create(key, b"two")
        return "the store overwrote an object that already existed"
    except ObjectExists:
        # This is what the store has to do.
        pass
    try:
        objects.replace(key, b"three", objects.replace(key, b"two", first))
        objects.replace(key, b"four", first)
        return "the store overwrote a newer version of an object"
    except ObjectChanged:
        return None
    finally:
        objects.delete(key)
