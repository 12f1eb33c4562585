"""Render the summary at the end of an apply: what was done, what was not, and what to do next; and
the result of a dry run for each change, as text and as JSON lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ..core.change import Action, Change, Evidence, Outcome, OutcomeStatus, Verdict
from ..core.resource import FaultClass
from ..core.text import make_sentence
from ..core.words import NEUTRAL, NO_WORDS, Vocabulary, Words, shared
from ..plan.model import Plan
from .change_entries import LEAST, join_names, join_sentences, join_texts, mask_names, read_names
from .change_lines import CHECKED, STRENGTH, name_object, render_evidence
from .terraform import Data, make_event_resource
from .text import Paint, inline, render_count, render_message, render_table

APPLIED_LIMIT = 20
"""Applied changes are listed if there are no more than this."""
SKIPPED_LIMIT = 10
"""Skipped changes with reasons of their own that are listed. What they depend on is listed, too."""
_ADDRESS = re.compile(r'[\w-]+(?:\.[\w-]+|\[(?:"(?:[^"\\]|\\.)*"|\d+)\]|/[\w-]+)+')
_OWN_CODES = frozenset({"SKIPPED", "NOT_SENT"})
"""Codes of ours, whose messages say the same. Those of a system can be looked up."""


class ResultRow(Struct, frozen=True):
    """The result of one change."""

    address: str
    name: str
    """What people call the object: its address, with a sentence if it has one. Safe to print."""
    instance: str
    kind: str
    action: Action
    status: OutcomeStatus
    """The worst status among its steps."""
    reason: str = ""
    fault_advice: str = ""
    takes_away: bool = False
    """True if the change counts as destroyed, whatever its action is."""
    moves: bool = False
    """True if only the address changed."""
    word: str = ""
    """What people read in place of the status, or empty."""
    names: frozenset[str] = frozenset()
    """All that people call the object."""

    @property
    def ended(self) -> str:
        """The status for people."""
        return self.word or self.status.value


class ApplyReport(Struct, frozen=True):
    """The results of one apply."""

    rows: tuple[ResultRow, ...]
    """One per change."""
    run: str = ""
    """The id of the run."""
    next: str = ""
    """The command that continues, if any."""
    blocked: int = 0
    """How many blocked changes of the plan were left out."""
    complete: bool = True
    """The command ends without an error: all that was asked for is done, visible and recorded."""
    removals: int = 0
    """How many settings of earlier runs were removed."""
    words: Vocabulary = NO_WORDS
    """The words of the providers."""


# Worst first, which is also the reading order. Unknown is worse than failed: nobody knows yet
# whether the system was changed.
STATUSES = (
    OutcomeStatus.UNKNOWN,
    OutcomeStatus.FAILED,
    OutcomeStatus.SKIPPED,
    OutcomeStatus.STARTED,
    OutcomeStatus.APPLIED,
)

_WHY = {
    OutcomeStatus.UNKNOWN: "the request may have taken effect; the next run checks that first",
    OutcomeStatus.SKIPPED: "not sent, because a change that it depends on was not applied",
    OutcomeStatus.STARTED: "the {task_on_it} continues in the background; the next apply reports "
    "its progress",
}

NOT_APPLIED = "not applied"
"""Said of a failure that certainly had no effect, such as a request that could not be sent."""

_DONE = (("added", Action.CREATE), ("changed", Action.UPDATE), ("destroyed", Action.DELETE))
_DONE_TOO = (
    ("adopted", Action.ADOPT),
    ("imported", Action.IMPORT),
    ("forgotten", Action.FORGET),
    ("refreshed", Action.REFRESH),
)


def make_apply_report(
    results: Iterable[tuple[Change, Outcome]],
    run: str = "",
    next_command: str = "",
    blocked: int = 0,
    words: Vocabulary = NO_WORDS,
    complete: bool = True,
    removals: int = 0,
) -> ApplyReport:
    """Collect outcomes into a report.

    results: a change with several steps appears once for each of them; words: of the providers;
    complete: the command ends without an error; removals: of settings of earlier runs.
    """
    changes: dict[object, tuple[Change, list[Outcome]]] = {}
    for change, outcome in results:
        changes.setdefault((change.identity, change.address), (change, []))[1].append(outcome)
    rows = tuple(
        _make_row(change, outcomes, words.get(change.identity.instance, NEUTRAL))
        for change, outcomes in changes.values()
    )
    return ApplyReport(rows, run, next_command, blocked, complete, removals, words)


def render_apply_summary(report: ApplyReport, *, colour: bool = False) -> str:
    """The table and a last line with counts, with a final newline."""
    # Failed, unknown and started changes are always listed or counted at their cause: somebody has
    # to look at each of them.
    paint = Paint(colour)
    rows = sorted(report.rows, key=lambda row: (STATUSES.index(row.status), row.address))
    tally = Counter(row.status for row in rows)
    few = tally[OutcomeStatus.APPLIED] <= APPLIED_LIMIT
    listed = [row for row in rows if few or row.status is not OutcomeStatus.APPLIED]
    groups, hidden = _limit_skipped(_group_rows(listed))
    table = _render_table(groups, report, paint)
    if hidden:
        table.append(f"  … and {hidden:,} more skipped")
    blocked = f" {report.blocked} blocked." if report.blocked else ""
    lines = [*table, *([""] if listed else []), _render_last_line(report, tally, paint) + blocked]
    if report.run:
        lines.insert(-1, f"Run: {inline(report.run)}")
    if report.next:
        lines.insert(-1, f"Next: {inline(report.next)}")
    return "\n".join(lines) + "\n"


def count_applied(rows: Iterable[ResultRow]) -> Counter[Action]:
    """The number of applied changes by action; those that take something away are deletions."""
    applied = (row for row in rows if row.status is OutcomeStatus.APPLIED and not row.moves)
    return Counter(Action.DELETE if row.takes_away else row.action for row in applied)


def render_amounts(applied: Mapping[Action, int]) -> Iterator[str]:
    """The three counts of Terraform's last line, and those of other actions that are not zero."""
    for words, shows_zero in ((_DONE, True), (_DONE_TOO, False)):
        for word, action in words:
            if shows_zero or applied[action]:
                yield f"{applied[action]:,} {word}"


