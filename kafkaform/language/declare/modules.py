"""Read the folders that `module` blocks name, and link the calls of modules to a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics
from ...syntax.limits import ALL_FILES_BYTES
from ...syntax.nodes import Block
from ..values.faults import make_diagnostic, make_error, suggest_near
from ..values.limits import LIMITS
from .addresses import find_key_fault, split_provider_name
from .blocks import Declarations, Header, ModuleBlock, ProviderBlock
from .folder import ParseFile, Tree, load_folder, parse_configuration
from .module_sources import SourceFault, UnreadableModule, resolve_source
from .settings import read_terraform_settings
from .skipped_blocks import Skipping
from .top_level import declare_blocks

Folders = Callable[[str], Mapping[str, bytes]]
"""Reads the files of a folder: path seen from the root folder (`modules/team`), or name of a folder
of a Git repository -> files by name. Raises an OSError that says why the folder cannot be read."""


class Module(Struct, frozen=True, eq=False):
    """The root, or one call of a module."""

    steps: tuple[str, ...]
    """The names of the calls that lead here; empty for the root."""
    folder: str
    """Seen from the root folder, which is ""."""
    declarations: Declarations
    """What the folder declares; shared by all calls of it."""
    call: ModuleBlock | None
    """None for the root."""
    providers: Mapping[str, str]
    """Name in this module -> provider instance of the root, without the key of a block with
    for_each."""
    children: dict[str, Module] = field(default_factory=dict)
    """The modules that it calls, by the names of the calls."""
    terraform: bool = False
    """Whether the files of the folder are Terraform's."""
    above: tuple[str, ...] = ()
    """The folders of the callers, so that a folder that contains itself is found."""
    skipped: frozenset[str] = frozenset()
    """What expressions can name although its block is skipped: `aws_vpc.main`, `module.vpc`."""
    repeated: frozenset[str] = frozenset()
    """The names in this module of provider blocks with for_each: empty below the root, where each
    name is one instance."""

    def walk_modules(self) -> Iterator[Module]:
        """This module and all below it, callers first."""
        pending = [self]
        while pending:
            module = pending.pop()
            yield module
            pending.extend(reversed(module.children.values()))

    def render_label(self, name: str) -> str:
        """The name of something in this module, for messages: `module.a.local.x`."""
        return ".".join((*(f"module.{step}" for step in self.steps), name))


# ── reading folders ─────────────────────────────────────────────────────────────────────


def add_modules(
    root: Tree,
    read: Folders,
    canonicalize: Callable[[str], str],
    size: int,
    parse_file: ParseFile = parse_configuration,
) -> Tree:
    """The tree with every folder that its module blocks name, directly or through other modules.

    canonicalize: path of a folder -> its one name, because paths can lead through links. size:
    bytes of the files of the root folder."""
    modules: dict[str, Tree] = {}
    names: dict[str, str] = {}
    faults: list[Diagnostic] = []
    pending = [("", root)]
    while pending:
        folder, tree = pending.pop()
        blocks = (block for file in tree.configuration for block in file.body.blocks)
        for block in blocks:
            if block.type != "module":
                continue
            spelling = _find_spelling(block, folder)
            if spelling is None or spelling in names:
                continue
            module_folder = names[spelling] = canonicalize(spelling)
            if module_folder in modules or module_folder == "":
                continue
            # A hostile folder could name folders without end, each of them full of files.
            try:
                files = read(module_folder) if len(names) <= LIMITS.calls else {}
            except OSError as fault:
                faults.append(_make_unreadable_fault(block, fault))
                continue
            size += sum(map(len, files.values()))
            if size > ALL_FILES_BYTES or len(names) > LIMITS.calls:
                faults.append(_make_too_large_fault(block))
                pending = []
                break
            modules[module_folder] = load_folder(files, module_folder, parse_file)
            pending.append((module_folder, modules[module_folder]))
    module_faults = [fault for tree in modules.values() for fault in tree.diagnostics]
    contents = {
        name: content
        for tree in (root, *modules.values())
        for name, content in tree.contents.items()
    }
    return replace(
        root,
        contents=contents,
        diagnostics=(*root.diagnostics, *module_faults, *faults),
        modules=modules,
        names=names,
    )


