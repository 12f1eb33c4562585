"""Judge what a folder declares by its boundary: the names that its blocks may have or touch.

Only attributes are needed, so `validate`, the editor and a plan find the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache

from ..core.address import parse_address
from ..core.change import Change, add_findings
from ..core.finding import Block, Finding
from ..core.resource import Declared, Fence
from ..core.value import FrozenMap
from ..provider.contract import Provider
from .block_judge import NO_FACTS
from .model import Plan
from .rules import DENIED, OUTSIDE, UNLIMITED


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def covers(pattern: str, names: str) -> bool:
    """Whether a pattern of a boundary covers all of these names.

    names: a name, or a pattern. Its `*` is matched by a `*` of the boundary only, as any text
    would have to be.
    """
    return _compile(pattern).fullmatch(names) is not None


def find_breaches(
    fence: Fence, provider: Provider | None, kind: str, attributes: FrozenMap, block_type: str = ""
) -> Iterator[Finding]:
    """What of an object is outside of the boundary.

    provider: None if it is not installed; attributes: those of a block, or of a live object;
    block_type: of the block that stands for it, if that is a composite.
    """
    boundary = f"the boundary of {fence.folder} ({fence.place})"
    if denied := fence.denied.intersection((kind, block_type)):
        yield DENIED.find(
            f"{boundary} denies {' and '.join(sorted(denied))}",
            fix=f"Declare it in another folder, or let {fence.owner} change `deny`.",
        )
        return
    reaches = None if provider is None else provider.list_reaches(kind, attributes)
    if reaches is None:
        yield UNLIMITED.find(
            f"{boundary} cannot cover {kind}, because its provider does not say what it names"
        )
    for reach in reaches or ():
        if not reach.noun:
            yield UNLIMITED.find(f"{reach.text}, which {boundary} cannot cover", reach.path)
            continue
        patterns = fence.lists.get(reach.noun, ())
        if not any(covers(pattern, reach.pattern) for pattern in patterns):
            allowed = ", ".join(patterns) or "none"
            yield OUTSIDE.find(
                f"{reach.text} is outside of {boundary}, whose {reach.noun} are: {allowed}",
                reach.path,
                fix=f"Rename it, or let {fence.owner} change `{reach.noun}` of the boundary.",
            )


def judge_declared(
    fence: Fence, declared: Iterable[Declared], providers: Mapping[str, Provider]
) -> Iterator[tuple[Declared, Finding]]:
    """What of declared objects is outside of the boundary. providers: by instance."""
    for item in declared:
        provider, name = providers[item.identity.instance], item.identity.kind
        attributes = provider.types[name].canonical(item.attributes, NO_FACTS)
        for finding in find_breaches(fence, provider, name, attributes, item.address.type):
            yield item, finding


def judge_boundary(
    changes: Sequence[Change], fence: Fence | None, providers: Mapping[str, Provider]
) -> Sequence[Change]:
    """The changes, and the objects that need none, with what is outside of the boundary of each.

    providers: by instance.
    """
    if fence is None:
        return changes
    return [add_findings(change, *_find_in_change(fence, providers, change)) for change in changes]


def list_breaches(
    plan: Plan, fence: Fence | None, providers: Mapping[str, Provider]
) -> list[tuple[Change, Finding]]:
    """What an apply of this plan would change outside of the boundary, which can be younger than
    the plan."""
    if fence is None:
        return []
    return [
        (change, finding)
        for change in plan.effective
        for finding in _find_in_change(fence, providers, change)
    ]


def _find_in_change(
    fence: Fence, providers: Mapping[str, Provider], change: Change
) -> Iterator[Finding]:
    # Nothing happens to an object that stays because it is protected. To forget one is judged, too:
    # the state could be that of another folder, which would lose its objects.
    if change.block is Block.PROTECTED:
        return
    attributes = change.after or change.before
    if not attributes:
        return
    block_type = ""
    with suppress(ValueError):  # an object without a block has no address
        block_type = parse_address(change.address).type
    provider = providers.get(change.identity.instance)
    yield from find_breaches(fence, provider, change.identity.kind, attributes, block_type)
