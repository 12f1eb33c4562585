"""SIGKILL of brokers at random moments: rounds of applies of several folders on three brokers, then
one apply of many topics under which brokers, the active controller and the client itself die."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ..kit.commands.process_folder import Folder
from ..kit.commands.server import Running
from ..kit.kafka.three_brokers import Brokers, three_brokers
from ..kit.kafka.truth import observe
from ..kit.lane import APPLY, find_faults
from ..kit.promises import Before, Thing, World, broken
from ..reliability.crash.wide import (
    SECONDS,
    TIMEOUT,
    Wide,
    lane,
    planned,
    struck,
    until_growth,
)
from .figures import Figures

SEED = int(os.environ.get("KAFKAFORM_PROOF_SEED", "20260101"))
KILLS, LANES = 30, 3
TOPICS = int(os.environ.get("KAFKAFORM_TOPICS", "3000"))
BYSTANDER = {"bystander": (2, {"retention.ms": "1234567"})}
WHOM = ("controller", "plain", "client", "plain", "controller", "client", "controller")
"""Who dies under the apply of many topics, in this order."""


@dataclass
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def run(scale: float) -> Figures:
    """scale: of the number of kills and of topics."""
    begun, random, tally = time.monotonic(), Random(SEED), Tally()
    with three_brokers(f"brokers-{os.getpid()}") as brokers, tempfile.TemporaryDirectory() as home:
        looking = observe(brokers.box)
        looking.make(BYSTANDER)
        before = looking.topics("bystander")
        lanes = [lane(brokers, Path(home) / f"l{n}", f"l{n}", f"{SEED}/{n}") for n in range(LANES)]
        while tally.counts["kills of brokers"] < KILLS * scale and not tally.faults:
            _round(brokers, lanes, random, tally)
            print(f"  {dict(tally.counts)} {time.monotonic() - begun:.0f} s", flush=True)
        _many(brokers, Path(home) / "many", max(50, round(TOPICS * scale)), random, tally)
        if looking.topics("bystander") != before:
            tally.faults.append("NL3 a bystander was touched")
    print(f"  KAFKAFORM_PROOF_SEED={SEED}")
    return Figures("brokers", dict(tally.counts), tuple(tally.faults), time.monotonic() - begun)


def _round(brokers: Brokers, lanes: Sequence[Wide], random: Random, tally: Tally) -> None:
    """Kill one, two, or all of them; sometimes they are back before the applies have ended."""
    number = random.choices((1, 2, 3), (5, 2, 3))[0]
    whom, soon = random.sample(brokers.ids, number), number > 1 or random.random() < 0.5
    growth, wait = random.randint(1, 6), random.choice((0.0, 0.01, 0.1))

    def strike(_: object) -> None:
        time.sleep(wait)
        tally.counts["kills of the active controller"] += brokers.controller() in whom
        brokers.kill(*whom)
        if soon:
            brokers.revive()

    done = struck(lanes, strike, brokers.revive, growth)
    tally.counts["kills of brokers"] += number
    tally.counts["rounds"] += 1
    tally.counts.update(f"applies that ended with {ended.code}" for ended in done.first)
    tally.faults += done.violations


def _many(brokers: Brokers, path: Path, topics: int, random: Random, tally: Tally) -> None:
    """One configuration, applied again and again while somebody is killed under it."""
    path.mkdir()
    folder, admin = (
        Folder(path, brokers.servers, brokers.box.admin_password, TIMEOUT),
        observe(brokers.box),
    )
    folder.write(
        f'resource "kafka_topic" "it" {{\n  for_each = toset([for n in range({topics}) : '
        f'"many-${{n}}"])\n  name = each.key\n  partitions = 1\n  replication_factor = 1\n}}\n'
    )

    def world() -> World:
        return {
            ("kafka_topic", name): Thing({"partitions": topic.partitions}, topic.topic_id)
            for name, topic in admin.topics("many-").items()
        }

    begun, left, backs = time.monotonic(), list(WHOM), list[threading.Thread]()
    for _ in range(4 * len(WHOM)):
        process = folder.start(*APPLY)
        while left and until_growth(folder, process, random.randint(2, 5)):
            _kill(left.pop(0), brokers, process, backs, tally)
            time.sleep(random.uniform(0.0, 0.3))
        ended = process.finish(SECONDS * 3)
        for back in backs:
            back.join()
        if ended.code not in (-signal.SIGKILL, 0):
            tally.faults += find_faults(ended, folder.password)
        tally.counts["applies of many topics"] += 1
        if ended.code == 0:
            break
    tally.counts["topics in one apply"] = topics
    tally.counts["seconds of that apply"] = round(time.monotonic() - begun)
    wanted: World = {("kafka_topic", f"many-{n}"): Thing({"partitions": 1}) for n in range(topics)}
    tally.faults += broken(path, world, Before(), wanted=wanted)
    again = planned(folder)
    tally.faults += [] if again.code == 0 else [f"there is still something to do:\n{again.out}"]


def _kill(
    whom: str, brokers: Brokers, process: Running, backs: list[threading.Thread], tally: Tally
) -> None:
    """A broker comes back by itself, as fast as it can."""
    if whom == "client":
        process.send_signal(signal.SIGKILL)
    else:
        for back in backs:
            back.join()
        brokers.kill(brokers.controller() if whom == "controller" else brokers.plain())
        backs[:] = [threading.Thread(target=brokers.revive)]
        backs[0].start()
    tally.counts[f"kills of a {whom} under many topics"] += 1
