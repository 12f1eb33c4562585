"""`kafka_connect_offsets`: the offsets of a stopped connector, which `alter connector` sets and
resets (KIP-875).

No block declares them and no state records them, because a connector that runs moves them. A plugin
chooses the form of its partitions and offsets, so both are JSON texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.resource import Facts
from kafkaform.core.schema import STRING, AttributeSchema, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from .connector import make_request

OFFSETS_KIND, OFFSETS = "kafka_connect_offsets", "offsets"
SET_OFFSETS = make_request("SetOffsets", 1, 60)
RESET_OFFSETS = make_request("ResetOffsets", 1, 61)


def render_json(value: Any) -> str:
    """One spelling for equal JSON values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def make_offsets(connector: str, state: str, offsets: Iterable[tuple[Any, Any]]) -> FrozenMap:
    """The attributes. state: of the connector; offsets: partition and offset, as JSON values."""
    texts = sorted((render_json(partition), render_json(offset)) for partition, offset in offsets)
    rows: dict[str, Value] = dict(texts)
    return FrozenMap({"connector": connector, "state": state, OFFSETS: FrozenMap(rows)})


def find_foreign_paths(attributes: FrozenMap) -> frozenset[Path]:
    """All offsets: a plan ignores those that its change does not name."""
    return frozenset((OFFSETS, partition) for partition in attributes[OFFSETS])


def list_offsets(step: Step) -> Iterator[tuple[Any, Any]]:
    """What a step sets: partitions with their offsets, None for one that is removed."""
    for partition, offset in (step.payload.get(OFFSETS) or EMPTY).items():
        yield json.loads(partition), json.loads(offset)


def _key(attributes: FrozenMap) -> str:
    name = attributes.get("connector")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_connect_offsets needs a connector")
    return name


def _make_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    paths = tuple(item.path for item in change.paths if item.path[0] == OFFSETS)
    if change.action is not Action.UPDATE or not paths:
        return ()
    target = (change.after or EMPTY).get(OFFSETS) or EMPTY
    # To leave none, workers have a request of its own (KIP-875).
    if not target:
        return (_make_step(change, RESET_OFFSETS, EMPTY, paths),)
    offsets = FrozenMap({path[1]: target.get(path[1], "null") for path in paths})
    return (_make_step(change, SET_OFFSETS, FrozenMap({OFFSETS: offsets}), paths),)


def _make_step(
    change: Change, request: Request, payload: FrozenMap, paths: tuple[Path, ...]
) -> Step:
    identity = change.identity
    return Step(
        id=f"{identity.instance}/{identity.kind}/{identity.key}#1",
        identity=identity,
        address=change.address,
        request=request,
        payload=FrozenMap(name=identity.key).with_items(payload),
        weight=1,
        after=(),
        # A connector that ran after a lost answer has moved on: the offsets are read first.
        repeat=Repeat.VERIFY,
        evidence=Evidence.LOCAL,
        paths=paths,
    )


OFFSETS_TYPE = ResourceType(
    name=OFFSETS_KIND,
    schema=make_schema(
        "The offsets of a connector.",
        AttributeSchema("connector", STRING, "Name of the connector.", required=True),
        AttributeSchema("state", STRING, "Its state; offsets change while it is stopped."),
        AttributeSchema(OFFSETS, map_of(STRING), "Partition -> offset, both as JSON."),
    ),
    key=_key,
    canonical=lambda attributes, _: attributes,
    target=lambda declared, _, __, ___: declared,
    steps=_make_steps,
    import_key=lambda text: text,
    restorable=True,
)


def narrow(change: Change) -> Change:
    """The change with those offsets only that it concerns."""
    partitions = [item.path[1] for item in change.paths if item.path[0] == OFFSETS]

    def select(attributes: FrozenMap | None) -> FrozenMap | None:
        if attributes is None:
            return None
        chosen = {
            text: attributes[OFFSETS][text] for text in partitions if text in attributes[OFFSETS]
        }
        return attributes.with_items({OFFSETS: FrozenMap(chosen)})

    return replace(change, before=select(change.before), after=select(change.after))
