"""The pages of the window as data, and their rendering.

A page is sections of facts, forms and tables. Nothing in it is escaped: `html/document.py` makes
foreign text harmless when it is rendered. Every page names objects, writes values and shows times
(UTC, to the second) with the functions here, so that all pages use the same words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import urlencode

from msgspec import Struct

from kafkaform_kafka.kinds.quota.limits import entity_text
from kafkaform_kafka.kinds.quota.resource_type import KIND as QUOTA
from kafkaform_kafka.kinds.quota.resource_type import parse_entity_key
from kafkaform_kafka.protocol.acl import KIND as ACL
from kafkaform_kafka.protocol.acl import describe_acl, parse_acl_key

from ..core.change import Action, Path, PathChange
from ..core.resource import Identity
from ..core.value import FrozenMap
from ..html.document import make_environment, render_document
from ..provider.contract import ResourceType
from ..render.attributes import are_long, render_sides
from ..render.change_lines import render_brief
from ..render.text import SENSITIVE, mask_value
from ..state.model import Row

LONGEST = 2_000
"""Characters of a text that a page shows."""
ROWS = 200
"""Rows of a table on one page."""
ID_LENGTH = 20

MENU: Mapping[str, str] = {
    "": "Overview",
    "plans": "Plans",
    "drift": "Drift",
    "objects": "Objects",
    "log": "Audit log",
    "access": "Who may do what",
    "fleet": "Fleet",
}
"""Path of a page that all pages link to -> its name."""
REPOSITORY_MENU: Mapping[str, str] = {"": "Folders", "fleet": "Fleet"}
"""The same of a repository."""


class Cell(Struct, frozen=True):
    """A text on a page."""

    text: str
    link: str = ""
    """The path of the page that it leads to."""
    style: str = ""
    """`code`, `number`, or the colour of a chip: `bad`, `warn`, `note`, `good`."""


CellRow: TypeAlias = tuple[Cell, ...]


class WindowTable(Struct, frozen=True):
    """A table with a caption."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[CellRow, ...]
    total: int
    """How many rows there are, also those that are not shown."""
    row_links: tuple[Cell, ...] = ()
    """Links to earlier and later rows."""


class Choice(Struct, frozen=True):
    """A field with given answers."""

    name: str
    label: str
    value: str
    options: Mapping[str, str]
    """Value -> text."""


class Blank(Struct, frozen=True):
    """A field for text."""

    name: str
    label: str
    value: str
    hint: str = ""


class Form(Struct, frozen=True):
    """Fields that ask for another version of a page."""

    path: str
    label: str
    fields: tuple[Choice | Blank, ...]
    button: str
    method: str = "get"
    """`post` for a form that asks a system."""


class WindowSection(Struct, frozen=True):
    """One part of a page."""

    id: str
    title: str
    lead: tuple[str, ...] = ()
    """Paragraphs."""
    warning: str = ""
    facts: tuple[tuple[str, Cell], ...] = ()
    form: Form | None = None
    tables: tuple[WindowTable, ...] = ()
    links: tuple[Cell, ...] = ()


class WindowPage(Struct, frozen=True):
    """One page."""

    menu_path: str
    """The key of MENU to which it belongs."""
    title: str
    subtitle: str
    sections: tuple[WindowSection, ...]


class Trail(Struct, frozen=True):
    """The way to a folder of a repository."""

    repository: str
    """Its name."""
    link: str
    """The path of its page, with the root."""
    folder: str


def render_page(
    page: WindowPage, root: str, menu: Mapping[str, str] = MENU, trail: Trail | None = None
) -> str:
    """The page as HTML. root: the path of the overview, which ends with a slash; trail: the way to
    the folder, if it is one of a repository."""
    pages = make_environment(
        "kafkaform.window",
        {
            "number": lambda value: f"{value:,}",
            "clip": clip_text,
            "link": lambda path: f"{root}{path}",
        },
    )
    pages.tests |= {"choice": lambda field: isinstance(field, Choice)}
    return render_document(
        pages, "window.html.j2", "window.css.j2", page=page, menu=menu, trail=trail
    )


