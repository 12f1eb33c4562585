"""Evaluate single expressions in an evaluated configuration, and show their values as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..core.diagnostics import Diagnostics
from ..core.value import SecretRef
from ..syntax.nodes import Expression, FunctionCall
from ..syntax.parse import parse_expression
from ..syntax.write import format_text, quote_string, write_value
from .desired import Built
from .evaluate.evaluation_state import clip_fault
from .evaluate.graph import collect_refs, find_targets
from .evaluate.name_check import Names, check_expression
from .evaluate.resources import OpenFields
from .expressions.code import Env
from .expressions.dependencies import AllUses
from .values.conversion import lower_value, require_bounded
from .values.faults import LIMITS, Budget, Deferred, EvalError, Poisoned, make_diagnostic
from .values.value import (
    FIELDS,
    SENSITIVE,
    Computed,
    ListVal,
    MapVal,
    Marked,
    SetVal,
    TupleVal,
    Val,
    size_of,
    type_of,
    work_of,
)

SOURCE = "console"
SENSITIVE_VALUE = "(sensitive value)"
KNOWN_AFTER_APPLY = "(known after apply)"
TYPE = "type"
MAX_ELEMENTS = 20_000
"""The largest number of elements, at all levels, of a value that is shown."""
UNKNOWN = "(not known: it depends on something that has faults or is not set)"

Evaluator = Callable[[str], tuple[str | None, Diagnostics]]
"""An expression -> its value as text, or None and the errors."""


def make_evaluator(built: Built) -> Evaluator:
    """Make what evaluates expressions as if they were local values of the root."""
    run = built.run
    uses = AllUses()
    names = Names(run.root.module, run.schemas, run.context.functions, uses)

    def evaluate(text: str) -> tuple[str | None, Diagnostics]:
        node, faults = parse_expression(text, SOURCE)
        if node is None:
            return None, faults
        type_argument = _get_typed_argument(node)
        node = type_argument or node
        unknown = tuple(check_expression(node, names))
        if unknown:
            return None, unknown
        if run.budget.spent:
            return UNKNOWN, ()
        try:
            # Each question gets its own budget, so that one of them cannot end the session.
            env, reads = Env(run.root.env.roots, {}, Budget()), run.budget.open_reads
            needs = find_targets(run.root.module, collect_refs([node], uses))
            value = run.context.compile_node(node)(env)
            if run.budget.open_reads > reads or not run.open.isdisjoint(needs):
                return KNOWN_AFTER_APPLY, ()
            return str(type_of(value)) if type_argument else render_value(
                _require_showable(value, node)
            ), ()
        except EvalError as fault:
            if run.budget.open_reads > reads:
                return KNOWN_AFTER_APPLY, ()
            return None, (clip_fault(make_diagnostic(fault)),)
        except Deferred:
            return KNOWN_AFTER_APPLY, ()
        except Poisoned:
            return UNKNOWN, ()

    return evaluate


def _get_typed_argument(node: Expression) -> Expression | None:
    """The argument of `type(…)`; None for any other expression."""
    # Not a function of the language, as in Terraform: a configuration has no use for the text.
    if (
        isinstance(node, FunctionCall)
        and node.name == TYPE
        and len(node.args) == 1
        and not node.expand
    ):
        return node.args[0]
    return None


def _require_showable(value: Val, node: Expression) -> Val:
    if work_of(value) > MAX_ELEMENTS or size_of(value) > LIMITS.characters:
        advice = "Ask for a part of it, or for its length."
        raise EvalError(node, "The value is too large to be shown", advice=advice)
    return require_bounded(value, node, "The value")


def render_value(value: Val) -> str:
    """The value as an expression that yields it. Sensitive parts are hidden. Raises Poisoned or
    Deferred if a part of a module or data source has no value."""
    bare = value.value if isinstance(value, Marked) and SENSITIVE not in value.marks else value
    text = bare if isinstance(bare, str) and bare != "\n" else ""
    # A heredoc expresses texts exactly that end with a newline and need no escapes.
    if text.endswith("\n") and all(line.isprintable() for line in text.split("\n")):
        # The marker must not be one of the lines, which would end the heredoc.
        lines, marker = text.removesuffix("\n").split("\n"), "EOT"
        while marker in (line.strip() for line in lines):
            marker += "_"
        plain = "\n".join(lines).replace("${", "$${").replace("%{", "%%{")
        return f"<<{marker}\n{plain}\n{marker}"
    return format_text(f"x = {_render_text(value)}\n").removeprefix("x = ").removesuffix("\n")


_CALLS: Mapping[type, str] = {ListVal: "tolist", SetVal: "toset", MapVal: "tomap"}


def _render_text(value: Val) -> str:
    if isinstance(value, Marked):
        return SENSITIVE_VALUE if SENSITIVE in value.marks else _render_text(value.value)
    if isinstance(value, SecretRef):
        return SENSITIVE_VALUE
    if isinstance(value, Computed):
        return KNOWN_AFTER_APPLY
    if isinstance(value, TupleVal | ListVal | SetVal):
        inside = "".join(f"{_render_text(item)},\n" for item in value.items)
        brackets = f"[\n{inside}]" if inside else "[]"
    elif isinstance(value, FIELDS):
        later = value.fields.left_out if isinstance(value.fields, OpenFields) else ()
        pairs = (
            (name, KNOWN_AFTER_APPLY if name in later else _render_text(value.fields[name]))
            for name in sorted(value.fields)
        )
        inside = "".join(f"{quote_string(name)} = {text}\n" for name, text in pairs)
        brackets = f"{{\n{inside}}}" if inside else "{}"
    else:
        return write_value(lower_value(value))
    call = _CALLS.get(type(value))
    return brackets if call is None else f"{call}({brackets})"
