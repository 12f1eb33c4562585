"""`textstore_file`: a text with a name, and the headers that it is served with."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import STRING, AttributeSchema, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

KIND = "textstore_file"
MAX_ITEMS = 50
"""Operations that the store takes in one request."""
MAX_KILOBYTES = 1024
"""What one request may carry; the store sets no limit, but its memory does."""

CREATE = Request("CreateFiles", part=1, phase=10, max_items=MAX_ITEMS, max_weight=MAX_KILOBYTES)
UPDATE = Request("UpdateFiles", part=1, phase=20, max_items=MAX_ITEMS, max_weight=MAX_KILOBYTES)
DELETE = Request("DeleteFiles", part=2, phase=20, max_items=MAX_ITEMS, max_weight=MAX_KILOBYTES)

_NAME = re.compile(r"[a-z0-9][a-z0-9._/-]{0,99}")


def identity_key(text: str) -> str:
    """A name of the store as an identity's key. Raises ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name: it takes 1 to 100 of a-z, 0-9, dot, dash, underscore and slash, "
            "and begins with a letter or a digit"
        )
    return text


def _key(attributes: FrozenMap) -> str:
    return identity_key(str(attributes.get("name") or ""))


def _canonical(attributes: FrozenMap, _: Facts) -> FrozenMap:
    """Names of headers have no case (RFC 9110, section 5.1)."""
    headers = attributes.get("headers")
    if headers is None:
        return attributes
    return attributes.with_items({"headers": _lower(headers)})


def _lower(headers: FrozenMap) -> FrozenMap:
    return FrozenMap({name.lower(): value for name, value in headers.items()})


def _target(declared: FrozenMap, observed: Observed | None, facts: Facts, keep: bool) -> FrozenMap:
    """Headers that are left out are not managed (None); those of an adopted file stay."""
    wanted = _canonical(declared, facts)
    headers = wanted.get("headers")
    if keep and observed is not None and headers is not None:
        headers = observed.attributes["headers"].with_items(headers)
    return FrozenMap(name=wanted["name"], content=wanted["content"], headers=headers)


def _find_case_twins(headers: FrozenMap) -> Iterable[tuple[str, str]]:
    if len(_lower(headers)) < len(headers):
        yield "two of the headers differ in case only", "Keep one of them."


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    after = change.after or EMPTY
    if change.action is Action.CREATE:
        payload: dict[str, Value] = {
            "do": "create",
            "content": after["content"],
            "headers": after.get("headers") or EMPTY,
        }
        return (_make_step(change, CREATE, payload, _select_paths(change), Repeat.VERIFY),)
    if change.action is Action.DELETE:
        payload = {"do": "delete", "uid": change.incarnation}
        return (_make_step(change, DELETE, payload, _select_paths(change), Repeat.SAFE),)
    written = _select_paths(change, "content", "headers")
    if change.action is not Action.UPDATE or not written:
        return ()
    payload = {"do": "update", "uid": change.incarnation}
    if ("content",) in written:
        payload["content"] = after["content"]
    headers = {path[1]: after["headers"].get(path[1]) for path in written if len(path) == 2}
    payload["headers"] = FrozenMap(headers)
    return (_make_step(change, UPDATE, payload, written, Repeat.SAFE),)


def _select_paths(change: Change, *heads: str) -> tuple[Path, ...]:
    """All paths of the change, or those below these attributes. `owner` and `labels` are in the
    state alone."""
    return tuple(item.path for item in change.paths if not heads or item.path[0] in heads)


def _make_step(
    change: Change,
    request: Request,
    payload: dict[str, Value],
    paths: tuple[Path, ...],
    repeat: Repeat,
) -> Step:
    identity = change.identity
    content = str(payload.get("content") or "")
    return Step(
        id=f"{identity.instance}/{identity.kind}/{identity.key}#1",
        identity=identity,
        address=change.address,
        request=request,
        payload=FrozenMap({"kind": "file", "name": identity.key, **payload}),
        weight=1 + len(content.encode()) // 1024,
        after=(),
        repeat=repeat,
        evidence=Evidence.REMOTE,
        paths=paths,
    )


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "A text file. The import id is its name.",
        AttributeSchema(
            "name", STRING, "Name of the file, with slashes if you like.", required=True
        ),
        AttributeSchema("content", STRING, "The text.", required=True),
        AttributeSchema(
            "headers",
            map_of(STRING),
            "Headers to serve it with, over the store's own; not managed if left out.",
            refuses=_find_case_twins,
        ),
        AttributeSchema("uid", STRING, "What the store calls this very file.", computed=True),
    ),
    key=_key,
    canonical=_canonical,
    target=_target,
    steps=_steps,
    import_key=identity_key,
    protect=True,
)
