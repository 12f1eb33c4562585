"""Find out what earlier runs left open, and record it: the first thing that an apply does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..apply.ledger import Ledger
from ..apply.obligations import Owed, end_never_sent
from ..apply.recovery import RecoveryScope, recover
from ..apply.report import Result
from ..apply.settle import compute_patience
from ..apply.verify import is_untellable
from ..audit.index import LogIndex, get_run
from ..core.clock import Clock
from ..core.errors import OutcomeUnknown
from ..core.progress import Message
from ..core.words import Vocabulary, shared
from ..plan.approval import RULE
from ..plan.codec import read_recorded_plan
from ..plan.model import Mode
from ..provider.contract import Session
from ..render.text import render_count
from ..state.backend import Lease
from .events import Announcer, Note
from .plan_choice import find_resumed_runs
from .run import ApplyRequest
from .workspace import Workspace, read_log, refuse_moved_on

NAMED = 5
"""How many objects an error names."""


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
    # The plan of a destroy declares nothing, so it repeats none of the steps that are open.
    wished = () if ask.options.mode is Mode.DESTROY else space.desired.declared
    declared = {item.identity: item for item in wished}
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
        raise _make_unresolved_error(unclear, index, ask.command, space.words)
    if recovered.open:
        announce(
            Note(
                f"{render_count(len(recovered.open), 'step')} of an earlier run stay open, because "
                f"their systems are not asked: {_render_names(recovered.open)}"
            )
        )
    # Recovery has appended to the log, and what is left open is known only from all of it.
    index = read_log(space.sink, ledger.state if ledger.state.audit_head else None)
    refuse_moved_on(ledger.journal, index)
    return index


def _make_unresolved_error(
    results: Sequence[Result], index: LogIndex, command: str, words: Vocabulary
) -> OutcomeUnknown:
    """The error for steps whose result is unknown, with what the user can do about them.

    command: the one that runs.
    """
    # Nobody can read back a password, so for a secret there is nothing to make readable.
    hidden = [result for result in results if is_untellable(result.change, result.step)]
    if hidden != list(results) or index.open_run is None or index.open_run.plan is None:
        nodes = f"{shared(words.values()).node}s"
        return OutcomeUnknown(
            f"{render_count(len(results), 'step')} of an earlier run cannot be read: "
            f"{_render_names(results)}",
            f"Make them readable ({nodes}, rights), then run {command} again. Nothing was sent.",
        )
    plan = read_recorded_plan(index.open_run.plan, index.open_run.run)
    repeat = f"Send the same once more with `kafkaform apply --expect {plan.token}`, or give"
    return OutcomeUnknown(
        f"an earlier run sent a secret and got no answer, and nothing can show whether it arrived: "
        f"{_render_names(results)}",
        f"{repeat if plan.rule == RULE else 'Give'} the secret another version. Nothing was sent.",
    )


def _render_names(results: Sequence[Result]) -> str:
    named = ", ".join(result.change.address for result in results[:NAMED])
    hidden_count = len(results) - NAMED
    return f"{named} and {hidden_count:,} more" if hidden_count > 0 else named
