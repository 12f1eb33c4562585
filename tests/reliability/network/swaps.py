"""Applies during which another cluster begins to answer at the address, at any request of a run.

The disk is real and so is all that reads the configuration; the clusters are simulated, so that a
swap can come with each request there is, those too by which a session asks who is there.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, product
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from kafkaform.audit.records import Record
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.diagnostics import has_errors
from kafkaform.core.errors import KafkaformError, exit_code
from kafkaform.core.resource import Depth, Observed
from kafkaform.core.value import FrozenMap
from kafkaform.state.backends.local import LocalBackend
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.workspace import Workspace
from kafkaform_kafka.memory import (
    MemoryProvider,
    Mishap,
    SimulatedClock,
    SimulatedCluster,
    SimulatedTopic,
    led_elsewhere,
    replaced_cluster,
)

from ...kit import promises
from ...kit.commands.server import Ended
from ...kit.lane import AGAIN, LEFT, PARTIAL, REFUSED, UNKNOWN, find_token
from ...kit.promises import Before, Thing, World
from ...kit.simulated.copies import Mould
from ...kit.simulated.engine import Screen
from ..crash import scenes

OURS, THEIRS = "ours", "theirs"
"""Ids of the two clusters."""
PREFIX = "swap."
KEYS = {
    "kafka_topic": ("name", "partitions", "replication_factor", "config"),
    "kafka_acl": (
        *("acl_principal", "acl_host", "acl_operation", "acl_permission_type"),
        *("resource_type", "resource_name", "resource_pattern_type_filter"),
    ),
    "kafka_quota": ("entity", "config"),
    "kafka_user_scram_credential": ("username", "scram_mechanism", "scram_iterations"),
    "kafka_group_config": ("group", "config"),
}
"""Kind -> what `scenes.wanted` says of it."""
ERROR = 1
LIFE = 4
"""Rounds of a lane: every command reads the whole log."""
WRITES = frozenset(
    {
        *("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteTopics"),
        *("AlterClientQuotas", "AlterUserScramCredentials", "CreateAcls", "DeleteAcls"),
    }
)
HOWS: dict[str, Callable[[SimulatedCluster], Mishap]] = {
    "died before": lambda other: replaced_cluster(other, executed=False),
    "died after": lambda other: replaced_cluster(other, executed=True),
    "led elsewhere": led_elsewhere,
}
"""What becomes of the request with which the swap comes."""
BEFORE, AFTER, EMPTY = "before", "after", "empty"
"""What the other cluster has: all that ours has before the apply, or after it, or nothing."""
LOOKS = (BEFORE, AFTER, EMPTY, AFTER)
"""In turn; not as many as there are fates, so that each of them meets each."""
NEVER = "never"


class Watched(SimulatedCluster):
    """A cluster that remembers the names of all requests of a run, in order."""

    def __init__(self, clock: SimulatedClock, cluster_id: str) -> None:
        super().__init__(clock=clock, cluster_id=cluster_id)
        self.passed: list[str] = []

    def take_swap(self, api: str) -> Mishap:
        self.passed.append(api)
        return super().take_swap(api)


@dataclass
class SwapLane:
    """One folder and its cluster, from round to round. number: of the round it is in."""

    folder: Path
    cluster: Watched
    number: int = -1

    def declare(self) -> Before:
        """Write the configuration of the next round; what was there before it."""
        before = Before.of(self.folder, self.world())
        self.number += 1
        text = scenes.provider("localhost:9092", 2) + scenes.text(PREFIX, self.number)
        (self.folder / "main.kf.hcl").write_text(text, "utf-8")
        return before

    def apply(self, expect: str | None = None) -> Ended:
        """One apply, as the command line runs it."""
        self.cluster.passed.clear()
        screen, error = Screen(), None
        try:
            apply_changes(
                self._space(), approve=screen.approve, expect=expect, progress=screen.report
            )
        except KafkaformError as fault:
            error = fault
        if error is None:
            return Ended(0, "")
        return Ended(exit_code(error), f"{error.message} {error.advice}")

    def recovered(self) -> Ended:
        """Apply until it is done, as a user who does what each run advises."""
        ended = self.apply()
        for _ in range(AGAIN):
            if ended.code not in LEFT:
                break
            ended = self.apply(find_token(ended))
        return ended

    def world(self) -> World:
        """What the cluster has of the lane."""
        return world(self.cluster)

    def files(self) -> list[bytes]:
        """State and log."""
        paths = (self.folder / name for name in (promises.STATE, promises.LOG))
        return [path.read_bytes() for path in paths]

    def _space(self) -> Workspace:
        configuration = read_configuration(self.folder, Inputs())
        desired = configuration.evaluate().desired
        assert not has_errors(desired.diagnostics), desired.diagnostics
        providers: dict[str, Any] = dict.fromkeys(desired.providers, MemoryProvider(self.cluster))
        state, log = self.folder / promises.STATE, self.folder / promises.LOG
        return Workspace(
            configuration,
            desired,
            providers,
            LocalBackend(state),
            LocalSink(log),
            self.cluster.clock,
        )


def world(cluster: SimulatedCluster) -> World:
    """Everything that whoever answers at this cluster's address has."""
    session = MemoryProvider(cluster).open("kafka", FrozenMap(), {})
    found: dict[promises.Name, Thing] = {}
    for kind, keys in KEYS.items():
        sweep = session.sweep(kind, Depth.FULL)
        for item in session.read([item.identity for item in sweep.items]).values():
            if isinstance(item, Observed):
                told = {key: item.attributes[key] for key in keys}
                found[kind, item.identity.key] = Thing(told, item.incarnation)
    return found


