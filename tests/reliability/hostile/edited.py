"""Files that somebody edited and sealed again: each member in turn becomes what it must not be."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaform.core import canonical
from kafkaform.core.canonical import from_data
from kafkaform.core.clock import SystemClock
from kafkaform.plan.model import Plan, seal_plan
from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

CONFIGURATION = """
provider "kafka" { bootstrap_servers = ["localhost:9092"] }
resource "kafka_topic" "a" {
  name       = "a"
  partitions = 2
  config     = { "retention.ms" = "1000" }
  owner      = "shop"
  labels     = { team = "shop" }
}
resource "kafka_topic" "b" {
  for_each   = toset(["x"])
  name       = "b.${each.key}"
  partitions = 1
  depends_on = [kafka_topic.a]
}
resource "kafka_quota" "q" {
  client_id = "c"
  config    = { producer_byte_rate = 1000 }
}
resource "kafka_user_scram_credential" "u" {
  username            = "u"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("EDITED_PASSWORD")
  password_wo_version = 1
}
resource "kafka_broker_config" "one" {
  broker_id = 1
  config    = { "log.cleaner.threads" = "2" }
}
output "url" { value = "x" }
output "all" { value = { a = [1, 2.5, true, null] } }
"""

WRONG: tuple[Any, ...] = (
    *(None, True, -1, 0, 7, 1.5, 10**400, "", "x", "\ud800", "\u0000", "a\nb", [], [None], [1]),
    *(["x"], [[]], {}, {"x": None}, {"x": 1}, {"": ""}, {"$secret": "env:X"}, {"$secret": "x"}),
    {"$secret": ""},
)
"""What any member is made to be."""


class NoWait(SystemClock):
    """The time goes on as soon as somebody waits for it."""

    passed = 0.0

    def sleep(self, seconds: float) -> None:
        NoWait.passed += seconds

    def now(self) -> float:
        return super().now() + self.passed

    def monotonic(self) -> float:
        return super().monotonic() + self.passed


def simulate(monkeypatch: pytest.MonkeyPatch, cluster: SimulatedCluster) -> None:
    """Every command of this process finds this cluster, and waits for nothing."""
    for place in ("kafkaform.workflow.workspace", "kafkaform.cli.commands.state"):
        monkeypatch.setattr(f"{place}.SystemClock", NoWait)
    monkeypatch.setenv("EDITED_PASSWORD", "pw-of-nobody")
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))


def edits(data: Any) -> Iterator[tuple[str, Any]]:
    """What was done to the data, and the data after it: each member at every level is made
    something else, left out, or given company. All share what they have in common."""
    for path in _paths(data):
        where = ".".join(map(str, path)) or "all"
        for value in WRONG:
            yield f"{where} = {json.dumps(value)[:30]}", _with(data, path, value)
        if path:
            yield f"{where} left out", _without(data, path)
        found = _at(data, path)
        if isinstance(found, dict):
            yield f"{where} with an unknown member", _with(data, path, {**found, "unknown": 1})
        if isinstance(found, list) and found:
            yield f"{where} with its first twice", _with(data, path, [*found, found[0]])
            yield f"{where} turned round", _with(data, path, found[::-1])
        yield f"{where} inside of a list", _with(data, path, [found])
        yield f"{where} inside of itself", _with(data, path, {"x": found})


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(data, dict):
        for name, inner in data.items():
            yield from _paths(inner, (*path, name))
    elif isinstance(data, list):
        for number, inner in enumerate(data):
            yield from _paths(inner, (*path, number))


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        data = data[step]
    return data


def _with(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = copy.copy(data)
    made[path[0]] = _with(data[path[0]], path[1:], value) if path[1:] else value
    return made


def _without(data: Any, path: tuple[Any, ...]) -> Any:
    made = copy.copy(_at(data, path[:-1]))
    del made[path[-1]]
    return _with(data, path[:-1], made)


def sealed_state(data: Any) -> bytes:
    """The bytes of a state with a checksum that fits, whatever it says."""
    if not isinstance(data, dict):
        return json.dumps(data).encode()
    members = {name: json.dumps(data[name], sort_keys=True) for name in sorted(data)}
    members.pop("checksum", None)
    lines = [f"{json.dumps(name)}:{text}" for name, text in members.items()]
    first, rest = f"{{\n{lines[0]},\n" if lines else "{\n", ",\n".join(lines[1:]) + "\n}\n"
    checksum = hashlib.sha256(f"{first}{rest}".encode()).hexdigest()
    return f'{first}"checksum":"{checksum}",\n{rest}'.encode()


def chained_log(records: list[Any], prev: str = "0" * 64) -> bytes:
    """The bytes of a log whose hashes fit, whatever its records say. prev: the hash of the record
    before them."""
    lines = []
    for record in records:
        if not isinstance(record, dict):
            lines.append(json.dumps(record))
            continue
        parts = {name: value for name, value in record.items() if name != "hash"}
        if "prev" in parts:
            parts["prev"] = prev
        prev = hashlib.sha256(_compact(parts).encode()).hexdigest()
        lines.append(_compact({**parts, "hash": prev}))
    return ("\n".join(lines) + "\n").encode()


def sealed_plan(body: Any, *, approve: bool) -> bytes:
    """The bytes of a plan file with a checksum that fits; approve: and with the approval that
    follows from what it says, if it says enough for one."""
    try:
        plan = canonical.loads(json.dumps(body["plan"]))
        if approve:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                plan = canonical.loads(canonical.dumps(seal_plan(from_data(Plan, plan))))
        whole = {"format": canonical.loads(json.dumps(body["format"])), "plan": plan}
        return f"{canonical.dumps({**whole, 'checksum': canonical.digest(whole)})}\n".encode()
    except (KeyError, TypeError, ValueError, OverflowError):
        return json.dumps(body).encode()


def changed(data: Any, path: str, value: Any) -> Any:
    """The data with another value at `path`, whose steps dots part; `...` leaves the member out."""
    steps = [int(step) if step.isdigit() else step for step in path.split(".")]
    return _without(data, tuple(steps)) if value is ... else _with(data, tuple(steps), value)


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
