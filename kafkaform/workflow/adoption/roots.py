"""Find the folders below a place that are configurations of their own, and read how each of them
connects and where its state is. Modules, links and what cannot be read are told apart.

A folder is read alone, without its modules, and without the environment: what is found has to be
true for everybody who checks the repository out. How its provider blocks connect is read as values
that a `cluster` block can say. Such a block sees no variables, so what a folder takes from them is
replaced by its value. Secrets stay references, and what has no value in the files, or is sensitive,
is left out with the reason.

What many folders have in common becomes few patterns, so that each folder is matched by what it is
meant for, and nothing else is, and one place of their states: `s3://acme-kafka/${folder.path}`. A
pattern can be a little too wide: the folders that it does not mean get patterns of their own, and
the most specific one counts.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import product
from os.path import normpath
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import urlencode

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Severity, has_errors
from ...core.errors import UsageError
from ...core.schema import ObjectSchema
from ...core.value import EMPTY, FrozenMap, SecretRef, Value
from ...language.declare.blocks import Declarations
from ...language.declare.folder import FAMILIES, Tree, load_folder
from ...language.declare.modules import SourceFault, is_git, resolve_source
from ...language.declare.settings import (
    Settings,
    list_used_names,
    read_settings,
    read_terraform_settings,
)
from ...language.declare.top_level import declare_blocks
from ...language.desired import VariableInputs, evaluate_tree
from ...language.expressions.code import Env, get_literal
from ...language.functions.files import make_confined_reader
from ...language.values.conversion import lower_value
from ...language.values.faults import Budget, Deferred, EvalError, Poisoned
from ...language.values.value import SENSITIVE, Val, find_sealed, marks_of
from ...provider.registry import Registry
from ...syntax.nodes import Block, Body, Expression
from ..configuration.evaluation import collect_schemas
from ..configuration.files import find_root, read_folder
from ..configuration.places import LOCAL, find_backend_faults, read_place
from ..configuration.repository import FILES, find_name_fault
from ..stores import STATE_FILE

_READ = ("variable", "locals", "provider", "terraform")
"""The blocks that the values of provider blocks come from, as far as nobody is asked."""
_REFERENCE = re.compile(r"(?:var|local|data|module)(?:\.[\w-]+)+")

Evaluate: TypeAlias = Callable[[Expression], Val]
"""The value of an expression of the folder. Raises EvalError, Deferred, Poisoned."""


class BlockLogin(Struct, frozen=True):
    """A provider block, as a `cluster` block can say it."""

    provider: str
    """The name of the provider."""
    arguments: FrozenMap
    """Those that differ from the defaults, by the provider's own names; those of a nested block
    under the name of the block."""
    missing: FrozenMap
    """Secret argument -> why no other file can have it, as a predicate: `is var.password, …`."""
    obstacle: str
    """Why no cluster can stand for the block, as the end of a sentence; empty if one can."""
    location: str
    """File and line, seen from the top."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for blocks that say the same."""
        return self.provider, self.arguments, self.missing


def read_logins(
    folder: Path, path: str, tree: Tree, registry: Registry
) -> Mapping[str, BlockLogin]:
    """Provider instance -> how its block connects. Blocks of providers that are not installed are
    left out.

    path: of the folder, seen from the top; tree: its own files.
    """
    files = []
    for file in tree.configuration:
        read_blocks = tuple(block for block in file.body.blocks if block.type in _READ)
        files.append(replace(file, body=replace(file.body, blocks=read_blocks)))
    tree = replace(tree, configuration=tuple(files))
    blocks = [*declare_blocks(tree, ("provider",))[0].providers.values()]
    if not blocks:
        return {}
    settings = read_terraform_settings(tree)
    providers = {name: registry.load(name) for name in registry.names}
    read = make_confined_reader(find_root(folder), folder)
    # No value of the environment, which could be that of one person or one job.
    values = VariableInputs({}, (), True)
    run = evaluate_tree(tree, values, collect_schemas(providers), read).run

    def evaluate(node: Expression) -> Val:
        return run.context.compile_node(node)(Env(run.root.env.roots, {}, Budget()))

    logins: dict[str, BlockLogin] = {}
    for block in blocks:
        name = settings.resolve_provider(block.name) if tree.terraform else block.name
        if name in providers:
            instance = block.instance.replace(block.name, name, 1)
            body = _BodyReader(evaluate)
            pairs = dict(body.read(block.block.body, providers[name].config))
            obstacle = "it has for_each" if block.several else next(iter(body.obstacles), "")
            location = f"{path}/{block.block.header_range}"
            missing = FrozenMap(body.missing)
            logins[instance] = BlockLogin(name, FrozenMap(pairs), missing, obstacle, location)
    return logins


