"""Random worlds of every type: what people declare, and what others do to a cluster meanwhile.

A world is text, as people write it (JSON syntax), so that the language is a part of what is
tested; others act through the same types and another session, so that one set of hands works on
a simulated cluster and on a real one. `play` is the property that both must have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Protocol

from msgspec.structs import replace

from kafkaform.core.change import Action, Batch, Change, OutcomeStatus, PathChange
from kafkaform.core.errors import KafkaformError
from kafkaform.core.finding import Block
from kafkaform.core.resource import Depth, Identity, Observed
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, freeze
from kafkaform.plan.diff import flatten
from kafkaform.plan.model import Options, Plan
from kafkaform.provider.contract import Provider, Session

KAFKA, PASSWORD = "kafka", "WORLD_PASSWORD"
TOPICS, FOREIGN = ("t0", "t1", "t2", "t3"), ("f0", "f1")
OUTSIDE = "outside"
Attributes = dict[str, Any]

AUTHORIZER = {"super_users": ["User:admin", "User:ANONYMOUS"], "allow_if_no_acl": False}


@dataclass(frozen=True)
class Thing:
    """One object that can be declared: attributes as in JSON syntax."""

    kind: str
    attributes: Mapping[str, Any]

    def declared(self, provider: Provider) -> FrozenMap:
        """As the language hands it over: every attribute of the schema."""
        schema = provider.types[self.kind].schema
        given = {
            name: self.attributes.get(name, attribute.default)
            for name, attribute in schema.attributes.items()
            if not attribute.computed
        }
        if given.get("password"):
            given["password"] = SecretRef("env", PASSWORD)
        return FrozenMap({name: frozen(value) for name, value in given.items()})

    def key(self, provider: Provider) -> str:
        return provider.types[self.kind].key(self.declared(provider))


def frozen(value: Any) -> Any:
    """As the language freezes it: numbers are exact."""
    if isinstance(value, float):
        return Decimal(str(value))
    if isinstance(value, dict):
        return FrozenMap({key: frozen(item) for key, item in value.items()})
    return freeze(value)


# ── what can be declared ────────────────────────────────────────────────────────────────


def some(random: Random, choices: Mapping[str, Sequence[Any]], least: int = 0) -> Attributes:
    """A part of these keys, each with one of its values."""
    keys = random.sample(sorted(choices), random.randint(least, len(choices)))
    return {key: random.choice(choices[key]) for key in sorted(keys)}


def _topic(random: Random) -> Attributes:
    config = {
        "retention.ms": ["86400000", "604800000"],
        "cleanup.policy": ["delete", "compact", "compact,delete"],
        "max.message.bytes": ["1000000", "2000000"],
    }
    return {
        "name": random.choice(TOPICS),
        "partitions": random.randint(1, 3),
        "config": some(random, config),
    }


def _topic_config(random: Random) -> Attributes:
    config = {"retention.ms": ["1", "2", "3"], "segment.bytes": ["1048576", "2097152"]}
    return {"topic": random.choice(FOREIGN), "config": some(random, config, 1)}


def _acl(random: Random) -> Attributes:
    kind = random.choice(("Topic", "Topic", "Group", "Cluster", "TransactionalID"))
    name = "kafka-cluster" if kind == "Cluster" else random.choice(("t0", "t", "g0", "*"))
    pattern = "Literal" if kind == "Cluster" else random.choice(("Literal", "Prefixed"))
    operations = {
        "Topic": ("Read", "Write", "Describe", "All"),
        "Group": ("Read", "Describe"),
        "Cluster": ("Describe", "IdempotentWrite"),
        "TransactionalID": ("Write", "Describe"),
    }
    return {
        "resource_name": name,
        "resource_type": kind,
        "resource_pattern_type_filter": "Literal" if name == "*" else pattern,
        "acl_principal": random.choice(("User:u0", "User:u1", "User:*")),
        "acl_host": random.choice(("*", "127.0.0.1")),
        "acl_operation": random.choice(operations[kind]),
        "acl_permission_type": random.choice(("Allow", "Allow", "Deny")),
    }


def _access(random: Random) -> Attributes:
    role = random.choice(("producer", "consumer"))
    topics = sorted(random.sample(("t0", "t1", "t2"), random.randint(1, 2)))
    group = {"group": random.choice(("g0", "g1"))} if role == "consumer" else {}
    principal = random.choice(("User:u0", "User:u1", "User:u2"))
    return {"principal": principal, "role": role, "topics": topics, **group}


def _quota(random: Random) -> Attributes:
    entity = random.choice(
        (
            {"user": "u0"},
            {"user": "default"},
            {"client_id": "c0"},
            {"client_id": "default"},
            {"user": "u0", "client_id": "c0"},
            {"user": "u1", "client_id": "default"},
            {"ip": "127.0.0.1"},
            {"entity_type": "user", "entity_name": "u3"},
        )
    )
    rates = {
        "producer_byte_rate": [1000, 2000000],
        "consumer_byte_rate": [3000, 4000000],
        "request_percentage": [50, 12.5],
    }
    limits = {"connection_creation_rate": [1000, 2000]} if "ip" in entity else rates
    return {**entity, "config": some(random, limits, 1)}


def _scram(random: Random) -> Attributes:
    return {
        "username": random.choice(("u0", "u1")),
        "scram_mechanism": random.choice(("SCRAM-SHA-256", "SCRAM-SHA-512")),
        "scram_iterations": random.choice((4096, 5000)),
        "password": f'${{secret_env("{PASSWORD}")}}',
        "password_wo_version": random.choice(("1", "2")),
    }


def _broker(random: Random) -> Attributes:
    config = {"background.threads": ["9", "10"], "log.cleaner.threads": ["1", "2"]}
    return {"broker_id": 1, "config": some(random, config, 1)}


def _cluster(random: Random) -> Attributes:
    config = {"message.max.bytes": ["1048588", "2097164"], "num.io.threads": ["8", "9"]}
    return {"config": some(random, config, 1)}


def _group(random: Random) -> Attributes:
    config = {
        "consumer.session.timeout.ms": ["45000", "50000"],
        "consumer.heartbeat.interval.ms": ["5000", "6000"],
    }
    return {"group": random.choice(("g0", "g1")), "config": some(random, config, 1)}


def _metrics(random: Random) -> Attributes:
    config = {"interval.ms": ["5000", "60000"], "metrics": ["org.apache.kafka.producer."]}
    return {"name": random.choice(("m0", "m1")), "config": some(random, config, 1)}


MAKERS: Mapping[str, Callable[[Random], Attributes]] = {
    "kafka_topic": _topic,
    "kafka_topic_config": _topic_config,
    "kafka_acl": _acl,
    "kafka_access": _access,
    "kafka_quota": _quota,
    "kafka_user_scram_credential": _scram,
    "kafka_broker_config": _broker,
    "kafka_cluster_config": _cluster,
    "kafka_group_config": _group,
    "kafka_client_metrics": _metrics,
}
COMPOSITES = frozenset({"kafka_access"})
"""Nothing on a cluster: what stands for others."""


def things(random: Random, kinds: Sequence[str], most: int) -> list[Thing]:
    """Up to so many objects; whether two are one object is not looked at."""
    return [
        Thing(kind, MAKERS[kind](random))
        for kind in random.choices(kinds, k=random.randint(1, most))
    ]


# ── what is written ─────────────────────────────────────────────────────────────────────


@dataclass
class Writer:
    """Turns worlds into configurations, one after the other. Each object keeps its address from
    one to the next; one that is left out is forgotten, destroyed or just not there any more."""

    provider: Provider
    settings: Mapping[str, Any]
    addresses: dict[tuple[str, str], str] = field(default_factory=dict)
    floor: dict[str, int] = field(default_factory=dict)
    """Partitions that a topic has at least, because they cannot be taken away."""

    def text(self, random: Random, wanted: Sequence[Thing]) -> str:
        """A configuration that declares these, in this order, each object once."""
        said: dict[tuple[str, str], Mapping[str, Any]] = {}
        for thing in wanted:
            said.setdefault(self._place(thing), self._body(random, thing))
        resources: dict[str, dict[str, Any]] = {}
        for (kind, key), body in said.items():
            resources.setdefault(kind, {})[self._label(kind, key)] = body
        gone = [place for place in self.addresses if place not in said and place[0] in MAKERS]
        blocks = [self._removed(place, random) for place in gone if random.random() < 0.6]
        document = {
            "provider": {KAFKA: {**self.settings, "authorizer": AUTHORIZER}},
            "resource": resources,
            **({"removed": blocks} if blocks else {}),
        }
        return json.dumps(document, indent=1)

    def _place(self, thing: Thing) -> tuple[str, str]:
        if thing.kind in COMPOSITES:
            return thing.kind, json.dumps(thing.attributes, sort_keys=True)
        return thing.kind, thing.key(self.provider)

    def _label(self, kind: str, key: str) -> str:
        return self.addresses.setdefault((kind, key), f"n{len(self.addresses)}")

    def _body(self, random: Random, thing: Thing) -> Mapping[str, Any]:
        body = dict(thing.attributes)
        if thing.kind == "kafka_topic":
            least = self.floor.get(body["name"], 1)
            body["partitions"] = max(least, body["partitions"])
            self.floor[body["name"]] = body["partitions"]
        if random.random() < 0.4:
            body["lifecycle"] = {"adopt": True}
        return body

    def _removed(self, place: tuple[str, str], random: Random) -> Mapping[str, Any]:
        address = f"{place[0]}.{self.addresses[place]}"
        return {"from": address, "lifecycle": {"destroy": random.random() < 0.7}}


# ── what others do ──────────────────────────────────────────────────────────────────────


@dataclass
class Outsider:
    """Somebody with another session, who knows nothing of states and plans."""

    provider: Provider
    session: Session

    def put(self, thing: Thing) -> bool:
        """Create the object, or make the live one like this. False if the cluster refused."""
        kind = self.provider.types[thing.kind]
        facts = self.session.facts
        identity = Identity(KAFKA, thing.kind, thing.key(self.provider))
        live = self.session.read([identity])[identity]
        seen = live if isinstance(live, Observed) else None
        wanted = kind.canonical(thing.declared(self.provider), facts)
        after = kind.target(wanted, seen, facts, False)
        change = _change(identity, seen, after)
        if seen is not None and not change.paths:
            return True
        return self._send(replace(change, steps=kind.steps(change, facts)))

    def delete(self, identity: Identity) -> bool:
        """Delete the object if it is there."""
        live = self.session.read([identity])[identity]
        if not isinstance(live, Observed):
            return False
        kind = self.provider.types[identity.kind]
        change = _change(identity, live, None)
        return self._send(replace(change, steps=kind.steps(change, self.session.facts)))

    def _send(self, change: Change) -> bool:
        done = bool(change.steps)
        for step in change.steps:
            batch = Batch("outside", step.identity.instance, step.request, (step,))
            [outcome] = self.session.apply(batch, {f"env:{PASSWORD}": Secret("outside-secret")})
            done = done and outcome.status is OutcomeStatus.APPLIED
        return done


def _change(identity: Identity, seen: Observed | None, after: FrozenMap | None) -> Change:
    before = seen.attributes if seen else None
    old, new = flatten(before), flatten(after)
    names = {name for name, value in (after or before or EMPTY).items() if value is not None}
    action = Action.CREATE if seen is None else Action.DELETE if after is None else Action.UPDATE
    paths = tuple(
        PathChange(path, old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path) and path[0] in names
    )
    return Change(
        identity,
        f"{identity.kind}.{OUTSIDE}",
        action,
        before=before,
        after=after,
        paths=paths,
        incarnation=seen.incarnation if seen else None,
    )


def live(session: Session, kinds: Sequence[str]) -> dict[Identity, tuple[str | None, FrozenMap]]:
    """Every object of these kinds as the cluster shows it: incarnation and attributes."""
    found = {}
    for kind in kinds:
        sweep = session.sweep(kind, Depth.FULL)
        assert sweep.coverage.fault is None, sweep.coverage.fault
        for item in sweep.items:
            if not item.details.get("internal", False):
                found[item.identity] = (item.incarnation, item.attributes)
    return found


# ── the property ────────────────────────────────────────────────────────────────────────

CONFIGURATIONS, RUNS = 3, 6
OPTIONS = Options(max_deletes=1000)
LENIENT = frozenset({Block.PROTECTED, Block.UNMANAGED})
"""What others own, and topics whose block is merely gone."""


class Town(Protocol):
    """One cluster, one folder with its state, and the people around it."""

    kinds: Sequence[str]
    writer: Writer
    others: Outsider

    def declare(self, text: str) -> None:
        """The configuration of the runs to come."""

    def plan(self) -> Plan: ...

    def apply(self) -> Sequence[Plan]:
        """One run, and the plans that it showed. Raises KafkaformError."""

    def rows(self) -> set[Identity]:
        """What the state holds."""

    def hands(self) -> AbstractContextManager[Any]:
        """Edits inside are made by somebody else."""

    def trouble(self, random: Random) -> bool:
        """Let something go wrong during the next run; False if that is not possible."""

    def peace(self) -> None:
        """Nothing goes wrong any more."""


def play(town: Town, random: Random) -> None:
    """Whatever was there, whatever goes wrong and whoever meddles: repeated applies end at a plan
    without changes, and what neither state nor adoption made ours is as it was."""
    with town.hands():
        for name in FOREIGN:
            town.others.put(Thing("kafka_topic", {"name": name, "partitions": 1, "config": {}}))
    for _ in range(random.randint(1, CONFIGURATIONS)):
        _meddle(town, random)
        town.declare(town.writer.text(random, things(random, town.kinds, 8)))
        before, ours = _look(town), _ours(town)
        plans = _converged(town, random)
        after = _look(town)
        adopted = {c.identity for plan in plans for c in plan.effective if c.adopts}
        for identity in before.keys() - ours - adopted - _configured(town):
            assert after.get(identity) == before[identity], f"{identity} is not ours"
        stops = [c for c in plans[-1].changes if c.blocked and c.blocked.block not in LENIENT]
        assert not stops, [(c.address, c.blocked) for c in stops]


def _converged(town: Town, random: Random) -> list[Plan]:
    """Apply until a plan has nothing left to do, and all plans that were shown on the way."""
    shown: list[Plan] = []
    troubled = random.random() < 0.5 and town.trouble(random)
    for _ in range(RUNS):
        try:
            shown += town.apply()
        except KafkaformError:
            if not troubled:
                raise
        town.peace()
        plan = town.plan()
        if not list(plan.effective):
            return [*shown, plan]
    raise AssertionError([(c.address, c.action, c.findings) for c in plan.changes])


def _meddle(town: Town, random: Random) -> None:
    """Others make, change and delete what they like, but the topics that configs are set on."""
    with town.hands():
        for thing in things(random, [k for k in town.kinds if k not in COMPOSITES], 4):
            town.others.put(thing)
        found = sorted(identity for identity in _look(town) if identity.key not in FOREIGN)
        if found and random.random() < 0.5:
            town.others.delete(random.choice(found))
        for identity, (_, attributes) in _look(town).items():
            if identity.kind == "kafka_topic":
                town.writer.floor[identity.key] = attributes["partitions"]


def _look(town: Town) -> dict[Identity, tuple[str | None, FrozenMap]]:
    return live(town.others.session, [k for k in town.kinds if k not in COMPOSITES])


def _ours(town: Town) -> set[Identity]:
    return {*town.rows(), *_configured(town)}


def _configured(town: Town) -> set[Identity]:
    """Topics of others whose configs are ours."""
    return {
        Identity(row.instance, "kafka_topic", row.key)
        for row in town.rows()
        if row.kind == "kafka_topic_config"
    }
