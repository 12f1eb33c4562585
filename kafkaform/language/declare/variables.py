"""Check declarations of input variables, find their values, and compute and validate them.

The order of values is Terraform's, the weakest first: the environment, the value file that is
always read, the automatic ones by name, then `--var` and `--var-file` in the order of the command
line. A value replaces a weaker one as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Severity
from ...core.schema import ANY, STRING, Type
from ...core.text import make_sentence
from ...core.value import SecretRef, Value
from ...syntax.nodes import Attribute, Expression, File, Lit
from ...syntax.parse import parse_expression
from ..expressions.code import Context, Env, get_literal
from ..expressions.dependencies import AllUses
from ..expressions.references import Outcome, Space, Unset, render_part_name
from ..values.conversion import compute_conversion_cost, convert_value, lower_value, require_bounded
from ..values.faults import (
    ConvertFault,
    Deferred,
    EvalError,
    LimitError,
    Location,
    Poisoned,
    make_diagnostic,
    make_error,
    suggest_near,
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
from .blocks import Header, VariableBlock, check_deprecation, check_rule, compile_rules
from .folder import Tree, parse_values

PREFIX = "KF_VAR_"
TERRAFORM_PREFIX = "TF_VAR_"
COMMAND_LINE = "--var"
UNDECLARED = 2
"""How many undeclared names of files are reported one by one; a file can serve many folders."""


class VarFile(Struct, frozen=True):
    """A file given with --var-file."""

    name: str
    """As the user wrote it."""
    content: bytes


class VariableInputs(Struct, frozen=True):
    """Where values can come from, besides the files of the folder."""

    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment. Only KF_VAR_… is used, and TF_VAR_… for Terraform's files."""
    assignments: tuple[str | VarFile | File, ...] = ()
    """`name=value` texts (--var) and files (--var-file), in the order of the command line; then
    values that were parsed already, of a test file."""
    partial: bool = False
    """Whether variables can be unset (`validate`). What needs them is then checked for names
    only."""


class InputValue(Struct, frozen=True):
    """A value from outside: a node of a file, or a text."""

    origin: str
    """Where it comes from, for messages."""
    location: Location
    """The place to blame; for a text, the block of the variable."""
    node: Expression | None = None
    text: str = ""


Blocks = Mapping[str, VariableBlock]


def gather_values(
    tree: Tree, blocks: Blocks, inputs: VariableInputs, faults: list[Diagnostic]
) -> Mapping[str, InputValue]:
    """The strongest value of each declared variable."""
    values: dict[str, InputValue] = {}
    prefixes = (TERRAFORM_PREFIX, PREFIX) if tree.terraform else (PREFIX,)
    for prefix in prefixes:
        for name, block in blocks.items():
            if prefix + name in inputs.environ:
                text = inputs.environ[prefix + name]
                values.update(
                    _require_text(
                        name, InputValue(prefix + name, Header(block.block), text=text), faults
                    )
                )
    undeclared: list[Attribute] = []
    for file in tree.values:
        values.update(_read_file_values(file, blocks, faults, undeclared))
    for argument in inputs.assignments:
        if isinstance(argument, File):
            values.update(_read_file_values(argument, blocks, faults, undeclared))
        elif isinstance(argument, VarFile):
            file, problems = parse_values(argument.content, argument.name)
            faults.extend(problems)
            values.update(_read_file_values(file, blocks, faults, undeclared))
        else:
            values.update(_read_argument(argument, blocks, faults))
    if undeclared:
        faults.extend(_warn_undeclared(undeclared, blocks))
    return values


def _read_file_values(
    file: File, blocks: Blocks, faults: list[Diagnostic], undeclared: list[Attribute]
) -> Iterator[tuple[str, InputValue]]:
    for block in file.body.blocks:
        label = block.labels[0].text if block.type == "variable" and block.labels else ""
        advice = f"Write {label} = …, and declare the variable in another file." if label else ""
        summary = "A file of variable values cannot contain blocks"
        faults.append(make_error(Header(block), summary, advice=advice))
    for name, item in file.body.attributes.items():
        if name in blocks:
            yield name, InputValue(item.range.file, item, item.value)
        else:
            undeclared.append(item)


