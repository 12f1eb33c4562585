"""Nodes of one system that show different values of one object: wait for them, and name them.

Nodes follow the log of their system one by one, so for a moment some of them lag behind. What still
differs after that does not go away by itself, and which node is asked must not decide what a user
is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..core.change import Change, Path
from ..core.clock import Clock
from ..core.resource import Absent, Facts, Failed, Identity, Observed, Reading, World
from ..core.value import Value
from ..core.words import NEUTRAL
from ..provider.contract import Provider, ResourceType, Session
from .diff import flatten, render_leaf, render_path

POLL_SECONDS = 0.5
SHOWN = 3
"""How many differing values of one object a text names."""

Views = Mapping[str, Reading]
"""Node -> what it shows of one object; nodes that could not be asked are left out."""


def await_agreement(
    session: Session,
    ids: Collection[Identity],
    seconds: float,
    clock: Clock,
    wait: Callable[[float], object],
) -> Mapping[Identity, Views]:
    """Ask all live nodes about these objects until they show the same. The objects on which they
    still differ when `seconds` have passed. wait: waits for seconds. Raises OtherSystem."""
    deadline = clock.monotonic() + seconds
    left: Sequence[Identity] = list(ids) if len(session.live_nodes()) > 1 else ()
    while left:
        answers = {node: session.read(left, at=node) for node in session.live_nodes()}
        views = {i: _select_views(i, answers) for i in left}
        left = [i for i in left if len({_get_view(one) for one in views[i].values()}) > 1]
        if clock.monotonic() >= deadline:
            return {i: views[i] for i in left}
        if left:
            wait(POLL_SECONDS)
    return {}


def _select_views(identity: Identity, answers: Mapping[str, Mapping[Identity, Reading]]) -> Views:
    return {
        node: readings[identity]
        for node, readings in answers.items()
        if not isinstance(readings[identity], Failed)
    }


def _get_view(reading: Reading) -> object:
    """What all nodes have to show of an object."""
    if isinstance(reading, Observed):
        return (reading.attributes, reading.incarnation, reading.moving)
    return type(reading)


def describe_disagreement(views: Views, kind: ResourceType, facts: Facts, noun: str) -> str:
    """What the nodes show where they differ: `config.retention.ms is "60000" on broker 1, 2, and
    not set on broker 3`. noun: what users call a node."""
    sights = {node: _describe_sight(reading) for node, reading in views.items()}
    if len(set(sights.values())) > 1:
        return _join_nodes(sights, noun)
    differing = list(_list_differing(views, kind, facts))
    texts = [
        f"{render_path(path)} is {_join_nodes(_render_leaves(path, leaves, kind), noun)}"
        for path, leaves in differing[:SHOWN]
    ]
    more = len(differing) - SHOWN
    return "; ".join(texts) + (f"; and {more} more" if more > 0 else "")


def _describe_sight(reading: Reading) -> str:
    if isinstance(reading, Absent):
        return "it does not exist"
    if not isinstance(reading, Observed):
        return "it cannot be seen"
    return f"it exists with the id {reading.incarnation}" if reading.incarnation else "it exists"


def _list_differing(
    views: Views, kind: ResourceType, facts: Facts
) -> Iterator[tuple[Path, Mapping[str, Value]]]:
    """Each path on which the nodes differ, and node -> its value there."""
    leaves = {
        node: flatten(kind.canonical(item.attributes.with_items(item.moving or {}), facts))
        for node, item in views.items()
        if isinstance(item, Observed)
    }
    for path in sorted({path for values in leaves.values() for path in values}):
        shown = {node: values.get(path) for node, values in leaves.items()}
        if len(set(shown.values())) > 1:
            yield path, shown


def _render_leaves(
    path: Path, leaves: Mapping[str, Value], kind: ResourceType
) -> Mapping[str, str]:
    return {node: render_leaf(path, value, kind) for node, value in leaves.items()}


def _join_nodes(texts: Mapping[str, str], noun: str) -> str:
    """`TEXT on broker 1, 2, and OTHER on broker 3`. texts: node -> what it shows."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for node, text in texts.items():
        nodes[text].append(node)
    return ", and ".join(f"{text} on {noun} {', '.join(each)}" for text, each in nodes.items())


def note_disagreements(
    changes: Sequence[Change],
    world: World,
    types: Mapping[str, ResourceType],
    providers: Mapping[str, Provider],
) -> Sequence[Change]:
    """The changes; one of an object on which nodes differ says so."""
    return [
        replace(change, notes=(*change.notes, _make_note(change, world, types, providers)))
        if change.identity in world[change.identity.instance].disputed
        else change
        for change in changes
    ]


def _make_note(
    change: Change,
    world: World,
    types: Mapping[str, ResourceType],
    providers: Mapping[str, Provider],
) -> str:
    seen = world[change.identity.instance]
    provider = providers.get(change.identity.instance)
    words = provider.words if provider else NEUTRAL
    shown = describe_disagreement(
        seen.disputed[change.identity], types[change.identity.kind], seen.facts, words.node
    )
    return f"the {words.node}s disagree: {shown}"
