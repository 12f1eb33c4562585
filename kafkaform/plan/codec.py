"""Plans as canonical JSON, for the saved file and for the audit log's `plan` record.

Structs are encoded field by field (`canonical.dumps`), so that a new field needs no code here.
"""

from __future__ import annotations

from typing import Any

from ..core import canonical
from ..core.canonical import Misfit, from_data
from ..core.change import Change
from ..core.errors import PlanRefused, StorageError
from ..core.finding import Finding, Harm, Level
from ..core.resource import Identity
from ..core.value import EMPTY, FrozenMap, Value
from ..state.codec import find_row_fault, has_secret
from .model import FORMAT, Plan


def encode(plan: Plan) -> bytes:
    """The saved plan file: format, plan, and a checksum against accidental damage."""
    # The checksum protects nobody from an attacker, who can compute it. Against one there are the
    # approval and `--expect` (architecture §4.4).
    body: dict[str, Any] = {"format": FORMAT, "plan": canonical.Rendered.make(plan)}
    body["checksum"] = canonical.digest(body)
    return (canonical.dumps(body) + "\n").encode("ascii")


def decode(data: bytes, source: str) -> Plan:
    """The plan in these bytes. where: the file, for messages. Raises PlanRefused for anything that
    is not, byte for byte, a plan file of this format."""
    advice = "Make a new plan with `kafkaform plan -out=FILE`."
    try:
        body = canonical.loads(data)
    except canonical.CanonicalError as error:
        raise PlanRefused(f"{source} is not a kafkaform plan: {error}", advice) from None
    if not isinstance(body, FrozenMap) or body.keys() != {"format", "plan", "checksum"}:
        raise PlanRefused(f"{source} is not a kafkaform plan", advice)
    if body["format"] != FORMAT:
        raise PlanRefused(
            f"{source} has plan format {body['format']}, this version reads {FORMAT}", advice
        )
    whole = (canonical.dumps(body) + "\n").encode("ascii")
    if data != whole or body["checksum"] != canonical.digest(body.without(["checksum"])):
        raise PlanRefused(f"{source} was altered after it was saved: its checksum differs", advice)
    try:
        return _read_plan(body["plan"])
    except Misfit as error:
        raise PlanRefused(f"{source} is not a plan of this version: {error}", advice) from None


def read_recorded_plan(data: Value, run: str) -> Plan:
    """The plan that the audit log has of this run, also of format 1. Raises StorageError if it is
    not a plan."""
    try:
        return _read_plan(_convert_old_plan(data))
    except Misfit as error:
        raise _make_unusable_error(run, error) from None


def read_instances(data: FrozenMap, run: str) -> set[str]:
    """The provider instances of a recorded plan, without decoding the rest of it. Raises
    StorageError if it is not a plan."""
    instances = data.get("instances", EMPTY)
    if type(instances) is not FrozenMap:
        raise _make_unusable_error(run, Misfit("is not an object").nest_in("instances"))
    return set(instances)


def _convert_old_plan(data: Value) -> Value:
    """A plan of format 1 as one of today: of what was judged, only blocks decide anything when its
    run is recovered. Any other data stays as it is."""
    if not isinstance(data, FrozenMap):
        return data
    changes, instances = data.get("changes"), data.get("instances")
    if not isinstance(changes, tuple) or not isinstance(instances, FrozenMap):
        return data
    named = {name: _convert_old_instance(instance) for name, instance in instances.items()}
    converted = tuple(map(_convert_old_change, changes))
    return data.with_items({"changes": converted, "instances": FrozenMap(named)})


_OLD_JUDGEMENTS = ("blocked", "notes", "losses", "risks", "findings")
"""Members of a change of format 1 that are findings today."""


def _convert_old_change(change: Value) -> Value:
    if not isinstance(change, FrozenMap) or not _has_old_judgements(change):
        return change
    blocked, findings = change.get("blocked"), list[Value]()
    if isinstance(blocked, FrozenMap):
        text, fix = str(blocked.get("reason")), str(blocked.get("advice"))
        finding = Finding("recorded-block", Level.BLOCK, Harm.NONE, text, fix=fix)
        encoded = canonical.loads(canonical.dumps(finding))
        assert isinstance(encoded, FrozenMap)
        findings.append(encoded.with_items({"block": blocked.get("kind")}))
    return change.without(_OLD_JUDGEMENTS).with_items({"findings": tuple(findings)})


def _has_old_judgements(change: FrozenMap) -> bool:
    # A finding of format 1 was a broken policy, which has no rule.
    findings = change.get("findings")
    first = findings[0] if isinstance(findings, tuple) and findings else EMPTY
    policies = isinstance(first, FrozenMap) and "policy" in first
    return policies or any(name in change for name in _OLD_JUDGEMENTS[:-1])


def _convert_old_instance(instance: Value) -> Value:
    if not isinstance(instance, FrozenMap) or "warnings" not in instance:
        return instance
    return instance.without(["warnings"]).with_items({"findings": ()})


def _make_unusable_error(run: str, error: Misfit) -> StorageError:
    return StorageError(
        f"the plan of run {run} in the audit log cannot be used: {error}",
        "It was edited, or written by a newer version of kafkaform: use that version, or restore "
        "the log and its state from the same backup. Nothing was sent.",
    )


def _read_plan(data: Value) -> Plan:
    """A plan that an apply can also record. Raises Misfit."""
    # Its parts must fit each other, and its rows must be allowed in a state. Whatever is not
    # refused here would be refused by a save, after the requests were sent.
    plan = from_data(Plan, data)
    for number, change in enumerate(plan.changes):
        member = f"changes[{number}]"
        for identity in (change.identity, *(step.identity for step in change.steps)):
            _refuse_unknown_instance(identity, plan, f"{member}.identity")
        _refuse_impossible_row(change, member)
    for number, removal in enumerate(plan.removals):
        _refuse_unknown_instance(removal.identity, plan, f"removals[{number}].identity")
    for number, output in enumerate(plan.outputs):
        if output.after is not None and has_secret(output.after.value):
            raise Misfit("contains a secret").nest_in(f"outputs[{number}].after.value")
    return plan


def _refuse_unknown_instance(identity: Identity, plan: Plan, member: str) -> None:
    if identity.instance not in plan.instances:
        raise Misfit("is not one of `instances`").nest_in(f"{member}.instance")


def _refuse_impossible_row(change: Change, position: str) -> None:
    row = change.row_after
    recorded: dict[str, tuple[str, Value]] = {
        "kind": ("identity.kind", change.identity.kind),
        "labels": ("labels", change.labels),
        "park": ("park", change.park),
        "depends_on": ("depends_on", change.depends_on),
        # None: the row ends with the change, so it needs no owner.
        "owners": ("row_after.owners", row.owners or None),
        "protected": ("row_after.protected", row.protected),
    }
    for name, (member, value) in recorded.items():
        expected = find_row_fault(name, value) if value is not None else ""
        if expected:
            raise Misfit(f"is not {expected}").nest_in(f"{position}.{member}")
