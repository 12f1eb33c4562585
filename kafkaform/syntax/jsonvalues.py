"""Make expressions of JSON values, by HCL's json/spec.md: "Expressions" and "Static Analysis"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from unicodedata import normalize

from ..core.diagnostics import Diagnostic
from . import builder, limits, nodes
from .faults import SyntaxFault, make_fault
from .json import Json, JsonArray, JsonAtom, JsonMember, JsonObject, JsonString
from .jsontext import EmbeddedSource
from .nodes import Expression, Lit
from .parse import parse_expression_source, parse_template_source


class StringMode(StrEnum):
    """What the strings of an argument are."""

    TEMPLATE = "template"
    """Templates, which can contain `${ }` and `%{ }`."""
    LITERAL = "literal"
    """Plain text."""
    SPELLED = "spelled"
    """The text of an expression, such as a reference or a type."""
    PATH = "path"
    """The text of a reference if it is one, else plain text such as `config.retention.*`."""


def make_expression(value: Json, mode: StringMode) -> Expression:
    """The expression of a JSON value. Raises SyntaxFault with every fault in it."""
    faults: list[Diagnostic] = []
    node = _make_node(value, mode, faults)
    if faults:
        raise SyntaxFault(*faults[: limits.DIAGNOSTICS])
    builder.check_depth(node)
    return node


def _make_node(value: Json, mode: StringMode, faults: list[Diagnostic]) -> Expression:
    match value:
        case JsonString():
            return _STRINGS[mode](value, faults)
        case JsonAtom():
            return Lit(value.source, value.start, value.end, value.value)
        case JsonArray():
            _check_size(value, value.items, faults)
            items = tuple(_make_node(item, mode, faults) for item in value.items)
            return nodes.Tuple(value.source, value.start, value.end, items)
        case JsonObject():
            _check_size(value, value.members, faults)
            faults.extend(find_repeated(value.members))
            entries = tuple(_make_item(member, mode, faults) for member in value.members)
            return nodes.Object(value.source, value.start, value.end, entries)


def _make_item(member: JsonMember, mode: StringMode, faults: list[Diagnostic]) -> nodes.ObjectItem:
    # Names of properties are templates where values are, as the specification has it.
    read = _STRINGS[StringMode.TEMPLATE if mode is StringMode.TEMPLATE else StringMode.LITERAL]
    key, value = read(member.name, faults), _make_node(member.value, mode, faults)
    return nodes.ObjectItem(member.source, member.start, member.end, key, value)


def _check_size(value: Json, items: tuple[object, ...], faults: list[Diagnostic]) -> None:
    if len(items) > limits.COLLECTION_ELEMENTS:
        detail = f"It has more than {limits.COLLECTION_ELEMENTS} elements."
        end = value.start + 1
        faults.append(make_fault(value.source, value.start, end, "Collection too large", detail))


def find_repeated(members: Iterable[JsonMember]) -> Iterable[Diagnostic]:
    """An error for each member with the name of an earlier one."""
    first: dict[str, JsonMember] = {}
    for member in members:
        name = member.name.text
        if first.setdefault(name, member) is not member:
            yield make_fault(
                member.source,
                member.name.start,
                member.name.end,
                f'"{name}" is set twice',
                f"It was first set at {first[name].name.range}.",
                "Keep one of the two.",
            )


# ── strings ─────────────────────────────────────────────────────────────────────────────


def _make_literal(value: JsonString, _: list[Diagnostic]) -> Lit:
    return Lit(value.source, value.start, value.end, normalize("NFC", value.text))


def _parse_template(value: JsonString, faults: list[Diagnostic]) -> Expression:
    if "${" not in value.text and "%{" not in value.text:
        return _make_literal(value, faults)
    node, problems = parse_template_source(EmbeddedSource(value.source, value.start, value.end))
    faults.extend(problems)
    return node or _make_literal(value, faults)


def _parse_spelled(value: JsonString, faults: list[Diagnostic]) -> Expression:
    node, problems = parse_expression_source(EmbeddedSource(value.source, value.start, value.end))
    faults.extend(problems)
    return node or _make_literal(value, faults)


def _parse_path(value: JsonString, faults: list[Diagnostic]) -> Expression:
    node, _ = parse_expression_source(EmbeddedSource(value.source, value.start, value.end))
    plain = node is not None and all(isinstance(step, _STEPS) for step in nodes.walk(node))
    return node if node is not None and plain else _make_literal(value, faults)


_STEPS = (nodes.Root, nodes.Attr, nodes.Index, nodes.LegacyIndex, nodes.Lit)
_STRINGS: Mapping[StringMode, Callable[[JsonString, list[Diagnostic]], Expression]] = {
    StringMode.TEMPLATE: _parse_template,
    StringMode.LITERAL: _make_literal,
    StringMode.SPELLED: _parse_spelled,
    StringMode.PATH: _parse_path,
}
