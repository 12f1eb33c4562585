"""Compile references: the first word, attributes and indexes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal

from msgspec.structs import replace

from ...core.text.display import make_sentence
from ...core.value import SecretRef
from ...syntax.nodes import Attr, Index, LegacyIndex, Root, SplatItem
from ..values.conversion import convert_value
from ..values.faults import ConvertFault, EvalError, Place, suggest_near
from ..values.numbers import render_number
from ..values.types import describe_value
from ..values.value import (
    Computed,
    ListVal,
    MapVal,
    Marked,
    Marks,
    Null,
    ObjectVal,
    SetVal,
    TupleVal,
    Val,
    add_marks,
    type_of,
    unmark,
)
from .code import ITEM, Code, Context, Env


def compile_root(node: Root, context: Context) -> Code:
    name = node.name
    if name in context.bound:
        return lambda env: env.names[name]

    # The word alone, such as `each`; with an attribute behind it, `compile_attr` looks it up.
    def whole(env: Env) -> Val:
        space = env.roots.get(name)
        if space is None:
            raise make_unknown_word_fault(node, env)
        return space.whole(node)

    return whole


def make_unknown_word_fault(node: Root, env: Env) -> EvalError:
    known = (*env.roots, *(name for name in env.names if name != ITEM))
    return EvalError(
        node, f'Nothing is named "{node.name}" here', advice=suggest_near(node.name, known)
    )


def compile_item(_: SplatItem, __: Context) -> Code:
    return lambda env: env.names[ITEM]


def compile_attr(node: Attr, context: Context) -> Code:
    name, target = node.name, node.target
    if isinstance(target, Root) and target.name not in context.bound:
        word = target.name

        def from_root(env: Env) -> Val:
            space = env.roots.get(word)
            if space is None:
                raise make_unknown_word_fault(target, env)
            return reveal_value(space.find(name, node))

        return from_root
    code = context.compile_node(target)

    def attribute(env: Env) -> Val:
        value = code(env)
        if value.__class__ is ObjectVal and name in value.fields:  # the common case, without marks
            return reveal_value(value.fields[name])
        return get_attribute(value, name, node)

    return attribute


def reveal_value(value: Val) -> Val:
    """The value itself. Raises Deferred if it is an attribute that the server sets."""
    if value.__class__ is Computed:
        raise value.defer()
    return value


def get_attribute(value: Val, name: str, place: Place) -> Val:
    """`value.name`. Raises EvalError."""
    owner, (value, marks) = value, unmark(value)
    if isinstance(value, ObjectVal | MapVal):
        if name in value.fields:
            return _make_part(owner, name, reveal_value(value.fields[name]), marks)
        known = () if marks else value.fields
        what = "key" if isinstance(value, MapVal) else "attribute"
        raise EvalError(
            place, f'There is no {what} "{name}"', _render_names(known), suggest_near(name, known)
        )
    if isinstance(value, Null):
        raise EvalError(place, f'null has no attribute "{name}"', "The value before it is null.")
    advice = ""
    if isinstance(value, ListVal | SetVal | TupleVal):
        advice = f"Write [*].{name} for the attribute of every element, or [0].{name} for one."
    raise EvalError(
        place,
        f"{_render_subject(value)} has no attributes",
        f'"{name}" cannot be found in it.',
        advice,
    )


def _render_names(known: object) -> str:
    names = sorted(known) if isinstance(known, dict) else []
    if not names or len(names) > 12:
        return ""
    return f"It has {', '.join(names)}."


def _render_subject(value: Val) -> str:
    words = describe_value(value)
    return words[:1].upper() + words[1:]


def render_part_name(name: str, key: object) -> str:
    """The name of a part of a sensitive variable in a secret reference: `passwords["x"]`,
    `logins[0]`."""
    return f"{name}[{json.dumps(key, ensure_ascii=False)}]"


def _make_part(owner: Val, key: str | int, part: Val, marks: Marks) -> Val:
    """The part with the marks of its owner."""
    # An element of a sensitive variable can be a secret, too: it gets a reference of its own.
    ref = owner.ref if isinstance(owner, Marked) else None
    if ref is None or isinstance(part, Marked | SecretRef):
        return add_marks(part, marks)
    return Marked(part, marks, SecretRef(ref.source, render_part_name(ref.name, key)))


def drop_part_names(value: Val) -> Val:
    """The value without references to elements of a sensitive variable.

    Plans show the name of a secret. In a loop over something hidden, `passwords["x"]` would show
    the hidden key.
    """
    if isinstance(value, Marked):
        named = value.ref is not None and "[" in value.ref.name
        return Marked(drop_part_names(value.value), value.marks, None if named else value.ref)
    if isinstance(value, TupleVal | ListVal) and value.marks:
        return replace(value, items=tuple(map(drop_part_names, value.items)))
    if isinstance(value, ObjectVal | MapVal) and value.marks:
        return replace(
            value, fields={name: drop_part_names(one) for name, one in value.fields.items()}
        )
    return value


def compile_legacy(node: LegacyIndex, context: Context) -> Code:
    code, key = context.compile_node(node.target), node.index
    return lambda env: get_index(code(env), key, node)


def compile_index(node: Index, context: Context) -> Code:
    code, key = context.compile_node(node.target), context.compile_node(node.key)
    return lambda env: get_index(code(env), key(env), node)


def get_index(value: Val, key: Val, place: Place) -> Val:
    """`value[key]`. Raises EvalError."""
    owner, (value, marks) = value, unmark(value)
    key, key_marks = unmark(key)
    if key_marks:
        owner, marks = value, marks | key_marks  # a name with a hidden key would tell the key
    if isinstance(key, Null | SecretRef | Computed):
        raise EvalError(place, f"{_render_subject(key)} cannot be an index")
    # Keys are converted: `[1, 2]["1"]` and `{ "1" = 2 }[1]` are both 2.
    if isinstance(value, ObjectVal | MapVal):
        name = _convert_key(key, "string", place)
        if name in value.fields:
            return _make_part(owner, str(name), reveal_value(value.fields[str(name)]), marks)
        shown = "that key" if marks else f'the key "{name}"'
        advice = "" if marks else suggest_near(str(name), value.fields)
        known = _render_names(() if marks else value.fields)
        raise EvalError(place, f"There is no element with {shown}", known, advice)
    if isinstance(value, TupleVal | ListVal):
        position, item = _get_element(value, key, place, hide=bool(marks))
        return _make_part(owner, position, item, marks)
    raise EvalError(place, f"{_render_subject(value)} cannot be indexed", _WHY.get(type(value), ""))


_WHY: Mapping[type, str] = {
    SetVal: "The elements of a set have no positions; use tolist(…) or a for expression.",
    Null: "The value before the brackets is null.",
}


def _get_element(value: TupleVal | ListVal, key: Val, place: Place, hide: bool) -> tuple[int, Val]:
    position = _convert_key(key, "number", place)
    if isinstance(position, int) and 0 <= position < len(value.items):
        return position, reveal_value(value.items[position])
    if isinstance(position, Decimal):
        raise EvalError(place, "An index must be a whole number")
    shown = "this one" if hide or not isinstance(position, int) else render_number(position)
    size = len(value.items)
    have = f"The list has {size} elements, counted from 0." if size else "The list is empty."
    raise EvalError(place, f"There is no element {shown}", have)


def _convert_key(key: Val, kind: str, place: Place) -> Val:
    try:
        return convert_value(key, _KEYS[kind])
    except ConvertFault as fault:
        raise EvalError(place, "This cannot be an index", make_sentence(fault)) from None


_KEYS = {"string": type_of(""), "number": type_of(0)}
