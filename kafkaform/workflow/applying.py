"""Run an apply from lock to unlock: recover → plan or load → approve → look again → dry run →
send → verify. The order is that of architecture §4.

To recover is to find out what earlier runs left open, and to record it.
"""

from __future__ import annotations

import socket
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ..apply.confirm import confirm_report
from ..apply.execution import ApplyRun, execute_plan
from ..apply.freshness import Recheck, refuse_if_stale, refuse_unproven_removals
from ..apply.ledger import Ledger, describe_bindings, record_bindings
from ..apply.obligations import Owed, end_never_sent, find_owed
from ..apply.preflight import refuse_failed, run_first_pass
from ..apply.rate_limits import Paces, expect_limits
from ..apply.recovery import RecoveryScope, compute_patience, recover, replay_log
from ..apply.report import Report, Result
from ..apply.secrets import refuse_exposed, refuse_foreign_commands, resolve_plan_secrets
from ..apply.stop import Stop
from ..apply.verify import is_untellable
from ..audit.checkpoint import continue_index
from ..audit.index import LogIndex, get_run
from ..audit.journal import (
    make_approval_body,
    make_plan_body,
    make_run_begin_body,
    make_run_end_body,
    make_validate_body,
)
from ..audit.records import RecordKind, render_time
from ..core.canonical import Rendered
from ..core.change import Change, Outcome, Verdict
from ..core.clock import Clock
from ..core.diagnostics import Diagnostics, has_errors
from ..core.errors import (
    Blocked,
    ConfigurationError,
    Ended,
    Interrupted,
    KafkaformError,
    Locked,
    OtherSystem,
    OutcomeUnknown,
    PlanRefused,
    UsageError,
)
from ..core.finding import Harm
from ..core.progress import Message, ignore_event
from ..core.resource import InstanceWorld
from ..core.secret import keep_secrets
from ..core.words import Vocabulary, Words, shared
from ..plan.codec import read_recorded_plan
from ..plan.completion import complete_declared
from ..plan.judge import find_limits, load_books, survey_changes
from ..plan.model import RULE, Mode, Plan, digest_change
from ..plan.observe import Look
from ..provider.contract import Secrets, Session
from ..render.text import render_count
from ..state.model import Lease, set_outputs
from ..version import VERSION
from .configuration.policies import find_today
from .configuration.untrusted import apply_error
from .model import (
    Announcer,
    Applied,
    ApplyRequest,
    Chosen,
    Listener,
    Note,
    Scene,
    clean_report,
    list_named,
    record_outputs,
)
from .plan_choice import (
    choose_plan,
    find_remaker,
    find_resumed_runs,
    refuse_old_token,
    refuse_outdated_refresh,
)
from .planning import find_unmet, refuse_if_blocked, refuse_new_breaches, tell_writers
from .sealing import seal_log
from .workspace import (
    Workspace,
    choose_needed,
    find_commit,
    make_first_state,
    make_lock_info,
    make_run_id,
    open_journal,
    open_sessions,
    read_log,
    refuse_lost_state,
    refuse_moved_on,
)

NAMED = 5
"""How many objects an error names."""
AGAIN = "Run the same command again."
RECOVERING = (
    "interrupted while finding out what earlier runs left open; what was found is recorded, and "
    "nothing was sent"
)


class Unsent(Struct):
    """Whether a run is still in the part in which nothing is sent."""

    over: bool = False
    """From now on something can have been sent."""


@contextmanager
def unsent(message: str, advice: str) -> Iterator[Unsent]:
    """A signal inside the block raises Interrupted with this message, until `over` is set."""
    mark = Unsent()
    try:
        yield mark
    except Ended as ended:
        # After the first send, "nothing was sent" would be a lie: the report of the run tells it.
        if mark.over:
            raise
        ended.handled = True
        raise Interrupted(message, advice, ended.number) from None


