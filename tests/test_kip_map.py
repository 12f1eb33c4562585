"""The map from the KIPs to tests is whole, and every test that it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
MAP = TESTS.parent / "docs/kip-map.md"
ROW = re.compile(r"^\| (\d+) \|(.*)\|$", re.MULTILINE)
PROOF = re.compile(r"`([\w/]+\.py)::(\w+)`")
PROMISE = re.compile(r"^\| ([A-Z]) \|(.*)\|$", re.MULTILINE)
ROWS = {int(number): cells for number, cells in ROW.findall(MAP.read_text(encoding="utf-8"))}
PROMISES = dict(PROMISE.findall(MAP.read_text(encoding="utf-8")))
ALL = {**ROWS, **PROMISES}


@cache
def functions(file: str) -> frozenset[str]:
    """The test functions of a file below tests/."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_no_row_is_missing() -> None:
    """The statements are numbered through, each in five columns; the promises have letters."""
    assert list(ROWS) == list(range(1, 96))
    assert {len(cells.split(" | ")) for cells in ROWS.values()} == {4}
    assert "".join(PROMISES) == "ABCDEFGH"
    assert {len(cells.split(" | ")) for cells in PROMISES.values()} == {3}


@pytest.mark.parametrize("number", ALL)
def test_every_row_is_proven(number: int | str) -> None:
    """A row names a test at least, and each that it names is there."""
    proofs = PROOF.findall(ALL[number].rpartition(" | ")[2])
    assert proofs
    for file, name in proofs:
        assert name in functions(file), f"{file} has no {name}"
