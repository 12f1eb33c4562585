"""Sort the obligations of a log by the proof that it has of each.

A setting is removed only if the log shows the step that set it, in a recorded and approved plan.
Somebody else may have written to the log, and a record that merely claims a setting must not remove
one that an operator made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ..audit.event import Glance, Record, RecordKind
from ..audit.index import Seen, get_identity
from ..core.change import Outcome, OutcomeStatus
from ..core.errors import StorageError
from ..core.resource import SETTING, Fault, FaultClass, Pending
from ..plan.approval import RULE, compute_approval, seal_plan
from ..plan.codec import read_recorded_plan
from ..plan.model import Plan, Removal
from .report import Work

DUE = "its {task} has ended: this apply removes it"
LATER = "once its {task} has ended, this apply removes it"
NEVER_SENT = "it was never set; the next apply records that"
UNFOUNDED = "no approved plan in this log set it, so it is left alone"


class Owed(Struct, frozen=True):
    """The open obligations of a log."""

    open: tuple[Record, ...] = ()
    """Those that can be acted on."""
    never_sent: tuple[Record, ...] = ()
    """Those without an intent, so that nothing was ever set."""
    unfounded: tuple[Record, ...] = ()
    """Those that no approved step explains."""


class _Grounds(Struct):
    """What the log has of one run."""

    plan: Record | None = None
    """The first record with its plan."""
    approval: Record | None = None
    """The first record of its approval."""
    intents: dict[str, Record] = field(default_factory=dict)
    """Step id -> its last intent."""


def find_owed(records: Iterable[Seen], obligations: Sequence[Record]) -> Owed:
    """Sort the open obligations of a log. records: all of it, trusted, in order."""
    # A task needs no grounds: asking about it sends nothing that changes anything.
    settings = find_settings(obligations)
    if not settings:
        return Owed(tuple(obligations))
    runs = {obligation.run: _Grounds() for obligation in settings}
    for record in records:
        if record.run in runs:
            _collect_grounds(runs[record.run], record)
    never_sent = [o for o in settings if not _find_intents(o, runs[o.run])]
    plans = {run: _read_approved_plan(grounds) for run, grounds in runs.items()}
    unfounded = [
        o for o in settings if o not in never_sent and not _is_founded(o, runs[o.run], plans[o.run])
    ]
    remaining = tuple(o for o in obligations if o not in never_sent and o not in unfounded)
    return Owed(remaining, tuple(never_sent), tuple(unfounded))


def find_settings(obligations: Iterable[Record]) -> tuple[Record, ...]:
    """The obligations to remove a setting."""
    return tuple(o for o in obligations if o.body["what"] == SETTING)


def _collect_grounds(grounds: _Grounds, record: Seen) -> None:
    if record.kind == RecordKind.PLAN and grounds.plan is None:
        grounds.plan = record.read_whole()
    elif record.kind == RecordKind.APPROVAL and grounds.approval is None:
        grounds.approval = record.read_whole()
    elif record.kind == RecordKind.INTENT:
        grounds.intents[record.body["step"]] = record.read_whole()
    if isinstance(record, Glance):
        record.forget()


def _find_intents(obligation: Record, grounds: _Grounds) -> list[Record]:
    """The intents that the obligation can belong to: later ones of its object."""
    identity = get_identity(obligation)
    intents = grounds.intents.values()
    return [i for i in intents if i.seq > obligation.seq and get_identity(i) == identity]


def _read_approved_plan(grounds: _Grounds) -> Plan | None:
    """The plan of a run, if it is the one that was approved."""
    if grounds.plan is None or grounds.approval is None:
        return None
    try:
        plan = read_recorded_plan(grounds.plan.body["plan"], grounds.plan.run)
        named = {grounds.plan.body["approval"], grounds.approval.body["approval"], plan.approval}
        # An approval by older rules cannot be computed again. Its records have to agree at least.
        sound = plan.rule != RULE or compute_approval(plan) == plan.approval
    except StorageError:
        return None
    return plan if sound and len(named) == 1 else None


def _is_founded(obligation: Record, grounds: _Grounds, plan: Plan | None) -> bool:
    """True if a step of the approved plan owes exactly this, and its intent followed."""
    if plan is None or grounds.approval is None or grounds.approval.seq > obligation.seq:
        return False
    body, identity = obligation.body, get_identity(obligation)
    instance = plan.instances.get(identity.instance)
    if instance is None or instance.facts.scope_id != body["scope_id"]:
        return False
    sent = {intent.body["step"] for intent in _find_intents(obligation, grounds)}
    return any(
        step.owes == body["ticket"] and step.identity == identity and step.id in sent
        for change in plan.effective
        for step in change.steps
    )


def end_never_sent(obligations: Iterable[Record]) -> tuple[Work, ...]:
    """The end of obligations whose run died between the obligation and the intent."""
    fault = Fault("NOT_SENT", "the run ended before anything was set", FaultClass.NOT_APPLIED)
    return tuple(
        Work(o, Outcome(o.body["ticket"], OutcomeStatus.FAILED, fault)) for o in obligations
    )


def add_owed_removals(plan: Plan, grounds: Owed, works: Iterable[Work]) -> Plan:
    """The plan with what earlier runs owe: settings whose task has ended, or may end by this plan.

    asked: how far the tasks of the open settings are.
    """
    # A change of the object may end its task, so the approval has to cover its setting, too.
    touched = {change.identity for change in plan.effective}
    notes = {_get_key(o): UNFOUNDED for o in grounds.unfounded}
    notes |= {_get_key(o): NEVER_SENT for o in grounds.never_sent}
    removals: list[Removal] = []
    for work in works:
        duty, identity = work.obligation, get_identity(work.obligation)
        if not (work.due or identity in touched):
            continue
        notes[_get_key(duty)] = (DUE if work.due else LATER).format(task=work.words.task)
        removals.append(Removal(identity, duty.body["address"], duty.run, duty.body["ticket"]))
    if not notes:
        return plan
    pending = tuple(_add_note(item, notes) for item in plan.pending)
    removals.sort(key=lambda removal: (removal.address, removal.ticket))
    return seal_plan(replace(plan, pending=pending, removals=tuple(removals)))


def drop_removals(plan: Plan) -> Plan:
    """The plan that leaves what earlier runs owe to a later plan."""
    return seal_plan(replace(plan, removals=()))


_Key = tuple[object, str, str]


def _get_key(obligation: Record) -> _Key:
    return get_identity(obligation), obligation.run, obligation.body["ticket"]


def _add_note(item: Pending, notes: dict[_Key, str]) -> Pending:
    note = notes.get((item.identity, item.run, item.step))
    return item if note is None or item.action != SETTING else replace(item, note=note)
