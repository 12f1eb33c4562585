"""Index the log: what is open, what can be resumed, what can be deleted.

A run is open until its run_end says complete, or until a run under another approval begins. Runs
that follow each other under one approval are one run: each resumes the one before it.

Origins are the records that prove that an object is ours, because they created it or took it over.
An object of a system has at most one origin, the last one. It ends when the object is deleted,
forgotten or released, and when an edit takes its row out of the state. The number of an ended
origin in a row proves nothing: the object that has the name today belongs to somebody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from sys import intern
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import Action, OutcomeStatus
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.resource import Identity, Pending
from ..core.value import EMPTY, FrozenMap
from .event import Glance, Record, RecordKind, Unseen, parse_time, read_unseen

MAKING = frozenset({Action.CREATE.value, Action.ADOPT.value, Action.IMPORT.value})
ENDING = frozenset({Action.DELETE.value, Action.FORGET.value})
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
        """The id of a system of which only a half was recorded: what was proven there stays so."""
        half = self.scopes.get(instance, scope)
        self.scopes[instance] = scope
        if half == scope:
            return
        half_origins = self._held.get(half, {})
        origins = self._held.setdefault(scope, {})
        for identity in [identity for identity in half_origins if identity.instance == instance]:
            seq, origin = half_origins.pop(identity)
            origins[identity] = seq, replace(origin, scope_id=scope)

    def collect_origins(self) -> dict[int, Origin]:
        """Number of a record -> what it proves."""
        return {seq: origin for origins in self._held.values() for seq, origin in origins.values()}


APPLIED = OutcomeStatus.APPLIED.value
STARTED = OutcomeStatus.STARTED.value
SUCCEEDED = (APPLIED, STARTED)
TERMINAL = frozenset(status.value for status in OutcomeStatus if status != OutcomeStatus.UNKNOWN)
Seen = Record | Glance
_Key = tuple[str, str, int]
"""Run, step, attempt."""


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
    """Run id -> run."""
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

    def find_last_run(self, approval: str) -> LoggedRun | None:
        """The last run under this approval, complete or not; None if there was none."""
        runs = [run for run in self.runs.values() if run.approval == approval]
        return runs[-1] if runs else None


Reader = Callable[[Head | None], Iterable[Seen]]
"""Reads all of a log, trusted, in order. Raises StorageError if it lacks the head that is given."""


def index_log(read: Reader, saved: Head | None = None) -> LogIndex:
    """The index of a log, which is read once, and twice if something of it is open. saved: the
    state's audit head.

    Raises StorageError for a record of another version that lacks a member.
    """
    scan = _Pass(saved.seq if saved else 0)
    for record in read(saved):
        scan.read(record)
    return LogIndex() if scan.head == GENESIS else scan.make_index(read)


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


class _Pass(Struct):
    """The mutable half of `index_log`: a handler for each kind that matters, others are skipped."""

    saved: int
    """The number of the record that the state is anchored at."""
    head: Head = GENESIS
    """The last record that was read."""
    intents: dict[_Key, int] = field(default_factory=dict)
    """Numbers of the intents without a terminal outcome."""
    obligations: dict[int, None] = field(default_factory=dict)
    """Numbers of the obligations that are not discharged."""
    origins: Origins = field(default_factory=Origins)
    """What proves that objects are ours."""
    runs: dict[str, LoggedRun] = field(default_factory=dict)
    """Run id -> run, in the order of their (last) begin."""
    plans: dict[str, int] = field(default_factory=dict)
    """Run id -> number of the record with its plan."""
    unsaved: dict[int, str] = field(default_factory=dict)
    """Numbers of the records whose effect the state may lack -> the run that each is about."""
    vague: int = 0
    """Edits that cannot be repeated."""
    first: str | None = None
    """The first of the runs under the approval that is open, None if none is open."""
    members: set[str] = field(default_factory=set)
    """All runs under that approval."""
    began: int = 0
    """The number of the record with which the first of them began."""
    unseen: tuple[Unseen, ...] = ()
    """What the last verification did not see."""

    def read(self, record: Seen) -> None:
        self.head = Head(record.seq, record.hash)
        handler = _HANDLERS.get(record.kind)
        if handler is None:
            return
        try:
            handler(self, record)
        except (KeyError, TypeError) as error:
            raise StorageError(
                f"record {record.seq} of the audit log ({record.kind}) lacks {error}",
                "It was written by another version of kafkaform; use that one or a newer one.",
            ) from None
        if isinstance(record, Glance):
            record.forget()

    def make_index(self, read: Reader) -> LogIndex:
        # Most runs end, and until then everything about them is as large as the log. So the first
        # pass keeps numbers only.
        started = {*self.members, *(run for run, _, _ in self.intents), *self.unsaved.values()}
        planned = {run: number for run, number in self.plans.items() if run in started}
        numbers = {*self.intents.values(), *self.obligations, *self.unsaved, *planned.values()}
        repeated = read(self.head) if numbers or self.first is not None else ()
        complete, outcomes = self._read_whole(repeated, numbers)
        plans = {run: complete[number].body["plan"] for run, number in planned.items()}
        return LogIndex(
            self.head,
            tuple(complete[number] for number in self.intents.values()),
            tuple(complete[number] for number in self.obligations),
            self._find_open_run(plans, outcomes),
            {name: replace(run, plan=plans.get(name)) for name, run in self.runs.items()},
            self.origins.collect_origins(),
            self.origins.scopes,
            tuple(complete[number] for number in self.unsaved),
            self.vague,
            self.unseen,
        )

    def _read_whole(
        self, records: Iterable[Seen], numbers: Set[int]
    ) -> tuple[Mapping[int, Record], Mapping[str, Record]]:
        """The records with the needed numbers, and the outcomes of the open run by step."""
        complete: dict[int, Record] = {}
        outcomes: dict[str, Record] = {}
        for record in records:
            if record.seq in numbers:
                complete[record.seq] = record.read_whole()
            if self._is_open_outcome(record):
                outcomes[record.body["step"]] = record.read_whole()
        return complete, outcomes

    def _is_open_outcome(self, record: Seen) -> bool:
        """True for the end of a step of the open run."""
        return (
            self.first is not None
            and self.began < record.seq <= self.head.seq
            and record.kind in _ENDS
            and record.body.get("outcome") in TERMINAL
            and get_run(record) in self.members
        )

    def _find_open_run(
        self, plans: Mapping[str, FrozenMap], outcomes: Mapping[str, Record]
    ) -> OpenRun | None:
        if self.first is None:
            return None
        open_plans = (plans[run] for run in self.runs if run in self.members & plans.keys())
        return OpenRun(self.first, self.runs[self.first].approval, next(open_plans, None), outcomes)

    def _read_begin(self, record: Seen) -> None:
        approval = record.body["approval"]
        if self.first is None or self.runs[self.first].approval != approval:
            self.first, self.members, self.began = record.run, set(), record.seq
        self.members.add(record.run)
        # A run that is resumed under its own id becomes the last one: a dict keeps the old place of
        # a key that is only set again.
        self.runs.pop(record.run, None)
        self.runs[record.run] = LoggedRun(
            record.run, approval, record.time, command=record.body.get("command", "")
        )

    def _read_plan(self, record: Seen) -> None:
        self.plans[record.run] = record.seq

    def _read_end(self, record: Seen) -> None:
        if record.run not in self.runs:
            return
        complete = record.body["complete"]
        run = replace(self.runs[record.run], time=record.time, complete=complete)
        self.runs[record.run] = run
        if complete and record.run in self.members:
            self.first, self.members = None, set()

    def _read_intent(self, record: Seen) -> None:
        body = record.body
        self.intents[record.run, body["step"], body["attempt"]] = record.seq

    def _read_outcome(self, record: Seen) -> None:
        body = record.body
        if body.get("outcome") not in TERMINAL:
            return  # also a `recover` record that seals a torn append, and so closes nothing
        self.intents.pop((get_run(record), body["step"], body["attempt"]), None)
        if body["outcome"] not in SUCCEEDED:
            return
        self.origins.note_step(record.seq, record.time, get_identity(record), body)
        if record.seq > self.saved:
            self.unsaved[record.seq] = get_run(record)

    def _read_edit(self, record: Seen) -> None:
        self.origins.note_edit(record.body)
        self.vague += is_vague(record)
        if record.seq > self.saved:
            self.unsaved[record.seq] = get_run(record)

    def _read_verification(self, record: Seen) -> None:
        self.unseen = tuple(map(read_unseen, record.body["invisible"]))

    def _read_obligation(self, record: Seen) -> None:
        self.obligations[record.seq] = None

    def _read_discharge(self, record: Seen) -> None:
        self.obligations.pop(record.body["discharges"], None)


_ENDS = (RecordKind.OUTCOME, RecordKind.RECOVER)
"""Kinds of records that say how a step has ended."""
_HANDLERS: Mapping[str, Callable[[_Pass, Seen], None]] = {
    RecordKind.RUN_BEGIN: _Pass._read_begin,
    RecordKind.PLAN: _Pass._read_plan,
    RecordKind.INTENT: _Pass._read_intent,
    RecordKind.OUTCOME: _Pass._read_outcome,
    RecordKind.RECOVER: _Pass._read_outcome,
    RecordKind.VERIFY: _Pass._read_verification,
    RecordKind.OBLIGATION: _Pass._read_obligation,
    RecordKind.DISCHARGED: _Pass._read_discharge,
    RecordKind.RUN_END: _Pass._read_end,
    RecordKind.STATE: _Pass._read_edit,
}
