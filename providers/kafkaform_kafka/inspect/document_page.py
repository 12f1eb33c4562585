"""The pages of `describe`, one for each document. `--json` prints the documents themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafkaform.core.text.display import Grid, Page
from kafkaform.core.value import FrozenMap

from .cells import cell, config_text, count, entity_text, limit_text, size
from .documents import render_features

Column = tuple[str, Callable[[FrozenMap], str]]


def document_page(document: FrozenMap) -> Page:
    """The page of a document of `describe`."""
    yield from _KINDS[document["kind"]](document)
    if document.get("sizes_unknown"):
        yield f"The sizes are unknown: {document['sizes_unknown']}."
    if document.get("hidden"):
        yield f"Others may be hidden: {document['hidden']}."


def _make_field_renderer(name: str) -> Callable[[FrozenMap], str]:
    return lambda row: cell(row[name])


def _grid(
    rows: Iterable[FrozenMap], columns: Iterable[Column], right: frozenset[int] = frozenset()
) -> Grid:
    columns = tuple(columns)
    head = tuple(name for name, _ in columns)
    return Grid((head, *(tuple(text(row) for _, text in columns) for row in rows)), right)


# ── kinds ───────────────────────────────────────────────────────────────────────────────


def _render_topics(document: FrozenMap) -> Page:
    rows = document["topics"]
    columns: list[Column] = [
        ("Topic", _make_field_renderer("name")),
        ("Partitions", _make_field_renderer("partitions")),
        ("RF", _render_factor),
        ("Problems", _render_problems),
        ("Internal", lambda row: "yes" if row["internal"] else ""),
        ("Id", _make_field_renderer("topic_id")),
    ]
    if rows and "size_bytes" in rows[0]:
        columns.insert(3, ("Size", lambda row: size(row["size_bytes"])))
    if rows:
        yield _grid(rows, columns, frozenset({1, 2}))
    for row in rows:
        if "assignment" in row:
            yield ""
            yield f"Partitions of {row['name']}"
            yield _grid(row["assignment"], _PARTITION)
    yield f"{count(len(rows), 'topic')}."


_PARTITION: tuple[Column, ...] = (
    ("Partition", _make_field_renderer("partition")),
    ("Leader", lambda row: "none" if row["leader"] is None else cell(row["leader"])),
    ("Replicas", _make_field_renderer("replicas")),
    ("In sync", _make_field_renderer("isr")),
    ("Offline", _make_field_renderer("offline")),
)


def _render_factor(row: FrozenMap) -> str:
    """`3`, or `2 to 3` if the partitions differ."""
    low, high = row["fewest_replicas"], row["replication_factor"]
    return cell(high) if low == high else f"{low} to {high}"


def _render_problems(row: FrozenMap) -> str:
    """The problems of the partitions of a topic, the worst first."""
    unread = (
        (row["leaderless"], "without leader"),
        (row["offline_replicas"], "replicas offline"),
        (row["under_replicated"], "under-replicated"),
    )
    problems = [f"{number} {text}" for number, text in unread if number]
    if row["fewest_replicas"] != row["replication_factor"]:
        problems.append("different numbers of replicas")
    if row["throttled"]:
        problems.append("replication throttled")
    return ", ".join(problems)


def _render_configs(document: FrozenMap) -> Page:
    """The columns of KIP-248."""
    noun = _ENTITIES[document["entity_type"]]
    for entity in document["entities"]:
        name = "DEFAULT" if entity["default"] else entity["name"]
        yield f"CONFIGS FOR {noun} {name}"
        yield ""
        if entity["error"]:
            yield f"  They cannot be read: {_render_error(entity['error'])}"
        elif entity["configs"]:
            yield _grid(entity["configs"], _CONFIG, frozenset({0}))
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
    ("Name", _make_field_renderer("name")),
    ("  Value", lambda row: f"= {_render_config_value(row)}"),
    ("Sensitive", _make_field_renderer("sensitive")),
    ("Read-only", _make_field_renderer("read_only")),
    ("Source", lambda row: cell(row["source"]).replace("_", " ").capitalize()),
)


def _render_config_value(row: FrozenMap) -> str:
    if row["sensitive"]:
        return "(sensitive)"
    return "" if row["value"] is None else config_text(row["name"], row["value"])


def _render_error(error: FrozenMap) -> str:
    advice = f" {error['advice']}." if error["advice"] else ""
    return f"{error['message']} ({error['code']}).{advice}"


def _render_acls(document: FrozenMap) -> Page:
    rows = document["acls"]
    if rows:
        yield _grid(rows, _ACL)
    yield f"{count(len(rows), 'ACL')}."


_ACL: tuple[Column, ...] = (
    ("Principal", _make_field_renderer("acl_principal")),
    ("Host", _make_field_renderer("acl_host")),
    ("Permission", _make_field_renderer("acl_permission_type")),
    ("Operation", _make_field_renderer("acl_operation")),
    ("Resource", _make_field_renderer("resource_type")),
    ("Pattern", _make_field_renderer("resource_pattern_type_filter")),
    ("Name", _make_field_renderer("resource_name")),
)


def _render_quotas(document: FrozenMap) -> Page:
    rows = [
        FrozenMap(entity=entity_text(quota["entity"]), key=key, value=value, source=quota["source"])
        for quota in document["quotas"]
        for key, value in sorted(quota["config"].items())
    ]
    if rows:
        yield _grid(rows, _QUOTA)
    yield f"{count(len(document['quotas']), 'quota')}."


_QUOTA: tuple[Column, ...] = (
    ("Entity", _make_field_renderer("entity")),
    ("Name", _make_field_renderer("key")),
    ("  Value", lambda row: f"= {limit_text(row['key'], row['value'])}"),
    ("Source", _make_field_renderer("source")),
)


def _render_users(document: FrozenMap) -> Page:
    rows = [
        credential.with_items({"name": u["name"]})
        for u in document["users"]
        for credential in u["credentials"]
    ]
    if rows:
        yield _grid(rows, _USER)
    yield f"{count(len(document['users']), 'user')} with SCRAM credentials."


_USER: tuple[Column, ...] = (
    ("User", _make_field_renderer("name")),
    ("Mechanism", _make_field_renderer("mechanism")),
    ("Iterations", _make_field_renderer("iterations")),
)


def _render_tokens(document: FrozenMap) -> Page:
    rows = document["delegation-tokens"]
    if rows:
        yield _grid(rows, _TOKEN)
    yield f"{count(len(rows), 'delegation token')}."


_TOKEN: tuple[Column, ...] = (
    ("Id", _make_field_renderer("token_id")),
    ("Owner", _make_field_renderer("owner")),
    ("Requester", _make_field_renderer("requester")),
    ("Renewers", _make_field_renderer("renewers")),
    ("Issued", _make_field_renderer("issued")),
    ("Expires", _make_field_renderer("expires")),
    ("Ends", _make_field_renderer("ends")),
)


def _render_brokers(document: FrozenMap) -> Page:
    yield _grid(document["brokers"], _BROKER)
    yield f"{count(len(document['brokers']), 'broker')}."


_BROKER: tuple[Column, ...] = (
    ("Broker", _make_field_renderer("id")),
    ("Host", _make_field_renderer("host")),
    ("Port", _make_field_renderer("port")),
    ("Rack", _make_field_renderer("rack")),
    ("Kafka", lambda row: _render_release(row["release"], row["metadata_version_max"])),
    ("Fenced", _make_field_renderer("fenced")),
    ("Controller", _make_field_renderer("controller")),
    ("Throttles", lambda row: _render_throttles(row["throttles"])),
)


def _render_throttles(throttles: FrozenMap | None) -> str:
    if throttles is None:
        return cell(None)
    return ", ".join(f"{key} = {config_text(key, value)}" for key, value in throttles.items())


def _render_cluster(document: FrozenMap) -> Page:
    cluster, authorizer = document["cluster"], document["cluster"]["authorizer"]
    rows = (
        ("Cluster id", cell(cluster["id"])),
        ("Controller", cell(cluster["controller_id"])),
        ("Brokers", cell(cluster["brokers"])),
        ("Kafka", _render_release(cluster["kafka_version"], cluster["metadata_version_max"])),
        ("metadata.version", cell(cluster["metadata_version"])),
        *((name, cell(level)) for name, level in _list_features(cluster)),
        ("Connected as", cell(cluster["principal"])),
        ("Your rights on it", cell(cluster["rights"])),
        ("Authorizer", cell(authorizer["class"])),
        ("Super users", _render_known(authorizer["super_users"])),
        ("Open without ACLs", _render_known(authorizer["allow_if_no_acl"])),
    )
    yield Grid(rows)


def _render_release(release: str | None, level: int | None) -> str:
    """The release, or the level of metadata.version where its release is not known."""
    if release is not None or level is None:
        return cell(release)
    return f"not known: its metadata.version is {level}"


def _list_features(cluster: FrozenMap) -> list[tuple[str, int]]:
    return [
        (n, level) for n, level in sorted(cluster["features"].items()) if n != "metadata.version"
    ]


def _render_known(value: Any) -> str:
    unknown = "unknown: brokers do not report it; declare it in the provider block"
    return unknown if value is None else cell(value)


_KINDS: Mapping[str, Callable[[FrozenMap], Page]] = {
    "topics": _render_topics,
    "configs": _render_configs,
    "acls": _render_acls,
    "quotas": _render_quotas,
    "users": _render_users,
    "delegation-tokens": _render_tokens,
    "brokers": _render_brokers,
    "cluster": _render_cluster,
    "features": render_features,
}
