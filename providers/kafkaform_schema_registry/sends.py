"""Send the requests of steps, or find out in a dry run what the registry would say.

A batch is a list of calls, each of which ends for itself. What can be known before a write is asked
before it, in the dry run and directly before the write alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.provider.http.exchange import Answer, Call

from .api import calls
from .api.answers import BadAnswer, read_extras, read_schema_version, read_verdict
from .api.errors import (
    is_missing,
    is_not_set,
    judge_refusal,
    lacks_endpoint,
    make_bad_answer,
    parse_answer,
)
from .context import RegistryContext
from .reads import FIELDS, SETTING_OF

Faults = dict[str, Fault | None]
"""Step id -> why it is refused, None if it is not."""


def send_steps(
    context: RegistryContext, request: str, steps: Sequence[Step], *, dry: bool
) -> Faults:
    """What becomes of each step of one request. dry: nothing is written."""
    find, make_call = _SENDS[request]
    known = {step.id: fault for step, fault in zip(steps, find(context, steps), strict=True)}
    if dry:
        return known
    found: Faults = {step: fault and _make_unsent(fault) for step, fault in known.items()}
    left = [step for step in steps if known[step.id] is None]
    writes = [make_call(step) for step in left]
    answers = context.client.ask_all(writes)
    for step, call, answer in zip(left, writes, answers, strict=True):
        found[step.id] = _judge_write(call, answer)
    return found


def _judge_write(call: Call, answer: Answer | Fault) -> Fault | None:
    if isinstance(answer, Fault):
        return answer
    return None if answer.succeeded else judge_refusal(answer, call)


def _make_unsent(fault: Fault) -> Fault:
    """What was asked before a write failed, so the write was not sent."""
    if fault.kind is not FaultClass.AMBIGUOUS:
        return fault
    return replace(fault, kind=FaultClass.NOT_APPLIED, message=f"not sent: {fault.message}")


# ── schemas ─────────────────────────────────────────────────────────────────────────────


def check_schemas(context: RegistryContext, steps: Sequence[Step]) -> list[Fault | None]:
    """Refused by the registry's own check of compatibility, or because the subject had this very
    schema before: no registry makes an older version the latest one again."""
    found = _find_older(context, steps)
    left = [step for step in steps if step.id not in found]
    checks = [calls.check_all(step.payload) for step in left]
    answers = context.client.ask_all(checks)
    for step, call, answer in zip(left, checks, answers, strict=True):
        if isinstance(answer, Answer) and lacks_endpoint(answer):
            call = calls.check_latest(step.payload)
            answer = context.ask(call)
        found[step.id] = _judge_check(str(step.payload["subject"]), call, answer)
    return [found[step.id] for step in steps]


def _judge_check(subject: str, call: Call, answer: Answer | Fault) -> Fault | None:
    if isinstance(answer, Answer) and is_missing(answer):
        # There is nothing yet with which it would have to be compatible.
        return None
    found = parse_answer(answer, call, read_verdict)
    if isinstance(found, Fault):
        return found
    compatible, reasons = found
    if compatible:
        return None
    why = "; ".join(reasons) or "it gives no reason"
    return Fault(
        "INCOMPATIBLE_SCHEMA",
        f"the schema is not compatible with the versions of {subject}: {why}",
        FaultClass.DEFINITE,
        str(call),
        "change the schema so that it is compatible, or first give the subject another level",
    )


def _find_older(context: RegistryContext, steps: Sequence[Step]) -> Faults:
    """The steps whose schema the subject has already, or that cannot be asked about."""
    lookups = [calls.look_up(step.payload) for step in steps]
    answers = context.client.ask_all(lookups)
    found: Faults = {}
    for step, call, answer in zip(steps, lookups, answers, strict=True):
        subject = str(step.payload["subject"])
        if isinstance(answer, Answer) and is_missing(answer):
            continue
        version = parse_answer(answer, call, lambda body, s=subject: _read_number(body, s))
        if isinstance(version, Fault):
            found[step.id] = version
        else:
            found[step.id] = _judge_older(context, subject, version)
    return found


def _judge_older(context: RegistryContext, subject: str, version: int) -> Fault | None:
    call = calls.read_version(subject, None)
    latest = parse_answer(context.ask(call), call, lambda body: _read_number(body, subject))
    if isinstance(latest, Fault) or latest <= version:
        return latest if isinstance(latest, Fault) else None
    return Fault(
        "OLDER_VERSION",
        f"this schema is version {version} of {subject}, and version {latest} is the latest: a "
        "registry does not register a schema twice",
        FaultClass.DEFINITE,
        str(call),
        f"delete version {latest} and those before it down to {version + 1} by hand, or change the "
        "schema in something that harms nobody, such as its doc",
    )


def _read_number(body: object, subject: str) -> int:
    return read_schema_version(body, subject).version


# ── deletions ───────────────────────────────────────────────────────────────────────────


def check_deletions(context: RegistryContext, steps: Sequence[Step]) -> list[Fault | None]:
    """Refused if there is no such subject any more."""
    reads = [calls.list_versions(str(step.payload["subject"])) for step in steps]
    answers = context.client.ask_all(reads)
    return [_judge_write(call, answer) for call, answer in zip(reads, answers, strict=True)]


def check_nothing(_: RegistryContext, steps: Sequence[Step]) -> list[Fault | None]:
    """The subject was deleted a moment ago; nothing but the request itself can tell more."""
    return [None for _ in steps]


# ── levels and modes ────────────────────────────────────────────────────────────────────


def check_settings(context: RegistryContext, steps: Sequence[Step]) -> list[Fault | None]:
    """Refused if the setting cannot be read, or if its removal takes others with it."""
    reads = [calls.read_setting(_get_api_name(step), _get_subject(step)) for step in steps]
    answers = context.client.ask_all(reads)
    return [_judge_setting(context, *one) for one in zip(steps, reads, answers, strict=True)]


def _judge_setting(
    context: RegistryContext, step: Step, call: Call, answer: Answer | Fault
) -> Fault | None:
    if isinstance(answer, Fault):
        return answer
    name, subject = _get_api_name(step), _get_subject(step)
    if is_not_set(answer):
        # Apicurio answers 200 to the write, and keeps nothing.
        if context.facts.values.get("level_needs_subject"):
            return Fault(
                "NO_SUBJECT",
                f"the registry keeps a level only for a subject that exists, and {subject} does "
                "not",
                FaultClass.DEFINITE,
                str(call),
                "declare a schema of the subject, and name it in depends_on",
            )
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
        return calls.delete_setting(name, subject)
    return calls.put_setting(name, subject, {_get_attribute(step): value})


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
    return calls.delete_subject(str(step.payload["subject"]), permanent=permanent)


Check = Callable[[RegistryContext, Sequence[Step]], list[Fault | None]]
_SENDS: Mapping[str, tuple[Check, Callable[[Step], Call]]] = {
    "RegisterSchema": (check_schemas, lambda step: calls.register(step.payload)),
    "DeleteSubject": (check_deletions, lambda step: _delete(step, permanent=False)),
    "DeleteSubjectPermanently": (check_nothing, lambda step: _delete(step, permanent=True)),
    "SetCompatibility": (check_settings, write_setting),
    "DeleteCompatibility": (check_settings, write_setting),
    "SetMode": (check_settings, write_setting),
    "DeleteMode": (check_settings, write_setting),
}
"""Request -> what is asked before it, and its call."""
