"""Write a stock of objects as one more configuration file of a folder, and prove the file."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import Diagnostic, Severity
from ...core.errors import KafkaformError
from ...core.value import EMPTY, FrozenMap, SecretRef
from ...language.declare.folder import Tree
from ...language.declare.top_level import declare_blocks
from ...provider.contract import ResourceType
from ...render.text import inline
from ...syntax.parse import parse
from ..configuration.evaluation import Configuration
from .blocks import TakenNames, UndeclaredObject, generate_blocks, render_imports

NAMES_SHOWN = 5


class Stock(Struct, frozen=True):
    """The objects to take over."""

    found: tuple[UndeclaredObject, ...] = ()
    """Objects without a block."""
    declared: tuple[tuple[Address, str], ...] = ()
    """The address and the import id of objects that have a block."""
    gaps: tuple[str, ...] = ()
    """What is missing or can be missing, for people."""
    failed: bool = False
    """A listing did not answer."""

    def __add__(self, other: Stock) -> Stock:
        return Stock(
            self.found + other.found,
            self.declared + other.declared,
            tuple(dict.fromkeys((*self.gaps, *other.gaps))),
            self.failed or other.failed,
        )

    @property
    def count(self) -> int:
        return len(self.found) + len(self.declared)


class GeneratedConfiguration(Struct, frozen=True):
    """Configuration for objects."""

    text: str
    """HCL with a block for each object, and import blocks that take the objects over."""
    count: int
    """The number of objects."""
    gaps: tuple[str, ...]
    """What is missing or can be missing, for people."""
    complete: bool
    """Every listing answered."""


def render_stock(
    types: Mapping[str, ResourceType], tree: Tree, stock: Stock, command: str = "--all"
) -> str:
    """Write the stock as one more file of the folder with this tree. command: what was typed after
    `kafkaform import`."""
    names = _find_taken_names(tree)
    if tree.terraform:
        # Terraform, which may read the same files, has no function for a time or a size.
        types = {name: replace(kind, unit=None) for name, kind in types.items()}
    parts = [
        _render_header(stock, command),
        render_imports(sorted(stock.declared)),
        generate_blocks(stock.found, types, names),
    ]
    return "\n".join(part for part in parts if part)


def _render_header(stock: Stock, command: str) -> str:
    head = (
        f"# Written by `kafkaform import {inline(command)}`.\n"
        "# Once it is applied, the import blocks have done their work and can go.\n"
    )
    return head + "".join(f"# {inline(gap)}\n" for gap in stock.gaps)


def _find_taken_names(tree: Tree) -> TakenNames:
    """The names of the folder's own blocks and locals."""
    names = TakenNames()
    found, _ = declare_blocks(tree)
    names.locals.update(found.locals)
    for address in found.resources:
        names.blocks[address.type].add(address.name)
    return names


def prove_text(configuration: Configuration, own: Tree, text: str, stock: Stock, name: str) -> str:
    """Evaluate the generated text together with the folder's files, and return it.

    Raises KafkaformError if it does not declare exactly the stock.
    """
    # A wrong generator must not become a plan that changes the live objects.
    file, faults = parse(text.encode(), name)
    tree = replace(own, configuration=(*own.configuration, file))
    made = replace(configuration, tree=tree).evaluate(offline=True).desired
    said = {item.identity: item.attributes for item in made.declared}
    wrong = [
        str(item.identity)
        for item in stock.found
        if not _has_arguments(said.get(item.identity, EMPTY), item.arguments)
    ]
    broken = tuple(d for d in (*faults, *made.diagnostics) if d.severity is Severity.ERROR)
    if broken or wrong:
        what = f": {', '.join(wrong[:NAMES_SHOWN])}" if wrong else ""
        fault = Diagnostic(
            Severity.ERROR,
            f"The generated text does not match the objects{what}; nothing was written",
            advice="Exclude these objects with --match or --type.",
        )
        raise KafkaformError(fault.summary, diagnostics=(fault, *broken))
    return text


def _has_arguments(attributes: FrozenMap, arguments: FrozenMap) -> bool:
    """Whether a declared object has these arguments. Secrets are placeholders on both sides."""
    for name, value in arguments.items():
        said = attributes.get(name)
        parts = said.values() if isinstance(said, FrozenMap) else (said,)
        if said != value and not any(isinstance(part, SecretRef) for part in parts):
            return False
    return bool(attributes)
