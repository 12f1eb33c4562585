"""Applies on three brokers, some of which are killed meanwhile: rounds, and what must hold after
each. Topics without a replication factor are on all three of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from kafkaform.core.value import EMPTY

from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Ended, Running
from ...kit.kafka.three_brokers import Brokers
from ...kit.kafka.truth import observe
from ...kit.lane import AGAIN, find_faults
from ...kit.promises import kept
from .desire import Desire, Topic
from .kill_lane import KillLane

TIMEOUT = "3s"
ATTEMPTS = 10
LAG = 60.0
"""Seconds that a broker may lag behind; a test waits only for as long as it does."""
SECONDS = 120.0
"""A command that takes longer hangs."""


@dataclass
class Wide(KillLane):
    """A lane that adopts nothing, since what another client makes shows at one broker after
    another, and gives no name a second time: a broker that starts again shows a topic with the
    configs of an earlier one of its name (`ConfigurationsDelta` clears what it has in its image,
    which is empty then)."""

    gone: set[str] = field(default_factory=set)
    always: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Configs that every topic has, and the values that they take."""

    def prepare(self) -> None:
        """Draw the next configuration and write it."""
        drawn = self.desire.next(self.random)
        self.gone |= drawn.removed.keys()
        ours = {
            slot: self._with_always(topic)
            for slot, topic in drawn.topics.items()
            if topic.group == "made" and slot not in self.gone
        }
        self.desire = replace(drawn, topics=ours, adopted={})
        self.write(self.desire.hcl())

    def _with_always(self, topic: Topic) -> Topic:
        more = {key: self.random.choice(values) for key, values in self.always.items()}
        return replace(topic, config={**topic.config, **more})

    def check(self) -> None:
        """The five promises hold and there is nothing to do; a broker that was started again may
        show the past for longer than others do."""
        faults = self.find_broken_promises(self._wanted(), patience=LAG)
        assert not faults, "\n".join(faults)
        again = planned(self.folder)
        assert again.code == 0, f"there is still something to do:\n{again.out}"


def planned(folder: Folder) -> Ended:
    """A plan by somebody who repeats it while no broker answers in time."""
    for _ in range(ATTEMPTS):
        ended = folder.plan()
        if "cannot reach Kafka" not in ended.out:
            break
    return ended


@dataclass
class Round:
    """first: how the applies ended that were struck; last: those that found all brokers again;
    longest: seconds that one of all these took."""

    first: list[Ended]
    last: list[Ended] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    longest: float = 0.0


def lane(
    brokers: Brokers,
    path: Path,
    name: str,
    seed: str,
    servers: str = "",
    always: Mapping[str, Sequence[str]] = EMPTY,
) -> Wide:
    """A folder whose first round is applied. servers: those that its provider names."""
    path.mkdir(parents=True, exist_ok=True)
    folder = Folder(path, servers or brokers.servers, brokers.box.admin_password, TIMEOUT)
    made = Wide(folder, observe(brokers.box), Random(seed), Desire(f"{name}-"), always=always)
    made.prepare()
    made.settle()
    made.check()
    return made


Strike = Callable[[Sequence[Running]], object]
"""Kills somebody. It gets the applies that run."""


def struck(lanes: Sequence[Wide], strike: Strike, back: Callable[[], None], growth: int) -> Round:
    """Apply the next configuration of every lane; strike when the log of the first one has grown
    so many times; when all have ended, bring the brokers back and do what a user would."""
    for each in lanes:
        each.prepare()
    with ThreadPoolExecutor(len(lanes)) as pool:
        processes = [each.start() for each in lanes]
        ends = [pool.submit(_timed, process) for process in processes]
        until_growth(lanes[0].folder, processes[0], growth)
        strike(processes)
        timed = [end.result() for end in ends]
    done = Round([ended for ended, _ in timed], longest=max(seconds for _, seconds in timed))
    for each, ended in zip(lanes, done.first, strict=True):
        done.violations += find_faults(ended, each.folder.password)
        done.violations += kept(each.folder.path, each.before)
    back()
    with ThreadPoolExecutor(len(lanes)) as pool:
        for ended, faults, seconds in pool.map(recovered, lanes):
            done.last.append(ended)
            done.violations += faults
            done.longest = max(done.longest, seconds)
    return done


def _timed(process: Running) -> tuple[Ended, float]:
    """How it ended, and after how many seconds from now."""
    begun = time.monotonic()
    return process.finish(SECONDS), time.monotonic() - begun


def recovered(lane: Wide) -> tuple[Ended, list[str], float]:
    """Run it again until it ends with 0; what of the promises does not hold then, and how many
    seconds the longest of these commands took."""
    faults: list[str] = []
    longest = 0.0
    for _ in range(AGAIN):
        ended, seconds = _timed(lane.start())
        longest = max(longest, seconds)
        faults += find_faults(ended, lane.folder.password)
        if ended.code == 0:
            break
    else:
        return ended, [*faults, f"it still ended with {ended.code}:\n{ended.out}"], longest
    try:
        lane.check()
    except AssertionError as broken:
        faults.append(f"{lane.desire.prefix}: {broken}")
    return ended, faults, longest


def until_growth(folder: Folder, process: Running, times: int) -> bool:
    """Wait until the log has grown so many times; False if the process ended before."""
    deadline, size = time.monotonic() + SECONDS, _size(folder)
    while process.poll() is None and time.monotonic() < deadline:
        if (now := _size(folder)) != size:
            size, times = now, times - 1
            if times <= 0:
                return True
        time.sleep(0.001)
    return False


def _size(folder: Folder) -> int:
    return folder.log.stat().st_size if folder.log.exists() else 0
