"""A log of 20,000 objects that is sealed by processes which are killed at 50 random moments, and
that of a file, whose sealing is killed at each of its calls."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from random import Random

from ..reliability.crash.killed_seals import kill_seals
from ..reliability.crash.test_sealing import kill_files
from .figures import Figures

SEED = int(os.environ.get("KAFKAFORM_CRASH_SEED", "20260101"))
PIECES, KILLS = 20_000, 50


def run(scale: float) -> Figures:
    """At scale 1 all objects, deaths and calls."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        pieces, kills = max(300, int(PIECES * scale)), max(5, int(KILLS * scale))
        deaths, found = kill_seals(pieces, kills, Path(home), Random(SEED))
        file_deaths, file_found = kill_files(Path(home), max(1, round(1 / scale)))
    print(f"  KAFKAFORM_CRASH_SEED={SEED}")
    counts = {
        "objects": pieces,
        "deaths in a store": deaths,
        "deaths at calls of a file": file_deaths,
    }
    return Figures("sealing", counts, (*found, *file_found), time.monotonic() - begun)
