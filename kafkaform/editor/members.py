"""What a block can contain: its arguments and nested blocks, and what each word of the language
means."""

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
from ..language.tests.suites import ENDING as TESTS
from ..language.tests.suites import OPTIONS
from ..language.tests.suites import SHAPES as TEST_SHAPES
from ..workflow.configuration.policies import ENDING as POLICIES
from ..workflow.configuration.repository import PAGES
from ..workflow.configuration.repository import find_schema as find_repository_schema
from .outline import BlockOutline
from .project import FLEET, REPOSITORY, VALUES, Project

_RULE = {
    "condition": "What must be true.",
    "error_message": "What is said if it is not.",
}
_INSTANCES = {
    "for_each": "A map or a set of strings: one instance for each key. See `each.key`, "
    "`each.value`.",
    "count": "A number of instances. See `count.index`.",
    "depends_on": "Addresses of what comes first.",
}

BLOCKS: Mapping[str, str] = {
    "kafkaform": "Settings of the configuration: which version it needs, where its state is.",
    "provider": "A connection to a system. `alias` names a further one.",
    "resource": "An object that this configuration manages.",
    "data": "Something to read from a system, without managing it.",
    "module": "A call of a folder with its own blocks.",
    "variable": "A value that is given from outside.",
    "locals": "Names for expressions.",
    "output": "A value that others can read after the apply.",
    "check": "Assertions that warn and block nothing.",
    "removed": "Says what becomes of an object whose block is gone.",
    "import": "Takes over a live object.",
    "moved": "Says that an object has a new address.",
    "policy": "A rule that plans are judged by.",
    "policy_set": "Switches on the rules of a provider.",
    "terraform": "Settings of Terraform's files.",
    "backend": "Where the state is stored.",
    "validation": "A rule for the values of the variable.",
    "precondition": "A rule that is checked before anything is sent.",
    "postcondition": "A rule that is checked afterwards; `self` is the object.",
    "assert": "A rule.",
    "lifecycle": "How the object is protected, taken over and compared.",
    "provisioner": "A program that Terraform runs for an object. kafkaform runs none.",
    "connection": "How Terraform's provisioners connect. kafkaform does not use it.",
    "waiver": "Lets some objects break the rule until a date.",
    "dynamic": "A nested block for each element of a collection.",
    "content": "What each of these blocks contains.",
    "variables": "Values of the configuration's variables.",
    "simulate": "Settings of a simulated system.",
    "outputs": 'What another folder puts out, for `data "kafkaform_outputs"`.',
    "given": "An object that exists before the run.",
    "run": "A plan or an apply, and what must be true afterwards.",
    "plan_options": "What flags would say to the plan.",
}
"""Type of a block -> its meaning."""

ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "kafkaform": {"required_version": 'Versions that can read this: `">= 0.1, < 2.0"`.'},
    "provider": {
        "alias": "The name of a further instance: `provider = NAME.ALIAS` chooses it.",
        "for_each": "A map or a set of strings: an instance for each key, `NAME.ALIAS[KEY]`.",
    },
    "resource": {
        "provider": "Which provider instance, such as `NAME.ALIAS`.",
        **_INSTANCES,
        "owner": "Text for people and reports. It is kept in the state only.",
        "labels": "A map of texts for people and reports. It is kept in the state only.",
    },
    "data": {"provider": "Which provider instance, such as `NAME.ALIAS`.", **_INSTANCES},
    "module": {
        "source": "The module's folder: a path that begins with `./` or `../`.",
        "version": "Terraform's; local folders have none.",
        "providers": "The provider instances that the module gets: `{ NAME = NAME.ALIAS }`.",
        **_INSTANCES,
    },
    "variable": {
        "type": "Which values are allowed, such as `string` or `map(number)`.",
        "default": "The value if none is given.",
        "description": "What it is for.",
        "sensitive": "true: its value is never shown.",
        "nullable": "false: null counts as not given.",
        "deprecated": "A text that warns whoever still gives a value.",
        "ephemeral": "true: its value is in no plan and no state.",
        "const": "Terraform's; it has no effect.",
    },
    "output": {
        "value": "The expression.",
        "description": "What it is for.",
        "sensitive": "true: its value is never shown.",
        "depends_on": "Addresses of what comes first.",
        "deprecated": "A text that warns whoever still reads the output of the module.",
        "ephemeral": "true: its value is in no plan and no state. Only in modules.",
    },
    "removed": {"from": "The address of the object."},
    "import": {
        "to": "The address of its block.",
        "id": "What names the live object; the type's documentation says how.",
        "for_each": "A map or a set of strings: one import for each key.",
        "provider": "Which provider instance, such as `NAME.ALIAS`.",
    },
    "moved": {"from": "The old address.", "to": "The new address."},
    "policy": {
        "condition": "What must be true for each change.",
        "message": "What is said of a change for which it is not.",
        "severity": '"error" blocks the change, "warning" is only shown.',
        "when": "Which changes the rule is about. Default: all.",
        "description": "What it is for.",
        "settings": "Values that the rule uses.",
    },
    "policy_set": {
        "enable": "The names of the rules to switch on. Default: all.",
        "severity": '"error" blocks changes, "warning" is only shown.',
        "settings": "Other values than the rules' own.",
    },
    "validation": _RULE,
    "precondition": _RULE,
    "postcondition": _RULE,
    "assert": _RULE,
    "waiver": {
        "rule": "The only rule that it is about: one of the set, or one that can be accepted.",
        "addresses": "Globs of the addresses that it covers.",
        "reason": "Why.",
        "until": 'The last day on which it counts, such as "2027-01-31".',
    },
    "lifecycle": {
        "enabled": "false: the block declares nothing, and its value is null.",
        "prevent_destroy": "true: protected. false: not protected. Default: as its type.",
        "adopt": "true: take over a live object of this name.",
        "shared": "true: other folders declare the same object; it is never deleted.",
        "park": 'How long access is taken away before the object is deleted: "7d".',
        "ignore_changes": "Attributes whose live values stay, or `all`.",
        "ignore_changes_except": "The only attributes whose live values do not stay.",
        "create_before_destroy": "Terraform's; it has no effect.",
        "replace_triggered_by": "Terraform's; it has no effect.",
        "destroy": "true: the object is deleted. Default: it is only forgotten.",
    },
    "dynamic": {
        "for_each": "One block for each element.",
        "iterator": "The name of the element; default: the type of the block.",
    },
    "outputs": {
        "folder": "The other folder, as the data block names it.",
        "values": 'Name of an output -> its value: `{ prefix = "acme" }`.',
    },
    "run": {
        "command": '"plan" or "apply".',
        "expect_failures": "The blocks whose rules must fail.",
    },
    "plan_options": {
        "mode": '"normal", "destroy" or "refresh".',
        "target": "Addresses or globs: only these.",
        "exclude": "Addresses or globs: all but these.",
        "adopt": "Addresses or globs of objects to take over.",
        "accept": "Rules whose blocks are lifted, as `--accept RULE[=ADDRESS]` does.",
        "max_deletes": "How many deletions are allowed.",
        "max_data_loss": "How many objects may lose data, besides deletions.",
    },
}
"""Type of a block -> its arguments with their meanings."""

