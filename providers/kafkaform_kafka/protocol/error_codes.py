"""Short because the codes are a table: every error code of the Kafka protocol (4.3), and what it
says about an admin request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from kafkaform.core.resource import FaultClass

from .tables import read_table


class ErrorCode(Struct, frozen=True):
    """One error code."""

    number: int
    name: str
    """The protocol's name."""
    kind: FaultClass
    """What it says about the effect of the request."""
    meaning: str
    """One clause."""
    advice: str = ""
    """What to do next, or empty."""
    cause: str = ""
    """The most likely cause."""


FOREIGN = "a broker that is newer than this kafkaform, or a proxy that is not a broker"
"""The most likely cause of a code that no admin request returns."""
_READ_FIRST = "run the command again: it reads the object first and continues from there"


@cache
def error_codes() -> Mapping[int, ErrorCode]:
    """Number -> code."""
    return {code.number: code for code in _read_codes()}


def _read_codes() -> Iterator[ErrorCode]:
    for row in read_table("error_codes"):
        number, name, meaning = int(row["number"]), row["name"], row["meaning"]
        if row["effect"]:
            effect = FaultClass(row["effect"])
            yield ErrorCode(number, name, effect, meaning, row["advice"], row["cause"])
        else:
            yield ErrorCode(number, name, FaultClass.AMBIGUOUS, meaning, _READ_FIRST, FOREIGN)
