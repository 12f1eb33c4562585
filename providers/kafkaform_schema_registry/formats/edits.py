"""One difference between two schemas of any format. Shorter than a module should be, because it is
the noun that three formats and their rules share."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class EditKind(StrEnum):
    """What differs, as far as readers and writers care."""

    FIELD_ADDED = "field-added"
    FIELD_DEMANDED = "field-demanded"
    """A field that old data does not have, and for which readers have no default."""
    FIELD_REMOVED = "field-removed"
    FIELD_RENAMED = "field-renamed"
    """Of protobuf: the same number has another name."""
    TYPE_CHANGED = "type-changed"
    SYMBOL_ADDED = "symbol-added"
    SYMBOL_REMOVED = "symbol-removed"
    NAME_CHANGED = "name-changed"
    """Of the record, message, package or other named type."""
    VALUES_LIMITED = "values-limited"
    """Of JSON: values or properties that were allowed are not any more."""
    REMARK = "remark"
    """Something that decides nothing: documentation, order, a default."""


class SchemaEdit(Struct, frozen=True):
    """One difference."""

    kind: EditKind
    path: str
    """The field: `address.zip`, `lines[].sku`, `Order.id`; empty for the schema as a whole."""
    text: str
    """The difference as a part of a sentence."""
    before: str = ""
    """The old side for people: `long`; empty if there was none."""
    after: str = ""
    """The new side; empty if there is none."""


SIGNS = {True: "+", False: "-", None: "~"}


def write_edit(edit: SchemaEdit) -> str:
    """The difference on one line, with both sides: `~ amount: int → long`."""
    sign = SIGNS[None if bool(edit.before) == bool(edit.after) else bool(edit.after)]
    sides = " → ".join(filter(None, (edit.before, edit.after)))
    if not sides:
        return f"{sign} {edit.text}"
    return f"{sign} {edit.path or 'the schema'}: {sides}"
