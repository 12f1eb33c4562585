"""`export`: write what this folder manages as configuration of another tool, and with `export acls
--for folders GLOB` the rights that a login of each folder needs for what its boundary covers.

The latter reads nothing but the repository file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from ...core.diagnostics import suggest
from ...core.errors import UsageError
from ...core.resource import Identity, Observed
from ...core.secret import keep_secrets, mask_secrets
from ...core.value import FrozenMap, SecretRef
from ...provider.contract import Exporter, ForeignResource, ResourceType, Session
from ...provider.registry import Registry
from ...render.text import inline
from ...syntax.write import Code, NewBlock, Writable, quote_string, write_blocks
from ..configuration.repository import RepositoryFolder
from ..configuration.repository_choice import choose_folders
from ..generate.blocks import get_noun, make_identifier, make_unique
from ..generate.files import GeneratedConfiguration, choose_path, list_texts
from ..workspace import Workspace, open_instance


class _Export(Struct, frozen=True):
    """What was written so far."""

    blocks: list[NewBlock] = field(default_factory=list)
    variables: list[NewBlock] = field(default_factory=list)
    requirements: dict[str, FrozenMap] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    count: list[Identity] = field(default_factory=list)
    documents: dict[str, str] | None = None
    """Path -> text of the files that the blocks read; None keeps the texts in the blocks."""
    paths: set[str] = field(default_factory=set)
    """The paths of these files in small letters."""


def export(workspace: Workspace, tool: str, *, documents: bool = False) -> GeneratedConfiguration:
    """Write every object that the folder declares or the state records, as it is live, for this
    tool. documents: keep long texts, such as schemas, in files of their own. Raises UsageError for
    a tool that no provider writes for, ConnectError."""
    with keep_secrets(workspace.known_secrets):
        exporters = _find_exporters(workspace, tool)
        state = workspace.backend.load().state
        recorded = state.objects.keys() if state is not None else ()
        ids = {*recorded, *(item.identity for item in workspace.desired.declared)}
        draft, complete = _Export(documents={} if documents else None), True
        for instance, exporter in exporters.items():
            instance_ids = sorted(identity for identity in ids if identity.instance == instance)
            session = open_instance(workspace, instance)
            try:
                complete &= _write_instance(session, instance_ids, exporter, workspace.types, draft)
            finally:
                session.close()
        unexported = sorted({identity.instance for identity in ids} - exporters.keys())
        draft.gaps.extend(f"Not exported: the objects of {instance}." for instance in unexported)
        text = mask_secrets(_render(tool, draft)) if draft.count else ""
        texts = {path: mask_secrets(text) for path, text in (draft.documents or {}).items()}
        return GeneratedConfiguration(
            text, {}, len(draft.count), tuple(draft.gaps), complete, texts
        )


def _find_exporters(space: Workspace, tool: str) -> dict[str, Exporter]:
    """Provider instance -> what writes its objects."""
    registry = space.configuration.registry
    names = {instance: block.name for instance, block in space.desired.providers.items()}
    offers = {name: registry.load_exporters(name) for name in {*names.values(), *registry.built_in}}
    tools = sorted({tool_name for offer in offers.values() for tool_name in offer})
    if tool not in tools:
        raise UsageError(
            f"{tool!r} is no tool that kafkaform writes for",
            suggest(tool, tools) or f"It is one of: {', '.join(tools)}.",
        )
    return {i: offers[name][tool]() for i, name in sorted(names.items()) if tool in offers[name]}


def _write_instance(
    session: Session,
    ids: list[Identity],
    exporter: Exporter,
    types: Mapping[str, ResourceType],
    draft: _Export,
) -> bool:
    """Write the objects of one system; whether all of them could be read."""
    complete = True
    draft.requirements.update(exporter.requirements)
    readings = session.read(ids) if ids else {}
    # An open connection can have been led to another system, whose objects must not be written.
    session.prove()
    for identity in ids:
        reading = readings[identity]
        if not isinstance(reading, Observed):
            reading_kind = type(reading).__name__.lower()
            draft.gaps.append(f"Not exported: {identity}: it is {reading_kind}.")
            # An export that lacks an unreadable object must not pass for a whole one.
            complete &= reading_kind == "absent"
            continue
        resource = exporter.write(identity.kind, reading.attributes)
        if isinstance(resource, str):
            draft.gaps.append(f"Not exported: {identity}: {resource}.")
            continue
        draft.count.append(identity)
        codes = _move_texts(identity, resource, reading.attributes, types[identity.kind], draft)
        _write_resource(identity, resource, codes, next(iter(exporter.requirements)), draft)
    return complete


def _move_texts(
    identity: Identity,
    resource: ForeignResource,
    live: FrozenMap,
    kind: ResourceType,
    draft: _Export,
) -> Mapping[str, Code]:
    """The arguments whose texts are in files of their own, which are added to the draft."""
    codes: dict[str, Code] = {}
    if draft.documents is None:
        return codes
    for attribute, ending in list_texts(live, kind):
        text = resource.arguments.get(attribute.name)
        if isinstance(text, str):
            path = choose_path(identity, ending, draft.paths)
            draft.documents[path] = text
            # Terraform runs a module in the folder of its caller.
            codes[attribute.name] = Code(f'file("${{path.module}}/{path}")')
    return codes


def _write_resource(
    identity: Identity,
    resource: ForeignResource,
    codes: Mapping[str, Code],
    provider: str,
    draft: _Export,
) -> None:
    """codes: argument -> what is written in place of its value; provider: its name there."""
    names = draft.names.setdefault(resource.type, set())
    name = make_unique(make_identifier(identity.key, get_noun(resource.type)), names)
    _, dot, label = identity.instance.partition(".")
    alias = {"provider": Code(f"{provider}.{label}")} if dot else {}
    arguments = {
        n: codes.get(n) or _write_argument(value, draft) for n, value in resource.arguments.items()
    }
    draft.blocks.append(NewBlock("resource", (resource.type, name), {**alias, **arguments}))
    if resource.id is None:
        draft.gaps.append(
            f"{identity} has no import block, since its provider there cannot import it: the first "
            "apply sets the same values again."
        )
        return
    target: dict[str, Writable] = {"to": Code(f"{resource.type}.{name}"), "id": resource.id}
    draft.blocks.append(NewBlock("import", (), target))


def _write_argument(value: Writable, draft: _Export) -> Writable:
    """A value; a secret becomes a sensitive variable, whose value somebody has to give."""
    if isinstance(value, FrozenMap) and any(isinstance(v, SecretRef) for v in value.values()):
        return {key: _write_argument(entry, draft) for key, entry in value.items()}
    if not isinstance(value, SecretRef):
        return value
    names = draft.names.setdefault("variable", set())
    name = make_unique(make_identifier(value.name, "secret"), names)
    # Terraform prints the value of a variable in its plans unless it is sensitive.
    settings: dict[str, Writable] = {"type": Code("string"), "sensitive": True}
    draft.variables.append(NewBlock("variable", (name,), settings))
    return Code(f"var.{name}")


def _render(tool: str, draft: _Export) -> str:
    head = (
        f"# Written by `kafkaform export {tool}`. Once it is applied, the import blocks have done\n"
        "# their work and can go.\n"
    )
    head += "".join(f"# {inline(gap)}\n" for gap in draft.gaps)
    providers = {
        name: Code(_render_map(requirement))
        for name, requirement in sorted(draft.requirements.items())
    }
    needs = NewBlock("terraform", (), {}, (NewBlock("required_providers", (), providers),))
    return f"{head}\n{write_blocks((needs, *draft.variables, *draft.blocks))}"


def _render_map(values: Mapping[str, str]) -> str:
    inner = "\n".join(f"{name} = {quote_string(text)}" for name, text in sorted(values.items()))
    return f"{{\n{inner}\n}}"


TOOL, NOUN = "acls", "folders"
VARIABLE = "logins"
_HEAD = """\
# Written by `kafkaform export acls`: the rights of each folder's login.
"""


def export_login_rights(tool: str, chosen: tuple[str, str] | None) -> GeneratedConfiguration:
    """The rights for the folders that the flag chooses: the word folders, and a glob. Raises
    UsageError, and ConfigurationError for a fault of the repository file."""
    if tool != TOOL or chosen is None or chosen[0] != NOUN:
        raise UsageError(
            "the rights of logins are exported for folders of a repository",
            f'Write: kafkaform export {TOOL} --for {NOUN} "teams/*"',
        )
    choice = choose_folders(Path(), False, (chosen[1],), None)
    registry, names = Registry(), set[str]()
    blocks: list[NewBlock] = []
    gaps: dict[str, None] = {}
    for folder in choice.folders:
        fence = folder.fence
        if fence is None:
            gaps[f"{folder.path} has no boundary, so any right can be needed there"] = None
            continue
        for block_or_gap in _list_rights(folder, fence.lists, registry, names):
            if isinstance(block_or_gap, str):
                gaps[block_or_gap] = None
            else:
                blocks.append(block_or_gap)
    variable = NewBlock(
        "variable",
        (VARIABLE,),
        {
            "type": Code("map(string)"),
            "description": "Folder -> the principal of its login, such as User:shop-pipeline.",
        },
    )
    comments = "".join(f"# {inline(gap)}.\n" for gap in gaps)
    text = f"{_HEAD}{comments}\n{write_blocks((variable, *blocks))}" if blocks else ""
    notes = tuple(f"{gap}." for gap in gaps)
    return GeneratedConfiguration(text, {}, len(blocks), notes, True, {})


def _list_rights(
    folder: RepositoryFolder,
    lists: Mapping[str, tuple[str, ...]],
    registry: Registry,
    names: set[str],
) -> Iterator[NewBlock | str]:
    """The blocks for one folder, and what no block can permit alone."""
    principal = Code(f"var.{VARIABLE}[{quote_string(folder.path)}]")
    for name in sorted({cluster.provider for cluster in folder.uses.values()} or registry.built_in):
        blocks, gaps = registry.load(name).list_login_rights(principal, lists)
        for kind, arguments in blocks:
            label = make_unique(make_identifier(folder.path, "login"), names)
            written: dict[str, Writable] = dict(arguments)
            yield NewBlock("resource", (kind, label), written)
        yield from gaps
