"""JSON files to the nodes that native files become: HCL's json/spec.md, "Structural Elements".

Which properties are blocks is for whoever knows what a body may hold. `jsonforms` knows it for
the language's own blocks; a block that only a provider knows arrives as an argument whose value
is an object, and `blocks_of` makes it a block once the schema is at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics
from ...syntax.faults import SyntaxFault, fault
from ...syntax.json import Array, Atom, Json, JsonSource, Member, Record, parse_json
from ...syntax.jsonvalues import expression, repeated
from ...syntax.limits import DIAGNOSTICS
from ...syntax.nodes import Attribute, Block, Body, File, Label, Lit, Node, Object, Tuple
from ...syntax.source import Source
from .blocks import NAME
from .json_forms import FORMS, ROOT, VALUES, Form

_COMMENT = "//"
"""The property of a body that is passed over."""


def json_file(content: str | bytes, name: str) -> tuple[File, Diagnostics]:
    """A configuration file. What is no block of the language is an empty block of that name."""
    file, faults = _file(content, name, ROOT)
    strange = tuple(_empty(item) for item in file.body.attributes.values())
    body = replace(file.body, attributes={}, blocks=file.body.blocks + strange)
    return replace(file, body=body), faults


def json_values(content: str | bytes, name: str) -> tuple[File, Diagnostics]:
    """A file of variable values, in which strings stand for themselves."""
    return _file(content, name, VALUES)


def _file(content: str | bytes, name: str, form: Form) -> tuple[File, Diagnostics]:
    value, problems = parse_json(content, name)
    if value is None:
        source = Source(name, "")
        return File(source, 0, 0, Body(source, 0, 0, {}, ())), problems
    faults: list[Diagnostic] = []
    members = _members(value, "The file is one object: { … }", faults)
    body = _body(value, members, form, faults)
    return File(value.source, 0, value.end, body), tuple(faults[:DIAGNOSTICS])


def _empty(item: Attribute) -> Block:
    body = Body(item.source, item.end, item.end, {}, ())
    return Block(item.source, item.start, item.end, item.name, (), body)


# ── bodies ──────────────────────────────────────────────────────────────────────────────


def _body(place: Node, members: Iterable[Member], form: Form, faults: list[Diagnostic]) -> Body:
    attributes: dict[str, Attribute] = {}
    blocks: list[Block] = []
    plain: list[Member] = []
    for member in members:
        key = form.blocks.get(member.name.text)
        if key is None:
            plain.append(member)
        else:
            labels: tuple[Label, ...] = ()
            blocks += _blocks(member, member.value, FORMS[key], labels, faults)
    faults.extend(repeated(plain))
    for member in plain:
        name = member.name.text
        if form is not VALUES and not NAME.fullmatch(name):
            faults.append(_no_name(member))
        elif name not in attributes:
            attributes.update(_attribute(member, form, faults))
    return Body(place.source, place.start, place.end, attributes, tuple(blocks))


def _attribute(
    member: Member, form: Form, faults: list[Diagnostic]
) -> Iterator[tuple[str, Attribute]]:
    name = member.name.text
    try:
        value = expression(member.value, form.modes.get(name, form.mode))
    except SyntaxFault as error:
        faults.extend(error.diagnostics)
    else:
        start = member.name.start + 1  # behind the quote, as `Attribute.name_range` wants it
        yield name, Attribute(member.source, start, member.end, name, value)


def _no_name(member: Member) -> Diagnostic:
    return fault(
        member.source,
        member.name.start,
        member.name.end,
        f'"{member.name.text}" is not a name',
        "A name starts with a letter and holds letters, digits, _ and -.",
    )


# ── blocks ──────────────────────────────────────────────────────────────────────────────

_WRITTEN = ("{ … }", '{ "NAME": { … } }', '{ "TYPE": { "NAME": { … } } }')


def _blocks(
    member: Member, value: Json, form: Form, labels: tuple[Label, ...], faults: list[Diagnostic]
) -> Iterator[Block]:
    """The blocks that a property stands for, label by label; one with faults is left out."""
    kind = member.name.text
    what = f'"{kind}" is a block, so its value is written {_WRITTEN[form.labels]}'
    if len(labels) < form.labels:
        for inner in _members(value, what, faults):
            name = inner.name
            label = Label(name.source, name.start, name.end, name.text)
            yield from _blocks(member, inner.value, form, (*labels, label), faults)
        return
    several = isinstance(value, Array)
    for record in _records(value, what, faults):
        own: list[Diagnostic] = []
        body = _body(record, _named(record), form, own)
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


def _members(value: Json, what: str, faults: list[Diagnostic]) -> Iterator[Member]:
    """The properties of an object or of a list of objects; null has none."""
    for record in _records(value, what, faults):
        yield from _named(record)


def _named(record: Record) -> Iterator[Member]:
    return (member for member in record.members if member.name.text != _COMMENT)


def _records(value: Json, what: str, faults: list[Diagnostic]) -> Iterator[Record]:
    items = value.items if isinstance(value, Array) else (value,)
    for item in items:
        if isinstance(item, Record):
            yield item
        elif not (isinstance(item, Atom) and item.value is None):
            faults.append(fault(item.source, item.start, item.start + 1, what))


# ── blocks of providers ─────────────────────────────────────────────────────────────────


def blocks_of(item: Attribute) -> tuple[Block, ...] | None:
    """The blocks that an argument of a JSON body is, where a schema asks for blocks; None if
    it is none."""
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
        found.append(Block(body.source, start, body.end, item.name, (), _inner(body)))
    return tuple(found)


def _inner(value: Object) -> Body:
    attributes = {}
    for item in value.items:
        key = item.key
        name = str(key.value) if isinstance(key, Lit) else key.source.text
        if name != _COMMENT:
            start = item.start + 1
            attributes[name] = Attribute(item.source, start, item.end, name, item.value)
    return Body(value.source, value.start, value.end, attributes, ())
