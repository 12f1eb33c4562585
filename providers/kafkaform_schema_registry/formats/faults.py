"""What is said about schemas of any format: one fault of a schema, and one difference between two
of them."""

from __future__ import annotations

import json
import os.path
from enum import StrEnum
from typing import Any

from msgspec import Struct

from kafkaform.provider.http.exchange import parse_json


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


MAX_SHOWN = 60
"""Characters of a value."""
_BEFORE = 12
"""Characters that are shown before the first difference of two long values."""


def cut_sides(before: str, after: str) -> tuple[str, str]:
    """Two texts without what is too long to be read. Long ones begin shortly before their first
    difference, so that it can be seen."""
    start = 0
    if min(len(before), len(after)) > MAX_SHOWN:
        shared = len(os.path.commonprefix((before, after)))
        start = max(shared - _BEFORE, 0) if shared > MAX_SHOWN - _BEFORE else 0
    return _cut_side(before, start), _cut_side(after, start)


def _cut_side(text: str, start: int) -> str:
    part = text[start : start + MAX_SHOWN]
    return f"{'…' if start else ''}{part}{'…' if start + MAX_SHOWN < len(text) else ''}"


SIGNS = {True: "+", False: "-", None: "~"}


def write_edit(edit: SchemaEdit) -> str:
    """The difference on one line, with both sides: `~ amount: int → long`."""
    sign = SIGNS[None if bool(edit.before) == bool(edit.after) else bool(edit.after)]
    sides = " → ".join(filter(None, (edit.before, edit.after)))
    if not sides:
        return f"{sign} {edit.text}"
    return f"{sign} {edit.path or 'the schema'}: {sides}"


Place = tuple[str | int, ...]
"""The keys and indices that lead to a value of a JSON document."""
MAX_FAULTS = 10
"""Of one schema. More of them have the same cause, or are found in the next run."""

_DECODER = json.JSONDecoder()
_BLANKS = " \t\r\n"


class SchemaFault(Struct, frozen=True):
    """Why a text is no schema of its format."""

    text: str
    """A part of a sentence: `there is no type "strng"`."""
    line: int = 0
    """Where it is in the text, from 1; 0 if that is not known."""
    column: int = 0
    """The same within its line, in characters."""
    fix: str = ""
    """What the user can do, if that is known: `Did you mean "string"?`."""


class PlacedFault(Struct, frozen=True):
    """A fault of a JSON document."""

    text: str
    place: Place
    fix: str = ""

    def locate(self, text: str) -> SchemaFault:
        """The fault in the text of the document."""
        return locate_fault(text, self.text, find_offset(text, self.place), self.fix)


def locate_fault(text: str, fault: str, offset: int, fix: str = "") -> SchemaFault:
    """The fault at a character of the text. offset: from 0."""
    before = text[:offset]
    return SchemaFault(fault, before.count("\n") + 1, offset - before.rfind("\n"), fix)


def read_document(text: str) -> Any | SchemaFault:
    """The document that a JSON text is, or why it is none."""
    try:
        return parse_json(text)
    except ValueError as error:
        reason = str(error)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        missing = error.pos >= len(text.rstrip())
        cause = "it ends too early" if missing else error.msg[0].lower() + error.msg[1:]
        return SchemaFault(f"it is not JSON: {cause}", error.lineno, error.colno)
    except RecursionError:
        pass
    return SchemaFault(reason)


def find_offset(text: str, steps: Place) -> int:
    """Where the value at this place of a JSON document begins; where the last part of the place
    begins that there is."""
    position = _skip_blanks(text, 0)
    for step in steps:
        inner = _enter(text, position, step)
        if inner is None:
            break
        position = inner
    return position


def _enter(text: str, position: int, step: str | int) -> int | None:
    """Where a value inside of the list or object begins that begins here."""
    opening, index = text[position], 0
    if opening not in "{[":
        return None
    position = _skip_blanks(text, position + 1)
    while text[position] not in "}]":
        key: str | int = index
        if opening == "{":
            key, position = _DECODER.raw_decode(text, position)
            position = _skip_blanks(text, _skip_blanks(text, position) + 1)
        if key == step:
            return position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip_blanks(text, position)
        if text[position] == ",":
            position = _skip_blanks(text, position + 1)
        index += 1
    return None


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANKS:
        position += 1
    return position
