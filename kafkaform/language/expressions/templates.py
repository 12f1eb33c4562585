"""Compile templates: text with `${…}` and `%{…}`."""

from __future__ import annotations

from decimal import Decimal

from ...core.schema import STRING
from ...core.text.display import make_sentence
from ...core.value import SecretRef
from ...syntax.nodes import Expression, Template, TemplateFor, TemplateIf
from ..values.conversion import convert_value
from ..values.faults import ConvertFault, EvalError, LimitError, Place, hide_reasons
from ..values.limits import LIMITS
from ..values.value import UNMARKED, Marks, Null, Val, add_marks, normalise_text, unmark
from .code import Code, Context, Env, compute_weight
from .loops import iterate_collection
from .operators import attempt_code, get_outer_marks, make_secret_misuse, require_truth

_CHARACTERS_PER_STEP = 16
"""Copying characters takes little time, but memory."""


def compile_template(node: Template, context: Context) -> Code:
    # `"${x}"` is x itself, also if x is a list. Terraform 0.11 needed this spelling everywhere.
    if node.unwraps:
        return context.compile_node(node.parts[0])
    parts = [(part, context.compile_node(part)) for part in node.parts]

    def run(env: Env) -> Val:
        pieces: list[str] = []
        marks = UNMARKED
        for place, code in parts:
            value = code(env)
            if value.__class__ is str:  # literal text, and most interpolations
                pieces.append(value)
            else:
                piece, own = render_piece(value, place)
                pieces.append(piece)
                marks |= own
        return add_marks(join_pieces(pieces, node, env), marks)

    return run


def render_piece(value: Val, place: Place) -> tuple[str, Marks]:
    """An interpolated value as text, and its marks. Raises EvalError."""
    value, marks = unmark(value)
    if isinstance(value, Null):
        raise EvalError(
            place, "null cannot be part of a string", advice='Write coalesce(…, "") around it.'
        )
    if isinstance(value, SecretRef):
        raise make_secret_misuse(place)
    if isinstance(value, str):
        return value, marks
    if isinstance(value, bool | int | Decimal):
        return str(convert_value(value, STRING)), marks
    try:
        return str(convert_value(value, STRING)), marks
    except ConvertFault as fault:
        raise EvalError(
            place,
            "This value cannot be part of a string",
            make_sentence(fault),
            "Use jsonencode(…), or join(…) for a list of strings.",
        ) from None


def join_pieces(pieces: list[str], place: Place, env: Env) -> str:
    """The pieces as one string. Raises LimitError before it would be too long."""
    size = sum(map(len, pieces))
    if size > LIMITS.characters:
        raise LimitError(
            place,
            f"A string of {size:,} characters is too long",
            f"A string can have {LIMITS.characters:,} characters.",
        )
    if size > _CHARACTERS_PER_STEP:
        env.budget.charge(size // _CHARACTERS_PER_STEP, place)
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
                piece, own = render_piece(body(inner), node)
                pieces.append(piece)
                marks |= own
        return add_marks(join_pieces(pieces, node, env), marks)

    return run
