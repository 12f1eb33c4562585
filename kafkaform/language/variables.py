"""Input variables: types, defaults, validations, and the values given from outside.

Precedence, weakest first: default, `KF_VAR_name`, `kafkaform.kfvars.hcl`, `*.auto.kfvars.hcl`
by name, then `--var` and `--var-file` in the order given. A value replaces a weaker one whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from ..core.schema import ANY, STRING, Type
from ..core.value import SecretRef, Value
from ..syntax.nodes import Block, Expression, File
from ..syntax.parse import parse, parse_expression
from .blocks import attribute, header
from .code import Context, Env
from .convert import convert, lower
from .declare import VariableBlock
from .faults import (
    ConvertFault,
    Deferred,
    EvalError,
    Place,
    Poisoned,
    as_diagnostic,
    error,
    near,
)
from .limits import Budget
from .operators import truth_of
from .scope import Found, Space, Unset
from .strings import piece_of
from .tree import Tree
from .types import Default, parse_type
from .values import SECRET, SENSITIVE, Marked, Null, Val, marks_of, unmark

PREFIX = "KF_VAR_"


@dataclass(frozen=True, slots=True)
class VarFile:
    """A file given with --var-file. name: as the user wrote it."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Inputs:
    """environ: the environment, of which only KF_VAR_… is looked at; given: `name=value` texts
    (--var) and files (--var-file) in the order of the command line; partial: unset variables are
    no error, what needs them is checked for names only (`validate`)."""

    environ: Mapping[str, str] = field(default_factory=dict)
    given: tuple[str | VarFile, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Variables:
    """values: by name, for `var`; plain: what may be shown and digested, secrets left out;
    secrets: name -> text of each sensitive variable, for whoever sends it."""

    values: Mapping[str, Found]
    plain: Mapping[str, Value]
    secrets: Mapping[str, str]
    diagnostics: Diagnostics


@dataclass(frozen=True, slots=True)
class _Source:
    """A value from outside: a node of a file, or a text with the place to blame."""

    origin: str
    place: Place
    node: Expression | None = None
    text: str = ""


def resolve(
    tree: Tree, blocks: Mapping[str, VariableBlock], inputs: Inputs, context: Context
) -> Variables:
    """The value of every declared variable, and all faults in them."""
    faults: list[Diagnostic] = []
    sources = _gather(tree, blocks, inputs, faults)
    values: dict[str, Found] = {}
    for name, block in blocks.items():
        try:
            values[name] = _value(block, sources.get(name), context)
        except Unset as unset:
            values[name] = unset
            if not inputs.partial:
                faults.append(_unset(block))
        except EvalError as fault:
            faults.append(as_diagnostic(fault, context=[f"while reading var.{name}"]))
            values[name] = Poisoned()
    for block in blocks.values():
        faults.extend(_validate(block, values, context))
    known = {name: value for name, value in values.items() if not isinstance(value, Exception)}
    plain = {n: lower(v) for n, v in known.items() if not marks_of(v)}
    hidden = {n: unmark(v)[0] for n, v in known.items() if marks_of(v)}
    secrets = {n: str(convert(v, STRING)) for n, v in hidden.items() if _is_text(v)}
    return Variables(values, plain, secrets, tuple(faults))


def _is_text(value: Val) -> bool:
    try:
        return isinstance(convert(value, STRING), str)
    except ConvertFault:
        return False


def _unset(block: VariableBlock) -> Diagnostic:
    return error(
        header(block.block),
        f'The variable "{block.name}" has no value',
        "It has no default, so a value must be given.",
        f"Give it with --var '{block.name}=…', in {PREFIX}{block.name}, in "
        "kafkaform.kfvars.hcl or a *.auto.kfvars.hcl file, or with --var-file.",
    )


# ── where values come from ──────────────────────────────────────────────────────────────


def _gather(
    tree: Tree, blocks: Mapping[str, VariableBlock], inputs: Inputs, faults: list[Diagnostic]
) -> Mapping[str, _Source]:
    """The strongest source of each variable."""
    found: dict[str, _Source] = {}
    for name, block in blocks.items():
        if PREFIX + name in inputs.environ:
            text = inputs.environ[PREFIX + name]
            found[name] = _Source(PREFIX + name, header(block.block), text=text)
    for file in tree.values:
        found.update(_from_file(file, blocks, faults))
    for given in inputs.given:
        if isinstance(given, VarFile):
            file, problems = parse(given.content, given.name)
            faults.extend(problems)
            found.update(_from_file(file, blocks, faults))
        else:
            found.update(_from_argument(given, blocks, faults))
    return found


def _from_file(
    file: File, blocks: Mapping[str, VariableBlock], faults: list[Diagnostic]
) -> Iterator[tuple[str, _Source]]:
    for block in file.body.blocks:
        faults.append(error(header(block), "A file of variable values holds no blocks"))
    for name, item in file.body.attributes.items():
        if name in blocks:
            yield name, _Source(item.range.file, item, item.value)
        else:
            advice = near(name, blocks) or f'Declare it with variable "{name}" {{ }}.'
            faults.append(_undeclared(item, name, advice))


def _undeclared(item: Place, name: str, advice: str) -> Diagnostic:
    """Without the source line: the value may be a secret whose name is misspelt."""
    summary = f'No variable "{name}" is declared'
    return Diagnostic(Severity.WARNING, summary, range=item.range, advice=advice)


def _from_argument(
    given: str, blocks: Mapping[str, VariableBlock], faults: list[Diagnostic]
) -> Iterator[tuple[str, _Source]]:
    name, equals, text = given.partition("=")
    name = name.strip()
    if not equals:
        faults.append(_argument_fault("--var takes name=value", "There is no = in it."))
    elif name not in blocks:
        faults.append(
            _argument_fault(
                f'--var sets "{name}", but no such variable is declared', near(name, blocks)
            )
        )
    else:
        yield name, _Source("--var", header(blocks[name].block), text=text)


def _argument_fault(summary: str, detail: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, advice=detail)


# ── one value ───────────────────────────────────────────────────────────────────────────


def _value(block: VariableBlock, source: _Source | None, context: Context) -> Val:
    """The converted value of a variable. Raises EvalError; Unset if nothing gives one."""
    kind = ANY if block.type is None else parse_type(block.type, default_reader(context))
    place: Place = header(block.block)
    value: Val | None = None
    if source is not None:
        place = source.place
        value = _given(block, source, context)
    if value is None or (isinstance(value, Null) and not block.nullable):
        if block.default is not None:
            place, value = block.default, _constant(block, block.default, context)
        elif value is None:
            raise Unset
    if isinstance(value, Null) and not block.nullable:
        raise EvalError(place, f'The variable "{block.name}" cannot be null')
    try:
        value = convert(value, kind)
    except ConvertFault as fault:
        origin = f" (given by {source.origin})" if source is not None else ""
        raise EvalError(
            place,
            f'The value of the variable "{block.name}" does not fit its type',
            f"Here {fault.message if block.sensitive else fault}{origin}.",
            hide=block.sensitive,
        ) from None
    if not block.sensitive:
        return value
    return Marked(value, frozenset({SENSITIVE, SECRET}), SecretRef("variable", block.name))


def _given(block: VariableBlock, source: _Source, context: Context) -> Val:
    """A text for a primitive or untyped variable is taken as it is, else read as HCL."""
    node = source.node
    if node is None:
        if block.type is None or getattr(block.type, "name", "") in ("string", "number", "bool"):
            return source.text
        node, faults = parse_expression(source.text, source.origin)
        if node is None:
            summary = f'The value of the variable "{block.name}" given by {source.origin} '
            why = "" if block.sensitive else faults[0].summary
            raise EvalError(source.place, summary + "is not an expression", why)
    return _constant(block, node, context)


def _constant(block: VariableBlock, node: Expression, context: Context) -> Val:
    """The value of an expression; faults of sensitive variables do not show the source line."""
    try:
        return constant(node, context)
    except EvalError as fault:
        fault.hide = fault.hide or block.sensitive
        raise


def constant(node: Expression, context: Context) -> Val:
    """The value of an expression that refers to nothing. Raises EvalError."""
    return context.code(node)(Env({}, {}, Budget()))


def default_reader(context: Context) -> Default:
    """Reads the default of `optional(type, default)` in a type."""

    def read(node: Expression, kind: Type) -> Value:
        try:
            return lower(convert(constant(node, context), kind))
        except ConvertFault as fault:
            raise EvalError(node, "The default does not fit its type", f"Here {fault}.") from None

    return read


# ── validation ──────────────────────────────────────────────────────────────────────────


def _validate(
    block: VariableBlock, values: Mapping[str, Found], context: Context
) -> Iterator[Diagnostic]:
    env = Env({"var": Space("variable", values)}, {}, Budget())
    for rule in block.validations:
        try:
            message = _broken(rule, env, context)
        except (Poisoned, Deferred):
            continue
        except EvalError as fault:
            fault.hide = fault.hide or block.sensitive
            yield as_diagnostic(fault, context=[f"while validating var.{block.name}"])
            continue
        if message is not None:
            yield error(
                header(block.block),
                f'The value of the variable "{block.name}" is not valid',
                message,
                f"The rule is at {rule.range}.",
            )


def _broken(rule: Block, env: Env, context: Context) -> str | None:
    """The message of a validation rule that does not hold. Raises EvalError."""
    condition, message = attribute(rule, "condition"), attribute(rule, "error_message")
    assert condition is not None and message is not None  # the shape was checked
    if truth_of(unmark(context.code(condition)(env))[0], condition):
        return None
    text, marks = piece_of(context.code(message)(env), message)
    return "The message is hidden since it holds a sensitive value." if marks else text