def _make_row(change: Change, outcomes: Sequence[Outcome], words: Words) -> ResultRow:
    worst = min(outcomes, key=lambda outcome: STATUSES.index(outcome.status))
    fault = worst.fault
    explanation = _WHY.get(worst.status, "").format(task_on_it=words.task_on_it)
    reason = explanation
    if fault:
        reason = fault.message if fault.code in _OWN_CODES else f"{fault.code}: {fault.message}"
    # "Connection reset" alone reads like a failure, so the sentence about unknown results follows.
    if fault and worst.status is OutcomeStatus.UNKNOWN:
        reason = f"{reason}; {_WHY[OutcomeStatus.UNKNOWN]}"
    if worst.ticket and not fault:
        far = f"{worst.note}; " if worst.note else ""
        reason = f"{far}{reason}"
    applied = sum(1 for outcome in outcomes if outcome.status is OutcomeStatus.APPLIED)
    if applied and worst.status is not OutcomeStatus.APPLIED:
        reason = f"{applied} of {len(outcomes)} requests applied; {reason}"
    advice = make_sentence(fault.advice) if fault else ""
    harmless = fault is not None and fault.kind is FaultClass.NOT_APPLIED
    word = NOT_APPLIED if harmless and worst.status is OutcomeStatus.FAILED else ""
    return ResultRow(
        change.address,
        name_object(change, words),
        change.identity.instance,
        change.identity.kind,
        change.action,
        worst.status,
        reason,
        advice,
        change.takes_away,
        change.moves,
        word,
        read_names(change, words),
    )


