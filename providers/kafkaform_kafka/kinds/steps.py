"""The frame that every step of this provider shares."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.value import FrozenMap, Value

SILENT = frozenset({Action.ADOPT, Action.IMPORT, Action.FORGET, Action.NOOP})
"""Actions that only change bookkeeping, so that nothing is sent."""


def make_step(
    change: Change,
    number: int,
    request: Request,
    payload: Mapping[str, Value],
    paths: tuple[Path, ...],
    *,
    weight: int,
    repeat: Repeat = Repeat.SAFE,
    evidence: Evidence = Evidence.REMOTE,
) -> Step:
    """One request's share of a change. number: counts the change's steps from 1."""
    return Step(
        id=f"{change.identity.instance}/{change.identity.kind}/{change.identity.key}#{number}",
        identity=change.identity,
        address=change.address,
        request=request,
        payload=FrozenMap(payload),
        weight=weight,
        after=(),
        repeat=repeat,
        evidence=evidence,
        paths=paths,
    )


def all_paths(change: Change) -> tuple[Path, ...]:
    """Every path of the change: what a create or a delete makes true."""
    return tuple(item.path for item in change.paths)


def paths_below(change: Change, *heads: str) -> tuple[Path, ...]:
    """The change's paths below these attributes; bookkeeping (`owner`, `labels`) is never one."""
    return tuple(item.path for item in change.paths if item.path[0] in heads)
