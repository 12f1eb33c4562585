"""Read the folders that `module` blocks name, local ones and those of Git repositories, and link
the calls of modules to a tree.

A folder of a repository is known by a name that says where it comes from, because its files are
stored by their content: `git::https://HOST/REPOSITORY.git?ref=TAG//FOLDER`. The part before the
folder is the package; its top folder ends in one slash, so that `${path.module}/NAME` fits both.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics
from ...syntax.nodes import ALL_FILES_BYTES, Block
from ..values.faults import LIMITS, make_diagnostic, make_error, suggest_near
from .addresses import find_key_fault, split_provider_name
from .blocks import Declarations, Header, ModuleBlock, ProviderBlock
from .folder import ParseFile, Tree, load_folder, parse_configuration
from .settings import Skipping, read_terraform_settings
from .top_level import declare_blocks

GIT = "git::"
FORM = "git::https://HOST/REPOSITORY.git//FOLDER?ref=TAG"
_REF = "?ref="

# Texts, which `re` compiles when a Git source is read: most configurations have none.
# What reaches the command line of git, or a shell of another computer through ssh, has only these
# characters: no option, no space, no quote.
_URL = (
    r"(?P<scheme>https|ssh|file)://"
    r"(?:(?P<user>[A-Za-z0-9_][\w.-]*)@)?"
    r"(?P<host>(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)?"
    r"(?P<path>(?:/[\w.~+@=,:%-]+)+)"
)
_SCHEME = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)(?:::|://)"
_REFERENCE = r"\w[\w./+@=-]*"
"""Without what Git gives a meaning to: `~ ^ : ? * [ \\`, spaces, and a leading dash."""
_REFERENCE_FAULT = r"\.\.|//|@\{|\.lock(?:/|$)|[./]$|/\."
_FOLDER = r"[^\x00-\x1f\x7f\\?#]+"
_HOSTED = r"(?P<host>github\.com|gitlab\.com|bitbucket\.org)/(?P<rest>[\w./?=-]+)"
_LONGEST = 1_000
"""Characters of a source."""
Folders = Callable[[str], Mapping[str, bytes]]
"""Reads the files of a folder: path seen from the root folder (`modules/team`), or name of a folder
of a Git repository -> files by name. Raises an OSError that says why the folder cannot be read."""


class SourceFault(Exception):
    """The source of a module cannot be used."""

    def __init__(
        self, summary: str, detail: str = "", advice: str = "", hide: bool = False
    ) -> None:
        super().__init__(summary)
        self.summary, self.detail, self.advice = summary, detail, advice
        self.hide = hide
        """Whether the source line is left out of the message, because it may contain a password."""


class UnreadableModule(PermissionError):
    """A module's folder cannot be read. The text is a sentence that says why."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.advice = advice
        """What to do next."""


class Package(Struct, frozen=True, order=True):
    """A repository at a ref: what Terraform calls a module package."""

    source: str
    """Such as `git::https://git.example/modules.git`."""
    ref: str
    """A tag, a branch, or a whole commit."""

    @property
    def url(self) -> str:
        """The address that git gets."""
        return self.source.removeprefix(GIT)

    def __str__(self) -> str:
        return f"{self.source}{_REF}{self.ref}"


def is_git(folder: str) -> bool:
    """Whether a folder or a path belongs to a Git repository."""
    return folder.startswith(GIT)


def split_git_folder(folder: str) -> tuple[Package, str]:
    """The repository of a folder or a path, and the part inside of it; "" is its top folder."""
    source, _, suffix = folder.partition(_REF)
    ref, _, inside = suffix.partition("//")  # a ref has no two slashes in a row
    return Package(source, ref.removesuffix("/")), inside


def _join_git_folder(package: Package, inside: str) -> str:
    return f"{package}//{inside}" if inside else f"{package}/"


def resolve_source(source: str, caller: str) -> str:
    """The folder that a source names in a module in the folder `caller`; "" is the root folder.

    Raises SourceFault.
    """
    # Terraform has the same rule: `modules/a` without ./ would be the name of a registry.
    if source.startswith(("./", "../")):
        if not is_git(caller):
            path = posixpath.normpath(posixpath.join(caller, source))
            return "" if path == "." else path
        package, inside = split_git_folder(caller)
        path = posixpath.normpath(posixpath.join(inside, source))
        if path.split("/")[0] == "..":
            raise SourceFault(
                f"The module {source} leads out of its repository",
                f"The module that calls it comes from {package}.",
                "The author of that module has to keep both in one repository.",
            )
        return _join_git_folder(package, "" if path == "." else path)
    if not is_git(source):
        raise _make_foreign_fault(source)
    package, inside = parse_git_source(source)
    # Such a module works on one computer only, and it reads repositories that its author named.
    if package.url.startswith("file:") and is_git(caller) and not caller.startswith(f"{GIT}file:"):
        raise SourceFault(
            "A module from another computer cannot name a repository of this one",
            advice="Its author has to name a repository with https:// or ssh://.",
        )
    return _join_git_folder(package, inside)