def clip_text(text: str) -> str:
    """The text, or its beginning and its length."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … ({len(text):,} characters)"


def make_id(*words: str) -> str:
    """The name of a thing in paths. Names of the outside world do not stand in them."""
    text = "\0".join(words)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_LENGTH]


def make_link(path: str, **query: str | int) -> str:
    """A path with a query, without the empty parts of it."""
    fields = {name: value for name, value in query.items() if value not in ("", 0)}
    if not fields:
        return path
    return f"{path}?{urlencode(fields, errors='surrogatepass')}"


def cut_rows(total: int, first: int) -> slice:
    """The rows to show from this one on."""
    start = min(max(first, 0), max(total - 1, 0)) // ROWS * ROWS
    return slice(start, start + ROWS)


def make_pager(
    path: str, row_slice: slice, total: int, field: str = "first", **query: str
) -> tuple[Cell, ...]:
    """Links to the rows before and after these. field: the part of the query with their number."""
    links = []
    if row_slice.start > 0:
        earlier_link = make_link(path, **query, **{field: row_slice.start - ROWS})
        links.append(
            Cell(f"Rows {row_slice.start - ROWS + 1:,} to {row_slice.start:,}", earlier_link)
        )
    if row_slice.stop < total:
        later_link = make_link(path, **query, **{field: row_slice.stop})
        last = min(row_slice.stop + ROWS, total)
        links.append(Cell(f"Rows {row_slice.stop + 1:,} to {last:,}", later_link))
    return tuple(links)


def make_table(
    caption: str,
    columns: tuple[str, ...],
    rows: Sequence[CellRow],
    first: int = 0,
    path: str = "",
    field: str = "first",
    **query: str,
) -> WindowTable:
    """A table of the rows from `first` on. path, query: of the page, for the links to others.
    field: the part of the query with `first`; each table of a page has its own."""
    row_slice = cut_rows(len(rows), first)
    pager = make_pager(path, row_slice, len(rows), field, **query)
    return WindowTable(caption, columns, tuple(rows[row_slice]), len(rows), pager)


def make_fault_page(title: str, message: str, advice: str = "") -> WindowPage:
    """The page that says why there is no other one."""
    return WindowPage("", title, "", (WindowSection("fault", title, (advice,), message),))


Types = Mapping[str, ResourceType]
"""Resource type -> what its provider says of it."""


ACL_COLUMNS = ("ACL", "Addresses", "Owner")
_SENTENCES: Mapping[str, Callable[[str], str]] = {
    ACL: lambda key: describe_acl(parse_acl_key(key)),
    QUOTA: lambda key: entity_text(parse_entity_key(key)),
}
"""Resource type -> its key in words. Raises ValueError for a key that no such object has."""


def describe_object(identity: Identity) -> str:
    """What an object is called: an ACL as a sentence, a quota by whom it limits, others by key."""
    describe = _SENTENCES.get(identity.kind)
    try:
        return describe(identity.key) if describe else identity.key
    except ValueError:
        # A newer version can have written it, or somebody by hand.
        return identity.key


def link_object(identity: Identity, identities: Collection[Identity] | None = None) -> Cell:
    """An object with a link to its page. identities: the objects that have pages, None for all."""
    linked = identities is None or identity in identities
    return Cell(describe_object(identity), f"objects/{make_id(str(identity))}" if linked else "")


def make_acl_row(row: Row) -> CellRow:
    """A recorded ACL for a table with the columns `ACL_COLUMNS`."""
    addresses = Cell(", ".join(row.owners), style="code")
    return link_object(row.identity), addresses, Cell(row.owner or "")


def describe_paths(
    kind: str, action: str, paths: Collection[Mapping[str, Any]], types: Types
) -> tuple[str, ...]:
    """The paths of a record of a step, each with its values and their units: of a new object
    `partitions = 12`, otherwise `partitions: 6 → 12`. An ACL has no paths that its sentence does
    not say."""
    if kind == ACL:
        return ()
    find_unit = types[kind].unit if kind in types else None
    return tuple(_describe_path(item, action, find_unit) for item in paths)


def _describe_path(
    change: Mapping[str, Any], action: str, find_unit: Callable[[Path], str] | None
) -> str:
    if change["sensitive"]:
        return f"{change['path']} = {SENSITIVE}"
    # The first dot ends the name of the attribute (docs/formats/audit.md).
    attribute, dot, key = str(change["path"]).partition(".")
    path = (attribute, key) if dot else (attribute,) if attribute else ()
    unit = find_unit(path) if find_unit and path else ""
    item = PathChange(path, change["before"], change["after"], unit=unit)
    if path and action == Action.CREATE:
        return f"{change['path']} = {mask_value(item.after, False, unit)}"
    if not path or are_long(item.before, item.after):
        return render_brief(item)
    return f"{change['path']}: {render_sides(item, whole=True)}"


def list_values(row: Row, types: Types) -> Iterator[tuple[str, str]]:
    """Each recorded attribute, and each key of a map, with its value and unit."""
    find_unit = types[row.identity.kind].unit if row.identity.kind in types else None
    for name, item in sorted(row.attributes.items()):
        if isinstance(item, FrozenMap) and item:
            for key, inner in sorted(item.items()):
                unit = find_unit((name, key)) if find_unit else ""
                yield f"{name}.{key}", mask_value(inner, False, unit)
        else:
            yield name, mask_value(item, False, find_unit((name,)) if find_unit else "")


def render_moment(time: str) -> str:
    """`2026-01-02 03:04:05` for RFC 3339 text; a text that is no time stays as it is."""
    try:
        return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        # States and logs can have been written by anybody; the page is shown all the same.
        return time
