"""Send the requests of steps, or find out in a dry run what the registry would say.

A batch is a list of calls, each of which ends for itself. What can be known before a write is asked
before it, in the dry run and directly before the write alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault, FaultClass, Observed
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Secrets
from kafkaform.provider.http.exchange import Call, HttpAnswer

from . import requests
from .formats.normal_form import BY_REGISTRY_NAME, inspect_schema
from .kinds.contracts import METADATA, RULE_SET
from .kinds.registry import DELETE, REMOVE_LEVEL, REMOVE_MODE, RegistryFacts
from .kinds.schema import select_own_contract
from .reads import FIELDS, is_new_beside, observe_schema, read_inherited
from .requests import (
    BadAnswer,
    RegistryContext,
    SchemaVersion,
    is_half_deleted,
    is_missing,
    is_not_set,
    judge_refusal,
    lacks_endpoint,
    make_bad_answer,
    parse_answer,
    read_content,
    read_extras,
    read_schema_version,
    read_verdict,
)

Finding = Fault | None
"""Why a step is refused, None if it is not."""
DONE = Fault("DONE", "it is already so", FaultClass.CONVERGED)
"""What a check finds if nothing is left to send."""


def send_steps(
    context: RegistryContext,
    request: str,
    steps: Sequence[Step],
    *,
    dry: bool,
    secrets: Secrets = EMPTY,
) -> Mapping[str, Finding]:
    """What becomes of each step of one request, by its id. dry: nothing is written."""
    find, make_call = _SENDS[request]
    findings = {step.id: finding for step, finding in zip(steps, find(context, steps), strict=True)}
    if dry:
        return {step: None if finding is DONE else finding for step, finding in findings.items()}
    results = {step: _make_unsent(fault) for step, fault in findings.items()}
    unsent = [step for step in steps if findings[step.id] is None]
    writes = [make_call(step, secrets) for step in unsent]
    answers = context.client.ask_all(writes)
    for step, call, answer in zip(unsent, writes, answers, strict=True):
        results[step.id] = _judge_write(call, answer)
        if request == DELETE.name and isinstance(answer, HttpAnswer) and is_half_deleted(answer):
            results[step.id] = _delete_each(context, str(step.payload["subject"]))
    accepted = [
        (step, answer)
        for step, answer in zip(unsent, answers, strict=True)
        if results[step.id] is None and isinstance(answer, HttpAnswer)
    ]
    return {**results, **_find_ineffective(context, accepted)}


def _delete_each(context: RegistryContext, subject: str) -> Finding:
    """Delete the versions of a subject softly, one by one: Apicurio refuses to delete a subject
    whose newest version is deleted, although it has others."""
    listing = requests.list_versions(subject)
    numbers = parse_answer(context.ask(listing), listing, requests.read_numbers)
    if isinstance(numbers, Fault):
        return numbers
    for number in sorted(numbers):
        call = requests.delete_version(subject, number, permanent=False)
        if (fault := _judge_write(call, context.ask(call))) is not None:
            return fault
    return None


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


def _register(step: Step, secrets: Secrets) -> Call:
    references = step.payload.get("secrets") or EMPTY
    sensitive = {name: secrets[str(ref)].reveal() for name, ref in references.items()}
    return requests.register(step.payload, sensitive)


def _find_ineffective(
    context: RegistryContext, accepted: Sequence[tuple[Step, HttpAnswer]]
) -> Mapping[str, Finding]:
    """The steps with a contract that a registry has accepted without doing what they say."""
    pairs = [
        (step, answer)
        for step, answer in accepted
        # An imported version does not have to be the newest.
        if step.payload.keys() & {METADATA, RULE_SET} and "import" not in step.payload
    ]
    reads = [requests.read_version(str(step.payload["subject"]), None) for step, _ in pairs]
    findings: dict[str, Finding] = {}
    for (step, written), call, answer in zip(
        pairs, reads, context.client.ask_all(reads), strict=True
    ):
        newest = _read_version(step, call, answer)
        if isinstance(newest, SchemaVersion):
            findings[step.id] = _judge_newest(step, call, newest, written)
    return findings


def _judge_newest(step: Step, call: Call, newest: SchemaVersion, answer: HttpAnswer) -> Finding:
    subject, version = step.payload["subject"], newest.version
    id = answer.body.get("id") if isinstance(answer.body, dict) else None
    if id != newest.id:
        # A dry run cannot look up a version with secrets.
        return Fault(
            "OLDER_VERSION",
            f"the registry has taken this for an older version of {subject}, with the id {id}; "
            f"version {version} is the latest",
            FaultClass.DEFINITE,
            str(call),
            "delete the newer versions by hand, or change a property of the metadata",
        )
    if step.payload.get(METADATA) and not newest.metadata:
        return Fault(
            "METADATA_DROPPED",
            f"the registry has registered version {version} of {subject} without its metadata",
            FaultClass.DEFINITE,
            str(call),
            "use a version of the registry that keeps metadata, or remove metadata",
        )
    if step.payload.get(RULE_SET) and not newest.rule_set:
        # Confluent's Community edition drops them without a word (`RuleSetHandler`).
        return Fault(
            "RULES_DROPPED",
            f"the registry has registered version {version} of {subject} without its rules",
            FaultClass.DEFINITE,
            str(call),
            "rules need Confluent Enterprise with its resource extension for rules, or the "
            "Advanced package of Confluent Cloud; or remove rule_set",
        )
    return None


def check_imports(context: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """Refused if the version or the id is another schema's: in mode IMPORT, a registry replaces the
    version without a word."""
    findings = _check_references(context, steps)
    numbers = [step.payload["import"] for step in steps]
    reads = [
        requests.read_version(str(step.payload["subject"]), number["version"])
        for step, number in zip(steps, numbers, strict=True)
    ]
    contents = [requests.ask_content(number["id"]) for number in numbers]
    answers = context.client.ask_all([*reads, *contents])
    for step, call, version, content_call, content in zip(
        steps, reads, answers[: len(steps)], contents, answers[len(steps) :], strict=True
    ):
        if step.id not in findings:
            findings[step.id] = _judge_taken_version(context, step, call, version) or (
                _judge_taken_id(step, content_call, content)
            )
    return [findings[step.id] for step in steps]


def _judge_taken_version(
    context: RegistryContext, step: Step, call: Call, answer: HttpAnswer | Fault
) -> Finding:
    version = _read_version(step, call, answer)
    number = step.payload["import"]
    if not isinstance(version, SchemaVersion):
        return version
    if version.id == number["id"]:
        live = observe_schema(context, step.identity, version)
        # It is there already, such as after an import whose answer was lost.
        return DONE if isinstance(live, Observed) and _has_text(live, step) else None
    if number["version"] is None:
        return None
    return Fault(
        "VERSION_TAKEN",
        f"version {version.version} of {step.payload['subject']} has the id {version.id}",
        FaultClass.DEFINITE,
        str(call),
        "write the version that the schema has in the other registry, or delete this one first",
    )


def _judge_taken_id(step: Step, call: Call, answer: HttpAnswer | Fault) -> Finding:
    if isinstance(answer, HttpAnswer) and is_missing(answer):
        return None
    number = step.payload["import"]["id"]
    content = parse_answer(answer, call, lambda body: read_content(body, number))
    if isinstance(content, Fault):
        return content
    kind = BY_REGISTRY_NAME.get(content.kind)
    if kind is not None and kind.name == step.payload["format"]:
        text = inspect_schema(kind.name, content.schema, elsewhere=bool(content.references)).normal
        if text == step.payload["schema"]:
            return None
    return Fault(
        "ID_TAKEN",
        f"the id {number} belongs to another schema in this registry",
        FaultClass.DEFINITE,
        str(call),
        "import into a registry or a context in which the id is free",
    )


def _has_text(live: Observed, step: Step) -> bool:
    names = ("subject", "format", "schema", "references")
    return all(live.attributes[name] == step.payload[name] for name in names)


def check_schemas(context: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """Refused by the registry's own check of compatibility, or because the subject had this very
    schema before: no registry makes an older version the latest one again."""
    findings = _compare_versions(context, steps)
    findings |= _check_references(context, [step for step in steps if step.id not in findings])
    # Such a registry says of each schema with references that it is no schema.
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
        # Older registries compare a schema with the latest version alone.
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
    newest_versions = [
        _read_version(step, call, latest)
        for step, call, latest in zip(steps, reads, answers[: len(steps)], strict=True)
    ]
    inherited = read_inherited(
        context,
        {
            str(step.payload["subject"]): version
            for step, version in zip(steps, newest_versions, strict=True)
            if isinstance(version, SchemaVersion)
            and (step.payload.get(METADATA) is not None or step.payload.get(RULE_SET) is not None)
        },
    )
    for step, newest, lookup, equal_answer in zip(
        steps, newest_versions, lookups, answers[len(steps) :], strict=True
    ):
        equal = _read_version(step, lookup, equal_answer)
        fault = next((result for result in (newest, equal) if isinstance(result, Fault)), None)
        if fault is not None:
            findings[step.id] = fault
        elif isinstance(newest, SchemaVersion):
            settings = inherited.get(str(step.payload["subject"]), EMPTY)
            settings = settings if isinstance(settings, FrozenMap) else EMPTY
            judged = _judge_versions(context, step, newest, equal, settings)
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


def _has_contract(live: Observed, step: Step) -> bool:
    """True if the newest version says what the step does. Nobody can tell of secrets."""
    if step.payload.get("secrets"):
        return False
    own = select_own_contract(live.attributes, live.foreign)
    declared = [name for name in (METADATA, RULE_SET) if step.payload.get(name) is not None]
    return all(own.get(name, EMPTY) == step.payload[name] for name in declared)


def _judge_versions(
    context: RegistryContext,
    step: Step,
    newest: SchemaVersion,
    equal: object,
    inherited: FrozenMap,
) -> Finding:
    live = observe_schema(context, step.identity, newest, inherited)
    # Apicurio would take another spelling of the same schema for a new version.
    if isinstance(live, Observed) and _has_text(live, step) and _has_contract(live, step):
        return DONE
    if not isinstance(equal, SchemaVersion) or equal.version >= newest.version:
        return None
    if is_new_beside(step.payload, equal, newest):
        return None
    subject, old, new = step.payload["subject"], equal.version, newest.version
    return Fault(
        "OLDER_VERSION",
        f"this schema is version {old} of {subject}, and version {new} is the latest: a registry "
        "does not register a schema twice",
        FaultClass.DEFINITE,
        str(requests.look_up(step.payload)),
        f"delete the versions after {old} (kafkaform alter schema), or change something harmless "
        "in the schema, such as its doc",
    )


# ── deletions ───────────────────────────────────────────────────────────────────────────


def check_deletions(context: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """Refused if there is no such subject any more."""
    reads = [requests.list_versions(str(step.payload["subject"])) for step in steps]
    answers = context.client.ask_all(reads)
    return [_judge_write(call, answer) for call, answer in zip(reads, answers, strict=True)]


def check_version_deletions(context: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """Refused if there is no such version any more."""
    reads = [requests.read_version(*_get_version(step)) for step in steps]
    answers = context.client.ask_all(reads)
    return [_judge_write(call, answer) for call, answer in zip(reads, answers, strict=True)]


def check_nothing(_: RegistryContext, steps: Sequence[Step]) -> list[Finding]:
    """It was deleted softly a moment ago; nothing but the request itself can tell more."""
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
    if not _removes(step):
        return None
    try:
        removed = {requests.SETTING_NAMES.get(attribute, "") for attribute in step.payload}
        extras = read_extras(answer.body, *FIELDS[name], *removed)
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


def _write_setting(step: Step, _: Secrets) -> Call:
    """The call that sets or removes a mode, or a level with further settings."""
    name, subject = _get_api_name(step), _get_subject(step)
    if _removes(step):
        assert subject is not None  # a registry always has a level and a mode
        return requests.delete_setting(name, subject)
    if name == "mode":
        body = {"mode": step.payload["mode"]}
        return requests.put_setting(name, subject, body, force=bool(step.payload.get("force")))
    settings = step.payload.without(["subject"])
    return requests.put_setting(name, subject, requests.make_settings_body(settings))


def _get_api_name(step: Step) -> str:
    return "mode" if "mode" in step.payload else "config"


def _get_subject(step: Step) -> str | None:
    subject = step.payload["subject"]
    return None if subject is None else str(subject)


def _removes(step: Step) -> bool:
    return step.request.name in (REMOVE_LEVEL.name, REMOVE_MODE.name)


def _delete(step: Step, *, permanent: bool) -> Call:
    return requests.delete_subject(str(step.payload["subject"]), permanent=permanent)


def _get_version(step: Step) -> tuple[str, int]:
    return str(step.payload["subject"]), int(step.payload["version"])


def _delete_version(step: Step, *, permanent: bool) -> Call:
    return requests.delete_version(*_get_version(step), permanent=permanent)


Check = Callable[[RegistryContext, Sequence[Step]], list[Finding]]
_SENDS: Mapping[str, tuple[Check, Callable[[Step, Secrets], Call]]] = {
    "RegisterSchema": (check_schemas, _register),
    "ImportSchema": (check_imports, _register),
    "DeleteSubject": (check_deletions, lambda step, _: _delete(step, permanent=False)),
    "DeleteSubjectPermanently": (check_nothing, lambda step, _: _delete(step, permanent=True)),
    "DeleteVersion": (
        check_version_deletions,
        lambda step, _: _delete_version(step, permanent=False),
    ),
    "DeleteVersionPermanently": (
        check_nothing,
        lambda step, _: _delete_version(step, permanent=True),
    ),
    "SetCompatibility": (check_settings, _write_setting),
    "DeleteCompatibility": (check_settings, _write_setting),
    "SetMode": (check_settings, _write_setting),
    "DeleteMode": (check_settings, _write_setting),
}
"""Request -> what is asked before it, and its call."""
