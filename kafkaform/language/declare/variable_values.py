"""Where the values of the root's variables come from.

Terraform's order, weakest first: environment, the value file that is always read, the automatic
ones by name, then `--var` and `--var-file` in the order of the command line. A value replaces a
weaker one whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from ...core.diagnostics import Diagnostic, Severity
from ...syntax.nodes import Attribute, Expression, File
from ..values.faults import Place, make_error, suggest_near
from .blocks import Header
from .declarations import VariableBlock
from .folder import Tree, parse_values

PREFIX = "KF_VAR_"
TERRAFORM_PREFIX = "TF_VAR_"
COMMAND_LINE = "--var"
UNDECLARED = 2
"""How many undeclared names of files are told one by one: a file may serve many folders."""


class VarFile(Struct, frozen=True):
    """A file given with --var-file. name: as the user wrote it."""

    name: str
    content: bytes


class VariableInputs(Struct, frozen=True):
    """environ: the environment, of which only KF_VAR_… is looked at (and TF_VAR_… for Terraform's
    files); given: `name=value` texts (--var) and files (--var-file) in the order of the command
    line; partial: unset variables are no error, what needs them is checked for names only
    (`validate`)."""

    environ: Mapping[str, str] = field(default_factory=dict)
    given: tuple[str | VarFile, ...] = ()
    partial: bool = False


class GivenValue(Struct, frozen=True):
    """A value from outside: a node of a file, or a text with the place to blame. origin: who
    gives it, for messages."""

    origin: str
    place: Place
    node: Expression | None = None
    text: str = ""


Blocks = Mapping[str, VariableBlock]


def gather_values(
    tree: Tree, blocks: Blocks, inputs: VariableInputs, faults: list[Diagnostic]
) -> Mapping[str, GivenValue]:
    """The strongest value of each declared variable."""
    found: dict[str, GivenValue] = {}
    prefixes = (TERRAFORM_PREFIX, PREFIX) if tree.terraform else (PREFIX,)
    for prefix in prefixes:
        for name, block in blocks.items():
            if prefix + name in inputs.environ:
                text = inputs.environ[prefix + name]
                found.update(
                    _require_text(
                        name, GivenValue(prefix + name, Header(block.block), text=text), faults
                    )
                )
    undeclared: list[Attribute] = []
    for file in tree.values:
        found.update(_read_file_values(file, blocks, faults, undeclared))
    for argument in inputs.given:
        if isinstance(argument, VarFile):
            file, problems = parse_values(argument.content, argument.name)
            faults.extend(problems)
            found.update(_read_file_values(file, blocks, faults, undeclared))
        else:
            found.update(_read_argument(argument, blocks, faults))
    if undeclared:
        faults.extend(_warn_undeclared(undeclared, blocks))
    return found


def _read_file_values(
    file: File, blocks: Blocks, faults: list[Diagnostic], undeclared: list[Attribute]
) -> Iterator[tuple[str, GivenValue]]:
    for block in file.body.blocks:
        label = block.labels[0].text if block.type == "variable" and block.labels else ""
        advice = f"Write {label} = …; variables are declared in other files." if label else ""
        summary = "A file of variable values holds no blocks"
        faults.append(make_error(Header(block), summary, advice=advice))
    for name, item in file.body.attributes.items():
        if name in blocks:
            yield name, GivenValue(item.range.file, item, item.value)
        else:
            undeclared.append(item)


def _warn_undeclared(items: Iterable[Attribute], blocks: Blocks) -> Iterator[Diagnostic]:
    """Without the source line: the value may be a secret whose name is misspelt."""
    found = list({item.name: item for item in items}.values())
    for item in found[:UNDECLARED]:
        advice = suggest_near(item.name, blocks) or f'Declare it with variable "{item.name}" {{ }}.'
        summary = f'No variable "{item.name}" is declared'
        yield Diagnostic(Severity.WARNING, summary, range=item.range, advice=advice)
    more = [item.name for item in found[UNDECLARED:]]
    if more:
        shown = ", ".join(more[:10]) + (", …" if len(more) > 10 else "")
        summary = f"{len(more)} more variables that have a value are not declared: {shown}"
        yield Diagnostic(Severity.WARNING, summary)


def _read_argument(
    given: str, blocks: Blocks, faults: list[Diagnostic]
) -> Iterator[tuple[str, GivenValue]]:
    """No message repeats the value, which may be a secret."""
    name, equals, text = given.partition("=")
    if not equals:
        faults.append(_make_fault("--var takes name=value", "There is no = in it."))
    elif name != name.strip():
        advice = f"Write --var '{name.strip()}=…' without blanks around the =."
        faults.append(_make_fault(f'--var sets "{name}", which has a blank in it', advice))
    elif name not in blocks:
        summary = f'--var sets "{name}", but no such variable is declared'
        faults.append(_make_fault(summary, suggest_near(name, blocks)))
    else:
        given_text = GivenValue(COMMAND_LINE, Header(blocks[name].block), text=text)
        yield from _require_text(name, given_text, faults)


def _require_text(
    name: str, given: GivenValue, faults: list[Diagnostic]
) -> Iterator[tuple[str, GivenValue]]:
    """Bytes of the environment or the command line that are no UTF-8 come as halves of surrogate
    pairs, which no system takes and no file can hold."""
    try:
        given.text.encode()
    except UnicodeEncodeError:
        summary = f'The value of "{name}" from {given.origin} is not UTF-8 text'
        faults.append(make_error(given.place, summary, advice="Set it again, in UTF-8."))
        return
    yield name, given


def _make_fault(summary: str, advice: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, advice=advice)
