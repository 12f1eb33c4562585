"""`python -m tests.kit.inventory [FOLDER]`: every test function with its file and what it proves.

A line for each, `FILE::NAME: DOCSTRING`, sorted. Save it before a change of the tests and compare
afterwards: a proof that has gone is a line without a partner."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def list_tests(folder: Path) -> Iterator[str]:
    """The lines of all test files below a folder."""
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                proves = " ".join((ast.get_docstring(node) or "").split())
                yield f"{path.relative_to(TESTS).as_posix()}::{node.name}: {proves}"


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else TESTS
    print("\n".join(sorted(list_tests(folder))))
