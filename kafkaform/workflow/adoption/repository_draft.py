"""Write kafkaform.hcl for folders that exist already, and prove that it changes none of their
plans: blocks of a folder win over the file, which says nothing else about it than they do.

Equal provider blocks become one `cluster` block, with a name that folders or addresses suggest.
What the file does not say of the folders is listed with the reason: what differs from folder to
folder, what no other file can say, and which folders are left out.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import ConfigurationError, UsageError
from ...core.value import EMPTY, FrozenMap, Value
from ...language.declare.blocks import NAME as BLOCK_NAME
from ...provider.registry import Registry
from ...render.text import inline, render_count
from ...syntax.write import Code, NewBlock, Writable, is_identifier, quote_string, write_blocks
from ..configuration.repository import FILES, RepositoryFolder
from ..configuration.repository_file import read_repository
from ..configuration.repository_folders import compile_pattern, list_folders
from ..configuration.repository_place import find_repository
from ..generate.blocks import make_unique
from .roots import (
    NAME,
    PATH,
    BlockLogin,
    FolderRoot,
    ForeignState,
    Roots,
    choose_patterns,
    choose_states,
    find_roots,
    find_state,
    list_shared_states,
    suggest_state,
)

_HOST = re.compile(r"(?:[a-z][a-z0-9+]*://)?(?P<host>[A-Za-z0-9.-]+)")
_NUMBER = re.compile(r"[-_]?[0-9]+$")


class ClusterDraft(Struct, frozen=True):
    """A `cluster` block to write."""

    name: str
    login: BlockLogin
    """The provider block of the first folder that has it."""
    folders: tuple[str, ...]
    """The paths of the folders with an equal provider block, sorted."""


def draft_clusters(
    roots: Sequence[FolderRoot], addresses: Mapping[str, str]
) -> tuple[ClusterDraft, ...]:
    """One cluster for equal provider blocks, those of most folders first. A block without any
    argument has nothing that folders could share.

    addresses: name of a provider -> its argument that says where it connects.
    """
    groups: dict[tuple[object, ...], list[tuple[str, BlockLogin]]] = defaultdict(list)
    for root in roots:
        for login in root.logins.values():
            if login.arguments and not login.obstacle:
                groups[login.key].append((root.path, login))
    users = {key: sorted({path for path, _ in pairs}) for key, pairs in groups.items()}
    order = sorted(groups, key=lambda key: (-len(users[key]), users[key][0], str(key[0])))
    hosts = {
        key: _list_host_words(pairs[0][1].arguments.get(addresses[pairs[0][1].provider]))
        for key, pairs in groups.items()
    }
    names = set[str]()
    drafts = []
    for key in order:
        login = groups[key][0][1]
        rivals = [rival for rival in order if rival != key and rival[0] == key[0]]
        words = (
            *_list_telling_parts(users[key], [path for k in rivals for path in users[k]]),
            *(w for w in hosts[key] if rivals and not any(w in hosts[k] for k in rivals)),
            *hosts[key][:1],
        )
        noun = login.provider.replace("_", "-")
        suggested = [n for w in words if BLOCK_NAME.fullmatch(w) for n in (w, f"{w}-{noun}")]
        free = next((name for name in (*suggested, noun) if name not in names), noun)
        drafts.append(ClusterDraft(make_unique(free, names), login, tuple(users[key])))
    return tuple(drafts)


def _list_telling_parts(own: Sequence[str], rivals: Sequence[str]) -> list[str]:
    """The parts of paths that most of a cluster's folders have, and few others: such as `prod`."""
    counts = Counter(segment for path in own for segment in dict.fromkeys(path.split("/")))
    rival_counts = Counter(segment for path in rivals for segment in set(path.split("/")))
    telling = [
        segment
        for segment, count in counts.items()
        if 4 * count >= 3 * len(own)
        # What all folders have says nothing, and what most of the others have even less.
        and rival_counts[segment] < min(count, len(rivals))
    ]
    return sorted(telling, key=lambda segment: (rival_counts[segment], -counts[segment]))


def _list_host_words(address: Value) -> list[str]:
    """The words of the first address that can name a cluster: of `kafka-1.prod.example:9092`, these
    are `kafka`, `prod` and `example`."""
    first = address[0] if isinstance(address, tuple) and address else address
    match = _HOST.match(first) if isinstance(first, str) else None
    host = match["host"] if match is not None else ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        words = [_NUMBER.sub("", word) for word in host.split(".")]
        return [] if words == ["localhost"] else [word for word in words if word]
    return []


_HEAD = """\
# Written by `kafkaform init --repository` from what was here. The provider and backend blocks of
# the folders win over this file, so it changes no plan.
"""
_STAND_INS = re.compile(f"({re.escape(PATH)}|{re.escape(NAME)})")


