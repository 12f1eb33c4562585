"""The dry run: workers validate a whole configuration without using it (KIP-26).

A dry run knows no secrets: they are looked up only for the requests that need them. Of a connector
that exists, the worker gets the secrets that are set; a new secret is replaced by a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step, Verdict
from kafkaform.core.resource import Absent, Failed, Fault, FaultClass, Hidden, Reading
from kafkaform.core.secret import mask_secrets
from kafkaform.provider.http.exchange import Call, HttpAnswer

from . import rest
from .answers import ConfigFault, Connector, read_validation
from .connector import CLASS, NAME
from .reading import ConnectorReader, parse
from .rest import RequestFailed, WorkersClient
from .secret_keys import advise_secret, describe_plain_secret, is_masked, is_secret
from .steps import CONFIGURE, CREATE

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
    asked = [step for step in steps if step.request.name in (CREATE.name, CONFIGURE.name)]
    if not asked:
        return []
    try:
        live = reader.read_plain(client, [step.identity.key for step in asked])
    except RequestFailed:
        return []
    known = [
        step for step in asked if step.request.name == CREATE.name or step.identity.key in live
    ]
    verdicts = _validate(client, known, live, lambda one: bool(_CERTAIN.match(one.message)))
    found = (_INVALID, _EXPOSED)
    return [one for one in verdicts if one.fault is not None and one.fault.code in found]


def check_steps(
    client: WorkersClient, reader: ConnectorReader, steps: Sequence[Step]
) -> list[Verdict]:
    """A verdict for each step, in order. All of them share one request."""
    readings = reader.read(client, [step.identity for step in steps])
    hindered = {step.id: _find_hindrance(step, readings[step.identity]) for step in steps}
    free = [step for step in steps if hindered[step.id] is None]
    found: dict[str, Verdict] = {}
    if free and steps[0].request.name in (CREATE.name, CONFIGURE.name):
        try:
            live = reader.read_plain(client, [step.identity.key for step in free])
        except RequestFailed as failure:
            return [Verdict(step.id, step.evidence, failure.fault) for step in steps]
        found = {verdict.step: verdict for verdict in _validate(client, free, live)}
    return [
        found.get(step.id) or Verdict(step.id, step.evidence, hindered[step.id]) for step in steps
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
    what, code = ("exists already", "EXISTS") if creates else ("does not exist any more", "GONE")
    message = f"the connector {name} {what}"
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
    payload, now = step.payload, dict(live.config) if live else {}
    for key in payload.get("gone") or ():
        now.pop(key, None)
    now.update(payload.get("config") or payload.get("put") or {})
    for key in payload["secrets"]:
        if key not in now or is_masked(now[key]):
            now[key] = PLACEHOLDER
    now.update({CLASS: payload["class"], NAME: payload["name"]})
    return now


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
        said = parse(call, read_validation, answer.body)
    except RequestFailed as failure:
        return failure.fault
    exposed = [
        key
        for key in sorted((step.payload.get("config") or step.payload.get("put") or {}).keys())
        if is_secret(key, config[key], said.passwords)
    ]
    if exposed:
        return _make_exposed(exposed)
    guessed = PLACEHOLDER in config.values()
    faults = [
        one for one in said.faults if believe(one) and not (guessed and _LOGIN.search(one.message))
    ]
    return _make_invalid(step, faults) if faults else None


def _make_exposed(keys: Sequence[str]) -> Fault:
    return Fault(
        _EXPOSED,
        "; ".join(map(describe_plain_secret, keys)),
        FaultClass.DEFINITE,
        advice="; ".join(map(advise_secret, keys)),
    )


def _make_invalid(step: Step, faults: Sequence[ConfigFault]) -> Fault:
    return Fault(
        _INVALID,
        "; ".join(_describe_faults(step, faults)),
        FaultClass.DEFINITE,
        advice="correct these configs",
    )


def _describe_faults(step: Step, faults: Sequence[ConfigFault]) -> Iterator[str]:
    """Each fault with its place in the block."""
    attributes = {NAME: "name", CLASS: "class"}
    for one in faults:
        where = "secret_config" if one.key in step.payload["secrets"] else "config"
        place = attributes.get(one.key) or f'{where}["{one.key}"]'
        said = " ".join(mask_secrets(one.message).split()).rstrip(".")
        yield f"{place}: {said if len(said) <= MAX_MESSAGE else said[:MAX_MESSAGE] + '…'}"


def _explain_refusal(fault: Fault, step: Step) -> Fault:
    """A refusal of the whole validation; nothing was executed, whatever the status says."""
    if fault.kind in (FaultClass.PERMISSION, FaultClass.DEFINITE):
        return fault
    kind = FaultClass.NOT_APPLIED
    advice = fault.advice
    if "Failed to find any class" in fault.message or "no class" in fault.message.lower():
        kind, advice = FaultClass.DEFINITE, f"install the plugin {step.payload['class']}"
    return replace(fault, kind=kind, advice=advice)
