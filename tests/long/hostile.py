"""Hostile inputs of every class, and plans and states of which a byte was changed."""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

from ..reliability.hostile import flips
from ..reliability.hostile.corpus import corpus, stage
from .figures import Figures

FLIPS = 12_000
SEED = int(os.environ.get("KAFKAFORM_SEED", "20261122"))


def run(scale: float) -> Figures:
    """scale: of the number of changed bytes, and of the inputs of each class."""
    began, chance, violations = time.monotonic(), random.Random(SEED), list[str]()
    kinds: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="hostile-") as root, stage(Path(root)) as on:
        for one in corpus(on):
            if scale < 1 and chance.random() > scale:
                continue
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
            try:
                one.check()
            except Exception as fault:  # noqa: BLE001  # whatever it is, it is told
                violations.append(f"{one.kind}: {one.name}: {type(fault).__name__}: {fault}"[:300])
    number = max(1, int(FLIPS * scale))
    found = {
        "bytes of plans": flips.plans(chance, number),
        "bytes of states": flips.state_flips(chance, number),
    }
    for what, result in found.items():
        violations += [f"{what}: {place} became {byte}" for place, byte in result.accepted]
    counts = {"hostile inputs": sum(kinds.values()), "classes": len(kinds)}
    counts |= {what: result.tried for what, result in found.items()}
    return Figures("hostile", counts, tuple(violations), time.monotonic() - began)