def run_apply(
    space: Workspace,
    ask: ApplyRequest,
    *,
    progress: Listener = ignore_event,
    stop: Stop | None = None,
) -> Applied:
    """Run one apply, from lock to unlock.

    Raises the KafkaformError that the exit code stands for. If something can have been sent, its
    `applied` says what the result was. What `progress` raises after that is raised at the end.
    """
    announce = Announcer(progress)
    with keep_secrets(space.known_secrets):
        applied = _apply_locked(space, ask, announce, stop or Stop())
        error = _error_of(applied, ask)
        if error is not None:
            raise error
    if announce.error is not None:
        raise announce.error
    return applied


def _error_of(applied: Applied, ask: ApplyRequest) -> KafkaformError | None:
    """The error of a run that was not stopped before it sent: a request that failed, a rule that
    does not hold, or a change that was left out. None if everything that was asked for is done."""
    error = applied.report.make_error(ask.rerun) if applied.report is not None else None
    if error is None and has_errors(applied.diagnostics):
        diagnostics = applied.diagnostics
        error = ConfigurationError(
            "it was applied, but a rule does not hold", diagnostics=diagnostics
        )
        applied = replace(applied, diagnostics=())
    if error is None and ask.imported is None and not ask.names_objects:
        error = find_unmet(applied.plan)
    if error is not None:
        error.applied = applied
    return error


def _apply_locked(space: Workspace, ask: ApplyRequest, announce: Announcer, stop: Stop) -> Applied:
    if space.configuration.inputs.untrusted:
        raise apply_error()
    refuse_old_token(ask.expect)
    if not (ask.approve or ask.expect or ask.confirm):
        raise UsageError(
            "no approval was given or can be asked for, so nothing was applied",
            "Give a callback that approves the plan, or the approval of a reviewed plan.",
        )
    run = make_run_id()
    info = make_lock_info(run, ask.command, render_time(space.clock.now()), space.actor)
    _announce_waiting(space, ask, announce)
    with (
        unsent("interrupted before anything was sent", AGAIN) as mark,
        space.backend.lock(info, ask.lock_timeout, space.clock) as lease,
    ):
        space.backend.check_writable()
        space.sink.check_writable()
        loaded = space.backend.load()
        before = loaded.state or make_first_state(space.sink)
        index = read_log(space.sink, loaded.state, whole=ask.verify_log)
        refuse_lost_state(loaded.state, index, space)
        # A first state gets its lineage here; plans are still made without it (`Scene.planned`).
        lineage = before.lineage or str(uuid.uuid4())
        state = replace(before, lineage=lineage, kafkaform_version=VERSION)
        journal = open_journal(space.sink, space.clock, run, state, index, lease, space.actor)
        read = journal.head
        # A crash can leave half a line at the end of the log: a record after it is unreadable.
        journal.mend()
        owed_removals = find_owed(index.grounds, index.obligations)
        ledger = Ledger(space.backend, journal, state, loaded.version, owed_removals.open)
        recorded = replay_log(index, state).state if index.unsaved else state
        needed = list_named(ask) or choose_needed(space, recorded, ask.options, ask.plan)
        with open_sessions(space, state, index, needed, ask.further) as reached:
            sessions = reached.sessions
            with unsent(RECOVERING, AGAIN):
                wait_for_earlier_run(lease, index, sessions, space.clock, announce)
                index = close_earlier_runs(
                    space, ask, index, ledger, sessions, announce, owed_removals
                )
            index, bindings = record_bindings(ledger, index, reached.bindings)
            for line in describe_bindings(bindings, space.words, "The state records that now."):
                announce(Note(line))
            reached = replace(reached, bindings={})
            scene = Scene(space, ask, announce, stop, reached, ledger, index, before.lineage, lease)
            applied = _apply(scene, mark)
        if journal.head != read and (applied.report is None or applied.report.stopped is None):
            seal_log(space.sink, ledger, lease, space.clock, announce, stop)
        return applied


