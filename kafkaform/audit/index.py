"""Index the log: what is open, what can be resumed, what can be deleted, and who set what.

One pass over the records makes the index. It can go on from the index of the records before, such
as one that a checkpoint keeps, and then says the same as a pass over all of them.

A run is open until its run_end says complete, or until a run under another approval begins. Runs
that follow each other under one approval are one run: each resumes the one before it.

Origins are the records that prove that an object is ours, because they created it or took it over.
An object of a system has at most one origin, the last one. It ends when the object is deleted,
forgotten or released, and when an edit takes its row out of the state. The number of an ended
origin in a row proves nothing: the object that has the name today belongs to somebody else.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from sys import intern
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import OutcomeStatus
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.resource import SETTING, Identity, Pending
from ..core.value import EMPTY, FrozenMap
from .records import Glance, Record, RecordKind, Seen, Unseen, parse_time, read_unseen
from .writes import (
    ENDING,
    MAKING,
    SUCCEEDED,
    ObjectWrites,
    WrittenPaths,
    WrittenTarget,
    read_target,
)

KEPT_RUNS = 1000
"""How many of the last runs are kept; of earlier ones, only those that left something open."""
MOVED, PUSHED = "state mv", "state push"
"""Commands that edit a state, as a record names them."""


class Origin(Struct, frozen=True):
    """The object that a record proves to be ours."""

    identity: Identity
    """Which object."""
    incarnation: str | None
    """The system's id of the object, None for kinds without one."""
    scope_id: str
    """The system that has it."""


class Origins(Struct):
    """The origins that are valid so far, while a log is read."""

    scopes: dict[str, str] = field(default_factory=dict)
    """Provider instance -> the system that its last step was sent to."""
    _held: dict[str, dict[Identity, tuple[int, Origin]]] = field(default_factory=dict)
    """System -> object -> number of the record, and what it proves."""
    _ended: dict[tuple[Identity, str], str] = field(default_factory=dict)
    """Object and system -> when its last origin ended."""

    def note_step(self, seq: int, time: str, identity: Identity, body: Mapping[str, Any]) -> None:
        """A step was applied or has started. seq, time: those of the record."""
        # A long log names the same few systems again and again.
        scope = intern(body["scope_id"])
        self.scopes[identity.instance] = scope
        origins = self._held.setdefault(scope, {})
        # Earlier versions did not record owners, so their logs do not show a release.
        owners = body.get("owners")
        if body["action"] in ENDING or (owners is not None and not owners):
            origins.pop(identity, None)
            self._ended[identity, scope] = time
        elif body["action"] in MAKING or body["adopts"]:
            was = body.get("forked")
            if was and was["time"] < self._ended.get((identity, scope), ""):
                # `audit mend` put the record behind a later delete: what it made was gone by then.
                return
            origins[identity] = seq, Origin(identity, body["incarnation"], scope)

    def note_edit(self, body: Mapping[str, Any]) -> None:
        """The state was edited outside of any step: an object that it lost has no origin."""
        # Earlier versions did not record what became of a row. A move kept it, and so did a push to
        # an empty place. After any other edit it is not certain, so its objects are not proven.
        if body.get("instance"):
            # The instance is forgotten as a whole, so it may be another system from now on.
            self.scopes.pop(body["instance"], None)
        for instance, scope in (body.get("scopes") or {}).items():
            self._complete_scope(instance, intern(scope))
        has_row = body.get("reason") == MOVED or (
            body.get("reason") == PUSHED and not body.get("version")
        )
        for item in body.get("objects", ()):
            removed = item["row"] is None if "row" in item else not has_row
            if removed:
                identity = Identity(item["instance"], item["kind"], item["key"])
                for origins in self._held.values():
                    origins.pop(identity, None)

    def _complete_scope(self, instance: str, scope: str) -> None:
        """Another id of the same system: what was proven there stays so."""
        half = self.scopes.get(instance, scope)
        self.scopes[instance] = scope
        if half == scope:
            return
        half_origins = self._held.get(half, {})
        origins = self._held.setdefault(scope, {})
        for identity in [identity for identity in half_origins if identity.instance == instance]:
            seq, origin = half_origins.pop(identity)
            origins[identity] = seq, replace(origin, scope_id=scope)

    def restore(self, origins: Mapping[int, Origin]) -> None:
        """Take over what was proven before."""
        for seq, origin in origins.items():
            self._held.setdefault(origin.scope_id, {})[origin.identity] = seq, origin

    def collect_origins(self) -> dict[int, Origin]:
        """Number of a record -> what it proves."""
        return {seq: origin for origins in self._held.values() for seq, origin in origins.values()}


