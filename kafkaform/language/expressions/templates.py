"""Templates: text with `${…}` and `%{…}`."""

from __future__ import annotations

from decimal import Decimal

from ...core.schema import STRING
from ...core.value import SecretRef
from ...syntax.nodes import Expression, Template, TemplateFor, TemplateIf
from ..values.conversion import convert
from ..values.faults import ConvertFault, EvalError, LimitError, Place, hiding
from ..values.limits import LIMITS
from ..values.value import UNMARKED, Marks, Null, Val, text, unmark, with_marks
from .code import Code, Context, Env, weight
from .loops import iterate
from .operators import attempt, outer_marks, secret_misuse, truth_of

_CHARACTERS_PER_STEP = 16
"""Copying is cheap, but memory is not."""


def compile_template(node: Template, context: Context) -> Code:
    if node.unwraps:
        return context.code(node.parts[0])
    parts = [(part, context.code(part)) for part in node.parts]

    def run(env: Env) -> Val:
        pieces: list[str] = []
        marks = UNMARKED
        for place, code in parts:
            value = code(env)
            if value.__class__ is str:
                pieces.append(value)
            else:
                piece, own = piece_of(value, place)
                pieces.append(piece)
                marks |= own
        return with_marks(joined(pieces, node, env), marks)

    return run


def piece_of(value: Val, place: Place) -> tuple[str, Marks]:
    """An interpolated value as text, and its marks. Raises EvalError."""
    value, marks = unmark(value)
    if isinstance(value, Null):
        raise EvalError(
            place, "null cannot be part of a string", advice='Write coalesce(…, "") around it.'
        )
    if isinstance(value, SecretRef):
        raise secret_misuse(place)
    if isinstance(value, str):
        return value, marks
    if isinstance(value, bool | int | Decimal):
        return str(convert(value, STRING)), marks
    try:
        return str(convert(value, STRING)), marks
    except ConvertFault as fault:
        raise EvalError(
            place,
            "This value cannot be part of a string",
            f"Here {fault}.",
            "Use jsonencode(…), or join(…) for a list of strings.",
        ) from None


def joined(pieces: list[str], place: Place, env: Env) -> str:
    """The pieces as one string. Raises LimitError before it would be too long."""
    size = sum(map(len, pieces))
    if size > LIMITS.characters:
        raise LimitError(
            place,
            f"A string of {size:,} characters is too long",
            f"A string may have {LIMITS.characters:,} characters.",
        )
    if size > _CHARACTERS_PER_STEP:
        env.budget.charge(size // _CHARACTERS_PER_STEP, place)
    return text("".join(pieces))


def compile_if(node: TemplateIf, context: Context) -> Code:
    condition = context.code(node.condition)
    then, otherwise = _body(node.then, context), _body(node.otherwise, context)

    def run(env: Env) -> Val:
        sides = attempt(then, env), attempt(otherwise, env)
        truth, marks = unmark(condition(env))
        chosen = sides[0] if truth_of(truth, node.condition) else sides[1]
        if isinstance(chosen, EvalError):
            raise chosen
        return with_marks(chosen, marks.union(*map(outer_marks, sides)))

    return run


def _body(node: Expression, context: Context) -> Code:
    """The text of a directive; a body that is one interpolation still yields text."""
    code = context.code(node)
    if not isinstance(node, Template) or not node.unwraps:
        return code

    def run(env: Env) -> Val:
        piece, marks = piece_of(code(env), node)
        return with_marks(piece, marks)

    return run


def compile_for(node: TemplateFor, context: Context) -> Code:
    collection = context.code(node.collection)
    body = _body(node.body, context.binding(node.key, node.value))
    cost = 1 + weight(node.body)

    def run(env: Env) -> Val:
        pairs, count, marks = iterate(collection(env), node.collection)
        env.budget.admit(count, node)
        inner = env.inner()
        pieces: list[str] = []
        with hiding(bool(marks)):
            for key, item in pairs:
                env.budget.charge(cost, node)
                if node.key is not None:
                    inner.names[node.key] = key
                inner.names[node.value] = item
                piece, own = piece_of(body(inner), node)
                pieces.append(piece)
                marks |= own
        return with_marks(joined(pieces, node, env), marks)

    return run