def _announce_waiting(space: Workspace, ask: ApplyRequest, announce: Announcer) -> None:
    """Say whose lock the run is waiting for."""
    holder = space.backend.holder() if ask.lock_timeout > 0 else None
    if holder is not None:
        announce(Message(f"Waiting up to {ask.lock_timeout:g} s for the lock of {holder}"))


def _apply(scene: Scene, mark: Unsent) -> Applied:
    run, ask = scene.ledger.journal.run, scene.ask
    chosen = choose_plan(scene)
    plan = chosen.plan
    if chosen.already:
        report = _look_for_unseen(scene, plan)
        return Applied(plan, scene.ledger.state, run, report, already=chosen.already)
    if not chosen.made_now:
        refuse_new_breaches(plan, scene.space)
    leaves_out = not ask.names_objects and ask.imported is None
    refuse_if_blocked(plan, ask.fail_on, leaves_out=leaves_out)
    if plan.idle:
        broken = _save_live_state(scene, chosen)
        report = _look_for_unseen(scene, plan)
        return Applied(plan, scene.ledger.state, run, report, diagnostics=broken)
    # Only after the approval, which can take hours, so that nothing stale is sent.
    approval = _get_approval(scene, plan)
    paces = _look_again(scene, plan, chosen.outcomes)
    refuse_foreign_commands(plan, scene.space.desired, chosen.outcomes)
    secrets = resolve_plan_secrets(plan, scene.space.configuration.find_secrets, chosen.outcomes)
    refuse_exposed(plan)
    verdicts = _dry_run(scene, plan, chosen.outcomes, paces)
    _record_begin(scene, plan, approval, verdicts)
    # From here on a signal does not end the process: the batch in flight gets its outcome first.
    with scene.stop.listening():
        mark.over = scene.announce.sending = True
        job = _make_job(scene, plan, secrets, chosen.outcomes, paces)
        report = execute_plan(job)
        if ask.wait:
            report = confirm_report(job, report, scene.log_index.unseen)
        report, broken = _record_end(scene, chosen, report)
    for work in report.work:
        scene.announce(work)
    return Applied(plan, scene.ledger.state, run, clean_report(report), diagnostics=broken)


def _make_job(
    scene: Scene, plan: Plan, secrets: Secrets, outcomes: Mapping[str, Outcome], paces: Paces
) -> ApplyRun:
    return ApplyRun(
        plan,
        scene.sessions,
        scene.space.types,
        secrets,
        scene.ledger,
        scene.space.clock,
        scene.stop,
        scene.announce,
        scene.lease,
        outcomes,
        scene.ask.rerun,
        paces,
    )


def _look_for_unseen(scene: Scene, plan: Plan) -> Report | None:
    """Look again for what the last run applied and did not see, in a run that changes nothing. The
    report if some of it still cannot be seen, otherwise None."""
    if not scene.ask.wait or not scene.log_index.unseen:
        return None
    job = _make_job(scene, replace(plan, changes=()), {}, {}, Paces())
    report = confirm_report(job, Report(), scene.log_index.unseen)
    scene.ledger.save_state(scene.ledger.state)
    return clean_report(report) if report.make_error() else None


def _get_approval(scene: Scene, plan: Plan) -> str:
    """How the plan was approved. Raises KafkaformError if it was not."""
    ask = scene.ask
    if ask.expect:
        return "expect"
    if ask.confirm:
        _require_confirmed(plan, ask.confirm, shared(scene.space.words.values()))
        return "confirm"
    # A coroutine that nobody awaits, or a word such as "no", must not count as a yes.
    if ask.approve is None or ask.approve(plan) is not True:
        raise KafkaformError("not approved; nothing was sent")
    return ask.approved_by


