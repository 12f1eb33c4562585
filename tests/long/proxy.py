"""Every fault of the proxy at every request of an apply, on one broker, several lanes at a time;
then readings of every kind whose answers are changed."""

from __future__ import annotations

import os
import queue
import resource
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from kafkaform.sandbox import Sandbox

from ..kit.kafka.clusters import HELD, own_sandbox
from ..kit.kafka.truth import Observer, observe
from ..kit.proxy.faults import Fault
from ..kit.proxy.proxy import Proxy, proxying
from ..reliability.network.combos import drawn, every
from ..reliability.network.lane import FaultLane, Round, lane
from ..reliability.network.siege import besiege
from .figures import Figures

LANES = int(os.environ.get("KAFKAFORM_LANES", "6"))
SEED = int(os.environ.get("KAFKAFORM_SEED", "20261122"))
FRAMES = 300
BYSTANDER = {"bystander": (2, {"retention.ms": "1234567"})}


def run(scale: float) -> Figures:
    """All combinations, or a share of them."""
    begun = time.monotonic()
    coming: queue.SimpleQueue[Fault] = queue.SimpleQueue()
    for fault in drawn(Random(SEED), max(1, round(len(list(every())) * scale))):
        coming.put(fault)
    with (
        own_sandbox(f"proxy-{os.getpid()}", config=HELD) as box,
        tempfile.TemporaryDirectory() as home,
    ):
        admin = observe(box)
        admin.make(BYSTANDER)
        before = admin.topics("bystander")
        with ThreadPoolExecutor(LANES) as pool:
            work = [pool.submit(_lane, box, Path(home), number, coming) for number in range(LANES)]
            rounds = [each for one in work for each in one.result()]
        with proxying(box.brokers[0].ports.client) as proxy:
            siege = besiege(box, proxy, Random(SEED), round(FRAMES * scale))
        touched = () if admin.topics("bystander") == before else ("NL3 a bystander was touched",)
    found = (*(text for each in rounds for text in each.violations), *siege.crashed)
    struck = [each for each in rounds if each.struck]
    counts = Counter({"combinations": len(struck), "that met no request": len(rounds)})
    counts["that met no request"] -= len(struck)
    counts.update(f"ended with {each.first.code}" for each in struck)
    counts["seconds of the slowest"] = round(max(each.seconds for each in rounds))
    counts["changed answers"] = len(siege.struck)
    counts["MB at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    seed = f"KAFKAFORM_SEED={SEED}"
    told = tuple(f"{seed} {text}" for text in (*found, *touched))
    return Figures("proxy", dict(sorted(counts.items())), told, time.monotonic() - begun)


def _lane(box: Sandbox, home: Path, number: int, coming: queue.SimpleQueue[Fault]) -> list[Round]:
    """Take faults until none is left; a lane that breaks is left and another one begun."""
    rounds: list[Round] = []
    observer = observe(box)
    with proxying(box.brokers[0].ports.client) as proxy:
        begun, mine = 0, _begin(box, home, number, 0, proxy, observer)
        while (fault := _next(coming)) is not None:
            done = mine.round(fault)
            done = done if done.violations else done.with_more(mine.quiet())
            rounds.append(done)
            if os.environ.get("KAFKAFORM_VERBOSE"):
                print(done, *done.violations, sep="\n  ", flush=True)
            if done.violations:
                begun += 1
                mine = _begin(box, home, number, begun, proxy, observer)
    observer.close()
    return rounds


def _begin(
    box: Sandbox, home: Path, number: int, again: int, proxy: Proxy, observer: Observer
) -> FaultLane:
    prefix = f"p{number}x{again}-"
    return lane(box, proxy, observer, home / prefix, prefix, alone=(number, again) == (0, 0))


def _next(coming: queue.SimpleQueue[Fault]) -> Fault | None:
    try:
        return coming.get_nowait()
    except queue.Empty:
        return None
