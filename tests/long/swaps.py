"""Another cluster at the same address from each request of an apply on: what reaches it, what is
believed of it, and what the next apply puts right."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from ..reliability.crash import scenes
from ..reliability.network import swaps
from .figures import Figures


def run(scale: float) -> Figures:
    """scale: the share of all points, spread over the apply."""
    begun = time.monotonic()
    os.environ.setdefault(scenes.PASSWORD, "secret-of-the-users")
    with tempfile.TemporaryDirectory() as home:
        scratch = Path(home)
        begin = swaps.keep(swaps.begin(scratch / "begun"))
        names = swaps.requests(begin(scratch / "calm"))
        points = swaps.every(names)[:: max(1, round(1 / scale))]
        tally = swaps.strike_all(points, scratch / "lanes", begin)
    counts = {
        "swaps": tally.points.total(),
        **{f"at {name}, {how}": count for (name, how), count in sorted(tally.points.items())},
        **{f"ended with {code}": count for code, count in sorted(tally.codes.items())},
    }
    return Figures("swaps", counts, tuple(tally.violations), time.monotonic() - begun)
