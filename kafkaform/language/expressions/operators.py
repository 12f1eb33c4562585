"""Compile operators, conditionals, and literals of collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ...core.schema import ANY, BOOL, NUMBER, Type
from ...core.text import make_sentence
from ...core.value import SecretRef
from ...syntax.nodes import (
    Attr,
    Binary,
    Cond,
    ConstantObject,
    Expression,
    Lit,
    Object,
    Paren,
    Root,
    Slot,
    Tuple,
    Unary,
    split_operands,
)
from ...syntax.terms import Constant, Constants, read_constants
from ..values.conversion import compute_type_cost, convert_value, require_shallow
from ..values.faults import ConvertFault, EvalError, LimitError, Location
from ..values.types import describe_type, describe_value, render_type, unify_types
from ..values.value import (
    NULL,
    UNMARKED,
    Composite,
    Computed,
    Marks,
    Null,
    ObjectVal,
    TupleVal,
    Val,
    add,
    add_marks,
    compute_remainder,
    divide,
    find_sealed,
    is_equal,
    make_whole,
    marks_of,
    multiply,
    subtract,
    type_of,
    unmark,
    work_of,
)
from .code import Code, Context, Env, get_literal, make_failing
from .dependencies import render_dotted_name

_REFERENCE_WORDS = frozenset(
    ("var", "local", "each", "count", "module", "data", "path", "self", "terraform")
)
"""First words of references: a key that begins with one of them can be meant as a reference."""


def compile_slot(node: Slot, _: Context) -> Code:
    index = node.index
    return lambda env: env.words[index]


def compile_lit(node: Lit, _: Context) -> Code:
    value = _make_constant(node.value)
    return lambda env: value


def compile_constants(node: ConstantObject, _: Context) -> Code:
    value = _make_constant(read_constants(node.source, node.start, node.end))
    return lambda env: value


def _make_constant(constant: Constant | Constants) -> Val:
    if isinstance(constant, dict):
        value = ObjectVal({name: _make_constant(item) for name, item in constant.items()})
        # Constants have no marks and are not secrets, so they are not searched for these.
        value.__dict__.update(marks=UNMARKED, sealed_part=None)
        return value
    if isinstance(constant, Decimal):
        return make_whole(constant)
    return NULL if constant is None else constant


def compile_paren(node: Paren, context: Context) -> Code:
    return context.compile_node(node.inner)


def compile_tuple(node: Tuple, context: Context) -> Code:
    codes = tuple(map(context.compile_node, node.items))
    return lambda env: TupleVal(tuple([code(env) for code in codes]))


def compile_object(node: Object, context: Context) -> Code:
    # Most objects have constant keys, for which nothing has to be checked at each evaluation.
    named = [(get_literal(item.key), context.compile_node(item.value)) for item in node.items]
    plain = [(name, code) for name, code in named if name is not None]
    if len(plain) == len(node.items):
        return lambda env: ObjectVal({name: code(env) for name, code in plain})
    pairs = [
        (item.key, _compile_key(item.key, context), context.compile_node(item.value))
        for item in node.items
    ]

    def build(env: Env) -> Val:
        fields: dict[str, Val] = {}
        marks = UNMARKED
        for key_node, key_code, code in pairs:
            key, key_marks = unmark(key_code(env))
            marks |= key_marks  # keys cannot have marks, so the object gets them
            fields[make_object_key(key, key_node)] = code(env)
        return add_marks(ObjectVal(fields), marks)

    return build


def _compile_key(node: Expression, context: Context) -> Code:
    if isinstance(node, Root):  # a bare word is a name, not a reference
        name = node.name
        return lambda env: name
    if isinstance(node, Lit) and node.value is None:
        return lambda env: "null"
    # The parser accepts a dotted key, because the `providers` of a module have such keys.
    if isinstance(node, Attr):
        return make_failing(make_dotted_key_fault(node))
    return context.compile_node(node)


def make_dotted_key_fault(node: Attr) -> EvalError:
    """The fault of a key with dots and without quotes."""
    name = render_dotted_name(node)
    if not name:
        return EvalError(
            node,
            "Ambiguous key",
            "It could be a name with dots or a reference.",
            'Put a name in quotes ("a.b"), and a reference in parentheses.',
        )
    meant = f", or ({name}) if you mean the value of this reference"
    return EvalError(
        node,
        f"The key {name} needs quotes",
        "Without quotes, a name with dots is a reference.",
        f'Write "{name}"{meant if name.partition(".")[0] in _REFERENCE_WORDS else ""}.',
    )


def make_object_key(key: Val, location: Location) -> str:
    """The text of a key of an object. Raises EvalError. key: without marks."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool | int | Decimal):
        return str(convert_value(key, type_of("")))
    raise EvalError(location, f"{describe_value(key).capitalize()} cannot be a key")


