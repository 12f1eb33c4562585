"""The documents of `describe connectors` and `explain connector`, the same for people and for
programs. docs/commands.md lists the fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Fault, FaultClass, Identity, Observed, Reading, Use
from kafkaform.core.value import FrozenMap, Value, freeze
from kafkaform.provider.commands import (
    Answer,
    PartnerReply,
    is_glob,
    refuse_missing,
    select_names,
)
from kafkaform.provider.contract import Session

from . import reaches
from .connector import GROUP, KIND, TOPIC, is_sink, list_uses, name_group
from .connector_offsets import OFFSETS, OFFSETS_KIND
from .reading import FAILED, DetailedConnector, name_right, shorten_trace
from .rest import TaskStatus
from .session import ConnectSession

HIDDEN = "some services leave out connectors that the user must not see"


def describe_connectors(
    session: Session,
    names: Sequence[str],
    name: str,
    state: str,
    class_: str,
    *,
    offsets: bool = False,
) -> Answer:
    """The connectors that names or globs choose. name, state, class_: globs; offsets: include
    theirs. Raises KafkaformError."""
    assert isinstance(session, ConnectSession)
    exact = bool(names) and not any(map(is_glob, names))
    details = session.read_details(list(dict.fromkeys(names)) if exact else None)
    existing = {key: item for key, item in details.items() if item is not None}
    rows = [
        _document_connector(key, existing[key])
        for key in select_names(sorted(existing), names)
        if fnmatchcase(key, name)
    ]
    # Workers find a class by its short names, too.
    chosen = tuple(
        row
        for row in rows
        if fnmatchcase(row["state"] or "", state.upper())
        and (
            fnmatchcase(row["class"] or "", class_)
            or fnmatchcase((row["class"] or "").rpartition(".")[2], class_)
        )
    )
    document = FrozenMap(
        format_version="1.0",
        kind="connectors",
        connect_id=session.facts.scope_id,
        connectors=_add_offsets(session, chosen) if offsets else chosen,
        complete=exact,
        hidden=None if exact else HIDDEN,
    )
    fault = refuse_missing(existing, names, "connector", "connectors")
    return Answer(document, fault or _find_unread(existing))


def _add_offsets(session: Session, rows: Sequence[FrozenMap]) -> tuple[FrozenMap, ...]:
    """The rows with the offsets of each connector; null for those that cannot be read."""
    identities = {row["name"]: Identity("", OFFSETS_KIND, row["name"]) for row in rows}
    readings = session.read(list(identities.values())) if identities else {}
    return tuple(
        row.with_items({"offsets": _document_offsets(readings[identities[row["name"]]])})
        for row in rows
    )


def _document_offsets(reading: Reading) -> tuple[FrozenMap, ...] | None:
    if not isinstance(reading, Observed):
        return None
    return tuple(
        FrozenMap(
            {
                "partition": freeze(json.loads(partition, parse_float=Decimal)),
                "offset": freeze(json.loads(offset, parse_float=Decimal)),
            }
        )
        for partition, offset in reading.attributes[OFFSETS].items()
    )


def _find_unread(details: Mapping[str, DetailedConnector | Fault]) -> KafkaformError | None:
    faults = {name: item for name, item in details.items() if isinstance(item, Fault)}
    if not faults:
        return None
    name, fault = next(iter(faults.items()))
    return _make_read_error(name, fault)


def _make_read_error(name: str, fault: Fault) -> KafkaformError:
    if fault.kind is FaultClass.PERMISSION:
        right = name_right(name)
        return KafkaformError(f"the connector {name} cannot be seen", f"Ask for {right}.")
    return KafkaformError(
        f"the connector {name} cannot be read: {fault.message}",
        fault.advice or "Run the command again.",
    )


def _document_connector(name: str, item: DetailedConnector | Fault) -> FrozenMap:
    if isinstance(item, Fault):
        unread: dict[str, Value] = dict.fromkeys(("type", "class", "state", "worker", "cause"))
        error = FrozenMap(code=item.code, message=item.message, advice=item.advice)
        return FrozenMap(name=name, **unread, tasks=(), error=error)
    connector = item.connector
    return FrozenMap(
        name=name,
        type=connector.type,
        **{"class": item.observed.attributes["class"]},
        **_document_status(connector.status),
        tasks=tuple(
            FrozenMap(id=task.id, **_document_status(task))
            for task in sorted(connector.tasks, key=lambda task: task.id)
        ),
        error=None,
    )


def _document_status(status: TaskStatus | None) -> dict[str, Value]:
    """The state of a connector or of a task; null until a worker runs it."""
    if status is None:
        return {"state": None, "worker": None, "cause": None}
    cause = shorten_trace(status.trace) if status.state == FAILED else None
    return {"state": status.state, "worker": status.worker or None, "cause": cause}


# ── one connector ───────────────────────────────────────────────────────────────────────


def explain_connector(session: Session, name: str) -> FrozenMap:
    """What a connector works with, which rights that needs, and how it is. Raises KafkaformError,
    also if there is no such connector."""
    assert isinstance(session, ConnectSession)
    item = session.read_details([name])[name]
    if item is None:
        names = session.read_details(None)
        raise refuse_missing(names, [name], "connector", "connectors") or KafkaformError(
            f"the connector {name} is starting or going away", "Run the command again."
        )
    if isinstance(item, Fault):
        raise _make_read_error(name, item)
    attributes = item.observed.attributes
    return FrozenMap(
        format_version="1.0",
        kind="connector_explanation",
        connect_id=session.facts.scope_id,
        kafka_id=session.facts.partners.get("kafka"),
        **_document_connector(name, item).without(("error",)),
        principal=session.facts.acts_as,
        uses=tuple(
            FrozenMap(
                resource_type="group" if use.kind == GROUP else "topic",
                name=use.key,
                pattern=use.pattern,
                verb=use.verb,
                rights=use.rights,
            )
            for use in list_uses(attributes)
        ),
        further=tuple(_list_further(attributes)),
        group=name_group(attributes) if is_sink(attributes) else None,
        lag=None,
        missing_rights=None,
        rights_unknown=None,
    )


def read_uses(document: FrozenMap) -> tuple[Use, ...]:
    """The uses of a document for which the login of the workers needs rights."""
    return tuple(
        Use(
            GROUP if item["resource_type"] == "group" else TOPIC,
            item["name"],
            item["verb"],
            rights=item["rights"],
            pattern=item["pattern"],
        )
        for item in document["uses"]
        if item["rights"]
    )


def _list_further(attributes: FrozenMap) -> Iterator[str]:
    """What else it can read or write, as far as its configs tell."""
    named = {
        f"{reaches.find_literal_start(use.key)}*" if use.pattern else use.key
        for use in list_uses(attributes)
    }
    for reach in reaches.list_reaches(KIND, attributes) or ():
        if reach.noun == "topics" and reach.pattern not in named:
            yield reach.text


def add_reply(document: FrozenMap, reply: PartnerReply) -> FrozenMap:
    """The explanation with what Kafka says: the lag of the group, and the rights that are
    missing."""
    missing = reply.missing
    rights: dict[str, Value] = {
        "missing_rights": None
        if missing is None
        else tuple(FrozenMap(right=gap.right, doubt=gap.doubt or None) for gap in missing),
        "rights_unknown": reply.reason or None if missing is None else None,
    }
    lag = _make_lag(reply) if document["group"] else None
    return document.with_items({"lag": lag, **(rights if document["principal"] else {})})


def _make_lag(reply: PartnerReply) -> FrozenMap:
    groups = () if reply.document is None else reply.document["groups"]
    error = groups[0]["error"] if groups else None
    if not groups or error:
        missing = "the group does not exist yet"
        cause = error["message"] if error else missing if reply.document else reply.reason
        return FrozenMap(records=None, complete=False, unknown=cause)
    group = groups[0]
    return FrozenMap(
        records=group["lag"],
        complete=group["lag_complete"],
        state=group["state"],
        members=group["member_count"],
        unknown=None,
    )
