"""What a cluster told, as tables for people.

A document is what `--json` prints: names in it are foreign, so each cell goes through `inline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from ..core.canonical import number_text
from ..core.cell_width import cell_width
from ..core.value import FrozenMap
from .text import count, inline, table, wrapped

Column = tuple[str, Callable[[FrozenMap], str]]
NOTHING = "-"
NARROWEST = 12
"""Columns that a cell keeps however small the terminal is."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def lines(document: FrozenMap, width: int | None = None) -> Iterator[str]:
    """The document for people, line by line. width: of the terminal, None for a pipe, where
    nothing is cut off."""
    yield from _KINDS[document["kind"]](document, width)
    if document.get("sizes_unknown"):
        yield f"Sizes are not known: {inline(document['sizes_unknown'])}."
    if document.get("hidden"):
        yield f"Others may be hidden: {inline(document['hidden'])}."


# ── cells ───────────────────────────────────────────────────────────────────────────────


def cell(value: Any) -> str:
    """One value of a document, on one line; what is not known is a dash."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(cell, value)) or NOTHING
    return inline(value) if isinstance(value, str) else number_text(value)


def _field(name: str) -> Callable[[FrozenMap], str]:
    return lambda row: cell(row[name])


def size(number: int | None) -> str:
    """Bytes in the largest unit that leaves a whole part."""
    if number is None:
        return NOTHING
    amount, unit = float(number), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{number} B"


def _table(
    rows: Iterable[FrozenMap],
    columns: Iterable[Column],
    width: int | None,
    right: frozenset[int] = frozenset(),
) -> list[str]:
    columns = tuple(columns)
    texts = [[name for name, _ in columns]]
    texts += [[text(row) for _, text in columns] for row in rows]
    return table(fitted(texts, width), right)


def fitted(rows: list[list[str]], width: int | None) -> list[list[str]]:
    """The rows with their widest cells wrapped, into rows below, until a line fits."""
    if width is None or not rows:
        return rows
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > NARROWEST:
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        widest = widths.index(max(widths))
        others = max((w for n, w in enumerate(widths) if n != widest), default=0)
        widths[widest] = max(NARROWEST, widths[widest] - excess, min(others, widths[widest] - 1))
    return [list(line) for row in rows for line in _broken(row, widths)]


def _broken(row: list[str], widths: list[int]) -> Iterable[tuple[str, ...]]:
    """One row as several, so that no cell is wider than its column."""
    parts = [wrapped(text, width) for text, width in zip(row, widths, strict=True)]
    return zip_longest(*parts, fillvalue="")


# ── kinds ───────────────────────────────────────────────────────────────────────────────


def _topics(document: FrozenMap, width: int | None) -> Iterator[str]:
    rows = document["topics"]
    columns: list[Column] = [
        ("Topic", _field("name")),
        ("Partitions", _field("partitions")),
        ("RF", _field("replication_factor")),
        ("Problems", _problems),
        ("Internal", lambda row: "yes" if row["internal"] else ""),
        ("Id", _field("topic_id")),
    ]
    if rows and "size_bytes" in rows[0]:
        columns.insert(3, ("Size", lambda row: size(row["size_bytes"])))
    if rows:
        yield from _table(rows, columns, width, frozenset({1, 2}))
    for row in rows:
        if "assignment" in row:
            yield ""
            yield f"Partitions of {inline(row['name'])}"
            yield from _table(row["assignment"], _PARTITION, width)
    yield f"{count(len(rows), 'topic')}."


_PARTITION: tuple[Column, ...] = (
    ("Partition", _field("partition")),
    ("Leader", lambda row: "none" if row["leader"] is None else cell(row["leader"])),
    ("Replicas", _field("replicas")),
    ("In sync", _field("isr")),
    ("Offline", _field("offline")),
)


def _problems(row: FrozenMap) -> str:
    """What is wrong with the topic's partitions, worst first."""
    found = (
        (row["leaderless"], "without leader"),
        (row["offline_replicas"], "replicas offline"),
        (row["under_replicated"], "under-replicated"),
    )
    return ", ".join(f"{number} {text}" for number, text in found if number)


def _configs(document: FrozenMap, width: int | None) -> Iterator[str]:
    """The columns of KIP-248."""
    what = _ENTITIES[document["entity_type"]]
    for entity in document["entities"]:
        name = "DEFAULT" if entity["default"] else inline(entity["name"])
        yield f"CONFIGS FOR {what} {name}"
        yield ""
        if entity["error"]:
            yield f"  They cannot be read: {_error(entity['error'])}"
        elif entity["configs"]:
            yield from _table(entity["configs"], _CONFIG, width, frozenset({0}))
        else:
            yield "  Nothing is set."
        yield ""
    if not document["entities"]:
        yield "Nothing has configs here."