Begin: TypeAlias = Callable[[Path], SwapLane]
"""Makes a lane in a folder that is not there yet."""


# ── the other cluster ───────────────────────────────────────────────────────────────────


def twin(of: SimulatedCluster) -> SimulatedCluster:
    """Another cluster with the same objects: a mirror, or a restored backup. Topics have ids of
    their own."""
    made = SimulatedCluster(clock=of.clock, cluster_id=THEIRS)
    made.commit({key: _own(made, of.world.get(key)) for key in list(of.world)})
    return made


def _own(cluster: SimulatedCluster, thing: Any) -> Any:
    return replace(thing, id=cluster.new_id()) if isinstance(thing, SimulatedTopic) else thing


def other_cluster(lane: SwapLane, what: str) -> SimulatedCluster:
    """The one that begins to answer during the apply that is due in the lane."""
    if what == BEFORE:
        return twin(lane.cluster)
    if what == EMPTY:
        return SimulatedCluster(clock=lane.cluster.clock, cluster_id=THEIRS)
    ahead = SwapLane(lane.folder.with_name(f"{lane.folder.name}-ahead"), _copy(lane.cluster))
    shutil.copytree(lane.folder, ahead.folder)
    ended = ahead.recovered()
    assert ended.code == 0, ended.out
    shutil.rmtree(ahead.folder)
    return twin(ahead.cluster)


def _copy(of: SimulatedCluster) -> Watched:
    made = Watched(SimulatedClock(), of.id)
    made.commit({key: of.world.get(key) for key in list(of.world)})
    return made


# ── one swap ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Point:
    """When another cluster begins to answer: with the request of this number, counted from 0; what
    becomes of that request; what the other cluster has."""

    number: int
    how: str
    what: str


@dataclass
class Tally:
    """points: by the request and what became of it; codes: of the applies that met a swap;
    violations: each with its point."""

    points: Counter[tuple[str, str]] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def begin(folder: Path) -> SwapLane:
    """A lane in which an apply comes that has everything to do."""
    folder.mkdir(parents=True)
    lane = SwapLane(folder, Watched(SimulatedClock(), OURS))
    for _ in range(scenes.STEADY):
        lane.declare()
        ended = lane.recovered()
        assert ended.code == 0, ended.out
    return lane


def keep(lane: SwapLane) -> Begin:
    """What makes a lane that goes on from where this one is now, in the folder that it is given."""
    mould, number = Mould(lane.cluster), lane.number

    def begin_there(folder: Path) -> SwapLane:
        shutil.copytree(lane.folder, folder)
        return SwapLane(folder, mould.copy(), number)

    return begin_there


def requests(lane: SwapLane) -> list[str]:
    """The names of all requests of the next round's apply, which nothing disturbs."""
    lane.declare()
    ended = lane.apply()
    assert ended.code == 0, ended.out
    return list(lane.cluster.passed)


def every(names: Sequence[str]) -> list[Point]:
    """Each request with each of its fates; what the other cluster has goes round."""
    return around(range(len(names)))


