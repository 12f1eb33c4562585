"""Select the datasets to make, and sort them by their inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from graphlib import TopologicalSorter

from ...core.errors import UsageError
from ..tables.dataset import Dataset

SCOPE_TABLES = ("cluster", "lineage")
"""Tables that tell which clusters have new input."""


def order_datasets(datasets: Iterable[Dataset]) -> tuple[Dataset, ...]:
    """Sort each dataset after its inputs, and SCOPE_TABLES with its inputs before all others."""
    by_name = {dataset.table: dataset for dataset in datasets}
    early = _find_needed(by_name, [name for name in SCOPE_TABLES if name in by_name])
    graph = {
        # A table that reads its own previous rows is no cycle: it reads the previous build's
        # version.
        name: [i for i in dataset.inputs if i in by_name and i != name]
        for name, dataset in by_name.items()
    }
    names = tuple(TopologicalSorter(graph).static_order())
    return tuple(by_name[name] for name in sorted(names, key=lambda name: name not in early))


def select_datasets(datasets: Sequence[Dataset], only: Iterable[str]) -> tuple[Dataset, ...]:
    """Return the datasets of these tables and of all their inputs, in order; all if no name is
    given.

    Raises UsageError: a name is not that of a computed table.
    """
    by_name = {dataset.table: dataset for dataset in datasets}
    names = tuple(only)
    for name in names:
        if name not in by_name:
            suggestions = get_close_matches(name, by_name, 1)
            raise UsageError(
                f"--only {name}: there is no such table",
                f"Did you mean {suggestions[0]}?"
                if suggestions
                else f"There are {', '.join(sorted(by_name))}.",
            )
    # SCOPE_TABLES is always made: without it, nothing tells which clusters to recompute.
    chosen = _find_needed(by_name, [*names, *SCOPE_TABLES]) if names else by_name.keys()
    return order_datasets(by_name[name] for name in chosen)


def _find_needed(by_name: dict[str, Dataset], names: Iterable[str]) -> frozenset[str]:
    """Return these tables and everything that they are computed from."""
    needed: set[str] = set()
    ahead = [name for name in names if name in by_name]
    while ahead:
        name = ahead.pop()
        if name not in needed:
            needed.add(name)
            ahead += [i for i in by_name[name].inputs if i in by_name]
    return frozenset(needed)
