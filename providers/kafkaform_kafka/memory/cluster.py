"""A KRaft cluster in memory: a controller with one log, and brokers that follow it."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from msgspec import Struct

from kafkaform.core.clock import Clock

from ..connection.clients import CLIENT_ID
from ..kinds.quota.mutation_simulation import Mutations
from ..kinds.topic import resource_type as topics
from ..kinds.topic.simulation import SimulatedTopic, Topics
from ..provider import PROVIDER, KafkaProvider
from ..simulation.broker import SimulatedBroker
from ..simulation.clock import SimulatedClock
from ..simulation.controller import AdminAnswer, AdminCall, Item
from ..simulation.defaults import TOPIC_DEFAULTS
from ..simulation.rights import Right, User, make_user
from ..simulation.schedule import NONE, Ending, Killed, Lost, Mishap, Schedule, Unreachable
from ..simulation.world import Changes, Key, SimulatedWorld
from .outside import Outside
from .tables import join_tables

T = TypeVar("T")
PROOF = "ProveCluster"
"""The request that asks who is there; it changes nothing and is not counted."""
Veto = Callable[[int, str], AdminAnswer | None]

_RAISED: Mapping[Ending, Callable[[str], BaseException]] = {
    Ending.UNREACHABLE: Unreachable,
    Ending.LOST: Lost,
    Ending.KILLED: Killed,
}
_CAUSES = {
    Ending.UNREACHABLE: "the connection failed",
    Ending.LOST: "the connection broke",
    Ending.KILLED: "the process died",
}


class _Late(Struct, frozen=True):
    """An effect that lands at the time `due`, or once `looks` reads were served (0 = only then)."""

    due: float
    looks: int
    serve: Callable[[], object]


class View(Struct, frozen=True):
    """What one broker shows to one read; veto: an error that is injected for an object."""

    world: SimulatedWorld
    veto: Veto

    @property
    def topics(self) -> Topics:
        return self.world.of(topics.KIND)


class SimulatedCluster:
    """clock: decides when late effects land and lagging brokers catch up; provider: whose kinds
    of objects the cluster knows.

    faults: the mishaps of coming requests; swaps: those after which another cluster answers at the
    address, which may also strike when somebody asks who is there (PROOF); connection: another
    number whenever connections had to be made anew; outside: edits that nobody asked this tool for;
    requests: how many requests of each API have left the client; defaults: broker-wide topic
    configs, which are the fallbacks of overrides; users by name, of whom `admin` is root;
    mutations: the controller mutation quota, which has no limit at first; move_seconds: how
    long a reassignment takes that copies replicas.
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        clock: Clock | None = None,
        cluster_id: str = "simulated",
        provider: KafkaProvider = PROVIDER,
    ) -> None:
        self.id = cluster_id
        self.provider = provider
        self.tables = join_tables(provider.kinds)
        self.clock: Clock = clock or SimulatedClock()
        self.faults = Schedule()
        self.swaps = Schedule()
        self.connection = 0
        self._stand_in: SimulatedCluster | None = None
        self.outside = Outside(self)
        self.requests: Counter[str] = Counter()
        self.users: dict[str, User] = {"admin": User("admin", root=True)}
        self.defaults: dict[str, str] = dict(TOPIC_DEFAULTS)
        self.default_partitions = 1
        self.default_replication_factor = 1
        self.delete_topic_enable = True
        self.elr = False
        self.move_seconds = 60.0
        self._moves: dict[Key, tuple[object, float]] = {}
        self._brokers = {number: SimulatedBroker() for number in range(1, brokers + 1)}
        self._world = SimulatedWorld()
        self.mutations = Mutations(self._world, lambda changes: self.commit(changes))
        self._late: list[_Late] = []
        self._looks = 0
        self._ids = 0

    @property
    def answering(self) -> SimulatedCluster:
        """Whoever answers at this cluster's address."""
        return self._stand_in or self

    def lead_to(self, other: SimulatedCluster | None, *, beneath: bool = False) -> None:
        """Let another cluster answer at this address, or with None this one again. beneath: open
        connections stay open, and lead there."""
        self._stand_in = other
        self.connection += not beneath

    def identify(self) -> str:
        """The id of whoever answers. Raises Unreachable, Lost or Killed."""
        mishap = self.take_swap(PROOF)
        if self._is_elsewhere(mishap):
            return self.answering.id
        return self._carry_out(mishap, lambda: self.id)

    def take_swap(self, api: str) -> Mishap:
        """Every request passes here first: the swap that is due with this one, or NONE."""
        mishap = self.swaps.take(api)
        if mishap.elsewhere is not None:
            self.lead_to(mishap.elsewhere, beneath=mishap.beneath)
        return mishap

    def _is_elsewhere(self, mishap: Mishap) -> bool:
        """Whether the stand-in gets the request of this mishap."""
        return self._stand_in is not None and (mishap.elsewhere is None or mishap.beneath)

    @property
    def topics(self) -> Topics:
        """The committed topics by name, however far brokers lag behind."""
        return self.world.of(topics.KIND)

    @property
    def world(self) -> SimulatedWorld:
        """Everything that is committed, however far brokers lag behind."""
        self._land_effects()
        return self._world

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of all brokers, up or down."""
        return tuple(self._brokers)

    @property
    def live(self) -> tuple[int, ...]:
        """Numbers of the brokers that are up, also of those that hang."""
        return tuple(number for number, broker in self._brokers.items() if broker.up)

    def grant(self, name: str, *rights: Right) -> User:
        """Make an ordinary user, or give an existing one more rights."""
        held = self.users[name].rights if name in self.users else frozenset()
        self.users[name] = make_user(name, {*held, *rights})
        return self.users[name]

    def stop(self, broker: int) -> None:
        """Take a broker down: nobody reaches it, and no replica is placed on it."""
        self._brokers[broker].up = False

    def start(self, broker: int) -> None:
        """Bring a broker back; it has followed the log meanwhile."""
        self._brokers[broker].up = True
        self._brokers[broker].hangs = False

    def hang(self, broker: int) -> None:
        """Let a broker answer nobody. The cluster lists it until it is stopped."""
        self._brokers[broker].hangs = True

    def lag(self, *, reads: int = 0, seconds: float = 0.0, broker: int | None = None) -> None:
        """Let later writes stay unseen for so many reads and so many seconds, at one broker or
        at each. Without figures, later writes are seen at once."""
        for number in self._brokers if broker is None else (broker,):
            self._brokers[number].lag = (reads, seconds)

    def write(
        self, api: str, items: Sequence[Item], who: User, *, validate: bool
    ) -> list[AdminAnswer]:
        """Send one admin request. validate: answer as if, and change nothing.

        Raises Unreachable, Lost or Killed; with the last two an effect may have happened.
        """
        mishap = self._take_mishap(f"{api}:validate" if validate else api)
        if self._is_elsewhere(mishap):
            return self.answering.write(api, items, who, validate=validate)
        if not self.live:
            raise Unreachable("no broker is up")

        def serve() -> list[AdminAnswer]:
            answers, changes = self.tables.handlers[api](
                self._make_call(who, _make_veto(mishap)), items
            )
            if not validate:
                self.commit(changes)
            return answers

        return self._carry_out(mishap, serve)

    def look(self, api: str, node: int | None) -> View:
        """Read at one broker, or at any. Raises Unreachable, Lost or Killed."""
        self._looks += 1
        mishap = self._take_mishap(api)
        if self._is_elsewhere(mishap):
            return self.answering.look(api, node)
        answering = [number for number in self.live if not self._brokers[number].hangs]
        number = next(iter(answering), 0) if node is None else node
        if number not in answering:
            what = "does not answer" if number in self.live else "is not up"
            raise Unreachable(f"broker {number} {what}" if number else "no broker answers")
        broker, now = self._brokers[number], self.clock.monotonic()
        return self._carry_out(mishap, lambda: View(broker.look(now), _make_veto(mishap)))

    def commit(self, changes: Changes) -> None:
        """Append one atomic batch to the log."""
        if not changes:
            return
        self._append(changes)

    def _append(self, changes: Changes) -> None:
        self._world.apply(changes)
        now = self.clock.monotonic()
        for broker in self._brokers.values():
            broker.commit(changes, now)
        for key, made in changes.items():
            target = made.target if isinstance(made, SimulatedTopic) else None
            if target is None:
                self._moves.pop(key, None)
            elif self._moves.get(key, (None, now))[0] != target:
                self._moves[key] = (target, now + self.move_seconds)

    def new_id(self) -> str:
        """A topic id as Kafka prints it, the same in every run."""
        self._ids += 1
        made = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.id}/{self._ids}")
        return urlsafe_b64encode(made.bytes).decode("ascii").rstrip("=")

    def _make_call(self, who: User, veto: Veto) -> AdminCall:
        counts = (self.default_partitions, self.default_replication_factor)
        charge = self.mutations.charge(who.name, CLIENT_ID, self.clock.monotonic())
        return AdminCall(
            self._world,
            who,
            self.live,
            counts,
            self.delete_topic_enable,
            self.new_id,
            veto,
            charge,
            self.clock.monotonic(),
            self.elr,
        )

    def _take_mishap(self, api: str) -> Mishap:
        self._land_effects()
        mishap = self.take_swap(api)
        if mishap == NONE:
            mishap = self.faults.take(api)
        if mishap.sent:
            self.requests[api] += 1
        return mishap

    def _carry_out(self, mishap: Mishap, serve: Callable[[], T]) -> T:
        if mishap.ending is Ending.ANSWER:
            return serve()
        if mishap.delay is not None:
            looks = self._looks + mishap.reads if mishap.reads else 0
            self._late.append(_Late(self.clock.monotonic() + mishap.delay, looks, serve))
            self._land_effects()
        raise _RAISED[mishap.ending](_CAUSES[mishap.ending])

    def _land_effects(self) -> None:
        while ripe := [late for late in self._late if self._is_due(late)]:
            first = min(ripe, key=lambda late: late.due)  # of equals, the one that was sent first
            self._late.remove(first)
            first.serve()
        now = self.clock.monotonic()
        for key in [key for key, (_, end) in self._moves.items() if end <= now]:
            self._append({key: self._world.get(key).arrived})

    def _is_due(self, late: _Late) -> bool:
        return late.due <= self.clock.monotonic() or 0 < late.looks <= self._looks


def _make_veto(mishap: Mishap) -> Veto:
    def answer(index: int, name: str) -> AdminAnswer | None:
        hit = index >= mishap.first and fnmatchcase(name, mishap.names)
        return AdminAnswer(mishap.code, wait=mishap.retry_after) if mishap.code and hit else None

    return answer
