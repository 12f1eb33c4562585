"""The closing table of an apply: what was done, what was not and why, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..core.change import Action, Change, Outcome, OutcomeStatus
from ..core.resource import FaultClass
from ..core.words import NEUTRAL, NO_WORDS, Vocabulary, Words
from .style import Paint
from .text import inline, render_message, render_table

APPLIED_LIMIT = 20
SKIPPED_LIMIT = 10


class ResultRow(Struct, frozen=True):
    """One change's result. status: the worst of its steps'; reason and advice: of the fault;
    takes_away: it counts as destroyed, whatever its action is; word: what people are told in place
    of the status."""

    address: str
    action: Action
    status: OutcomeStatus
    reason: str = ""
    fault_advice: str = ""
    takes_away: bool = False
    word: str = ""

    @property
    def ended(self) -> str:
        return self.word or self.status.value


class ApplyReport(Struct, frozen=True):
    """rows: one a change; run: id of the run; next: the command to go on with, if any; blocked:
    how many changes of the plan were left out."""

    rows: tuple[ResultRow, ...]
    run: str = ""
    next: str = ""
    blocked: int = 0


# In the order to read them: what nobody knows yet comes first.
STATUSES = (
    OutcomeStatus.UNKNOWN,
    OutcomeStatus.FAILED,
    OutcomeStatus.SKIPPED,
    OutcomeStatus.STARTED,
    OutcomeStatus.APPLIED,
)

_WHY = {
    OutcomeStatus.UNKNOWN: "it may have happened; the next run reads before it decides",
    OutcomeStatus.SKIPPED: "not sent, because what it depends on was not applied",
    OutcomeStatus.STARTED: "the {task_on_it} goes on in the background; the next apply "
    "says how it stands",
}

NOT_APPLIED = "not applied"
"""What failed and certainly had no effect, such as a request that could not be sent."""

_DONE = (("added", Action.CREATE), ("changed", Action.UPDATE), ("destroyed", Action.DELETE))
_DONE_TOO = (
    ("adopted", Action.ADOPT),
    ("imported", Action.IMPORT),
    ("forgotten", Action.FORGET),
)


def make_apply_report(
    results: Iterable[tuple[Change, Outcome]],
    run: str = "",
    next_command: str = "",
    blocked: int = 0,
    words: Vocabulary = NO_WORDS,
) -> ApplyReport:
    """The report of outcomes; a change with several steps comes once with each of them. words: of
    the providers."""
    changes: dict[object, tuple[Change, list[Outcome]]] = {}
    for change, outcome in results:
        changes.setdefault((change.identity, change.address), (change, []))[1].append(outcome)
    rows = tuple(
        _make_row(change, outcomes, words.get(change.identity.instance, NEUTRAL))
        for change, outcomes in changes.values()
    )
    return ApplyReport(rows, run, next_command, blocked)


def render_apply_summary(report: ApplyReport, *, colour: bool = False) -> str:
    """The table and a last line that counts, with a final newline. Applied changes are listed
    only if they are few, of skipped ones the first; all others always."""
    paint = Paint(colour)
    rows = sorted(report.rows, key=lambda row: (STATUSES.index(row.status), row.address))
    tally = Counter(row.status for row in rows)
    few = tally[OutcomeStatus.APPLIED] <= APPLIED_LIMIT
    listed = [row for row in rows if few or row.status is not OutcomeStatus.APPLIED]
    skipped = [row for row in listed if row.status is OutcomeStatus.SKIPPED]
    rest = {*skipped[SKIPPED_LIMIT:]}
    told = _render_table([row for row in listed if row not in rest], paint)
    if rest:
        told.append(f"  … and {len(rest):,} more that were skipped")
    left = f" {report.blocked} blocked." if report.blocked else ""
    lines = [*told, *([""] if listed else []), _render_last_line(rows, tally, paint) + left]
    if report.run:
        lines.insert(-1, f"Run: {inline(report.run)}")
    if report.next:
        lines.insert(-1, f"Next: {inline(report.next)}")
    return "\n".join(lines) + "\n"


def count_applied(rows: Iterable[ResultRow]) -> Counter[Action]:
    """The applied changes by what they count as."""
    done = (row for row in rows if row.status is OutcomeStatus.APPLIED)
    return Counter(Action.DELETE if row.takes_away else row.action for row in done)


def _make_row(change: Change, outcomes: Sequence[Outcome], words: Words) -> ResultRow:
    worst = min(outcomes, key=lambda outcome: STATUSES.index(outcome.status))
    fault = worst.fault
    why = _WHY.get(worst.status, "").format(task_on_it=words.task_on_it)
    reason = f"{fault.code}: {fault.message}" if fault else why
    if fault and worst.status is OutcomeStatus.UNKNOWN:
        reason = f"{reason}; {_WHY[OutcomeStatus.UNKNOWN]}"
    if worst.ticket and not fault:
        far = f"{worst.note}; " if worst.note else ""
        reason = f"{far}{reason}"
    applied = sum(1 for outcome in outcomes if outcome.status is OutcomeStatus.APPLIED)
    if applied and worst.status is not OutcomeStatus.APPLIED:
        reason = f"{applied} of {len(outcomes)} requests applied; {reason}"
    advice = fault.advice if fault else ""
    harmless = fault is not None and fault.kind is FaultClass.NOT_APPLIED
    word = NOT_APPLIED if harmless and worst.status is OutcomeStatus.FAILED else ""
    return ResultRow(
        change.address, change.action, worst.status, reason, advice, change.takes_away, word
    )


def _render_table(rows: Sequence[ResultRow], paint: Paint) -> list[str]:
    cells = [[row.ended, f"{row.action.symbol} {inline(row.address)}"] for row in rows]
    lines = []
    for row, text in zip(rows, render_table(cells), strict=True):
        status, end = row.status.value, len(row.ended)
        why = f"  {render_message(row.reason)}" if row.reason else ""
        lines.append(f"  {paint(status, text[:end])}{text[end:]}{why}")
        if row.fault_advice:
            lines.append(f"      to do: {render_message(row.fault_advice)}")
    return lines


def _render_last_line(
    rows: Sequence[ResultRow], tally: Counter[OutcomeStatus], paint: Paint
) -> str:
    if set(tally) <= {OutcomeStatus.APPLIED}:
        done = count_applied(rows)
        parts = [f"{done[action]} {word}" for word, action in _DONE]
        parts += [f"{done[action]} {word}" for word, action in _DONE_TOO if done[action]]
        return paint("applied", "Apply complete: ") + ", ".join(parts) + "."
    order = sorted(rows, key=lambda row: (-STATUSES.index(row.status), row.word))
    parts = [f"{number} {word}" for word, number in Counter(row.ended for row in order).items()]
    worst = next(status for status in STATUSES if tally[status])
    return paint(worst.value, f"{_render_title(tally)}: ") + ", ".join(parts) + "."


def _render_title(tally: Counter[OutcomeStatus]) -> str:
    """Says in part only where a part is certain."""
    if tally[OutcomeStatus.APPLIED] or tally[OutcomeStatus.STARTED]:
        done = tally.keys() <= {OutcomeStatus.APPLIED, OutcomeStatus.STARTED}
        return "Applied, with work under way" if done else "Applied in part"
    unknown = tally[OutcomeStatus.UNKNOWN]
    return "Not known yet whether anything was applied" if unknown else "Nothing applied"