_ENTITIES = {
    "topics": "TOPIC",
    "brokers": "BROKER",
    "groups": "GROUP",
    "client-metrics": "CLIENT METRICS",
}
_CONFIG: tuple[Column, ...] = (
    ("Name", _field("name")),
    ("  Value", lambda row: f"= {_config_value(row)}"),
    ("Sensitive", _field("sensitive")),
    ("Read-only", _field("read_only")),
    ("Source", lambda row: cell(row["source"]).replace("_", " ").capitalize()),
)


def _config_value(row: FrozenMap) -> str:
    if row["sensitive"]:
        return "(sensitive)"
    return "" if row["value"] is None else inline(row["value"])


def _error(error: FrozenMap) -> str:
    advice = f" {inline(error['advice'])}." if error["advice"] else ""
    return f"{inline(error['message'])} ({inline(error['code'])}).{advice}"


def _acls(document: FrozenMap, width: int | None) -> Iterator[str]:
    rows = document["acls"]
    if rows:
        yield from _table(rows, _ACL, width)
    yield f"{count(len(rows), 'ACL')}."


_ACL: tuple[Column, ...] = (
    ("Principal", _field("acl_principal")),
    ("Host", _field("acl_host")),
    ("Permission", _field("acl_permission_type")),
    ("Operation", _field("acl_operation")),
    ("Resource", _field("resource_type")),
    ("Pattern", _field("resource_pattern_type_filter")),
    ("Name", _field("resource_name")),
)


def _quotas(document: FrozenMap, width: int | None) -> Iterator[str]:
    rows = [
        FrozenMap(entity=entity_text(quota["entity"]), key=key, value=value, source=quota["source"])
        for quota in document["quotas"]
        for key, value in sorted(quota["config"].items())
    ]
    if rows:
        yield from _table(rows, _QUOTA, width)
    yield f"{count(len(document['quotas']), 'quota')}."


_QUOTA: tuple[Column, ...] = (
    ("Entity", _field("entity")),
    ("Name", _field("key")),
    ("  Value", lambda row: f"= {cell(row['value'])}"),
    ("Source", _field("source")),
)


def entity_text(entity: Mapping[str, str | None]) -> str:
    """`user "ci", client-id default`."""
    return ", ".join(
        f"{part} default" if name is None else f'{part} "{name}"'
        for part, name in sorted(entity.items(), reverse=True)
    )


def _users(document: FrozenMap, width: int | None) -> Iterator[str]:
    rows = [
        held.with_items({"name": u["name"]}) for u in document["users"] for held in u["credentials"]
    ]
    if rows:
        yield from _table(rows, _USER, width)
    yield f"{count(len(document['users']), 'user')} with SCRAM credentials."


_USER: tuple[Column, ...] = (
    ("User", _field("name")),
    ("Mechanism", _field("mechanism")),
    ("Iterations", _field("iterations")),
)


def _brokers(document: FrozenMap, width: int | None) -> Iterator[str]:
    yield from _table(document["brokers"], _BROKER, width)
    yield f"{count(len(document['brokers']), 'broker')}."


_BROKER: tuple[Column, ...] = (
    ("Broker", _field("id")),
    ("Host", _field("host")),
    ("Port", _field("port")),
    ("Rack", _field("rack")),
    ("Kafka", _field("release")),
    ("Fenced", _field("fenced")),
    ("Controller", _field("controller")),
)


def _cluster(document: FrozenMap, width: int | None) -> Iterator[str]:
    cluster, authorizer = document["cluster"], document["cluster"]["authorizer"]
    rows = [
        ["Cluster id", cell(cluster["id"])],
        ["Controller", cell(cluster["controller_id"])],
        ["Brokers", cell(cluster["brokers"])],
        ["metadata.version", cell(cluster["metadata_version"])],
        *([name, cell(level)] for name, level in _features(cluster)),
        ["We are", cell(cluster["principal"])],
        ["Our rights on it", cell(cluster["rights"])],
        ["Authorizer", cell(authorizer["class"])],
        ["Super users", _known(authorizer["super_users"])],
        ["Open without ACLs", _known(authorizer["allow_if_no_acl"])],
    ]
    yield from table(fitted(rows, width))


def _features(cluster: FrozenMap) -> list[tuple[str, int]]:
    return [
        (n, level) for n, level in sorted(cluster["features"].items()) if n != "metadata.version"
    ]


def _known(value: Any) -> str:
    return "unknown: brokers do not tell it, a provider block may" if value is None else cell(value)


_KINDS: Mapping[str, Callable[[FrozenMap, int | None], Iterator[str]]] = {
    "topics": _topics,
    "configs": _configs,
    "acls": _acls,
    "quotas": _quotas,
    "users": _users,
    "brokers": _brokers,
    "cluster": _cluster,
}
