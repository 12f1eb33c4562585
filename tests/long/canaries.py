"""Every secret in every command in every way to fail: none is left anywhere."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from ..reliability.secrets.house import Template
from ..reliability.secrets.matrix import cells, run_cell
from .figures import Figures

SEED = 7


def run(scale: float) -> Figures:
    """scale: how much of the matrix, chosen by a fixed seed."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    violations: list[str] = []
    with tempfile.TemporaryDirectory(prefix="canaries-") as folder:
        template = Template.build(Path(folder, "template"))
        whole = list(cells())
        random.Random(SEED).shuffle(whole)
        for cell in whole[: round(len(whole) * scale)]:
            left = run_cell(template, cell)
            counts["commands typed"] += 1
            counts["places searched"] += left.looked_at
            counts["where the filter was needed"] += left.masked
            violations += left.violations
    return Figures("canaries", counts, tuple(violations), time.monotonic() - began)
