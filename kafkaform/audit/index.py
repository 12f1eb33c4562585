"""One pass over the log: what is still open, what can be resumed, what may be deleted.

A run is open until its run_end says complete, or until a run under another approval starts.
Runs that follow each other under one approval are one: each resumes the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import OutcomeStatus
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.resource import Identity, Pending
from ..core.value import EMPTY, FrozenMap
from .event import Glance, Record, RecordKind, parse_time
from .provenance import Origin, Origins

APPLIED = OutcomeStatus.APPLIED.value
STARTED = OutcomeStatus.STARTED.value
SUCCEEDED = (APPLIED, STARTED)
TERMINAL = frozenset(status.value for status in OutcomeStatus if status != OutcomeStatus.UNKNOWN)
Seen = Record | Glance
_Key = tuple[str, str, int]
"""run, step, attempt"""


class LoggedRun(Struct, frozen=True):
    """One run. time: of its begin, or of its end if it had one; complete: every step was
    applied or started; plan: as recorded, kept only while something of the run is open."""

    run: str
    approval: str
    time: str
    complete: bool = False
    plan: FrozenMap | None = None


class OpenRun(Struct, frozen=True):
    """A run that can be resumed. run: the first one's id; plan: the recorded plan as data, None
    if the run died before it; outcomes: step id -> its last terminal record (`outcome`, or the
    `recover` that closed it), of this run and of those that resumed it."""

    run: str
    approval: str
    plan: FrozenMap | None
    outcomes: Mapping[str, Record]


class LogIndex(Struct, frozen=True):
    """What one pass over the log found.

    open_intents: without a terminal outcome, in log order; obligations: not discharged; runs:
    by run id; origins: seq of each record that proves that an object is ours today -> which;
    scopes: provider instance -> the system that its last applied step was sent to; unsaved:
    applied and started records, and edits, whose effect the state may lack (after the head that
    it keeps), in log order; vague: how many edits of the state do not say what became of it, as
    those of earlier versions, so that they cannot be done again from the log.
    """

    head: Head = GENESIS
    open_intents: tuple[Record, ...] = ()
    obligations: tuple[Record, ...] = ()
    open_run: OpenRun | None = None
    runs: Mapping[str, LoggedRun] = field(default_factory=dict)
    origins: Mapping[int, Origin] = field(default_factory=dict)
    scopes: Mapping[str, str] = field(default_factory=dict)
    unsaved: tuple[Record, ...] = ()
    vague: int = 0

    def find_last_run(self, approval: str) -> LoggedRun | None:
        """The last run under this approval, complete or not; None if there was none."""
        runs = [run for run in self.runs.values() if run.approval == approval]
        return runs[-1] if runs else None


def index_log(records: Iterable[Seen], saved: Head | None = None) -> LogIndex:
    """Read the whole log once. records: trusted, in order; saved: the state's audit head."""
    pass_ = _Pass(saved=saved.seq if saved else 0)
    for record in records:
        pass_.read(record)
    return pass_.make_index()


def list_pending(found: LogIndex) -> tuple[Pending, ...]:
    """What earlier runs left, as the planner sees it: work that was not seen to end, and open
    intents, with what they would have made and when."""
    work = (
        Pending(
            get_identity(duty),
            duty.run,
            duty.body["ticket"],
            duty.body["what"],
            EMPTY,
            parse_time(duty.time),
        )
        for duty in found.obligations
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
        for intent in found.open_intents
    )
    return (*work, *intents)


def get_identity(record: Seen) -> Identity:
    """The object of an intent, outcome, recover or obligation record."""
    body = record.body
    return Identity(intern(body["instance"]), intern(body["kind"]), intern(body["key"]))


def list_instances(record: Seen) -> set[str]:
    """The provider instances whose objects a record tells of."""
    if record.kind == RecordKind.STATE:
        return {str(item["instance"]) for item in record.body.get("objects", ())}
    return {str(record.body["instance"])}


def is_vague(record: Seen) -> bool:
    """Whether this edit of a state does not say what became of each object, as those of earlier
    versions."""
    return any("row" not in item for item in record.body.get("objects", ()))


def get_run(record: Seen) -> str:
    """The run whose step a record tells of: a recovery closes intents of an earlier one."""
    return str(record.body.get("of_run", record.run))


