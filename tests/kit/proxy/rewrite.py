"""Answers that the broker did not give: decoded, changed and encoded again.

An error that says "not done" must be true, so the items that get one are taken out of the
request before it is forwarded, and put into the answer afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from .frames import Asked, answer, answer_class, answered

SAYS = "said by the proxy"


@dataclass(frozen=True)
class Items:
    """lists: fields of the request with its items; answers: field of the answer with theirs;
    same: fields that an item's answer takes from the item (its name -> the item's)."""

    lists: tuple[str, ...]
    answers: str
    same: dict[str, str]


ITEMS = {
    "CreateTopics": Items(("topics",), "topics", {"name": "name"}),
    "CreatePartitions": Items(("topics",), "results", {"name": "name"}),
    "DeleteTopics": Items(("topics",), "responses", {"name": "name", "topic_id": "topic_id"}),
    "IncrementalAlterConfigs": Items(
        ("resources",),
        "responses",
        {"resource_type": "resource_type", "resource_name": "resource_name"},
    ),
    "AlterClientQuotas": Items(("entries",), "entries", {"entity": "entity"}),
    "AlterUserScramCredentials": Items(("deletions", "upsertions"), "results", {"user": "name"}),
    "CreateAcls": Items(("creations",), "results", {}),
    "DeleteAcls": Items(("filters",), "filter_results", {}),
}
EMPTY: dict[str, dict[str, Any]] = {
    "CreateTopics": {"topic_id": None, "configs": ()},
    "DeleteAcls": {"matching_acls": ()},
}
"""What an item's answer has besides its error, where nothing was done."""


def items(request: Asked) -> tuple[Any, ...]:
    """What a writing request wants done, in the order of its answers."""
    names = ITEMS[request.api].lists if request.api in ITEMS else ()
    return tuple(item for name in names for item in getattr(request.body, name))


def without_first(request: Asked) -> Any:
    """The body of the request without its first item."""
    name = next(n for n in ITEMS[request.api].lists if getattr(request.body, n))
    return replace(request.body, **{name: getattr(request.body, name)[1:]})


def refused(request: Asked, code: int, wait: float = 0.0) -> bytes:
    """The answer that gives each item this error."""
    body = _answer_of(request, tuple(_refusal(request, item, code) for item in items(request)))
    return answered(request, _throttled(body, wait))


def first_refused(request: Asked, data: bytes, code: int) -> bytes:
    """The answer to the rest, with the first item's error before it."""
    body, field = answer(request, data), ITEMS[request.api].answers
    first = _refusal(request, items(request)[0], code)
    return answered(request, replace(body, **{field: (first, *getattr(body, field))}))


def said(request: Asked, data: bytes, code: int) -> bytes:
    """The answer with this error for each of its items."""
    body = answer(request, data)
    for name in body.__dataclass_fields__:
        rows = getattr(body, name)
        if isinstance(rows, tuple) and rows and hasattr(rows[0], "error_code"):
            changed = tuple(replace(row, error_code=error(code)) for row in rows)
            body = replace(body, **{name: changed})
    return answered(request, body)


def said_whole(request: Asked, data: bytes, code: int) -> bytes:
    """The answer with this error as a whole, or for each item where there is no such place."""
    body = answer(request, data)
    if not hasattr(body, "error_code"):
        return said(request, data, code)
    return answered(request, replace(body, error_code=error(code)))


def paused(request: Asked, data: bytes, seconds: float) -> bytes:
    """The answer that asks to send nothing for so long."""
    return answered(request, _throttled(answer(request, data), seconds))


def topics(request: Asked, data: bytes) -> tuple[Any, ...]:
    """What a Metadata answer says of each topic."""
    return tuple(answer(request, data).topics or ())


def with_topics(request: Asked, data: bytes, rows: Mapping[tuple[int, str], Any]) -> bytes:
    """The Metadata answer with these rows in place of its own. rows: by version and name."""
    body = answer(request, data)
    kept = tuple(rows.get((request.version, row.name), row) for row in body.topics or ())
    return answered(request, replace(body, topics=kept))


def error(code: int) -> Any:
    """kio's error, or for a code that it does not know something that is written the same."""
    return ErrorCode(code) if code in set(ErrorCode) else SimpleNamespace(value=code)


def _throttled(body: Any, seconds: float) -> Any:
    return replace(body, throttle_time=i32Timedelta.parse(timedelta(seconds=seconds)))


def _answer_of(request: Asked, rows: tuple[Any, ...]) -> Any:
    schema = answer_class(request)
    zero = i32Timedelta.parse(timedelta(0))
    return schema(throttle_time=zero, **{ITEMS[request.api].answers: rows})


def _refusal(request: Asked, item: Any, code: int) -> Any:
    shape = ITEMS[request.api]
    row = _row_class(answer_class(request), shape.answers)
    more = dict(EMPTY.get(request.api, {}))
    more |= {theirs: getattr(item, ours) for theirs, ours in shape.same.items()}
    if request.api == "AlterClientQuotas":
        part = _row_class(row, "entity")
        more["entity"] = tuple(
            part(entity_type=e.entity_type, entity_name=e.entity_name) for e in item.entity
        )
    return row(error_code=error(code), error_message=SAYS, **more)


def _row_class(schema: Any, field: str) -> Any:
    """The class of the rows of a field that is written `tuple[Row, ...]`."""
    return schema.__dataclass_fields__[field].type.__args__[0]
