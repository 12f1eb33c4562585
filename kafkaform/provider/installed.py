"""Entry points of the installed packages, read from the disk.

`importlib.metadata` does the same, but loads seventy modules for it, which takes longer than
Python's own start; here it is asked only for what is rarely wanted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_METADATA = ("dist-info", "egg-info")
FILE = "entry_points.txt"


class Point(NamedTuple):
    """As `importlib.metadata.EntryPoint`. value: `module:attribute`; folder: of the package's
    metadata."""

    name: str
    value: str
    folder: str

    @property
    def module(self) -> str:
        return self.value.partition(":")[0].strip()

    @property
    def dist(self) -> Distribution:
        from importlib.metadata import Distribution

        return Distribution.at(self.folder)

    def load(self) -> Any:
        """The object. Raises ImportError, AttributeError."""
        found = import_module(self.module)
        for name in filter(None, self.value.partition(":")[2].split("[")[0].strip().split(".")):
            found = getattr(found, name)
        return found


def installed(group: str) -> Iterator[Point]:
    """The entry points of a group. Of a package that is there twice, the first on the path
    counts. Packages in zip files are passed over."""
    seen: set[str] = set()
    for place in sys.path:
        try:
            with os.scandir(place or ".") as entries:
                names = [entry.name for entry in entries]
        except OSError:
            continue
        for name in names:
            stem, _, kind = name.rpartition(".")
            package = stem.partition("-")[0].replace("_", "-").lower()
            if kind in _METADATA and package not in seen:
                seen.add(package)
                yield from _points(f"{place or '.'}/{name}", group)


def _points(folder: str, group: str) -> Iterator[Point]:
    try:
        # Loading pathlib takes long.
        with open(f"{folder}/{FILE}", encoding="utf-8") as file:  # noqa: PTH123  # see above
            lines = file.read().splitlines()
    except OSError:
        return
    section = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == group and "=" in line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield Point(name.strip(), value.strip(), folder)