def _group_rows(rows: Sequence[ResultRow]) -> list[list[ResultRow]]:
    """The rows, those with one cause together, in the order of the first ones."""
    addresses = {row.address for row in rows}
    alike: dict[tuple[str, str], list[ResultRow]] = {}
    for row in rows:
        # What was applied has no cause, and is listed only if it is little.
        applied = row.status is OutcomeStatus.APPLIED
        cause = row.address if applied else _read_cause(row, addresses)
        alike.setdefault((row.ended, cause), []).append(row)
    return [
        members
        for group in alike.values()
        for members in ([group] if len(group) >= LEAST else [[row] for row in group])
    ]


def _limit_skipped(groups: list[list[ResultRow]]) -> tuple[list[list[ResultRow]], int]:
    """The groups without the skipped changes that nobody needs to see singly, and their number."""
    listed, skipped = [], 0
    for group in groups:
        alone = len(group) == 1 and group[0].status is OutcomeStatus.SKIPPED
        skipped += alone
        if not alone or skipped <= SKIPPED_LIMIT:
            listed.append(group)
    return listed, max(0, skipped - SKIPPED_LIMIT)


def _read_cause(row: ResultRow, addresses: Collection[str]) -> str:
    """Why, without names: equal for objects that failed for one cause, each for its own, or each
    because of another object."""
    text = f"{row.reason}\n{row.fault_advice}"
    masked = _ADDRESS.sub(lambda match: "\0" if match[0] in addresses else match[0], text)
    return mask_names(masked, row.names)


def _render_table(
    groups: Sequence[Sequence[ResultRow]], report: ApplyReport, paint: Paint
) -> list[str]:
    cells = [[group[0].ended, _name_group(group, report)] for group in groups]
    return [
        line
        for group, text in zip(groups, render_table(cells), strict=True)
        for line in _render_group(group, text, paint)
    ]


def _name_group(group: Sequence[ResultRow], report: ApplyReport) -> str:
    """`+ box.orders`, or `+ 1,000 boxes`."""
    first, number = group[0], len(group)
    if number == 1:
        return f"{first.action.symbol} {first.name}"
    objects = f"{number:,} objects"
    if len({(row.instance, row.kind) for row in group}) == 1:
        objects = report.words.get(first.instance, NEUTRAL).name_objects(number, first.kind)
    symbols = {row.action.symbol for row in group}
    return f"{first.action.symbol if len(symbols) == 1 else ' '} {inline(objects)}"


def _render_group(group: Sequence[ResultRow], text: str, paint: Paint) -> Iterator[str]:
    """text: status and name, padded."""
    first, end = group[0], len(group[0].ended)
    reason = join_texts([row.reason for row in group])
    suffix = f"  {render_message(reason)}" if reason else ""
    yield f"  {paint(first.status.value, text[:end])}{text[end:]}{suffix}"
    if len(group) > 1:
        yield f"      {join_names([row.name for row in group])}"
    advice = join_sentences([row.fault_advice for row in group])
    if advice:
        yield f"      fix: {render_message(advice)}"


def _render_last_line(report: ApplyReport, tally: Counter[OutcomeStatus], paint: Paint) -> str:
    rows = report.rows
    if set(tally) <= {OutcomeStatus.APPLIED}:
        amounts = [*render_amounts(count_applied(rows))]
        if report.removals:
            setting = shared(report.words.values()).setting
            amounts.append(f"{render_count(report.removals, setting)} removed")
        moved = sum(row.moves for row in rows)
        amounts += [f"{moved:,} moved"] if moved else []
        # An error that follows must not contradict this line.
        title = "Apply complete: " if report.complete else "Applied: "
        return paint("applied", title) + ", ".join(amounts) + "."
    order = sorted(rows, key=lambda row: (-STATUSES.index(row.status), row.word))
    amounts = [f"{number:,} {word}" for word, number in Counter(row.ended for row in order).items()]
    worst = next(status for status in STATUSES if tally[status])
    return paint(worst.value, f"{_render_title(tally)}: ") + ", ".join(amounts) + "."


