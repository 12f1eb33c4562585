"""The pages of `describe`, one for each document. `--json` prints the documents themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkaform.core.text import Grid, Page
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Column, cell, make_grid, render_field

from .broker_disks import render_disks
from .cells import config_text, count, entity_text, limit_text, size
from .documents import render_features


def document_page(document: FrozenMap) -> Page:
    """The page of a document of `describe`."""
    yield from _KINDS[document["kind"]](document)
    if document.get("sizes_unknown"):
        yield f"The sizes are unknown: {document['sizes_unknown']}."
    if document.get("hidden"):
        yield f"Others may be hidden: {document['hidden']}."


# ── kinds ───────────────────────────────────────────────────────────────────────────────


def _render_topics(document: FrozenMap) -> Page:
    rows = document["topics"]
    columns: list[Column] = [
        ("Topic", render_field("name")),
        ("Partitions", render_field("partitions")),
        ("RF", _render_factor),
        ("Problems", _render_problems),
        ("Internal", lambda row: "yes" if row["internal"] else ""),
        ("Id", render_field("topic_id")),
    ]
    if rows and "size_bytes" in rows[0]:
        columns.insert(3, ("Size", lambda row: size(row["size_bytes"])))
    if rows:
        yield make_grid(rows, columns, frozenset({1, 2}))
    for row in rows:
        if "assignment" in row:
            yield ""
            yield f"Partitions of {row['name']}"
            yield make_grid(row["assignment"], _PARTITION)
    yield f"{count(len(rows), 'topic')}."


_PARTITION: tuple[Column, ...] = (
    ("Partition", render_field("partition")),
    ("Leader", lambda row: "none" if row["leader"] is None else cell(row["leader"])),
    ("Replicas", render_field("replicas")),
    ("In sync", render_field("isr")),
    ("Offline", render_field("offline")),
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
            yield make_grid(entity["configs"], _CONFIG, frozenset({0}))
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
    ("Name", render_field("name")),
    ("  Value", lambda row: f"= {_render_config_value(row)}"),
    ("Sensitive", render_field("sensitive")),
    ("Read-only", render_field("read_only")),
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
        yield make_grid(rows, _ACL)
    yield f"{count(len(rows), 'ACL')}."


_ACL: tuple[Column, ...] = (
    ("Principal", render_field("acl_principal")),
    ("Host", render_field("acl_host")),
    ("Permission", render_field("acl_permission_type")),
    ("Operation", render_field("acl_operation")),
    ("Resource", render_field("resource_type")),
    ("Pattern", render_field("resource_pattern_type_filter")),
    ("Name", render_field("resource_name")),
)


def _render_quotas(document: FrozenMap) -> Page:
    rows = [
        FrozenMap(entity=entity_text(quota["entity"]), key=key, value=value, source=quota["source"])
        for quota in document["quotas"]
        for key, value in sorted(quota["config"].items())
    ]
    if rows:
        yield make_grid(rows, _QUOTA)
    yield f"{count(len(document['quotas']), 'quota')}."


_QUOTA: tuple[Column, ...] = (
    ("Entity", render_field("entity")),
    ("Name", render_field("key")),
    ("  Value", lambda row: f"= {limit_text(row['key'], row['value'])}"),
    ("Source", render_field("source")),
)


def _render_users(document: FrozenMap) -> Page:
    rows = [
        credential.with_items({"name": u["name"]})
        for u in document["users"]
        for credential in u["credentials"]
    ]
    if rows:
        yield make_grid(rows, _USER)
    yield f"{count(len(document['users']), 'user')} with SCRAM credentials."


_USER: tuple[Column, ...] = (
    ("User", render_field("name")),
    ("Mechanism", render_field("mechanism")),
    ("Iterations", render_field("iterations")),
)


def _render_tokens(document: FrozenMap) -> Page:
    rows = document["delegation-tokens"]
    if rows:
        yield make_grid(rows, _TOKEN)
    yield f"{count(len(rows), 'delegation token')}."


_TOKEN: tuple[Column, ...] = (
    ("Id", render_field("token_id")),
    ("Owner", render_field("owner")),
    ("Requester", render_field("requester")),
    ("Renewers", render_field("renewers")),
    ("Issued", render_field("issued")),
    ("Expires", render_field("expires")),
    ("Ends", render_field("ends")),
)


def _render_brokers(document: FrozenMap) -> Page:
    yield make_grid(document["brokers"], _BROKER)
    yield f"{count(len(document['brokers']), 'broker')}."
    if "gaps" in document:
        yield ""
        yield from render_disks(document)


_BROKER: tuple[Column, ...] = (
    ("Broker", render_field("id")),
    ("Host", render_field("host")),
    ("Port", render_field("port")),
    ("Rack", render_field("rack")),
    ("Kafka", lambda row: _render_release(row["release"], row["metadata_version_max"])),
    ("Fenced", render_field("fenced")),
    ("Controller", render_field("controller")),
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
        *(
            (name, cell(level))
            for name, level in sorted(cluster["features"].items())
            if name != "metadata.version"
        ),
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
