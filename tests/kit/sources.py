"""The product's own modules and their syntax trees, parsed once for all tests of a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (ROOT / "kafkaform", ROOT / "providers")


@cache
def list_sources() -> tuple[Path, ...]:
    """All modules of the product."""
    return tuple(sorted(path for package in PACKAGES for path in package.rglob("*.py")))


@cache
def list_nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module's syntax tree; a node comes before those below it."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