def _find_spelling(block: Block, caller: str) -> str | None:
    """How a module block in the folder `caller` spells the path of its module; None if its source
    has a fault, which is reported when the calls are linked."""
    source = getattr(block.get_argument("source"), "value", None)
    try:
        return resolve_source(source, caller) if isinstance(source, str) else None
    except SourceFault:
        return None


def _make_too_large_fault(block: Block) -> Diagnostic:
    return make_error(
        Header(block),
        "The modules of the configuration are too large",
        f"All files together can have {ALL_FILES_BYTES:,} bytes, in {LIMITS.calls:,} folders.",
    )


def _make_unreadable_fault(block: Block, fault: OSError) -> Diagnostic:
    source = block.get_argument("source")
    advice = "The source is the path of a folder, relative to the file with the module block."
    return make_error(
        Header(block) if source is None else source,
        f"The module {getattr(source, 'value', '')} cannot be read",
        str(fault) if fault.strerror is None else fault.strerror,
        fault.advice if isinstance(fault, UnreadableModule) else advice,
    )


# ── calls ───────────────────────────────────────────────────────────────────────────────


class LinkedModules(Struct, frozen=True):
    """The tree of calls, and what is wrong with it."""

    root: Module
    """The root folder, with everything that it calls."""
    faults: Diagnostics
    """The faults of all folders, each reported once however often a folder is called."""


def link_modules(
    tree: Tree, provider_names: tuple[str, ...], skipping: Skipping | None = None
) -> LinkedModules:
    """Link the calls of modules to a tree.

    provider_names: the providers that are installed. skipping: the blocks of others, which are no
    longer in the tree.
    """
    skipping = skipping or Skipping()
    folders = {
        folder: declare_blocks(folder_tree)
        for folder, folder_tree in (("", tree), *tree.modules.items())
    }
    faults = [fault for _, folder_faults in folders.values() for fault in folder_faults]
    declarations = folders[""][0]
    spelled = {name: name for name in declarations.providers}
    if tree.terraform:
        spelled = _map_local_names(declarations, tree)
    providers = {**{name: name for name in provider_names}, **spelled}
    names = skipping.list_names("")
    repeated = {name for name, own in spelled.items() if declarations.providers[own].several}
    root = Module(
        (),
        "",
        declarations,
        None,
        providers,
        terraform=tree.terraform,
        skipped=names,
        repeated=frozenset(repeated),
    )
    if declarations.modules:
        declared = {folder: blocks for folder, (blocks, _) in folders.items()}
        if not _add_children(root, declared, tree, skipping, faults):
            return LinkedModules(root, tuple(faults))
    for folder, (blocks, _) in folders.items():
        if folder:
            faults.extend(_find_misplaced(blocks))
    return LinkedModules(root, tuple(faults))


def _add_children(
    root: Module,
    declared: Mapping[str, Declarations],
    tree: Tree,
    skipping: Skipping,
    faults: list[Diagnostic],
) -> bool:
    """Add the tree of calls to the root. Returns False if there are too many. declared: what each
    folder declares."""
    pending, count, names = [root], 0, root.declarations.count
    while pending:
        caller = pending.pop()
        for call in caller.declarations.modules.values():
            module_folder = _find_folder(caller, call, tree, faults)
            if module_folder is None:
                continue
            declarations = declared[module_folder]
            # A folder that is called twice counts twice: every call is evaluated on its own.
            count += 1
            names += declarations.count
            if count > LIMITS.calls or names > LIMITS.names:
                faults.append(
                    make_error(
                        Header(call.block),
                        "The configuration calls too many modules",
                        f"One configuration can have {LIMITS.calls:,} calls and {LIMITS.names:,} "
                        "blocks and local values. Those in a module count for every call of it.",
                    )
                )
                return False
            providers = _resolve_providers(caller, call, faults)
            child = Module(
                (*caller.steps, call.name),
                module_folder,
                declarations,
                call,
                providers,
                terraform=tree.modules[module_folder].terraform,
                above=(*caller.above, caller.folder),
                skipped=skipping.list_names(module_folder),
            )
            caller.children[call.name] = child
            pending.append(child)
    return True