class _BodyReader(Struct, frozen=True):
    """Reads the body of a provider block."""

    evaluate: Evaluate
    missing: dict[str, str] = field(default_factory=dict)
    obstacles: list[str] = field(default_factory=list)

    def read(
        self, body: Body, schema: ObjectSchema, outer: str = ""
    ) -> Iterator[tuple[str, Value]]:
        """The arguments that can be written. outer: the nested block that the body belongs to."""
        for spelling, item in body.attributes.items():
            attribute, name = schema.find(spelling), outer + spelling
            if attribute is None:
                if name != "alias":
                    self.obstacles.append(f"there is no argument {name}")
                continue
            value = _read_value(item.value, self.evaluate)
            hidden = attribute.secret or attribute.sensitive
            if hidden and isinstance(value, _Missing):
                self.missing[name] = value.reason
            elif hidden and not isinstance(value, SecretRef | None):
                self.missing[name] = "is a secret in plain text"
            elif isinstance(value, _Missing):
                self.obstacles.append(f"its {name} {value.reason}")
            elif value is not None and value != attribute.default:
                yield attribute.name, value
        for inner in body.blocks:
            if inner.type in schema.blocks:
                pairs = self.read(inner.body, schema.blocks[inner.type], f"{outer}{inner.type}.")
                yield inner.type, FrozenMap(dict(pairs))
            else:
                self.obstacles.append(f"there is no block {outer}{inner.type} in a cluster block")


class _Missing(Struct, frozen=True):
    """A value that no other file can say."""

    reason: str
    """A predicate."""


def _read_value(node: Expression, evaluate: Evaluate) -> Value | _Missing:
    text = node.source.text[node.start : node.end]
    # Anything but a plain reference could contain a password.
    name = text if _REFERENCE.fullmatch(text) else "an expression"
    try:
        value = evaluate(node)
        sealed = find_sealed(value)
        if isinstance(sealed, SecretRef) and sealed.source != "variable":
            return lower_value(value)
        if sealed is not None or SENSITIVE in marks_of(value):
            return _Missing(f"is {name}, which is sensitive")
        return lower_value(value)
    except (Deferred, Poisoned):
        return _Missing(f"is {name}, which has no value in the files of the folder")
    except EvalError:
        return _Missing("cannot be evaluated with the files of the folder alone")


MOST_FOLDERS = 100_000
"""More are no repository; somebody has typed the command at the wrong place."""
_MODULES = ("module", "modules")
"""The usual names of the folder that contains modules."""
_PASSED_OVER = frozenset({"node_modules", "__pycache__"})
_STORES = ("backend", "cloud")


class ForeignState(Struct, frozen=True):
    """The backend block of Terraform's files. kafkaform never reads the state there."""

    kind: str
    options: FrozenMap
    """The arguments that are plain texts."""


class FolderRoot(Struct, frozen=True):
    """A folder with a configuration and a state of its own."""

    path: str
    """Seen from the top, with slashes."""
    logins: Mapping[str, BlockLogin] = EMPTY
    """Provider instance -> how its block connects."""
    settings: Settings = Settings()
    """With its backend block, if it has one."""
    foreign_state: ForeignState | None = None
    terraform: bool = False
    fault: str = ""
    """Why nothing was read from its files."""


class Roots(Struct, frozen=True):
    """What was found below a place."""

    roots: tuple[FolderRoot, ...]
    """Sorted by their paths."""
    excluded: Mapping[str, str]
    """Path of a folder that no pattern may match -> what it is, as the end of a sentence."""
    at_top: bool = False
    """The place itself has a configuration."""


class _Folder(Struct, frozen=True):
    """A folder with configuration files."""

    path: str
    tree: Tree
    declarations: Declarations
    has_state: bool
    """There is a state beside the files."""


