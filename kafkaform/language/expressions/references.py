"""Compile references: the meaning of the first word (`var`, `local`, `each`, `path`, `module`,
`data`, a resource type), attributes and indexes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.text import make_sentence
from ...core.value import SecretRef
from ...syntax.nodes import Attr, Index, LegacyIndex, Root, SplatItem
from ..values.conversion import convert_value
from ..values.faults import (
    ConvertFault,
    Deferred,
    EvalError,
    Location,
    Poisoned,
    suggest_near,
)
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
    render_number,
    type_of,
    unmark,
)
from .code import ITEM, Code, Context, Env


def compile_root(node: Root, context: Context) -> Code:
    name = node.name
    if name in context.bound:
        return lambda env: env.names[name]

    # The word alone, such as `each`; with an attribute behind it, `compile_attr` looks it up.
    def read_word(env: Env) -> Val:
        space = env.roots.get(name)
        if space is None:
            raise make_unknown_word_fault(node, env)
        return space.read_word(node)

    return read_word


def make_unknown_word_fault(node: Root, env: Env) -> EvalError:
    words = (*env.roots, *(name for name in env.names if name != ITEM))
    return EvalError(
        node, f'Nothing is named "{node.name}" here', advice=suggest_near(node.name, words)
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


def get_attribute(value: Val, name: str, location: Location) -> Val:
    """`value.name`. Raises EvalError."""
    owner, (value, marks) = value, unmark(value)
    if isinstance(value, ObjectVal | MapVal):
        if name in value.fields:
            return _make_part(owner, name, reveal_value(value.fields[name]), marks)
        if isinstance(value.fields, RecordedOutputs):
            raise value.fields.make_fault(name, location)
        fields = () if marks else value.fields
        noun = "key" if isinstance(value, MapVal) else "attribute"
        raise EvalError(
            location,
            f'There is no {noun} "{name}"',
            _render_names(fields),
            suggest_near(name, fields),
        )
    if isinstance(value, Null):
        raise EvalError(location, f'null has no attribute "{name}"', "The value before it is null.")
    advice = ""
    if isinstance(value, ListVal | SetVal | TupleVal):
        advice = f"Write [*].{name} for the attribute of every element, or [0].{name} for one."
    raise EvalError(
        location,
        f"{_render_subject(value)} has no attributes",
        f'"{name}" cannot be found in it.',
        advice,
    )


def _render_names(fields: object) -> str:
    names = sorted(fields) if isinstance(fields, dict) else []
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


def _make_part(owner: Val, key: str | int, element: Val, marks: Marks) -> Val:
    """The part with the marks of its owner."""
    # An element of a sensitive variable can be a secret, too, so it gets its own reference.
    ref = owner.ref if isinstance(owner, Marked) else None
    if ref is None or isinstance(element, Marked | SecretRef):
        return add_marks(element, marks)
    return Marked(element, marks, SecretRef(ref.source, render_part_name(ref.name, key)))


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
            value, fields={name: drop_part_names(item) for name, item in value.fields.items()}
        )
    return value


def compile_legacy(node: LegacyIndex, context: Context) -> Code:
    code, key = context.compile_node(node.target), node.index
    return lambda env: get_index(code(env), key, node)


def compile_index(node: Index, context: Context) -> Code:
    code, key = context.compile_node(node.target), context.compile_node(node.key)
    return lambda env: get_index(code(env), key(env), node)


def get_index(value: Val, key: Val, location: Location) -> Val:
    """`value[key]`. Raises EvalError."""
    owner, (value, marks) = value, unmark(value)
    key, key_marks = unmark(key)
    if key_marks:
        owner, marks = value, marks | key_marks  # a name with a hidden key would tell the key
    if isinstance(key, Null | SecretRef | Computed):
        raise EvalError(location, f"{_render_subject(key)} cannot be an index")
    # Keys are converted: `[1, 2]["1"]` and `{ "1" = 2 }[1]` are both 2.
    if isinstance(value, ObjectVal | MapVal):
        name = _convert_key(key, "string", location)
        if name in value.fields:
            return _make_part(owner, str(name), reveal_value(value.fields[str(name)]), marks)
        if isinstance(value.fields, RecordedOutputs) and not marks:
            raise value.fields.make_fault(str(name), location)
        key_text = "that key" if marks else f'the key "{name}"'
        advice = "" if marks else suggest_near(str(name), value.fields)
        detail = _render_names(() if marks else value.fields)
        raise EvalError(location, f"There is no element with {key_text}", detail, advice)
    if isinstance(value, TupleVal | ListVal):
        position, item = _get_element(value, key, location, hide=bool(marks))
        return _make_part(owner, position, item, marks)
    raise EvalError(
        location, f"{_render_subject(value)} cannot be indexed", _WHY.get(type(value), "")
    )


_WHY: Mapping[type, str] = {
    SetVal: "The elements of a set have no positions; use tolist(…) or a for expression.",
    Null: "The value before the brackets is null.",
}


def _get_element(
    value: TupleVal | ListVal, key: Val, location: Location, hide: bool
) -> tuple[int, Val]:
    position = _convert_key(key, "number", location)
    if isinstance(position, int) and 0 <= position < len(value.items):
        return position, reveal_value(value.items[position])
    if isinstance(position, Decimal):
        raise EvalError(location, "An index must be a whole number")
    position_text = "this one" if hide or not isinstance(position, int) else render_number(position)
    size = len(value.items)
    detail = f"The list has {size} elements, counted from 0." if size else "The list is empty."
    raise EvalError(location, f"There is no element {position_text}", detail)


def _convert_key(key: Val, kind: str, location: Location) -> Val:
    try:
        return convert_value(key, _KEYS[kind])
    except ConvertFault as fault:
        raise EvalError(location, "This cannot be an index", make_sentence(fault)) from None


_KEYS = {"string": type_of(""), "number": type_of(0)}


class Unset(Poisoned):
    """A variable has no value, or a data source was not read."""


Outcome = Val | Poisoned | Deferred
"""A value, or the exception to raise instead of it."""


class Space(Struct, frozen=True):
    """Names with values, such as `var`. Evaluation must follow the order of the graph: a name that
    is declared but not evaluated yet is not in it."""

    word: str
    """What one of its names means, such as `variable`."""
    outcomes: Mapping[str, Outcome]

    def find(self, name: str, location: Location) -> Val:
        if name not in self.outcomes:
            raise EvalError(
                location,
                f'There is no {self.word} "{name}"',
                advice=suggest_near(name, self.outcomes),
            )
        outcome = self.outcomes[name]
        if isinstance(outcome, Poisoned | Deferred):
            raise outcome
        return outcome

    def read_word(self, location: Location) -> Val:
        raise EvalError(
            location, f"Which {self.word} is meant?", "Its name is missing behind a dot."
        )


class Fixed(Struct, frozen=True):
    """A word with one value, such as `each` or `path`."""

    value: ObjectVal

    def find(self, name: str, location: Location) -> Val:
        return get_attribute(self.value, name, location)

    def read_word(self, location: Location) -> Val:
        return self.value


class Live(Mapping[str, Val]):
    """Fields of an object that are looked up when they are asked for.

    One output of a module may be faulty, or known only after the apply; the others can still be
    used.
    """

    __slots__ = ("_outcomes",)

    def __init__(self, outcomes: Mapping[str, Outcome]) -> None:
        self._outcomes = outcomes

    def __getitem__(self, name: str) -> Val:
        outcome = self._outcomes[name]
        if isinstance(outcome, Poisoned | Deferred):
            raise outcome
        return outcome

    def __contains__(self, name: object) -> bool:
        return name in self._outcomes

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)


class RecordedOutputs(dict[str, Val]):
    """The outputs that another folder has recorded. It can declare others."""

    def __init__(
        self, values: Mapping[str, Val], folder: str, sensitive: frozenset[str] = frozenset()
    ) -> None:
        """folder: its path, for messages. sensitive: names of outputs whose values nobody has
        recorded."""
        super().__init__(values)
        self.folder = folder
        self.sensitive = sensitive

    def make_fault(self, name: str, location: Location) -> EvalError:
        """The fault for the name of an output that is not here."""
        if name in self.sensitive:
            return EvalError(
                location,
                f'The output "{name}" of {self.folder} is sensitive, so its value is not recorded',
                "A state contains no secrets.",
                "Read the secret from where that folder reads it, such as secret_env(…).",
            )
        detail = f"It has recorded {', '.join(sorted(self))}." if 0 < len(self) <= 12 else ""
        return EvalError(
            location,
            f'{self.folder} has not recorded an output "{name}"',
            detail,
            suggest_near(name, self)
            or "Outputs are recorded by `kafkaform apply` in that folder: declare it there, then "
            "apply that folder first.",
        )


class OnDemand(Struct, frozen=True):
    """Names whose values are made when they are first asked for, and then kept."""

    word: str
    """What one of its names means, such as `module`."""
    names: Mapping[str, object]
    """All names; only the keys matter."""
    make: Callable[[str], Outcome]
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def find(self, name: str, location: Location) -> Val:
        if name not in self.outcomes:
            if name not in self.names:
                advice = suggest_near(name, self.names)
                raise EvalError(location, f'There is no {self.word} "{name}"', advice=advice)
            self.outcomes[name] = self.make(name)
        outcome = self.outcomes[name]
        if isinstance(outcome, Poisoned | Deferred):
            raise outcome
        return outcome

    def read_word(self, location: Location) -> Val:
        raise EvalError(
            location, f"Which {self.word} is meant?", "Its name is missing behind a dot."
        )


class Data(Struct, frozen=True):
    """`data`: the answers of data sources, by type and name."""

    outcomes: Mapping[str, Mapping[str, Outcome]]

    def find(self, name: str, location: Location) -> Val:
        # `data.TYPE` is an object of all answers. Each answer is looked up when it is used.
        return ObjectVal(Live(self.outcomes.get(name, {})))

    def read_word(self, location: Location) -> Val:
        raise EvalError(location, "Which data source is meant?", "Write data.TYPE.NAME.")
