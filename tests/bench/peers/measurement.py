"""One scene: every tool does every work in it, in turn, again and again.

The tools share a cluster, so each work leaves it as it was (`works.Stage`): a tool that creates
the world is followed by a bare client that deletes it. Run 0 fills caches and counts the requests
in a relay; it is not timed. After the first apply of a tool, a bare client checks that the cluster
is as the world says.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from confluent_kafka.admin import AdminClient
from msgspec import Struct, field

from kafkaform.sandbox import Sandbox

from ...kit.kafka.truth import Observer
from ..limit import Bare
from . import limits
from .figures import Figure, Reading
from .hcl_files import Form
from .relay import Relay, relaying
from .runs import Asked, Trial, add_readings, make_variables, run_command
from .tools import Address, Command, Given, Tool
from .works import WORKS, Stage
from .world import PREFIX, World, change_world, make_world, parse_size

LATE = re.compile(r"^(?:(\d[\d,]*) objects|\S+): applied, not yet visible", re.MULTILINE)
READING, MOST_FAILURES = ("empty", "no-op", "drift"), 3
"""Works that change nothing are repeated if they fail, so often in all. Mongey's provider sometimes
finds its connection not open yet."""
SETTLED = 61.0
"""Seconds. For a minute after a run that wrote, kafkaform asks again for objects that are missing,
since reads lag behind writes. An ACL that others replace much later is not asked for again."""


class Stand(Struct):
    """Where the scene is measured. relay: with the scene's latency, and counting."""

    asked: Asked
    tools: Sequence[Tool]
    home: Path
    box: Sandbox
    relay: Relay
    before: World
    after: World
    """The world before and after the change of one percent."""
    trials: dict[tuple[str, str], Trial] = field(default_factory=dict)

    def make_clients(self) -> tuple[AdminClient, Bare]:
        """Those of preparing and checking, straight to the broker."""
        bootstrap, password = self.box.bootstrap, self.box.admin_password
        return limits.connect(bootstrap, password), Bare(bootstrap, password)

    def give(self, world: World, run: int | None, *, imports: bool = False) -> Given:
        """run: the number of the run, by which the address is chosen; None: straight."""
        far = run is not None and (run == 0 or self.asked.scene.latency > 0)
        bootstrap = self.relay.bootstrap if far else self.box.bootstrap
        address = Address(bootstrap, self.box.admin_password, self.box.cluster_id)
        scene = self.asked.scene
        return Given(parse_size(scene.size), world, Form(scene.form), address, imports)

    def get_trial(self, work: str, tool: Tool) -> Trial:
        return self.trials.setdefault((work, tool.name), Trial())

    def list_turns(self, *works: str) -> Iterator[tuple[int, Tool]]:
        """Run by run, the tools that can do any of these, beginning with another one each time."""
        able = [t for t in self.tools if any(self.can(t, work) for work in works)]
        for run in range(self.asked.runs + 1):
            shift = run % len(able) if able else 0
            for tool in (*able[shift:], *able[:shift]):
                if not all(self.get_trial(w, tool).why for w in works if w in tool.works):
                    yield run, tool

    def can(self, tool: Tool, work: str) -> bool:
        return work in tool.works and not tool.explain(self.before)

    def wants(self, *works: str) -> list[str]:
        return [work for work in works if work in self.asked.works]


def measure_scene(
    asked: Asked, tools: Sequence[Tool], home: Path, box: Sandbox
) -> Iterator[Figure]:
    """The figures of a scene. home: a folder that exists, for everything that the tools write."""
    world = make_world(parse_size(asked.scene.size))
    ports = [broker.ports.client for broker in box.brokers]
    with ExitStack() as stack:
        relay = stack.enter_context(relaying(ports, asked.scene.latency / 1000))
        stand = Stand(asked, tools, home, box, relay, world, change_world(world))
        for tool in tools:
            _lay_template(stand, tool)
        _measure_nothing(stand)
        _measure_writes(stand)
        _measure_live(stand)
    yield from _collect(stand)


def _collect(stand: Stand) -> Iterator[Figure]:
    """A figure, or the reason why there is none, for each work that somebody was asked for."""
    asked = stand.asked
    for work in asked.works:
        for tool in (tool for tool in stand.tools if work in tool.works):
            trial = stand.trials.get((work, tool.name), Trial())
            why = trial.why or tool.explain(stand.before)
            if trial.runs or why:
                yield Figure(
                    asked.scene,
                    work,
                    tool.name,
                    asked.session,
                    () if why else tuple(trial.runs),
                    trial.requests,
                    trial.late,
                    why,
                    trial.failures,
                )