def convert_operand(value: Val, want: Any, location: Location) -> Any:
    """An operand as a number or bool. Raises EvalError. value: without marks."""
    if isinstance(value, Null):
        raise EvalError(
            location, "null cannot be an operand", "The value of this expression is null."
        )
    if isinstance(value, SecretRef):
        raise make_secret_misuse(location)
    try:
        return convert_value(value, want)
    except ConvertFault as fault:
        raise EvalError(location, "This cannot be an operand here", make_sentence(fault)) from None


def make_secret_misuse(location: Location) -> EvalError:
    return EvalError(
        location,
        "A secret can only be used whole",
        "Its value is read only after the plan is approved, so nothing can be computed from it.",
        "Store the whole value as one secret.",
    )


def compile_unary(node: Unary, context: Context) -> Code:
    code, location = context.compile_node(node.operand), node.operand
    want = NUMBER if node.operator == "-" else BOOL

    def run(env: Env) -> Val:
        value, marks = unmark(code(env))
        operand = convert_operand(value, want, location)
        return add_marks(-operand if want is NUMBER else not operand, marks)

    return run


Side = Val | EvalError
"""An operand, or the fault of evaluating it: `false && …` does not need its right side."""


def compile_binary(node: Binary, context: Context) -> Code:
    # A chain of operators is a loop, because `1+1+1+…` can be thousands of levels deep.
    first, chain = split_operands(node)
    start = context.compile_node(first)
    steps = [(_APPLY[step.operator], step, context.compile_node(step.right)) for step in chain]

    def run(env: Env) -> Val:
        result = attempt_code(start, env)
        for apply, step, code in steps:
            try:
                result = apply(step, result, attempt_code(code, env), env)
            except EvalError as fault:
                result = fault
        if isinstance(result, EvalError):
            raise result
        return result

    return run


def attempt_code(code: Code, env: Env) -> Side:
    """The value, or the fault of evaluating it. A LimitError is raised."""
    try:
        return code(env)
    except LimitError:
        # A limit ends the evaluation, whatever the other side says.
        raise
    except EvalError as fault:
        return fault


def _require_sides(left_side: Side, right_side: Side) -> tuple[Val, Val]:
    if isinstance(left_side, EvalError):
        raise left_side
    if isinstance(right_side, EvalError):
        raise right_side
    return left_side, right_side


def _apply_logic(step: Binary, left_side: Side, right_side: Side, _: Env) -> Val:
    # HCL evaluates both sides: `true || x` is true though x is faulty, and so is `x || true`.
    # Marks of both sides count, since the result depends on both. Unlike in Terraform, null is an
    # error unless the other side decides.
    decisive = step.operator == "||"
    marks, operands = UNMARKED, []
    for side, location in ((left_side, step.left), (right_side, step.right)):
        value: Any = side
        if not isinstance(side, EvalError):
            value, side_marks = unmark(side)
            marks |= side_marks
            value = value if isinstance(value, Null) else convert_operand(value, BOOL, location)
        operands.append((value, location))
    if any(value is decisive for value, _ in operands):
        return add_marks(decisive, marks)
    for value, location in operands:
        if isinstance(value, EvalError):
            raise value
        convert_operand(value, BOOL, location)
    return add_marks(not decisive, marks)


def _apply_equality(step: Binary, left_side: Side, right_side: Side, env: Env) -> Val:
    left_value, right_value = _require_sides(left_side, right_side)
    marks = marks_of(left_value) | marks_of(right_value)
    env.budget.charge(2 * min(work_of(left_value), work_of(right_value)), step)
    require_shallow(left_value, step.left), require_shallow(right_value, step.right)
    # A secret can be compared with null, to see whether it is set, and with nothing else.
    if not (isinstance(unmark(left_value)[0], Null) or isinstance(unmark(right_value)[0], Null)):
        for side, location in ((left_value, step.left), (right_value, step.right)):
            if isinstance(find_sealed(side), SecretRef):
                raise make_secret_misuse(location)
    return add_marks(is_equal(left_value, right_value) == (step.operator == "=="), marks)


