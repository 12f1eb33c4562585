"""Random states, configurations and clusters that have nothing to do with each other: whatever
they are, a plan deletes only what the state holds, and an apply only what the log proves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from msgspec.structs import replace

from kafkaform.audit.journal import Journal, Subject, make_outcome_body
from kafkaform.core.change import Action, Change
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Desired
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Mode, Options
from kafkaform.state.codec import encode
from kafkaform.state.model import PROTECTIONS, Row, State
from kafkaform_kafka.protocol.broker_rules import INTERNAL_TOPICS

from ..kit.simulated import engine
from ..kit.simulated.engine import KAFKA, House, identity
from . import wishes
from .shapes import Many, Pick, draw
from .wishes import Wish, address, desired

TOPICS = (*wishes.NAMES, "e", "f", "g", "__consumer_offsets", "__ours")


@dataclass(frozen=True)
class Verdict:
    """planned: how many deletes the plan has; gone: how many topics the apply deleted; wrong: what
    must not be."""

    planned: int
    gone: int
    wrong: tuple[str, ...]


def judged(seed: int) -> Verdict:
    """The plan, and then the apply, of this seed's triple."""
    random = Random(seed)
    house = engine.house()
    engine.begin(house)
    live = _cluster(house, random)
    state = _state(house, random, live)
    house.backend.data = encode(state)
    said, options = _said(random), _options(random)
    proven = {origin.incarnation for origin in house.index.origins.values()}
    plan = _planned(house, said, options)
    gone = _gone(house, said, options)
    lost = [name for name in live if name in INTERNAL_TOPICS and name not in house.cluster.topics]
    return Verdict(
        len(plan),
        len(gone),
        (
            *_unwanted(plan, state, said, options.mode),
            *_unproven(gone, state, proven),
            *(f"{name} is internal and was deleted" for name in lost),
        ),
    )


def _planned(house: House, said: Desired, options: Options) -> list[Change]:
    """The deletes of the plan; none if there is no plan."""
    try:
        plan = engine.plan(house, said, options)
    except KafkaformError:
        return []
    return [change for change in plan.effective if change.action is Action.DELETE]


def _gone(house: House, said: Desired, options: Options) -> list[tuple[str, str]]:
    """Name and id of each topic that an apply deletes."""
    gone: list[tuple[str, str]] = []

    def seen(name: str, before: Any, after: Any) -> None:
        if after is None:
            gone.append((name, before.id))

    house.cluster.on_own = seen
    with suppress(KafkaformError):
        engine.apply(house, said, options)
    return gone


def _unwanted(deletes: Sequence[Change], state: State, said: Desired, mode: Mode) -> Iterator[str]:
    declared = {item.identity for item in said.declared}
    for change in deletes:
        row = state.objects.get(change.identity)
        if row is None or row.incarnation != change.incarnation:
            yield f"{change.address} would be deleted and is not in the state"
        if change.identity in declared and mode is Mode.NORMAL:
            yield f"{change.address} would be deleted and is declared"


def _unproven(
    gone: Sequence[tuple[str, str]], state: State, proven: Set[str | None]
) -> Iterator[str]:
    for name, incarnation in gone:
        row = state.objects.get(identity(name))
        if row is None or row.incarnation != incarnation or row.protected in ("explicit", "shared"):
            yield f"{name} was deleted, which is not in the state or is protected"
        if incarnation not in proven:
            yield f"{name} was deleted, and no record proves that it was ours"


# ── the triple ──────────────────────────────────────────────────────────────────────────


def _cluster(house: House, random: Random) -> dict[str, str]:
    """Some topics: name -> id."""
    with house.cluster.others() as others:
        for name in random.sample(TOPICS, random.randint(0, len(TOPICS))):
            config = wishes.CONFIGS[random.choice(tuple(wishes.CONFIGS))]
            others.create(name, random.randint(1, 3), config=config)
    return {name: topic.id for name, topic in house.cluster.topics.items()}


def _state(house: House, random: Random, live: dict[str, str]) -> State:
    """Rows for some names, with the right incarnation or not, with an origin in the log or not."""
    journal = Journal(house.sink, house.clock, "earlier", "tester", "lineage")
    rows = {}
    for name in random.sample(TOPICS, random.randint(0, len(TOPICS))):
        incarnation = live.get(name) if random.random() < 0.8 else f"other-{name}"
        row = Row(
            identity(name),
            (address(random.choice((name, name, "nobody"))),),
            origin=random.randint(1, 9),
            attributes=FrozenMap(name=name, partitions=random.randint(1, 3)),
            incarnation=incarnation or f"gone-{name}",
            protected=random.choice(PROTECTIONS),
        )
        if random.random() < 0.9:
            action = random.choice(("create", "create", "create", "adopt", "adopt", "update"))
            row = replace(row, origin=_proof(journal, row, action))
        rows[row.identity] = row
    head = journal.head if rows and journal.head.seq else None
    return State("lineage", 1, rows, FrozenMap({KAFKA: "simulated"}), audit_head=head)


def _proof(journal: Journal, row: Row, action: str) -> int:
    subject = Subject(
        lineage="lineage",
        scope_id="simulated",
        step=f"{row.identity.key}#1",
        address=row.owners[0],
        identity=row.identity,
        action=action,
        adopts=False,
        incarnation=row.incarnation,
        paths=(),
        plan="",
        approval="",
        phase="1.1",
        attempt=1,
        owners=row.owners,
    )
    return journal.write("outcome", make_outcome_body(subject, "applied", None, 0, None)).seq


def _said(random: Random) -> Desired:
    names = random.sample(TOPICS[:7], random.randint(0, 5))
    declared = {name: Wish(**{**draw(wishes.wish, random), "name": name}) for name in names}
    left = [name for name in TOPICS if name not in declared]
    removed = {
        name: random.random() < 0.8 for name in random.sample(left, random.randint(0, len(left)))
    }
    return desired(declared, {}, removed, protect_topics=random.random() < 0.5)


def _options(random: Random) -> Options:
    exclude = draw(Many(Pick(tuple(map(address, TOPICS))), 2), random)
    mode = random.choice((Mode.NORMAL, Mode.NORMAL, Mode.DESTROY))
    return Options(mode, exclude=tuple(exclude), max_deletes=random.choice((None, None, 3, 20)))