class FolderMeaning(Struct, frozen=True):
    """What a `folders` block says."""

    uses: tuple[tuple[str, str], ...] = ()
    """Provider instance -> the name of its cluster."""
    state: str | None = None
    """The place of the states, with `${folder.path}` or `${folder.name}`."""


class RepositoryDraft(Struct, frozen=True):
    """The text of a repository file, and what it was made of."""

    text: str
    roots: Roots
    clusters: tuple[ClusterDraft, ...]
    groups: Mapping[str, FolderMeaning]
    """Pattern -> what its block says."""
    meanings: Mapping[str, FolderMeaning]
    """Path of a folder -> what its block says."""
    patterns: Mapping[str, str]
    """Path of a folder -> the pattern that counts for it."""
    unused: FrozenMap
    """The file and line of a provider block that no cluster stands for -> why, as a sentence."""


def draft_repository(top: Path) -> RepositoryDraft:
    """Write the file for the folders below. Nothing is evaluated but provider blocks, and no system
    is asked.

    Raises UsageError if there is such a file already, or no folder with a configuration, and
    ConfigurationError if the text would not say what is meant.
    """
    existing = find_repository(top)
    if existing is not None:
        raise UsageError(
            f"{existing} exists, and is not overwritten",
            "A repository has one such file, at its top. Edit it by hand, or move it away first.",
        )
    registry = Registry()
    roots = find_roots(top, registry)
    if not roots.roots:
        raise UsageError(*_explain_nothing(roots))
    addresses = {name: registry.load(name).words.address for name in registry.names}
    clusters: list[ClusterDraft] = []
    unused: dict[str, str] = {}
    for cluster in draft_clusters(roots.roots, addresses):
        reason = _find_cluster_fault(top, cluster)
        if reason:
            unused[cluster.login.location] = reason
        else:
            clusters.append(cluster)
    meanings = _find_meanings(roots.roots, clusters)
    # Where few states follow a pattern, their folders keep their backend blocks, and need no block
    # of their own for it.
    alone = choose_patterns(meanings, roots.excluded).keys() & meanings.keys()
    meanings |= {path: replace(meanings[path], state=None) for path in alone}
    groups = choose_patterns(meanings, roots.excluded)
    draft = RepositoryDraft("", roots, tuple(clusters), groups, meanings, EMPTY, FrozenMap(unused))
    return _prove(top, _prove(top, draft, repairs=True), repairs=False)


def _explain_nothing(roots: Roots) -> tuple[str, str]:
    """What happened, and what to do."""
    if roots.at_top:
        return (
            "no folder below this one has a configuration, only this one has",
            "A repository file says what several folders have in common. Change to the folder "
            "above them, or put each team's files into a folder of its own.",
        )
    reasons = [f"{inline(path)} {reason}" for path, reason in sorted(roots.excluded.items())]
    return (
        "no folder below this one has a configuration" + "".join(f"\n{text}" for text in reasons),
        "Change to the top of the repository. docs/repository.md shows a file to begin with.",
    )


def _find_meanings(
    roots: Sequence[FolderRoot], clusters: Sequence[ClusterDraft]
) -> dict[str, FolderMeaning]:
    names = {cluster.login.key: cluster.name for cluster in clusters}
    states = choose_states(roots)
    return {
        root.path: FolderMeaning(
            tuple(
                (instance, names[login.key])
                for instance, login in sorted(root.logins.items())
                if login.key in names
            ),
            states.get(root.path),
        )
        for root in roots
    }


def _find_cluster_fault(top: Path, cluster: ClusterDraft) -> str:
    """Why no file can have this cluster, as a sentence; empty if one can."""
    text = _write_head(top) + "\n" + _write_cluster(cluster)
    try:
        read_repository(top / FILES[0], content=text.encode())
    except ConfigurationError as error:
        return f"{error.diagnostics[0].summary}. {error.diagnostics[0].advice}".strip()
    return ""


# ── the proof ───────────────────────────────────────────────────────────────────────────


def _prove(top: Path, draft: RepositoryDraft, *, repairs: bool) -> RepositoryDraft:
    """The draft with its text, as it is read back: each folder gets what its own blocks say.

    repairs: a folder for which another block would count, or none, gets one of its own. Raises
    ConfigurationError.
    """
    text = write_repository(top, draft)
    repository = read_repository(top / FILES[0], content=text.encode())
    folders = {folder.path: folder for folder in list_folders(repository)}
    locations = {root.path: find_state(root) for root in draft.roots.roots}
    wrong = [
        path
        for path, meaning in draft.meanings.items()
        if path not in folders
        or not _has_meaning(repository.path, folders[path], meaning, locations[path])
    ]
    if repairs:
        groups = {**draft.groups, **{path: draft.meanings[path] for path in wrong}}
        return replace(draft, groups=dict(sorted(groups.items())))
    wrong += sorted(folders.keys() - draft.meanings.keys())
    if wrong:
        raise ConfigurationError(
            f"no repository file can be written for {', '.join(wrong)}",
            "Give the folders of each kind a place of their own, such as teams/NAME.",
        )
    patterns = {path: folders[path].group.pattern for path in draft.meanings}
    return replace(draft, text=text, patterns=patterns)