# ── the stages ──────────────────────────────────────────────────────────────────────────


def _measure_nothing(stand: Stand) -> None:
    if stand.wants("empty"):
        for run, tool in stand.list_turns("empty"):
            _read(stand, "empty", tool, _make_folder(stand, tool, run), run)


def _measure_writes(stand: Stand) -> None:
    """All works that a ratio could be made of in the same turn: the machine is busier at one time
    than at another."""
    pairs = [pair for pair in _PAIRS if stand.wants(*pair)]
    if not pairs:
        return
    client, bare = stand.make_clients()
    for run, tool in stand.list_turns(*chain.from_iterable(pairs)):
        for first, last in pairs:
            if not stand.can(tool, first) or stand.get_trial(first, tool).why:
                continue
            folder = _make_folder(stand, tool, run)
            _read(stand, first, tool, folder, run, checked=run == 0 and first in _SEEN)
            if why := stand.get_trial(first, tool).why:
                stand.get_trial(last, tool).why = f"{first}: {why}"
            elif stand.wants(last):
                limits.wait_until_shown(bare, stand.before)
                _read(stand, last, tool, folder, run)
            limits.clear(client, bare, stand.before)
    bare.close()


def _measure_live(stand: Stand) -> None:
    wanted = stand.wants(*(name for name, work in WORKS.items() if work.stage in _LIVE))
    if not wanted:
        return
    client, bare = stand.make_clients()
    limits.build(client, bare, stand.before)
    able = [tool for tool in stand.tools if not tool.explain(stand.before)]
    known = [tool for tool in able if _take_over(stand, tool)]
    stand.tools, everyone, taken = known, stand.tools, time.monotonic()
    works = stand.wants("import", "sweep", "no-op", "change")
    for run, tool in stand.list_turns(*works):
        for work in (work for work in works if stand.can(tool, work)):
            imports, changes = work == "import", work == "change"
            world = stand.after if changes else stand.before
            folder = _make_folder(stand, tool, run, world, known=not imports, imports=imports)
            _read(stand, work, tool, folder, run, checked=changes and run == 0)
            if changes:
                limits.turn(client, bare, stand.after, stand.before)
    if stand.wants("drift"):
        if stand.before.acls:
            time.sleep(max(0.0, taken + SETTLED - time.monotonic()))
        limits.turn(client, bare, stand.before, stand.after)
        for run, tool in stand.list_turns("drift"):
            _read(stand, "drift", tool, _make_folder(stand, tool, run, known=True), run)
        limits.turn(client, bare, stand.after, stand.before)
    stand.tools = everyone
    limits.clear(client, bare, stand.before)
    bare.close()


_PAIRS = (
    ("apply", "destroy"),
    ("apply-no-wait", ""),
    ("create", "delete"),
    ("create-shown", "delete-shown"),
)
_SEEN = ("apply", "create-shown")
"""Works after which the brokers show everything."""
_LIVE = frozenset({Stage.LIVE, Stage.DRIFTED, Stage.CHANGED})


# ── folders ─────────────────────────────────────────────────────────────────────────────


def _lay_template(stand: Stand, tool: Tool) -> None:
    """The folder that all runs of a tool begin with, without any state."""
    folder = stand.home / "fresh" / tool.name
    _write(folder, tool.write(stand.give(stand.before, None)))
    if tool.absent:
        return
    for command in tool.first:
        said = _run(stand, tool, command, folder, None)
        assert not isinstance(said, str), f"{tool.name} cannot be prepared: {said}"


def _make_folder(
    stand: Stand,
    tool: Tool,
    run: int | None,
    world: World | None = None,
    *,
    known: bool = False,
    imports: bool = False,
) -> Path:
    """A new folder for one run. known: with the state after an import; world: None for the one
    before the change."""
    template = stand.home / ("known" if known and not tool.stateless else "fresh") / tool.name
    folder = stand.home / "run" / tool.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder, symlinks=True)
    given = stand.give(world or stand.before, run, imports=imports)
    _write(folder, tool.write(given))
    return folder


