"""What a block can contain: its arguments and nested blocks, with what people should know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ..core.schema import META_ARGUMENTS, META_BLOCKS, AttributeSchema, KeySchema, ObjectSchema
from ..language.declare.blocks import (
    DATA_LIFECYCLE,
    LIFECYCLE,
    MODULE_LIFECYCLE,
    REMOVED_LIFECYCLE,
    RULE,
    SHAPES,
    WAIVER,
    Shape,
)
from ..language.evaluate.name_check import CALL_META
from ..language.suites import ENDING as TESTS
from ..language.suites import OPTIONS
from ..language.suites import SHAPES as TEST_SHAPES
from ..workflow.configuration.policies import ENDING as POLICIES
from .outline import BlockOutline
from .project import FLEET, VALUES, Project
from .words import ARGUMENTS, BLOCKS

_NESTED: Mapping[str, Shape] = {
    "validation": RULE,
    "precondition": RULE,
    "postcondition": RULE,
    "assert": RULE,
    "waiver": WAIVER,
    "plan_options": Shape(optional=tuple(OPTIONS)),
}
_LIFECYCLES: Mapping[str, Shape] = {
    "resource": LIFECYCLE,
    "data": DATA_LIFECYCLE,
    "module": MODULE_LIFECYCLE,
    "removed": REMOVED_LIFECYCLE,
}
_META = {
    "resource": (*META_ARGUMENTS, *META_BLOCKS),
    "data": ("provider", "for_each", "count", "depends_on", *META_BLOCKS),
    "given": (),
}


class BlockMember(Struct, frozen=True):
    """An argument or a block that can stand in a block."""

    name: str
    doc: str
    block: bool = False
    labels: int = 0
    """Of a block: how many labels it has."""
    attribute: AttributeSchema | None = None
    """Of an argument of a provider's schema."""
    required: bool = False


def list_members(
    project: Project, folder: str, file: str, path: Sequence[BlockOutline]
) -> tuple[BlockMember, ...]:
    """What the innermost of these blocks can contain; without blocks, what the file can."""
    return tuple(_list_members(project, folder, file, path))


def _list_members(
    project: Project, folder: str, file: str, path: Sequence[BlockOutline]
) -> Iterator[BlockMember]:
    if not path and file.endswith(VALUES):
        yield from _list_variables(project, "")
        return
    if not path:
        shapes = list_shapes(file)
        for kind, shape in shapes.items():
            yield BlockMember(kind, BLOCKS[kind], True, len(shape.labels))
        return
    top, inner = path[0].type.text, path[-1].type.text
    schema = find_schema(project, file, path)
    if schema is not None:
        yield from _list_schema(schema)
        if len(path) == 1 or inner == "data":
            kind = "data" if inner == "data" else top
            yield from _list_named(kind, _META.get(kind, ("alias",)))
            if schema.blocks:
                yield BlockMember("dynamic", BLOCKS["dynamic"], True, 1)
    elif top == "module":
        yield from _list_variables(project, project.find_source(folder, path[0]))
        yield from _list_named("module", CALL_META)
    elif inner == "variables":
        yield from _list_variables(project, "")
    elif inner == "dynamic":
        yield from _list_named("dynamic", ("for_each", "iterator", "content"))
    elif inner == "lifecycle":
        yield from _list_shape("lifecycle", _LIFECYCLES.get(path[-2].type.text, LIFECYCLE))
    else:
        shapes = {**list_shapes(file), **_NESTED} if len(path) == 1 else _NESTED
        yield from _list_shape(inner, shapes.get(inner, Shape()))


def list_shapes(file: str) -> Mapping[str, Shape]:
    """The top-level blocks that a file of this name can have."""
    if file.endswith(TESTS):
        return TEST_SHAPES
    if file == FLEET:
        return {}
    if file.endswith(POLICIES):
        return {kind: SHAPES[kind] for kind in ("policy", "policy_set")}
    return SHAPES


def find_schema(project: Project, file: str, path: Sequence[BlockOutline]) -> ObjectSchema | None:
    """The provider's schema of the innermost block, None if it has none."""
    schema: ObjectSchema | None = None
    dynamic = ""
    for section in path:
        kind = section.type.text
        label = section.labels[0].text if section.labels else ""
        if schema is None or kind == "data":
            schema = _find_own_schema(project, file, kind, label)
        elif dynamic:
            schema = schema.blocks.get(dynamic) if kind == "content" else None
            dynamic = ""
        elif kind == "dynamic":
            dynamic = label
        else:
            schema = schema.blocks.get(kind)
            if schema is None:
                return None
    return None if dynamic else schema


def _find_own_schema(project: Project, file: str, kind: str, label: str) -> ObjectSchema | None:
    library, schemas = project.library, project.library.schemas
    if kind in ("resource", "given"):
        resource_type = schemas.types.get(label)
        return None if resource_type is None else resource_type.schema
    if kind == "data":
        source = schemas.data.get(label)
        return None if source is None else source.schema
    if kind == "provider":
        provider = schemas.providers.get(label)
        return None if provider is None else provider.schema
    return library.simulations.get(label) if kind == "simulate" else None


def find_attribute(
    project: Project, file: str, path: Sequence[BlockOutline], name: str
) -> AttributeSchema | None:
    """The attribute that an argument of a block gives, None if no schema has it."""
    schema = find_schema(project, file, path)
    return None if schema is None else schema.find(name)


def list_keys(attribute: AttributeSchema | None) -> tuple[KeySchema, ...]:
    """The keys of a map that are known."""
    return () if attribute is None or attribute.keys is None else tuple(attribute.keys())


def _list_schema(schema: ObjectSchema) -> Iterator[BlockMember]:
    for attribute in schema.attributes.values():
        if not attribute.computed:
            yield BlockMember(
                attribute.name, attribute.doc, attribute=attribute, required=attribute.required
            )
    for name, block in schema.blocks.items():
        yield BlockMember(name, block.doc, True)


def _list_named(kind: str, names: Sequence[str]) -> Iterator[BlockMember]:
    meanings = ARGUMENTS.get(kind, {})
    for name in names:
        yield BlockMember(name, meanings.get(name) or BLOCKS.get(name, ""), name not in meanings)


def _list_shape(kind: str, shape: Shape) -> Iterator[BlockMember]:
    meanings = ARGUMENTS.get(kind, {})
    for name in (*shape.required, *shape.optional):
        yield BlockMember(name, meanings.get(name, ""), required=name in shape.required)
    for name in shape.blocks:
        labels = {"given": 2, "data": 2, "backend": 1}.get(name, 0)
        yield BlockMember(name, BLOCKS[name], True, labels)


def _list_variables(project: Project, folder: str | None) -> Iterator[BlockMember]:
    """The arguments that a module's variables are."""
    if folder is None:
        return
    for name, section in project.list_variables(folder).items():
        required = section.find_item("default") is None
        yield BlockMember(name, describe_block(section), required=required)


def describe_block(section: BlockOutline) -> str:
    """What a `description` says of a block."""
    item = section.find_item("description")
    return item.literal.text if item is not None and item.literal is not None else ""
