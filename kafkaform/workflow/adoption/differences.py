"""Say what of the folders is not in the file that was written for them, and why: what differs from
folder to folder, what no other file can say, and which folders are left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...core.value import FrozenMap, Value
from ...render.text import inline, render_count
from ..configuration.repository_folders import compile_pattern
from .patterns import choose_patterns
from .places import list_shared_states
from .repository_draft import RepositoryDraft
from .roots import FolderRoot, ForeignState

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
            f"Terraform's state of {_count_folders(paths)} is in {state.kind}"
            f"{f' ({named})' if named else ''}. kafkaform never reads it, and keeps its own state "
            "beside the files until `state` of a folders block says another place"
        )


_BUCKETS = ("bucket", "container_name", "storage_account_name", "organization", "hostname", "path")
"""What a backend of Terraform has that does not differ from folder to folder."""


def _count_folders(paths: Sequence[str]) -> str:
    return render_count(len(paths), "folder")


def _name_few(names: Sequence[str]) -> str:
    shown = ", ".join(map(inline, names[:_SHOWN]))
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
