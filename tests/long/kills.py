"""SIGKILL at moments drawn at random, in round after round of real applies on a real broker."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from ..kit.kafka.clusters import HELD, own_sandbox
from ..reliability.crash.kills import SEED, killed
from .figures import Figures

ROUNDS, LANES = 200, 4


def run(scale: float) -> Figures:
    """scale: of the number of rounds; KAFKAFORM_PROOF_SEED decides what each of them does."""
    begun = time.monotonic()
    rounds = max(LANES, int(ROUNDS * scale))
    with (
        own_sandbox(f"kills-{os.getpid()}", config=HELD) as box,
        tempfile.TemporaryDirectory() as home,
    ):
        found = killed(box, Path(home), rounds, LANES)
    print(f"  KAFKAFORM_PROOF_SEED={SEED}")
    counts = {"rounds": rounds, **dict(sorted(found.landed.items()))}
    return Figures("kills", counts, found.violations, time.monotonic() - begun)
