"""Write kafkaform.hcl for folders that exist already, and prove that it changes none of their
plans: blocks of a folder win over the file, which says nothing else about it than they do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import ConfigurationError, UsageError
from ...core.value import EMPTY, FrozenMap
from ...provider.registry import Registry
from ...render.text import inline
from ...syntax.write import Code, NewBlock, Writable, is_identifier, quote_string, write_blocks
from ..configuration.repository import FILES, RepositoryFolder
from ..configuration.repository_file import find_repository, read_repository
from ..configuration.repository_folders import compile_pattern, list_folders
from .clusters import ClusterDraft, draft_clusters
from .patterns import choose_patterns
from .places import NAME, PATH, choose_states, find_state, suggest_state
from .roots import FolderRoot, Roots, find_roots

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
