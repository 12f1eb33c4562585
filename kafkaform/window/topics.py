"""What concerns an object, as sections of its page: of a topic its ACLs, quotas, schemas and
connectors, of any other object what it works with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.resource import Identity
from ..core.text.quantity import render_count
from ..state.model import Row, State
from .names import ACL_COLUMNS, Types, link_object, list_values, make_acl_row
from .page import Cell, CellRow, WindowSection, WindowTable, make_link, make_table
from .related import TOPIC, Relation, find_links, find_related

TABLES = ("acls", "quotas", "parts", "users", "links")
"""The parts of the query with the first row of each table."""


def list_related_sections(
    state: State, identity: Identity, types: Types, id: str, firsts: Mapping[str, int]
) -> tuple[WindowSection, ...]:
    """The sections of an object. id: of its page; firsts: part of the query -> first row."""
    if identity.kind == TOPIC:
        return tuple(_list_topic_sections(state, identity, types, id, firsts))
    row = state.objects.get(identity)
    if row is None or not (links := find_links(state, row, types)):
        return ()
    rows = [_make_relation_row(relation) for relation in links]
    columns = ("How", "Object", "Kind", "Provider")
    table = make_table("Recorded objects", columns, rows, firsts["links"], f"objects/{id}", "links")
    return (WindowSection("links", "Works with", tables=(table,)),)


def _list_topic_sections(
    state: State, topic: Identity, types: Types, id: str, firsts: Mapping[str, int]
) -> Iterator[WindowSection]:
    related, path = find_related(state, topic, types), f"objects/{id}"
    access = make_link("access", instance=topic.instance, kind="Topic", name=topic.key)
    concerned = make_link("objects", topic=topic.key)
    lead = "The state records no ACL that covers this topic."
    if related.acls:
        number = render_count(len(related.acls), "recorded ACL")
        lead = f"{number} for this name, for a prefix of it, or for every topic."
    yield WindowSection(
        "acls",
        "ACLs",
        (lead,),
        tables=_make_tables(
            "Covering ACLs, the most specific first",
            ACL_COLUMNS,
            [make_acl_row(row) for row in related.acls],
            path,
            "acls",
            firsts,
        ),
        links=(
            Cell("Who may do what with this topic", access),
            Cell("All objects that concern it", concerned),
        ),
    )
    yield _show_quotas(related.quotas, path, types, firsts)
    yield _show_users(related.users, path, firsts)
    if related.parts:
        rows = [(link_object(row.identity), Cell(row.identity.kind)) for row in related.parts]
        tables = _make_tables("Objects", ("Object", "Kind"), rows, path, "parts", firsts)
        yield WindowSection("parts", "Parts that are managed separately", tables=tables)


def _show_quotas(
    quotas: Sequence[tuple[Row, str]], path: str, types: Types, firsts: Mapping[str, int]
) -> WindowSection:
    lead = (
        "Quotas limit users and clients, not topics. These are of the users whom the ACLs above "
        "allow something."
        if quotas
        else "The state records no quota for a user whom the ACLs above allow something."
    )
    rows = [
        (
            link_object(row.identity),
            Cell("; ".join(_list_limits(row, types)), style="code"),
            Cell(user or "each user without a quota of its own"),
        )
        for row, user in quotas
    ]
    columns = ("Quota", "Limits", "User")
    tables = _make_tables("Quotas of its users", columns, rows, path, "quotas", firsts)
    return WindowSection("quotas", "Quotas", (lead,), tables=tables)


def _list_limits(row: Row, types: Types) -> Iterator[str]:
    for name, text in list_values(row, types):
        attribute, dot, key = name.partition(".")
        if attribute == "config" and dot:
            yield f"{key} = {text}"


def _show_users(users: Sequence[Relation], path: str, firsts: Mapping[str, int]) -> WindowSection:
    rows = [
        (
            link_object(relation.row.identity),
            Cell(relation.row.identity.kind, style="code"),
            Cell(relation.verb),
            Cell(relation.row.identity.instance),
            Cell(", ".join(relation.row.owners), style="code"),
        )
        for relation in users
    ]
    lead = () if users else ("The state records no schema or connector of this topic.",)
    columns = ("Object", "Kind", "How", "Provider", "Addresses")
    tables = _make_tables("Recorded objects", columns, rows, path, "users", firsts)
    return WindowSection("users", "Schemas and connectors", lead, tables=tables)


def _make_relation_row(relation: Relation) -> CellRow:
    return (
        Cell(relation.verb),
        link_object(relation.row.identity),
        Cell(relation.row.identity.kind, style="code"),
        Cell(relation.row.identity.instance),
    )


def _make_tables(
    caption: str,
    columns: tuple[str, ...],
    rows: Sequence[CellRow],
    path: str,
    field: str,
    firsts: Mapping[str, int],
) -> tuple[WindowTable, ...]:
    if not rows:
        return ()
    return (make_table(caption, columns, rows, firsts[field], path, field),)
