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
from .event import Glance, Kind, Record, seconds
from .provenance import Origin, Origins

APPLIED = OutcomeStatus.APPLIED.value
STARTED = OutcomeStatus.STARTED.value
SUCCEEDED = (APPLIED, STARTED)
TERMINAL = frozenset(status.value for status in OutcomeStatus if status != OutcomeStatus.UNKNOWN)
Seen = Record | Glance
_Key = tuple[str, str, int]
"""run, step, attempt"""


class Run(Struct, frozen=True):
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


class Index(Struct, frozen=True):
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
    runs: Mapping[str, Run] = field(default_factory=dict)
    origins: Mapping[int, Origin] = field(default_factory=dict)
    scopes: Mapping[str, str] = field(default_factory=dict)
    unsaved: tuple[Record, ...] = ()
    vague: int = 0

    def last_run_of(self, approval: str) -> Run | None:
        """The last run under this approval, complete or not; None if there was none."""
        runs = [run for run in self.runs.values() if run.approval == approval]
        return runs[-1] if runs else None


def index(records: Iterable[Seen], saved: Head | None = None) -> Index:
    """Read the whole log once. records: trusted, in order; saved: the state's audit head."""
    pass_ = _Pass(saved=saved.seq if saved else 0)
    for record in records:
        pass_.read(record)
    return pass_.result()


def pending(found: Index) -> tuple[Pending, ...]:
    """What earlier runs left, as the planner sees it: work that was not seen to end, and open
    intents, with what they would have made and when."""
    work = (
        Pending(
            identity_of(duty),
            duty.run,
            duty.body["ticket"],
            duty.body["what"],
            EMPTY,
            seconds(duty.time),
        )
        for duty in found.obligations
    )
    intents = (
        Pending(
            identity_of(intent),
            intent.run,
            intent.body["step"],
            intent.body["action"],
            intent.body["target"] or EMPTY,
            seconds(intent.time),
            intent.body["incarnation"],
        )
        for intent in found.open_intents
    )
    return (*work, *intents)


def identity_of(record: Seen) -> Identity:
    """The object of an intent, outcome, recover or obligation record."""
    body = record.body
    return Identity(intern(body["instance"]), intern(body["kind"]), intern(body["key"]))


def instances_of(record: Seen) -> set[str]:
    """The provider instances whose objects a record tells of."""
    if record.kind == Kind.STATE:
        return {str(item["instance"]) for item in record.body.get("objects", ())}
    return {str(record.body["instance"])}


def is_vague(record: Seen) -> bool:
    """Whether this edit of a state does not say what became of each object, as those of earlier
    versions."""
    return any("row" not in item for item in record.body.get("objects", ()))


def of_run(record: Seen) -> str:
    """The run whose step a record tells of: a recovery closes intents of an earlier one."""
    return str(record.body.get("of_run", record.run))


class _Pass:
    """The mutable half of `index`: one handler a kind, everything else is passed over."""

    def __init__(self, saved: int) -> None:
        self.saved = saved
        self.head = GENESIS
        self.intents: dict[_Key, Seen] = {}
        self.obligations: dict[int, Seen] = {}
        self.origins = Origins()
        self.runs: dict[str, Run] = {}
        self.plans: dict[str, Seen] = {}
        self.unsaved: list[Seen] = []
        self.vague = 0
        self.first: str | None = None
        self.members: set[str] = set()
        self.outcomes: dict[str, Seen] = {}
        self.handlers = {
            Kind.RUN_BEGIN: self._begin,
            Kind.PLAN: self._plan,
            Kind.INTENT: self._intent,
            Kind.OUTCOME: self._outcome,
            Kind.RECOVER: self._outcome,
            Kind.OBLIGATION: self._obligation,
            Kind.DISCHARGED: self._discharged,
            Kind.RUN_END: self._end,
            Kind.STATE: self._edit,
        }

    def read(self, record: Seen) -> None:
        self.head = Head(record.seq, record.hash)
        handler = self.handlers.get(Kind(record.kind))
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

    def result(self) -> Index:
        self._let_go()
        plans = {run: record.whole().body["plan"] for run, record in self.plans.items()}
        runs = {name: replace(run, plan=plans.get(name)) for name, run in self.runs.items()}
        return Index(
            self.head,
            _whole(self.intents.values()),
            _whole(self.obligations.values()),
            self._open_run(plans),
            runs,
            self.origins.result(),
            self.origins.scopes,
            _whole(self.unsaved),
            self.vague,
        )

    def _open_run(self, plans: Mapping[str, FrozenMap]) -> OpenRun | None:
        if self.first is None:
            return None
        found = (plans[run] for run in self.runs if run in self.members & plans.keys())
        approval = self.runs[self.first].approval
        outcomes = {step: record.whole() for step, record in self.outcomes.items()}
        return OpenRun(self.first, approval, next(found, None), outcomes)

    def _begin(self, record: Seen) -> None:
        approval = record.body["approval"]
        if self.first is None or self.runs[self.first].approval != approval:
            self.first, self.members, self.outcomes = record.run, set(), {}
        self.members.add(record.run)
        # A run that is resumed under its own id becomes the last one.
        self.runs.pop(record.run, None)
        self.runs[record.run] = Run(record.run, approval, record.time)
        self._let_go()

    def _let_go(self) -> None:
        """Forget the plans of runs that nothing can need any more: they are large."""
        needed = self.members | {of_run(r) for r in (*self.intents.values(), *self.unsaved)}
        self.plans = {run: plan for run, plan in self.plans.items() if run in needed}

    def _plan(self, record: Seen) -> None:
        self.plans[record.run] = record

    def _end(self, record: Seen) -> None:
        if record.run not in self.runs:
            return
        complete = record.body["complete"]
        run = replace(self.runs[record.run], time=record.time, complete=complete)
        self.runs[record.run] = run
        if complete and record.run in self.members:
            self.first, self.members, self.outcomes = None, set(), {}

    def _intent(self, record: Seen) -> None:
        self.intents[record.run, record.body["step"], record.body["attempt"]] = record

    def _outcome(self, record: Seen) -> None:
        """A `recover` record without a step seals a torn append and closes nothing."""
        body = record.body
        if body.get("outcome") not in TERMINAL:
            return
        self.intents.pop((of_run(record), body["step"], body["attempt"]), None)
        if of_run(record) in self.members:
            self.outcomes[body["step"]] = record
        if body["outcome"] not in SUCCEEDED:
            return
        self.origins.step(record.seq, record.time, identity_of(record), body)
        if record.seq > self.saved:
            self.unsaved.append(record)

    def _edit(self, record: Seen) -> None:
        self.origins.edit(record.body)
        self.vague += is_vague(record)
        if record.seq > self.saved:
            self.unsaved.append(record)

    def _obligation(self, record: Seen) -> None:
        self.obligations[record.seq] = record

    def _discharged(self, record: Seen) -> None:
        self.obligations.pop(record.body["discharges"], None)


def _whole(records: Iterable[Seen]) -> tuple[Record, ...]:
    return tuple(record.whole() for record in records)
