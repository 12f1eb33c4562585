"""Short because it is the one reader of Kafka's tables, which are files in the folder `tables`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

# Not by `importlib.resources`, whose import takes longer than all tables together.
_FOLDER = Path(__file__).parents[1] / "tables"


def read_table(name: str) -> Iterator[Mapping[str, str]]:
    """The rows of `tables/NAME.tsv`: column -> text, empty where a row has none.

    The first line that is no comment names the columns. Lines with `#` in front are comments.
    """
    lines = (_FOLDER / f"{name}.tsv").read_text(encoding="utf-8").split("\n")
    columns, *rows = (line.split("\t") for line in lines if line and line[0] != "#")
    for row in rows:
        yield dict(zip(columns, row + [""] * (len(columns) - len(row)), strict=True))