def _warn_undeclared(items: Iterable[Attribute], blocks: Blocks) -> Iterator[Diagnostic]:
    """Warnings for values of undeclared variables."""
    # Without the source line: the value may be a secret whose name is misspelt.
    unique_items = list({item.name: item for item in items}.values())
    for item in unique_items[:UNDECLARED]:
        advice = suggest_near(item.name, blocks) or f'Declare it with variable "{item.name}" {{ }}.'
        summary = f'No variable "{item.name}" is declared'
        yield Diagnostic(Severity.WARNING, summary, range=item.range, advice=advice)
    further_names = [item.name for item in unique_items[UNDECLARED:]]
    if further_names:
        name_list = ", ".join(further_names[:10]) + (", …" if len(further_names) > 10 else "")
        summary = (
            f"Values of {len(further_names)} more undeclared variables are ignored: {name_list}"
        )
        yield Diagnostic(Severity.WARNING, summary)


def _read_argument(
    argument: str, blocks: Blocks, faults: list[Diagnostic]
) -> Iterator[tuple[str, InputValue]]:
    """The variable and the value of a `--var`."""
    # No message repeats the value, which may be a secret.
    name, equals, text = argument.partition("=")
    if not equals:
        faults.append(_make_fault("--var needs name=value", "Add the = and a value."))
    elif name != name.strip():
        advice = f"Write --var '{name.strip()}=…' without blanks around the =."
        faults.append(_make_fault(f'--var sets "{name}", which contains a blank', advice))
    elif name not in blocks:
        summary = f'--var sets "{name}", but this variable is not declared'
        faults.append(_make_fault(summary, suggest_near(name, blocks)))
    else:
        input_value = InputValue(COMMAND_LINE, Header(blocks[name].block), text=text)
        yield from _require_text(name, input_value, faults)


def _require_text(
    name: str, input_value: InputValue, faults: list[Diagnostic]
) -> Iterator[tuple[str, InputValue]]:
    """The value, unless it is not UTF-8, which is reported."""
    # Python decodes bytes that are not UTF-8 to halves of surrogate pairs (PEP 383). They could be
    # neither sent nor written to a file.
    try:
        input_value.text.encode()
    except UnicodeEncodeError:
        summary = f'The value of "{name}" from {input_value.origin} is not UTF-8 text'
        faults.append(make_error(input_value.location, summary, advice="Set it again in UTF-8."))
        return
    yield name, input_value


def _make_fault(summary: str, advice: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, advice=advice)


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

    values: Mapping[str, Outcome]
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
    input_values = gather_values(tree, blocks, inputs, faults)
    values: dict[str, Outcome] = {}
    for name, block in blocks.items():
        input_value = input_values.get(name)
        values[name] = Poisoned()
        problems = list(check_declaration(block, context))
        faults.extend(problems)
        if problems:
            continue
        if input_value is not None:
            faults.extend(warn_deprecated(block, input_value.location))
            faults.extend(_warn_typed_secret(block, input_value))
        try:
            values[name] = _compute_root_value(block, input_value, context)
        except Unset as unset:
            values[name] = unset
            if not inputs.partial:
                faults.append(_make_unset_fault(block, tree.terraform))
        except EvalError as fault:
            faults.append(make_diagnostic(fault, context=[f"while reading var.{name}"]))
        except Poisoned:
            # The fault is reported where the value lost its meaning.
            continue
    for block in blocks.values():
        faults.extend(check_validations(block, values, context))
    sound_values = {
        name: value for name, value in values.items() if not isinstance(value, Exception)
    }
    plain = {n: lower_value(v) for n, v in sound_values.items() if not marks_of(v)}
    sensitive_values = {n: unmark_deep(v) for n, v in sound_values.items() if marks_of(v)}
    secrets = dict(chain.from_iterable(_list_texts(n, v) for n, v in sensitive_values.items()))
    return Variables(values, plain, secrets, tuple(faults))


def _list_texts(name: str, value: Val) -> Iterator[tuple[str, str]]:
    """Each text of a sensitive value under the name that a reference gives it."""
    if isinstance(value, ObjectVal | MapVal | ListVal | TupleVal):
        for key, element in list_elements(value):
            yield from _list_texts(render_part_name(name, key), element)
    elif isinstance(value, str | bool | int | Decimal):
        yield name, str(convert_value(value, STRING))


