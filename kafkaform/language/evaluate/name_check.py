"""Find unknown names in expressions before anything is evaluated.

So every misspelt name is reported, also in a branch or an instance that is never evaluated.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import Diagnostic
from ...core.schema import ObjectSchema
from ...syntax.nodes import Block, Expression
from ...syntax.stamps import Stamped, StencilShape
from ..declare.addresses import list_provider_keys
from ..declare.blocks import CheckBlock, Header, ModuleBlock, ResourceBlock
from ..declare.modules import Module
from ..expressions.calls import (
    SPECIAL,
    find_foreign_provider,
    get_function_name,
    make_unknown_function_fault,
)
from ..expressions.code import get_literal
from ..expressions.dependencies import (
    PATH_ARGUMENTS,
    AllUses,
    Reference,
    ReferenceStep,
    find_iterator,
    walk_expressions,
)
from ..expressions.operators import make_dotted_key_fault
from ..functions.spec import Function
from ..values.faults import make_diagnostic, make_error, make_warning, quote_names, suggest_near
from .evaluation_state import Schemas
from .graph import NAMING_ARGUMENTS

ID_ATTRIBUTE = "id"
"""An attribute of every object, in addition to those of its schema: the key of its identity."""
CALL_META = ("source", "version", "providers", "for_each", "count", "depends_on")


class Names(Struct, frozen=True):
    """Everything that the expressions of a module can name."""

    module: Module
    schemas: Schemas
    functions: Mapping[str, Function]
    uses: AllUses
    allowed: frozenset[str] = frozenset()
    """Further first words of references, such as `each`."""
    resources: bool = True
    """Whether objects, data sources and modules can be named."""
    sound: dict[StencilShape, bool] = field(default_factory=dict)
    """Shapes of repeated blocks that were checked -> whether all their names are known."""

    def add_words(self, words: Iterable[str]) -> Names:
        return replace(self, allowed=self.allowed.union(words))

    def add_repetition(self, block: Block) -> Names:
        """The same with `each` or `count`, if the block repeats itself by for_each or count."""
        pairs = (("each", "for_each"), ("count", "count"))
        words = [word for word, argument in pairs if argument in block.body.attributes]
        return self.add_words(words) if words else self


def check_names(
    root: Module, schemas: Schemas, functions: Mapping[str, Function], uses: AllUses
) -> Iterator[Diagnostic]:
    """Every unknown name in every expression of the root and of all modules."""
    for module in root.walk_modules():
        names, declarations = Names(module, schemas, functions, uses), module.declarations
        # Variables and providers are evaluated before anything is declared or read.
        early_names = replace(names, resources=False)
        for item in declarations.locals.values():
            yield from _check_nodes([item.value], names)
        for resource in (*declarations.resources.values(), *declarations.data.values()):
            yield from _check_resource_block(resource, names)
        for call in declarations.modules.values():
            yield from _check_call(call, names)
        for provider in declarations.providers.values():
            own_names = early_names.add_repetition(provider.block)
            yield from _check_block_names(provider.block, own_names)
        for output in declarations.outputs.values():
            yield from _check_nodes(walk_expressions(output.block.body, NAMING_ARGUMENTS), names)
        for variable in declarations.variables.values():
            yield from _check_nodes(walk_expressions(variable.block.body, ("type",)), early_names)
        for imported in declarations.imports:
            yield from _check_nodes([imported.id], names.add_repetition(imported.block))
        for check in declarations.checks.values():
            yield from _check_block(check, names)


def check_expression(node: Expression, names: Names) -> Iterator[Diagnostic]:
    """Every unknown name in one expression outside of any block."""
    return _check_nodes([node], names)


def _check_nodes(nodes: Iterable[Expression], names: Names) -> Iterator[Diagnostic]:
    for node in nodes:
        used = names.uses[node]
        for call in used.calls:
            name = get_function_name(call)
            # The functions of a provider that is not installed are skipped like its blocks.
            foreign = names.module.terraform and find_foreign_provider(
                call, names.schemas.providers
            )
            if name not in names.functions and name not in SPECIAL and not foreign:
                yield make_diagnostic(make_unknown_function_fault(call, names.functions))
        yield from (make_diagnostic(make_dotted_key_fault(key)) for key in used.dotted)
        for reference in used.references:
            yield from _check_reference(reference, names)


# ── blocks ──────────────────────────────────────────────────────────────────────────────


def _check_resource_block(resource: ResourceBlock, names: Names) -> Iterator[Diagnostic]:
    block = resource.block
    if isinstance(block, Stamped):
        # All blocks of a shape use the same names. Only if one is unknown, each block is checked
        # on its own, to report every place.
        if block.shape not in names.sound:
            names.sound[block.shape] = not any(_check_block_names(block.shape.block, names))
        if names.sound[block.shape]:
            return
    yield from _check_block_names(block, names.add_repetition(block))


def _check_block_names(block: Block, names: Names) -> Iterator[Diagnostic]:
    """Every unknown name in a block and its nested blocks. A dynamic block adds the name of its
    element, a postcondition adds `self`."""
    skip = NAMING_ARGUMENTS if block.type in ("resource", "data") else PATH_ARGUMENTS
    iterator = find_iterator(block) if block.type == "dynamic" else None
    skip = (*skip, "iterator") if iterator else skip
    plain = [item.value for name, item in block.body.attributes.items() if name not in skip]
    if block.type in ("resource", "data"):
        plain += list_provider_keys([block.get_argument("provider")])
    yield from _check_nodes(plain, names)
    for inner in block.body.blocks:
        words = [iterator] if iterator else []
        words += ["self"] if inner.type == "postcondition" else []
        yield from _check_block_names(inner, names.add_words(words) if words else names)


def _check_call(call: ModuleBlock, names: Names) -> Iterator[Diagnostic]:
    keys = list_provider_keys((call.providers or {}).values())
    nodes = (*walk_expressions(call.block.body, NAMING_ARGUMENTS), *keys)
    yield from _check_nodes(nodes, names.add_repetition(call.block))
    child = names.module.children.get(call.name)
    if child is None:
        return
    variables = child.declarations.variables
    for name, item in call.block.body.attributes.items():
        if name not in CALL_META and name not in variables:
            variable_names = ", ".join(variables)
            detail = f"It has {variable_names}." if variable_names else "It has none."
            summary = f'The module {call.source} does not declare a variable "{name}"'
            yield make_error(item, summary, detail, suggest_near(name, (*variables, *CALL_META)))
    missing = {
        name: variable.block.header_range
        for name, variable in variables.items()
        if variable.default is None and call.block.get_argument(name) is None
    }
    if missing:
        yield _make_missing_variables_fault(call, missing)


def _make_missing_variables_fault(call: ModuleBlock, missing: Mapping[str, object]) -> Diagnostic:
    """missing: variable of the module -> where it is declared."""
    first = next(iter(missing))
    declared_at = ", ".join(f"{name} at {header_range}" for name, header_range in missing.items())
    several = len(missing) > 1
    return make_error(
        Header(call.block),
        f"module.{call.name} needs {quote_names([*missing])}",
        f"The variables are declared without a default: {declared_at}."
        if several
        else f"The variable is declared at {missing[first]}, without a default.",
        f"Write {first} = …{' and the others' if several else ''} in the module block.",
    )


def _check_block(check: CheckBlock, names: Names) -> Iterator[Diagnostic]:
    if check.data is not None:
        yield from _check_resource_block(check.data, names)
        # Only the assertions of the check see its own data source.
        declarations = names.module.declarations
        with_data = replace(
            declarations, data={**declarations.data, check.data.address: check.data}
        )
        names = replace(names, module=replace(names.module, declarations=with_data))
    for rule in check.assertions:
        yield from _check_nodes(walk_expressions(rule.body), names)


# ── references ──────────────────────────────────────────────────────────────────────────


def _check_reference(reference: Reference, names: Names) -> Iterator[Diagnostic]:
    word, declarations = reference.root.name, names.module.declarations
    if word in names.allowed or word == "path" or _is_skipped(reference, names.module.skipped):
        return
    if word in ("var", "local"):
        declared = declarations.variables if word == "var" else declarations.locals
        yield from _check_declared(reference, word, declared)
    elif word in ("each", "count"):
        argument = "for_each" if word == "each" else "count"
        yield make_error(
            reference.root,
            f'"{word}" exists only in a block with {argument}',
            advice=f"Add {argument}, or use another value.",
        )
    elif word == "module":
        yield from _check_module(reference, names)
    elif word == "data":
        yield from _check_data(reference, names)
    elif word in names.schemas.types:
        yield from _check_resource(reference, names)
    elif any(address.type == word for address in declarations.resources):
        return  # its type is unknown, which is reported where it is declared
    elif word != "terraform" or not names.module.terraform:
        words = ("var", "local", "module", "data", "path", *names.allowed, *names.schemas.types)
        advice = suggest_near(word, words) or f'Write "{word}" in quotes if it is a string.'
        yield make_error(reference.root, f'Nothing is named "{word}" here', advice=advice)


def _is_skipped(reference: Reference, skipped: frozenset[str]) -> bool:
    """Whether it names a skipped block, or all skipped blocks of a type."""
    words = [reference.root.name]
    words += (step.attribute for step in reference.steps[:2] if step.attribute is not None)
    return any(".".join(words[:count]) in skipped for count in (2, 3))


_WORDS = {
    "var": ("variable", 'variable "{}" {{ }}'),
    "local": ("local value", "locals {{ {} = … }}"),
    "module": ("module", 'module "{}" {{ source = "./…" }}'),
}


def _check_declared(
    reference: Reference, word: str, declared: Mapping[str, object]
) -> Iterator[Diagnostic]:
    noun, form = _WORDS[word]
    name = reference.steps[0].attribute if reference.steps else None
    if name is None:
        yield make_error(reference.node, f"Which {noun} is meant?", f"Write {word}.NAME.")
    elif name not in declared:
        advice = suggest_near(name, declared) or f"Declare it with {form.format(name)}."
        yield make_error(reference.steps[0].node, f'There is no {noun} "{name}"', advice=advice)


def _check_module(reference: Reference, names: Names) -> Iterator[Diagnostic]:
    faults = [*_check_declared(reference, "module", names.module.declarations.modules)]
    yield from faults
    name = reference.steps[0].attribute if reference.steps else None
    child = names.module.children.get(name or "")
    if faults or child is None or name is None:
        return
    if not names.resources:
        yield _make_too_early_fault(reference.steps[0], f"module.{name}")
        return
    several = names.module.declarations.modules[name].several
    step = yield from _find_own_step(reference.steps[1:], several, f"module.{name}")
    if step is not None and step.attribute not in child.declarations.outputs:
        outputs = child.declarations.outputs
        advice = suggest_near(step.attribute or "", outputs)
        detail = f"It has {', '.join(outputs)}." if outputs else "It has no outputs."
        summary = f'module.{name} has no output "{step.attribute}"'
        yield make_error(step.node, summary, detail, advice)
    elif step is not None:
        node = child.declarations.outputs[step.attribute or ""].deprecated
        text = None if node is None else get_literal(node)
        if text:
            summary = f'The output "{step.attribute}" of module.{name} is deprecated'
            yield make_warning(step.node, summary, text)


def _check_data(reference: Reference, names: Names) -> Iterator[Diagnostic]:
    words = [step.attribute for step in reference.steps[:2]]
    if len(words) < 2 or None in words:
        yield make_error(reference.node, "Which data source is meant?", "Write data.TYPE.NAME.")
        return
    address = Address(str(words[0]), str(words[1]))
    title = f"data.{address}"
    if not names.resources:
        yield _make_too_early_fault(reference.steps[1], title)
        return
    declared = names.module.declarations.data
    block = declared.get(address)
    if block is None:
        titles = [f"data.{declared_address}" for declared_address in declared]
        yield make_error(
            reference.steps[1].node, f"{title} is not declared", advice=suggest_near(title, titles)
        )
    elif address.type in names.schemas.data:
        schema = names.schemas.data[address.type].schema
        yield from _check_attribute(block, reference.steps[2:], schema, title)


def _check_resource(reference: Reference, names: Names) -> Iterator[Diagnostic]:
    word = reference.root.name
    name = reference.steps[0].attribute if reference.steps else None
    if name is None:
        yield make_error(reference.node, f"Which {word} is meant?", f"Write {word}.NAME.")
        return
    if not names.resources:
        yield _make_too_early_fault(reference.steps[0], f"{word}.{name}")
        return
    declared = names.module.declarations.resources
    block = declared.get(Address(word, name))
    if block is None:
        block_names = [address.name for address in declared if address.type == word]
        yield make_error(
            reference.steps[0].node,
            f'There is no {word} "{name}"',
            advice=suggest_near(name, block_names),
        )
        return
    schema = names.schemas.types[word].schema
    yield from _check_attribute(block, reference.steps[1:], schema, str(block.address))


def _make_too_early_fault(step: ReferenceStep, title: str) -> Diagnostic:
    return make_error(
        step.node,
        f"{title} cannot be used here",
        "Variables and provider blocks are evaluated before all objects and data sources.",
    )


def _find_own_step(
    steps: tuple[ReferenceStep, ...], several: bool, title: str
) -> Generator[Diagnostic, None, ReferenceStep | None]:
    """The step that names an attribute of one instance, if there is one in the text."""
    if not steps:
        return None
    first = steps[0]
    if several and first.attribute is not None:
        yield make_error(
            first.node,
            f"{title} has several instances",
            f'It is not clear whose "{first.attribute}" is meant.',
            f'Write {title}["KEY"].{first.attribute}, or use a for expression for all of them.',
        )
        return None
    if first.attribute is None:
        steps = steps[1:]
    return steps[0] if steps and steps[0].attribute is not None else None


def _check_attribute(
    block: ResourceBlock, steps: tuple[ReferenceStep, ...], schema: ObjectSchema, title: str
) -> Iterator[Diagnostic]:
    step = yield from _find_own_step(steps, block.several, title)
    if step is None:
        return
    name = step.attribute or ""
    if name in schema.attributes or name in schema.blocks or name == ID_ATTRIBUTE:
        return
    alias = schema.find(name)
    attribute_names = (*schema.attributes, *schema.blocks)
    advice = (
        suggest_near(name, attribute_names)
        if alias is None
        else f'It is called "{alias.name}" here.'
    )
    summary = f'A {block.address.type} has no attribute "{name}"'
    yield make_error(step.node, summary, advice=advice)
