"""Make the nodes of JSON files, the same as those of HCL files: HCL's json/spec.md, "Structural
Elements".

JSON does not say which properties are blocks; that depends on the body. `FORMS` says it for the
blocks of the language, by Terraform's JSON configuration syntax. A block that only a provider's
schema knows is read as an argument whose value is an object, and `make_argument_blocks` makes it a
block when the schema is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
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
    StringMode,
    find_repeated,
    make_expression,
    parse_json,
)
from ...syntax.nodes import (
    DIAGNOSTICS,
    Attribute,
    Block,
    Body,
    File,
    Label,
    Lit,
    Node,
    Object,
    Source,
    Tuple,
)
from .blocks import NAME


class JsonForm(Struct, frozen=True):
    """How a block is written in JSON."""

    labels: int = 0
    """How many levels of labels are around the body."""
    blocks: Mapping[str, str] = field(default_factory=dict)
    """Type of a nested block -> its key in FORMS."""
    modes: Mapping[str, StringMode] = field(default_factory=dict)
    """Arguments whose strings are not read in `mode`."""
    mode: StringMode = StringMode.TEMPLATE
    """How the strings of arguments are read."""


def _make_modes(spelled: str = "", literal: str = "", path: str = "") -> Mapping[str, StringMode]:
    return {
        **dict.fromkeys(spelled.split(), StringMode.SPELLED),
        **dict.fromkeys(literal.split(), StringMode.LITERAL),
        **dict.fromkeys(path.split(), StringMode.PATH),
    }


def _map_to_same(names: str) -> Mapping[str, str]:
    return {name: name for name in names.split()}


_RULES = {"precondition": "plain", "postcondition": "plain"}
_OBJECT = JsonForm(
    2,
    {**_map_to_same("lifecycle dynamic provisioner"), "connection": "plain"},
    _make_modes("provider depends_on"),
)
_WAIVERS = {"waiver": "waiver"}
_SETTINGS = _make_modes(literal="required_version")

TOP: Mapping[str, JsonForm] = {
    "kafkaform": JsonForm(0, _map_to_same("backend"), _SETTINGS),
    "terraform": JsonForm(
        0, _map_to_same("backend cloud encryption required_providers provider_meta"), _SETTINGS
    ),
    "language": JsonForm(),
    "provider": JsonForm(1, _map_to_same("dynamic"), _make_modes(literal="alias version")),
    "resource": _OBJECT,
    "data": _OBJECT,
    "ephemeral": _OBJECT,
    "module": JsonForm(
        1, _map_to_same("lifecycle"), _make_modes("providers depends_on", "source version")
    ),
    "variable": JsonForm(
        1, {"validation": "plain"}, _make_modes("type", "default description deprecated")
    ),
    "locals": JsonForm(),
    "output": JsonForm(1, _RULES, _make_modes("depends_on", "description deprecated")),
    "check": JsonForm(1, {"data": "data", "assert": "plain"}),
    # Addresses are spelled in strings: `"from": "kafka_topic.old"`.
    "removed": JsonForm(
        0,
        {"lifecycle": "plain", "provisioner": "provisioner", "connection": "plain"},
        _make_modes("from"),
    ),
    "import": JsonForm(0, {}, _make_modes("to provider")),
    "moved": JsonForm(0, {}, _make_modes("from to")),
    "policy": JsonForm(1, _WAIVERS, _make_modes(literal="severity description")),
    "policy_set": JsonForm(1, _WAIVERS, _make_modes(literal="severity enable")),
}
FORMS: Mapping[str, JsonForm] = {
    **TOP,
    "plain": JsonForm(),
    "waiver": JsonForm(mode=StringMode.LITERAL),
    "lifecycle": JsonForm(
        0, _RULES, _make_modes("replace_triggered_by", path="ignore_changes ignore_changes_except")
    ),
    "dynamic": JsonForm(1, _map_to_same("content"), _make_modes("iterator")),
    "content": JsonForm(0, _map_to_same("dynamic")),
    "folders": JsonForm(1, {"boundary": "plain"}),
    "backend": JsonForm(1),
    "cloud": JsonForm(0, {"workspaces": "plain"}),
    "encryption": JsonForm(),
    "required_providers": JsonForm(mode=StringMode.LITERAL),
    "provider_meta": JsonForm(1),
    "provisioner": JsonForm(1),
}
ROOT = JsonForm(blocks={name: name for name in TOP})
"""A configuration file."""
VALUES = JsonForm(mode=StringMode.LITERAL)
"""A file of variable values."""


_COMMENT = "//"
"""The property that is ignored, since JSON has no comments."""


def parse_json_file(
    content: str | bytes, name: str, form: JsonForm = ROOT
) -> tuple[File, Diagnostics]:
    """Parse a file of blocks. form: which blocks it has, by default those of a configuration."""
    # A property that is not a block of the language becomes an empty block, so that it is reported
    # as an unknown block, as in an HCL file.
    file, faults = _parse_file(content, name, form)
    unknown_blocks = tuple(
        Block(
            item.source,
            item.start,
            item.end,
            item.name,
            (),
            Body(item.source, item.end, item.end, {}, ()),
        )
        for item in file.body.attributes.values()
    )
    body = replace(file.body, attributes={}, blocks=file.body.blocks + unknown_blocks)
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


# ── bodies ──────────────────────────────────────────────────────────────────────────────


def _make_body(
    node: Node, members: Iterable[JsonMember], form: JsonForm, faults: list[Diagnostic]
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
            faults.append(
                make_fault(
                    member.source,
                    member.name.start,
                    member.name.end,
                    f'"{member.name.text}" is not a name',
                    "A name is a letter followed by letters, digits, _ and -.",
                )
            )
        elif name not in attributes:
            attributes.update(_make_attribute(member, form, faults))
    return Body(node.source, node.start, node.end, attributes, tuple(blocks))


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
    requirement = f'"{kind}" is a block, so its value is written {_WRITTEN[form.labels]}'
    if len(labels) < form.labels:
        for inner in _list_members(value, requirement, faults):
            name = inner.name
            label = Label(name.source, name.start, name.end, name.text)
            yield from _make_blocks(member, inner.value, form, (*labels, label), faults)
        return
    several = isinstance(value, JsonArray)
    for record in _list_objects(value, requirement, faults):
        block_faults: list[Diagnostic] = []
        body = _make_body(record, _drop_comments(record), form, block_faults)
        faults.extend(block_faults)
        if block_faults:
            continue
        start = record.start if several else member.name.start + 1
        if labels:
            last = labels[-1]
            if several:  # blocks that share their labels begin at their own braces
                last = replace(last, start=record.start, end=record.start + 1)
            labels, start = (*labels[:-1], last), last.start
        yield Block(record.source, start, record.end, kind, labels, body)


def _list_members(value: Json, requirement: str, faults: list[Diagnostic]) -> Iterator[JsonMember]:
    """The properties of an object, or of the objects in a list; null has none."""
    for record in _list_objects(value, requirement, faults):
        yield from _drop_comments(record)


def _drop_comments(record: JsonObject) -> Iterator[JsonMember]:
    return (member for member in record.members if member.name.text != _COMMENT)


def _list_objects(value: Json, requirement: str, faults: list[Diagnostic]) -> Iterator[JsonObject]:
    items = value.items if isinstance(value, JsonArray) else (value,)
    for item in items:
        if isinstance(item, JsonObject):
            yield item
        elif not (isinstance(item, JsonAtom) and item.value is None):
            faults.append(make_fault(item.source, item.start, item.start + 1, requirement))


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
    blocks = []
    for body in bodies:
        if not isinstance(body, Object):
            return None
        start = body.start if isinstance(value, Tuple) else item.start
        blocks.append(Block(body.source, start, body.end, item.name, (), _make_inner_body(body)))
    return tuple(blocks)


def _make_inner_body(value: Object) -> Body:
    attributes = {}
    for item in value.items:
        key = item.key
        name = str(key.value) if isinstance(key, Lit) else key.source.text
        if name != _COMMENT:
            start = item.start + 1
            attributes[name] = Attribute(item.source, start, item.end, name, item.value)
    return Body(value.source, value.start, value.end, attributes, ())
