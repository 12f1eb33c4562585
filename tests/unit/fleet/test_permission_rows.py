"""`fleet permissions` without Spark: which rows are wanted, in which form, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaform.core.errors import StorageError, UsageError
from kafkaform.fleet.access.permission_rows import (
    COLUMNS,
    FILE_COLUMNS,
    KEY,
    MASKS,
    PermissionFilter,
    can_begin,
    make_mask,
    make_where,
    select_wanted,
)
from kafkaform.fleet.answers.query import run_query
from kafkaform.fleet.landed.register import to_regex
from kafkaform.fleet.report.rows import render_table
from kafkaform.fleet.tables import reader
from kafkaform.fleet.tables.reader import Gold
from kafkaform.workflow.fleet import answers
from kafkaform.workflow.fleet.answers import (
    PermissionsRequest,
    check_request,
    export_by_pattern,
)

from ...kit.fleet.access_worlds import NAMES, PATTERNS, acl, covers, shown
from ...kit.fleet.lake import publish

PEOPLE = ("User:u", "User:v", "User:*", "Group:g")


def stored() -> list[dict[str, Any]]:
    """Rows about all kinds of patterns of two clusters."""
    chance, found = Random(31), {}
    for cluster in ("a", "b"):
        for one in (acl(chance, kind) for kind in ("Topic", "Group") for _ in range(150)):
            name = shown(one.resource_name, one.pattern_type)
            values = (cluster, one.resource_type, name, one.pattern_type, one.principal, one.host)
            row = dict(zip(KEY, values, strict=True))
            masks = {
                "effective_mask": make_mask(["Read", "Write"]),
                "allow_mask": 24,
                "deny_mask": 4,
            }
            found[values] = {**row, **masks, "pattern_level": True, "via": [one.key]}
    return list(found.values())


ROWS = stored()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("fleet")
    publish(folder, "b-1", {"effective_permissions": ROWS, "cluster": [{"cluster": "a"}]})
    return str(folder)


def asked(root: str, only: PermissionFilter) -> list[tuple[Any, ...]]:
    """The keys of the rows that are shown, in their order."""
    told = json.loads(export_by_pattern(PermissionsRequest(root, only, "json")))
    assert told["columns"] == list(COLUMNS)
    return [tuple(row[name] for name in KEY) for row in told["rows"]]


def keys(rows: Iterator[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in KEY) for row in rows)


def test_all_rows_are_there_in_the_order_of_their_key(root: str) -> None:
    assert asked(root, PermissionFilter()) == keys(iter(ROWS))


def test_rows_of_one_cluster_and_of_one_principal(root: str) -> None:
    """What everybody may do holds for him too."""
    some = asked(root, PermissionFilter("a", "User:u"))
    people = ("User:u", "User:*")
    assert some == keys(r for r in ROWS if r["cluster"] == "a" and r["principal"] in people)
    assert len(some) < len(ROWS) / 2


@pytest.mark.parametrize("name", [name for name in NAMES if "*" not in name])
def test_rows_about_one_resource_are_those_of_the_patterns_that_cover_it(
    root: str, name: str
) -> None:
    assert asked(root, PermissionFilter(resource=f"topic/{name}")) == keys(
        row
        for row in ROWS
        if row["resource_type"] == "Topic" and covers(_pattern(row), (name, "Literal"))
    )


def _pattern(row: dict[str, Any]) -> tuple[str, str]:
    kind = row["pattern_type"]
    return row["resource"].removesuffix("*" if kind == "Prefixed" else ""), kind


@pytest.mark.parametrize("glob", ["a*", "?b", "a?", "*", "*x", "ab*d", "kafka-*", "zz*"])
def test_rows_about_a_glob_are_those_of_patterns_that_share_a_name_with_it(
    root: str, glob: str
) -> None:
    """Tried with every name of up to four characters, and with those of the patterns."""
    letters = ("", *"abcdxz*")
    short = {"".join(word) for word in _words(letters, 4)}
    names = short | {pattern + more for pattern in PATTERNS for more in ("", "b", "x")}
    fits = [name for name in names if re.fullmatch(to_regex(glob), name)]
    expected = keys(
        row
        for row in ROWS
        if row["resource_type"] == "Group"
        and any(covers(_pattern(row), (name, "Literal")) for name in fits)
    )
    assert asked(root, PermissionFilter(resource=f"group/{glob}")) == expected


def _words(letters: tuple[str, ...], length: int) -> Iterator[tuple[str, ...]]:
    if not length:
        yield ()
        return
    for rest in _words(letters, length - 1):
        for letter in letters:
            yield (letter, *rest)


@given(st.text("ab*?", max_size=6), st.text("ab", max_size=4))
def test_a_glob_begins_with_what_one_of_its_names_begins_with(glob: str, prefix: str) -> None:
    """Tried with names that are long enough for every glob."""
    whole = re.compile(to_regex(glob))
    names = ("".join((prefix, *word)) for word in _words(("", "a", "b"), 6))
    assert can_begin(glob, prefix) == any(whole.fullmatch(name) for name in names)


def test_what_the_store_is_asked_for_is_not_much_more_than_is_wanted(root: str) -> None:
    """Thousands of clusters have millions of rows."""
    only = PermissionFilter("a", "User:u", "topic/abc")
    fetched = Gold(reader.read_current(root)).read_rows(
        f"select * from effective_permissions where {make_where(only)}"
    )
    assert len(list(select_wanted(fetched, only))) == len(fetched) < len(ROWS) / 8


# ── forms ───────────────────────────────────────────────────────────────────────────────


def test_people_read_operations_in_words(root: str) -> None:
    """Also what `fleet query` shows as a table; for programs numbers stay numbers."""
    table = export_by_pattern(PermissionsRequest(root, PermissionFilter("a"), "table"))
    assert "Read, Write" in table and " 24 " not in table
    (row, *_) = csv.DictReader(
        io.StringIO(export_by_pattern(PermissionsRequest(root, PermissionFilter("a"), "csv")))
    )
    assert (row["effective"], row["deny"], row["unknown"]) == ("Read, Write", "All", "")
    found = run_query(
        Gold(reader.read_current(root)), "select allow_mask from effective_permissions limit 1"
    )
    assert found.rows == ((24,),)
    assert "Read, Write" in render_table(found)


def test_files_are_whole_or_not_there(root: str, tmp_path: Path) -> None:
    """Parquet has words and bits; CSV what is printed."""
    assert not export_by_pattern(
        PermissionsRequest(root, PermissionFilter("a"), "csv", tmp_path / "a.csv")
    )
    text = (tmp_path / "a.csv").read_bytes().decode()
    assert text == export_by_pattern(PermissionsRequest(root, PermissionFilter("a"), "csv"))
    assert not export_by_pattern(
        PermissionsRequest(root, PermissionFilter("a"), "parquet", tmp_path / "p")
    )
    (file,) = (tmp_path / "p").iterdir()
    made = pq.ParquetFile(file).read()
    assert tuple(made.column_names) == FILE_COLUMNS
    assert made.num_rows == sum(row["cluster"] == "a" for row in ROWS)
    first = made.slice(0, 1).to_pylist()[0]
    assert (first["effective"], first["effective_mask"]) == (["Read", "Write"], 24)
    assert set(MASKS.values()) < first.keys()
    with pytest.raises(StorageError, match="cannot write the permissions"):
        export_by_pattern(
            PermissionsRequest(root, PermissionFilter("a"), "csv", tmp_path / "none" / "a.csv")
        )
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "p"}


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (PermissionsRequest("r", PermissionFilter(), "xml"), "there is no such format"),
        (PermissionsRequest("r", PermissionFilter(), "parquet"), "needs a folder"),
        (PermissionsRequest("r", PermissionFilter(), "table", Path("x")), "cannot be used with"),
        (PermissionsRequest("r", PermissionFilter(), "csv", Path(__file__)), "already exists"),
        (PermissionsRequest("r", PermissionFilter(principal="ci"), "csv"), "is not a principal"),
        (PermissionsRequest("r", PermissionFilter(resource="orders"), "csv"), "is not a resource"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(
    ask: PermissionsRequest, told: str
) -> None:
    with pytest.raises(UsageError, match=told) as error:
        check_request(ask)
    assert error.value.advice


def test_a_cluster_that_nobody_knows_is_no_empty_one(root: str) -> None:
    with pytest.raises(UsageError, match="has no cluster x") as error:
        export_by_pattern(PermissionsRequest(root, PermissionFilter("x"), "table"))
    assert "SELECT cluster" in error.value.advice
    answers.check_request(PermissionsRequest(root, PermissionFilter("x"), "table"))
