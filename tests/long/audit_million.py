"""A log of a million records: `audit verify` reads it once, in little memory, and finds what was
changed in it, wherever that is."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kafkaform.core.head import Head

from ..bench.audit import LOG, RECORDS, Verified, verified, write
from .figures import Figures

MEMORY = 100
"""MB that the command may take, however long the log is."""
ONCE = 1.1
"""Times the log, besides what a command reads without one: its own modules."""
PLACES = (0.01, 0.5, 0.99)
"""Where in the log a byte is changed."""


def run(scale: float) -> Figures:
    begun = time.perf_counter()
    records = max(int(RECORDS * scale), 10)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        idle = verified(folder)
        head = write(folder / LOG, records)
        size = (folder / LOG).stat().st_size
        sound = verified(folder, head)
        unsound = [*_sound(sound, records, head, idle.read + int(ONCE * size))]
        unseen = [*_unseen(folder, size)]
    counts = {
        "records": records,
        "bytes": size,
        "seconds to verify": round(sound.seconds),
        "MB at the peak": sound.peak,
        "changes found": len(PLACES) - len(unseen),
    }
    return Figures("audit_million", counts, (*unsound, *unseen), time.perf_counter() - begun)


def _sound(found: Verified, records: int, head: Head, most: int) -> Iterator[str]:
    if found.code or f"{records:,} records" not in found.told or str(head) not in found.told:
        yield f"a sound log of {records:,} records: {found.told}"
    if found.peak > MEMORY:
        yield f"it took {found.peak} MB"
    if found.read > most:
        yield f"it read {found.read:,} bytes, more than {most:,}: the log more than once"


def _unseen(folder: Path, size: int) -> Iterator[str]:
    """Changes of one byte that the command does not find."""
    for place in (int(size * part) for part in PLACES):
        line = _flip(folder / LOG, place)
        found = verified(folder)
        if found.code != 9 or f"record {line}:" not in found.told:
            yield f"byte {place:,} of record {line:,} was changed: {found.told}"
        _flip(folder / LOG, place)


def _flip(path: Path, place: int) -> int:
    """Change one bit of the log, or change it back; the record that it is in."""
    with path.open("r+b") as file:
        number = 1
        left = place
        while left:
            piece = file.read(min(left, 1 << 20))
            number += piece.count(b"\n")
            left -= len(piece)
        old = file.read(1)
        file.seek(place)
        file.write(bytes([old[0] ^ 1]))
    return number
