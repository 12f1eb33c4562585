"""The one place that records: intents before a send, outcomes and the state after it, and the whole
ids of systems that older records know by half.

An applied step leaves a row of the state in which only what succeeded is new, path by path.

Earlier versions opened a session although a server had not said whose it is, and recorded an id
without its second half, such as `kind:` or `kind:/group`. Such an id names no other system than the
one that answers now with a whole one, so it is completed instead of refused: by a plan for itself,
and by the next apply for good, with a record in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..audit.index import LogIndex
from ..audit.journal import (
    Journal,
    Subject,
    make_discharge_body,
    make_intent_body,
    make_obligation_body,
    make_outcome_body,
    make_recover_body,
    make_state_edit_body,
)
from ..audit.records import Record, RecordKind
from ..core.change import Action, Change, Evidence, Outcome, Path, Repeat, Request, Step
from ..core.errors import OtherSystem, StorageError
from ..core.resource import SETTING, TASK, Identity, Observed
from ..core.value import EMPTY, FrozenMap
from ..core.words import Vocabulary
from ..plan.diff import flatten, keep_set_values, lay_over, render_path
from ..plan.model import Plan
from ..provider.contract import Session
from ..state.model import Backend, Row, State, count_change, put_rows, set_head, set_scope
from .report import GOOD, Result, Work, WorkKey, get_work_key

GONE = (Action.DELETE, Action.FORGET)

NAMED = 5
"""How many steps a message names."""
STATE = Request("state", part=1, phase=0, max_items=1, max_weight=1)


def commit_step(
    row: Row | None, change: Change, paths: tuple[Path, ...], outcome: Outcome, seq: int
) -> Row | None:
    """The row after one applied step, None if there is none any more.

    paths: what the step made true, empty for a change without steps; seq: the number of its audit
    record, which becomes the origin of the row if the step made, adopted or imported the object.
    """
    if change.action in GONE or not change.row_after.owners:
        return None
    taken_over = change.action is Action.CREATE or change.adopts
    incarnation = outcome.incarnation or change.incarnation
    # A row of an earlier object with the same name says nothing about this one.
    same_row = row if row is not None and row.incarnation == incarnation else None
    return Row(
        identity=change.identity,
        owners=change.row_after.owners,
        origin=seq if taken_over or row is None else row.origin,
        attributes=_compute_attributes(same_row, change, paths),
        incarnation=incarnation,
        protected=change.row_after.protected or "no",
        owner=change.owner,
        labels=change.labels,
        park=change.park,
        depends_on=change.depends_on,
        secret_version=change.row_after.secret_version,
        reported=_keep_reported(same_row, change),
    )


def _keep_reported(row: Row | None, change: Change) -> FrozenMap:
    """What the system reports although nothing sets it, without what the change sets."""
    # What a change sets is declared, so it is no longer something that the system only reports.
    if row is None or not row.reported:
        return EMPTY
    paths = {render_path(path) for path in flatten(change.after)}
    return row.reported.without(paths)


def refresh_row(row: Row, change: Change) -> Row:
    """The row of an object that needs nothing, with what is live and declared today."""
    return replace(
        row,
        attributes=keep_set_values(lay_over(change.after or EMPTY, change.theirs, EMPTY)),
        depends_on=change.depends_on,
    )


def _compute_attributes(row: Row | None, change: Change, paths: tuple[Path, ...]) -> FrozenMap:
    """The attributes as planned, but as before where other steps have yet to write. row: that of
    this very object, if there is one already."""
    # If a later step fails, the row must not claim what that step was to write: the next plan would
    # see drift instead of a change that is still to be made.
    after = lay_over(change.after or EMPTY, change.theirs, EMPTY)
    if not change.steps:
        return keep_set_values(after)
    applied_paths, attributes = (
        set(paths),
        row.attributes if row is not None else change.before or EMPTY,
    )
    pending = [path for step in change.steps for path in step.paths if path not in applied_paths]
    # Owner, labels and `park` are no attributes: they have members of their own in a row.
    return keep_set_values(
        lay_over(after, [path for path in pending if path[0] in after], attributes)
    )


def make_bookkeeping_step(change: Change) -> Step:
    """The step of a change that sends nothing; its bookkeeping has intent and outcome, too."""
    identity = change.identity
    return Step(
        id=f"{identity.instance}/{identity.kind}/{identity.key}#state",
        identity=identity,
        address=change.address,
        request=STATE,
        payload=EMPTY,
        weight=1,
        after=(),
        repeat=Repeat.SAFE,
        evidence=Evidence.LOCAL,
        paths=tuple(item.path for item in change.paths),
    )


class Ledger(Struct):
    """State and log of one run, kept in step."""

    backend: Backend
    """The place of the state."""
    journal: Journal
    """The log."""
    state: State
    """The state as it is saved."""
    version: str | None
    """Its version at that place."""
    obligations: tuple[Record, ...] = ()
    """The obligations that are open now."""

    def write_intents(self, plan: Plan, results: Sequence[Result]) -> None:
        """Make the intents of these steps durable, together. Raises StorageError, Locked."""
        # What they will owe comes first in the append: a crash can cut off its end, and an intent
        # without its obligation would leave a setting that nobody removes.
        opened = self._list_owed(plan, results)
        intents = [(RecordKind.INTENT, self._make_intent(plan, r)) for r in results]
        try:
            written = self.journal.write_all([*opened, *intents])
        except StorageError as error:
            number = "1 step was" if len(results) == 1 else f"{len(results):,} steps were"
            raise StorageError(f"{error.message}; {number} not sent", error.advice) from None
        self.obligations += written[: len(opened)]

    def record_outcomes(self, plan: Plan, results: Sequence[Result]) -> None:
        """Make outcomes durable, then the state that follows from them. Raises StorageError."""
        bodies = [self._make_outcome(plan, result) for result in results]
        self._end(plan, results, [(RecordKind.OUTCOME, body) for body in bodies])

    def close_intents(self, plan: Plan, results: Sequence[Result], of_run: str) -> None:
        """Close intents that an earlier run left open: `recover` records, then the state. Raises
        StorageError."""
        bodies = [make_recover_body(self._make_outcome(plan, r), of_run) for r in results]
        self._end(plan, results, [(RecordKind.RECOVER, body) for body in bodies])

    def _end(
        self, plan: Plan, results: Sequence[Result], entries: Sequence[tuple[RecordKind, FrozenMap]]
    ) -> None:
        if not entries:
            return
        # What was started is owed before its outcome is known. A crash in between leaves an
        # obligation whose end is asked for, and never work that nobody remembers.
        opened = self._list_started(plan, results)
        try:
            records = self.journal.write_all([*opened, *entries])
        except StorageError as error:
            raise StorageError(
                f"{error.message}. Known outcomes: {_render_outcomes(results)}",
                "The intents of these steps are in the log. Once the disk is healthy, the next "
                f"apply finds out what became of them. {error.advice}",
            ) from None
        self.obligations += records[: len(opened)]
        ends = zip(results, records[len(opened) :], strict=True)
        self.save_state(lay_results_over(self.state, plan, list(ends)))

    def _list_owed(
        self, plan: Plan, results: Sequence[Result]
    ) -> list[tuple[RecordKind, FrozenMap]]:
        removals = self.owed
        return [
            (
                RecordKind.OBLIGATION,
                make_obligation_body(self._make_subject(plan, r), ticket, SETTING),
            )
            for r in results
            if (ticket := r.step.owes) is not None
            and (r.step.identity.instance, ticket) not in removals
        ]

    def _list_started(
        self, plan: Plan, results: Sequence[Result]
    ) -> list[tuple[RecordKind, FrozenMap]]:
        """The obligations of what these steps started, except for work that is owed already."""
        removals = self.owed
        return [
            (
                RecordKind.OBLIGATION,
                make_obligation_body(self._make_subject(plan, r), r.outcome.ticket, TASK),
            )
            for r in results
            if r.outcome.ticket is not None and r.work not in removals
        ]

    @property
    def owed(self) -> set[WorkKey]:
        """The work whose end nobody saw yet."""
        return {get_work_key(obligation) for obligation in self.obligations}

    def discharge_ended(self, works: Iterable[Work]) -> None:
        """Record the end of the work that has ended."""
        ended = [work for work in works if work.ended]
        if not ended:
            return
        self.journal.write_all(
            [(RecordKind.DISCHARGED, make_discharge_body(w.obligation, w.outcome)) for w in ended]
        )
        gone = {work.obligation.seq for work in ended}
        self.obligations = tuple(o for o in self.obligations if o.seq not in gone)

    def _make_intent(self, plan: Plan, result: Result) -> FrozenMap:
        change = result.change
        subject = self._make_subject(plan, result)
        repeat = result.step.repeat.value
        version = change.row_after.secret_version
        # The whole target, and not only the paths of this step: after a crash, a recovery has to
        # recognise it in the live object.
        return make_intent_body(subject, repeat, version, change.after, change.theirs)

    def _make_outcome(self, plan: Plan, result: Result) -> FrozenMap:
        end = result.outcome
        subject = self._make_subject(plan, result, end.incarnation)
        return make_outcome_body(
            subject, end.status.value, end.fault, result.duration_ms, end.ticket
        )

    def _make_subject(self, plan: Plan, result: Result, incarnation: str | None = None) -> Subject:
        change, step = result.change, result.step
        touched = set(step.paths)
        return Subject(
            lineage=self.state.lineage,
            scope_id=plan.instances[step.identity.instance].facts.scope_id,
            step=step.id,
            address=change.address,
            identity=step.identity,
            action=change.action.value,
            adopts=change.adopts,
            incarnation=incarnation or change.incarnation,
            paths=[item for item in change.paths if item.path in touched],
            plan=plan.configuration,
            approval=plan.approval,
            phase=f"{step.request.part}.{step.request.phase} {step.request.name}",
            attempt=result.attempt,
            owners=change.row_after.owners,
        )

    def refresh_rows(self, changes: Sequence[Change]) -> None:
        """Record what is live today for objects that need nothing."""
        rows = [
            refresh_row(self.state.objects[change.identity], change)
            for change in changes
            if change.identity in self.state.objects
            and change.action is Action.NOOP
            and change.blocked is None
        ]
        after = put_rows(self.state, rows)
        if after.objects != self.state.objects:
            self.save_state(after)

    def save_state(self, after: State) -> None:
        """Save a new state, anchored at the end of the log. Raises StorageError, Locked."""
        # The anchor says up to which record the state is complete. What the log has after it is
        # done again when the state is loaded (`replay`), so a failed save loses nothing.
        anchored = count_change(self.state, set_head(after, self.journal.head))
        if anchored == self.state:
            return
        try:
            self.version = self.backend.save(anchored, self.version)
        except StorageError as error:
            raise self._rescue_state(anchored, error) from None
        self.state = anchored

    def _rescue_state(self, state: State, error: StorageError) -> StorageError:
        try:
            rescue = f"The state was saved to {self.backend.rescue(state)}, and every outcome"
        except StorageError:
            rescue = "It could not be saved elsewhere either, but every outcome"
        return StorageError(
            f"{error.message}. {rescue} is in the audit log",
            "Make the state writable again and run apply, which takes the outcomes from the log.",
        )


def _render_outcomes(results: Sequence[Result]) -> str:
    named = [f"{r.change.address} {r.outcome.status.value}" for r in results[:NAMED]]
    remainder = [f"{len(results) - NAMED:,} more"] if len(results) > NAMED else []
    return ", ".join((*named, *remainder))


def lay_results_over(state: State, plan: Plan, results: Sequence[tuple[Result, Record]]) -> State:
    """The state with what the successful steps left. results: each with its record."""
    # A started step counts as applied: a plan compares a row with where the object is going.
    rows: dict[Identity, Row | None] = {}
    for result, record in results:
        if result.outcome.status not in GOOD:
            continue
        identity = result.step.identity
        row = rows[identity] if identity in rows else state.objects.get(identity)
        rows[identity] = commit_step(
            row, result.change, result.step.paths, result.outcome, record.seq
        )
        scope = plan.instances[identity.instance].facts.scope_id
        # The first applied step binds the instance to its system. From then on, another one that
        # answers is refused.
        if state.providers.get(identity.instance) != scope:
            state = set_scope(state, identity.instance, scope)
    remaining = [row for row in rows.values() if row is not None]
    return put_rows(state, remaining, [identity for identity, row in rows.items() if row is None])


REASON = "apply"
"""What completes an id, as the record names it."""


class Binding(Struct, frozen=True):
    """A provider instance whose system is known by half, and which system it is."""

    half: str
    """The recorded id."""
    scope_id: str
    """The whole id, as the system says it."""


def find_bindings(
    state: State, index: LogIndex, sessions: Mapping[str, Session]
) -> Mapping[str, Binding]:
    """Provider instance -> the whole id of its system, for those that state or log know by half.
    Raises OtherSystem if objects are recorded there and the system has none of them."""
    bindings: dict[str, Binding] = {}
    for instance, session in sessions.items():
        whole = session.facts.scope_id
        for recorded in (index.scopes.get(instance), state.providers.get(instance)):
            if recorded is not None and _is_half(recorded, whole):
                bindings[instance] = Binding(recorded, whole)
    for instance, binding in bindings.items():
        _refuse_strange(state, instance, binding, sessions[instance])
    return bindings


def _is_half(recorded: str, whole: str) -> bool:
    """Whether the recorded id lacks what the whole one has between `kind:` and `/group`."""
    kind, colon, identifier = recorded.partition(":")
    if not colon or (identifier and not identifier.startswith("/")) or recorded == whole:
        return False
    return whole.startswith(f"{kind}:") and whole.endswith(identifier)


def _refuse_strange(state: State, instance: str, binding: Binding, session: Session) -> None:
    """Raises OtherSystem if none of the recorded objects is there: it may be another system."""
    recorded = [identity for identity in state.objects if identity.instance == instance]
    if not recorded:
        return
    readings = session.read(recorded)
    session.prove()
    if any(isinstance(reading, Observed) for reading in readings.values()):
        return
    words = session.words
    raise OtherSystem(
        f'the state knows the {words.system} of "{instance}" only as {binding.half}; '
        f"{binding.scope_id} answers, and it shows none of the {len(recorded):,} recorded objects, "
        f"so it may be another {words.system}",
        f"{words.check_address} If it is the right one, and its objects are gone for good, forget "
        f"them with `kafkaform state rm --provider {instance}`.",
    )


def complete_index(index: LogIndex, bindings: Mapping[str, Binding]) -> LogIndex:
    """What the log proves, with whole ids."""
    if not bindings:
        return index
    origins = {
        seq: replace(origin, scope_id=binding.scope_id)
        if (binding := bindings.get(origin.identity.instance)) and origin.scope_id == binding.half
        else origin
        for seq, origin in index.origins.items()
    }
    scopes = {instance: binding.scope_id for instance, binding in bindings.items()}
    return replace(index, origins=origins, scopes={**index.scopes, **scopes})


def complete_records(
    state: State, index: LogIndex, bindings: Mapping[str, Binding]
) -> tuple[State, LogIndex]:
    """State and log with whole ids; nothing is saved."""
    for instance, binding in bindings.items():
        state = set_scope(state, instance, binding.scope_id)
    return state, complete_index(index, bindings)


def record_bindings(
    ledger: Ledger, index: LogIndex, bindings: Mapping[str, Binding]
) -> tuple[LogIndex, Mapping[str, Binding]]:
    """Record the whole ids, first in the log and then in the state. The index of the log after
    that, and what was recorded. Raises StorageError, Locked."""
    # What an earlier run recorded may have been taken from the log meanwhile.
    bindings = {
        instance: binding
        for instance, binding in bindings.items()
        if binding.half in (ledger.state.providers.get(instance), index.scopes.get(instance))
    }
    if not bindings:
        return index, bindings
    scopes = {instance: binding.scope_id for instance, binding in bindings.items()}
    serial, version = ledger.state.serial + 1, ledger.version or ""
    edit = make_state_edit_body(serial, version, REASON, {}, scopes=scopes)
    ledger.journal.write_all([(RecordKind.STATE, edit)])
    state, index = complete_records(ledger.state, index, bindings)
    ledger.save_state(state)
    return replace(index, head=ledger.journal.head), bindings


def describe_bindings(
    bindings: Mapping[str, Binding], words: Vocabulary, end: str
) -> Iterator[str]:
    """A line about each system that has proven who it is. end: what becomes of it."""
    for instance, binding in bindings.items():
        yield (
            f'The state knew the {words[instance].system} of "{instance}" only as {binding.half}, '
            f"and it has proven to be {binding.scope_id}. {end}"
        )
