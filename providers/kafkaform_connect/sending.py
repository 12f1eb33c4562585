"""Sends changes of connectors, each once.

An update sends only the configs that were approved (PATCH, KIP-477): the rest, secrets included,
stays at the worker. Workers before 3.8 have no PATCH. Their configuration is read and sent back
with the changes; nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Outcome, OutcomeStatus, Step
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets
from kafkaform.provider.http.exchange import Call, HttpAnswer

from . import rest
from .connector import CLASS, NAME, RUNNING
from .observation import make_ticket
from .reading import ConnectorReader
from .rest import RequestFailed, WorkersClient
from .secret_keys import is_masked, is_reference
from .steps import CONFIGURE, CREATE, DELETE, HALT, RESTART, RESUME


def send_steps(
    client: WorkersClient, reader: ConnectorReader, steps: Sequence[Step], secrets: Secrets
) -> list[Outcome]:
    """The outcome of each step, in order. All of them share one request."""
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
