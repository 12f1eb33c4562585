"""The page on reliability has a row for every fault, threat and incident, and each is proven."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs/reliability.md"
ROW = re.compile(r"^\| ([FTI]\d+) \|(.*)\|$", re.MULTILINE)
PROOF = re.compile(r"`([\w/]+\.py)::(\w+)`")
ROWS = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))
NUMBERS = {"F": 69, "T": 46, "I": 18}


@cache
def functions(file: str) -> frozenset[str]:
    """The test functions of a file below tests/."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_no_row_is_missing() -> None:
    """Every fault, threat and incident that was ever numbered, each in four columns."""
    expected = [f"{letter}{n}" for letter, last in NUMBERS.items() for n in range(1, last + 1)]
    assert sorted(ROWS) == sorted(expected)
    assert {len(cells.split(" | ")) for cells in ROWS.values()} == {3}


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_proven(name: str) -> None:
    """A row names a test at least, and each that it names is there."""
    proofs = PROOF.findall(ROWS[name].rpartition(" | ")[2])
    assert proofs
    for file, function in proofs:
        assert function in functions(file), f"{file} has no {function}"
