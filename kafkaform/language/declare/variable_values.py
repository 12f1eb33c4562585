"""Find the values of the root's variables.

The order is Terraform's, the weakest first: the environment, the value file that is always read,
the automatic ones by name, then `--var` and `--var-file` in the order of the command line. A value
replaces a weaker one as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from ...core.diagnostics import Diagnostic, Severity
from ...syntax.nodes import Attribute, Expression, File
from ..values.faults import Location, make_error, suggest_near
from .blocks import Header
from .declarations import VariableBlock
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
    given: tuple[str | VarFile | File, ...] = ()
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
    for argument in inputs.given:
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
