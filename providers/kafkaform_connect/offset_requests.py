"""Reads and sends offsets of connectors (KIP-875). Workers before Kafka 3.6 cannot change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Outcome, OutcomeStatus, Step, Verdict
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)

from . import rest
from .connector import STOPPED
from .connector_offsets import (
    OFFSETS_KIND,
    RESET_OFFSETS,
    SET_OFFSETS,
    find_foreign_paths,
    list_offsets,
    make_offsets,
    render_json,
)
from .reading import ConnectorReader, compute_state, is_stopped, name_right, parse
from .rest import Connector, Offset, RequestFailed, WorkersClient, read_offsets

REQUESTS = (SET_OFFSETS.name, RESET_OFFSETS.name)


def sweep_offsets(depth: Depth) -> Sweep:
    """Always empty: offsets are only read by the name of their connector."""
    return Sweep(OFFSETS_KIND, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def read_all_offsets(
    client: WorkersClient, reader: ConnectorReader, ids: Sequence[Identity]
) -> Mapping[Identity, Reading]:
    """The offsets of these connectors. Absent only if a worker that was asked for it by name knows
    no such connector."""
    answers = reader.ask_patiently(client, [identity.key for identity in ids])
    return {identity: _read(client, identity, answers[identity.key]) for identity in ids}


def _read(client: WorkersClient, identity: Identity, answer: Connector | Fault | None) -> Reading:
    if answer is None:
        return Absent(identity)
    if isinstance(answer, Fault):
        return _make_unread(identity, answer)
    call = rest.get_offsets(identity.key)
    try:
        offsets = parse(call, read_offsets, rest.get_body(client.ask_all([call])[0], call))
    except RequestFailed as failure:
        return _make_unread(identity, failure.fault)
    # Its tasks may still write their last offsets.
    state = compute_state(answer) if is_stopped(answer) else _name_state(answer)
    pairs = ((offset.partition, offset.position) for offset in offsets if offset.position)
    attributes = make_offsets(identity.key, state, pairs)
    return Observed(identity, attributes, foreign=find_foreign_paths(attributes))


def _name_state(connector: Connector) -> str:
    state = compute_state(connector)
    return "stopping" if state == STOPPED else state


def _make_unread(identity: Identity, fault: Fault) -> Reading:
    if fault.kind is FaultClass.PERMISSION:
        return Hidden(identity, name_right(identity.key))
    return Failed(identity, fault)


def check_offset_steps(
    client: WorkersClient, reader: ConnectorReader, steps: Sequence[Step]
) -> list[Verdict]:
    """A verdict for each step: workers have no dry run for offsets, so the connector is read."""
    readings = read_all_offsets(client, reader, [step.identity for step in steps])
    return [
        Verdict(step.id, step.evidence, _find_hindrance(readings[step.identity])) for step in steps
    ]


def _find_hindrance(reading: Reading) -> Fault | None:
    name = reading.identity.key
    if isinstance(reading, Failed):
        return reading.fault
    if isinstance(reading, Hidden):
        advice = f"grant {reading.right}"
        return Fault("HIDDEN", f"{name} cannot be seen", FaultClass.PERMISSION, advice=advice)
    if isinstance(reading, Absent):
        message = f"the connector {name} does not exist any more"
        return Fault("GONE", message, FaultClass.DEFINITE, advice="plan again")
    state = reading.attributes["state"]
    if state == STOPPED:
        return None
    message = f"the connector {name} is {state}"
    return Fault("NOT_STOPPED", message, FaultClass.DEFINITE, advice="stop it, and plan again")


def send_offset_steps(client: WorkersClient, steps: Sequence[Step]) -> list[Outcome]:
    """The outcome of each step, in order."""
    calls = [
        rest.reset_offsets(step.identity.key)
        if step.request == RESET_OFFSETS
        else rest.patch_offsets(step.identity.key, [Offset(*pair) for pair in list_offsets(step)])
        for step in steps
    ]
    faults = [
        _settle(client, step, rest.find_fault(answer, call))
        for step, answer, call in zip(steps, client.ask_all(calls), calls, strict=True)
    ]
    return [
        Outcome(step.id, OutcomeStatus.APPLIED if fault is None else _judge(fault), fault)
        for step, fault in zip(steps, faults, strict=True)
    ]


def _settle(client: WorkersClient, step: Step, fault: Fault | None) -> Fault | None:
    """A worker that answers 500 has tried, and says why its Kafka cluster or the connector refused
    it: nobody carries the request out later, unless it stopped waiting. So a look decides."""
    if fault is None or fault.code != "500" or "timed out" in fault.message.lower():
        return fault
    call = rest.get_offsets(step.identity.key)
    try:
        offsets = parse(call, read_offsets, rest.get_body(client.ask_all([call])[0], call))
    except RequestFailed:
        return fault
    live = {render_json(offset.partition): offset.position for offset in offsets}
    targets = dict.fromkeys(live) if step.request == RESET_OFFSETS else {}
    targets |= {render_json(partition): offset for partition, offset in list_offsets(step)}
    if all(live.get(partition) == offset for partition, offset in targets.items()):
        return None
    advice = "look into the log of the worker; to reset a sink it needs Delete on its group"
    return replace(fault, kind=FaultClass.DEFINITE, advice=advice)


def _judge(fault: Fault) -> OutcomeStatus:
    ambiguous = fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED
