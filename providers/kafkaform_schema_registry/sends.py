"""Send the requests of steps, or find out in a dry run what the registry would say.

A batch is a list of calls, each of which ends for itself. What can be known before a write is asked
before it, in the dry run and directly before the write alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault, FaultClass, Observed
from kafkaform.provider.http.exchange import Call, HttpAnswer

from . import requests
from .kinds.registry import RegistryFacts
from .reads import FIELDS, SETTING_OF, observe_schema
from .requests import (
    BadAnswer,
    RegistryContext,
    SchemaVersion,
    is_missing,
    is_not_set,
    judge_refusal,
    lacks_endpoint,
    make_bad_answer,
    parse_answer,
    read_extras,
    read_schema_version,
    read_verdict,
)

Finding = Fault | None
"""Why a step is refused, None if it is not."""
DONE = Fault("DONE", "it is already so", FaultClass.CONVERGED)
"""What a check finds if nothing is left to send."""


def send_steps(
    context: RegistryContext, request: str, steps: Sequence[Step], *, dry: bool
) -> Mapping[str, Finding]:
    """What becomes of each step of one request, by its id. dry: nothing is written."""
    find, make_call = _SENDS[request]
    findings = {step.id: finding for step, finding in zip(steps, find(context, steps), strict=True)}
    if dry:
        return {step: None if finding is DONE else finding for step, finding in findings.items()}
    results = {step: _make_unsent(fault) for step, fault in findings.items()}
    unsent = [step for step in steps if findings[step.id] is None]
    writes = [make_call(step) for step in unsent]
    answers = context.client.ask_all(writes)
    for step, call, answer in zip(unsent, writes, answers, strict=True):
        results[step.id] = _judge_write(call, answer)
    return results


def _judge_write(call: Call, answer: HttpAnswer | Fault) -> Finding:
    if isinstance(answer, Fault):
        return answer
    return None if answer.succeeded else judge_refusal(answer, call)


def _make_unsent(fault: Finding) -> Finding:
    """What was asked before a write failed, so the write was not sent."""
    if fault is None or fault is DONE:
        return None
    if fault.kind is not FaultClass.AMBIGUOUS:
        return fault
    return replace(fault, kind=FaultClass.NOT_APPLIED, message=f"not sent: {fault.message}")


# ── schemas ─────────────────────────────────────────────────────────────────────────────


def check_schemas(context: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """Refused by the registry's own check of compatibility, or because the subject had this very
    schema before: no registry makes an older version the latest one again."""
    findings = _compare_versions(context, steps)
    findings |= _check_references(context, [step for step in steps if step.id not in findings])
    if not RegistryFacts.of(context.facts).checks_references:
        findings |= {
            step.id: None
            for step in steps
            if step.id not in findings and step.payload["references"]
        }
    unsent = [step for step in steps if step.id not in findings]
    checks = [requests.check_all(step.payload) for step in unsent]
    answers = context.client.ask_all(checks)
    for step, call, answer in zip(unsent, checks, answers, strict=True):
        if isinstance(answer, HttpAnswer) and lacks_endpoint(answer):
            call = requests.check_latest(step.payload)
            answer = context.ask(call)
        findings[step.id] = _judge_check(str(step.payload["subject"]), call, answer)
    return [findings[step.id] for step in steps]


def _judge_check(subject: str, call: Call, answer: HttpAnswer | Fault) -> Finding:
    if isinstance(answer, HttpAnswer) and is_missing(answer):
        # There is nothing yet with which it would have to be compatible.
        return None
    verdict = parse_answer(answer, call, read_verdict)
    if isinstance(verdict, Fault):
        return verdict
    compatible, reasons = verdict
    if compatible:
        return None
    cause = "; ".join(reasons) or "it gives no reason"
    return Fault(
        "INCOMPATIBLE_SCHEMA",
        f"the schema is not compatible with the versions of {subject}: {cause}",
        FaultClass.DEFINITE,
        str(call),
        "change the schema so that it is compatible, or first give the subject another level",
    )


def _compare_versions(context: RegistryContext, steps: Sequence[Step]) -> dict[str, Finding]:
    """What follows from the versions that there are: the steps that are done, that cannot be done,
    and that cannot be asked about."""
    reads = [requests.read_version(str(step.payload["subject"]), None) for step in steps]
    lookups = [requests.look_up(step.payload) for step in steps]
    answers = context.client.ask_all([*reads, *lookups])
    findings: dict[str, Finding] = {}
    for step, call, latest, lookup, equal_answer in zip(
        steps, reads, answers[: len(steps)], lookups, answers[len(steps) :], strict=True
    ):
        newest = _read_version(step, call, latest)
        equal = _read_version(step, lookup, equal_answer)
        fault = next((result for result in (newest, equal) if isinstance(result, Fault)), None)
        if fault is not None:
            findings[step.id] = fault
        elif isinstance(newest, SchemaVersion):
            judged = _judge_versions(context, step, newest, equal)
            if judged is not None:
                findings[step.id] = judged
    return findings


def _check_references(context: RegistryContext, steps: Sequence[Step]) -> dict[str, Finding]:
    """The steps that refer to a version which does not exist, or about which nobody knows that: a
    version that was registered meanwhile can have another number than the plan foresaw."""
    pairs = [(step, reference) for step in steps for reference in step.payload["references"]]
    reads = [requests.read_version(str(r["subject"]), int(r["version"])) for _, r in pairs]
    findings: dict[str, Finding] = {}
    for (step, reference), call, answer in zip(
        pairs, reads, context.client.ask_all(reads), strict=True
    ):
        if isinstance(answer, HttpAnswer) and is_missing(answer):
            findings[step.id] = Fault(
                "REFERENCE_MISSING",
                f"it refers to version {reference['version']} of {reference['subject']}, which "
                "does not exist",
                FaultClass.DEFINITE,
                str(call),
                "plan again",
            )
        elif (fault := _judge_write(call, answer)) is not None:
            findings[step.id] = fault
    return findings


def _read_version(
    step: Step, call: Call, answer: HttpAnswer | Fault
) -> SchemaVersion | Fault | None:
    """None if there is no such version."""
    if isinstance(answer, HttpAnswer) and is_missing(answer):
        return None
    subject = str(step.payload["subject"])
    return parse_answer(answer, call, lambda body: read_schema_version(body, subject))


def _judge_versions(
    context: RegistryContext, step: Step, newest: SchemaVersion, equal: object
) -> Finding:
    live = observe_schema(context, step.identity, newest)
    # Apicurio would take another spelling of the same schema for a new version.
    if isinstance(live, Observed) and live.attributes == step.payload:
        return DONE
    if not isinstance(equal, SchemaVersion) or equal.version >= newest.version:
        return None
    subject, old, new = step.payload["subject"], equal.version, newest.version
    return Fault(
        "OLDER_VERSION",
        f"this schema is version {old} of {subject}, and version {new} is the latest: a registry "
        "does not register a schema twice",
        FaultClass.DEFINITE,
        str(requests.look_up(step.payload)),
        f"delete the versions after {old} by hand, or change something harmless in "
        "the schema, such as its doc",
    )


# ── deletions ───────────────────────────────────────────────────────────────────────────


def check_deletions(context: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """Refused if there is no such subject any more."""
    reads = [requests.list_versions(str(step.payload["subject"])) for step in steps]
    answers = context.client.ask_all(reads)
    return [_judge_write(call, answer) for call, answer in zip(reads, answers, strict=True)]


def check_nothing(_: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """The subject was deleted a moment ago; nothing but the request itself can tell more."""
    return [None for _ in steps]


# ── levels and modes ────────────────────────────────────────────────────────────────────


def check_settings(context: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """Refused if the setting cannot be read, or if its removal takes others with it."""
    reads = [requests.read_setting(_get_api_name(step), _get_subject(step)) for step in steps]
    answers = context.client.ask_all(reads)
    return [_judge_setting(*arguments) for arguments in zip(steps, reads, answers, strict=True)]


def _judge_setting(step: Step, call: Call, answer: HttpAnswer | Fault) -> Finding:
    if isinstance(answer, Fault):
        return answer
    name, subject = _get_api_name(step), _get_subject(step)
    if is_not_set(answer):
        return None
    if not answer.succeeded:
        return judge_refusal(answer, call)
    if _get_value(step) is not None:
        return None
    try:
        extras = read_extras(answer.body, *FIELDS[name])
    except BadAnswer as error:
        return make_bad_answer(error, call)
    if not extras:
        return None
    return Fault(
        "OTHER_SETTINGS",
        f"the {name} of {subject} has further settings that would be removed, too: "
        f"{', '.join(extras[:5])}",
        FaultClass.DEFINITE,
        str(call),
        "remove these first, or keep the level in the block",
    )


def write_setting(step: Step) -> Call:
    """The call that sets or removes a level or a mode."""
    name, subject, value = _get_api_name(step), _get_subject(step), _get_value(step)
    if value is None:
        assert subject is not None  # a registry always has a level and a mode
        return requests.delete_setting(name, subject)
    return requests.put_setting(name, subject, {_get_attribute(step): value})


def _get_attribute(step: Step) -> str:
    return next(name for name in SETTING_OF if name in step.payload)


def _get_api_name(step: Step) -> str:
    return SETTING_OF[_get_attribute(step)]


def _get_subject(step: Step) -> str | None:
    subject = step.payload["subject"]
    return None if subject is None else str(subject)


def _get_value(step: Step) -> str | None:
    value = step.payload[_get_attribute(step)]
    return None if value is None else str(value)


def _delete(step: Step, *, permanent: bool) -> Call:
    return requests.delete_subject(str(step.payload["subject"]), permanent=permanent)


Check = Callable[[RegistryContext, Sequence[Step]], list[Finding]]
_SENDS: Mapping[str, tuple[Check, Callable[[Step], Call]]] = {
    "RegisterSchema": (check_schemas, lambda step: requests.register(step.payload)),
    "DeleteSubject": (check_deletions, lambda step: _delete(step, permanent=False)),
    "DeleteSubjectPermanently": (check_nothing, lambda step: _delete(step, permanent=True)),
    "SetCompatibility": (check_settings, write_setting),
    "DeleteCompatibility": (check_settings, write_setting),
    "SetMode": (check_settings, write_setting),
    "DeleteMode": (check_settings, write_setting),
}
"""Request -> what is asked before it, and its call."""