def _make_unset_fault(block: VariableBlock, terraform: bool) -> Diagnostic:
    prefix, file, automatic = (PREFIX, "kafkaform.kfvars.hcl", "*.auto.kfvars.hcl")
    if terraform:
        prefix, file, automatic = (TERRAFORM_PREFIX, "terraform.tfvars", "*.auto.tfvars")
    return make_error(
        Header(block.block),
        f'The variable "{block.name}" has no value',
        "It has no default, so you must set it.",
        f"Set it with --var '{block.name}=…', {prefix}{block.name} in the environment, {file}, a "
        f"{automatic} file, or --var-file.",
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
        if condition is not None and not any(
            reference.root.name == "var"
            and reference.steps
            and reference.steps[0].attribute == block.name
            for reference in AllUses()[condition].references
        ):
            summary = f"The condition of a validation must refer to var.{block.name}"
            yield make_error(condition, summary)
    if block.default is not None:
        try:
            compute_value(block, None, Header(block.block), "", context)
        except EvalError as fault:
            yield make_diagnostic(fault, context=[f"while reading var.{block.name}"])
        except Poisoned:
            return


def warn_deprecated(block: VariableBlock, location: Location) -> Iterator[Diagnostic]:
    """A warning for a value that is given to a deprecated variable. location: of the value."""
    text = None if block.deprecated is None else get_literal(block.deprecated)
    if text:
        summary = f'The variable "{block.name}" is deprecated'
        warning = make_error(location, summary, text, hide=_is_secret(block))
        yield replace(warning, severity=Severity.WARNING)


def _warn_typed_secret(block: VariableBlock, input_value: InputValue) -> Iterator[Diagnostic]:
    """A warning for a secret on the command line."""
    # Not an error, because pipelines that move over from Terraform pass passwords like this.
    if _is_secret(block) and input_value.origin == COMMAND_LINE:
        summary = f'--var contains the value of the sensitive variable "{block.name}"'
        detail = "Every user of this computer can read it in the list of processes."
        advice = f"Set {PREFIX}{block.name} in the environment, or use a variable file."
        warning = make_error(input_value.location, summary, detail, advice=advice)
        yield replace(warning, severity=Severity.WARNING)


def _is_secret(block: VariableBlock) -> bool:
    """Whether its value must be neither shown nor stored."""
    return block.sensitive or block.ephemeral


# ── one value ───────────────────────────────────────────────────────────────────────────


def _compute_root_value(block: VariableBlock, source: InputValue | None, context: Context) -> Val:
    """The converted value of a variable of the root. Raises EvalError, or Unset if it has no
    value."""
    if source is None:
        value = compute_value(block, None, Header(block.block), "", context)
    else:
        value = _read_input(block, source, context)
        value = compute_value(block, value, source.location, source.origin, context)
    if not _is_secret(block):
        context.budget.charge(work_of(value), Header(block.block))
        return value
    # A whole sensitive variable of the root is a secret that can be sent: it has a reference.
    bare = unmark(value)[0]
    return Marked(bare, frozenset({SENSITIVE, SECRET}), SecretRef("variable", block.name))


def compute_value(
    block: VariableBlock, input_value: Val | None, location: Location, origin: str, context: Context
) -> Val:
    """The value of a variable. Raises EvalError, or Unset if there is no value and no default.

    input_value: the value from outside, None if there is none; location: of that value; origin:
    where it comes from, for messages."""
    kind = ANY if block.type is None else parse_type(block.type, make_default_reader(context))
    value = input_value
    # As in Terraform, null means the default if the variable cannot be null.
    if value is None or (isinstance(unmark(value)[0], Null) and not block.nullable):
        if block.default is not None:
            location, value = block.default, _evaluate_hiding(block, block.default, context)
        elif value is None:
            raise Unset
    if isinstance(unmark(value)[0], Null) and not block.nullable:
        raise EvalError(location, f'The variable "{block.name}" cannot be null')
    hide = _is_secret(block) or bool(marks_of(value))
    try:
        require_bounded(value, location, f'The value of the variable "{block.name}"')
        context.budget.charge(compute_conversion_cost(value, kind), location)
        value = convert_value(value, kind)
    except LimitError as fault:
        fault.hide = hide
        raise
    except ConvertFault as fault:
        by = f" (from {origin})" if origin else ""
        raise EvalError(
            location,
            f'The value of the variable "{block.name}" does not fit its type',
            make_sentence(f"{fault.message if hide else fault}{by}"),
            hide=hide,
        ) from None
    if block.ephemeral:
        return add_marks(value, frozenset({SENSITIVE, SECRET}))
    return add_marks(value, frozenset({SENSITIVE})) if block.sensitive else value


def _read_input(block: VariableBlock, source: InputValue, context: Context) -> Val:
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
            reason = "" if _is_secret(block) else faults[0].summary
            raise EvalError(source.location, summary + "is not an expression", reason)
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
        detail = "The reason is hidden because the variable is sensitive."
        raise EvalError(fault.location, summary, detail, hide=True) from None


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
    block: VariableBlock, values: Mapping[str, Outcome], context: Context
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
