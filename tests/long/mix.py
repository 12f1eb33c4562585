"""SIGKILL of brokers and of the tool at random, round after round, on three brokers. Every topic
has a `min.insync.replicas` that changes, and no command may take longer than a minute."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ..kit.commands.server import Running
from ..kit.kafka.three_brokers import Brokers, three_brokers
from ..kit.kafka.truth import observe
from ..reliability.crash.wide import Wide, lane, struck
from .figures import Figures

SEED = int(os.environ.get("KAFKAFORM_PROOF_SEED", "20260101"))
ROUNDS, LANES, LASTING = 100, 2, 12
"""LASTING: rounds of a folder. A name is never given a second time, and each folder has forty."""
LONGEST = 60.0
BYSTANDER = {"bystander": (2, {"retention.ms": "1234567"})}
IN_SYNC: Mapping[str, Sequence[str]] = {"min.insync.replicas": ("1", "2")}


@dataclass
class Mix:
    """counts: what was done; violations: each with the round that it belongs to; longest: seconds
    of a command."""

    brokers: Brokers
    lanes: Sequence[Wide]
    random: Random
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    longest: float = 0.0

    def play(self) -> None:
        """One round: one or two brokers die, or the tool, or all of them, in any order."""
        random = self.random
        number, tool = random.choice(((0, True), (1, False), (1, True), (2, False), (2, True)))
        whom, soon = random.sample(self.brokers.ids, number), random.random() < 0.5
        growth, wait = random.randint(1, 8), random.choice((0.0, 0.01, 0.1, 0.5))
        first = random.random() < 0.5

        def strike(running: Sequence[Running]) -> None:
            time.sleep(wait)
            if tool and first:
                self._kill_one(running)
            if whom:
                leads = self.brokers.controller() in whom
                self.counts["kills of the active controller"] += leads
                self.brokers.kill(*whom)
                self.counts["kills of brokers"] += number
            if tool and not first:
                time.sleep(wait)
                self._kill_one(running)
            if soon:
                self.brokers.revive()

        done = struck(self.lanes, strike, self.brokers.revive, growth)
        self.counts["rounds"] += 1
        self.counts.update(f"applies that ended with {ended.code}" for ended in done.first)
        self.longest = max(self.longest, done.longest)
        if done.longest > LONGEST:
            done.violations.append(f"a command took {done.longest:.0f} s")
        self.violations += [f"round {self.counts['rounds']}: {it}" for it in done.violations]

    def _kill_one(self, running: Sequence[Running]) -> None:
        alive = [process for process in running if process.poll() is None]
        if alive:
            self.random.choice(alive).send_signal(signal.SIGKILL)
            self.counts["kills of the tool"] += 1


def mixed(brokers: Brokers, home: Path, seed: str) -> Mix:
    """A mix whose folders have something in them already."""
    return Mix(brokers, open_lanes(brokers, home, seed), Random(seed))


def open_lanes(brokers: Brokers, home: Path, seed: str, number: int = 0) -> list[Wide]:
    """The folders of the given number, with something in them already."""
    names = [f"m{number}-{n}" for n in range(LANES)]
    return [lane(brokers, home / n, n, f"{seed}/{n}", always=IN_SYNC) for n in names]


def delete_topics(mix: Mix) -> None:
    """Delete what the mix's folders have made, when nobody needs it any more."""
    admin = observe(mix.brokers.box)
    prefixes = tuple(each.desire.prefix for each in mix.lanes)
    names = [n for n in admin.native.list_topics(timeout=LONGEST).topics if n.startswith(prefixes)]
    for future in admin.native.delete_topics(names).values() if names else ():
        future.result(LONGEST)


def run(scale: float) -> Figures:
    """scale: of the number of rounds."""
    begun = time.monotonic()
    with three_brokers(f"mix-{os.getpid()}") as brokers, tempfile.TemporaryDirectory() as home:
        looking = observe(brokers.box)
        looking.make(BYSTANDER)
        before = looking.topics("bystander")
        mix = mixed(brokers, Path(home), str(SEED))
        while (rounds := mix.counts["rounds"]) < ROUNDS * scale:
            if rounds and rounds % LASTING == 0:
                delete_topics(mix)
                mix.lanes = open_lanes(brokers, Path(home), str(SEED), rounds // LASTING)
            mix.play()
            told = f"{dict(mix.counts)} {mix.longest:.1f} s, {len(mix.violations)} violations"
            print(f"  {told} {time.monotonic() - begun:.0f} s", flush=True)
        if looking.topics("bystander") != before:
            mix.violations.append("NL3 a bystander was touched")
    print(f"  KAFKAFORM_PROOF_SEED={SEED}")
    counts = {**mix.counts, "seconds of the longest command": round(mix.longest)}
    return Figures("mix", counts, tuple(mix.violations), time.monotonic() - begun)
