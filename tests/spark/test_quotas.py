"""Effective quotas, compared with the provider's own reading of the eight levels."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkaform.core.value import FrozenMap
from kafkaform.fleet.datasets import quotas
from kafkaform_kafka.kinds.quota.limits import (
    LEVELS,
    EntityPart,
    Quotas,
    entity_text,
    find_applying,
    sharers_text,
)

from .live_rows import Row, acl, cluster, context, frames, live, quota, rows_of

RATE, SHARE = "producer_byte_rate", "request_percentage"
ODD = ("ci", "a|client-id", "a\\", "x=y", "user", "Ünïcode 🎈", "a\\|b", "client-id=c")
Entity = Mapping[str, str | None]


def entity(number: int, user: str = "ci", client: str = "app") -> dict[str, str | None]:
    """The entity of this level."""
    level = LEVELS[number - 1]
    parts = (("user", level.user, user), ("client-id", level.client_id, client))
    return {
        k: name if p is EntityPart.NAMED else None
        for k, p, name in parts
        if p is not EntityPart.NONE
    }


Found = Mapping[tuple[str, str, str, str], Row]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Found:
    """What is made of all cases at once; each has clusters of its own."""
    rows = [*_levels()[0], *_random()[0], *CALLED, *UNNAMED]
    names = {row["cluster"] for row in rows}
    callbacks = {"called": "com.example.Callback"}
    clusters = [cluster(name, quota_callback=callbacks.get(name)) for name in sorted(names)]
    tables = frames(spark, {"live": rows, "cluster": clusters})
    made = rows_of(quotas.build(tables, context()))
    keyed = {(r["cluster"], r["user"], r["client_id"], r["quota_key"]): r for r in made}
    assert len(keyed) == len(made), "two rows have one key"
    return keyed


def of(found: Found, clusters: Collection[str]) -> dict[tuple[str, str, str, str], Row]:
    return {key: row for key, row in found.items() if key[0] in clusters}


def agrees(row: Row, known: Quotas) -> None:
    found = find_applying(row["quota_key"], row["user"], row["client_id"], known)
    assert row["evaluable"]
    if found is None:
        assert (row["value"], row["level"], row["entity"]) == (None, None, "")
        assert row["shared_scope"] == ""
        return
    assert (row["value"], row["level"]) == (float(found.value or 0), found.level.number)
    assert row["entity"] == entity_text(found.entity)
    if "" not in (row["user"], row["client_id"]):
        assert row["shared_scope"] == sharers_text(*found.sharers)


Known = dict[str, dict[FrozenMap, dict[str, Decimal]]]


def _levels() -> tuple[list[Row], Known]:
    rows, known = [], {}
    for present in product((False, True), repeat=8):
        name = "".join("1" if here else "0" for here in present)
        known[name] = {
            FrozenMap(entity(n)): {RATE if here else SHARE: Decimal(n * 10 + here)}
            for n, here in enumerate(present, 1)
        }
        rows += [quota(name, e, config) for e, config in known[name].items()]
    return rows, known


def test_every_combination_of_levels_for_two_keys(found: Found) -> None:
    """All 256 sets of levels for one key, and their complements for another."""
    known = _levels()[1]
    mine = of(found, known)
    for key, row in mine.items():
        agrees(row, known[key[0]])
    asked = [(n, user, c) for n in known for user in ("ci", "") for c in ("app", "")]
    keys = {name: {k for config in known[name].values() for k in config} for name in known}
    assert mine.keys() == {(*case, key) for case in asked for key in keys[case[0]]}


def _random() -> tuple[list[Row], Known, dict[str, set[str]]]:
    dice = random.Random(7)
    rows: list[Row] = []
    known: Known = {}
    users: dict[str, set[str]] = {}
    for case in range(60):
        name = f"c{case}"
        known[name], users[name] = {}, {""}
        for _ in range(dice.randrange(1, 9)):
            e = FrozenMap(entity(dice.randrange(1, 9), dice.choice(ODD), dice.choice(ODD)))
            value = Decimal(dice.choice(("1", "0.5", "12345678901", "Infinity")))
            known[name][e] = {dice.choice((RATE, SHARE)): value, "x.y": Decimal(3)}
            if e.get("user"):
                users[name].add(e["user"])
        rows += [quota(name, e, _landed(config)) for e, config in known[name].items()]
        rows += [quota(name, {"ip": None}, {"connection_creation_rate": 1})]
        scram, principal = f"scram {case}", f"CN=acl{case},O=x"
        rows.append(live(name, "kafka_user_scram_credential", "k", {"username": scram}))
        rows += [acl(name, f"User:{principal}"), acl(name, "User:*"), acl(name, "Group:g")]
        users[name] |= {scram, principal}
    return rows, known, users


def _landed(config: Mapping[str, Decimal]) -> dict[str, Any]:
    return {k: v if v.is_finite() else str(v) for k, v in config.items()}


def test_random_clusters_with_odd_names(found: Found) -> None:
    """Names that look like parts of a key are names; users come from credentials and ACLs too."""
    _, known, users = _random()
    mine = of(found, known)
    for key, row in mine.items():
        agrees(row, known[key[0]])
    for name, expected in users.items():
        assert {user for n, user, _, _ in mine if n == name} == expected


CALLED = (
    quota("own", {"user": "ci"}, {RATE: 5}),
    quota("own", {"user": "no number"}, {RATE: "lots"}),
    quota("called", {"user": None}, {RATE: 7}),
    quota("address", {"ip": "10.0.0.1"}, {"connection_creation_rate": 3}),
    acl("empty", "User:ci"),
)


def test_a_callback_decides_and_addresses_do_not_count(found: Found) -> None:
    """What Kafka's own rule would say means nothing then; a cluster without quotas has no rows."""
    mine = of(found, {row["cluster"] for row in CALLED})
    assert {key: _said(row) for key, row in mine.items()} == {
        ("own", "ci", "", RATE): (5.0, 3, "user ci", "any client of user ci", True),
        ("own", "no number", "", RATE): (None, None, "", "", True),
        ("own", "", "", RATE): (None, None, "", "", True),
        ("called", "", "", RATE): (None, None, "", "", False),
    }


def _said(row: Row) -> tuple[Any, ...]:
    return tuple(row[n] for n in ("value", "level", "entity", "shared_scope", "evaluable"))


UNNAMED = tuple(quota("unnamed", entity(number), {f"k{number}": number}) for number in range(1, 9))


def test_whoever_is_not_named_is_called_one_other(found: Found) -> None:
    """A limit of a default entity is each other user's own."""
    mine = of(found, ["unnamed"])
    said = {key[3]: row["shared_scope"] for key, row in mine.items() if key[1:3] == ("", "")}
    wanted = {
        "k5": "one other user with one other client-id",
        "k6": "any client of one other user",
        "k8": "anybody with one other client-id",
    }
    assert said == {**{f"k{number}": "" for number in range(1, 9)}, **wanted}
