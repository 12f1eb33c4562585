"""What the text of expressions shows to be wrong before anything is evaluated: unknown names."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import Diagnostic
from ...core.schema import ObjectSchema
from ...syntax.nodes import Block, Expression
from ...syntax.stamps import Stamped, StencilShape
from ..declare.blocks import Header
from ..declare.declarations import CheckBlock, Declarations, ModuleBlock, ResourceBlock
from ..declare.modules import Module
from ..expressions.calls import SPECIAL, make_unknown_function_fault
from ..expressions.dependencies import AllUses, Reference, ReferenceStep
from ..expressions.traversal import PATHS, find_iterator, walk_expressions
from ..functions.spec import Function
from ..values.faults import make_diagnostic, make_error, suggest_near
from .graph import STATIC

ID = "id"
"""An attribute that every object has beside its schema's: the key of its identity."""
CALL_META = ("source", "version", "providers", "for_each", "count", "depends_on")


class Names(Struct, frozen=True):
    """All that references can name. types, data: schemas by name; allowed: further first words,
    such as `each`; resources: whether objects may be named; sound: shapes that were checked."""

    module: Module
    types: Mapping[str, ObjectSchema]
    data: Mapping[str, ObjectSchema]
    functions: Mapping[str, Function]
    uses: AllUses
    allowed: frozenset[str] = frozenset()
    resources: bool = True
    sound: dict[StencilShape, bool] = field(default_factory=dict)

    @property
    def found(self) -> Declarations:
        return self.module.found

    def add_words(self, words: Iterable[str]) -> Names:
        return replace(self, allowed=self.allowed.union(words))


def check_names(names: Names) -> Iterator[Diagnostic]:
    """Every unknown name in every expression of a module."""
    found, early = names.found, replace(names, resources=False)
    for item in found.locals.values():
        yield from _check_nodes([item.value], names)
    for resource in (*found.resources.values(), *found.data.values()):
        yield from _check_resource_block(resource, names)
    for call in found.modules.values():
        yield from _check_call(call, names)
    for provider in found.providers.values():
        yield from _check_block_names(provider.block, early)
    for output in found.outputs.values():
        yield from _check_nodes(walk_expressions(output.block.body, STATIC), names)
    for variable in found.variables.values():
        yield from _check_nodes(walk_expressions(variable.block.body, ("type",)), early)
    for imported in found.imports:
        yield from _check_nodes([imported.id], names.add_words(_list_words(imported.block)))
    for check in found.checks.values():
        yield from _check_block(check, names)


def check_expression(node: Expression, names: Names) -> Iterator[Diagnostic]:
    """Every unknown name in one expression that stands outside of any block."""
    return _check_nodes([node], names)


def _check_nodes(nodes: Iterable[Expression], names: Names) -> Iterator[Diagnostic]:
    for node in nodes:
        used = names.uses[node]
        for call in used.calls:
            if call.name not in names.functions and call.name not in SPECIAL:
                yield make_diagnostic(make_unknown_function_fault(call, names.functions))
        for reference in used.references:
            yield from _check_reference(reference, names)


# ── blocks ──────────────────────────────────────────────────────────────────────────────


def _list_words(block: Block) -> list[str]:
    """`each` or `count`, if the block repeats itself so."""
    pairs = (("each", "for_each"), ("count", "count"))
    return [word for word, argument in pairs if argument in block.body.attributes]


def _check_resource_block(resource: ResourceBlock, names: Names) -> Iterator[Diagnostic]:
    block = resource.block
    if isinstance(block, Stamped):
        # It uses the same names as the block that it repeats.
        if block.shape not in names.sound:
            names.sound[block.shape] = not any(_check_block_names(block.shape.block, names))
        if names.sound[block.shape]:
            return
    yield from _check_block_names(block, names.add_words(_list_words(block)))


def _check_block_names(block: Block, names: Names) -> Iterator[Diagnostic]:
    """A block with nested ones; a dynamic one names its element, a postcondition itself."""
    skip = STATIC if block.type in ("resource", "data") else PATHS
    iterator = find_iterator(block)
    skip = (*skip, "iterator") if iterator else skip
    plain = [item.value for name, item in block.body.attributes.items() if name not in skip]
    yield from _check_nodes(plain, names)
    inside = names.add_words([iterator] if iterator else ())
    for inner in block.body.blocks:
        word = ("self",) if inner.type == "postcondition" else ()
        yield from _check_block_names(inner, inside.add_words(word))


def _check_call(call: ModuleBlock, names: Names) -> Iterator[Diagnostic]:
    yield from _check_nodes(
        walk_expressions(call.block.body, STATIC), names.add_words(_list_words(call.block))
    )
    child = names.module.children.get(call.name)
    if child is None:
        return
    variables = child.found.variables
    for name, item in call.block.body.attributes.items():
        if name not in CALL_META and name not in variables:
            known = ", ".join(variables)
            detail = f"It has {known}." if known else "It has none."
            summary = f'The module {call.source} has no variable "{name}"'
            yield make_error(item, summary, detail, suggest_near(name, (*variables, *CALL_META)))
    for name, variable in variables.items():
        if variable.default is None and call.block.get_argument(name) is None:
            yield make_error(
                Header(call.block),
                f'module.{call.name} needs "{name}"',
                f"The variable is declared at {variable.block.header_range}, without a default.",
                f"Write {name} = … in the module block.",
            )


def _check_block(check: CheckBlock, names: Names) -> Iterator[Diagnostic]:
    if check.data is not None:
        yield from _check_resource_block(check.data, names)
        own = replace(names.found, data={**names.found.data, check.data.address: check.data})
        names = replace(names, module=replace(names.module, found=own))
    for rule in check.assertions:
        yield from _check_nodes(walk_expressions(rule.body), names)