class _Pass:
    """The mutable half of `index_log`: one handler a kind, everything else is passed over."""

    def __init__(self, saved: int) -> None:
        self.saved = saved
        self.head = GENESIS
        self.intents: dict[_Key, Seen] = {}
        self.obligations: dict[int, Seen] = {}
        self.origins = Origins()
        self.runs: dict[str, LoggedRun] = {}
        self.plans: dict[str, Seen] = {}
        self.unsaved: list[Seen] = []
        self.vague = 0
        self.first: str | None = None
        self.members: set[str] = set()
        self.outcomes: dict[str, Seen] = {}
        self.handlers = {
            RecordKind.RUN_BEGIN: self._read_begin,
            RecordKind.PLAN: self._read_plan,
            RecordKind.INTENT: self._read_intent,
            RecordKind.OUTCOME: self._read_outcome,
            RecordKind.RECOVER: self._read_outcome,
            RecordKind.OBLIGATION: self._read_obligation,
            RecordKind.DISCHARGED: self._read_discharge,
            RecordKind.RUN_END: self._read_end,
            RecordKind.STATE: self._read_edit,
        }

    def read(self, record: Seen) -> None:
        self.head = Head(record.seq, record.hash)
        handler = self.handlers.get(RecordKind(record.kind))
        if handler is None:
            return
        try:
            handler(record)
        except (KeyError, TypeError) as error:
            raise StorageError(
                f"record {record.seq} of the audit log ({record.kind}) lacks {error}",
                "It was written by another version of kafkaform; use that one or a newer one.",
            ) from None
        if isinstance(record, Glance):
            record.forget()

    def make_index(self) -> LogIndex:
        self._forget_plans()
        plans = {run: record.read_whole().body["plan"] for run, record in self.plans.items()}
        runs = {name: replace(run, plan=plans.get(name)) for name, run in self.runs.items()}
        return LogIndex(
            self.head,
            _read_whole(self.intents.values()),
            _read_whole(self.obligations.values()),
            self._find_open_run(plans),
            runs,
            self.origins.collect_origins(),
            self.origins.scopes,
            _read_whole(self.unsaved),
            self.vague,
        )

    def _find_open_run(self, plans: Mapping[str, FrozenMap]) -> OpenRun | None:
        if self.first is None:
            return None
        found = (plans[run] for run in self.runs if run in self.members & plans.keys())
        approval = self.runs[self.first].approval
        outcomes = {step: record.read_whole() for step, record in self.outcomes.items()}
        return OpenRun(self.first, approval, next(found, None), outcomes)

    def _read_begin(self, record: Seen) -> None:
        approval = record.body["approval"]
        if self.first is None or self.runs[self.first].approval != approval:
            self.first, self.members, self.outcomes = record.run, set(), {}
        self.members.add(record.run)
        # A run that is resumed under its own id becomes the last one.
        self.runs.pop(record.run, None)
        self.runs[record.run] = LoggedRun(record.run, approval, record.time)
        self._forget_plans()

    def _forget_plans(self) -> None:
        """Forget the plans of runs that nothing can need any more: they are large."""
        needed = self.members | {get_run(r) for r in (*self.intents.values(), *self.unsaved)}
        self.plans = {run: plan for run, plan in self.plans.items() if run in needed}

    def _read_plan(self, record: Seen) -> None:
        self.plans[record.run] = record

    def _read_end(self, record: Seen) -> None:
        if record.run not in self.runs:
            return
        complete = record.body["complete"]
        run = replace(self.runs[record.run], time=record.time, complete=complete)
        self.runs[record.run] = run
        if complete and record.run in self.members:
            self.first, self.members, self.outcomes = None, set(), {}

    def _read_intent(self, record: Seen) -> None:
        self.intents[record.run, record.body["step"], record.body["attempt"]] = record

    def _read_outcome(self, record: Seen) -> None:
        """A `recover` record without a step seals a torn append and closes nothing."""
        body = record.body
        if body.get("outcome") not in TERMINAL:
            return
        self.intents.pop((get_run(record), body["step"], body["attempt"]), None)
        if get_run(record) in self.members:
            self.outcomes[body["step"]] = record
        if body["outcome"] not in SUCCEEDED:
            return
        self.origins.note_step(record.seq, record.time, get_identity(record), body)
        if record.seq > self.saved:
            self.unsaved.append(record)

    def _read_edit(self, record: Seen) -> None:
        self.origins.note_edit(record.body)
        self.vague += is_vague(record)
        if record.seq > self.saved:
            self.unsaved.append(record)

    def _read_obligation(self, record: Seen) -> None:
        self.obligations[record.seq] = record

    def _read_discharge(self, record: Seen) -> None:
        self.obligations.pop(record.body["discharges"], None)


def _read_whole(records: Iterable[Seen]) -> tuple[Record, ...]:
    return tuple(record.read_whole() for record in records)
