"""`textstore_link`: a second name for a file.

Nothing distinguishes a link from one that is created again under its name. So it has no
incarnation, and its requests are absolute.
"""

from __future__ import annotations

from kafkaform.core.change import Action, Change, Evidence, Repeat, Request, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from .file import MAX_ITEMS, identity_key

KIND = "textstore_link"
PUT = Request("PutLinks", part=1, phase=30, max_items=MAX_ITEMS, max_weight=MAX_ITEMS)
DELETE = Request("DeleteLinks", part=2, phase=10, max_items=MAX_ITEMS, max_weight=MAX_ITEMS)


def _key(attributes: FrozenMap) -> str:
    return identity_key(str(attributes.get("name") or ""))


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return FrozenMap(name=declared["name"], target=declared["target"])


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    payload: dict[str, Value] = {"kind": "link", "name": change.identity.key}
    paths = tuple(item.path for item in change.paths)
    if change.action is Action.DELETE:
        return (_make_step(change, DELETE, {**payload, "do": "delete"}),)
    writes = change.action in (Action.CREATE, Action.UPDATE) and ("target",) in paths
    target = (change.after or EMPTY).get("target")
    return (_make_step(change, PUT, {**payload, "do": "put", "target": target}),) if writes else ()


def _make_step(change: Change, request: Request, payload: dict[str, Value]) -> Step:
    identity = change.identity
    return Step(
        id=f"{identity.instance}/{identity.kind}/{identity.key}#1",
        identity=identity,
        address=change.address,
        request=request,
        payload=FrozenMap(payload),
        weight=1,
        after=(),
        repeat=Repeat.SAFE,
        evidence=Evidence.REMOTE,
        paths=tuple(item.path for item in change.paths),
    )


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "A second name for a file. The import id is its name.",
        AttributeSchema("name", STRING, "Name of the link.", required=True),
        AttributeSchema("target", STRING, "Name of the file that it leads to.", required=True),
    ),
    key=_key,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=identity_key,
)
