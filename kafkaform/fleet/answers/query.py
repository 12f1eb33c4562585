"""Run SQL over the tables of a build with DataFusion, without a JVM.

Only queries: DataFusion also has statements that write files (`COPY`) or change its settings.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from ...core.errors import StorageError, UsageError
from ...core.text import inline
from ..report.figures import render_age, render_moment
from ..report.questions import PLACED, UNKNOWN
from ..report.rows import Sheet
from ..tables.definitions import TABLES, quote_text
from ..tables.reader import Gold, describe_error, to_rows

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_NO_TABLE = re.compile(r"table 'datafusion\.(?:public\.)?(.+?)' not found")
_NO_COLUMN = re.compile(r"No field named (.+?)\.(?:\s|$)", re.DOTALL)
_TABLE_NAME = re.compile(r"\b(?:from|join)\s+\"?(\w+)", re.IGNORECASE)
_STORE_ERROR = "Object Store error"
_INTO_CLAUSE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(\binto\b)", re.IGNORECASE)


def run_query(gold: Gold, sql: str) -> Sheet:
    """Return the result of a query.

    Raises UsageError: it is not a query, or names something that does not exist; StorageError: the
    tables cannot be read.
    """
    bare = _COMMENT.sub(" ", sql).strip().lstrip("( \n\t")
    word = re.match(r"\w*", bare)
    if word is None or word[0].lower() not in ("select", "with"):
        raise UsageError(
            "only queries can be run here",
            "Begin with SELECT or WITH. The tables cannot be changed.",
        )
    if any(match[1] for match in _INTO_CLAUSE.finditer(bare)):
        raise UsageError("SELECT … INTO would create a table", "Leave out INTO and its name.")
    try:
        table = pa.table(gold.execute(sql).read_all())
    except OSError as error:
        raise StorageError(f"cannot read {gold.build.root}: {describe_error(error)}") from None
    except DeltaError as error:
        raise _explain_error(gold, sql, describe_error(error)) from None
    except Exception as error:
        if type(error) is not Exception:  # errors during execution have no class of their own
            raise
        text = describe_error(error)
        if _STORE_ERROR in text:
            raise StorageError(f"cannot read {gold.build.root}: {text}") from None
        raise UsageError(f"the query failed: {text}") from None
    rows = (tuple(row.values()) for batch in table.to_batches() for row in to_rows(batch))
    return Sheet(tuple(table.column_names), tuple(rows))


def list_old_rows(gold: Gold, sql: str) -> Iterator[str]:
    """Yield a sentence for each cluster of which a query over these tables may return rows that
    tell how the cluster was, not how it is. Raises StorageError."""
    names = {word.lower() for word in re.findall(r"\w+", sql)} & gold.build.tables.keys()
    if not names & PLACED or not gold.has("cluster"):
        return
    statuses = ", ".join(map(quote_text, UNKNOWN))
    for row in gold.read_rows(
        f"select cluster, status, captured_at from cluster where status in ({statuses})"
        " and captured_at is not null order by cluster"
    ):
        cluster, status = inline(row["cluster"]), row["status"]
        yield f"Rows of {cluster} may be old: {status}{describe_age(row, gold.build.as_of)}."


def describe_age(row: Mapping[str, Any], as_of: datetime) -> str:
    """`, last read 2026-11-19 05:00 UTC, 3 d before the newest data`; empty if it never was. row:
    of `cluster`."""
    time = row["captured_at"]
    if time is None:
        return ""
    age = render_age(time, as_of)
    return f", last read {render_moment(time)} UTC, {age} before the newest data"


def _explain_error(gold: Gold, sql: str, text: str) -> UsageError:
    """Turn the engine's error into advice."""
    if missing := _NO_TABLE.search(text):
        return _no_table_error(gold, missing[1])
    if missing := _NO_COLUMN.search(text):
        return _no_column_error(gold, sql, missing[1])
    return UsageError(
        f"the query cannot be run: {text.removeprefix('SQL error: ')}",
        "It is DataFusion's SQL: text in single quotes, names in double quotes, "
        "attrs['config.retention.ms'] for a member of a map.",
    )


def _no_table_error(gold: Gold, name: str) -> UsageError:
    short = name.rpartition(".")[2].lower()
    if short in gold.build.tables:
        return UsageError(f"there is no table {name}", f"Write {short}, without the layer.")
    if short in TABLES:
        return UsageError(
            f"build {gold.build.name} has no table {short}",
            f"Make it with `kafkaform fleet run --root … --only {short}`.",
        )
    close = difflib.get_close_matches(short, gold.build.tables, 3)
    advice = f"Did you mean {' or '.join(close)}? " if close else ""
    return UsageError(
        f"there is no table {name}", f"{advice}There are {', '.join(sorted(gold.build.tables))}."
    )


def _no_column_error(gold: Gold, sql: str, name: str) -> UsageError:
    named = {word.lower() for word in _TABLE_NAME.findall(sql)}
    tables = sorted(named & gold.build.tables.keys() & TABLES.keys())
    columns = {column for table in tables for column in TABLES[table].names}
    bare = name.rpartition(".")[2].strip('"')
    close = difflib.get_close_matches(bare.lower(), columns, 3)
    advice = f"Did you mean {' or '.join(close)}? " if close else ""
    text = "" if "." in name else f"Write text in single quotes: {quote_text(bare)}. "
    table_columns = "; ".join(f"{table} has {', '.join(TABLES[table].names)}" for table in tables)
    return UsageError(
        f"there is no column {name}", f"{advice}{text}{table_columns}.".strip(". ") + "."
    )
