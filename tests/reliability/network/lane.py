"""One lane: a folder behind its own proxy; each round strikes an apply with a fault, lets it go
on without, and looks whether anything was lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Ended
from ...kit.kafka.truth import Observer
from ...kit.lane import AGAIN, APPLY, CODES, Lane, find_faults, recover
from ...kit.promises import Name, World
from ...kit.proxy import rewrite
from ...kit.proxy.answers import Passed
from ...kit.proxy.faults import NEVER_ARRIVES, REAL, Fault
from ...kit.proxy.frames import WRITES
from ...kit.proxy.proxy import Proxy
from . import forwarded, wish

TIMEOUT = "2s"
"""The operation timeout. A client waits for 15 s longer before it gives an answer up."""
SECONDS = 150.0
"""A command that takes longer hangs."""
READS = {
    "CreateTopics": "Metadata",
    "CreatePartitions": "Metadata",
    "DeleteTopics": "Metadata",
    "IncrementalAlterConfigs": "DescribeConfigs",
    "AlterClientQuotas": "DescribeClientQuotas",
    "AlterUserScramCredentials": "DescribeUserScramCredentials",
    "CreateAcls": "DescribeAcls",
    "DeleteAcls": "DescribeAcls",
}
"""API that writes -> the one that shows whether it did."""
FAILED = CODES - {0}


class Box(Protocol):
    """A running broker."""

    @property
    def admin_password(self) -> str: ...


@dataclass(frozen=True)
class Round:
    """How one round went. struck: by every fault; first: the apply that was."""

    faults: tuple[Fault, ...]
    struck: bool
    first: Ended
    seconds: float
    violations: tuple[str, ...]

    def with_more(self, violations: Iterable[str]) -> Round:
        return replace(self, violations=(*self.violations, *violations))

    def __str__(self) -> str:
        faults = ", ".join(map(str, self.faults))
        return f"{faults} -> {self.first.code} in {self.seconds:.1f} s"


@dataclass
class FaultLane(Lane):
    """prefix: of all names; key: see `wish.KEY`; generation: the one that is live; topics:
    name of each topic id; settled: requests of the runs that ended the last round."""

    proxy: Proxy
    observer: Observer
    prefix: str
    key: tuple[str, int] | None
    generation: int = 0
    topics: dict[str, str] = field(default_factory=dict)
    settled: list[Passed] = field(default_factory=list)

    def begin(self) -> None:
        """The first generation, without a fault."""
        self.proxy.watched = self.folder.log
        self._declare()
        ended = self.folder.run(*APPLY)
        assert ended.code == 0, ended.out

    def _declare(self) -> None:
        self.write(wish.declared(self.prefix, self.generation, self.key))

    def world(self) -> World:
        """What the cluster has of this lane; ids of topics are remembered."""
        found = self.observer.world(
            self.prefix, f"{self.prefix}keep", self.key[0] if self.key else ""
        )
        for (kind, name), thing in found.items():
            if kind == "kafka_topic" and thing.incarnation:
                self.topics[thing.incarnation] = name
        return found

    def next(self) -> None:
        """Declare the next generation."""
        self.generation += 1
        self._declare()

    def round(self, *faults: Fault) -> Round:
        """The next generation, applied against these faults and then without."""
        self.next()
        self.proxy.arm(*faults)
        started = time.monotonic()
        first = self.start().finish(SECONDS)
        taken = time.monotonic() - started
        struck = self.proxy.all_struck
        passed = self.proxy.disarm()
        violations = tuple(self.after(first, passed))
        if struck and first.code == 0 and any(_leaves_undone(fault) for fault in faults):
            violations += (f"it ended with 0 and something was not done:\n{first.out}",)
        told = ", ".join(map(str, faults))
        where = f"{self.prefix}{self.generation}: {told}"
        return Round(
            faults,
            struck,
            first,
            taken,
            tuple(f"{where}: {text}" for text in violations),
        )

    def after(self, first: Ended, passed: list[Passed]) -> Iterator[str]:
        """Run it again, without faults, until it ends with 0; what of the promises does not
        hold then. passed: the requests of the first run."""
        runs = [first, *(recover(self.folder, first, FAILED) if first.code else ())]
        for ended in runs:
            yield from find_faults(ended, self.folder.password)
        if runs[-1].code:
            yield f"run {len(runs)} still ended with {runs[-1].code}:\n{runs[-1].out}"
        self.settled = self.proxy.disarm()
        yield from self._broken([*passed, *self.settled])

    def quiet(self) -> Iterator[str]:
        """What a plan still wants; one that a busy computer kept from reading is asked again."""
        plan = self.folder.plan()
        for _ in range(AGAIN):
            plan = plan if plan.code in (0, 2) else self.folder.plan()
        if plan.code:
            yield f"{self.prefix}{self.generation}: a plan ends with {plan.code}:\n{plan.out}"

    def _broken(self, passed: list[Passed]) -> Iterator[str]:
        """What does not hold of the promises."""
        self.world()  # ids of topics that this round made
        came = list(forwarded.reached(passed, self.folder.log, self.before.seq, self.topics))
        yield from self.find_broken_promises(reached=came)
        wanted = wish.names(self.prefix, self.generation, self.key)
        if (there := set(self.world())) != wanted:
            yield f"there is {there - wanted} and not {wanted - there}"
        yield from self._blindly(passed)

    def _blindly(self, passed: Sequence[Passed]) -> Iterator[str]:
        """Items that were sent again before anybody looked, and deletes by name."""
        unread: set[tuple[str, Name]] = set()
        for one in passed:
            api = one.request.api
            unread = {(other, name) for other, name in unread if READS[other] != api}
            if not one.request.writes:
                continue
            for item in rewrite.items(one.request):
                if api == "DeleteTopics" and item.name is not None:
                    yield f"a topic was deleted by its name, {item.name}"
                sent = (api, forwarded.called(api, item, self.topics))
                if sent in unread:
                    yield f"NL3 {sent} was sent again and not looked at before"
                if one.fault is None or one.fault.kind not in ("refuse", "refuse one", "throttle"):
                    unread.add(sent)


def _leaves_undone(fault: Fault) -> bool:
    """True if one run cannot do everything in spite of it."""
    kinds = NEVER_ARRIVES - {"throttle"} | {"refuse one"}
    return fault.api in WRITES and fault.kind in kinds and fault.phase == REAL


def lane(
    box: Box, proxy: Proxy, observer: Observer, path: Path, prefix: str, *, alone: bool = False
) -> FaultLane:
    """A lane whose first generation is live. prefix: of all its names; alone: it also has the
    configs of broker and cluster, which can be only one lane's."""
    path.mkdir(parents=True, exist_ok=True)
    folder = Folder(path, proxy.bootstrap, box.admin_password, TIMEOUT)
    made = FaultLane(folder, proxy, observer, prefix, wish.KEY if alone else None)
    made.begin()
    return made