def _take_over(stand: Stand, tool: Tool) -> bool:
    """Let a tool learn what is there, unmeasured; False if it cannot."""
    if tool.stateless:
        return True
    folder = _make_folder(stand, tool, None, imports=True)
    for command in tool.works["import"]:
        said = _run(stand, tool, command, folder, None)
        if isinstance(said, str):
            for work in stand.asked.works:
                if WORKS[work].stage in _LIVE and work in tool.works:
                    stand.get_trial(work, tool).why = f"import: {said}"
            return False
    for path in folder.glob("import_*"):
        path.unlink()
    known = stand.home / "known" / tool.name
    known.parent.mkdir(exist_ok=True)
    folder.rename(known)
    return True


def _write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


# ── one run ─────────────────────────────────────────────────────────────────────────────


def _read(
    stand: Stand, work: str, tool: Tool, folder: Path, run: int, *, checked: bool = False
) -> None:
    """Do a work once, and note what it took if it was asked for. checked: the cluster must be as
    the configuration says then."""
    trial = stand.get_trial(work, tool)
    if trial.why or not stand.can(tool, work):
        return
    said = _do(stand, work, tool, folder, run)
    while isinstance(said, str) and work in READING and trial.failures < MOST_FAILURES:
        print(f"  {work} {tool.name}, again: {said}", flush=True)
        trial.failures += 1
        said = _do(stand, work, tool, folder, run)
    if isinstance(said, str):
        trial.why = said
        return
    if run == 0:
        trial.requests = stand.relay.take()
    else:
        trial.runs.append(said)
        size = stand.asked.scene.size
        print(f"  {size} {work:<14} {tool.name:<10} {said.wall:8.2f} s", flush=True)
    if work.startswith("apply"):
        _look_for_late(stand, trial, folder)
    if checked:
        trial.why = _check(stand, stand.after if work == "change" else stand.before)


def _do(stand: Stand, work: str, tool: Tool, folder: Path, run: int) -> Reading | str:
    """All commands of a work: what they took, or why one failed."""
    stand.relay.take()
    readings = []
    for command in tool.works[work]:
        said = _run(stand, tool, command, folder, run)
        if isinstance(said, str):
            return said
        readings.append(said)
    return add_readings(readings)


def _run(
    stand: Stand, tool: Tool, command: Command, folder: Path, run: int | None
) -> Reading | str:
    """What it took, or why it failed."""
    given = stand.give(stand.before, run)
    places = {
        "{cluster_id}": given.address.cluster_id,
        "{bootstrap}": given.address.bootstrap,
        "{size}": str(given.size),
    }
    variables = make_variables(tool, stand.home, stand.box.admin_password)
    brokers = tuple(broker.process.pid for broker in stand.box.brokers if broker.process)
    words = tuple(places.get(word, word) for word in command.words)
    return run_command(words, command.codes, folder, variables, stand.asked.patience, brokers)


# ── checks ──────────────────────────────────────────────────────────────────────────────


def _check(stand: Stand, world: World) -> str:
    """How the cluster differs from the world; empty if it does not."""
    bootstrap, password = stand.box.bootstrap, stand.box.admin_password
    observer, bare = Observer(bootstrap, password), Bare(bootstrap, password)
    live = observer.topics(PREFIX)
    topics = {t.name: (t.partitions, dict(t.config)) for t in world.topics}
    found = {name: (topic.partitions, dict(topic.config)) for name, topic in live.items()}
    # topicctl sets more than it is asked for, which is its way and no mistake.
    wrong = [
        name for name, (count, config) in topics.items() if not _has(found, name, count, config)
    ]
    counts = bare.count_acls(), bare.count_quotas()
    observer.close()
    bare.close()
    if wrong or found.keys() != topics.keys():
        return f"{len(wrong) or len(found)} topics are not as declared"
    wanted = len(world.acls), len(world.quotas)
    return "" if counts == wanted else f"{counts} ACLs and quotas exist, not {wanted}"


def _has(
    found: Mapping[str, tuple[int, Mapping[str, str]]],
    name: str,
    partitions: int,
    config: Mapping[str, str],
) -> bool:
    there = found.get(name)
    return there is not None and there[0] == partitions and config.items() <= there[1].items()


def count_late(said: str) -> int:
    """How many objects an apply calls not yet visible."""
    return sum(int((many or "1").replace(",", "")) for many in LATE.findall(said))


def _look_for_late(stand: Stand, trial: Trial, folder: Path) -> None:
    late = count_late(folder.with_suffix(".out").read_text("utf-8", "replace"))
    if late:
        time.sleep(1)
        if why := _check(stand, stand.before):
            print(f"  not shown after a second: {why}")
            late = 0
    trial.late = max(trial.late or 0, late)
