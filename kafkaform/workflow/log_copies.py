"""Copy the audit log: as rows for spreadsheets and data frames, and as records to a topic.

A copy proves nothing by itself: `audit verify` checks the log.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from kafkaform_kafka.publishing import NumberedRecord, PublishResult, publish

from ..audit.chain import read_records
from ..audit.event import Record, encode
from ..core.canonical import dumps
from ..core.errors import UsageError
from ..core.value import FrozenMap
from ..render.text import escape_formula
from .connection import Connection
from .stores import Store, find_anchor

LARGEST = 900_000
"""The largest record that is published whole, in bytes. The default limit of a topic,
max.message.bytes, is 1,048,588 for a batch with its headers."""
STEP = ("instance", "scope_id", "address", "kind", "key", "action", "incarnation", "phase")
OF_STEP = ("attempt", "outcome", "duration_ms", "plan", "approval", "of_run")
OF_RECORD = ("lineage", "seq", "time", "run", "actor", "record")
COLUMNS = (*OF_RECORD, *STEP, *OF_STEP, "error_code", "error", "paths", "hash")


def list_rows(store: Store, run: str | None, after: int) -> Iterator[Mapping[str, Any]]:
    """One row per record, all with the same columns: scalars, and `paths` as JSON text.

    run: only the records of this run; after: only records with a higher number. Raises
    StorageError at the first record that was altered.
    """
    for record in _read_records(store):
        if record.seq > after and run in (None, record.run):
            yield _make_row(record)


def render_csv(rows: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    """The rows as CSV (RFC 4180). No cell is a formula for a spreadsheet."""
    yield _render_csv_line(COLUMNS)
    for row in rows:
        yield _render_csv_line(
            # A name such as =HYPERLINK(…) must not become a formula of whoever opens the file.
            "" if row[c] is None else escape_formula(str(row[c]))
            for c in COLUMNS
        )


def publish_log(store: Store, connection: Connection, topic: str) -> tuple[PublishResult, int]:
    """Copy the records that the topic lacks. Returns where the topic stands, and how many records
    were published without their bodies because they are too large. Raises KafkaformError."""
    lineage = next((str(r.body.get("lineage")) for r in _read_records(store)), None)
    if lineage is None:
        raise UsageError(f"{store.sink.location}: there is no log yet")
    cut: list[int] = []
    settings = connection.settings
    published = publish(
        settings.instance,
        settings.config,
        connection.secrets,
        topic,
        lineage,
        (_make_entry(record, cut) for record in _read_records(store)),
    )
    return published, sum(1 for seq in cut if seq > published.before)


def _read_records(store: Store) -> Iterator[Record]:
    """All records, each checked, also against the head that the state is anchored at."""
    state = store.backend.load().state
    return read_records(store.sink.lines(), store.sink.location, find_anchor(store.sink, state))


def _make_row(record: Record) -> Mapping[str, Any]:
    body, error = record.body, record.body.get("error")
    about = {name: body.get(name) for name in (*STEP, *OF_STEP)}
    return {
        "lineage": body.get("lineage"),
        "seq": record.seq,
        "time": record.time,
        "run": record.run,
        "actor": record.actor,
        "record": record.kind,
        **{name: None if isinstance(item, FrozenMap) else item for name, item in about.items()},
        "error_code": error["code"] if error else None,
        "error": error["message"] if error else None,
        "paths": dumps(body["paths"]) if "paths" in body else None,
        "hash": record.hash,
    }


def _render_csv_line(cells: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _make_entry(record: Record, cut: list[int]) -> NumberedRecord:
    line = encode(record)
    if len(line) <= LARGEST:
        return NumberedRecord(record.seq, line)
    # It keeps the hash of the whole record, so that the chain of hashes in the topic has no gap.
    cut.append(record.seq)
    short = {"lineage": record.body.get("lineage"), "omitted_bytes": len(line)}
    whole = {"seq": record.seq, "time": record.time, "run": record.run, "actor": record.actor}
    members = {"kind": record.kind, "body": short, "prev": record.prev, "hash": record.hash}
    return NumberedRecord(record.seq, dumps(whole | members).encode())
