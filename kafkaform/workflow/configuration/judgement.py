"""Judge what a configuration declares by the rules that need nothing but its blocks.

`validate`, the editor and pull requests without a system show what the plan would find in a block
anyway, in the same words, at the argument that causes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ...core.finding import Finding, Level
from ...core.resource import Declared, Identity
from ...core.rule import Needs, Rule
from ...core.words import Words
from ...language.declare.blocks import Header, ResourceBlock
from ...language.declare.modules import Module
from ...language.desired import Built
from ...language.values.faults import Location
from ...plan.rules import judge_blocks, load_books
from ...provider.contract import Provider
from ...render.change_entries import join_names
from ...syntax.nodes import (
    EXCERPT_CHARACTERS,
    Attr,
    Expression,
    FunctionCall,
    Lit,
    Root,
    Template,
    Tuple,
)
from ...syntax.terms import list_items
from .evaluation import Configuration

_SEVERITIES = {
    Level.BLOCK: Severity.ERROR,
    Level.DANGER: Severity.WARNING,
    Level.CAUTION: Severity.WARNING,
}
"""Notes are for the reviewer of a plan."""
_ROOT_FOLDERS = ("root", "cwd")
"""What `path.` has for the folder of the root module."""


def find_faults(configuration: Configuration, built: Built) -> Diagnostics:
    """Everything that is wrong with an evaluated configuration, as far as no system is asked."""
    return (
        *built.desired.diagnostics,
        *judge_configuration(configuration, built),
        *configuration.list_unconnected(built),
    )


def judge_configuration(configuration: Configuration, built: Built) -> Diagnostics:
    """What the rules find in the declared objects of an evaluated configuration, each finding once
    for each block: a composite stands for many objects, which can have one fault in common."""
    providers = load_providers(configuration, built)
    declared = [item for item in built.desired.declared if item.identity.instance in providers]
    modules = built.run.graph.modules
    alike: dict[tuple[str, Address, Finding], dict[Identity, Declared]] = {}
    breaches: Iterable[tuple[Declared, Finding]] = ()
    if built.desired.fence is not None:
        from ...plan.rules import judge_declared  # noqa: PLC0415  # few folders have a boundary

        breaches = judge_declared(built.desired.fence, declared, providers)
    for item, finding in chain(judge_blocks(declared, providers), breaches):
        if finding.level in _SEVERITIES:
            key = (item.identity.instance, replace(item.address, child=None), finding)
            alike.setdefault(key, {})[item.identity] = item
    return tuple(
        _make_diagnostic(finding, tuple(items.values()), modules, providers[instance])
        for (instance, _, finding), items in alike.items()
    )


def list_block_rules(configuration: Configuration, built: Built) -> tuple[Rule, ...]:
    """The rules that judge the declared objects by their blocks alone, sorted by their ids."""
    books = load_books(load_providers(configuration, built))
    kinds = {(item.identity.instance, item.identity.kind) for item in built.desired.declared}
    rows = {
        rule.id: rule
        for instance, kind in kinds
        for rule in books[instance].rules
        if rule.needs is Needs.BLOCK and kind in rule.types
    }
    return tuple(rows[id] for id in sorted(rows))


def load_providers(configuration: Configuration, built: Built) -> Mapping[str, Provider]:
    """Provider instance -> its provider."""
    return {
        instance: configuration.registry.load(config.name)
        for instance, config in built.desired.providers.items()
    }


def _make_diagnostic(
    finding: Finding,
    items: Sequence[Declared],
    modules: Mapping[tuple[str, ...], Module],
    provider: Provider,
) -> Diagnostic:
    """The diagnostic of a finding. items: of one block, all of which have it."""
    item, several = items[0], len(items) > 1
    severity = _SEVERITIES[finding.level]
    if finding.accept:
        # A plan can be told to make such a change.
        severity = Severity.WARNING
    fault = Diagnostic(
        severity,
        f"{finding.text} [{finding.rule}]",
        advice=finding.fix,
        detail=_name_objects(items, provider.words) if several else "",
        range=item.range,
        address=str(replace(item.address, child=None) if several else item.address),
    )
    module, block = _find_block(item, modules)
    if module is None or block is None:
        return fault
    location: Location = Header(block.block)
    node = block.block.get_argument(finding.path[0]) if finding.path else None
    if node is None:
        return _set_place(fault, location.range, location.excerpt)
    schema = provider.types[item.identity.kind].schema.attributes[finding.path[0]]
    hidden = schema.sensitive or schema.secret
    text = item.attributes.get(finding.path[0])
    if isinstance(node, Tuple) and isinstance(text, tuple) and len(finding.path) > 1:
        # An element of a list, by its index.
        index = int(finding.path[1])
        node, text = node.items[index], text[index]
    line, column = finding.figures.get("line"), finding.figures.get("column")
    if isinstance(line, int) and isinstance(column, int) and isinstance(text, str):
        spot = _find_spot(node, module, text, line, column)
        if spot is not None:
            has_excerpt = not hidden and len(spot[1]) <= EXCERPT_CHARACTERS
            return _set_place(fault, spot[0], spot[1] if has_excerpt else None)
    location = _find_entry(node, finding.path[1:])
    return _set_place(fault, location.range, None if hidden else location.excerpt)


def _set_place(fault: Diagnostic, range: Range, excerpt: str | None) -> Diagnostic:
    return Diagnostic(
        fault.severity,
        fault.summary,
        fault.detail,
        range=range,
        excerpt=excerpt,
        advice=fault.advice,
        address=fault.address,
    )


def _name_objects(items: Sequence[Declared], words: Words) -> str:
    """`2 boxes: a, b.`"""
    kind = items[0].identity.kind
    names = [words.name_object(kind, item.identity.key) for item in items]
    return f"{words.name_objects(len(items), kind)}: {join_names(names)}."


def _find_block(
    item: Declared, modules: Mapping[tuple[str, ...], Module]
) -> tuple[Module | None, ResourceBlock | None]:
    """The block of an object, and its module. None for an object that a composite stands for: its
    block does not have the arguments of the object."""
    steps = tuple(step.partition("[")[0].partition(".")[2] for step in item.address.module)
    module = modules.get(steps)
    if module is None or item.address.child is not None:
        return None, None
    return module, module.declarations.resources.get(Address(item.address.type, item.address.name))


def _find_entry(node: Expression, path: tuple[str, ...]) -> Location:
    """The entry of a written map that a path names, or the whole expression."""
    location: Location = node
    for key in path:
        entries = {
            str(entry.key.value): entry
            for entry in list_items(node) or ()
            if isinstance(entry.key, Lit)
        }
        if key not in entries:
            break
        location, node = entries[key], entries[key].value
    return location


def _find_spot(
    node: Expression, module: Module, text: str, line: int, column: int
) -> tuple[Range, str] | None:
    """The place of a line of a text, and what is written there, if the text is in a file of its own
    or in a heredoc.

    line, column: within the text, counted from 1.
    """
    lines = text.split("\n")
    if not 0 < line <= len(lines):
        return None
    file = _find_file(node, module)
    if file is not None:
        return Range(file, line, column, line, column + 1), lines[line - 1]
    written = node.source.text[node.start : node.end].split("\n")
    if not isinstance(node, Lit) or not written[0].startswith("<<") or line >= len(written):
        return None
    # The indentation of `<<-` is no part of the text.
    at = max(written[line].find(lines[line - 1]), 0) + column
    begin = node.range
    location = Range(begin.file, begin.line + line, at, begin.line + line, at + 1)
    return location, written[line]


def _find_file(node: Expression, module: Module) -> str | None:
    """The path of the file that `file(…)` reads, seen from the root folder, if it is written as a
    plain string, or as one behind `path.module` or `path.root`."""
    if not isinstance(node, FunctionCall) or node.name != "file" or len(node.args) != 1:
        return None
    argument = node.args[0]
    if isinstance(argument, Lit) and isinstance(argument.value, str):
        return argument.value.removeprefix("./")
    if not isinstance(argument, Template) or len(argument.parts) != 2:
        return None
    folder, name = argument.parts
    if not isinstance(name, Lit) or not isinstance(name.value, str):
        return None
    if not isinstance(folder, Attr) or not isinstance(folder.target, Root):
        return None
    if folder.target.name != "path":
        return None
    if folder.name in _ROOT_FOLDERS:
        return name.value.lstrip("/")
    return f"{module.folder}{name.value}".lstrip("/") if folder.name == "module" else None
