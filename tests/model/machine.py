"""The whole engine against everything at once: faults, deaths, other people, new wishes.

One cluster, two states on it, and a list of steps. A step is the name of a rule and its
arguments, which are JSON: whoever draws the steps (Hypothesis, a seed, a file), the same ones do
the same. Rules are what people, processes and networks do; `check` is what users rely on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from kafkaform.audit import checkpoint

from ..kit.simulated import engine
from ..kit.simulated.boxes import Box
from ..kit.simulated.engine import TIMEOUT
from . import wishes
from .home import Home, options
from .shapes import Many, Pick, Record, Whole, record
from .wishes import BOXES, CROWD, FOREIGN, Wish
from .witness import Thing, same, shape

Step = tuple[str, Mapping[str, Any]]


class Machine:
    """Plays one schedule. alone: there is no second state, and who works is always the first.
    Raises AssertionError where a promise is broken."""

    def __init__(
        self,
        brokers: int,
        begun: bool,
        pace: float,
        first: Sequence[dict[str, Any]],
        boxed: bool,
        alone: bool,
    ) -> None:
        house = engine.house(brokers=brokers)
        self.cluster = house.cluster
        self.cluster.depot.pace = pace
        other = engine.house(beside=house)
        if begun:
            engine.begin(house, "lineage-1")
            engine.begin(other, "lineage-2")
        self.homes = tuple(Home(h, self._meddle) for h in ((house,) if alone else (house, other)))
        self.cluster.on_own = self.cluster.depot.on_own = self._mutation
        self.lagged = False
        with self.cluster.others() as others:
            self.foreign = others.create(FOREIGN, 2, config={"retention.ms": "1000"})
        self.homes[0].declare(first)
        if boxed:
            self.move(0, [{"name": name, "place": "hall", "label": None} for name in BOXES], [], [])

    def do(self, rule: str, arguments: Mapping[str, Any]) -> None:
        """One step, and then what must hold."""
        if "who" in arguments and len(self.homes) == 1:
            arguments = {**arguments, "who": 0}
        getattr(self, rule)(**arguments)
        self.check()

    def check(self) -> None:
        """What must hold after every step, whatever it was."""
        for home in self.homes:
            if not home.unusable:
                home.witness.storage()
        live = self.cluster.topics.get(FOREIGN)
        assert live == self.foreign, f"somebody else's topic was touched: {live}"

    def _mutation(self, name: str, before: Thing | None, after: Thing | None) -> None:
        if same(before, after):
            return
        said = [home.witness.announced(name, before, after) for home in self.homes]
        assert any(said), f"NL1: nobody announced {name}: {shape(before)} -> {shape(after)}"
        flying = [h.witness.in_flight(r) for h, r in zip(self.homes, said, strict=True)]
        for home, records, flies in zip(self.homes, said, flying, strict=True):
            if records and flies is any(flying):
                home.witness.mutation(name, before, after, records)
            elif before is not None:
                home.witness.theirs.add(before.id)

    # ── what is wished ──────────────────────────────────────────────────────────────────

    def declare(self, who: int, new: Sequence[dict[str, Any]]) -> None:
        self.homes[who].declare(new)

    def undeclare(self, who: int, name: str, how: bool | None) -> None:
        self.homes[who].undeclare(name, how)

    def rename(self, who: int, name: str) -> None:
        self.homes[who].rename(name)

    def protect_topics(self, who: int, on: bool) -> None:
        self.homes[who].settings["protect_topics"] = on

    def crowd(self, declared: bool, most: int | None) -> None:
        """Many topics at once, all of which go at once later: the guard stops that."""
        home = self.homes[0]
        for name in CROWD:
            if declared:
                home.declare([{"name": name, "lifecycle": "adopt"}])
            elif name in home.wishes:
                home.undeclare(name, True)
        home.apply(options("normal", most))

    # ── what others do ──────────────────────────────────────────────────────────────────

    def somebody_meddles(self, name: str, deed: str) -> None:
        self._meddle(name, deed)

    def _touch(self, name: str) -> None:
        for home in self.homes:
            home.witness.touched[name] = len(home.house.sink.records)

    def _meddle(self, name: str, deed: str) -> None:
        self._touch(name)
        live = self.cluster.topics.get(name)
        with self.cluster.others() as others:
            if deed == "create" and live is None:
                others.create(name, 2, config={"retention.ms": "1000"})
            elif deed == "create as wished" and live is None:
                wish = self.homes[0].wishes.get(name, Wish(name))
                others.create(name, wish.partitions or 1, config=wishes.CONFIGS[wish.config])
            elif deed == "grow" and live is not None:
                others.grow(name, live.partitions + 1)
            elif deed in ("alter", "clear") and live is not None:
                others.alter(name, {"retention.ms": "77" if deed == "alter" else None})
            elif deed in ("delete", "recreate") and live is not None:
                getattr(others, deed)(name)
        if name == FOREIGN:
            self.foreign = self.cluster.topics.get(FOREIGN)

    def somebody_is_first(self, name: str) -> None:
        """Between the last look and the request somebody makes the very topic that is asked for:
        it is not ours, however much it looks like it."""
        home = self._by(0)
        if home.unusable or name in self.cluster.topics:
            return
        self.cluster.faults.clear()
        home.declare([{"name": name}])
        first = {"name": name, "deed": "create as wished"}
        home.apply(trouble=[{"kind": "edit", "how": first, "what": "intent", "skip": 0}])
        live, row = self.cluster.topics.get(name), home.house.row(name)
        theirs = live is not None and live.id not in home.witness.made
        assert not theirs or row is None or row.incarnation != live.id, f"D1: {name} is not ours"

    def somebody_carries(self, name: str, deed: str) -> None:
        """Another tool moves boxes too, and stops moves that are not its own."""
        self._touch(name)
        depot = self.cluster.depot
        if name not in depot.boxes:
            if deed == "put":
                depot.put(Box(f"foreign-{self.cluster.clock.monotonic()}", name, "hall", ""))
        elif deed == "move":
            depot.put(depot.move(name, "cellar"))
        elif deed == "stop":
            depot.stop(name)
        elif deed == "drop":
            del depot.held[name]

    def forge(self, who: int, how: str, name: str) -> None:
        self.homes[who].forge(how, name)

    def roll_back(self, who: int, versions: int) -> None:
        self.homes[who].roll_back(versions)

    def lose_state(self, who: int) -> None:
        self.homes[who].lose_state()

    def lose_log(self, who: int) -> None:
        self.homes[who].lose_log()

    def swap_cluster(self, who: int) -> None:
        """The same addresses, another cluster: a state with objects is applied to nothing there."""
        home, mine = self.homes[who], self.cluster.id
        if home.unusable or not home.house.state.providers:
            return
        before = len(home.house.records("intent", "discharged"))
        self.cluster.id = "another cluster"
        self._by(who).apply()
        self.cluster.id = mine
        after = len(home.house.records("intent", "discharged"))
        assert before == after, "it was applied to another cluster"

    # ── what goes wrong ─────────────────────────────────────────────────────────────────

    def brokers_lag(self, seconds: float, reads: int, which: int) -> None:
        self.lagged = True
        self.cluster.lag(seconds=seconds, reads=reads, broker=self.cluster.numbers[which])

    def brokers_fall(self, number: int, up: bool) -> None:
        if number in self.cluster.numbers:
            (self.cluster.start if up else self.cluster.stop)(number)

    def time_passes(self, seconds: float) -> None:
        self.cluster.clock.sleep(seconds)

    # ── what the tool does ──────────────────────────────────────────────────────────────

    def plan(self, who: int, trouble: Sequence[dict[str, Any]]) -> None:
        self._by(who).plan(trouble)

    def apply(
        self,
        who: int,
        mode: str,
        new: Sequence[dict[str, Any]],
        gone: Sequence[str],
        trouble: Sequence[dict[str, Any]],
        meanwhile: Sequence[dict[str, str]],
    ) -> None:
        """A few new wishes, then a run through trouble while somebody else is at work."""
        home = self._by(who)
        home.declare(new)
        for name in gone:
            home.undeclare(name, True)
        home.apply(options(mode, None), trouble, meanwhile)

    def move(
        self,
        who: int,
        new: Sequence[dict[str, Any]],
        trouble: Sequence[dict[str, Any]],
        then: Sequence[dict[str, str]],
    ) -> None:
        """Boxes are made and moved: long work, begun and asked about through trouble, and perhaps
        stopped by somebody else."""
        home = self._by(who)
        home.place(new)
        home.apply(trouble=trouble)
        for carry in then:
            self.somebody_carries(**carry)

    def apply_saved(self, who: int, expect: bool, trouble: Sequence[dict[str, Any]]) -> None:
        """Perhaps for the second time, or long after the world went on."""
        home = self._by(who)
        if home.saved is not None:
            token = home.saved.token if expect else None
            home.apply(home.saved.options, trouble, saved=home.saved, expect=token)

    def resume(self, who: int, trouble: Sequence[dict[str, Any]]) -> None:
        self._by(who).resume(trouble)

    def recover(self, who: int) -> None:
        self.cluster.faults.clear()
        self._by(who).recover()

    def _by(self, who: int) -> Home:
        """Whoever works now; leftovers of what was to happen to others are gone."""
        for home in self.homes:
            home.house.fate.clear()
            home.raced = False
        self.cluster.fate.clear()
        self.homes[who].witness.open_eyes = not self.lagged
        return self.homes[who]

    # ── when all is calm ────────────────────────────────────────────────────────────────

    def calm(self) -> None:
        """Everything works again: each state in turn converges with the cluster."""
        self.cluster.faults.clear()
        self.cluster.lag()
        for number in self.cluster.numbers:
            self.cluster.start(number)
        for who in range(len(self.homes)):
            home = self._by(who)
            self.cluster.clock.sleep(3600.0)
            for _ in range(5):
                for number in self.cluster.numbers:
                    self.cluster.look("DescribeTopics", number)
            self.lagged = False
            home.witness.open_eyes = True
            home.calm()


# ── the rules ───────────────────────────────────────────────────────────────────────────

START = record(
    brokers=Pick((1, 3)),
    begun=Pick((False, True)),
    pace=Pick((0.0, 3.0, 100.0, 100.0)),
    first=Many(wishes.wish, 3),
    boxed=Pick((False, False, True)),
    alone=Pick((False, True)),
)
_who, _troubles, _trouble = wishes.who, Many(wishes.trouble, 3), Many(wishes.trouble, 1)
RULES: Mapping[str, tuple[int, Record]] = {
    "declare": (4, record(who=_who, new=Many(wishes.wish, 3, 1))),
    "undeclare": (
        4,
        record(
            who=_who, name=Pick((*wishes.NAMES, *BOXES)), how=Pick((True, True, True, False, None))
        ),
    ),
    "rename": (2, record(who=_who, name=wishes.name)),
    "protect_topics": (1, record(who=_who, on=Pick((False, True)))),
    "crowd": (1, record(declared=Pick((True, False)), most=Pick((None, None, 5, 12)))),
    "somebody_meddles": (4, wishes.edit),
    "somebody_carries": (2, wishes.carry),
    "somebody_is_first": (1, record(name=wishes.name)),
    "forge": (2, record(who=_who, how=Pick(wishes.FORGERIES), name=wishes.name)),
    "roll_back": (2, record(who=_who, versions=Whole(0, 9))),
    "lose_state": (1, record(who=_who)),
    "lose_log": (1, record(who=_who)),
    "swap_cluster": (1, record(who=_who)),
    "brokers_lag": (
        2,
        record(seconds=Pick((0.0, 0.5, 2.0)), reads=Pick((0, 1, 3)), which=Pick((0, -1))),
    ),
    "brokers_fall": (2, record(number=Whole(2, 3), up=Pick((False, True)))),
    "time_passes": (3, record(seconds=Pick((1.0, float(TIMEOUT), 3600.0)))),
    "plan": (4, record(who=_who, trouble=_trouble)),
    "apply": (
        14,
        record(
            who=_who,
            mode=Pick(("normal",) * 5 + ("destroy",)),
            new=Many(wishes.wish, 2),
            gone=Many(wishes.name, 1),
            trouble=_troubles,
            meanwhile=Many(wishes.edit, 1),
        ),
    ),
    "move": (
        4,
        record(
            who=_who,
            new=Many(wishes.box, 2, 1),
            trouble=Many(wishes.box_trouble, 2),
            then=Many(wishes.carry, 1),
        ),
    ),
    "apply_saved": (5, record(who=_who, expect=Pick((False, True)), trouble=_troubles)),
    "resume": (4, record(who=_who, trouble=_trouble)),
    "recover": (2, record(who=_who)),
    "calm": (1, record()),
}


@contextmanager
def numbered() -> Iterator[None]:
    """Ids of runs and lineages are counted, so that a schedule does the same every time. Every run
    stores a checkpoint: the simulated clock stands still, so that all appends look like one."""
    random = Random(0)
    with (
        patch.object(uuid, "uuid4", lambda: uuid.UUID(int=random.getrandbits(128), version=4)),
        patch.object(checkpoint, "APPENDS", 0),
    ):
        yield