def find_roots(top: Path, registry: Registry) -> Roots:
    """The configurations below a folder, itself left out. Folders whose names begin with a dot
    belong to tools.

    Raises UsageError for another kafkaform.hcl below, and for more folders than a repository has.
    """
    excluded: dict[str, str] = {}
    folders: dict[str, _Folder | FolderRoot] = {}
    for path in _list_folders(top, excluded):
        folder = _read_folder(top, path)
        if folder is None:
            continue
        if path and (reason := _find_path_fault(path)):
            excluded[path] = reason
        else:
            folders[path] = folder
    callers = _find_callers(folders)
    at_top = folders.pop("", None) is not None
    words = _list_words(registry)
    roots = []
    for path, folder in sorted(folders.items()):
        reason = "" if isinstance(folder, FolderRoot) else _find_reason(folder, callers, words)
        if reason:
            excluded[path] = reason
        else:
            roots.append(
                folder if isinstance(folder, FolderRoot) else _make_root(top, folder, registry)
            )
    return Roots(tuple(roots), excluded, at_top)


def _list_folders(top: Path, excluded: dict[str, str]) -> Iterator[str]:
    """The paths of the place and of all folders below, seen from it. Adds what cannot be entered to
    `excluded`."""
    pending, count = [""], 0
    while pending:
        path = pending.pop()
        count += 1
        if count > MOST_FOLDERS:
            raise UsageError(
                f"there are more than {MOST_FOLDERS:,} folders here",
                "Change to the top of the repository, and run the command there.",
            )
        try:
            with os.scandir(top / path) as entries:
                children = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            excluded[path] = f"cannot be read: {(error.strerror or 'it failed').lower()}"
            continue
        names = [entry.name for entry in children]
        nested = next((name for name in FILES if name in names), None)
        if nested is not None:
            file = f"{path}/{nested}" if path else nested
            raise UsageError(
                f"{file} exists, and is not overwritten",
                "A repository has one such file, at its top. Remove it, or edit it by hand: "
                "docs/repository.md explains it.",
            )
        yield path
        prefix = f"{path}/" if path else ""
        for entry in children:
            if entry.name.startswith(".") or entry.name in _PASSED_OVER:
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{prefix}{entry.name}")
            elif entry.is_symlink() and _has_configuration(Path(entry.path)):
                excluded[f"{prefix}{entry.name}"] = "is a link, and boundaries follow none"


def _has_configuration(folder: Path) -> bool:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return False
    return any(family.select_configuration(names) for family in FAMILIES)


def _read_folder(top: Path, path: str) -> _Folder | FolderRoot | None:
    """The files of a folder; None if it has no configuration, a root with a fault if they cannot be
    read or parsed."""
    folder = top / path
    if not _has_configuration(folder):
        return None
    try:
        files = read_folder(find_root(folder), folder)
    except OSError as error:
        return FolderRoot(path, fault=f"{error.strerror or error}")
    tree = load_folder(files)
    broken = next((d for d in tree.diagnostics if d.severity is Severity.ERROR), None)
    if broken is not None:
        location = f"{path}/{broken.range}: " if broken.range else ""
        return FolderRoot(path, fault=f"{location}{broken.summary}", terraform=tree.terraform)
    return _Folder(path, tree, declare_blocks(tree)[0], (folder / STATE_FILE).exists())


def _find_path_fault(path: str) -> str:
    for name in path.split("/"):
        if reason := find_name_fault(name):
            return f"has a name that is refused: {reason}"
    return ""


# ── which folders are roots ─────────────────────────────────────────────────────────────


def _find_callers(folders: Mapping[str, _Folder | FolderRoot]) -> Mapping[str, str]:
    """Path of a folder that another one calls as a module -> the first folder that does."""
    callers: dict[str, str] = {}
    for path, folder in sorted(folders.items()):
        calls = () if isinstance(folder, FolderRoot) else folder.declarations.modules.values()
        for call in calls:
            try:
                source = resolve_source(call.source or "", path)
            except SourceFault:  # whoever plans the folder says what is wrong with it
                continue
            if not is_git(source):
                callers.setdefault(source, path)
    return callers


def _list_words(registry: Registry) -> frozenset[str]:
    """What files name that have something for kafkaform: providers, types and data sources."""
    providers = {name: registry.load(name) for name in registry.names}
    words = {word for p in providers.values() for word in (*p.types, *p.data)}
    return frozenset({*providers, *words})


