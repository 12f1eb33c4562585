"""Eight levels of quota entities, and the most specific one that says something wins."""

from __future__ import annotations

from decimal import Decimal

import pytest

from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.quota.limits import (
    LEVELS,
    entity_text,
    find_applying,
    list_levels,
    list_weaker,
)

KEY = "controller_mutation_rate"
ENTITIES: tuple[tuple[dict[str, str | None], str], ...] = (
    ({"user": "ci", "client-id": "kafkaform"}, "user ci, client-id kafkaform"),
    ({"user": "ci", "client-id": None}, "user ci, default client-id"),
    ({"user": "ci"}, "user ci"),
    ({"user": None, "client-id": "kafkaform"}, "default user, client-id kafkaform"),
    ({"user": None, "client-id": None}, "default user, default client-id"),
    ({"user": None}, "default user"),
    ({"client-id": "kafkaform"}, "client-id kafkaform"),
    ({"client-id": None}, "default client-id"),
)
"""The order that Kafka's documentation of quotas gives, most specific first, with its text."""

OTHERS = (
    {"user": "somebody"},
    {"user": "ci", "client-id": "other"},
    {"user": "somebody", "client-id": "kafkaform"},
    {"client-id": "other"},
    {"ip": "127.0.0.1"},
    {"ip": None},
    {"user": ""},
    {"user": "default"},
)
"""Entities that are not those of user ci with client id kafkaform."""

PAIR, USER, CLIENT = ("ci", "kafkaform"), ("ci", None), (None, "kafkaform")


def quotas(*entities: dict[str, str | None]) -> dict[FrozenMap, dict[str, Decimal]]:
    """A mutation rate for each entity: 1 for the first, 2 for the second, and so on."""
    return {FrozenMap(e): {KEY: Decimal(rate)} for rate, e in enumerate(entities, 1)}


@pytest.mark.parametrize("number", range(1, 9))
def test_the_most_specific_level_wins(number: int) -> None:
    """Of this level and all less specific ones, this one applies, whatever the others say."""
    entities = [entity for entity, _ in ENTITIES[number - 1 :]]
    for given in (entities, entities[::-1]):
        known = quotas(*given, *OTHERS)
        found = find_applying(KEY, "ci", "kafkaform", known)
        assert found is not None
        assert found.level.number == number
        assert found.entity == entities[0]
        assert found.value == known[FrozenMap(entities[0])][KEY]


@pytest.mark.parametrize("number", range(1, 9))
def test_a_level_alone_applies(number: int) -> None:
    """Nothing but this level says anything, and it is enough."""
    entity, text = ENTITIES[number - 1]
    found = find_applying(KEY, "ci", "kafkaform", quotas(entity))
    assert found is not None
    assert (found.level, found.value) == (LEVELS[number - 1], 1)
    assert entity_text(found.entity) == text


def test_entities_of_others_never_apply() -> None:
    """Other names, ip entities, and users who are called like a default limit nobody else."""
    assert find_applying(KEY, "ci", "kafkaform", quotas(*OTHERS)) is None
    assert find_applying(KEY, "ci", "kafkaform", {}) is None


def test_each_key_is_looked_up_on_its_own() -> None:
    """A specific entity that says nothing of a key leaves it to a less specific one."""
    known = {
        FrozenMap({"user": "ci"}): {"producer_byte_rate": Decimal(9)},
        FrozenMap({"client-id": None}): {KEY: Decimal("0.5")},
    }
    for key, level, value in ((KEY, 8, Decimal("0.5")), ("producer_byte_rate", 3, Decimal(9))):
        found = find_applying(key, "ci", "x", known)
        assert found is not None and (found.level.number, found.value) == (level, value)


def test_the_ladder_shows_all_levels() -> None:
    """All eight in order, each with its entity, its value or none, and who shares the limit."""
    found = list_levels(KEY, "ci", "kafkaform", quotas(ENTITIES[2][0], ENTITIES[7][0]))
    assert [item.level.number for item in found] == list(range(1, 9))
    assert [item.entity for item in found] == [entity for entity, _ in ENTITIES]
    assert [item.value for item in found] == [None, None, 1, None, None, None, None, 2]
    assert [item.sharers for item in found] == [
        *[PAIR, PAIR, USER],
        *[PAIR, PAIR, USER],
        *[CLIENT, CLIENT],
    ]


@pytest.mark.parametrize("number", range(1, 9))
def test_without_a_limit_the_weaker_entities_apply(number: int) -> None:
    """All that are less specific, without those of names that the entity does not have."""
    entity = ENTITIES[number - 1][0]
    known = {name for name in entity.values() if name is not None}
    weaker = [
        other
        for other, _ in ENTITIES[number:]
        if {name for name in other.values() if name is not None} <= known
    ]
    assert [*list_weaker(entity)] == weaker


def test_an_address_has_the_default_below_it() -> None:
    """And the default has nothing."""
    assert list_weaker({"ip": "192.0.2.7"}) == ({"ip": None},)
    assert list_weaker({"ip": None}) == ()