def parse_git_source(source: str) -> tuple[Package, str]:
    """The repository that a source names, and the folder inside of it. Raises SourceFault."""
    address, _, query = source.removeprefix(GIT).partition("?")
    start = address.find("://") + 3
    url, _, inside = address[start:].partition("//")
    url = address[:start] + url
    match = re.fullmatch(_URL, url, re.ASCII)
    if len(source) > _LONGEST or match is None:
        raise _explain_url(address)
    if match["user"] and match["scheme"] != "ssh":
        raise _make_password_fault()
    # Servers take such a path for another one, which --untrusted may not allow.
    if re.search(r"/\.{1,2}(?:/|$)|%2e|%2f|%5c", match["path"], re.IGNORECASE):
        raise _explain_url(address)
    if (match["host"] is None) != (match["scheme"] == "file"):
        raise _explain_url(address)
    folders = inside.removesuffix("/").split("/") if inside else []
    if any(segment in ("", ".", "..") or not re.fullmatch(_FOLDER, segment) for segment in folders):
        raise SourceFault(
            "The folder in the source of the module is not a path",
            "It follows // and must not contain '..'.",
            f"Write {FORM}.",
        )
    return Package(GIT + url, _parse_reference(query)), "/".join(folders)


def _parse_reference(query: str) -> str:
    names = [parameter.partition("=")[0] for parameter in query.split("&")]
    if names != ["ref"]:
        # A value can be a secret, such as Terraform's `sshkey=`, and so can a text without a name.
        unknown_names = [name for name in names if name != "ref" and re.fullmatch(r"[a-z_]+", name)]
        raise SourceFault(
            f'A Git source has no "{unknown_names[0]}"'
            if unknown_names
            else "The source of the module does not say which version it means",
            "It needs a ref, which is a tag, a branch or a whole commit, and nothing else.",
            f"Write {FORM}.",
            hide=bool(query),
        )
    ref = query.removeprefix("ref=")
    if not re.fullmatch(_REFERENCE, ref, re.ASCII) or re.search(_REFERENCE_FAULT, ref):
        raise SourceFault(
            "The ref of the module is not the name of a tag, a branch or a commit",
            advice=f"Write it without escapes, as in {FORM}.",
        )
    return ref


def _explain_url(address: str) -> SourceFault:
    """Why an address cannot be used. It is never repeated: it can contain a password."""
    scheme = re.match(_SCHEME, address)
    host = address.partition("://")[2].partition("/")[0]
    if ":" in host.partition("@")[0] and "@" in host:
        return _make_password_fault()
    if scheme is None and "@" in address:
        return SourceFault(
            "The source of the module is not an address of a Git repository",
            "git@HOST:PATH is a short form of ssh, which has no place for a port.",
            "Write git::ssh://git@HOST/PATH//FOLDER?ref=TAG.",
            hide=True,
        )
    if scheme is not None and scheme["scheme"].lower() not in ("https", "ssh", "file"):
        return SourceFault(
            f"Modules cannot come over {scheme['scheme']}",
            "Git repositories are read over https, ssh, and file on this computer.",
            f"Write {FORM}.",
            hide=True,
        )
    return SourceFault(
        "The source of the module is not an address of a Git repository",
        "It has a host (none for file) and a path, without .., spaces, quotes and #.",
        f"Write {FORM}.",
        hide=True,
    )


def _make_password_fault() -> SourceFault:
    return SourceFault(
        "The source of a module cannot contain a user or a password",
        "It would be visible in logs, comments and the lock file.",
        "Remove it: git asks the credential helpers of this computer, and ssh its agent.",
        hide=True,
    )


def _make_foreign_fault(source: str) -> SourceFault:
    detail = (
        f"The source of a module is a path that begins with ./ or ../, or a Git repository: {FORM}."
    )
    hosted = re.fullmatch(_HOSTED, source, re.ASCII)
    if hosted is not None:
        path, _, query = hosted["rest"].partition("?")
        owner, _, tail = path.partition("/")
        repository, _, inside = tail.partition("//")
        address = f"{hosted['host']}/{owner}/{repository.removesuffix('.git')}.git"
        folder = f"//{inside}" if inside else ""
        advice = f"Write git::https://{address}{folder}?{query or 'ref=TAG'}."
    else:
        advice = "Copy the module into the repository, and write the path of its folder."
    if "@" in source or "://" in source:
        return SourceFault(
            "The source of the module is neither a local folder nor a Git repository",
            detail,
            "Write git:: in front of the address of a Git repository."
            if "://" in source
            else "Write git::ssh://git@HOST/PATH//FOLDER?ref=TAG.",
            hide=True,
        )
    return SourceFault(f'The module "{source}" is not a local folder', detail, advice)


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
                faults.append(
                    make_error(
                        Header(block),
                        "The modules of the configuration are too large",
                        f"All files together can have {ALL_FILES_BYTES:,} bytes, in "
                        f"{LIMITS.calls:,} folders.",
                    )
                )
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
