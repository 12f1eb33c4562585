"""A box on its way, and what the tests ask about it."""

from __future__ import annotations

from kafkaform.workflow.model import Applied

from .boxes import KIND, PACE
from .engine import House, apply, box, desired
from .managed_topics import built

HERE, THERE, ELSEWHERE = (desired(box("x", place)) for place in ("hall", "attic", "cellar"))
TICKET = "x@attic"


def moves(where: House) -> int:
    """How many moves were asked for."""
    return where.cluster.requests["MoveBox"]


def place(where: House) -> str:
    return where.cluster.depot.boxes["x"].place


def recorded(where: House) -> str:
    row = where.row("x", KIND)
    assert row is not None
    return str(row.attributes["place"])


def owed(where: House) -> list[str]:
    """The tickets of the open obligations."""
    return [record.body["ticket"] for record in where.index.obligations]


def discharged(where: House) -> list[tuple[str, str]]:
    return [(r.body["ticket"], r.body["outcome"]) for r in where.records("discharged")]


def moving() -> tuple[House, Applied]:
    """A house whose box is on its way from the hall to the attic."""
    where = built(HERE)
    return where, apply(where, THERE)


def arrive(where: House) -> None:
    where.clock.advance(PACE)