def _render_title(tally: Counter[OutcomeStatus]) -> str:
    """`Applied in part` only if some change certainly was applied."""
    if tally[OutcomeStatus.APPLIED] or tally[OutcomeStatus.STARTED]:
        complete = tally.keys() <= {OutcomeStatus.APPLIED, OutcomeStatus.STARTED}
        return "Applied, with work under way" if complete else "Applied in part"
    unknown = tally[OutcomeStatus.UNKNOWN]
    return "It is unknown whether anything was applied" if unknown else "Nothing applied"


REFUSED = "refused"
WAITS = "depends on other changes, so it is checked just before it is sent"


class CheckedChange(Struct, frozen=True):
    """One change that sends something, and the result of its dry run."""

    change: Change
    evidence: Evidence | None
    """Of its weakest step. None if the change was refused, or has a step that waits for others."""
    fault: str = ""
    """Why the change was refused, or empty."""
    basis: str = WAITS
    """The evidence in words."""

    @property
    def text(self) -> str:
        if self.fault:
            return f"{REFUSED}: {self.fault}"
        return self.basis


def list_checked(
    plan: Plan, verdicts: Mapping[str, Verdict], words: Vocabulary = NO_WORDS
) -> Iterator[CheckedChange]:
    """Each change that sends something, in the plan's order.

    verdicts: by step id; words: of the plan's providers.
    """
    for change in plan.effective:
        steps = [step for step in change.steps if step.id in verdicts]
        step_verdicts = [verdicts[step.id] for step in steps]
        faults = (verdict.fault.message for verdict in step_verdicts if verdict.fault is not None)
        fault = next(faults, "")
        # A step without a verdict cannot be checked yet: it needs what an earlier step creates.
        if fault or (change.steps and len(step_verdicts) < len(change.steps)):
            yield CheckedChange(change, None, fault)
        elif change.steps:
            weakest = max((v.evidence for v in step_verdicts), key=STRENGTH.index)
            names = (step.request.name for step in steps)
            pairs = list(zip(names, (v.evidence for v in step_verdicts), strict=True))
            evidence = render_evidence(pairs, words.get(change.identity.instance, NEUTRAL), CHECKED)
            yield CheckedChange(change, weakest, basis=evidence)


def render_validation(
    plan: Plan, verdicts: Mapping[str, Verdict], words: Vocabulary = NO_WORDS
) -> str:
    """The result as text without a final newline: one line per change, of many with one result a
    count and a few names."""
    alike: dict[Hashable, list[CheckedChange]] = {}
    for row in list_checked(plan, verdicts, words):
        own = words.get(row.change.identity.instance, NEUTRAL)
        identity, text = row.change.identity, mask_names(row.text, read_names(row.change, own))
        alike.setdefault((identity.instance, identity.kind, text), []).append(row)
    lines = [line for rows in alike.values() for line in _render_rows(rows, words)]
    return "\n".join(("Dry run:", *lines)) if lines else "Dry run: nothing would be sent."


def _render_rows(rows: Sequence[CheckedChange], words: Vocabulary) -> Iterator[str]:
    """Changes of one kind with one result."""
    identity = rows[0].change.identity
    own = words.get(identity.instance, NEUTRAL)
    if len(rows) < LEAST:
        yield from (f"  {name_object(row.change, own)}: {inline(row.text)}" for row in rows)
        return
    objects = own.name_objects(len(rows), identity.kind)
    yield f"  {inline(objects)}: {inline(join_texts([row.text for row in rows]))}"
    yield f"      {join_names([name_object(row.change, own) for row in rows])}"


def list_validation_events(
    plan: Plan, verdicts: Mapping[str, Verdict], words: Vocabulary = NO_WORDS
) -> Iterator[Data]:
    """One event per change; `evidence` is null for a change that waits or was refused."""
    for row in list_checked(plan, verdicts, words):
        yield {
            "type": "validation",
            "@message": inline(f"{row.change.address}: {row.text}"),
            "validation": {
                "resource": make_event_resource(row.change),
                "evidence": row.evidence.value if row.evidence is not None else None,
                "refused": row.fault or None,
            },
        }