TERMINAL = frozenset(status.value for status in OutcomeStatus if status != OutcomeStatus.UNKNOWN)
_Key = tuple[str, str, int]
"""Run, step, attempt."""


class MendedLog(Exception):
    """The index of the records before is not enough: `audit mend` put records of another branch
    behind them."""


class LoggedRun(Struct, frozen=True):
    """One run in the log."""

    run: str
    """Its id."""
    approval: str
    """The digest that was approved."""
    time: str
    """When it ended, or when it began if it has no end."""
    complete: bool = False
    """Every step was applied or started."""
    planned: Head | None = None
    """The record with its plan."""
    plan: FrozenMap | None = None
    """The plan as recorded, only while something of the run is open."""
    command: str = ""
    """The command that it was."""


class OpenRun(Struct, frozen=True):
    """A run that can be resumed."""

    run: str
    """The id of the first run under this approval."""
    approval: str
    """The digest that was approved."""
    plan: FrozenMap | None
    """The plan as recorded, None if the run died before it."""
    outcomes: Mapping[str, Record]
    """Step id -> its last terminal record, `outcome` or `recover`, of this run and of those that
    resumed it."""
    members: frozenset[str] = frozenset()
    """The ids of all runs under this approval since the first of them."""


class Growth(Struct, frozen=True):
    """What a log has that its last checkpoint does not cover."""

    size: int = 0
    """Bytes of the records."""
    appends: int = 0
    """How often something was appended."""
    stored: tuple[str, ...] = ()
    """The names of the checkpoints that are stored, the oldest first."""
    used: str | None = None
    """The one that the index began with, None if all records were read."""
    unproven: bool = False
    """A record after the one that the state follows from names a checkpoint."""


class LogIndex(Struct, frozen=True):
    """What one pass over the log found."""

    head: Head = GENESIS
    """The end of the log."""
    open_intents: tuple[Record, ...] = ()
    """Intents without a terminal outcome, in log order."""
    obligations: tuple[Record, ...] = ()
    """Obligations that are not discharged."""
    open_run: OpenRun | None = None
    """The run that can be resumed."""
    runs: Mapping[str, LoggedRun] = field(default_factory=dict)
    """Run id -> run, in the order of their begin: the last ones, and those with something open."""
    grounds: tuple[Record, ...] = ()
    """Plans and approvals of the runs with something open, and the intents that follow an open
    obligation to remove a setting, in log order."""
    origins: Mapping[int, Origin] = field(default_factory=dict)
    """Number of each record that proves that an object is ours today -> the proof."""
    scopes: Mapping[str, str] = field(default_factory=dict)
    """Provider instance -> the system that its last applied step was sent to."""
    unsaved: tuple[Record, ...] = ()
    """Successful steps and edits after the head that the state keeps, in log order: the state may
    lack their effect."""
    vague: int = 0
    """How many edits do not say what became of the state and so cannot be repeated from the log;
    those of earlier versions."""
    unseen: tuple[Unseen, ...] = ()
    """What the last verification did not see as it was applied."""
    writes: Mapping[Identity, ObjectWrites] = field(default_factory=dict)
    """Object -> what was written to it from here."""
    growth: Growth = Growth()
    """How much was read to make it."""

    def find_last_run(self, approval: str) -> LoggedRun | None:
        """The last run under this approval, complete or not; None if there was none."""
        runs = [run for run in self.runs.values() if run.approval == approval]
        return runs[-1] if runs else None


def index_log(
    records: Iterable[Seen], saved: Head | None = None, start: LogIndex | None = None
) -> LogIndex:
    """The index of a log. records: all of it, trusted, in order; those after `start` if the index
    of the records before is given. saved: the state's audit head.

    Raises StorageError for a record of another version that lacks a member, and MendedLog.
    """
    indexer = Indexer.make(saved, start)
    for record in records:
        indexer.read(record)
    return indexer.make_index()


