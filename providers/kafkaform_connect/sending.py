"""Sends changes of connectors and of their offsets, each once.

An update sends only the configs that were approved (PATCH, KIP-477): the rest, secrets included,
stays at the worker. Workers before 3.8 have no PATCH. Their configuration is read and sent back
with the changes; nothing of it is kept.

A dry run has the workers validate a whole configuration without using it (KIP-26). It has no
secrets: they are looked up only for the requests that need them. Of a connector that exists, the
worker takes the secrets that are set; a new secret is replaced by a placeholder.

Offsets are read here too, before a change of them is checked (KIP-875). Workers before Kafka 3.6
cannot change them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

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
from kafkaform.core.secret import mask_secrets
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets
from kafkaform.provider.http.exchange import Call, HttpAnswer

from . import rest
from .connector import (
    CARRY,
    CLASS,
    CONFIGURE,
    CREATE,
    DELETE,
    HALT,
    NAME,
    RESTART,
    RESUME,
    RUNNING,
    STOPPED,
)
from .connector_offsets import (
    OFFSETS_KIND,
    RESET_OFFSETS,
    SET_OFFSETS,
    find_foreign_paths,
    list_offsets,
    make_offsets,
    render_json,
)
from .definitions import advise_secret, describe_plain_secret, is_masked, is_reference, is_secret
from .reading import ConnectorReader, compute_state, is_stopped, make_ticket, name_right, parse
from .rest import (
    ConfigFault,
    Connector,
    Offset,
    RequestFailed,
    WorkersClient,
    read_offsets,
    read_validation,
)


def send_steps(
    client: WorkersClient, reader: ConnectorReader, steps: Sequence[Step], secrets: Secrets
) -> list[Outcome]:
    """The outcome of each step, in order. All of them share one request."""
    if steps[0].request.name == CARRY.name:
        return [_make_outcome(step, carry_offsets(client, reader, step)) for step in steps]
    faults = {step.id: _find_reference(step, secrets) for step in steps}
    good = [step for step in steps if faults[step.id] is None]
    calls = [_make_call(step, secrets) for step in good]
    answers: list[HttpAnswer | Fault] = client.ask_all(calls) if calls else []
    late = [i for i, answer in enumerate(answers) if _knows_no_patch(good[i], answer)]
    if late:
        replaced = _replace_configs(client, reader, [good[i] for i in late], secrets)
        for index, (call, answer) in zip(late, replaced, strict=True):
            calls[index], answers[index] = call, answer
    outcomes = {
        step.id: _make_outcome(step, rest.find_fault(answer, call))
        for step, call, answer in zip(good, calls, answers, strict=True)
    }
    return [outcomes.get(step.id) or _make_outcome(step, faults[step.id]) for step in steps]


def _find_reference(step: Step, secrets: Secrets) -> Fault | None:
    """The fault if a secret is a reference for the workers: it would be read back as plain text,
    and sent again with every plan."""
    for key, reference in (step.payload.get("secrets") or {}).items():
        if is_reference(secrets[str(reference)].reveal()):
            return Fault(
                "NO_SECRET",
                f'secret_config["{key}"] is a reference for a config provider, and no secret',
                FaultClass.DEFINITE,
                advice="write it in config, with $${ in place of ${",
            )
    return None


def _make_call(step: Step, secrets: Secrets) -> Call:
    name, payload = step.payload["name"], step.payload
    if step.request.name == CREATE.name:
        config = {**payload["config"], **_reveal(payload, secrets)}
        return rest.create(name, {**config, CLASS: payload["class"], NAME: name}, payload["state"])
    if step.request.name == CONFIGURE.name:
        return rest.patch_config(name, _list_changes(payload, secrets))
    if step.request.name in (HALT.name, RESUME.name):
        return rest.put_state(name, payload["state"])
    if step.request.name == RESTART.name:
        return rest.restart_failed(name)
    assert step.request.name == DELETE.name
    return rest.delete(name)


def _list_changes(payload: FrozenMap, secrets: Secrets) -> dict[str, str | None]:
    """What an update sets; None for what it removes."""
    changes: dict[str, str | None] = dict.fromkeys(payload["gone"])
    changes.update(payload["put"])
    changes.update(_reveal(payload, secrets))
    if payload["class"] != payload["was"]:
        changes[CLASS] = payload["class"]
    return changes


def _reveal(payload: FrozenMap, secrets: Secrets) -> dict[str, str]:
    return {key: secrets[str(ref)].reveal() for key, ref in payload["secrets"].items()}


def _knows_no_patch(step: Step, answer: HttpAnswer | Fault) -> bool:
    return (
        step.request.name == CONFIGURE.name
        and isinstance(answer, HttpAnswer)
        and answer.status == 405
    )


def _replace_configs(
    client: WorkersClient, reader: ConnectorReader, steps: Sequence[Step], secrets: Secrets
) -> list[tuple[Call, HttpAnswer | Fault]]:
    """Send whole configurations to workers that know no PATCH."""
    names = [step.identity.key for step in steps]
    try:
        live = reader.read_plain(client, names)
    except RequestFailed as failure:
        # Nothing was sent, however the read ended.
        message = f"the current configuration cannot be read: {failure.fault.message}"
        fault = replace(failure.fault, message=message, kind=FaultClass.NOT_APPLIED)
        return [(rest.CONNECTORS, fault) for _ in steps]
    calls: list[Call | Fault] = []
    for step in steps:
        live_config = dict(live[step.identity.key].config) if step.identity.key in live else None
        calls.append(_make_put(step, live_config, secrets))
    sent = [call for call in calls if isinstance(call, Call)]
    answers = iter(client.ask_all(sent) if sent else [])
    return [
        (rest.CONNECTORS, call) if isinstance(call, Fault) else (call, next(answers))
        for call in calls
    ]


def _make_put(step: Step, live_config: Mapping[str, str] | None, secrets: Secrets) -> Call | Fault:
    name = step.identity.key
    if live_config is None:
        message = f"the connector {name} does not exist any more"
        return Fault("NOT_FOUND", message, FaultClass.CONVERGED, advice="plan again")
    changes = _list_changes(step.payload, secrets)
    config = {key: value for key, value in live_config.items() if key not in changes}
    hidden = sorted(key for key, value in config.items() if is_masked(value))
    if hidden:
        return Fault(
            "MASKED",
            f"the workers do not show {', '.join(hidden)}, so the rest cannot be sent without it",
            FaultClass.DEFINITE,
            advice="declare it in secret_config, and change secret_config_version",
        )
    config.update({key: value for key, value in changes.items() if value is not None})
    return rest.put_config(name, config)


def _make_outcome(step: Step, fault: Fault | None) -> Outcome:
    if fault is not None:
        unclear = fault.kind is FaultClass.AMBIGUOUS
        return Outcome(step.id, OutcomeStatus.UNKNOWN if unclear else OutcomeStatus.FAILED, fault)
    if step.request.name in (HALT.name, DELETE.name) or step.payload.get("state") != RUNNING:
        return Outcome(step.id, OutcomeStatus.APPLIED)
    # Workers answer as soon as they have written down what is to run.
    return Outcome(step.id, OutcomeStatus.STARTED, ticket=make_ticket(step.identity.key))


def carry_offsets(client: WorkersClient, reader: ConnectorReader, step: Step) -> Fault | None:
    """Stop the source of the offsets, and give the connector of this step those that it lacks. The
    fault if that did not come to its end.

    Everything in it is absolute and reads first, so the step can be sent again at any time, and its
    outcome is never unclear.
    """
    name, source = step.identity.key, str(step.payload["source"])
    answer = reader.ask_patiently(client, [source])[source]
    if answer is None:
        # With a plan that says so, there is no such step.
        return Fault(
            "OFFSETS_GONE",
            f"the connector {source}, whose offsets {name} is to get, does not exist any more: "
            f"{name} stays stopped",
            FaultClass.DEFINITE,
            advice=f"create {source} again, stopped, or plan again: {name} then starts over",
        )
    if isinstance(answer, Fault):
        return _ask_again(answer)
    stop = rest.put_state(source, STOPPED)
    fault = rest.find_fault(client.ask_all([stop])[0], stop)
    if fault is not None and fault.kind is not FaultClass.AMBIGUOUS:
        return fault
    for stopped_name, connector in reader.await_stopped(client, [source, name]).items():
        if isinstance(connector, Fault):
            return _ask_again(connector)
        if connector is None or not is_stopped(connector):
            message = f"the connector {stopped_name} does not stop"
            if connector is None:
                message = f"the connector {stopped_name} does not exist any more"
            return Fault("NOT_STOPPED", message, FaultClass.NOT_APPLIED, advice="plan again")
    try:
        missing = _find_missing_offsets(client, name, source)
        if not missing:
            return None
        patch = rest.patch_offsets(name, missing)
        fault = rest.find_fault(client.ask_all([patch])[0], patch)
        if fault is not None and fault.kind is FaultClass.AMBIGUOUS:
            return _ask_again(fault) if _find_missing_offsets(client, name, source) else None
    except RequestFailed as failure:
        return _ask_again(failure.fault)
    return fault


def _find_missing_offsets(client: WorkersClient, name: str, source: str) -> list[Offset]:
    """The offsets of the source for partitions of which the connector has none. Raises
    RequestFailed."""
    calls = [rest.get_offsets(source), rest.get_offsets(name)]
    offsets, present = (
        parse(call, read_offsets, rest.get_body(answer, call))
        for call, answer in zip(calls, client.ask_all(calls), strict=True)
    )
    partitions = [offset.partition for offset in present]
    return [offset for offset in offsets if offset.partition not in partitions]


def _ask_again(fault: Fault) -> Fault:
    """A fault of a request that can be sent again, whatever became of it."""
    if fault.kind is FaultClass.AMBIGUOUS:
        return replace(fault, kind=FaultClass.NOT_APPLIED, retry_after=rest.RETRY_SECONDS)
    return fault


PLACEHOLDER = "kafkaform-dry-run"
"""What a worker gets in place of a secret that is not set yet."""
_INVALID, _EXPOSED = "INVALID_CONFIG", "PLAIN_SECRET"
"""Codes of faults that follow from the configuration."""
MAX_MESSAGE = 300
"""Characters of what a worker has against one config."""

# Some connectors log in where they are going to read, to validate their configuration.
_LOGIN = re.compile(
    r"\bconnection\b|\bconnect to\b|authenticat|authoriz|\blog ?(?:in|on)\b|credential"
    rf"|access denied|timed? ?out|unreachable|unknown host|password|{PLACEHOLDER}",
    re.IGNORECASE,
)
"""What an error may say if the placeholder of a secret caused it."""


# Texts of Kafka's own ConfigDef: they follow from the configuration alone, so what an earlier step
# of the same plan makes, such as a topic, cannot change them.
_CERTAIN = re.compile(
    r"Invalid value .* for configuration|Missing required configuration", re.DOTALL
)


def examine_steps(
    client: WorkersClient, reader: ConnectorReader, steps: Sequence[Step]
) -> list[Verdict]:
    """A verdict for each step that will be refused, whatever comes before it. A connector waits
    for its topics, and without this its dry run would come after their creation."""
    written_steps = [step for step in steps if step.request.name in (CREATE.name, CONFIGURE.name)]
    if not written_steps:
        return []
    try:
        live = reader.read_plain(client, [step.identity.key for step in written_steps])
    except RequestFailed:
        return []
    steps_on_live = [
        step
        for step in written_steps
        if step.request.name == CREATE.name or step.identity.key in live
    ]
    verdicts = _validate(
        client, steps_on_live, live, lambda item: bool(_CERTAIN.match(item.message))
    )
    codes = (_INVALID, _EXPOSED)
    return [item for item in verdicts if item.fault is not None and item.fault.code in codes]


def check_steps(
    client: WorkersClient, reader: ConnectorReader, steps: Sequence[Step]
) -> list[Verdict]:
    """A verdict for each step, in order. All of them share one request."""
    readings = reader.read(client, [step.identity for step in steps])
    hindered = {step.id: _find_hindrance(step, readings[step.identity]) for step in steps}
    free = [step for step in steps if hindered[step.id] is None]
    verdicts: dict[str, Verdict] = {}
    if free and steps[0].request.name in (CREATE.name, CONFIGURE.name):
        try:
            live = reader.read_plain(client, [step.identity.key for step in free])
        except RequestFailed as failure:
            return [Verdict(step.id, step.evidence, failure.fault) for step in steps]
        verdicts = {verdict.step: verdict for verdict in _validate(client, free, live)}
    return [
        verdicts.get(step.id) or Verdict(step.id, step.evidence, hindered[step.id])
        for step in steps
    ]


def _find_hindrance(step: Step, reading: Reading) -> Fault | None:
    """Why a request about this connector would fail, None if nothing is known."""
    name = step.identity.key
    if isinstance(reading, Failed):
        return reading.fault
    if isinstance(reading, Hidden):
        message, advice = f"the right is missing: {reading.right}", f"grant {reading.right}"
        return Fault("HIDDEN", message, FaultClass.PERMISSION, advice=advice)
    creates = step.request.name == CREATE.name
    if isinstance(reading, Absent) is creates:
        return None
    hindrance, code = (
        ("exists already", "EXISTS") if creates else ("does not exist any more", "GONE")
    )
    message = f"the connector {name} {hindrance}"
    return Fault(code, message, FaultClass.CONVERGED, advice="plan again")


def _validate(
    client: WorkersClient,
    steps: Sequence[Step],
    live: Mapping[str, Connector],
    believe: Callable[[ConfigFault], bool] = lambda _: True,
) -> list[Verdict]:
    configs = [_compute_config(step, live.get(step.identity.key)) for step in steps]
    calls = [rest.validate(config[CLASS], config) for config in configs]
    answers = client.ask_all(calls) if calls else []
    return [
        Verdict(step.id, step.evidence, _judge(step, config, call, answer, believe))
        for step, config, call, answer in zip(steps, configs, calls, answers, strict=True)
    ]


def _compute_config(step: Step, live: Connector | None) -> dict[str, str]:
    """The whole configuration as it will be."""
    payload, config = step.payload, dict(live.config) if live else {}
    for key in payload.get("gone") or ():
        config.pop(key, None)
    config.update(payload.get("config") or payload.get("put") or {})
    for key in payload["secrets"]:
        if key not in config or is_masked(config[key]):
            config[key] = PLACEHOLDER
    config.update({CLASS: payload["class"], NAME: payload["name"]})
    return config


def _judge(
    step: Step,
    config: Mapping[str, str],
    call: Call,
    answer: HttpAnswer | Fault,
    believe: Callable[[ConfigFault], bool],
) -> Fault | None:
    fault = rest.find_fault(answer, call)
    if fault is not None:
        return _explain_refusal(fault, step)
    assert isinstance(answer, HttpAnswer)
    try:
        validation = parse(call, read_validation, answer.body)
    except RequestFailed as failure:
        return failure.fault
    exposed = [
        key
        for key in sorted((step.payload.get("config") or step.payload.get("put") or {}).keys())
        if is_secret(key, config[key], validation.passwords)
    ]
    if exposed:
        return Fault(
            _EXPOSED,
            "; ".join(map(describe_plain_secret, exposed)),
            FaultClass.DEFINITE,
            advice="; ".join(map(advise_secret, exposed)),
        )
    guessed = PLACEHOLDER in config.values()
    faults = [
        invalid
        for invalid in validation.faults
        if believe(invalid) and not (guessed and _LOGIN.search(invalid.message))
    ]
    if not faults:
        return None
    text = "; ".join(_describe_faults(step, faults))
    return Fault(_INVALID, text, FaultClass.DEFINITE, advice="correct these configs")


def _describe_faults(step: Step, faults: Sequence[ConfigFault]) -> Iterator[str]:
    """Each fault with its place in the block."""
    attributes = {NAME: "name", CLASS: "class"}
    for fault in faults:
        map_name = "secret_config" if fault.key in step.payload["secrets"] else "config"
        attribute = attributes.get(fault.key) or f'{map_name}["{fault.key}"]'
        message = " ".join(mask_secrets(fault.message).split()).rstrip(".")
        cut = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}…"
        yield f"{attribute}: {cut}"


def _explain_refusal(fault: Fault, step: Step) -> Fault:
    """A refusal of the whole validation; nothing was executed, whatever the status says."""
    if fault.kind in (FaultClass.PERMISSION, FaultClass.DEFINITE):
        return fault
    kind = FaultClass.NOT_APPLIED
    advice = fault.advice
    if "Failed to find any class" in fault.message or "no class" in fault.message.lower():
        kind, advice = FaultClass.DEFINITE, f"install the plugin {step.payload['class']}"
    return replace(fault, kind=kind, advice=advice)


# ── offsets ─────────────────────────────────────────────────────────────────────────

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
        Verdict(step.id, step.evidence, _find_offset_hindrance(readings[step.identity]))
        for step in steps
    ]


def _find_offset_hindrance(reading: Reading) -> Fault | None:
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
        Outcome(
            step.id, OutcomeStatus.APPLIED if fault is None else _judge_offset_fault(fault), fault
        )
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


def _judge_offset_fault(fault: Fault) -> OutcomeStatus:
    ambiguous = fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED
