"""What people wish for and what can go wrong, as tables: the words of a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kafkaform.core.resource import Declared, Desired, Lifecycle
from kafkaform_kafka.memory import (
    Mishap,
    killed_after,
    killed_before,
    late_effect,
    lost_reply,
    lost_request,
    not_sent,
    refused_items,
    throttled_items,
)

from ..kit.simulated import engine
from ..kit.simulated.boxes import KIND
from ..kit.simulated.engine import TIMEOUT
from ..kit.simulated.memory_store import MOMENTS
from .shapes import Either, Pick, Shape, Whole, record

NAMES, FOREIGN = ("a", "b", "c", "d"), "f"
"""Topics that can be declared, and one of somebody else that never is."""
CROWD = tuple(f"crowd{number:02}" for number in range(12))
CONFIGS: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "short": {"retention.ms": "1000"},
    "long": {"retention.ms": "2000"},
    "compact": {"retention.ms": "2000", "cleanup.policy": "compact"},
}
LIFECYCLES: Mapping[str, Lifecycle] = {
    "plain": Lifecycle(),
    "adopt": Lifecycle(adopt=True),
    "protect": Lifecycle(prevent_destroy=True),
    "unprotect": Lifecycle(prevent_destroy=False),
    "ignore": Lifecycle(ignore_changes=("config.retention.ms",)),
}
BOXES = ("x", "y")
MISHAPS: Mapping[str, Mishap] = {
    "not sent": not_sent(),
    "answer lost": lost_reply(),
    "swallowed": lost_request(),
    "late by 1.5 s": late_effect(1.5),
    "late by the timeout": late_effect(TIMEOUT),
    "late by 3 reads": late_effect(TIMEOUT, reads=3),
    "killed before": killed_before(),
    "killed after": killed_after(),
    "killed, late by 2 s": killed_after(2.0),
    "killed, late by 4 reads": killed_after(TIMEOUT, reads=4),
    "throttled": throttled_items(1.0),
    "throttled from the second on": throttled_items(1.0, first=1),
    "policy": refused_items(44),
    "policy for b": refused_items(44, names="b"),
    "not the controller": refused_items(41),
    "not authorized for b": refused_items(29, names="b"),
    "time-out": refused_items(7),
}
READS = ("DescribeTopics", "ListTopics")
WRITES = ("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteTopics")
DURABLE = (
    "state",
    "intent",
    "outcome",
    "recover",
    "run_*",
    "obligation",
    "discharged",
    "checkpoint",
)
DEEDS = ("create", "create as wished", "delete", "recreate", "grow", "alter", "clear")
CARRIES = ("put", "move", "stop", "drop")
FORGERIES = (
    *("add", "drop", "owners", "unprotect", "incarnation", "attributes", "origin"),
    *("anchor", "no anchor", "serial", "scope", "checksum"),
)
RIVALS = ("apply", "plan", "save", "take over")

# ── the shapes of arguments ─────────────────────────────────────────────────────────────

name = Pick(NAMES)
who = Pick((0, 0, 0, 1))
wish = record(
    name=name,
    partitions=Pick((None, 1, 2, 3)),
    config=Pick(tuple(CONFIGS)),
    lifecycle=Pick(("plain", *LIFECYCLES)),
    after=Pick((None, None, "a", "b")),
)
edit = record(name=Pick((*NAMES, FOREIGN)), deed=Pick(DEEDS))
box = record(
    name=Pick(BOXES), place=Pick((None, "hall", "attic", "cellar")), label=Pick((None, "", "new"))
)
carry = record(name=Pick(BOXES), deed=Pick(CARRIES))


def _mishap(what: Pick, skip: int) -> Shape:
    return record(kind=Pick(("mishap",)), how=Pick(tuple(MISHAPS)), what=what, skip=Whole(0, skip))


def _death(what: Pick) -> Shape:
    return record(kind=Pick(("death",)), how=Pick(MOMENTS), what=what, skip=Whole(0, 2))


def _surprise(kind: str, how: Shape, what: Pick) -> Shape:
    return record(kind=Pick((kind,)), how=how, what=what, skip=Pick((0, 0, 0, 1, 2)))


trouble = Either(
    (
        _mishap(Pick(WRITES), 1),
        _mishap(Pick(WRITES), 1),
        _mishap(Pick(("*", *READS)), 9),
        _death(Pick(("*", "state", *DURABLE))),
        _surprise("edit", edit, Pick((*WRITES, *READS, "CreateTopics", "intent"))),
        _surprise("rival", Pick(RIVALS), Pick((*DURABLE[:4], "intent", *WRITES, "*"))),
    )
)
box_trouble = Either(
    (_mishap(Pick(("MoveBox", "ListMoves")), 0), _death(Pick(("obligation", *DURABLE))))
)


# ── a configuration ─────────────────────────────────────────────────────────────────────


class Wish(Struct, frozen=True):
    """One declared topic. after: the topic that it depends on; renamed: under its second
    address."""

    name: str
    partitions: int | None = 1
    config: str = "none"
    lifecycle: str = "plain"
    after: str | None = None
    renamed: bool = False

    @property
    def address(self) -> str:
        return address(self.name, renamed=self.renamed)


def address(name: str, *, renamed: bool = False) -> str:
    return f"kafka_topic.{name}{'_new' if renamed else ''}"


def addresses(name: str) -> tuple[str, ...]:
    if name in BOXES:
        return (f"{KIND}.{name}",)
    return address(name), address(name, renamed=True)


def desired(
    wishes: Mapping[str, Wish],
    boxes: Mapping[str, Declared],
    removed: Mapping[str, bool],
    **settings: Any,
) -> Desired:
    """The configuration that says all this. removed: name -> whether it is to be destroyed."""

    def needs(one: Wish) -> tuple[str, ...]:
        other = wishes.get(one.after or "")
        # Only ever upwards, as a configuration with a circle is refused when it is read.
        return (other.address,) if other and other.name < one.name else ()

    topics = (
        engine.topic(
            one.name,
            one.partitions,
            CONFIGS[one.config],
            address=one.address,
            lifecycle=LIFECYCLES[one.lifecycle],
            depends_on=needs(one),
        )
        for one in wishes.values()
    )
    moves = (
        engine.moved(address(w.name, renamed=not w.renamed), w.address) for w in wishes.values()
    )
    gone = (
        engine.removed(where, destroy=destroy)
        for name, destroy in removed.items()
        for where in addresses(name)
    )
    return engine.desired(
        *topics, *boxes.values(), moved=tuple(moves), removed=tuple(gone), **settings
    )