def list_pending(index: LogIndex) -> tuple[Pending, ...]:
    """What earlier runs left open, as the planner needs it: work whose end nobody saw, and open
    intents, with what they would have made."""
    work = (
        Pending(
            get_identity(duty),
            duty.run,
            duty.body["ticket"],
            duty.body["what"],
            EMPTY,
            parse_time(duty.time),
        )
        for duty in index.obligations
    )
    intents = (
        Pending(
            get_identity(intent),
            intent.run,
            intent.body["step"],
            intent.body["action"],
            intent.body["target"] or EMPTY,
            parse_time(intent.time),
            intent.body["incarnation"],
        )
        for intent in index.open_intents
    )
    return (*work, *intents)


def get_identity(record: Seen) -> Identity:
    """The object of an intent, outcome, recover, obligation or discharged record."""
    body = record.body
    return Identity(intern(body["instance"]), intern(body["kind"]), intern(body["key"]))


def list_instances(record: Seen) -> set[str]:
    """The provider instances whose objects a record is about."""
    if record.kind == RecordKind.STATE:
        return {str(item["instance"]) for item in record.body.get("objects", ())}
    return {str(record.body["instance"])}


def is_vague(record: Seen) -> bool:
    """True for an edit that does not say what became of each object, as in earlier versions."""
    return any("row" not in item for item in record.body.get("objects", ()))


def get_run(record: Seen) -> str:
    """The run whose step a record is about: a recovery closes intents of an earlier one."""
    return str(record.body.get("of_run", record.run))


class _OpenIntent(Struct, frozen=True):
    """An intent without a terminal outcome."""

    record: Seen
    """The intent."""
    target: WrittenTarget
    """What its change leads to."""


