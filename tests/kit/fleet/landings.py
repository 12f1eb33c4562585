"""Landing files for tests, and logs that are sealed as the journal seals them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafkaform.audit.records import encode, render_time, seal_record
from kafkaform.core.canonical import dumps
from kafkaform.core.head import GENESIS, Head
from kafkaform.core.landing import FORMAT, META, ROWS
from kafkaform.core.value import FrozenMap, freeze
from kafkaform.inventory.landing import make_snapshot_name

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""
HOUR = 3600.0


def at(hours: float) -> str:
    """RFC 3339, so many hours after START."""
    return render_time(START + hours * HOUR)


@dataclass(frozen=True)
class Landing:
    """root: the landing folder itself."""

    root: Path

    def files(self) -> tuple[str, ...]:
        return tuple(
            sorted(
                (Path(folder) / name).relative_to(self.root).as_posix()
                for folder, _, names in os.walk(self.root)
                for name in names
            )
        )

    def write(self, name: str, data: bytes) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return name

    def snapshot(
        self,
        source: str,
        subject: str,
        hours: float,
        rows: Sequence[Mapping[str, Any]] | None,
        /,
        **meta: Any,
    ) -> str:
        """One that was whole so many hours after START; rows None: it failed. Its stem."""
        name = f"{meta.pop('snapshot', f'{hours:08.3f}')}"
        stem = f"{source}/{subject}/{name}"
        about: dict[str, Any] = {
            **{"source": source, "subject": subject, "snapshot": name, "format": FORMAT},
            **{"started": at(hours - 0.01), "ended": at(hours), "complete": rows is not None},
            **{"coverage": {}, "scopes": {}, "rows": 0},
        }
        if rows is not None:
            data = b"".join(dumps(row).encode() + b"\n" for row in rows)
            about |= {"rows": len(rows), "sha256": hashlib.sha256(data).hexdigest()}
            self.write(stem + ROWS, data)
        self.write(stem + META, dumps(about | meta).encode() + b"\n")
        return stem

    def audit(self, lineage: str, first: int, lines: Sequence[bytes]) -> str:
        name = f"audit/{lineage}/{first:012d}-{first + len(lines) - 1:012d}{ROWS}"
        return self.write(name, b"".join(line + b"\n" for line in lines))

    def register(self, hours: float, **said: Any) -> str:
        empty = dict.fromkeys(("clusters", "states", "owners", "principals", "rules", "naming"), ())
        about = {"format": FORMAT, "taken": at(hours), "rates": None, "settings": {}, **empty}
        name = make_snapshot_name(START + hours * HOUR)
        return self.write(f"register/{name}.json", dumps(about | said).encode() + b"\n")


def row(kind: str, key: str, attrs: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """A line of a snapshot."""
    return {"kind": kind, "key": key, "attrs": dict(attrs), **more}


def log(
    lineage: str, records: Iterable[tuple[str, str, Mapping[str, Any]]], head: Head = GENESIS
) -> list[bytes]:
    """Lines of (kind, run, body), an hour apart; the body's `_time` and `_actor` are the record's
    own."""
    lines = []
    for kind, run, members in records:
        body = {name: value for name, value in members.items() if not name.startswith("_")}
        when = members.get("_time", at(head.seq))
        actor = members.get("_actor", "ada@ci")
        frozen = FrozenMap({n: freeze(v) for n, v in {**body, "lineage": lineage}.items()})
        record = seal_record(head, time=when, run=run, actor=actor, kind=kind, body=frozen)
        lines.append(encode(record))
        head = Head(record.seq, record.hash)
    return lines


def step(key: str, **more: Any) -> dict[str, Any]:
    """The body of an intent; an outcome has `outcome`, too."""
    body = {
        **{"instance": "kafka", "scope_id": "scope-a", "kind": "kafka_topic", "key": key},
        **{"address": f"kafka_topic.{key}", "action": "update", "adopts": False},
        **{"incarnation": None, "phase": "1.1 X", "step": f"kafka/kafka_topic/{key}#0"},
        **{"attempt": 1, "plan": "c3", "approval": "a1", "error": None, "duration_ms": 5},
        "paths": [{"path": "partitions", "before": 1, "after": 2, "sensitive": False}],
    }
    return {**body, **more}


# -- the same as rows of tables


def moment(hours: float) -> datetime:
    return datetime.fromtimestamp(START + hours * HOUR, UTC)


def audit_rows(lineage: str, lines: Iterable[bytes], **more: Any) -> list[dict[str, Any]]:
    """`audit_raw` of lines that are records."""
    found = []
    for line in lines:
        record = json.loads(line)
        about = {"line": line.decode(), "lineage": lineage, "origin": "file", **STAMPS}
        body = line.decode().partition('"body":')[2].rpartition(',"hash":')[0]
        about["scope_id"] = record["body"].get("scope_id")
        found.append(about | record | {"body": body, "_file": f"audit/{lineage}/1.jsonl"} | more)
    return found


def snapshot_rows(
    source: str,
    subject: str,
    hours: float,
    rows: Sequence[Mapping[str, Any]] | None,
    /,
    **meta: Any,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of `snapshot`, and those of `snapshot_raw`."""
    name = meta.pop("snapshot", f"{hours:08.3f}")
    about = {"source": source, "subject": subject, "snapshot": name, **STAMPS}
    about |= {"captured_at": moment(hours), "_file": f"{source}/{subject}/{name}{ROWS}"}
    one: dict[str, Any] = {
        **{"started_at": moment(hours), "complete": rows is not None, "rows": len(rows or ())},
        **{"sha256": None if rows is None else "f0", "coverage": {}, "scopes": {}},
    }
    return about | one | meta, [about | dict(item) for item in rows or ()]


STAMPS: Mapping[str, Any] = {"_build": "b1", "_ingested_at": moment(0)}


def collected(frame: Any) -> list[dict[str, Any]]:
    """All rows, with times in UTC and what is nested as plain dicts and tuples."""
    return [{n: _plain(v) for n, v in row.asDict().items()} for row in frame.collect()]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, list):
        return tuple(item.asDict() if hasattr(item, "asDict") else item for item in value)
    return value


def in_order(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows to be compared whatever their order is; one that differs shows in the difference."""
    return sorted(repr(_ordered(row)) for row in rows)


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [(name, _ordered(value[name])) for name in sorted(value)]
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    return value
