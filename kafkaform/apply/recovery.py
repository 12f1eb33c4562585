"""Find out by reading what became of requests: `settle` those of this run whose answer is lost, and
`recover` what an earlier run left open, before anything new is planned.

No request is blindly repeated. A lost answer leaves three possibilities: the request was executed,
it will be, or it never will. As long as some node may still keep the request, only the target
proves anything, if every live node shows it: one node alone may show a past that looks like the
target. After that the pre-image proves that the request was not executed, if every live node shows
it. A task that leads to the target counts as the target, and has started. A request that only
writes hidden data cannot be read back: it stays unknown, without waiting (decisions/008).

Before a recovery, the log is replayed over a state that is older than it, because a save failed or
a backup was restored. Everything that happened since is done again in the order of the log: steps
that were applied, and edits of the state. So an object that somebody had let go does not become
ours again.

Two gaps are possible. An outcome is in the log and not in the state: it is taken in. An intent has
no outcome: it is settled. Then work that earlier runs started is asked about. Recovery writes
`recover` and `discharged` records and the state, nothing else; run twice, it finds nothing to do
the second time, except that work has ended meanwhile which goes on without a run.

An intent that only writes hidden data (a password) stays open until nobody needs to know what
became of it: the same approval is resumed, which sends the same version of the secret once more, or
the configuration asks for another version, or for no such object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from ..audit.index import LogIndex, get_identity, get_run, is_vague
from ..audit.records import Record, RecordKind, parse_time
from ..core.change import Action, Change, Outcome, OutcomeStatus, Repeat, Step
from ..core.clock import Clock
from ..core.errors import StorageError
from ..core.progress import Message, Reporter, ignore_event
from ..core.progress import Reporter as ReportTo
from ..core.resource import (
    Absent,
    Declared,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Reading,
)
from ..plan.codec import read_recorded_plan
from ..plan.diff import flatten, parse_path
from ..plan.model import Plan
from ..provider.contract import ResourceType, Session
from ..state.codec import DAMAGED_EDIT, decode_row
from ..state.model import Row, State, drop_instance, put_rows, set_scope
from .freshness import refuse_other_system
from .ledger import Ledger, lay_results_over, make_bookkeeping_step
from .obligations import ask_progress
from .rate_limits import say_silent
from .report import Result, Work
from .verify import HAPPENED, Judgement, is_untellable, judge_step

# The nodes measure their timeouts by their own clocks, and a write becomes visible some time after
# it was committed.
MARGIN_SECONDS = 5.0
POLL_SECONDS = 0.25
INTENT_SECONDS = 60.0
"""How long after its intent a request may be sent again without a new one, after the system has
refused it for now. Whoever recovers the intent later assumes that a request of that age can still
arrive."""


def is_in_vain(result: Result) -> bool:
    """True for a step about which reading revealed nothing while any node could keep its request.

    The answer to a further request would most likely be waited for as long.
    """
    unknown = result.outcome.status is OutcomeStatus.UNKNOWN
    return unknown and not is_untellable(result.change, result.step)


def compute_patience(facts: Facts) -> float:
    """How long after the intent, in seconds, an unchanged object proves that the request was not
    executed."""
    # A node that knows no leader keeps a request for its own timeout before it forwards it, and the
    # node that executes it may take as long as the operation timeout in the request allows.
    return facts.request_timeout + facts.operation_timeout + MARGIN_SECONDS


def settle_results(
    results: Sequence[Result],
    session: Session,
    types: Mapping[str, ResourceType],
    deadline: float,
    clock: Clock,
    report: Reporter = ignore_event,
) -> tuple[Result, ...]:
    """The results with their true outcomes, as far as reading reveals them by `deadline`.

    deadline: seconds on `Clock.monotonic`; what cannot be read by then stays unknown. report: gets
    messages about nodes that do not answer. Raises OtherSystem.
    """
    settled: dict[str, Outcome] = {}
    pending = list(results)
    quiet: set[str] = set()
    while pending:
        final = clock.monotonic() >= deadline
        readings, mute = _read_everywhere(session, sorted({r.step.identity for r in pending}))
        faults = {
            result.step.id: outcome
            for result in pending
            if (
                outcome := _decide_outcome(
                    result, readings[result.step.identity], session, types, final=final
                )
            )
        }
        if faults:
            # What these readings say becomes a record. A proxy may lead a connection to another
            # system, where an object of the same name proves nothing.
            session.prove()
        settled.update(faults)
        pending = [r for r in pending if r.step.id not in settled]
        if pending and not final and mute - quiet:
            say_silent(report, mute - quiet, deadline - clock.monotonic(), session.words.node)
            quiet |= mute
        if pending:
            clock.sleep(POLL_SECONDS)
    return tuple(
        Result(r.change, r.step, settled[r.step.id], r.attempt, r.duration_ms) for r in results
    )


def _read_everywhere(
    session: Session, ids: Sequence[Identity]
) -> tuple[dict[Identity, list[Reading]], set[str]]:
    """What each live node says about each object, and the nodes that did not answer at all."""
    # Who is live is asked anew at each look: a node that died in between must not be waited for,
    # and one that came back may have kept the request.
    answers: dict[Identity, list[Reading]] = {identity: [] for identity in ids}
    mute: set[str] = set()
    for node in session.live_nodes() or (None,):
        readings = session.read(ids, at=node)
        for identity, reading in readings.items():
            answers[identity].append(reading)
        if node is not None and all(isinstance(r, Failed) for r in readings.values()):
            mute.add(node)
    return answers, mute


def _decide_outcome(
    result: Result,
    readings: Sequence[Reading],
    session: Session,
    types: Mapping[str, ResourceType],
    *,
    final: bool,
) -> Outcome | None:
    """The outcome that these readings prove, None if more have to be read. final: nobody can keep
    the request any more."""
    step, change = result.step, result.change
    kind, facts = types[step.identity.kind], session.facts
    live = [r for r in readings if isinstance(r, Observed)]
    if live and is_untellable(change, step):
        return Outcome(step.id, OutcomeStatus.UNKNOWN, fault=result.outcome.fault)
    judgements = {judge_step(change, step, reading, kind, facts) for reading in readings}
    silent = Judgement.UNKNOWN in judgements
    if not any(isinstance(reading, Absent) for reading in readings):
        # An absence has to be confirmed by every node. The target proves itself: a node that does
        # not answer cannot take it back.
        judgements.discard(Judgement.UNKNOWN)
    if change.action is Action.DELETE and judgements == {Judgement.DONE}:
        return Outcome(step.id, OutcomeStatus.APPLIED)
    if judgements and judgements <= HAPPENED and len({r.incarnation for r in live}) <= 1:
        return _make_happened(step, live, judgements)
    if not final:
        return None
    if silent:
        # Without a majority of the nodes that lead it, a system keeps requests that it cannot
        # commit, and commits them once these nodes are back, after any deadline. It counts no node
        # as dead meanwhile, so a listed node that does not answer means that nothing is proven.
        return Outcome(step.id, OutcomeStatus.UNKNOWN, fault=_make_unknown_fault(result, readings))
    if judgements == {Judgement.OTHER}:
        return Outcome(step.id, OutcomeStatus.FAILED, fault=_make_conflict(step.identity, session))
    if judgements == {Judgement.NOT_YET}:
        return Outcome(step.id, OutcomeStatus.FAILED, fault=_make_not_applied(result))
    return Outcome(step.id, OutcomeStatus.UNKNOWN, fault=_make_unknown_fault(result, readings))


def _make_unknown_fault(result: Result, readings: Sequence[Reading]) -> Fault | None:
    """Why nobody knows: no answer came, and the reason why no reading helped."""
    silence = result.outcome.fault
    failed = next((r.fault for r in readings if isinstance(r, Failed)), None)
    if silence is None or failed is None or failed.message in silence.message:
        return silence or failed
    message = f"{silence.message}; reading it again failed: {failed.message}"
    return replace(silence, message=message, advice=failed.advice or silence.advice)


def _make_happened(step: Step, live: Sequence[Observed], judgements: Set[Judgement]) -> Outcome:
    incarnation = live[0].incarnation if live else None  # none if an update removed the last of it
    if Judgement.STARTED not in judgements:
        return Outcome(step.id, OutcomeStatus.APPLIED, incarnation=incarnation)
    ticket = next((r.ticket for r in live if r.ticket is not None), None)
    return Outcome(step.id, OutcomeStatus.STARTED, ticket=ticket, incarnation=incarnation)


def _make_conflict(identity: Identity, session: Session) -> Fault:
    name = session.words.name_object(identity.kind, identity.key)
    return Fault(
        "CONFLICT",
        f"{name} matches neither its planned start nor its target: somebody else changed "
        "it meanwhile",
        FaultClass.DEFINITE,
        advice="Plan again and check what is there now.",
    )


def _make_not_applied(result: Result) -> Fault:
    silence = result.outcome.fault
    return Fault(
        silence.code if silence else "NOT_APPLIED",
        "no answer came, and the object was unchanged after the timeout: the request was not "
        "executed",
        FaultClass.NOT_APPLIED,
        where=silence.where if silence else "",
    )


SETTING_AGAIN, REMOVING = "~set", "~remove"
"""Ends of the ids of two requests that repair a step whose removals stayed without effect: one sets
the values as they are, one removes them again. Their step is in the plan without the end."""

UNKNOWN = OutcomeStatus.UNKNOWN
ENDED_BEFORE = (
    "that run ended before it recorded an answer; its request may or may not have been sent"
)
SUPERSEDED = "SUPERSEDED"
"""The code of a step whose end nobody needs to know: something else is sent instead, or nothing."""
Pair = tuple[Record, Result]
"""An open intent and what is known of its step."""


class Replayed(Struct, frozen=True):
    """A state that was brought up to date with its log."""

    state: State
    """The state with everything that it lacked, not saved yet."""
    outcomes: int = 0
    """How many outcomes it lacked."""
    edits: int = 0
    """How many edits it lacked."""
    released: tuple[Identity, ...] = ()
    """Objects that a vague edit may have let go, so that they are not managed any more."""


def replay_log(index: LogIndex, state: State) -> Replayed:
    """The state with all that the log has after its anchor. Raises StorageError if the log lacks
    the plan of a run, or if a row in it is damaged."""
    plans: dict[str, Plan] = {}
    released: list[Identity] = []
    counts = {True: 0, False: 0}
    for (is_edit, run), group in groupby(index.unsaved, _get_group_key):
        records = tuple(group)
        counts[is_edit] += len(records)
        if not is_edit:
            plan = plans.setdefault(run, read_plan(run, index))
            state = lay_results_over(state, plan, _read_results(plan, records))
            continue
        for record in records:
            rows = read_rows(record)
            if is_vague(record):
                released += [i for i, row in rows.items() if row is None and i in state.objects]
            gone = [identity for identity, row in rows.items() if row is None]
            state = put_rows(state, (row for row in rows.values() if row is not None), gone)
            if record.body.get("instance"):
                state = drop_instance(state, record.body["instance"])
            for instance, scope in (record.body.get("scopes") or {}).items():
                state = set_scope(state, instance, scope)
    return Replayed(state, counts[False], counts[True], tuple(released))


def read_plan(run: str, index: LogIndex) -> Plan:
    """The recorded plan of a run. Raises StorageError if the log lacks it."""
    data = index.runs[run].plan if run in index.runs else None
    if data is None:
        raise StorageError(
            f"the audit log has an open intent of run {run}, but not its plan",
            "Run `kafkaform audit verify` to find out whether records are missing. Nothing was "
            "sent.",
        )
    return read_recorded_plan(data, run)


def read_outcome(record: Record) -> Outcome:
    """The outcome in a record, without its fault."""
    body = record.body
    status = OutcomeStatus(body["outcome"])
    return Outcome(body["step"], status, ticket=body["ticket"], incarnation=body["incarnation"])


def index_steps(plan: Plan) -> dict[str, tuple[Change, Step]]:
    """Step id -> the change and the step, bookkeeping steps included."""
    return {
        step.id: (change, step)
        for change in plan.effective
        for step in change.steps or (make_bookkeeping_step(change),)
    }


def find_step(steps: Mapping[str, tuple[Change, Step]], record: Record) -> tuple[Change, Step]:
    """The step of an intent or outcome. steps: those of its run's plan. Raises StorageError if the
    plan has no such step, or the step belongs to another object."""
    step_id: str = record.body["step"]
    planned = steps.get(step_id) or steps.get(cut_repair(step_id))
    if planned is None or planned[1].identity != get_identity(record):
        raise StorageError(
            f"record {record.seq} of the audit log ({record.kind}) names step "
            f"{record.body['step']} of {get_identity(record)}, which the plan of run "
            f"{get_run(record)} does not have",
            "Plan and record do not belong together: one of them was edited. Restore the log and "
            "its state from the same backup. Nothing was sent.",
        )
    change, step = planned
    if step.id == step_id:
        return planned
    # Such a request wrote a part of what its step wrote.
    paths = tuple(path for text in record.body["paths"] if (path := parse_path(text["path"])))
    step = replace(step, id=step_id, paths=tuple(path for path in paths if path in step.paths))
    return replace(change, steps=(step,)), step


def cut_repair(step_id: str) -> str:
    """The id of the step that a repair belongs to; any other id stays as it is."""
    return step_id.removesuffix(SETTING_AGAIN).removesuffix(REMOVING)


def _get_group_key(record: Record) -> tuple[bool, str]:
    return record.kind == RecordKind.STATE, get_run(record)


def _read_results(plan: Plan, records: Iterable[Record]) -> list[tuple[Result, Record]]:
    pairs = index_steps(plan)
    return [(Result(*find_step(pairs, r), read_outcome(r), r.body["attempt"]), r) for r in records]


def read_rows(record: Record) -> Mapping[Identity, Row | None]:
    """The row that an edit left for each object that it touched, None if it has none any more.
    Raises StorageError."""
    # An edit of an earlier version does not say what it left. Then all are taken to be let go: an
    # object that is not managed any more is deleted by nobody.
    rows = {}
    for item in record.body.get("objects", ()):
        identity = Identity(item["instance"], item["kind"], item["key"])
        data = item.get("row")
        source = f"record {record.seq} of the audit log"
        row = None if data is None else decode_row(data, source)
        if row is not None and row.identity != identity:
            raise StorageError(
                f"{source}: the row of {identity} is one of {row.identity}", DAMAGED_EDIT
            )
        rows[identity] = row
    return rows


class RecoveryScope(Struct, frozen=True):
    """What recovery works with."""

    sessions: Mapping[str, Session]
    """Provider instance -> its session."""
    types: Mapping[str, ResourceType]
    """Resource types by name."""
    declared: Mapping[Identity, Declared]
    """What the configuration wants today."""
    clock: Clock
    """Measures and waits."""
    report: ReportTo
    """Gets messages."""
    resumed: Collection[str] = ()
    """Ids of the runs whose approval is applied again, which sends all that they have not done."""
    repeats: bool = True
    """The plan that follows asks again for what is declared."""


class Recovered(Struct, frozen=True):
    """What recovery found and closed."""

    taken_in: int = 0
    """How many outcomes the state lacked."""
    edits: int = 0
    """How many edits the state lacked."""
    released: tuple[Identity, ...] = ()
    """Objects that such an edit may have let go."""
    closed: tuple[Result, ...] = ()
    """Intents that have an outcome now."""
    open: tuple[Result, ...] = ()
    """Intents whose object could not be read."""
    work: tuple[Work, ...] = ()
    """How far everything is that earlier runs started."""
    runs: tuple[str, ...] = ()
    """The runs that had left intents open."""


def recover(index: LogIndex, ledger: Ledger, world: RecoveryScope) -> Recovered:
    """Close what can be closed.

    Raises StorageError if the log lacks the plan of an open run, and OtherSystem if another system
    answers than that of the run, which knows nothing about it.
    """
    # All plans first: a log that cannot be used must not leave the state half way.
    runs_open = sorted({get_run(record) for record in index.open_intents})
    plans = {run: read_plan(run, index) for run in runs_open}
    _refuse_untyped(index.open_intents, world.types)
    replayed = replay_log(index, ledger.state)
    if index.unsaved:
        # One save for all of them: it moves the anchor of the state behind the last one, so a save
        # in between would lose the rest.
        ledger.save_state(replayed.state)
    closed: list[Result] = []
    still_open: list[Result] = []
    for run, records in _group_by_run(index.open_intents).items():
        plan = plans[run]
        for instance, pairs in _group_by_instance(plan, records).items():
            steps = "1 step" if len(pairs) == 1 else f"{len(pairs):,} steps"
            world.report(Message(f"Recovering {steps} that run {run} left open"))
            if instance not in world.sessions:
                still_open.extend(result for _, result in pairs)
                continue
            refuse_other_system(plan, instance, world.sessions[instance])
            settled = _settle_pairs(pairs, world.sessions[instance], world, ledger.state)
            ended = [result for result in settled if result.outcome.status is not UNKNOWN]
            ledger.close_intents(plan, ended, run)
            closed.extend(ended)
            still_open.extend(r for r in settled if r.outcome.status is UNKNOWN)
    work = ask_progress(ledger.obligations, world.sessions)
    ledger.discharge_ended(work)
    runs = tuple(dict.fromkeys(get_run(record) for record in index.open_intents))
    lacked = replayed.outcomes, replayed.edits, replayed.released
    return Recovered(*lacked, tuple(closed), tuple(still_open), work, runs)


def _refuse_untyped(intents: Iterable[Record], types: Collection[str]) -> None:
    """Raises StorageError for an intent about an object of a type that this version lacks."""
    for record in intents:
        kind = get_identity(record).kind
        if kind not in types:
            raise StorageError(
                f"record {record.seq} of the log is an open intent for an object of {kind}, which "
                "this version does not know",
                "Update kafkaform and its providers to what wrote the log, or newer, which finds "
                "out whether that request took effect. Nothing was sent.",
            )


def _group_by_run(records: Iterable[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(get_run(record), []).append(record)
    return groups


def _group_by_instance(plan: Plan, records: Iterable[Record]) -> dict[str, list[Pair]]:
    steps = index_steps(plan)
    groups: dict[str, list[Pair]] = {}
    for record in records:
        change, step = find_step(steps, record)
        silence = Fault("NO_ANSWER", ENDED_BEFORE, FaultClass.AMBIGUOUS)
        unknown = Outcome(step.id, UNKNOWN, fault=silence)
        result = Result(change, step, unknown, record.body["attempt"])
        groups.setdefault(step.identity.instance, []).append((record, result))
    return groups


def _settle_pairs(
    pairs: list[Pair], session: Session, world: RecoveryScope, state: State
) -> list[Result]:
    """First what needs no waiting, then the rest until the deadline has passed."""
    results_with_steps = [r for _, r in pairs if r.change.steps]
    readings = (
        session.read(sorted({r.step.identity for r in results_with_steps}))
        if results_with_steps
        else {}
    )
    session.prove()
    latest = {
        r.step.id: replace(r, outcome=Outcome(r.step.id, OutcomeStatus.APPLIED))
        for _, r in pairs
        # A change without requests happens in the log: its intent is all that there is to it.
        if not r.change.steps
    }
    resumed = {record.body["step"] for record, _ in pairs if get_run(record) in world.resumed}
    for result in results_with_steps:
        reading = readings[result.step.identity]
        if result.step.id in resumed and is_untellable(result.change, result.step):
            latest[result.step.id] = _make_superseded(result, "the same approval is applied again")
        elif _can_repeat_at_once(result, reading, session, world):
            latest[result.step.id] = _make_superseded(
                result, "the next plan asks for the same values"
            )
    waiting = [r for r in results_with_steps if r.step.id not in latest]
    # Wall clocks, because another computer may have written the intent. They may differ, so the
    # wait is never longer than the whole patience.
    sent = max(parse_time(record.time) for record, _ in pairs)
    patience = sent + INTENT_SECONDS + compute_patience(session.facts) - world.clock.now()
    patience = max(0.0, min(patience, compute_patience(session.facts)))
    deadline = world.clock.monotonic() + patience
    if waiting and patience >= 1:
        world.report(
            Message(
                f"A request that was sent may still take effect: waiting up to {patience:.0f} s"
            )
        )
    slow = settle_results(waiting, session, world.types, deadline, world.clock, world.report)
    latest.update({result.step.id: result for result in slow})
    moot = [result for result in slow if _is_moot(result, world, state)]
    if moot:
        # A request that can still be executed must not be executed after the one that replaces it.
        world.clock.sleep(max(0.0, deadline - world.clock.monotonic()))
    latest.update({r.step.id: _make_superseded(r, "no longer wanted") for r in moot})
    return [latest[result.step.id] for _, result in pairs]


def _make_superseded(result: Result, reason: str) -> Result:
    fault = Fault(SUPERSEDED, reason, FaultClass.NOT_APPLIED)
    return replace(result, outcome=Outcome(result.step.id, OutcomeStatus.FAILED, fault=fault))


def _can_repeat_at_once(
    result: Result, reading: Reading, session: Session, world: RecoveryScope
) -> bool:
    """True for a safe step that the configuration still wants and that has not happened yet."""
    # Whatever becomes of it, the plan that follows asks for the same values, and sending them twice
    # does no harm. So nobody has to wait for half a minute (architecture §4.7).
    step, change = result.step, result.change
    kind = world.types[step.identity.kind]
    if not world.repeats or step.repeat is not Repeat.SAFE or not isinstance(reading, Observed):
        return False
    if judge_step(change, step, reading, kind, session.facts) in HAPPENED:
        return False
    item = world.declared.get(step.identity)
    if item is None or change.after is None:
        return False
    if item.secret_version != change.row_after.secret_version:
        return False
    today = flatten(kind.target(item.attributes, reading, session.facts, False))
    after = flatten(change.after)
    return all(today.get(path) == after.get(path) for path in step.paths)


def _is_moot(result: Result, world: RecoveryScope, state: State) -> bool:
    """True for hidden data whose fate stays unknown and does not matter: the next plan sends
    another version, or no block wants the object any more."""
    change, row = result.change, state.objects.get(result.step.identity)
    if result.outcome.status is not UNKNOWN or not is_untellable(change, result.step):
        return False
    item = world.declared.get(result.step.identity)
    if item is None:
        return True
    versions = (None, change.row_after.secret_version, row.secret_version if row else None)
    return item.secret_version not in versions
