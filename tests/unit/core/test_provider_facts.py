"""What a provider knows about its system: its own struct, which plans record as plain values."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec import UNSET, Struct, UnsetType

from kafkaform.core.canonical import dumps, loads
from kafkaform.core.resource import Facts, ProviderFacts
from kafkaform.core.value import EMPTY, FrozenMap


class Window(Struct, frozen=True):
    samples: int = 11


class StoreFacts(ProviderFacts, frozen=True, kw_only=True):
    release: str | None = None
    timeout: int | Decimal = 30
    window: Window = Window()
    defaults: FrozenMap = EMPTY
    names: tuple[str, ...] = ()
    vendor: str | UnsetType = UNSET


WHOLE = StoreFacts(
    release="4.0",
    timeout=Decimal("1.5"),
    window=Window(3),
    defaults=FrozenMap(a="1"),
    names=("b",),
    vendor="c",
)


def test_a_plan_records_every_fact_but_those_that_are_unset() -> None:
    """An unknown fact is recorded as null; an unset one is left out."""
    assert dumps(Facts("s", values=StoreFacts()).recorded_values) == (
        '{"defaults":{},"names":[],"release":null,"timeout":30,"window":{"samples":11}}'
    )


def test_recorded_facts_are_read_back() -> None:
    """The struct that reads the recorded text equals the one that wrote it."""
    values = loads(dumps(Facts("s", values=WHOLE).recorded_values))
    assert isinstance(values, FrozenMap)
    assert StoreFacts.of(Facts("s", values=values)) == WHOLE


def test_facts_of_other_versions_are_read() -> None:
    """Facts that an older version did not record have their defaults; unknown ones are skipped."""
    facts = Facts("s", values=FrozenMap(release="4.0", newer=1))
    assert StoreFacts.of(facts) == StoreFacts(release="4.0")
    assert StoreFacts.of(Facts("")) == StoreFacts()


def test_forged_facts_are_refused() -> None:
    """A value of another type never becomes a fact."""
    with pytest.raises(ValueError, match=r"Expected `str \| null`"):
        StoreFacts.of(Facts("s", values=FrozenMap(release=3)))
