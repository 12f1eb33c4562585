"""Read and describe type constraints, such as `map(object({a = optional(number, 1)}))`, say which
types convert to which, and find the common type of several types, by go-cty's rules.

Conditionals, `tolist` and others need the common type: `true ? 1 : "a"` is "1", and `[1, "a"]` as a
list is `["1", "a"]`. The cases of tests/conformance compare the results with go-cty's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type
from ...core.value import FrozenMap, SecretRef
from ...syntax.nodes import (
    Expression,
    FunctionCall,
    Lit,
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
    items = list_items(node)
    if items is None:
        raise EvalError(node, "object(…) needs fields in braces", "Write object({name = string}).")
    fields: dict[str, Type] = {}
    optional: dict[str, Any] = {}
    for item in items:
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


COMPARED = 100
"""How many types are compared in pairs to find the best of them; the time grows with the square."""

_PRIMITIVES = frozenset({"string", "number", "bool"})
_SAFE = {("number", "string"), ("bool", "string")}
_UNSAFE = _SAFE | {("string", "number"), ("string", "bool")}
_SEQUENCES = frozenset({"list", "set"})


def is_convertible(source: Type, target: Type, unsafe: bool = True) -> bool:
    """Whether values of `source` convert to `target`. unsafe: also if only some values do, as
    strings to numbers."""
    if source == target or target == ANY:
        return True
    if source == ANY:
        return unsafe
    if source.kind in _PRIMITIVES or target.kind in _PRIMITIVES:
        return (source.kind, target.kind) in (_UNSAFE if unsafe else _SAFE)
    if target.element is not None and source.element is not None:
        return _is_collection_convertible(source, target, unsafe)
    if target.element is not None:
        return _is_structure_convertible(source, target, unsafe)
    if target.kind == "object":
        # The type of a map does not say which keys it has, so the conversion can fail later.
        if source.kind == "map":
            element = source.element or ANY
            return unsafe and all(
                name in target.optional or is_convertible(element, kind, unsafe)
                for name, kind in target.fields.items()
            )
        return source.kind == "object" and all(
            is_convertible(source.fields[name], kind, unsafe)
            if name in source.fields
            else name in target.optional
            for name, kind in target.fields.items()
        )
    return (
        source.kind == "tuple"
        and len(source.items) == len(target.items)
        and all(
            is_convertible(s, t, unsafe) for s, t in zip(source.items, target.items, strict=True)
        )
    )


def _is_collection_convertible(source: Type, target: Type, unsafe: bool) -> bool:
    if source.kind == "list" and target.kind == "set" and not unsafe:
        return False
    alike = source.kind == target.kind or {source.kind, target.kind} <= _SEQUENCES
    return alike and is_convertible(source.element or ANY, target.element or ANY, unsafe)


def _is_structure_convertible(source: Type, target: Type, unsafe: bool) -> bool:
    if (source.kind == "object") != (target.kind == "map"):
        return False
    inner_types = list_parts(source)
    if not inner_types:  # `[]` and `{}` convert to every collection of their kind
        return True
    element = target.element
    if element is None or element == ANY:
        element = unify_types(inner_types, unsafe)
        if element is None or (
            element == ANY and any(inner_type != ANY for inner_type in inner_types)
        ):
            return False
    return all(is_convertible(inner_type, element, unsafe) for inner_type in inner_types)


def list_parts(kind: Type) -> tuple[Type, ...]:
    """The element types of a tuple or object."""
    return kind.items if kind.kind == "tuple" else tuple(kind.fields.values())


def unify_types(types: Iterable[Type], unsafe: bool = True) -> Type | None:
    """The type that all of these convert to; None if there is none. unsafe: as above."""
    unique = tuple(dict.fromkeys(types))
    if len(unique) == 1:  # the common case: all elements have the same type
        return unique[0]
    kinds = {kind.kind for kind in unique}
    known_kinds = kinds - {"any"}
    for family, unify in _FAMILIES:
        if known_kinds and known_kinds <= family:
            if "any" in kinds:  # nothing more precise can be said
                return ANY
            common = unify(unique, unsafe)
            if common is not None or len(family) == 1:
                return common
    if {"object", "tuple"} <= kinds:
        return None
    # Primitive types, and mixtures of collections: one of the types themselves has to do.
    return _choose_preferred(unique, unsafe)


def _unify_collections(types: Sequence[Type], unsafe: bool) -> Type | None:
    element = unify_types((kind.element or ANY for kind in types), unsafe)
    return None if element is None else Type(types[0].kind, element)


def _unify_objects(types: Sequence[Type], unsafe: bool) -> Type | None:
    # Objects with other attributes can only become a map: `{ a = 1 }` and `{ b = 2 }`.
    first = types[0].fields
    if any(kind.fields.keys() != first.keys() for kind in types):
        return _gather_parts("map", types, unsafe)
    fields = {name: unify_types((kind.fields[name] for kind in types), unsafe) for name in first}
    unified = {name: kind for name, kind in fields.items() if kind is not None}
    if len(unified) < len(fields):
        return None
    candidate = Type("object", fields=FrozenMap(unified))
    return (
        candidate if _is_reached(candidate, types, unsafe) else _gather_parts("map", types, unsafe)
    )


def _unify_tuples(types: Sequence[Type], unsafe: bool) -> Type | None:
    if len({len(kind.items) for kind in types}) > 1:
        return _gather_parts("list", types, unsafe)
    columns = zip(*(kind.items for kind in types), strict=True)
    items = [unify_types(column, unsafe) for column in columns]
    unified = tuple(item for item in items if item is not None)
    if len(unified) < len(items):
        return None
    candidate = Type("tuple", items=unified)
    return (
        candidate if _is_reached(candidate, types, unsafe) else _gather_parts("list", types, unsafe)
    )


def _is_reached(target: Type, types: Sequence[Type], unsafe: bool) -> bool:
    return all(is_convertible(kind, target, unsafe) for kind in types)


def _gather_parts(collection: str, types: Sequence[Type], unsafe: bool) -> Type | None:
    """The collection type for the parts of all these objects or tuples; None if there is none."""
    inner_types = [inner_type for kind in types for inner_type in list_parts(kind)]
    element = unify_types(inner_types, unsafe) if inner_types else None
    if element is None:
        return None
    candidate = Type(collection, element)
    return candidate if _is_reached(candidate, types, unsafe) else None


def _unify_mixed(
    collection: str, structure: str, types: Sequence[Type], unsafe: bool
) -> Type | None:
    """The common type of maps and objects, or of lists and tuples: first the structures become a
    collection, and then all are collections."""
    gathered = _gather_parts(collection, [kind for kind in types if kind.kind == structure], unsafe)
    if gathered is None:
        return None
    return unify_types([gathered, *(kind for kind in types if kind.kind == collection)], unsafe)


def _unify_maps_and_objects(types: Sequence[Type], unsafe: bool) -> Type | None:
    return _unify_mixed("map", "object", types, unsafe)


def _unify_lists_and_tuples(types: Sequence[Type], unsafe: bool) -> Type | None:
    return _unify_mixed("list", "tuple", types, unsafe)


# In this order: a mixed family is tried after the families that it contains.
_FAMILIES = (
    ({"map"}, _unify_collections),
    ({"list"}, _unify_collections),
    ({"set"}, _unify_collections),
    ({"object"}, _unify_objects),
    ({"tuple"}, _unify_tuples),
    ({"map", "object"}, _unify_maps_and_objects),
    ({"list", "tuple"}, _unify_lists_and_tuples),
)


def _choose_preferred(types: Sequence[Type], unsafe: bool) -> Type | None:
    """The most general one of the types that all others convert to."""
    # Only the first types are candidates, but all types have to convert to the chosen one.
    candidates = types[:COMPARED]
    order = sorted(
        candidates, key=lambda kind: sum(_compare(rival, kind) < 0 for rival in candidates)
    )
    for candidate in order:
        if _is_reached(candidate, types, unsafe):
            return candidate
    return None


_RANKS = {"list": 1, "tuple": 2, "set": 0, "map": 1, "object": 2}
"""How general a kind of collection is; a lower rank is more general."""


def _compare(first: Type, second: Type) -> int:
    """Below zero if `first` is the better common type, above zero if `second` is."""
    # go-cty's order: `any` comes last, since it says nothing; string comes first among primitive
    # types, since the others convert to it.
    if ANY in (first, second):
        return (first == ANY) - (second == ANY)
    if first.kind in _PRIMITIVES and second.kind in _PRIMITIVES:
        return (second == STRING) - (first == STRING)
    if first.element is not None and first.kind == second.kind:
        return _compare(first.element, second.element or ANY)
    if first.kind != second.kind:
        mapping = {"map", "object"}
        if first.kind in _RANKS and second.kind in _RANKS:
            is_comparable = (first.kind in mapping) == (second.kind in mapping)
            return _RANKS[first.kind] - _RANKS[second.kind] if is_comparable else 0
        return 0
    return _compare_parts(first, second)


def _compare_parts(first: Type, second: Type) -> int:
    """The order of two objects or tuples; 0 if their parts disagree about it."""
    if first.kind == "object" and first.fields.keys() != second.fields.keys():
        return 0
    if len(first.items) != len(second.items):
        return 0
    pairs = (
        [(first.fields[name], second.fields[name]) for name in first.fields]
        if first.kind == "object"
        else list(zip(first.items, second.items, strict=True))
    )
    signs = {(order > 0) - (order < 0) for a, b in pairs if (order := _compare(a, b))}
    return signs.pop() if len(signs) == 1 else 0
