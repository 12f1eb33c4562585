"""Rounds of applies that are killed at moments drawn at random, and repeated."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kafkaform.sandbox import Sandbox

from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Running
from ...kit.kafka.truth import observe
from ...kit.promises import pairs
from .desire import Desire
from .kill_lane import KillLane, strike_at_growth, strike_at_intent, strike_later

AIMED = 4
"""One round in so many is struck while an intent has no outcome; however fast the machine is, some
then are."""
GROWTHS = 8
"""How often the log of one such apply grows: the run's head, then intents and outcomes."""
OPERATION_TIMEOUT = "3s"
SEED = int(os.environ.get("KAFKAFORM_PROOF_SEED", "20260101"))


def settled_lane(box: Sandbox, path: Path, name: str) -> KillLane:
    path.mkdir(exist_ok=True)
    folder = Folder(path, box.bootstrap, box.admin_password, OPERATION_TIMEOUT)
    lane = KillLane(folder, observe(box), Random(f"{SEED}/{name}"), Desire(f"proof.kill-{name}-"))
    lane.prepare()
    lane.settle()
    lane.check()
    return lane


def strike(lane: KillLane, length: float, number: int) -> bool:
    """Begin an apply and send it the signal at a moment drawn at random: somewhere on the clock,
    or right after the log grew. True if it was still running then."""
    random = lane.random
    clock, share = random.random() < 0.4, random.uniform(0.3, 1.0)
    growth, delay = random.randint(1, GROWTHS), random.choice((0.0, 0.005, 0.02, 0.05))
    if clock:
        return _struck(lane, lambda process: strike_later(process, length * share, number))
    return _struck(
        lane, lambda process: strike_at_growth(process, lane.folder, growth, delay, number)
    )


def aimed(lane: KillLane, length: float, number: int) -> bool:
    """Begin an apply and send it the signal while an intent has no outcome yet."""
    return _struck(lane, lambda process: strike_at_intent(process, lane.folder, number))


def _struck(lane: KillLane, blow: Callable[[Running], bool]) -> bool:
    process = lane.start()
    try:
        return blow(process)
    finally:
        ended = process.finish()
        assert "Traceback" not in ended.out, ended.out


def where(lane: KillLane) -> str:
    """What the apply that was struck left behind."""
    records = lane.folder.records()
    intents, ends = pairs(records)
    if intents - ends:
        return "open intents"
    last = records[-1] if records else None
    state = lane.folder.state()
    head = state.audit_head if state else None
    if last is not None and last.kind in ("outcome", "recover"):
        return "state saved" if head and head.seq == last.seq else "outcome not in the state"
    return str(last.kind) if last is not None else "nothing"


def rounds(lane: KillLane, numbers: range, length: float) -> tuple[Counter[str], tuple[str, ...]]:
    """These rounds one after the other: where the signals landed, and what did not hold; a lane
    ends with the first round of that kind."""
    landed: Counter[str] = Counter()
    for number in numbers:
        try:
            lane.prepare()
            struck = (aimed if number % AIMED == 0 else strike)(lane, length, signal.SIGKILL)
            if not struck:  # who has no processor for a while comes too late; so aim once more
                landed["ended before"] += 1
                lane.prepare()
                struck = aimed(lane, length, signal.SIGKILL)
            if struck:
                landed[where(lane)] += 1
            if number % 5 == 0 and strike(lane, length, signal.SIGKILL):
                landed["again, while recovering"] += 1
            lane.settle()
            lane.check()
        except AssertionError as broken:
            return landed, (f"{lane.desire.prefix} round {number}: {broken}",)
    return landed, ()


@dataclass(frozen=True)
class Kills:
    """What killing did. landed: where the signals did; length: seconds of an apply that lives."""

    landed: Counter[str]
    violations: tuple[str, ...]
    length: float


def killed(box: Sandbox, scratch: Path, count: int, lanes: int) -> Kills:
    """So many rounds, on so many folders at once."""
    with ThreadPoolExecutor(lanes) as pool:
        folders = [scratch / str(number) for number in range(lanes)]
        made = list(pool.map(lambda path: settled_lane(box, path, path.name), folders))
        for each in made:
            each.prepare()
        measured = time.monotonic()
        list(pool.map(KillLane.settle, made))
        length = time.monotonic() - measured
        shares = [range(number, count, lanes) for number in range(lanes)]
        found = list(pool.map(lambda lane, share: rounds(lane, share, length), made, shares))
    landed = sum((each for each, _ in found), Counter[str]())
    return Kills(landed, tuple(fault for _, faults in found for fault in faults), length)
