"""Disks that are really full or read-only: a small tmpfs, mounted where nobody else sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
mount -t tmpfs -o size={size} tmpfs "$1" || exit 77
exec "$2" -m tests.reliability.disk.mounted "$1"
"""
SIZES = ("64k", "1m", "2100k", "4m")
"""From too small for anything to enough."""


def full_disk(folder: Path) -> tuple[int, list[str]] | None:
    """How many disks were tried, and what did not hold; None where nothing can be mounted."""
    folder.mkdir()
    found: list[str] = []
    for size in SIZES:
        script = SCRIPT.format(size=size)
        command = ["unshare", "-m", "sh", "-c", script, "sh", str(folder), sys.executable]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except FileNotFoundError:
            return None
        if done.returncode in (1, 77) and "mount" in done.stderr + done.stdout:
            return None
        if done.returncode:
            found.append(f"{size}: {done.returncode} {done.stdout[-500:]} {done.stderr[-500:]}")
    return 2 * len(SIZES), found


def main(folder: Path) -> int:
    """Apply on the mounted disk, fill it up, mount it read-only, make room: one process."""
    from .scene import FIRST, SECOND, applied, house, world

    where = house(folder)
    first = applied(where, FIRST)
    empty = not world(where.cluster)
    if first.code == 9:
        return _said(empty and "the disk is full" in first.said, first)
    if first.code:
        return _said(False, first)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True, timeout=120)
    before = world(where.cluster)
    closed = applied(where, SECOND)
    if closed.code != 9 or "read-only" not in closed.said or world(where.cluster) != before:
        return _said(False, closed)
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True, timeout=120)
    return _said(applied(where, SECOND).code == 0, closed)


def _said(good: object, ended: object) -> int:
    print(ended)
    return 0 if good else 3


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
