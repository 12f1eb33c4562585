"""Random ACLs against real clients for every operation, in open and closed clusters."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from itertools import islice

from kafkaform_kafka.protocol.acl import SUPPORTED

from ..cluster.kafka.access_clusters import compare, running
from .figures import Figures

SETS = 120
"""Sets of ACLs in each of the two clusters."""
SEED = int(os.environ.get("KAFKAFORM_ACCESS_SEED", "2026"))
ENOUGH = 0.5
"""From this scale on every operation must have been allowed and refused for its own sake."""


def run(scale: float) -> Figures:
    """scale: the share of the sets. KAFKAFORM_ACCESS_SEED: another choice of them."""
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    decided: Counter[tuple[str, str, bool]] = Counter()
    violations: list[str] = []
    for open_ in (True, False):
        word, seed = "open" if open_ else "closed", f"{SEED} {open_}"
        with running(open_) as cluster:
            sets = compare(cluster, random.Random(seed))
            for number, one in enumerate(islice(sets, max(1, round(SETS * scale))), 1):
                counts[f"sets in the {word} cluster"] += 1
                counts[f"comparisons in the {word} cluster"] += len(one.probes)
                counts["allowed"] += sum(probe.allowed for probe in one.probes)
                decided.update(one.decided)
                violations += [
                    f"seed {seed}, set {number}: {wrong} with {one.acls}" for wrong in one.wrong
                ]
    every = [(kind, operation) for kind, found in SUPPORTED.items() for operation in found]
    for kind, operation in every:
        yes, no = (decided[kind, operation, answer] for answer in (True, False))
        counts[f"{operation} on {kind} held"] = yes
        counts[f"{operation} on {kind} not held"] = no
        if scale >= ENOUGH and not (yes and no):
            violations.append(f"{operation} on {kind} was not decided both ways")
    return Figures("access", counts, tuple(violations), time.monotonic() - begun)
