"""Makes the steps of this provider: what all of them have in common."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.value import FrozenMap, Value

SILENT = frozenset({Action.ADOPT, Action.IMPORT, Action.FORGET, Action.NOOP})
"""Actions that only change the state: nothing is sent."""


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
    """One request's share of a change.

    number: position among the steps of the change, from 1; weight: metadata records, or the unit of
    the request's `RequestLimits`; repeat: what to do if the answer is lost; evidence: what a dry
    run can prove.
    """
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
    """All paths of the change: what the step of a create or a delete makes true."""
    return tuple(item.path for item in change.paths)


def paths_below(change: Change, *heads: str) -> tuple[Path, ...]:
    """The paths of the change below these attributes. No request concerns `owner` and `labels`."""
    return tuple(item.path for item in change.paths if item.path[0] in heads)
