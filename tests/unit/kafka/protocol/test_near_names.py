"""The nearest name: what counts as a typing mistake, and what as another name."""

from __future__ import annotations

import random

import pytest

from kafkaform_kafka.rules.missing_names import index_names


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("ordres", "orders"),
        ("oders", "orders"),
        ("Orders", "orders"),
        ("shop-orders", "shop.orders"),
        ("shpo.ordres", "shop.orders"),
        ("orders-1", ""),
        ("orders-v2", ""),
        ("billing", ""),
        ("orders", ""),
        ("ac", "ab"),
        ("cd", ""),
    ],
)
def test_near_names(name: str, near: str) -> None:
    """One or two typing mistakes, another case, another separator; no siblings by number."""
    assert index_names(["orders", "shop.orders", "payments", "ab"]).find_near(name) == near


def count_mistakes(name: str, other: str) -> int:
    """Optimal string alignment, by the usual table."""
    table = {(i, -1): i + 1 for i in range(-1, len(name))}
    table |= {(-1, j): j + 1 for j in range(-1, len(other))}
    for i, char in enumerate(name):
        for j, wanted in enumerate(other):
            table[i, j] = min(
                table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (char != wanted)
            )
            if i and j and (char, name[i - 1]) == (other[j - 1], wanted):
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(name) - 1, len(other) - 1]


def test_near_is_what_the_usual_table_counts() -> None:
    """Two mistakes in a name of six characters or more, one in a shorter one, of random names."""
    chance = random.Random(7)
    for _ in range(3000):
        name = "".join(chance.choice("abc") for _ in range(chance.randint(3, 9)))
        other = "".join(chance.choice("abc") for _ in range(chance.randint(3, 9)))
        most = 1 if len(name) < 6 else 2
        near = 0 < count_mistakes(name, other) <= most
        assert index_names([other]).find_near(name) == (other if near else "")
