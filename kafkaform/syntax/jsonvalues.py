"""JSON values to expressions: HCL's json/spec.md, "Expressions" and "Static Analysis"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from unicodedata import normalize

from ..core.diagnostics import Diagnostic
from . import builder, limits, nodes
from .faults import SyntaxFault, fault
from .json import Array, Atom, Json, Member, Record, Text
from .jsontext import Embedded
from .nodes import Expression, Lit
from .parse import expression_in, template_in


class Mode(StrEnum):
    """What strings are."""

    TEMPLATE = "template"
    """They may hold `${ }` and `%{ }`."""
    LITERAL = "literal"
    """They stand for themselves."""
    SPELLED = "spelled"
    """They spell an expression, such as a reference or a type."""
    PATH = "path"
    """They spell a reference, or else stand for themselves, such as `config.retention.*`."""


def expression(value: Json, mode: Mode) -> Expression:
    """The expression that a JSON value is. Raises SyntaxFault with every fault in it."""
    faults: list[Diagnostic] = []
    node = _node(value, mode, faults)
    if faults:
        raise SyntaxFault(*faults[: limits.DIAGNOSTICS])
    builder.check_depth(node)
    return node


def _node(value: Json, mode: Mode, faults: list[Diagnostic]) -> Expression:
    match value:
        case Text():
            return _STRINGS[mode](value, faults)
        case Atom():
            return Lit(value.source, value.start, value.end, value.value)
        case Array():
            _check_size(value, value.items, faults)
            items = tuple(_node(item, mode, faults) for item in value.items)
            return nodes.Tuple(value.source, value.start, value.end, items)
        case Record():
            _check_size(value, value.members, faults)
            faults.extend(repeated(value.members))
            entries = tuple(_item(member, mode, faults) for member in value.members)
            return nodes.Object(value.source, value.start, value.end, entries)


def _item(member: Member, mode: Mode, faults: list[Diagnostic]) -> nodes.ObjectItem:
    read = _STRINGS[Mode.TEMPLATE if mode is Mode.TEMPLATE else Mode.LITERAL]
    key, value = read(member.name, faults), _node(member.value, mode, faults)
    return nodes.ObjectItem(member.source, member.start, member.end, key, value)


def _check_size(value: Json, items: tuple[object, ...], faults: list[Diagnostic]) -> None:
    if len(items) > limits.COLLECTION_ELEMENTS:
        detail = f"It has more than {limits.COLLECTION_ELEMENTS} elements."
        end = value.start + 1
        faults.append(fault(value.source, value.start, end, "Collection too large", detail))


def repeated(members: Iterable[Member]) -> Iterable[Diagnostic]:
    """An error for each member whose name an earlier one has."""
    first: dict[str, Member] = {}
    for member in members:
        name = member.name.text
        if first.setdefault(name, member) is not member:
            yield fault(
                member.source,
                member.name.start,
                member.name.end,
                f'"{name}" is set twice',
                f"It was first set at {first[name].name.range}.",
                "Keep one of the two.",
            )


# ── strings ─────────────────────────────────────────────────────────────────────────────


def _literal(value: Text, _: list[Diagnostic]) -> Lit:
    return Lit(value.source, value.start, value.end, normalize("NFC", value.text))


def _template(value: Text, faults: list[Diagnostic]) -> Expression:
    if "${" not in value.text and "%{" not in value.text:
        return _literal(value, faults)
    node, problems = template_in(Embedded(value.source, value.start, value.end))
    faults.extend(problems)
    return node or _literal(value, faults)


def _spelled(value: Text, faults: list[Diagnostic]) -> Expression:
    node, problems = expression_in(Embedded(value.source, value.start, value.end))
    faults.extend(problems)
    return node or _literal(value, faults)


def _path(value: Text, faults: list[Diagnostic]) -> Expression:
    node, _ = expression_in(Embedded(value.source, value.start, value.end))
    plain = node is not None and all(isinstance(part, _STEPS) for part in nodes.walk(node))
    return node if node is not None and plain else _literal(value, faults)


_STEPS = (nodes.Root, nodes.Attr, nodes.Index, nodes.LegacyIndex, nodes.Lit)
_STRINGS: Mapping[Mode, Callable[[Text, list[Diagnostic]], Expression]] = {
    Mode.TEMPLATE: _template,
    Mode.LITERAL: _literal,
    Mode.SPELLED: _spelled,
    Mode.PATH: _path,
}