def around(numbers: Iterable[int]) -> list[Point]:
    """These requests, each with each of its fates."""
    pairs = product(numbers, HOWS)
    return [Point(*pair, what) for pair, what in zip(pairs, cycle(LOOKS), strict=False)]


def strike(lane: SwapLane, point: Point, tally: Tally) -> None:
    """One round: the other cluster comes at this point, stays for one more apply, and goes."""
    before = lane.declare()
    other = other_cluster(lane, point.what)
    theirs, sent = world(other), Counter(other.requests)
    lane.cluster.swaps.schedule(HOWS[point.how](other), skip=point.number)
    first = lane.apply()
    name = lane.cluster.passed[point.number] if not lane.cluster.swaps.pending else NEVER
    lane.cluster.swaps.clear()
    tally.points[name, point.how] += 1
    tally.codes[first.code] += 1
    faults = [*_ended(lane, first, point, before), *promises.kept(lane.folder, before)]
    if name == NEVER:
        faults.append(f"the swap never came: {first}")
    written = Counter({api: other.requests[api] - sent[api] for api in WRITES})
    allowed = point.how == "led elsewhere" and written == Counter({name: 1})
    if written.total() and not allowed:
        faults.append(f"the other cluster was sent {dict(+written)}")
    if world(other) != theirs and not allowed:
        faults.append("the other cluster was changed")
    faults += _refused(lane)
    lane.cluster.lead_to(None)
    last = lane.recovered()
    if last.code:
        faults.append(f"the recovery ended with {last.code}: {last.out}")
    wanted = scenes.wanted(PREFIX, lane.number)
    faults += promises.broken(lane.folder, lane.world, before, wanted=wanted, patience=0)
    tally.violations += [f"{point} ({name}): {fault}" for fault in faults]


def _ended(lane: SwapLane, first: Ended, point: Point, before: Before) -> Iterator[str]:
    """What is wrong with how the apply ended, and with what it recorded. With its last request no
    swap matters any more; what died with one of a dry run or of a plan may end those with 1."""
    records = promises.records_of(lane.folder)[before.seq :]
    intended = any(record.kind == "intent" for record in records)
    outcomes = {record.body["outcome"] for record in records if record.kind == "outcome"}
    # 4 says that nothing was applied, so it is right only if that is so.
    fine = {REFUSED} if intended else {REFUSED, ERROR}
    if promises.open_intents(records):
        fine = {UNKNOWN}
    elif outcomes & {"applied", "started"}:
        # What was done as a whole and could not be looked at is not applied in part.
        fine = {UNKNOWN if _count_left(records) == 0 else PARTIAL}
    if point.number == len(lane.cluster.passed) - 1:
        fine.add(0)
    if first.code not in fine:
        yield f"it ended with {first.code}: {first.out}"
    if first.code and any(r.body["complete"] for r in records if r.kind == "run_end"):
        yield "the log calls the run complete"
    if first.code in (REFUSED, PARTIAL, UNKNOWN) and not {OURS, THEIRS} <= set(
        re.findall(r"\w+", first.out)
    ):
        yield f"it does not name both clusters: {first.out}"


def _count_left(records: Sequence[Record]) -> int:
    """How many steps of the recorded plan have no successful outcome."""
    (plan,) = (record.body["plan"] for record in records if record.kind == "plan")
    planned = {step["id"] for change in plan["changes"] for step in change.get("steps", ())}
    done = {
        record.body["step"]
        for record in records
        if record.kind == "outcome" and record.body["outcome"] in ("applied", "started")
    }
    return len(planned - done)


def _refused(lane: SwapLane) -> Iterator[str]:
    """While the other cluster answers, an apply is refused and writes nothing."""
    if lane.cluster.answering is lane.cluster:
        return
    files = lane.files()
    again = lane.apply()
    if again.code != REFUSED:
        yield f"the next apply ended with {again.code}: {again.out}"
    if lane.files() != files:
        yield "the next apply wrote something"


def strike_all(points: Sequence[Point], scratch: Path, begin: Begin = begin) -> Tally:
    """All of these, in lanes that follow each other. begin: makes each of them."""
    scratch.mkdir(parents=True, exist_ok=True)
    tally, lane, lives = Tally(), begin(scratch / "0"), 0
    for point in points:
        found = len(tally.violations)
        strike(lane, point, tally)
        if len(tally.violations) > found or lane.number >= LIFE:
            lives += 1
            lane = begin(scratch / str(lives))
    return tally