def _require_confirmed(plan: Plan, confirm: tuple[str, ...], words: Words) -> None:
    """Raises KafkaformError unless exactly the systems of the plan are named."""
    scopes = {item.facts.scope_id for item in plan.instances.values() if not item.unread}
    # Nothing is deleted from a system that could not be asked, so it may be named or not.
    unread_scopes = {item.facts.scope_id for item in plan.instances.values() if item.unread}
    if scopes != set(confirm) - (unread_scopes - scopes):
        raise KafkaformError(
            f"--confirm names {', '.join(sorted(set(confirm)))}, but this would destroy in "
            f"{', '.join(sorted(scopes))}",
            f"Name exactly the {words.system}s that you mean. Nothing was sent.",
        )


def _look_again(scene: Scene, plan: Plan, outcomes: Mapping[str, Outcome]) -> Paces:
    """Read the touched objects again, and check freshness, the proof of ownership for deletes, and
    the provider's review. Returns what is known about limits of the systems."""
    if plan.options.mode is Mode.REFRESH:
        refuse_outdated_refresh(scene, plan, outcomes)
        return Paces()
    state, sessions = scene.ledger.state, scene.sessions
    written = {step_id: outcome.incarnation for step_id, outcome in outcomes.items()}
    todo = [c for c in plan.effective if not c.steps or any(s.id not in outcomes for s in c.steps)]
    # A state can be forged or restored from a backup, so a delete needs a record of the log that
    # the object is ours. `alter` needs none: its user named the object.
    if not scene.ask.names_objects:
        refuse_unproven_removals(
            # An undo also changes what nobody owns back to what it was; it never deletes it.
            [c for c in todo if c.row_before.owners] if scene.ask.undoes else todo,
            state,
            scene.log_index,
            sessions,
            scene.space.types,
        )
    refuse_if_stale(
        todo,
        Recheck(
            plan,
            sessions,
            scene.space.types,
            state,
            scene.space.clock,
            scene.space.clock.sleep,
            scene.ask.rerun,
            written,
            whole=True,
            remake=find_remaker(scene, plan),
            tell=partial(tell_writers, scene.log_index, plan),
        ),
    )
    facts = {instance: session.facts for instance, session in sessions.items()}
    world = {instance: InstanceWorld(fact, {}) for instance, fact in facts.items()}
    providers = {i: p for i, p in scene.space.providers.items() if i in sessions}
    lifted = scene.space.policies.list_lifted(find_today(scene.space.clock))
    look, accepted = Look(sessions, world), (*plan.options.accept, *lifted)
    books = load_books(providers)
    judged, _ = survey_changes(plan.changes, providers, books, look, facts, accepted)
    _refuse_if_worse(plan.changes, judged)
    limits = find_limits(plan.changes, providers, look, facts)
    return expect_limits(limits, scene.space.clock.monotonic())


def _refuse_if_worse(before: Sequence[Change], judged: Sequence[Change]) -> None:
    """Raises Blocked for a change that has become blocked since the plan, and PlanRefused for one
    that would take more rights than the plan shows."""
    new = [c for c, old in zip(judged, before, strict=True) if c.blocked and not old.blocked]
    if new:
        raise Blocked(
            "the world changed since the plan: "
            + "; ".join(f"{c.address}: {c.blocked.text}" for c in new if c.blocked),
            "Plan again.",
        )
    losses = [
        (change.address, finding.text)
        for change, old in zip(judged, before, strict=True)
        for finding in change.findings
        if finding.harm is Harm.ACCESS_LOST and finding not in old.findings
    ]
    if losses:
        raise PlanRefused(
            "the plan would take more rights than it shows: "
            + "; ".join(f"{address}: {loss}" for address, loss in losses[:5])
            + (" ..." if len(losses) > 5 else ""),
            "Plan again and look at who loses what. Nothing was sent.",
        )


