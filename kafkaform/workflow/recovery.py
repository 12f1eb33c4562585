"""Find out what earlier runs left open, and record it: the first thing that an apply does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..apply.judge import is_untellable
from ..apply.ledger import Ledger
from ..apply.owed import Owed, end_never_sent
from ..apply.recover import RecoveryScope, recover
from ..apply.report import Result
from ..apply.settle import compute_patience
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
    found: LogIndex,
    sessions: Mapping[str, Session],
    clock: Clock,
    announce: Announcer,
) -> None:
    """Wait until every request of a run that lost its lock was answered or has timed out."""
    # It may have sent a request just before its lock was taken over, which can still take effect.
    if lease.taken_over is None or not found.open_intents or not sessions:
        return
    longest = max(compute_patience(session.facts) for session in sessions.values())
    left = lease.taken_over + longest - clock.monotonic()
    if left > 0:
        text = f"Waiting {left:.0f} s for requests of the previous run"
        announce(Message(text))
        clock.sleep(left)


def close_earlier_runs(
    space: Workspace,
    ask: ApplyRequest,
    found: LogIndex,
    ledger: Ledger,
    sessions: Mapping[str, Session],
    announce: Announcer,
    owed: Owed,
) -> LogIndex:
    """Close what earlier runs left open, and return the index of the log after that."""
    if not (found.open_intents or found.unsaved or found.obligations):
        return found
    # The plan of a destroy declares nothing, so it repeats none of the steps that are open.
    wished = () if ask.options.mode is Mode.DESTROY else space.desired.declared
    declared = {item.identity: item for item in wished}
    again = find_resumed_runs(ask, found)
    repeats = ask.options.mode is not Mode.REFRESH
    world = RecoveryScope(sessions, space.types, declared, space.clock, announce, again, repeats)
    recovered = recover(found, ledger, world)
    ledger.discharge_ended(end_never_sent(owed.never_sent))
    announce(recovered)
    # What is due is in the plan that follows, and the end of the run says what became of it.
    for work in recovered.work:
        if not work.due:
            announce(work)
    # A system that is not asked leaves its steps open: nothing is sent to it, so a later run can
    # still find out what became of them. A run that is resumed has to know now.
    resumed = {get_run(record) for record in found.open_intents} & again
    unclear = [one for one in recovered.open if resumed or one.step.identity.instance in sessions]
    if unclear:
        raise _make_unresolved_error(unclear, found, ask.command, space.words)
    if recovered.open:
        announce(
            Note(
                f"{render_count(len(recovered.open), 'step')} of an earlier run stay open, because "
                f"their systems are not asked: {_render_names(recovered.open)}"
            )
        )
    # Recovery has appended to the log, and what is left open is known only from all of it.
    found = read_log(space.sink, ledger.state if ledger.state.audit_head else None)
    refuse_moved_on(ledger.journal, found)
    return found


def _make_unresolved_error(
    left: Sequence[Result], found: LogIndex, command: str, words: Vocabulary
) -> OutcomeUnknown:
    """The error for steps whose result is unknown, with what the user can do about them.

    command: the one that runs.
    """
    # Nobody can read back a password, so for a secret there is nothing to make readable.
    hidden = [result for result in left if is_untellable(result.change, result.step)]
    if hidden != list(left) or found.open_run is None or found.open_run.plan is None:
        nodes = f"{shared(words.values()).node}s"
        return OutcomeUnknown(
            f"{render_count(len(left), 'step')} of an earlier run cannot be read: "
            f"{_render_names(left)}",
            f"Make them readable ({nodes}, rights), then run {command} again. Nothing was sent.",
        )
    plan = read_recorded_plan(found.open_run.plan, found.open_run.run)
    again = f"Send the same once more with `kafkaform apply --expect {plan.token}`, or give"
    return OutcomeUnknown(
        f"an earlier run sent a secret and got no answer, and nothing can show whether it arrived: "
        f"{_render_names(left)}",
        f"{again if plan.rule == RULE else 'Give'} the secret another version. Nothing was sent.",
    )


def _render_names(results: Sequence[Result]) -> str:
    named = ", ".join(result.change.address for result in results[:NAMED])
    more = len(results) - NAMED
    return f"{named} and {more:,} more" if more > 0 else named
