"""What the text of expressions shows to be wrong before anything is evaluated: unknown names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ..core.address import Address
from ..core.diagnostics import Diagnostic
from ..core.schema import ObjectSchema
from ..syntax.nodes import Body, Expression
from .calls import SPECIAL, unknown_function
from .declare import Declarations, ResourceBlock
from .faults import as_diagnostic, error, near
from .functions.spec import Function
from .references import Reference, Step, calls, references

_LATER = ("module", "data", "self", "terraform")


@dataclass(frozen=True, slots=True)
class Names:
    """All that references can name."""

    found: Declarations
    schemas: Mapping[str, ObjectSchema]
    functions: Mapping[str, Function]


def expressions(body: Body, skip: Collection[str] = ()) -> Iterator[Expression]:
    """Every expression of a body and its nested blocks."""
    for name, attribute in body.attributes.items():
        if name not in skip:
            yield attribute.value
    for block in body.blocks:
        yield from expressions(block.body, ("ignore_changes",))


STATIC = ("provider", "depends_on")
"""Arguments of resources that name things instead of using values."""


def check_names(names: Names) -> Iterator[Diagnostic]:
    """Every unknown name in every expression."""
    found = names.found
    for item in found.locals.values():
        yield from _check(item.value, names)
    for resource in found.resources.values():
        allowed = [
            word
            for word, argument in (("each", "for_each"), ("count", "count"))
            if resource.argument(argument) is not None
        ]
        for node in expressions(resource.block.body, STATIC):
            yield from _check(node, names, allowed)
    for provider in found.providers.values():
        for node in expressions(provider.block.body):
            yield from _check(node, names, resources=False)
    for output in found.outputs.values():
        yield from _check(output.value, names)
    for variable in found.variables.values():
        for node in expressions(variable.block.body, ("type",)):
            yield from _check(node, names, resources=False)
    for item_block in found.imports:
        words = ["each"] if item_block.for_each is not None else []
        yield from _check(item_block.id, names, words)


def _check(
    node: Expression, names: Names, allowed: Collection[str] = (), resources: bool = True
) -> Iterator[Diagnostic]:
    for call in calls(node):
        if call.name not in names.functions and call.name not in SPECIAL:
            yield as_diagnostic(unknown_function(call, names.functions))
    for reference in references(node):
        yield from _reference(reference, names, allowed, resources)


def _reference(
    reference: Reference, names: Names, allowed: Collection[str], resources: bool
) -> Iterator[Diagnostic]:
    word = reference.root.name
    if word in ("var", "local"):
        declared = names.found.variables if word == "var" else names.found.locals
        yield from _declared(reference, word, declared)
    elif word in ("each", "count"):
        if word not in allowed:
            argument = "for_each" if word == "each" else "count"
            yield error(
                reference.root,
                f'"{word}" exists only in a block with {argument}',
                advice=f"Add {argument}, or use another value.",
            )
    elif word in names.schemas:
        yield from _resource(reference, names, resources)
    elif word in _LATER:
        yield error(reference.root, f'References to "{word}" are not supported yet')
    elif word != "path":
        known = ("var", "local", "path", *allowed, *names.schemas)
        advice = near(word, known) or f'Write "{word}" in quotes if it is a text.'
        yield error(reference.root, f'Nothing is named "{word}" here', advice=advice)


_WORDS = {
    "var": ("variable", 'variable "{}" {{ }}'),
    "local": ("local value", "locals {{ {} = … }}"),
}


def _declared(
    reference: Reference, word: str, declared: Mapping[str, object]
) -> Iterator[Diagnostic]:
    what, form = _WORDS[word]
    name = reference.steps[0].attribute if reference.steps else None
    if name is None:
        yield error(reference.place, f"Name one {what} behind the dot", f"{word}.NAME")
    elif name not in declared:
        advice = near(name, declared) or f"Declare it with {form.format(name)}."
        yield error(reference.steps[0].node, f'There is no {what} "{name}"', advice=advice)


def _resource(reference: Reference, names: Names, resources: bool) -> Iterator[Diagnostic]:
    word = reference.root.name
    name = reference.steps[0].attribute if reference.steps else None
    if name is None:
        yield error(reference.place, f"Name one {word} behind the dot", f"{word}.NAME")
        return
    if not resources:
        yield error(
            reference.steps[0].node,
            f"{word}.{name} cannot be used here",
            "Variables and provider blocks are evaluated before any resource.",
        )
        return
    block = names.found.resources.get(Address(word, name))
    if block is None:
        known = [address.name for address in names.found.resources if address.type == word]
        yield error(
            reference.steps[0].node, f'There is no {word} "{name}"', advice=near(name, known)
        )
        return
    yield from _attribute(block, reference.steps[1:], names.schemas[word])


def _attribute(
    block: ResourceBlock, steps: tuple[Step, ...], schema: ObjectSchema
) -> Iterator[Diagnostic]:
    several = block.argument("for_each") is not None or block.argument("count") is not None
    if not steps:
        return
    first = steps[0]
    if several and first.attribute is not None:
        yield error(
            first.node,
            f"{block.address} has several instances",
            f'Which one\'s "{first.attribute}" is meant?',
            f'Write {block.address}["KEY"].{first.attribute}, or a for expression over all.',
        )
        return
    if first.attribute is None:
        steps = steps[1:]
    if not steps or steps[0].attribute is None:
        return
    name = steps[0].attribute
    if name in schema.attributes or name in schema.blocks:
        return
    alias = schema.find(name)
    known = (*schema.attributes, *schema.blocks)
    advice = near(name, known) if alias is None else f'It is called "{alias.name}" here.'
    yield error(steps[0].node, f'A {block.address.type} has no attribute "{name}"', advice=advice)
