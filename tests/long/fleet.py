"""`fleet run` killed at moments drawn at random, and at each step of a build: readers see the build
before or the new one, and the next run makes what an undisturbed one does."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from kafkaform.fleet.spark.session import SparkSetup, build_session
from kafkaform.sandbox.record import get_cache_folder
from kafkaform.workflow.fleet.runs import add_jars

from ..spark.killing import MOMENTS, Rows, after, at, built, killed, landed, rows
from .figures import Figures

KILLS = 20
MADE = ("effective_quotas", "event", "drift")
MOST = 3
"""Kills of one root before it is let run to its end."""


def run(scale: float) -> Figures:
    """scale: of the number of kills; KAFKAFORM_PROOF_SEED decides when they come."""
    began = time.monotonic()
    seed = int(os.environ.get("KAFKAFORM_PROOF_SEED", "1"))
    dice, counts, broken = Random(seed), Counter[str](), list[str]()
    session = build_session(add_jars(SparkSetup("local[2]", get_cache_folder())))
    with tempfile.TemporaryDirectory() as home:
        try:
            world = _World(session, Path(home))
            moments = world.moments(dice)
            left = max(1, int(KILLS * scale))
            while left > 0:
                kills = min(left, dice.randint(1, MOST))
                left -= kills
                broken += world.round([next(moments) for _ in range(kills)], counts)
        finally:
            session.stop()
    print(f"  KAFKAFORM_PROOF_SEED={seed}")
    return Figures("fleet", dict(counts), tuple(broken), time.monotonic() - began)


class _World:
    """A root with one build and what has landed since, and what the next build makes of it."""

    def __init__(self, session: SparkSession, home: Path) -> None:
        self.session, self.home = session, home
        self.start, calm = home / "start", home / "calm"
        landed(self.start, 1)
        built(session, self.start, MADE)
        self.before: Rows = rows(self.start)
        landed(self.start, 2)
        shutil.copytree(self.start, calm)
        began = time.monotonic()
        killed(calm, lambda: False, MADE)
        self.seconds = time.monotonic() - began
        self.wanted: Rows = rows(calm)

    def moments(self, dice: Random) -> Iterator[str | float]:
        """Each step of a build in turn, and between two of them a time in seconds."""
        for name in cycle(MOMENTS):
            yield name
            yield dice.uniform(0.0, self.seconds)

    def round(self, moments: list[str | float], counts: Counter[str]) -> Iterator[str]:
        """What was wrong with a root whose runs were killed at these moments."""
        root = self.home / "root"
        shutil.copytree(self.start, root)
        for moment in moments:
            counts["killed" if killed(root, _come(root, moment), MADE) else "ended before"] += 1
            seen = rows(root)
            counts["new builds seen"] += seen == self.wanted
            if seen not in (self.before, self.wanted):
                yield f"{moments}: after {moment} readers see neither build"
        built(self.session, root, MADE)
        if rows(root) != self.wanted:
            yield f"{moments}: the next run makes something else"
        shutil.rmtree(root)


def _come(root: Path, moment: str | float) -> Callable[[], bool]:
    return at(root, moment) if isinstance(moment, str) else after(moment)
