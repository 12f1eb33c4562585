"""What became of the tests of each line when they were last run: results.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..kit.kafka.subjects import SUBJECTS
from .runs import ACCEPTANCE, CLAIMS, CONNECT, CRASHES, KIPS, LIFE_CYCLES, find_part

FILE = Path(__file__).with_name("results.json")
Record = Mapping[str, str]
"""As `recorder` writes it: test, outcome, reason, and what a refusal says."""
COLUMNS: Mapping[str, str] = {
    **{subject.title: LIFE_CYCLES for subject in SUBJECTS},
    **{part: part for part in (ACCEPTANCE, KIPS, CRASHES, CLAIMS, CONNECT)},
}
"""Column -> the part whose tests it is about."""


class Result(Struct, frozen=True, omit_defaults=True):
    """What became of the tests of one column."""

    passed: int = 0
    refused: str = ""
    """What the refusal says, if that is what the test proves."""
    failed: tuple[str, ...] = ()
    """The tests."""
    absent: Mapping[str, int] = {}
    """Why tests were not run -> how many."""


Line = Mapping[str, Result]
"""Column -> its result."""


def summarize(records: Iterable[Record], part: str) -> dict[str, Result]:
    """The columns of one part of a line."""
    found = {column: Result() for column, its in COLUMNS.items() if its == part}
    for record in records:
        column = find_column(record["test"])
        if column in found:
            found[column] = _add_record(found[column], record)
    return found


def find_column(test: str) -> str | None:
    """The column that a test belongs to; None for one that is about the sandbox alone."""
    part = find_part(test)
    if part != LIFE_CYCLES:
        return part
    titles = (subject.title for subject in SUBJECTS)
    return next((title for title in titles if f"[{title}]" in test), None)


def read_results() -> dict[str, Line]:
    """Title of a line -> its columns."""
    return dict(msgspec.json.decode(FILE.read_bytes(), type=dict[str, dict[str, Result]]))


def write_results(lines: Mapping[str, Line]) -> None:
    text = msgspec.json.format(msgspec.json.encode(lines), indent=1)
    FILE.write_bytes(text + b"\n")


def _add_record(result: Result, record: Record) -> Result:
    if record["outcome"] == "passed":
        refused = record.get("refused", result.refused)
        return replace(result, passed=result.passed + 1, refused=refused)
    if record["outcome"] == "failed":
        test = record["test"].removeprefix("tests/")
        return replace(result, failed=tuple(sorted({*result.failed, test})))
    reason = record["reason"]
    return replace(result, absent={**result.absent, reason: result.absent.get(reason, 0) + 1})