class Indexer(Struct):
    """The mutable half of `index_log`: a handler for each kind that matters, others are skipped.

    A record that may be needed as a whole is kept as its line until it is certain that it is not.
    """

    saved: int
    """The number of the record that the state is anchored at."""
    resumed: bool = False
    """The records before were not read."""
    head: Head = GENESIS
    """The last record that was read."""
    intents: dict[_Key, _OpenIntent] = field(default_factory=dict)
    """The intents without a terminal outcome."""
    obligations: dict[int, Seen] = field(default_factory=dict)
    """The obligations that are not discharged, by number."""
    origins: Origins = field(default_factory=Origins)
    """What proves that objects are ours."""
    runs: dict[str, LoggedRun] = field(default_factory=dict)
    """Run id -> run, in the order of their (last) begin."""
    plans: dict[str, list[Seen]] = field(default_factory=dict)
    """Run id -> the first record with its plan, and the last one if there are several."""
    approvals: dict[str, Seen] = field(default_factory=dict)
    """Run id -> the first record of its approval."""
    settings: dict[int, str] = field(default_factory=dict)
    """Number of each open obligation to remove a setting -> its run."""
    owing: dict[str, dict[str, Seen]] = field(default_factory=dict)
    """Run with an open obligation to remove a setting -> step -> its last intent since then."""
    unsaved: dict[int, Seen] = field(default_factory=dict)
    """The records whose effect the state may lack, by number."""
    unsaved_runs: set[str] = field(default_factory=set)
    """The runs that these are about."""
    vague: int = 0
    """Edits that cannot be repeated."""
    first: str | None = None
    """The first of the runs under the approval that is open, None if none is open."""
    members: set[str] = field(default_factory=set)
    """All runs under that approval."""
    outcomes: dict[str, Seen] = field(default_factory=dict)
    """The ends of their steps, by step."""
    unseen: tuple[Unseen, ...] = ()
    """What the last verification did not see."""
    writes: WrittenPaths = field(default_factory=WrittenPaths)
    """What was written to objects."""

    @classmethod
    def make(cls, saved: Head | None, start: LogIndex | None = None) -> Indexer:
        """The indexer before its first record. start: the index of the records that are not read
        again."""
        indexer = cls(saved.seq if saved else 0)
        if start is not None:
            indexer._restore(start)
        return indexer

    def _restore(self, start: LogIndex) -> None:
        self.resumed, self.head = True, start.head
        for intent in start.open_intents:
            self._add_intent(intent)
        self.origins.restore(start.origins)
        self.origins.scopes |= start.scopes
        self.runs = {name: replace(run, plan=None) for name, run in start.runs.items()}
        for duty in start.obligations:
            self._read_obligation(duty)
        for record in start.grounds:
            if record.kind == RecordKind.PLAN:
                self._add_plan(record)
            elif record.kind == RecordKind.APPROVAL:
                self._read_approval(record)
            elif record.run in self.owing:
                self.owing[record.run][record.body["step"]] = record
        for record in start.unsaved:
            self._note_unsaved(record)
        self.vague, self.unseen = start.vague, start.unseen
        if start.open_run is not None:
            self.first, self.members = start.open_run.run, set(start.open_run.members)
            self.outcomes = dict(start.open_run.outcomes)
        self.writes.restore(start.writes)

    def read(self, record: Seen) -> None:
        """Take in the next record. Raises StorageError, MendedLog."""
        self.head = Head(record.seq, record.hash)
        handler = _HANDLERS.get(record.kind)
        if handler is None:
            return
        try:
            if self.resumed and ("forked" in record.body or "fork" in record.body):
                raise MendedLog
            handler(self, record)
        except (KeyError, TypeError) as error:
            raise StorageError(
                f"record {record.seq} of the audit log ({record.kind}) lacks {error}",
                "It was written by another version of kafkaform; use that one or a newer one.",
            ) from None
        if isinstance(record, Glance):
            record.forget()

    def make_index(self) -> LogIndex:
        """The index of all records so far."""
        if self.head == GENESIS:
            return LogIndex()
        needed = self._list_needed()
        plans = {run: seen[-1].read_whole() for run, seen in self.plans.items() if run in needed}
        recent = [*self.runs][-KEPT_RUNS:]
        kept_runs = needed | set(recent)
        runs = {
            name: replace(run, plan=plans[name].body["plan"] if name in plans else None)
            for name, run in self.runs.items()
            if name in kept_runs
        }
        return LogIndex(
            self.head,
            tuple(intent.record.read_whole() for intent in self.intents.values()),
            tuple(duty.read_whole() for duty in self.obligations.values()),
            self._find_open_run(runs),
            runs,
            self._collect_grounds(needed),
            self.origins.collect_origins(),
            dict(self.origins.scopes),
            tuple(record.read_whole() for record in self.unsaved.values()),
            self.vague,
            self.unseen,
            self.writes.collect(kept_runs),
        )

    def _list_needed(self) -> set[str]:
        """The runs with something open."""
        started = {run for run, _, _ in self.intents}
        return {*self.members, *started, *self.unsaved_runs, *self.owing}

    def _collect_grounds(self, needed: Container[str]) -> tuple[Record, ...]:
        plans = (record for run, seen in self.plans.items() if run in needed for record in seen)
        approvals = (
            record for run, record in self.approvals.items() if run in needed and run in self.plans
        )
        intents = (intent for steps in self.owing.values() for intent in steps.values())
        records = {record.seq: record for record in (*plans, *approvals, *intents)}
        return tuple(records[seq].read_whole() for seq in sorted(records))

    def _find_open_run(self, runs: Mapping[str, LoggedRun]) -> OpenRun | None:
        if self.first is None:
            return None
        plans = (runs[run].plan for run in runs if run in self.members)
        plan = next((plan for plan in plans if plan is not None), None)
        outcomes = {step: record.read_whole() for step, record in self.outcomes.items()}
        approval = self.runs[self.first].approval
        return OpenRun(self.first, approval, plan, outcomes, frozenset(self.members))

    def _let_go(self, *runs: str) -> None:
        """Forget the plans of runs that have nothing open any more."""
        for run in runs:
            if not self._is_needed(run):
                self.plans.pop(run, None)

    def _is_needed(self, run: str) -> bool:
        """Whether the run has something open."""
        if run in self.members or run in self.unsaved_runs or run in self.owing:
            return True
        return any(run == started for started, _, _ in self.intents)

    def _forget_runs(self) -> None:
        """Forget the earliest runs, if there are many."""
        if len(self.runs) > 2 * KEPT_RUNS:
            for run in [*self.runs][:-KEPT_RUNS]:
                if not self._is_needed(run):
                    del self.runs[run]
                    self.approvals.pop(run, None)

    def _read_begin(self, record: Seen) -> None:
        approval = record.body["approval"]
        if self.first is None or self.runs[self.first].approval != approval:
            ended, self.first, self.members, self.outcomes = self.members, record.run, set(), {}
            self._let_go(*ended)
        self.members.add(record.run)
        # A run that is resumed under its own id becomes the last one: a dict keeps the old place of
        # a key that is only set again.
        before = self.runs.pop(record.run, None)
        planned = before.planned if before is not None else None
        command = record.body.get("command", "")
        self.runs[record.run] = LoggedRun(
            record.run, approval, record.time, planned=planned, command=command
        )
        self._forget_runs()

    def _read_plan(self, record: Seen) -> None:
        self._add_plan(record)
        run = self.runs.get(record.run)
        if run is not None and run.planned is None:
            self.runs[record.run] = replace(run, planned=self.head)

    def _add_plan(self, record: Seen) -> None:
        self.plans[record.run] = [*self.plans.get(record.run, [])[:1], record]

    def _read_approval(self, record: Seen) -> None:
        self.approvals.setdefault(record.run, record)

    def _read_end(self, record: Seen) -> None:
        if record.run not in self.runs:
            return
        complete = record.body["complete"]
        run = replace(self.runs[record.run], time=record.time, complete=complete)
        self.runs[record.run] = run
        if complete and record.run in self.members:
            ended, self.first, self.members, self.outcomes = self.members, None, set(), {}
            self._let_go(*ended)
        if not self._is_needed(record.run):
            # A run without an end may go on in records that `audit mend` puts behind others.
            self.approvals.pop(record.run, None)

    def _read_intent(self, record: Seen) -> None:
        self._add_intent(record)
        if record.run in self.owing:
            self.owing[record.run][record.body["step"]] = record

    def _add_intent(self, record: Seen) -> None:
        body = record.body
        key = (record.run, body["step"], body["attempt"])
        self.intents.pop(key, None)
        self.intents[key] = _OpenIntent(record, read_target(body))

    def _read_outcome(self, record: Seen) -> None:
        body = record.body
        if body.get("outcome") not in TERMINAL:
            return  # also a `recover` record that seals a torn append, and so closes nothing
        run = get_run(record)
        intent = self.intents.pop((run, body["step"], body["attempt"]), None)
        if run in self.members:
            self.outcomes[body["step"]] = record
        if body["outcome"] in SUCCEEDED:
            identity = get_identity(record)
            self.origins.note_step(record.seq, record.time, identity, body)
            self.writes.note_step(
                record, identity, run, intent.target if intent else WrittenTarget()
            )
            self._note_unsaved(record)
        self._let_go(run)

    def _read_edit(self, record: Seen) -> None:
        self.origins.note_edit(record.body)
        self.vague += is_vague(record)
        self._note_unsaved(record)

    def _note_unsaved(self, record: Seen) -> None:
        if record.seq > self.saved:
            self.unsaved[record.seq] = record
            self.unsaved_runs.add(get_run(record))

    def _read_verification(self, record: Seen) -> None:
        self.unseen = tuple(map(read_unseen, record.body["invisible"]))

    def _read_obligation(self, record: Seen) -> None:
        self.obligations[record.seq] = record
        if record.body["what"] == SETTING:
            self.settings[record.seq] = record.run
            self.owing.setdefault(record.run, {})

    def _read_discharge(self, record: Seen) -> None:
        number = record.body["discharges"]
        self.obligations.pop(number, None)
        run = self.settings.pop(number, None)
        if run is not None and run not in self.settings.values():
            del self.owing[run]
            self._let_go(run)


_HANDLERS: Mapping[str, Callable[[Indexer, Seen], None]] = {
    RecordKind.RUN_BEGIN: Indexer._read_begin,
    RecordKind.PLAN: Indexer._read_plan,
    RecordKind.APPROVAL: Indexer._read_approval,
    RecordKind.INTENT: Indexer._read_intent,
    RecordKind.OUTCOME: Indexer._read_outcome,
    RecordKind.RECOVER: Indexer._read_outcome,
    RecordKind.VERIFY: Indexer._read_verification,
    RecordKind.OBLIGATION: Indexer._read_obligation,
    RecordKind.DISCHARGED: Indexer._read_discharge,
    RecordKind.RUN_END: Indexer._read_end,
    RecordKind.STATE: Indexer._read_edit,
}