_PARSING = 20
"""Steps for reading a number from a string."""


def _apply_numeric(step: Binary, left_side: Side, right_side: Side, env: Env) -> Val:
    left_value, right_value = _require_sides(left_side, right_side)
    if left_value.__class__ is int and right_value.__class__ is int:
        marks = UNMARKED
    else:
        (left_value, left_marks), (right_value, right_marks) = (
            unmark(left_value),
            unmark(right_value),
        )
        marks = left_marks | right_marks
        if isinstance(left_value, str) or isinstance(right_value, str):
            env.budget.charge(_PARSING, step)
        left_value, right_value = (
            convert_operand(left_value, NUMBER, step.left),
            convert_operand(right_value, NUMBER, step.right),
        )
    try:
        return add_marks(_NUMERIC[step.operator](left_value, right_value), marks)
    except ValueError as fault:
        raise EvalError(step, "This cannot be computed", make_sentence(fault)) from None


_NUMERIC: Mapping[str, Callable[[Any, Any], Val]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": compute_remainder,
    "<": lambda first, second: bool(first < second),
    "<=": lambda first, second: bool(first <= second),
    ">": lambda first, second: bool(first > second),
    ">=": lambda first, second: bool(first >= second),
}
_APPLY: Mapping[str, Callable[[Binary, Side, Side, Env], Val]] = {
    "&&": _apply_logic,
    "||": _apply_logic,
    "==": _apply_equality,
    "!=": _apply_equality,
    **dict.fromkeys(_NUMERIC, _apply_numeric),
}


def compile_cond(node: Cond, context: Context) -> Code:
    condition = context.compile_node(node.condition)
    then, otherwise = context.compile_node(node.then), context.compile_node(node.otherwise)

    def run(env: Env) -> Val:
        # Both results are evaluated, because the type of a conditional is common to both. A fault
        # counts only in the one that is chosen.
        first, second = attempt_code(then, env), attempt_code(otherwise, env)
        truth, marks = unmark(condition(env))
        chosen = first if require_truth(truth, node.condition) else second
        if isinstance(chosen, EvalError):
            raise chosen
        marks |= get_outer_marks(first) | get_outer_marks(second)
        return add_marks(_convert_to_both(node, chosen, first, second, env), marks)

    return run


def get_outer_marks(side: Side) -> Marks:
    """The marks of one result of a condition. The chosen result gets the marks of both, so that
    whether a value is sensitive does not depend on the condition."""
    return UNMARKED if isinstance(side, EvalError) else unmark(side)[1]


def require_truth(value: Val, location: Location) -> bool:
    """Whether a condition holds. Raises EvalError unless it is true or false. value: without
    marks."""
    if value.__class__ is bool:
        return value
    if isinstance(value, Null):
        raise EvalError(location, "A condition cannot be null")
    if isinstance(value, SecretRef):
        raise make_secret_misuse(location)
    try:
        return bool(convert_value(value, BOOL))
    except ConvertFault as fault:
        raise EvalError(
            location, "A condition must be true or false", make_sentence(fault)
        ) from None


def _describe_difference(first: Type, second: Type) -> str:
    words = describe_type(first), describe_type(second)
    if words[0] == words[1]:
        words = render_type(first), render_type(second)
    return f"One is {words[0]}, the other is {words[1]}."


def _convert_to_both(node: Cond, chosen: Val, first: Side, second: Side, env: Env) -> Val:
    """The chosen result, converted to the common type of both: `true ? 1 : "a"` is "1"."""
    if isinstance(first, EvalError) or isinstance(second, EvalError):
        return chosen
    if first.__class__ is second.__class__ and isinstance(first, str | bool | int | Decimal):
        return chosen
    if any(isinstance(side, Computed) for side in (first, second)):
        return chosen
    kinds = [type_of(require_shallow(side, node)) for side in (first, second)]
    if kinds[0] == kinds[1]:
        return chosen
    for side in (unmark(first)[0], unmark(second)[0]):
        if isinstance(side, Composite):
            env.budget.charge(compute_type_cost(side), node)
    shared = unify_types(kind for kind in kinds if kind != ANY)  # null fits every other type
    try:
        if shared is not None:
            return convert_value(chosen, shared)
        detail = _describe_difference(*kinds)
    except ConvertFault as fault:
        detail = make_sentence(fault)
    raise EvalError(node, "The two results of a condition have no type in common", detail)