def _find_reason(folder: _Folder, callers: Mapping[str, str], words: frozenset[str]) -> str:
    """Why a folder is no root, as the end of a sentence; empty if it is one."""
    has_own_state = folder.has_state or _find_backend(folder) is not None
    if folder.path in callers and not has_own_state:
        return f"is a module, which {callers[folder.path] or 'this folder'} calls"
    in_modules = any(segment in _MODULES for segment in folder.path.split("/"))
    if in_modules and not has_own_state and not folder.declarations.providers:
        return "is a module that no folder calls"
    if folder.tree.terraform and not folder.declarations.modules:
        settings = read_terraform_settings(folder.tree)
        names = map(settings.resolve_provider, list_used_names(folder.tree))
        if words.isdisjoint(names):
            return "declares nothing for kafkaform"
    return ""


def _find_backend(folder: _Folder) -> Block | None:
    """The block that says where the state is, also that of Terraform's files."""
    blocks = (block for file in folder.tree.configuration for block in file.body.blocks)
    inside = (i for b in blocks if b.type in ("kafkaform", "terraform") for i in b.body.blocks)
    return next((inner for inner in inside if inner.type in _STORES), None)


def _make_root(top: Path, folder: _Folder, registry: Registry) -> FolderRoot:
    settings, _ = read_settings(folder.tree)
    logins = read_logins(top / folder.path, folder.path, folder.tree, registry)
    backend = _find_backend(folder)
    foreign = None
    if backend is not None and settings.backend is None:
        kind = backend.labels[0].text if backend.labels else backend.type
        texts = {n: get_literal(item.value) for n, item in backend.body.attributes.items()}
        foreign = ForeignState(kind, FrozenMap({n: t for n, t in texts.items() if t is not None}))
    return FolderRoot(folder.path, logins, settings, foreign, folder.tree.terraform)


_MOST_PARTS = 6
"""Only the last so many parts of a path become wildcards: each doubles the patterns to look at."""
_FIRST_WORD, _LAST_WORD = re.compile(r"[^-_.]+[-_.]"), re.compile(r"[-_.][^-_.]+$")
"""What folders in one place can have in common: `prod-` of prod-shop, `-prod` of shop-prod."""

Meaning = TypeVar("Meaning", bound=Hashable)


def choose_patterns(folders: Mapping[str, Meaning], avoided: Collection[str]) -> dict[str, Meaning]:
    """Pattern -> what its folders are meant for.

    folders: by path; avoided: paths of folders that no pattern may match. A pattern with wildcards
    means more of its folders than it does not mean, or at least as many as of any other kind; and
    the more wildcards it has, the more folders it means.
    """
    matches: dict[str, set[str]] = defaultdict(set)
    for path in folders:
        for pattern in _generalise(path):
            matches[pattern].add(path)
    for path in avoided:
        for pattern in _generalise(path):
            matches.pop(pattern, None)
    chosen: dict[str, Meaning] = {}
    for meaning in dict.fromkeys(folders.values()):
        meant = {path for path in folders if folders[path] == meaning}
        chosen |= dict.fromkeys(_cover(meant, matches), meaning)
    alone = {path for path in chosen if path in folders}
    for pattern in sorted(matches, key=lambda p: (-len(matches[p]), p.count("*"), p)):
        # Folders that stand alone, of several kinds: the pattern is for the most frequent kind.
        if matches[pattern] <= alone:
            kinds = Counter(folders[path] for path in sorted(matches[pattern]))
            meaning, count = kinds.most_common(1)[0]
            if _is_frequent(pattern, count):
                meant = {path for path in matches[pattern] if folders[path] == meaning}
                alone -= meant
                chosen = {p: m for p, m in chosen.items() if p not in meant} | {pattern: meaning}
    return dict(sorted(chosen.items()))


def _cover(meant: Collection[str], matches: Mapping[str, set[str]]) -> Iterator[str]:
    """Patterns that match these folders together, the widest first."""
    remaining = set(meant)
    counts = Counter(pattern for path in meant for pattern in set(_generalise(path)))
    candidates = {
        pattern
        for pattern, count in counts.items()
        if _is_frequent(pattern, count) and pattern in matches and 2 * count > len(matches[pattern])
    }
    while remaining and candidates:
        gains = {p: 2 * len(matches[p] & remaining) - len(matches[p]) for p in candidates}
        best = max(candidates, key=lambda p: (gains[p], -p.count("*"), len(p), p))
        if gains[best] <= 0:
            break
        yield best
        remaining -= matches[best]
        candidates.remove(best)
    yield from remaining


