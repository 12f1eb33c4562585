"""Render the generated part of docs/compatibility.md from the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from .results import COLUMNS, Line, Result
from .runs import LIFE_CYCLES

PAGE = Path(__file__).parents[2] / "docs/compatibility.md"
BEGIN = "<!-- The rest until the next comment is made by `make test-matrix`. -->"
END = "<!-- End of what is made by `make test-matrix`. -->"
Lines = Mapping[str, Line]


def update_page(lines: Lines) -> None:
    """Replace the generated part of the page."""
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(f"{head}{BEGIN}\n\n{render_block(lines)}\n{END}{tail}", "utf-8")


def read_block() -> str:
    """The generated part as the page has it."""
    return PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0].strip() + "\n"


def render_block(lines: Lines) -> str:
    """The table, and what its words stand for."""
    results = [line.get(column, Result()) for column in COLUMNS for line in lines.values()]
    refusals = list(dict.fromkeys(each.refused for each in results if each.refused))
    table = [_render_row(("Kafka", *COLUMNS)), _render_row("---" for _ in range(len(COLUMNS) + 1))]
    for title, line in lines.items():
        cells = (_render_cell(column, line.get(column, Result()), refusals) for column in COLUMNS)
        table.append(_render_row((title, *cells)))
    notes = (
        *_separate(f"{number}. {text}" for number, text in enumerate(refusals, 1)),
        *_separate(f"- {text}" for text in _list_absences(lines)),
        *_separate(f"- {text}" for text in _list_failures(lines)),
    )
    return "\n".join((*table, *notes)) + "\n"


def _render_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _render_cell(column: str, result: Result, refusals: list[str]) -> str:
    """One word about what a user manages; of other tests, how many."""
    if result.refused and not result.failed:
        return f"refused ({refusals.index(result.refused) + 1})"
    absent = sum(result.absent.values())
    counts = {"passed": result.passed, "not there": absent, "**failed**": len(result.failed)}
    told = {word: count for word, count in counts.items() if count}
    if not told:
        return "not run"
    if COLUMNS[column] == LIFE_CYCLES:
        return ", ".join(told)
    return ", ".join(f"{count} {word}" for word, count in told.items())


def _list_absences(lines: Lines) -> Iterator[str]:
    told: dict[tuple[str, str], list[str]] = {}
    for title, line in lines.items():
        for column, result in line.items():
            for reason in result.absent:
                told.setdefault((column, reason), []).append(title)
    for (column, reason), titles in sorted(told.items()):
        yield f"Not there, {column}: {reason} ({'; '.join(titles)})."


def _list_failures(lines: Lines) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for title, line in lines.items():
        for result in line.values():
            for test in result.failed:
                told.setdefault(test, []).append(title)
    for test, titles in sorted(told.items()):
        yield f"Failed: `{test}` ({'; '.join(titles)})."


def _separate(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines with a blank line above, nothing for none."""
    found = tuple(lines)
    return ("", *found) if found else ()