ROOTS: Mapping[str, str] = {
    "var": "The value of a variable: `var.NAME`.",
    "local": "The value of a local name: `local.NAME`.",
    "module": "An output of a module: `module.NAME.OUTPUT`.",
    "data": "An answer of a data source: `data.TYPE.NAME.ATTRIBUTE`.",
    "path": "Paths of folders: `path.module`, `path.root`.",
    "each": "The current element of for_each: `each.key`, `each.value`.",
    "count": "The number of the current instance: `count.index`.",
    "self": "The object itself, in a postcondition.",
}
"""First word of a reference -> its meaning."""

REPOSITORY_ROOTS: Mapping[str, str] = {
    "folder": "The folder that the block matches: `folder.path`, `folder.name`.",
    "cluster": "A cluster of this file: `cluster.NAME`.",
}
"""The same in a `folders` block of a repository file, which sees nothing else."""

FIXED: Mapping[str, tuple[str, ...]] = {
    "path": ("module", "root", "cwd"),
    "each": ("key", "value"),
    "count": ("index",),
    "folder": ("path", "name"),
}
"""First word of a reference -> what can follow."""

TYPES: Mapping[str, str] = {
    "string": "A text.",
    "number": "A number.",
    "bool": "true or false.",
    "any": "Any value.",
    "list": "`list(TYPE)`: elements in an order.",
    "set": "`set(TYPE)`: different elements without an order.",
    "map": "`map(TYPE)`: values by name.",
    "object": "`object({ NAME = TYPE })`: named fields of their own types.",
    "tuple": "`tuple([TYPE, …])`: a fixed number of elements.",
    "optional": "`optional(TYPE, DEFAULT)`: a field that can be left out.",
}
"""Word of a type constraint -> its meaning."""


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


def list_roots(file: str, path: Sequence[BlockOutline]) -> Mapping[str, str]:
    """First word of a reference in the innermost of these blocks -> its meaning."""
    if file != REPOSITORY:
        return ROOTS
    return REPOSITORY_ROOTS if path and path[0].type.text == "folders" else {}


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
        if file == REPOSITORY:
            for kind, (page, labels) in PAGES.items():
                yield BlockMember(kind, page.doc, True, labels)
        shapes = list_shapes(file)
        for kind, shape in shapes.items():
            yield BlockMember(kind, BLOCKS[kind], True, len(shape.labels))
        return
    top, inner = path[0].type.text, path[-1].type.text
    schema = find_schema(project, file, path)
    if schema is not None:
        yield from _list_schema(schema)
        if file != REPOSITORY and (len(path) == 1 or inner == "data"):
            kind = "data" if inner == "data" else top
            yield from _list_named(kind, _META.get(kind, ("alias", "for_each")))
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
    if file in (FLEET, REPOSITORY):
        return {}
    if file.endswith(POLICIES):
        return {kind: SHAPES[kind] for kind in ("policy", "policy_set")}
    return SHAPES


def find_schema(project: Project, file: str, path: Sequence[BlockOutline]) -> ObjectSchema | None:
    """The provider's schema of the innermost block, None if it has none."""
    if file == REPOSITORY and path:
        named = path[0].find_item("provider")
        provider = "" if named is None or named.literal is None else named.literal.text
        infos = project.library.schemas.providers
        schemas = {name: info.schema for name, info in infos.items()}
        return find_repository_schema([s.type.text for s in path], provider, schemas)
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