def _has_meaning(
    top: Path, folder: RepositoryFolder, meaning: FolderMeaning, location: str | None
) -> bool:
    """Whether the block that counts says what is meant. location: of the folder's own block."""
    uses = {instance: cluster.name for instance, cluster in folder.uses.items()}
    if folder.faults or uses != dict(meaning.uses):
        return False
    if meaning.state is None or location is None:
        return folder.state is None
    return folder.state == (location if "://" in location else str(top / location))


# ── the text ────────────────────────────────────────────────────────────────────────────


def write_repository(top: Path, draft: RepositoryDraft) -> str:
    """The text of the file."""
    hints = {root.path: suggest_state(root.foreign_state) for root in draft.roots.roots}
    texts = [_HEAD + _write_head(top), *map(_write_cluster, draft.clusters)]
    for pattern, meaning in draft.groups.items():
        matched = [p for p in draft.meanings if compile_pattern(pattern).fullmatch(p)]
        suggested = {hints[path] for path in matched if draft.meanings[path] == meaning}
        hint = suggested.pop() if len(suggested) == 1 else None
        texts.append(_write_folders(pattern, meaning, hint))
    return "\n".join(texts)


def _write_head(top: Path) -> str:
    return write_blocks((NewBlock("repository", (), {"name": top.resolve().name or "kafka"}),))


def _write_cluster(cluster: ClusterDraft) -> str:
    plain = {n: v for n, v in cluster.login.arguments.items() if not isinstance(v, FrozenMap)}
    inner = tuple(
        NewBlock(name, (), dict(value))
        for name, value in cluster.login.arguments.items()
        if isinstance(value, FrozenMap)
    )
    attributes: dict[str, Writable] = {"provider": cluster.login.provider, **plain}
    text = write_blocks((NewBlock("cluster", (cluster.name,), attributes, inner),))
    comments = (
        f"  # {name} is missing: it {inline(reason)}\n"
        for name, reason in cluster.login.missing.items()
    )
    return text.removesuffix("}\n") + "".join(comments) + "}\n"


def _write_folders(pattern: str, meaning: FolderMeaning, hint: str | None) -> str:
    uses = {instance: Code(f"cluster.{name}") for instance, name in meaning.uses}
    attributes: dict[str, Writable] = {}
    if meaning.state is not None:
        attributes["state"] = Code(_quote_template(meaning.state))
    if len(uses) == 1:
        ((instance, name),) = meaning.uses
        key = instance if is_identifier(instance) else quote_string(instance)
        attributes["uses"] = Code(f"{{ {key} = cluster.{name} }}")
    elif uses:
        attributes["uses"] = uses
    text = write_blocks((NewBlock("folders", (pattern,), attributes),))
    if hint is None or meaning.state is not None:
        return text
    comment = f"  # state = {_quote_template(hint)}\n"
    if not attributes:
        return text.replace("{}\n", f"{{\n{comment}}}\n")
    return text.removesuffix("}\n") + comment + "}\n"


def _quote_template(text: str) -> str:
    """A quoted string in which only the stand-ins are evaluated."""
    pieces = (
        piece if _STAND_INS.fullmatch(piece) else quote_string(piece)[1:-1]
        for piece in _STAND_INS.split(text)
    )
    return f'"{"".join(pieces)}"'


_SHOWN = 5


def list_differences(draft: RepositoryDraft) -> Iterator[str]:
    """What differs, as sentences."""
    lacking: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cluster in draft.clusters:
        for name, reason in cluster.login.missing.items():
            lacking[name, reason].append(f"{cluster.name} ({cluster.login.location})")
    for (name, reason), clusters in lacking.items():
        noun = "cluster" if len(clusters) == 1 else "clusters"
        verb = "lacks" if len(clusters) == 1 else "lack"
        yield f"{noun} {_name_few(clusters)} {verb} {name}: it {inline(reason)}"
    obstacles: dict[str, list[str]] = defaultdict(list)
    for root in draft.roots.roots:
        for login in root.logins.values():
            reason = login.obstacle or draft.unused.get(login.location)
            if reason:
                obstacles[reason].append(login.location)
    for reason, locations in obstacles.items():
        noun = "block" if len(locations) == 1 else "blocks"
        yield f"no cluster stands for the provider {noun} {_name_few(locations)}: {inline(reason)}"
    yield from _list_exceptions(draft)
    yield from _list_states(draft.roots.roots, draft)