def _map_local_names(declarations: Declarations, tree: Tree) -> dict[str, str]:
    """How the root spells its provider instances -> the instances."""
    # `required_providers` can give a provider a local name. The blocks of that name then become
    # blocks of the provider.
    settings, names = read_terraform_settings(tree), dict[str, str]()
    for spelling, block in list(declarations.providers.items()):
        local, dot, alias = spelling.partition(".")
        name = settings.resolve_provider(local)
        names[spelling] = f"{name}{dot}{alias}"
        if name != local:
            del declarations.providers[spelling]
            declarations.providers[names[spelling]] = ProviderBlock(
                name, names[spelling], block.block
            )
    return names


def _find_folder(
    caller: Module, call: ModuleBlock, tree: Tree, faults: list[Diagnostic]
) -> str | None:
    """The folder of a call; None after a fault, which is reported here or was while reading."""
    if call.source is None:
        return None
    location = call.block.get_argument("source") or Header(call.block)
    try:
        spelling = resolve_source(call.source, caller.folder)
    except SourceFault as fault:
        diagnostic = make_error(
            location, fault.summary, fault.detail, fault.advice, hide=fault.hide
        )
        faults.append(diagnostic)
        return None
    module_folder = tree.names.get(spelling, spelling)
    if module_folder in (*caller.above, caller.folder):
        faults.append(
            make_error(
                location,
                f"module.{call.name} calls the module that contains it",
                f"The folder {module_folder or '.'} would contain itself.",
            )
        )
        return None
    return module_folder if module_folder in tree.modules else None


def _resolve_providers(
    caller: Module, call: ModuleBlock, faults: list[Diagnostic]
) -> Mapping[str, str]:
    """The providers of a module: the default ones of its caller, or exactly those of the map."""
    if call.providers is None:  # instances with an alias are never passed on silently
        return {name: instance for name, instance in caller.providers.items() if "." not in name}
    instances = {}
    installed = {name.partition(".")[0] for name in caller.providers}
    for name, node in call.providers.items():
        # Terraform's own providers are passed on as well. What they configure is skipped.
        if caller.terraform and name.partition(".")[0] not in installed:
            continue
        instances[name] = name  # so that a faulty entry is not reported again where it is used
        provider = split_provider_name(node)
        caller_name = provider.name
        if caller_name is None:
            faults.append(
                make_error(node, "This is not the name of a provider", advice="Write kafka.eu.")
            )
        elif caller_name not in caller.providers:
            advice = suggest_near(caller_name, caller.providers)
            faults.append(
                make_error(node, f"There is no provider instance {caller_name}", advice=advice)
            )
        else:
            instances[name] = caller.providers[caller_name]
            if (fault := find_key_fault(provider, caller.repeated, node)) is not None:
                faults.append(make_diagnostic(fault))
    return instances


def _find_misplaced(declarations: Declarations) -> Iterator[Diagnostic]:
    """Errors for blocks that are allowed in the root folder only."""
    for provider in declarations.providers.values():
        yield make_error(
            Header(provider.block),
            "A module cannot have provider blocks",
            "They belong in the root folder, so that one place says which systems are used.",
            "Move it there, and pass it on with providers = { … } in the module block.",
        )
    for import_block in declarations.imports:
        yield make_error(
            Header(import_block.block),
            "A module cannot have import blocks",
            advice="Move it into the root folder, and write to = module.NAME.TYPE.NAME.",
        )
    for block in declarations.policies:
        yield make_error(
            Header(block),
            f"A module cannot have {block.type} blocks",
            "Policies judge the whole plan, so they belong in one place.",
            "Move it into the root folder, or into a folder for --policy.",
        )
