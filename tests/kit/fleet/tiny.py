"""A small fleet of which every way of running Spark must make the same tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kafkaform.fleet.access.permission_rows import make_mask
from kafkaform.fleet.tables.reader import Gold, read_current
from kafkaform.inventory.landing import open_place

from .landings import Landing, log, row, step

ASKED: Mapping[str, str] = {
    "live": "select cluster, kind, key, attrs from live",
    "effective_permissions": "select cluster, resource, pattern_type, principal, effective_mask "
    "from effective_permissions",
}
"""Table -> what is asked of it: maps from landing files, and what an Arrow function makes."""
TABLES = tuple(ASKED)
ONLY = [word for name in TABLES for word in ("--only", name)]
TOPIC = {"partitions": "2"}
ACL = {
    "acl_principal": "User:ci",
    "acl_host": "*",
    "acl_operation": "Read",
    "acl_permission_type": "Allow",
    "resource_type": "Topic",
    "resource_name": "ord",
    "resource_pattern_type_filter": "Prefixed",
}
KEY = "|".join(ACL.values())
READ = make_mask(("Read", "Describe"))


def landed(root: Path, hours: float = 1, clusters: str = "ab") -> Path:
    """Snapshots of two clusters; the first time with a register, a state and its log."""
    landing = Landing(root / "landing")
    topic, acl = row("kafka_topic", "orders", TOPIC), row("kafka_acl", KEY, ACL)
    covered = {"kafka_topic": "complete", "kafka_acl": "complete"}
    for name in clusters:
        about: dict[str, Any] = {"scope_id": f"scope-{name}", "coverage": covered}
        landing.snapshot("live", name, hours, [topic, acl], **about)
    if hours == 1:
        landing.register(0, clusters=[{"name": "a"}, {"name": "b"}])
        own = {**topic, "instance": "kafka", "scope_id": "scope-a", "address": "kafka_topic.orders"}
        landing.snapshot("state", "l", 1, [own], scopes={"kafka": "scope-a"})
        landing.audit("l", 1, log("l", [("intent", "r", step("orders"))]))
    return root


def land_in(root: str, folder: Path) -> None:
    """Copy what has landed into a root that is no folder."""
    place = open_place(f"{root}/")
    for path in (path for path in folder.rglob("*") if path.is_file()):
        place.create(path.relative_to(folder).as_posix(), path.read_bytes())


def expected() -> dict[str, list[str]]:
    """What `rows` must find."""
    things = (("kafka_topic", "orders", TOPIC), ("kafka_acl", KEY, _sorted(ACL)))
    live = [(name, *thing) for name in "ab" for thing in things]
    may = [(name, "ord*", "Prefixed", "User:ci", READ) for name in "ab"]
    return {"live": sorted(map(repr, live)), "effective_permissions": sorted(map(repr, may))}


def rows(root: str) -> dict[str, list[str]]:
    """What the current build says, in an order of its own."""
    gold = Gold(read_current(root))
    return {name: in_order(gold.read_rows(sql)) for name, sql in ASKED.items()}


def in_order(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows as texts; of maps, the order says nothing."""
    return sorted(repr(tuple(_sorted(value) for value in row.values())) for row in found)


def _sorted(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value