def list_left_out(draft: RepositoryDraft) -> Iterator[str]:
    """The folders that are not in the file, or were not read, as sentences."""
    if draft.roots.at_top:
        yield "this folder has a configuration itself, which stays as it is: no block matches it"
    for root in draft.roots.roots:
        if root.fault:
            yield f"nothing was read from {inline(root.path)}: {inline(root.fault)}"
    groups: dict[str, list[str]] = defaultdict(list)
    for path, reason in draft.roots.excluded.items():
        groups[reason].append(path)
    for reason, paths in groups.items():
        if len(paths) == 1:
            yield f"{inline(paths[0])} {inline(reason)}"
        else:
            yield f"{_name_few(sorted(paths))}: each {inline(reason)}"


def list_avoidable(draft: RepositoryDraft) -> list[str]:
    """The folders without which fewer patterns would do, because they must match none."""
    excluded = draft.roots.excluded
    fewer = [p for p in choose_patterns(draft.meanings, ()) if p not in draft.groups]
    return [path for path in excluded if any(compile_pattern(p).fullmatch(path) for p in fewer)]


def _list_exceptions(draft: RepositoryDraft) -> Iterator[str]:
    """The folders with a block of their own although a wider pattern matches them, and why."""
    roots = {root.path: root for root in draft.roots.roots}
    groups: dict[str, list[str]] = defaultdict(list)
    for path, pattern in draft.patterns.items():
        wider = next(
            (p for p in draft.groups if p != pattern and compile_pattern(p).fullmatch(path)), None
        )
        if wider is not None and not roots[path].fault:
            for reason in _explain_exception(draft, roots[path], wider):
                groups[reason].append(path)
    for reason, paths in groups.items():
        yield f"{_name_few(paths)}: {reason}"


def _explain_exception(draft: RepositoryDraft, root: FolderRoot, wider: str) -> Iterator[str]:
    """What a folder has that the others of the wider pattern have not, or the reverse."""
    clusters = {cluster.name: cluster.login.arguments for cluster in draft.clusters}
    meaning, common = draft.meanings[root.path], draft.groups[wider]
    own, shared = dict(meaning.uses), dict(common.uses)
    for instance in sorted(own.keys() | shared.keys()):
        first, second = own.get(instance), shared.get(instance)
        if first is None or second is None:
            has = "no" if first is None else "a"
            yield f"{has} provider block {instance} that can be shared, unlike {wider}"
        elif first != second:
            names = ", ".join(_list_different(clusters[first], clusters[second]))
            yield (
                f"{instance} = cluster.{first}, and not cluster.{second} as in {wider}; "
                f"different: {names}"
            )
    if meaning.state != common.state:
        yield f"the state is at another place than those of {wider}"


def _list_different(first: FrozenMap, second: FrozenMap) -> list[str]:
    names: Mapping[str, Value] = {**first, **second}
    return [name for name in names if first.get(name) != second.get(name)]


def _list_states(roots: Sequence[FolderRoot], draft: RepositoryDraft) -> Iterator[str]:
    shared = list_shared_states(roots)
    for location, paths in shared.items():
        yield (
            f"{_name_few(paths)} have the same state, {inline(location)}: for an apply in one of "
            "them, the objects of the others are no longer declared. Give each folder its own place"
        )
    several = {path for paths in shared.values() for path in paths}
    alone = [
        root.path
        for root in roots
        if root.settings.backend is not None
        and draft.meanings[root.path].state is None
        and root.path not in several
    ]
    if alone:
        yield f"the backend blocks of {_name_few(alone)} stay, because no pattern covers them"
    foreign: dict[ForeignState, list[str]] = defaultdict(list)
    for root in roots:
        if root.foreign_state is not None:
            bucket = FrozenMap(
                {n: v for n, v in root.foreign_state.options.items() if n in _BUCKETS}
            )
            foreign[ForeignState(root.foreign_state.kind, bucket)].append(root.path)
    for state, paths in foreign.items():
        named = ", ".join(f"{name} {inline(str(value))}" for name, value in state.options.items())
        yield (
            f"Terraform's state of {render_count(len(paths), 'folder')} is in {state.kind}"
            f"{f' ({named})' if named else ''}. kafkaform never reads it, and keeps its own state "
            "beside the files until `state` of a folders block says another place"
        )


_BUCKETS = ("bucket", "container_name", "storage_account_name", "organization", "hostname", "path")
"""What a backend of Terraform has that does not differ from folder to folder."""


def _name_few(names: Sequence[str]) -> str:
    text = ", ".join(map(inline, names[:_SHOWN]))
    hidden = len(names) - _SHOWN
    return f"{text} and {hidden} more" if hidden > 0 else text