def _dry_run(
    scene: Scene, plan: Plan, outcomes: Mapping[str, Outcome], paces: Paces
) -> Mapping[str, Verdict]:
    """The first pass of the dry run: the rights of all steps, then every step that depends on no
    other. If one is refused, nothing is sent. paces: learns how fast the systems take changes."""
    clock = scene.space.clock
    verdicts = run_first_pass(plan, outcomes, scene.sessions, clock, scene.announce, paces)
    refuse_failed(verdicts, {step.id: step for change in plan.effective for step in change.steps})
    return verdicts


def _record_begin(scene: Scene, plan: Plan, approval: str, verdicts: Mapping[str, Verdict]) -> None:
    """Record who applies what, and how it was approved, before the first intent."""
    scopes = plan.scopes
    digests = [digest_change(c, scopes[c.identity.instance], plan.lineage) for c in plan.effective]
    begin = make_run_begin_body(
        plan.approval,
        digests,
        # A system that never answered has no id yet.
        {name: scope for name, scope in scopes.items() if scope},
        command=scene.ask.command,
        host=socket.gethostname(),
        commit=find_commit(scene.space.configuration.folder),
        pull_request=scene.space.pull_request,
        undoes=scene.ask.undoes,
        kafkaform_version=VERSION,
    )
    rendered = Rendered.make(plan)
    # One durable write: recovery needs the plan of every intent, and its approval.
    scene.ledger.journal.write_all(
        [
            (RecordKind.RUN_BEGIN, begin),
            (RecordKind.PLAN, make_plan_body(rendered, plan.approval, plan.configuration)),
            (RecordKind.APPROVAL, make_approval_body(plan.approval, approval, plan.configuration)),
            (RecordKind.VALIDATE, make_validate_body(plan.approval, verdicts.values())),
        ]
    )


def _record_end(scene: Scene, chosen: Chosen, report: Report) -> tuple[Report, Diagnostics]:
    """Record the outputs and the end of the run, and save the state anchored there. Returns the
    report, and the rules that do not hold."""
    # Another run may have the lock by now: a write of this one would corrupt its log.
    if isinstance(report.stopped, Locked):
        return report, ()
    broken: Diagnostics = ()
    try:
        # Outputs that another system answered must not replace those of ours.
        if not isinstance(report.stopped, OtherSystem):
            broken = _save_live_state(scene, chosen)
    except OtherSystem as error:
        report = replace(report, stopped=error)
    counts = Counter(result.outcome.status.value for result in report.results)
    end = make_run_end_body(chosen.plan.approval, complete=report.complete, counts=counts)
    scene.ledger.journal.write(RecordKind.RUN_END, end)
    scene.ledger.save_state(scene.ledger.state)
    return report, broken


def _save_live_state(scene: Scene, chosen: Chosen) -> Diagnostics:
    """Save the rows of unchanged objects as they are live, and the outputs. Returns the rules that
    do not hold. A refresh-only plan saves nothing but what it lists."""
    if chosen.plan.options.mode is Mode.REFRESH:
        return ()
    if chosen.made_now:
        scene.ledger.refresh_rows(chosen.plan.changes)
    return _save_outputs(scene, chosen.plan)


def _save_outputs(scene: Scene, plan: Plan) -> Diagnostics:
    """Evaluate outputs and rules with what is live now, and save the outputs. Returns the rules
    that do not hold and that the plan did not name."""
    # The outputs of a saved plan's configuration are unknown if the folder has changed since.
    if scene.space.desired.digest != plan.configuration:
        return ()
    settled = scene.space.configuration.evaluate_settled(scene.space.desired, scene.sessions)
    after = set_outputs(
        scene.ledger.state, record_outputs(settled.outputs, scene.ledger.state.outputs)
    )
    if after.outputs != scene.ledger.state.outputs:
        scene.ledger.save_state(after)
    return tuple(item for item in settled.diagnostics if item not in plan.diagnostics)


