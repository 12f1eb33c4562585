"""Make declarations of top-level blocks. Expressions are not evaluated here."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import Diagnostic, Diagnostics
from ...syntax.nodes import (
    Block,
    Expression,
    Lit,
    Tuple,
)
from ...syntax.parse import parse_expression
from ...syntax.terms import list_items
from ..expressions.code import get_literal
from ..values.faults import make_error, make_warning, suggest_near
from .addresses import spell_name
from .blocks import (
    COMMANDS,
    DATA_LIFECYCLE,
    LIFECYCLE,
    MODULE_LIFECYCLE,
    REMOVED_LIFECYCLE,
    RULE,
    SHAPES,
    CheckBlock,
    Declarations,
    Header,
    ImportBlock,
    ModuleBlock,
    MovedBlock,
    OutputBlock,
    ProviderBlock,
    RemovedBlock,
    ResourceBlock,
    Shape,
    VariableBlock,
    check_deprecation,
    find_shape_faults,
    find_single,
    render_title,
)
from .folder import Tree


def declare_blocks(
    tree: Tree, types: Container[str] | None = None
) -> tuple[Declarations, Diagnostics]:
    """What the configuration files of a folder declare, and the faults of their structure.

    types: the types of the blocks that are wanted; None for all.
    """
    declarations = Declarations()
    faults: list[Diagnostic] = []
    for file in tree.configuration:
        for name, item in file.body.attributes.items():
            advice = f"Write locals {{ {name} = … }}, or set variables in a file *.auto.kfvars.hcl."
            faults.append(make_error(item, f'"{name}" is outside of any block', advice=advice))
        for block in file.body.blocks:
            if types is not None and block.type not in types:
                continue
            if block.type not in SHAPES:
                # `settings` reads the terraform blocks of Terraform's files. A language block says
                # for which tools and editions they are.
                if not (block.type in ("terraform", "language") and tree.terraform):
                    faults.append(_make_unknown_block_fault(block))
                continue
            problems = list(find_shape_faults(block, SHAPES[block.type]))
            faults += problems
            # A variable with a faulty argument is still declared, so that what refers to it is
            # not reported as well.
            if not problems or (block.type == "variable" and len(block.labels) == 1):
                faults.extend(_DECLARERS[block.type](block, declarations))
    return declarations, tuple(faults)


def _make_unknown_block_fault(block: Block) -> Diagnostic:
    # In kafkaform's own files it is a left-over, which does no harm.
    if block.type == "terraform":
        return make_warning(Header(block), "The terraform block is not used", advice="Remove it.")
    return make_error(
        Header(block),
        f'There are no "{block.type}" blocks',
        f"The blocks are {', '.join(SHAPES)}.",
        suggest_near(block.type, SHAPES),
    )


def _make_duplicate_fault(block: Block, first: Block, title: str) -> Diagnostic:
    return make_error(
        Header(block),
        f"{title} is declared twice",
        f"The first one is at {first.header_range}.",
        "Rename or remove one of the two.",
    )


def _read_flag(block: Block, name: str, default: bool) -> tuple[bool, Diagnostics]:
    """An argument that must be the constant true or false."""
    node = block.get_argument(name)
    if node is None:
        return default, ()
    if isinstance(node, Lit) and isinstance(node.value, bool):
        return node.value, ()
    return default, (make_error(node, f'"{name}" must be the constant true or false'),)


def _select_rules(block: Block, kind: str) -> tuple[tuple[Block, ...], Diagnostics]:
    """The nested rules of a type without faults, and the faults of the others."""
    rules = block.list_blocks(kind)
    faults = {id(rule): tuple(find_shape_faults(rule, RULE)) for rule in rules}
    sound = tuple(rule for rule in rules if not faults[id(rule)])
    return sound, tuple(fault for rule_faults in faults.values() for fault in rule_faults)


def _declare_variable(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    flags = {}
    for flag, default in (("sensitive", False), ("nullable", True), ("ephemeral", False)):
        flags[flag], faults = _read_flag(block, flag, default)
        yield from faults
    if name in declarations.variables:
        yield _make_duplicate_fault(
            block, declarations.variables[name].block, f'The variable "{name}"'
        )
        return
    validations, faults = _select_rules(block, "validation")
    yield from faults
    # `description` is for readers, and `const` has no effect: its value is checked elsewhere.
    kind, faults = _read_quoted_type(block.get_argument("type"))
    yield from faults
    declarations.variables[name] = VariableBlock(
        name,
        block,
        kind,
        block.get_argument("default"),
        flags["sensitive"],
        flags["nullable"],
        validations,
        block.get_argument("deprecated"),
        flags["ephemeral"],
    )


def _read_quoted_type(node: Expression | None) -> tuple[Expression | None, Diagnostics]:
    """The type of a variable. Terraform 0.11 wrote it in quotes, and then the elements of a list or
    a map were strings, which is also what `tofu fmt` writes for them."""
    text = None if node is None else get_literal(node)
    if node is None or text not in _QUOTED_TYPES:
        return node, ()
    fault = make_warning(
        node, "A type is written without quotes", advice=f"Write {_QUOTED_TYPES[text]}."
    )
    return parse_expression(_QUOTED_TYPES[text], node.range.file)[0], (fault,)


_QUOTED_TYPES = {"string": "string", "list": "list(string)", "map": "map(string)"}
"""Type in quotes -> what to write today."""


def _declare_locals(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    for inner in block.body.blocks:
        yield make_error(Header(inner), "A locals block can only contain values")
    for name, item in block.body.attributes.items():
        if name in declarations.locals:
            yield make_error(
                item,
                f'The local value "{name}" is declared twice',
                f"The first one is at {declarations.locals[name].range}.",
            )
        else:
            declarations.locals[name] = item


def _declare_provider(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    alias = block.get_argument("alias")
    instance = name
    repeated, count = block.get_argument("for_each"), block.get_argument("count")
    if count is not None:
        yield make_error(
            count,
            "A provider block cannot have count",
            advice="Use for_each, so that each instance has a name that does not change.",
        )
        return
    if repeated is not None and alias is None:
        yield make_error(
            repeated,
            "A provider block with for_each needs an alias",
            advice=f'Add alias = "NAME". Blocks then use {name}.NAME["KEY"].',
        )
        return
    if alias is not None:
        if not isinstance(alias, Lit) or not isinstance(alias.value, str):
            yield make_error(alias, "An alias must be a plain string")
            return
        instance = f"{name}.{alias.value}"
    if instance in declarations.providers:
        yield _make_duplicate_fault(
            block, declarations.providers[instance].block, f"The provider instance {instance}"
        )
        return
    declarations.providers[instance] = ProviderBlock(name, instance, block)


def _warn_quoted(block: Block) -> Iterator[Diagnostic]:
    """A warning for each reference in quotes, which is how Terraform 0.11 wrote them."""
    named, needs = block.get_argument("provider"), block.get_argument("depends_on")
    nodes = [] if named is None else [named]
    nodes += needs.items if isinstance(needs, Tuple) else ()
    passed = block.get_argument("providers") if block.type == "module" else None
    nodes += (item.value for item in list_items(passed) or ())
    for node in nodes:
        text = get_literal(node)
        if text is not None:
            yield make_warning(
                node, "A reference is written without quotes", advice=f"Write {text}."
            )


def _drop_commands(block: Block) -> tuple[Block, Diagnostics]:
    """The block without its provisioners, and a warning for each."""
    commands = [inner for kind in COMMANDS for inner in block.list_blocks(kind)]
    if not commands:
        return block, ()
    warnings = (
        make_warning(
            Header(inner),
            f"The {inner.type} block has no effect",
            "kafkaform runs no programs when it creates or deletes an object.",
            "Remove it, or run the program in the pipeline.",
        )
        for inner in commands
    )
    blocks = tuple(inner for inner in block.body.blocks if inner not in commands)
    body = replace(block.body, blocks=blocks)
    return replace(block, body=body), tuple(warnings)


def _declare_resource(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    block, faults = _drop_commands(block)
    yield from faults
    resource, faults = _read_lifecycle(block, LIFECYCLE)
    yield from (*faults, *_warn_quoted(block))
    for name in ("create_before_destroy", "replace_triggered_by"):
        if resource.lifecycle is not None and resource.lifecycle.get_argument(name) is not None:
            yield make_warning(
                resource.lifecycle.body.attributes[name],
                f'"{name}" has no effect',
                "kafkaform never replaces an object: it is changed in place or not at all.",
                "Remove it.",
            )
    if resource.address in declarations.resources:
        yield _make_duplicate_fault(
            block, declarations.resources[resource.address].block, str(resource.address)
        )
    else:
        declarations.resources[resource.address] = resource


def _declare_data(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    resource, faults = _read_lifecycle(block, DATA_LIFECYCLE)
    yield from (*faults, *_warn_quoted(block))
    if resource.address in declarations.data:
        yield _make_duplicate_fault(
            block, declarations.data[resource.address].block, f"data.{resource.address}"
        )
    else:
        declarations.data[resource.address] = resource


def _read_lifecycle(block: Block, shape: Shape) -> tuple[ResourceBlock, Diagnostics]:
    """The block as a resource or data source. A lifecycle block with faults is left out."""
    address = Address(block.labels[0].text, block.labels[1].text)
    lifecycle, faults = find_single(block, "lifecycle")
    if lifecycle is None:
        return ResourceBlock(address, block, None), faults
    problems = tuple(find_shape_faults(lifecycle, shape))
    if problems:
        return ResourceBlock(address, block, None), (*faults, *problems)
    preconditions, precondition_faults = _select_rules(lifecycle, "precondition")
    postconditions, postcondition_faults = _select_rules(lifecycle, "postcondition")
    resource = ResourceBlock(address, block, lifecycle, preconditions, postconditions)
    return resource, (*faults, *precondition_faults, *postcondition_faults)


def _declare_module(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    source = block.get_argument("source")
    text = source.value if isinstance(source, Lit) and isinstance(source.value, str) else None
    if source is not None and text is None:
        yield make_error(source, "The source of a module must be a plain string")
    for inner in block.body.blocks:
        if inner.type == "lifecycle":
            yield from find_shape_faults(inner, MODULE_LIFECYCLE)
        else:
            yield make_error(Header(inner), f"{render_title(block)} can only contain arguments")
    providers, faults = _read_module_providers(block.get_argument("providers"))
    yield from (*faults, *_warn_quoted(block))
    if name in declarations.modules:
        yield _make_duplicate_fault(block, declarations.modules[name].block, f"module.{name}")
    else:
        declarations.modules[name] = ModuleBlock(name, block, text, providers)


def _read_module_providers(
    node: Expression | None,
) -> tuple[Mapping[str, Expression] | None, Diagnostics]:
    """The entries of the `providers` of a module: NAME or NAME.ALIAS on both sides."""
    if node is None:
        return None, ()
    items = list_items(node)
    if items is None:
        fault = make_error(
            node, "providers must be a map of providers", advice="Write { kafka = kafka.eu }."
        )
        return {}, (fault,)
    entries, faults = {}, []
    for item in items:
        name = get_literal(item.key) or spell_name(item.key)
        if name is None:
            faults.append(
                make_error(item.key, "This is not the name of a provider", advice="kafka = …")
            )
        else:
            entries[name] = item.value
    return entries, tuple(faults)


def _declare_output(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    flags = {}
    for flag in ("sensitive", "ephemeral"):
        flags[flag], faults = _read_flag(block, flag, False)
        yield from faults
    yield from check_deprecation(block)
    rules, faults = _select_rules(block, "precondition")
    yield from faults
    if name in declarations.outputs:
        yield _make_duplicate_fault(block, declarations.outputs[name].block, f'The output "{name}"')
        return
    value = block.body.attributes["value"].value
    declarations.outputs[name] = OutputBlock(
        name,
        block,
        value,
        flags["sensitive"],
        rules,
        block.get_argument("deprecated"),
        flags["ephemeral"],
    )


def _declare_check(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    name = block.labels[0].text
    data, faults = find_single(block, "data")
    yield from faults
    data_block = None
    if data is not None:
        problems = list(find_shape_faults(data, SHAPES["data"]))
        yield from problems
        if not problems:
            data_block, faults = _read_lifecycle(data, DATA_LIFECYCLE)
            yield from faults
    rules, faults = _select_rules(block, "assert")
    yield from faults
    if not rules and not faults:
        yield make_error(Header(block), f'{render_title(block)} needs an "assert" block')
    if name in declarations.checks:
        yield _make_duplicate_fault(block, declarations.checks[name].block, f"check.{name}")
    else:
        declarations.checks[name] = CheckBlock(name, block, data_block, rules)


def _declare_removed(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    block, faults = _drop_commands(block)
    yield from faults
    lifecycle, faults = find_single(block, "lifecycle")
    yield from faults
    destroy = False
    if lifecycle is not None:
        yield from find_shape_faults(lifecycle, REMOVED_LIFECYCLE)
        destroy, faults = _read_flag(lifecycle, "destroy", False)
        yield from faults
    source = block.body.attributes["from"].value
    declarations.removed.append(RemovedBlock(block, source, destroy))


def _declare_moved(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    arguments = block.body.attributes
    declarations.moved.append(MovedBlock(block, arguments["from"].value, arguments["to"].value))
    yield from ()


def _declare_import(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    arguments = block.body.attributes
    declarations.imports.append(ImportBlock(block, arguments["to"].value, arguments["id"].value))
    yield from ()


def _declare_settings(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    if declarations.settings:
        yield _make_duplicate_fault(
            block, declarations.settings[0], f"The {render_title(block)} block"
        )
        return
    declarations.settings.append(block)


def _declare_policy(block: Block, declarations: Declarations) -> Iterator[Diagnostic]:
    declarations.policies.append(block)
    yield from ()


_DECLARERS: Mapping[str, Callable[[Block, Declarations], Iterator[Diagnostic]]] = {
    "kafkaform": _declare_settings,
    "provider": _declare_provider,
    "resource": _declare_resource,
    "data": _declare_data,
    "module": _declare_module,
    "variable": _declare_variable,
    "locals": _declare_locals,
    "output": _declare_output,
    "check": _declare_check,
    "removed": _declare_removed,
    "import": _declare_import,
    "moved": _declare_moved,
    "policy": _declare_policy,
    "policy_set": _declare_policy,
}
"""Type of a block -> what adds it to the declarations; its shape has been checked."""
