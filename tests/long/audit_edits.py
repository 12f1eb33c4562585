"""Every edit of a log: each bit of each byte, each byte left out, doubled and cut at, and every way
to drop, swap, insert, replace, cut and rewrite its records."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from ..kit import log_edits as edits
from .figures import Figures


def run(scale: float) -> Figures:
    """At scale 1 all of them, and a crash at each eighth byte after which another run goes on."""
    begun = time.monotonic()
    lines = edits.log()
    anchor, size = edits.head_of(lines), len(edits.text(lines))
    some = range(0, size, max(1, round(1 / scale)))
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "flipped bits": edits.tried(edits.flips(lines, some), anchor),
            "lost and doubled bytes": edits.tried(edits.lost_bytes(lines, some), anchor),
            "cuts": edits.tried(edits.cuts(lines, some), anchor),
            "edits of records": edits.tried(edits.records(lines), anchor),
            "crashes": edits.crashed(Path(folder), lines, some[::8]),
        }
    counts = {"records": len(lines), "bytes": size, **{k: f.tried for k, f in found.items()}}
    missed = tuple(text for one in found.values() for text in one.missed)
    return Figures("audit edits", counts, missed, time.monotonic() - begun)
