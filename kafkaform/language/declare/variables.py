"""Check declarations of input variables, and compute and validate their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Severity
from ...core.schema import ANY, STRING, Type
from ...core.text.display import make_sentence
from ...core.value import SecretRef, Value
from ...syntax.nodes import Expression, Lit
from ...syntax.parse import parse_expression
from ..expressions.code import Context, Env, get_literal
from ..expressions.dependencies import AllUses
from ..expressions.namespaces import Found, Space, Unset
from ..expressions.references import render_part_name
from ..values.bounds import compute_conversion_cost, require_bounded
from ..values.conversion import convert_value, lower_value
from ..values.faults import (
    ConvertFault,
    Deferred,
    EvalError,
    LimitError,
    Place,
    Poisoned,
    make_diagnostic,
    make_error,
)
from ..values.types import Default, parse_type
from ..values.value import (
    SECRET,
    SENSITIVE,
    ListVal,
    MapVal,
    Marked,
    Null,
    ObjectVal,
    TupleVal,
    Val,
    add_marks,
    list_elements,
    marks_of,
    unmark,
    unmark_deep,
    work_of,
)
from .blocks import Header, check_deprecation
from .conditions import check_rule, compile_rules
from .declarations import VariableBlock
from .folder import Tree
from .variable_values import (
    COMMAND_LINE,
    PREFIX,
    TERRAFORM_PREFIX,
    GivenValue,
    VarFile,
    VariableInputs,
    gather_values,
)

__all__ = [
    "VariableInputs",
    "VarFile",
    "Variables",
    "evaluate_constant",
    "check_declaration",
    "make_default_reader",
    "warn_deprecated",
    "resolve_variables",
    "check_validations",
    "compute_value",
]

RESERVED = (
    "source",
    "version",
    "providers",
    "count",
    "for_each",
    "lifecycle",
    "depends_on",
    "locals",
)
"""Names that have another meaning in a `module` block."""


class Variables(Struct, frozen=True):
    """The variables of the root."""

    values: Mapping[str, Found]
    """By name, for `var`."""
    plain: Mapping[str, Value]
    """The values without marks, which can be shown and digested."""
    secrets: Mapping[str, str]
    """Name of a secret -> its text: of each sensitive variable, and of each part of one that is a
    collection. They are read when they are sent."""
    diagnostics: Diagnostics


def resolve_variables(
    tree: Tree, blocks: Mapping[str, VariableBlock], inputs: VariableInputs, context: Context
) -> Variables:
    """The values of all variables that the root declares, and all faults in them."""
    faults: list[Diagnostic] = []
    found = gather_values(tree, blocks, inputs, faults)
    values: dict[str, Found] = {}
    for name, block in blocks.items():
        given = found.get(name)
        values[name] = Poisoned()
        problems = list(check_declaration(block, context))
        faults.extend(problems)
        if problems:
            continue
        if given is not None:
            faults.extend(warn_deprecated(block, given.place))
            faults.extend(_warn_typed_secret(block, given))
        try:
            values[name] = _compute_root_value(block, given, context)
        except Unset as unset:
            values[name] = unset
            if not inputs.partial:
                faults.append(_make_unset_fault(block, tree.terraform))
        except EvalError as fault:
            faults.append(make_diagnostic(fault, context=[f"while reading var.{name}"]))
        except Poisoned:
            continue
    for block in blocks.values():
        faults.extend(check_validations(block, values, context))
    known = {name: value for name, value in values.items() if not isinstance(value, Exception)}
    plain = {n: lower_value(v) for n, v in known.items() if not marks_of(v)}
    hidden = {n: unmark_deep(v) for n, v in known.items() if marks_of(v)}
    secrets = dict(chain.from_iterable(_list_texts(n, v) for n, v in hidden.items()))
    return Variables(values, plain, secrets, tuple(faults))


def _list_texts(name: str, value: Val) -> Iterator[tuple[str, str]]:
    """Each text of a sensitive value under the name that a reference gives it."""
    if isinstance(value, ObjectVal | MapVal | ListVal | TupleVal):
        for key, part in list_elements(value):
            yield from _list_texts(render_part_name(name, key), part)
    elif isinstance(value, str | bool | int | Decimal):
        yield name, str(convert_value(value, STRING))


def _make_unset_fault(block: VariableBlock, terraform: bool) -> Diagnostic:
    prefix, file, more = (PREFIX, "kafkaform.kfvars.hcl", "*.auto.kfvars.hcl")
    if terraform:
        prefix, file, more = (TERRAFORM_PREFIX, "terraform.tfvars", "*.auto.tfvars")
    return make_error(
        Header(block.block),
        f'The variable "{block.name}" has no value',
        "It has no default, so you must set it.",
        f"Set it with --var '{block.name}=…', {prefix}{block.name} in the environment, {file}, a "
        f"{more} file, or --var-file.",
    )


# ── declarations ────────────────────────────────────────────────────────────────────────


def check_declaration(block: VariableBlock, context: Context) -> Iterator[Diagnostic]:
    """The faults of a declaration, whatever the value is."""
    if block.name in RESERVED:
        detail = "A module block has an argument with this name."
        yield make_error(Header(block.block), f'A variable cannot be named "{block.name}"', detail)
    yield from check_deprecation(block.block)
    const = block.block.get_argument("const")
    if const is not None and not (isinstance(const, Lit) and isinstance(const.value, bool)):
        yield make_error(const, '"const" must be the constant true or false')
    for rule in block.validations:
        condition = rule.get_argument("condition")
        if condition is not None and not _has_reference(condition, block.name):
            summary = f"The condition of a validation must refer to var.{block.name}"
            yield make_error(condition, summary)
    if block.default is not None:
        try:
            compute_value(block, None, Header(block.block), "", context)
        except EvalError as fault:
            yield make_diagnostic(fault, context=[f"while reading var.{block.name}"])
        except Poisoned:
            return


def _has_reference(node: Expression, name: str) -> bool:
    return any(
        reference.root.name == "var" and reference.steps and reference.steps[0].attribute == name
        for reference in AllUses()[node].references
    )


def warn_deprecated(block: VariableBlock, place: Place) -> Iterator[Diagnostic]:
    """A warning for a value that is given to a deprecated variable. place: of the value."""
    text = None if block.deprecated is None else get_literal(block.deprecated)
    if text:
        summary = f'The variable "{block.name}" is deprecated'
        found = make_error(place, summary, text, hide=_is_secret(block))
        yield replace(found, severity=Severity.WARNING)


def _warn_typed_secret(block: VariableBlock, given: GivenValue) -> Iterator[Diagnostic]:
    """A warning for a secret on the command line."""
    # Not an error, because pipelines that move over from Terraform pass passwords like this.
    if _is_secret(block) and given.origin == COMMAND_LINE:
        summary = f'--var contains the value of the sensitive variable "{block.name}"'
        detail = "Every user of this computer can read it in the list of processes."
        advice = f"Set {PREFIX}{block.name} in the environment, or use a variable file."
        found = make_error(given.place, summary, detail, advice=advice)
        yield replace(found, severity=Severity.WARNING)


def _is_secret(block: VariableBlock) -> bool:
    """Whether its value must be neither shown nor stored."""
    return block.sensitive or block.ephemeral


# ── one value ───────────────────────────────────────────────────────────────────────────


def _compute_root_value(block: VariableBlock, source: GivenValue | None, context: Context) -> Val:
    """The converted value of a variable of the root. Raises EvalError, or Unset if it has no
    value."""
    if source is None:
        value = compute_value(block, None, Header(block.block), "", context)
    else:
        given = _read_given(block, source, context)
        value = compute_value(block, given, source.place, source.origin, context)
    if not _is_secret(block):
        context.budget.charge(work_of(value), Header(block.block))
        return value
    # A whole sensitive variable of the root is a secret that can be sent: it has a reference.
    bare = unmark(value)[0]
    return Marked(bare, frozenset({SENSITIVE, SECRET}), SecretRef("variable", block.name))


def compute_value(
    block: VariableBlock, given: Val | None, place: Place, origin: str, context: Context
) -> Val:
    """The value of a variable. Raises EvalError, or Unset if there is no value and no default.

    given: the value from outside, None if there is none; place: of that value; origin: where it
    comes from, for messages.
    """
    kind = ANY if block.type is None else parse_type(block.type, make_default_reader(context))
    value = given
    # As in Terraform, null stands for the default if the variable cannot be null.
    if value is None or (isinstance(unmark(value)[0], Null) and not block.nullable):
        if block.default is not None:
            place, value = block.default, _evaluate_hiding(block, block.default, context)
        elif value is None:
            raise Unset
    if isinstance(unmark(value)[0], Null) and not block.nullable:
        raise EvalError(place, f'The variable "{block.name}" cannot be null')
    hide = _is_secret(block) or bool(marks_of(value))
    try:
        require_bounded(value, place, f'The value of the variable "{block.name}"')
        context.budget.charge(compute_conversion_cost(value, kind), place)
        value = convert_value(value, kind)
    except LimitError as fault:
        fault.hide = hide
        raise
    except ConvertFault as fault:
        by = f" (from {origin})" if origin else ""
        raise EvalError(
            place,
            f'The value of the variable "{block.name}" does not fit its type',
            make_sentence(f"{fault.message if hide else fault}{by}"),
            hide=hide,
        ) from None
    if block.ephemeral:
        return add_marks(value, frozenset({SENSITIVE, SECRET}))
    return add_marks(value, frozenset({SENSITIVE})) if block.sensitive else value


def _read_given(block: VariableBlock, source: GivenValue, context: Context) -> Val:
    """The value that is given from outside. Raises EvalError."""
    # As in Terraform, the text for a primitive or untyped variable is taken as it is, and any other
    # text is read as an expression: `--var 'names=["a"]'`.
    node = source.node
    if node is None:
        if block.type is None or getattr(block.type, "name", "") in ("string", "number", "bool"):
            return source.text
        node, faults = parse_expression(source.text, source.origin)
        if node is None:
            summary = f'The value of the variable "{block.name}" from {source.origin} '
            why = "" if _is_secret(block) else faults[0].summary
            raise EvalError(source.place, summary + "is not an expression", why)
    return _evaluate_hiding(block, node, context)


def _evaluate_hiding(block: VariableBlock, node: Expression, context: Context) -> Val:
    """The value of an expression. Raises EvalError."""
    # The fault of a secret has a place only. Even the reason could repeat the secret: a password
    # without quotes is reported as an unknown name.
    try:
        return evaluate_constant(node, context)
    except EvalError as fault:
        if not _is_secret(block):
            raise
        summary = f'The value of the variable "{block.name}" cannot be evaluated'
        why = "The reason is hidden because the variable is sensitive."
        raise EvalError(fault.place, summary, why, hide=True) from None


def evaluate_constant(node: Expression, context: Context) -> Val:
    """The value of an expression that refers to nothing. Raises EvalError."""
    return context.compile_node(node)(Env({}, {}, context.budget))


def make_default_reader(context: Context) -> Default:
    """Make what evaluates the default of `optional(type, default)` in a type."""

    def read(node: Expression, kind: Type) -> Value:
        try:
            value = require_bounded(evaluate_constant(node, context), node, "The default")
            context.budget.charge(compute_conversion_cost(value, kind) + work_of(value), node)
            return lower_value(convert_value(value, kind))
        except ConvertFault as fault:
            raise EvalError(
                node, "The default does not fit its type", make_sentence(fault)
            ) from None

    return read


# ── validation ──────────────────────────────────────────────────────────────────────────


def check_validations(
    block: VariableBlock, values: Mapping[str, Found], context: Context
) -> Iterator[Diagnostic]:
    """An error for each validation that is not met. values: of all variables of the module."""
    if isinstance(values.get(block.name), Poisoned):
        return
    env = Env({"var": Space("variable", values)}, {}, context.budget)
    rules = compile_rules(block.validations, context)
    for rule, compiled in zip(block.validations, rules, strict=True):
        try:
            message = check_rule(compiled, env)
        except (Poisoned, Deferred):
            continue
        except EvalError as fault:
            fault.hide = fault.hide or _is_secret(block)
            yield make_diagnostic(fault, context=[f"while validating var.{block.name}"])
            continue
        if message is not None:
            yield make_error(
                Header(block.block),
                f'The value of the variable "{block.name}" is not valid',
                message,
                f"The rule is at {rule.range}.",
            )
