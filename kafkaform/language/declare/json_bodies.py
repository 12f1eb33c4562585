"""Make the nodes of JSON files, the same as those of HCL files: HCL's json/spec.md, "Structural
Elements".

JSON does not say which properties are blocks; that depends on the body. `json_forms` says it for
the blocks of the language. A block that only a provider's schema knows is read as an argument whose
value is an object, and `make_argument_blocks` makes it a block when the schema is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics
from ...syntax.faults import SyntaxFault, make_fault
from ...syntax.json import (
    Json,
    JsonArray,
    JsonAtom,
    JsonMember,
    JsonObject,
    JsonSource,
    find_repeated,
    make_expression,
    parse_json,
)
from ...syntax.limits import DIAGNOSTICS
from ...syntax.nodes import Attribute, Block, Body, File, Label, Lit, Node, Object, Tuple
from ...syntax.source import Source
from .blocks import NAME
from .json_forms import FORMS, ROOT, VALUES, JsonForm

_COMMENT = "//"
"""The property that is ignored, since JSON has no comments."""


def parse_json_file(content: str | bytes, name: str) -> tuple[File, Diagnostics]:
    """Parse a configuration file."""
    # A property that is not a block of the language becomes an empty block, so that it is reported
    # as an unknown block, as in an HCL file.
    file, faults = _parse_file(content, name, ROOT)
    strange = tuple(_make_empty_block(item) for item in file.body.attributes.values())
    body = replace(file.body, attributes={}, blocks=file.body.blocks + strange)
    return replace(file, body=body), faults


def parse_json_values(content: str | bytes, name: str) -> tuple[File, Diagnostics]:
    """Parse a file of variable values, in which strings are plain text."""
    return _parse_file(content, name, VALUES)


def _parse_file(content: str | bytes, name: str, form: JsonForm) -> tuple[File, Diagnostics]:
    value, problems = parse_json(content, name)
    if value is None:
        source = Source(name, "")
        return File(source, 0, 0, Body(source, 0, 0, {}, ())), problems
    faults: list[Diagnostic] = []
    members = _list_members(value, "The file is one object: { … }", faults)
    body = _make_body(value, members, form, faults)
    return File(value.source, 0, value.end, body), tuple(faults[:DIAGNOSTICS])


def _make_empty_block(item: Attribute) -> Block:
    body = Body(item.source, item.end, item.end, {}, ())
    return Block(item.source, item.start, item.end, item.name, (), body)


# ── bodies ──────────────────────────────────────────────────────────────────────────────


def _make_body(
    place: Node, members: Iterable[JsonMember], form: JsonForm, faults: list[Diagnostic]
) -> Body:
    attributes: dict[str, Attribute] = {}
    blocks: list[Block] = []
    plain: list[JsonMember] = []
    for member in members:
        key = form.blocks.get(member.name.text)
        if key is None:
            plain.append(member)
        else:
            labels: tuple[Label, ...] = ()
            blocks += _make_blocks(member, member.value, FORMS[key], labels, faults)
    faults.extend(find_repeated(plain))
    for member in plain:
        name = member.name.text
        if form is not VALUES and not NAME.fullmatch(name):
            faults.append(_make_name_fault(member))
        elif name not in attributes:
            attributes.update(_make_attribute(member, form, faults))
    return Body(place.source, place.start, place.end, attributes, tuple(blocks))


def _make_attribute(
    member: JsonMember, form: JsonForm, faults: list[Diagnostic]
) -> Iterator[tuple[str, Attribute]]:
    name = member.name.text
    try:
        value = make_expression(member.value, form.modes.get(name, form.mode))
    except SyntaxFault as error:
        faults.extend(error.diagnostics)
    else:
        start = member.name.start + 1  # behind the quote, as `Attribute.name_range` needs it
        yield name, Attribute(member.source, start, member.end, name, value)


def _make_name_fault(member: JsonMember) -> Diagnostic:
    return make_fault(
        member.source,
        member.name.start,
        member.name.end,
        f'"{member.name.text}" is not a name',
        "A name is a letter followed by letters, digits, _ and -.",
    )


# ── blocks ──────────────────────────────────────────────────────────────────────────────

_WRITTEN = ("{ … }", '{ "NAME": { … } }', '{ "TYPE": { "NAME": { … } } }')


def _make_blocks(
    member: JsonMember,
    value: Json,
    form: JsonForm,
    labels: tuple[Label, ...],
    faults: list[Diagnostic],
) -> Iterator[Block]:
    """The blocks of a property, level by level of labels. A block with faults is left out."""
    kind = member.name.text
    what = f'"{kind}" is a block, so its value is written {_WRITTEN[form.labels]}'
    if len(labels) < form.labels:
        for inner in _list_members(value, what, faults):
            name = inner.name
            label = Label(name.source, name.start, name.end, name.text)
            yield from _make_blocks(member, inner.value, form, (*labels, label), faults)
        return
    several = isinstance(value, JsonArray)
    for record in _list_objects(value, what, faults):
        own: list[Diagnostic] = []
        body = _make_body(record, _drop_comments(record), form, own)
        faults.extend(own)
        if own:
            continue
        start = record.start if several else member.name.start + 1
        if labels:
            last = labels[-1]
            if several:  # of blocks that share their labels, each stands at its own brace
                last = replace(last, start=record.start, end=record.start + 1)
            labels, start = (*labels[:-1], last), last.start
        yield Block(record.source, start, record.end, kind, labels, body)


def _list_members(value: Json, what: str, faults: list[Diagnostic]) -> Iterator[JsonMember]:
    """The properties of an object, or of the objects in a list; null has none."""
    for record in _list_objects(value, what, faults):
        yield from _drop_comments(record)


def _drop_comments(record: JsonObject) -> Iterator[JsonMember]:
    return (member for member in record.members if member.name.text != _COMMENT)


def _list_objects(value: Json, what: str, faults: list[Diagnostic]) -> Iterator[JsonObject]:
    items = value.items if isinstance(value, JsonArray) else (value,)
    for item in items:
        if isinstance(item, JsonObject):
            yield item
        elif not (isinstance(item, JsonAtom) and item.value is None):
            faults.append(make_fault(item.source, item.start, item.start + 1, what))


# ── blocks of providers ─────────────────────────────────────────────────────────────────


def make_argument_blocks(item: Attribute) -> tuple[Block, ...] | None:
    """An argument of a JSON body as blocks, if its schema has blocks of this name; None if it is
    not written as blocks."""
    value = item.value
    if not isinstance(item.source, JsonSource):
        return None
    if isinstance(value, Lit) and value.value is None:
        return ()
    bodies = value.items if isinstance(value, Tuple) else (value,)
    found = []
    for body in bodies:
        if not isinstance(body, Object):
            return None
        start = body.start if isinstance(value, Tuple) else item.start
        found.append(Block(body.source, start, body.end, item.name, (), _make_inner_body(body)))
    return tuple(found)


def _make_inner_body(value: Object) -> Body:
    attributes = {}
    for item in value.items:
        key = item.key
        name = str(key.value) if isinstance(key, Lit) else key.source.text
        if name != _COMMENT:
            start = item.start + 1
            attributes[name] = Attribute(item.source, start, item.end, name, item.value)
    return Body(value.source, value.start, value.end, attributes, ())
