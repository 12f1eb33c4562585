"""The simulated cluster, and edits by another administrator: without rights, mishaps or counted
requests."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.clock import Clock, SimulatedClock
from kafkaform.core.value import EMPTY

from ..connection.settings import CLIENT_ID
from ..kinds.kind import ResourceKind
from ..kinds.quota.simulation import Mutations
from ..kinds.simulation import (
    NONE,
    AdminAnswer,
    AdminCall,
    AnswerReader,
    Changes,
    Ending,
    Handler,
    Item,
    Key,
    Killed,
    Lost,
    Mishap,
    Right,
    Schedule,
    SimulatedBroker,
    SimulatedReads,
    SimulatedWorld,
    StepCheck,
    Unreachable,
    User,
    list_topic_defaults,
    make_user,
)
from ..kinds.topic import resource_type as topics
from ..kinds.topic.simulation import SimulatedTopic, Topics, place_evenly, topic_key
from ..protocol.cluster_facts import NEWEST
from ..protocol.config_keys import config_map
from ..provider import PROVIDER, KafkaProvider


class Tables(Struct, frozen=True):
    """The fields of `SimulatedKind` for all kinds: reads by kind, the others by API."""

    reads: Mapping[str, SimulatedReads]
    handlers: Mapping[str, Handler]
    checks: Mapping[str, StepCheck]
    made: Mapping[str, AnswerReader]


def join_tables(kinds: Sequence[ResourceKind]) -> Tables:
    """The tables of these kinds."""
    # Kinds can share an API (IncrementalAlterConfigs): all of them name the same handler.
    simulations = {kind.name: kind.simulate() for kind in kinds if kind.simulate is not None}
    return Tables(
        reads={name: simulation.reads for name, simulation in simulations.items()},
        handlers={
            api: row
            for simulation in simulations.values()
            for api, row in simulation.handlers.items()
        },
        checks={
            api: row
            for simulation in simulations.values()
            for api, row in simulation.checks.items()
        },
        made={
            api: row for simulation in simulations.values() for api, row in simulation.made.items()
        },
    )


class Committing(Protocol):
    """The part of a cluster that an outside edit needs."""

    @property
    def topics(self) -> Topics: ...

    @property
    def numbers(self) -> tuple[int, ...]: ...

    @property
    def new_id(self) -> Callable[[], str]: ...

    @property
    def commit(self) -> Callable[[Changes], None]: ...


class Outside:
    """Edits topics, even while all brokers are down. Lagging brokers show these edits late, too."""

    def __init__(self, cluster: Committing) -> None:
        self._cluster = cluster

    def create(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, str] = EMPTY,
    ) -> SimulatedTopic:
        """Create a topic, or replace an existing one, with a new topic id."""
        assignment = place_evenly(partitions, replication_factor, self._cluster.numbers)
        return self._keep(
            SimulatedTopic(name, self._cluster.new_id(), assignment, config_map(config))
        )

    def delete(self, name: str) -> None:
        """Delete a topic. Raises KeyError if it does not exist."""
        self._cluster.commit({topic_key(self._cluster.topics[name].name): None})

    def recreate(self, name: str) -> SimulatedTopic:
        """Delete a topic and create it again; only its id is new."""
        topic = self._cluster.topics[name]
        self.delete(name)
        return self._keep(replace(topic, id=self._cluster.new_id()))

    def alter(self, name: str, config: Mapping[str, str | None]) -> SimulatedTopic:
        """Set config overrides; None removes one."""
        topic = self._cluster.topics[name]
        merged = {**topic.config, **config}
        remaining = {key: value for key, value in merged.items() if value is not None}
        return self._keep(replace(topic, config=config_map(remaining)))

    def grow(self, name: str, partitions: int) -> SimulatedTopic:
        """Raise the number of partitions of a topic to this number."""
        topic = self._cluster.topics[name]
        if partitions <= topic.partitions:
            raise ValueError(f"{name} has {topic.partitions} partitions already")
        number, width = partitions - topic.partitions, topic.replication_factor
        added = place_evenly(number, width, self._cluster.numbers, topic.partitions)
        return self._keep(replace(topic, assignment=(*topic.assignment, *added)))

    def _keep(self, topic: SimulatedTopic) -> SimulatedTopic:
        self._cluster.commit({topic_key(topic.name): topic})
        return topic


T = TypeVar("T")
PROOF = "ProveCluster"
"""The name, in schedules, of the question which cluster answers; it is not counted."""
Veto = Callable[[int, str], AdminAnswer | None]
"""Position and name of an item -> an injected error, or None."""

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
    """A request that takes effect after its sender gave up."""

    due: float
    """When it takes effect."""
    looks: int
    """The number of reads after which it takes effect earlier; 0 if it does not."""
    serve: Callable[[], object]


class View(Struct, frozen=True):
    """What one broker shows to one read."""

    world: SimulatedWorld
    veto: Veto
    """Injects an error for an object."""

    @property
    def topics(self) -> Topics:
        """The topics by name."""
        return self.world.of(topics.KIND)


class SimulatedCluster:
    """A Kafka cluster in memory.

    clock: decides when late requests take effect and lagging brokers catch up; kafka_version: one
    of RELEASES; provider: whose kinds of objects the cluster knows.
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        clock: Clock | None = None,
        cluster_id: str = "simulated",
        kafka_version: str = NEWEST,
        provider: KafkaProvider = PROVIDER,
    ) -> None:
        self.id = cluster_id
        self.kafka_version = kafka_version
        self.provider = provider
        self.tables = join_tables(provider.kinds)
        self.clock: Clock = clock or SimulatedClock()
        self.faults = Schedule()
        """Mishaps of coming requests."""
        self.swaps = Schedule()
        """Mishaps after which another cluster answers at the address; PROOF can meet them, too."""
        self.connection = 0
        """Changes whenever clients must connect again."""
        self._stand_in: SimulatedCluster | None = None
        self.outside = Outside(self)
        """Edits by another administrator."""
        self.requests: Counter[str] = Counter()
        """API -> how many requests left the client."""
        self.users: dict[str, User] = {"admin": User("admin", root=True)}
        """Users by name."""
        self.defaults: dict[str, str] = list_topic_defaults(kafka_version)
        """The brokers' topic configs, which take effect without an override."""
        self.default_partitions = 1
        self.default_replication_factor = 1
        self.delete_topic_enable = True
        self.authorizer_settings: tuple[str, ...] = ("super_users",)
        """The settings of the authorizer that brokers list, without values. Rights do not follow
        from simulated ACLs, so without one a resource is closed, as by default."""
        self.elr = False
        """Eligible leader replicas (KIP-966)."""
        self.move_seconds = 60.0
        """How long a reassignment takes that copies replicas."""
        self._moves: dict[Key, tuple[object, float]] = {}
        self._brokers = {number: SimulatedBroker() for number in range(1, brokers + 1)}
        self._world = SimulatedWorld()
        self.mutations = Mutations(self._world, lambda changes: self.commit(changes))
        self._late: list[_Late] = []
        self._looks = 0
        self._ids = 0

    @property
    def answering(self) -> SimulatedCluster:
        """The cluster that answers at this cluster's address."""
        return self._stand_in or self

    def lead_to(self, cluster: SimulatedCluster | None, *, beneath: bool = False) -> None:
        """Let another cluster answer at this address; with None, this one again. beneath: open
        connections stay open and lead there."""
        self._stand_in = cluster
        self.connection += not beneath

    def identify(self) -> str:
        """The id of the cluster that answers. Raises Unreachable, Lost or Killed."""
        mishap = self.take_swap(PROOF)
        if self._is_elsewhere(mishap):
            return self.answering.id
        return self._carry_out(mishap, lambda: self.id)

    def take_swap(self, api: str) -> Mishap:
        """The swap that is due with this request, or NONE. Every request comes here first."""
        mishap = self.swaps.take(api)
        if mishap.elsewhere is not None:
            self.lead_to(mishap.elsewhere, beneath=mishap.beneath)
        return mishap

    def _is_elsewhere(self, mishap: Mishap) -> bool:
        """True if the other cluster gets the request of this mishap."""
        return self._stand_in is not None and (mishap.elsewhere is None or mishap.beneath)

    @property
    def topics(self) -> Topics:
        """The committed topics by name, even if brokers lag behind."""
        return self.world.of(topics.KIND)

    @property
    def world(self) -> SimulatedWorld:
        """All committed objects, even if brokers lag behind."""
        self._land_effects()
        return self._world

    @property
    def numbers(self) -> tuple[int, ...]:
        """The ids of all brokers, up or down."""
        return tuple(self._brokers)

    @property
    def live(self) -> tuple[int, ...]:
        """The ids of the brokers that are up, including those that hang."""
        return tuple(number for number, broker in self._brokers.items() if broker.up)

    def grant(self, name: str, *rights: Right) -> User:
        """Create a user with these rights, or give them to an existing one."""
        held_rights = self.users[name].rights if name in self.users else frozenset()
        self.users[name] = make_user(name, {*held_rights, *rights})
        return self.users[name]

    def stop(self, broker: int) -> None:
        """Stop a broker: nobody can reach it, and no replica is placed on it."""
        self._brokers[broker].up = False

    def start(self, broker: int) -> None:
        """Start a broker again; it has followed the log meanwhile."""
        self._brokers[broker].up = True
        self._brokers[broker].hangs = False

    def hang(self, broker: int) -> None:
        """Let a broker leave all requests without an answer; the cluster still lists it."""
        self._brokers[broker].hangs = True

    def lag(self, *, reads: int = 0, seconds: float = 0.0, broker: int | None = None) -> None:
        """Let one broker, or each of them, show later writes only after some reads and seconds."""
        for number in self._brokers if broker is None else (broker,):
            self._brokers[number].lag = (reads, seconds)

    def write(
        self, api: str, items: Sequence[Item], user: User, *, validate: bool
    ) -> list[AdminAnswer]:
        """Send one admin request. validate: a dry run.

        Raises Unreachable, Lost or Killed; with the last two, the request may have taken effect.
        """
        mishap = self._take_mishap(f"{api}:validate" if validate else api)
        if self._is_elsewhere(mishap):
            return self.answering.write(api, items, user, validate=validate)
        if not self.live:
            raise Unreachable("no broker is up")

        def serve() -> list[AdminAnswer]:
            answers, changes = self.tables.handlers[api](
                self._make_call(user, _make_veto(mishap)), items
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
            silence = "does not answer" if number in self.live else "is not up"
            raise Unreachable(f"broker {number} {silence}" if number else "no broker answers")
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
        # A reassignment that replaces another one starts its time anew.
        for key, value in changes.items():
            target = value.target if isinstance(value, SimulatedTopic) else None
            if target is None:
                self._moves.pop(key, None)
            elif self._moves.get(key, (None, now))[0] != target:
                self._moves[key] = (target, now + self.move_seconds)

    def new_id(self) -> str:
        """A topic id as Kafka prints it, the same in every run."""
        self._ids += 1
        identifier = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.id}/{self._ids}")
        return urlsafe_b64encode(identifier.bytes).decode("ascii").rstrip("=")

    def _make_call(self, user: User, veto: Veto) -> AdminCall:
        counts = (self.default_partitions, self.default_replication_factor)
        charge = self.mutations.charge(user.name, CLIENT_ID, self.clock.monotonic())
        return AdminCall(
            self._world,
            user,
            self.live,
            counts,
            self.delete_topic_enable,
            self.new_id,
            veto,
            charge,
            self.clock.monotonic(),
            self.elr,
            self.kafka_version,
        )

    def _take_mishap(self, api: str) -> Mishap:
        self._land_effects()
        mishap = self.take_swap(api)
        if mishap == NONE:
            mishap = self.faults.take(api)
        # A request that never left this computer does not count.
        if mishap.sent:
            self.requests[api] += 1
        return mishap

    def _carry_out(self, mishap: Mishap, serve: Callable[[], T]) -> T:
        if mishap.ending is Ending.ANSWER:
            return serve()
        # The sender gives up, but the request can still take effect: at once or later.
        if mishap.delay is not None:
            looks = self._looks + mishap.reads if mishap.reads else 0
            self._late.append(_Late(self.clock.monotonic() + mishap.delay, looks, serve))
            self._land_effects()
        raise _RAISED[mishap.ending](_CAUSES[mishap.ending])

    def _land_effects(self) -> None:
        while ripe := [late for late in self._late if self._is_due(late)]:
            first = min(ripe, key=lambda late: late.due)  # of equals, the first one sent
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