def wait_for_earlier_run(
    lease: Lease,
    index: LogIndex,
    sessions: Mapping[str, Session],
    clock: Clock,
    announce: Announcer,
) -> None:
    """Wait until every request of a run that lost its lock was answered or has timed out."""
    # It may have sent a request just before its lock was taken over, which can still take effect.
    if lease.taken_over is None or not index.open_intents or not sessions:
        return
    longest = max(compute_patience(session.facts) for session in sessions.values())
    remaining = lease.taken_over + longest - clock.monotonic()
    if remaining > 0:
        text = f"Waiting {remaining:.0f} s for requests of the previous run"
        announce(Message(text))
        clock.sleep(remaining)


def close_earlier_runs(
    space: Workspace,
    ask: ApplyRequest,
    index: LogIndex,
    ledger: Ledger,
    sessions: Mapping[str, Session],
    announce: Announcer,
    owed_removals: Owed,
) -> LogIndex:
    """Close what earlier runs left open, and return the index of the log after that."""
    if not (index.open_intents or index.unsaved or index.obligations):
        return index
    # What a destroy or an undo plans repeats none of the steps that are open.
    repeating = ask.options.mode is not Mode.DESTROY and ask.undoes is None
    desired = complete_declared(space.desired, space.types, sessions) if repeating else None
    declared = {item.identity: item for item in (desired.declared if desired else ())}
    resumed_runs = find_resumed_runs(ask, index)
    repeats = ask.options.mode is not Mode.REFRESH
    world = RecoveryScope(
        sessions, space.types, declared, space.clock, announce, resumed_runs, repeats
    )
    recovered = recover(index, ledger, world)
    ledger.discharge_ended(end_never_sent(owed_removals.never_sent))
    announce(recovered)
    # What is due is in the plan that follows, and the end of the run says what became of it.
    for work in recovered.work:
        if not work.due:
            announce(work)
    # A system that is not asked leaves its steps open: nothing is sent to it, so a later run can
    # still find out what became of them. A run that is resumed has to know now.
    resumed = {get_run(record) for record in index.open_intents} & resumed_runs
    unclear = [
        result for result in recovered.open if resumed or result.step.identity.instance in sessions
    ]
    if unclear:
        raise _make_unresolved_error(unclear, index, ask, space.words)
    if recovered.open:
        announce(
            Note(
                f"{render_count(len(recovered.open), 'step')} of an earlier run stay open, because "
                f"their systems are not asked: {_render_names(recovered.open)}"
            )
        )
    # Recovery has appended to the log, and what is left open is known only from all of it.
    index = continue_index(space.sink, index, ledger.state.audit_head)
    refuse_moved_on(ledger.journal, index)
    return index


def _make_unresolved_error(
    results: Sequence[Result], index: LogIndex, ask: ApplyRequest, words: Vocabulary
) -> OutcomeUnknown:
    """The error for steps whose result is unknown, with what the user can do about them."""
    # Nobody can read back a password, so for a secret there is nothing to make readable.
    hidden = [result for result in results if is_untellable(result.change, result.step)]
    if hidden != list(results) or index.open_run is None or index.open_run.plan is None:
        nodes = f"{shared(words.values()).node}s"
        return OutcomeUnknown(
            f"{render_count(len(results), 'step')} of an earlier run cannot be read: "
            f"{_render_names(results)}",
            f"Make them readable ({nodes}, rights), then run {ask.command} again. Nothing was "
            "sent.",
        )
    plan = read_recorded_plan(index.open_run.plan, index.open_run.run)
    program = ask.rerun.program
    repeat = f"Send the same once more with `{program} apply --expect {plan.token}`, or give"
    return OutcomeUnknown(
        f"an earlier run sent a secret and got no answer, and nothing can show whether it arrived: "
        f"{_render_names(results)}",
        f"{repeat if plan.rule == RULE else 'Give'} the secret another version. Nothing was sent.",
    )


def _render_names(results: Sequence[Result]) -> str:
    named = ", ".join(result.change.address for result in results[:NAMED])
    hidden_count = len(results) - NAMED
    return f"{named} and {hidden_count:,} more" if hidden_count > 0 else named
