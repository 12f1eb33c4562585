"""Compile expressions: the table of what compiles which node, and `for` expressions, splats and
templates, text with `${…}` and `%{…}`. The table is not in `code`, which all builders import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias

from ...core.schema import ANY, STRING
from ...core.text import make_sentence
from ...core.value import SecretRef
from ...syntax import nodes
from ...syntax.nodes import (
    AttrSplat,
    Expression,
    ForObject,
    ForTuple,
    FullSplat,
    Template,
    TemplateFor,
    TemplateIf,
)
from ..functions.spec import Function
from ..values.conversion import convert_value
from ..values.faults import (
    LIMITS,
    Budget,
    ConvertFault,
    EvalError,
    LimitError,
    Location,
    hide_reasons,
)
from ..values.types import describe_value
from ..values.value import (
    CHARACTERS_PER_STEP,
    EMPTY_TUPLE,
    FIELDS,
    SEQUENCES,
    UNMARKED,
    Computed,
    ListVal,
    Marks,
    Null,
    ObjectVal,
    SetVal,
    TupleVal,
    Val,
    add_marks,
    list_elements,
    normalise_text,
    type_of,
    unmark,
)
from .calls import compile_call
from .code import ITEM, Code, Context, Env, compute_weight
from .operators import (
    attempt_code,
    compile_binary,
    compile_cond,
    compile_constants,
    compile_lit,
    compile_object,
    compile_paren,
    compile_slot,
    compile_tuple,
    compile_unary,
    get_outer_marks,
    make_object_key,
    make_secret_misuse,
    require_truth,
)
from .references import (
    compile_attr,
    compile_index,
    compile_item,
    compile_legacy,
    compile_root,
    drop_part_names,
)

For: TypeAlias = ForTuple | ForObject


def iterate_collection(
    value: Val, location: Location
) -> tuple[Iterable[tuple[Val, Val]], int, Marks]:
    """The keys and values of a collection, their number, and the marks of the collection. Raises
    EvalError."""
    value, marks = unmark(value)
    if isinstance(value, SEQUENCES):
        return list_elements(value), len(value.items), marks
    if isinstance(value, FIELDS):
        return list_elements(value), len(value.fields), marks
    raise EvalError(
        location,
        "A for expression needs a collection",
        f"This is {describe_value(value)}.",
        "Write coalesce(…, []) if it can be null." if isinstance(value, Null) else "",
    )


class _Passes:
    """The passes of a `for`: sets the names, charges for each pass, and applies the `if`."""

    def __init__(self, node: For, context: Context, *body: Expression) -> None:
        self.node = node
        self.collection = context.compile_node(node.collection)
        inner = context.bind_names(node.key, node.value)
        self.condition = None if node.condition is None else inner.compile_node(node.condition)
        self.codes = tuple(map(inner.compile_node, body))
        expressions = chain(body, () if node.condition is None else (node.condition,))
        self.weight = 1 + sum(map(compute_weight, expressions))

    def run_passes(self, env: Env) -> tuple[Iterable[Env], list[Marks]]:
        """An environment for each element that passes the `if`, and a list of marks. The list is
        complete only after the last environment was used."""
        pairs, count, marks = iterate_collection(self.collection(env), self.node.collection)
        env.budget.admit(count, self.node)
        gathered = [marks] if marks else []
        return self._make_environments(env.make_inner(), pairs, gathered), gathered

    def _make_environments(
        self, env: Env, pairs: Iterable[tuple[Val, Val]], gathered: list[Marks]
    ) -> Iterable[Env]:
        key, value, condition = self.node.key, self.node.value, self.condition
        for name, item in pairs:
            env.budget.charge(self.weight, self.node)
            if key is not None:
                env.names[key] = name
            env.names[value] = item
            if condition is not None and self.node.condition is not None:
                truth, marks = unmark(condition(env))
                # Which elements are left out reveals something about a sensitive condition, so the
                # result gets its marks.
                if marks:
                    gathered.append(marks)
                if not require_truth(truth, self.node.condition):
                    continue
            yield env


def compile_for_tuple(node: ForTuple, context: Context) -> Code:
    passes = _Passes(node, context, node.result)
    code = passes.codes[0]

    def run(env: Env) -> Val:
        environments, marks = passes.run_passes(env)
        with hide_reasons(bool(marks)):
            items = tuple([code(inner) for inner in environments])
        if marks:
            items = tuple(map(drop_part_names, items))
        return add_marks(TupleVal(items), UNMARKED.union(*marks))

    return run


def compile_for_object(node: ForObject, context: Context) -> Code:
    passes = _Passes(node, context, node.result_key, node.result)
    key_code, code = passes.codes

    def run(env: Env) -> Val:
        environments, marks = passes.run_passes(env)
        groups: dict[str, list[Val]] = {}
        with hide_reasons(bool(marks)):
            for inner in environments:
                key_value, key_marks = unmark(key_code(inner))
                if key_marks:
                    marks.append(key_marks)
                key = make_object_key(key_value, node.result_key)
                if key in groups and not node.group:  # an error in HCL, not a silent loss
                    key_text = "the same key" if marks else f'the key "{key}"'
                    raise EvalError(
                        node.result_key,
                        f"Two elements produce {key_text}",
                        "The keys of an object must be unique.",
                        "Write `...` after the value to collect the values of equal keys in lists.",
                    )
                item = code(inner)
                groups.setdefault(key, []).append(drop_part_names(item) if marks else item)
        if node.group:
            grouped: dict[str, Val] = {k: TupleVal(tuple(v)) for k, v in groups.items()}
            return add_marks(ObjectVal(grouped), UNMARKED.union(*marks))
        return add_marks(ObjectVal({k: v[0] for k, v in groups.items()}), UNMARKED.union(*marks))

    return run


def compile_splat(node: AttrSplat | FullSplat, context: Context) -> Code:
    target, body = context.compile_node(node.target), context.compile_node(node.each)
    cost = 1 + compute_weight(node.each)

    def run(env: Env) -> Val:
        value, marks = unmark(target(env))
        if isinstance(value, Computed):
            raise value.defer()
        # HCL's rules for one value: null has no elements, any other value is one element. Only a
        # null that is known to be a list is an error.
        if isinstance(value, Null):
            if value.type.kind in ("list", "set", "tuple"):
                raise EvalError(node.target, "A splat needs a list", "This list is null.")
            return add_marks(EMPTY_TUPLE, marks)
        source = value if isinstance(value, SEQUENCES) else TupleVal((add_marks(value, marks),))
        env.budget.charge(len(source.items) * cost, node)
        inner = env.make_inner()
        items = []
        with hide_reasons(bool(marks)):
            for item in source.items:
                inner.names[ITEM] = item
                items.append(body(inner))
        return add_marks(_make_result(node, source, tuple(items)), marks)

    return run


def _make_result(node: AttrSplat | FullSplat, source: Val, items: tuple[Val, ...]) -> Val:
    """A list if the source is a list or a set, else a tuple."""
    if not isinstance(source, ListVal | SetVal):
        return TupleVal(items)
    kinds = {type_of(item) for item in items}
    if len(kinds) > 1:
        raise EvalError(
            node,
            "The elements of this splat have different types",
            "All elements of a list have one type.",
            "Use a for expression, which makes a tuple.",
        )
    return ListVal(kinds.pop() if kinds else ANY, items)


def compile_template(node: Template, context: Context) -> Code:
    # `"${x}"` is x itself, also if x is a list. Terraform 0.11 needed this spelling everywhere.
    if node.unwraps:
        return context.compile_node(node.parts[0])
    compiled_parts = [(part_node, context.compile_node(part_node)) for part_node in node.parts]

    def run(env: Env) -> Val:
        pieces: list[str] = []
        marks = UNMARKED
        for part_node, code in compiled_parts:
            value = code(env)
            if value.__class__ is str:  # literal text, and most interpolations
                pieces.append(value)
            else:
                piece, piece_marks = render_piece(value, part_node)
                pieces.append(piece)
                marks |= piece_marks
        return add_marks(join_pieces(pieces, node, env), marks)

    return run


def render_piece(value: Val, location: Location) -> tuple[str, Marks]:
    """An interpolated value as text, and its marks. Raises EvalError."""
    value, marks = unmark(value)
    if isinstance(value, Null):
        raise EvalError(
            location, "null cannot be part of a string", advice='Write coalesce(…, "") around it.'
        )
    if isinstance(value, SecretRef):
        raise make_secret_misuse(location)
    if isinstance(value, str):
        return value, marks
    if isinstance(value, bool | int | Decimal):
        return str(convert_value(value, STRING)), marks
    try:
        return str(convert_value(value, STRING)), marks
    except ConvertFault as fault:
        raise EvalError(
            location,
            "This value cannot be part of a string",
            make_sentence(fault),
            "Use jsonencode(…), or join(…) for a list of strings.",
        ) from None


def join_pieces(pieces: list[str], location: Location, env: Env) -> str:
    """The pieces as one string. Raises LimitError before it would be too long."""
    size = sum(map(len, pieces))
    if size > LIMITS.characters:
        raise LimitError(
            location,
            f"A string of {size:,} characters is too long",
            f"A string can have {LIMITS.characters:,} characters.",
        )
    if size > CHARACTERS_PER_STEP:
        env.budget.charge(size // CHARACTERS_PER_STEP, location)
    # Two normalised pieces can be unnormalised together: a letter, and an accent for it.
    return normalise_text("".join(pieces))


def compile_if(node: TemplateIf, context: Context) -> Code:
    condition = context.compile_node(node.condition)
    then, otherwise = _compile_body(node.then, context), _compile_body(node.otherwise, context)

    def run(env: Env) -> Val:
        # Both, as for a conditional: the marks of the result must not depend on the condition.
        sides = attempt_code(then, env), attempt_code(otherwise, env)
        truth, marks = unmark(condition(env))
        chosen = sides[0] if require_truth(truth, node.condition) else sides[1]
        if isinstance(chosen, EvalError):
            raise chosen
        return add_marks(chosen, marks.union(*map(get_outer_marks, sides)))

    return run


def _compile_body(node: Expression, context: Context) -> Code:
    """The code of a directive's body. Unlike a whole template, a body that is one interpolation
    yields text, too."""
    code = context.compile_node(node)
    if not isinstance(node, Template) or not node.unwraps:
        return code

    def run(env: Env) -> Val:
        piece, marks = render_piece(code(env), node)
        return add_marks(piece, marks)

    return run


def compile_for(node: TemplateFor, context: Context) -> Code:
    collection = context.compile_node(node.collection)
    body = _compile_body(node.body, context.bind_names(node.key, node.value))
    cost = 1 + compute_weight(node.body)

    def run(env: Env) -> Val:
        pairs, count, marks = iterate_collection(collection(env), node.collection)
        env.budget.admit(count, node)
        inner = env.make_inner()
        pieces: list[str] = []
        with hide_reasons(bool(marks)):
            for key, item in pairs:
                env.budget.charge(cost, node)
                if node.key is not None:
                    inner.names[node.key] = key
                inner.names[node.value] = item
                piece, piece_marks = render_piece(body(inner), node)
                pieces.append(piece)
                marks |= piece_marks
        return add_marks(join_pieces(pieces, node, env), marks)

    return run


BUILDERS: Mapping[type, Callable[[Any, Context], Code]] = {
    nodes.Lit: compile_lit,
    nodes.Slot: compile_slot,
    nodes.Template: compile_template,
    nodes.TemplateIf: compile_if,
    nodes.TemplateFor: compile_for,
    nodes.Tuple: compile_tuple,
    nodes.Object: compile_object,
    nodes.ConstantObject: compile_constants,
    nodes.ForTuple: compile_for_tuple,
    nodes.ForObject: compile_for_object,
    nodes.FunctionCall: compile_call,
    nodes.Root: compile_root,
    nodes.SplatItem: compile_item,
    nodes.Attr: compile_attr,
    nodes.Index: compile_index,
    nodes.LegacyIndex: compile_legacy,
    nodes.AttrSplat: compile_splat,
    nodes.FullSplat: compile_splat,
    nodes.Unary: compile_unary,
    nodes.Binary: compile_binary,
    nodes.Cond: compile_cond,
    nodes.Paren: compile_paren,
}


def make_context(functions: Mapping[str, Function]) -> Context:
    """The context for top-level expressions: `context.compile_node(node)(env)` evaluates one."""
    return Context(functions, BUILDERS, Budget())