# ── references ──────────────────────────────────────────────────────────────────────────


def _check_reference(reference: Reference, names: Names) -> Iterator[Diagnostic]:
    word, found = reference.root.name, names.found
    if word in names.allowed or word == "path":
        return
    if word in ("var", "local"):
        declared = found.variables if word == "var" else found.locals
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
    elif word in names.types:
        yield from _check_resource(reference, names)
    elif any(address.type == word for address in found.resources):
        return  # of a type that is not known: reported or skipped where it is declared
    elif word != "terraform" or not names.module.terraform:
        known = ("var", "local", "module", "data", "path", *names.allowed, *names.types)
        advice = suggest_near(word, known) or f'Write "{word}" in quotes if it is a text.'
        yield make_error(reference.root, f'Nothing is named "{word}" here', advice=advice)


_WORDS = {
    "var": ("variable", 'variable "{}" {{ }}'),
    "local": ("local value", "locals {{ {} = … }}"),
    "module": ("module", 'module "{}" {{ source = "./…" }}'),
}


def _check_declared(
    reference: Reference, word: str, declared: Mapping[str, object]
) -> Iterator[Diagnostic]:
    what, form = _WORDS[word]
    name = reference.steps[0].attribute if reference.steps else None
    if name is None:
        yield make_error(reference.place, f"Name one {what} behind the dot", f"{word}.NAME")
    elif name not in declared:
        advice = suggest_near(name, declared) or f"Declare it with {form.format(name)}."
        yield make_error(reference.steps[0].node, f'There is no {what} "{name}"', advice=advice)


def _check_module(reference: Reference, names: Names) -> Iterator[Diagnostic]:
    faults = [*_check_declared(reference, "module", names.found.modules)]
    yield from faults
    name = reference.steps[0].attribute if reference.steps else None
    child = names.module.children.get(name or "")
    if faults or child is None or name is None:
        return
    if not names.resources:
        yield _make_too_early_fault(reference.steps[0], f"module.{name}")
        return
    several = names.found.modules[name].several
    step = yield from _find_own_step(reference.steps[1:], several, f"module.{name}")
    if step is not None and step.attribute not in child.found.outputs:
        outputs = child.found.outputs
        advice = suggest_near(step.attribute or "", outputs)
        known = f"It has {', '.join(outputs)}." if outputs else "It has no outputs."
        summary = f'module.{name} has no output "{step.attribute}"'
        yield make_error(step.node, summary, known, advice)


def _check_data(reference: Reference, names: Names) -> Iterator[Diagnostic]:
    words = [step.attribute for step in reference.steps[:2]]
    if len(words) < 2 or None in words:
        yield make_error(reference.place, "Name one data source behind the dot", "data.TYPE.NAME")
        return
    address = Address(str(words[0]), str(words[1]))
    shown = f"data.{address}"
    if not names.resources:
        yield _make_too_early_fault(reference.steps[1], shown)
        return
    block = names.found.data.get(address)
    if block is None:
        known = [f"data.{one}" for one in names.found.data]
        yield make_error(
            reference.steps[1].node, f"{shown} is not declared", advice=suggest_near(shown, known)
        )
    elif address.type in names.data:
        steps = reference.steps[2:]
        yield from _check_attribute(block, steps, names.data[address.type], shown)


def _check_resource(reference: Reference, names: Names) -> Iterator[Diagnostic]:
    word = reference.root.name
    name = reference.steps[0].attribute if reference.steps else None
    if name is None:
        yield make_error(reference.place, f"Name one {word} behind the dot", f"{word}.NAME")
        return
    if not names.resources:
        yield _make_too_early_fault(reference.steps[0], f"{word}.{name}")
        return
    block = names.found.resources.get(Address(word, name))
    if block is None:
        known = [address.name for address in names.found.resources if address.type == word]
        yield make_error(
            reference.steps[0].node,
            f'There is no {word} "{name}"',
            advice=suggest_near(name, known),
        )
        return
    yield from _check_attribute(block, reference.steps[1:], names.types[word], str(block.address))


def _make_too_early_fault(step: ReferenceStep, what: str) -> Diagnostic:
    return make_error(
        step.node,
        f"{what} cannot be used here",
        "Variables and provider blocks are evaluated before anything is read or declared.",
    )


def _find_own_step(
    steps: tuple[ReferenceStep, ...], several: bool, what: str
) -> Generator[Diagnostic, None, ReferenceStep | None]:
    """The step that names an attribute of one instance, if the text tells it."""
    if not steps:
        return None
    first = steps[0]
    if several and first.attribute is not None:
        yield make_error(
            first.node,
            f"{what} has several instances",
            f'Which one\'s "{first.attribute}" is meant?',
            f'Write {what}["KEY"].{first.attribute}, or a for expression over all.',
        )
        return None
    if first.attribute is None:
        steps = steps[1:]
    return steps[0] if steps and steps[0].attribute is not None else None


def _check_attribute(
    block: ResourceBlock, steps: tuple[ReferenceStep, ...], schema: ObjectSchema, what: str
) -> Iterator[Diagnostic]:
    step = yield from _find_own_step(steps, block.several, what)
    if step is None:
        return
    name = step.attribute or ""
    if name in schema.attributes or name in schema.blocks or name == ID:
        return
    alias = schema.find(name)
    known = (*schema.attributes, *schema.blocks)
    advice = suggest_near(name, known) if alias is None else f'It is called "{alias.name}" here.'
    summary = f'A {block.address.type} has no attribute "{name}"'
    yield make_error(step.node, summary, advice=advice)