def _is_frequent(pattern: str, count: int) -> bool:
    """Whether so many folders are no coincidence: two for each wildcard, and a grid for several."""
    return bool(count >= 2 ** pattern.count("*"))


def _generalise(path: str) -> Iterator[str]:
    """The patterns with wildcards that match a path."""
    *above, name = path.split("/")
    loose = above[-_MOST_PARTS:]
    fixed = above[: len(above) - len(loose)]
    first, last = _FIRST_WORD.match(name), _LAST_WORD.search(name)
    names = {name, "*", f"{first[0]}*" if first else "*", f"*{last[0]}" if last else "*"}
    for segments in product(*((segment, "*") for segment in loose), sorted(names)):
        pattern = "/".join((*fixed, *segments))
        if "*" in pattern:
            yield pattern


PATH, NAME = "${folder.path}", "${folder.name}"
_MARK = {"s3": "s3://{bucket}", "gcs": "gs://{bucket}", "azurerm": "az://{container_name}"}
"""Terraform's backend -> the address of its bucket."""


def choose_states(roots: Sequence[FolderRoot]) -> Mapping[str, str]:
    """Path of a folder -> the place of its state, in the words that other folders share. Folders
    whose place follows no pattern or is that of another one, or without a backend block, are left
    out."""
    shared = {path for paths in list_shared_states(roots).values() for path in paths}
    locations = {
        root.path: location
        for root in roots
        if root.path not in shared and (location := find_state(root)) is not None
    }
    templates = {path: [*_list_templates(path, location)] for path, location in locations.items()}
    counts = Counter(template for listed in templates.values() for template in set(listed))
    chosen = {
        path: max(listed, key=lambda template: counts[template], default="")
        for path, listed in templates.items()
    }
    return {path: template for path, template in chosen.items() if counts[template] > 1}


def list_shared_states(roots: Sequence[FolderRoot]) -> Mapping[str, Sequence[str]]:
    """Place of a state -> the folders that have it, if these are several."""
    users: dict[str, list[str]] = defaultdict(list)
    for root in roots:
        location = find_state(root)
        if location is not None:
            users[location].append(root.path)
    return {location: paths for location, paths in users.items() if len(paths) > 1}


def find_state(root: FolderRoot) -> str | None:
    """The place that the backend block names, as `state` of a `folders` block says it; None if
    there is no such block, or nothing else can say the same."""
    settings = root.settings
    if settings.backend is None or has_errors(tuple(find_backend_faults(settings))):
        return None
    start, options = read_place(settings)
    if settings.backend == LOCAL:
        path = normpath(f"{root.path}/{start}")
        outside = Path(start).is_absolute() or path.startswith("..")
        return None if outside or options else path
    from ...state.backends.obstores import KINDS  # noqa: PLC0415  # most folders have no store

    kind, remaining = KINDS[settings.backend], dict(options)
    bucket, folder = remaining.pop(kind.bucket), remaining.pop(kind.folder).strip("/")
    query = f"?{urlencode(sorted(remaining.items()))}" if remaining else ""
    return f"{start}{bucket}/{folder}{query}"


def _list_templates(path: str, location: str) -> Iterator[str]:
    """The place with the path or the name of the folder as what differs, the best first."""
    for text, stand_in in ((path, PATH), (path.rpartition("/")[2], NAME)):
        matches = [*re.finditer(rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])", location)]
        starts = [0, *(match.end() for match in matches)]
        ends = [*(match.start() for match in matches), len(location)]
        if matches:
            pieces = [location[start:end] for start, end in zip(starts, ends, strict=True)]
            yield stand_in.join(pieces)
            yield f"{location[: ends[-2]]}{stand_in}{pieces[-1]}"


def suggest_state(state: ForeignState | None) -> str | None:
    """A place beside the state of Terraform, in the same bucket; None if it is in no bucket."""
    if state is None or state.kind not in _MARK:
        return None
    try:
        bucket = _MARK[state.kind].format_map(state.options)
    except KeyError:  # the bucket comes from a file of `terraform init -backend-config`
        return None
    return f"{bucket}/kafkaform/{PATH}"
