"""What Spark needs of Java and of memory, checked before it starts and by `fleet doctor`: its own
messages are about a process that has ended."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

MODULE = "jdk.incubator.vector"
"""The module that Spark asks for."""
_LEAST_MEMORY = 512 * 2**20
"""Bytes. Spark refuses less than 450 MiB as Java counts them, less than all of the heap."""
_MEMORY = re.compile(r"(\d+)([kmgt]?)b?", re.ASCII | re.IGNORECASE)
MEMORY_ADVICE = "Set SPARK_DRIVER_MEMORY to what there is, such as 1g, or name another --master."
CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where Linux tells a container its limit, in version 2 and 1."""
_PATIENCE_SECONDS = 60


def find_fault(program: Path) -> str:
    """Return why this Java does not run, or an empty text. Its files may be for another
    processor."""
    try:
        # As Spark starts it: a Java without the module fails, unless the script drops the option.
        result = subprocess.run(
            [program, f"--add-modules={MODULE}", "-version"],
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run: {error}"
    last = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return f"does not run: {''.join(last)}" if result.returncode else ""


def find_memory_fault(settings: Mapping[str, str]) -> str:
    """Return why Spark cannot work with its memory on this computer, or an empty text."""
    text = settings.get("spark.driver.memory") or os.environ.get("SPARK_DRIVER_MEMORY", "")
    match = _MEMORY.fullmatch(text)
    if match is None:
        return f"SPARK_DRIVER_MEMORY is {text!r}, which is no amount of memory"
    amount, limit = int(match[1]) * 1024 ** "bkmgt".index(match[2].lower() or "b"), read_memory()
    if amount < _LEAST_MEMORY:
        return f"SPARK_DRIVER_MEMORY is {text}, and Spark needs at least 512m"
    if amount >= limit:
        return (
            f"Spark's memory is {text}, and this computer or container has {limit / 2**30:.1f} GiB"
        )
    return ""


def read_memory() -> int:
    """Return the bytes of memory that this computer has, or that its container may use."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in CGROUP_LIMITS:
        # A container without a limit has the word `max` there, or a number that no computer has.
        with suppress(OSError, ValueError):
            limits.append(int(file.read_text("utf-8")))
    return min(limits)
