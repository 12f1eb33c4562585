"""IncrementalAlterConfigs of the simulated cluster, for every kind of resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ..engine.controller import Call, Handler, Item, Refusal, Result, Verdict, batch
from ..engine.world import Key
from . import config_kinds, topics


def alter_configs(call: Call, items: Sequence[Item]) -> Result:
    """All keys of a resource or none."""
    return batch(call, items, _key_of, lambda item: _alter(call, item))


def _key_of(item: Item) -> Key:
    return RESOURCES[item["resource"]][0](item["name"])


def _alter(call: Call, item: Item) -> Verdict:
    put, gone = item["set"], tuple(item["delete"])
    if len({*put, *gone}) != len(put) + len(gone):
        raise Refusal(42, "the request names a config key twice")
    return RESOURCES[item["resource"]][1](call, item)


RESOURCES: Mapping[str, tuple[Callable[[str], Key], Callable[[Call, Item], Verdict]]] = {
    "topic": (topics.key, topics.alter),
    **{
        resource: (partial(config_kinds.key, resource), config_kinds.alter)
        for resource in ("broker", "group", "client_metrics")
    },
}
"""Resource as payloads name it -> where the world keeps it, and what altering it does."""

HANDLERS: Mapping[str, Handler] = {"IncrementalAlterConfigs": alter_configs}
