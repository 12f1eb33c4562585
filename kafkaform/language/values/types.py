"""Read and describe type constraints, such as `map(object({a = optional(number, 1)}))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type
from ...core.value import FrozenMap, SecretRef
from ...syntax.nodes import (
    ConstantObject,
    Expression,
    FunctionCall,
    Lit,
    Object,
    Paren,
    Root,
    Tuple,
)
from ...syntax.terms import list_items
from .faults import EvalError, suggest_near
from .value import Marked, Null, Val, type_of

Default = Callable[[Expression, Type], Any]
"""Evaluates the default of an `optional(type, DEFAULT)`: a core value that has the type."""

_WORDS = {"string": STRING, "number": NUMBER, "bool": BOOL, "any": ANY}
_COLLECTIONS = ("list", "set", "map")
_KINDS = (*_WORDS, *_COLLECTIONS, "object", "tuple")
_FORMS = (
    "Write string, number, bool, any, list(T), set(T), map(T), object({name = T}) or tuple([T])."
)


def parse_type(node: Expression, default: Default) -> Type:
    """The type that an expression spells. Raises EvalError."""
    # Types look like calls and references but are never evaluated.
    if isinstance(node, Root) and node.name in _WORDS:
        return _WORDS[node.name]
    if isinstance(node, Root) and node.name in _COLLECTIONS:
        return Type(node.name, ANY)  # `list` alone is Terraform's old spelling of list(any)
    if isinstance(node, Lit) and isinstance(node.value, str):
        raise EvalError(
            node, "A type is written without quotes", f'"{node.value}" is a string.', _FORMS
        )
    if isinstance(node, FunctionCall) and node.name in _KINDS:
        return _parse_call(node, default)
    if isinstance(node, FunctionCall) and node.name == "optional":
        raise EvalError(
            node, "optional(…) is not allowed here", "Only fields of an object can be optional."
        )
    word = node.name if isinstance(node, Root | FunctionCall) else ""
    raise EvalError(node, "This is not a type", _FORMS, suggest_near(word, _KINDS))


def _parse_call(node: FunctionCall, default: Default) -> Type:
    if node.name in _WORDS or len(node.args) != 1 or node.expand:
        raise EvalError(node, f"{node.name}(…) is not a type", _FORMS)
    inner = node.args[0]
    if node.name in _COLLECTIONS:
        return Type(node.name, parse_type(inner, default))
    if node.name == "tuple":
        if not isinstance(inner, Tuple):
            raise EvalError(inner, "tuple(…) takes a list of types", "Write tuple([string, bool]).")
        return Type("tuple", items=tuple(parse_type(item, default) for item in inner.items))
    return _parse_object(inner, default)


def _parse_object(node: Expression, default: Default) -> Type:
    if not isinstance(node, Object | ConstantObject):
        raise EvalError(node, "object(…) needs fields in braces", "Write object({name = string}).")
    fields: dict[str, Type] = {}
    optional: dict[str, Any] = {}
    for item in list_items(node):
        if not isinstance(item.key, Lit) or not isinstance(item.key.value, str):
            raise EvalError(item.key, "The name of a field must be a plain word")
        name = item.key.value
        if isinstance(item.value, FunctionCall) and item.value.name == "optional":
            fields[name], optional[name] = _parse_optional(item.value, default)
        else:
            fields[name] = parse_type(item.value, default)
    return Type("object", fields=FrozenMap(fields), optional=FrozenMap(optional))


def _parse_optional(node: FunctionCall, default: Default) -> tuple[Type, Any]:
    if len(node.args) not in (1, 2) or node.expand:
        raise EvalError(
            node,
            "optional(…) takes a type and an optional default",
            "For example: optional(number, 3).",
        )
    kind = parse_type(node.args[0], default)
    return kind, default(node.args[1], kind) if len(node.args) == 2 else None


def drop_parentheses(node: Expression) -> Expression:
    """The expression without parentheses around it."""
    while isinstance(node, Paren):
        node = node.inner
    return node


def drop_optional(kind: Type) -> Type:
    """The type of values that fit a constraint: without `optional`, and string instead of text."""
    # Without the quick test, the cache would be asked for most values.
    return kind if kind.kind in _WORDS else _drop_optional(kind)


@cache
def _drop_optional(kind: Type) -> Type:
    if kind.element is not None:
        return Type(kind.kind, drop_optional(kind.element))
    if kind.kind == "object":
        return Type(
            "object", fields=FrozenMap({n: drop_optional(t) for n, t in kind.fields.items()})
        )
    if kind.kind == "tuple":
        return Type("tuple", items=tuple(map(drop_optional, kind.items)))
    return STRING if kind.kind == "text" else kind


def has_any(kind: Type) -> bool:
    """Whether `any` occurs in the type."""
    return kind.kind == "any" if kind.kind in _WORDS else _has_any(kind)


@cache
def _has_any(kind: Type) -> bool:
    inner_types = (kind.element, *kind.fields.values(), *kind.items)
    return any(has_any(inner_type) for inner_type in inner_types if inner_type is not None)


_NAMES = {
    "string": "a string",
    "text": "a string or a list of strings",
    "number": "a number",
    "bool": "true or false",
    "object": "an object",
    "tuple": "a list",
    "any": "any value",
}


_SPELLED = 200
"""Characters of a type in a message."""


def render_type(kind: Type) -> str:
    """A type as it is written; only its beginning if it is long."""
    # Piece by piece, because the whole text of a nested type could be megabytes.
    text = ""
    for piece in _render_pieces(kind):
        text += piece
        if len(text) > _SPELLED:
            return f"{text[:_SPELLED]}…"
    return text


def _render_pieces(kind: Type) -> Iterator[str]:
    if kind.element is not None:
        yield f"{kind.kind}("
        yield from _render_pieces(kind.element)
        yield ")"
    elif kind.kind in ("object", "tuple"):
        inner_types = (
            kind.fields.items() if kind.kind == "object" else (("", i) for i in kind.items)
        )
        yield "object({" if kind.kind == "object" else "tuple(["
        for number, (name, inner_type) in enumerate(inner_types):
            yield (", " if number else "") + (f"{name} = " if name else "")
            yield from _render_pieces(inner_type)
        yield "})" if kind.kind == "object" else "])"
    else:
        yield str(kind)


def describe_type(kind: Type) -> str:
    """A type in a sentence: `a list of strings`."""
    if kind.element is None:
        return _NAMES[kind.kind]
    if kind.element.kind in ("string", "text", "number"):
        return f"a {kind.kind} of {kind.element}s"
    return f"a {kind.kind}"


def describe_value(value: Val) -> str:
    """The type of a value in a sentence, never its content."""
    if isinstance(value, Marked):
        return describe_value(value.value)
    if isinstance(value, Null):
        return "null"
    if isinstance(value, SecretRef):
        return "a secret"
    return describe_type(type_of(value))
