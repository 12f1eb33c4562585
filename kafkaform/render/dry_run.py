"""Render the result of a dry run for each change, as text and as JSON lines."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec import Struct

from ..core.change import Change, Evidence, Verdict
from ..core.words import NEUTRAL, NO_WORDS, Vocabulary
from ..plan.model import Plan
from .change_entries import LEAST, join_names, join_texts, mask_names, read_names
from .change_lines import CHECKED, STRENGTH, name_object, render_evidence
from .stream import make_resource
from .terraform import Data
from .text import inline

REFUSED = "refused"
WAITS = "depends on other changes, so it is checked just before it is sent"


class CheckedChange(Struct, frozen=True):
    """One change that sends something, and the result of its dry run."""

    change: Change
    evidence: Evidence | None
    """Of its weakest step. None if the change was refused, or has a step that waits for others."""
    fault: str = ""
    """Why the change was refused, or empty."""
    how: str = WAITS
    """The evidence in words."""

    @property
    def text(self) -> str:
        if self.fault:
            return f"{REFUSED}: {self.fault}"
        return self.how


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
            yield CheckedChange(change, weakest, how=evidence)


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
                "resource": make_resource(row.change),
                "evidence": row.evidence.value if row.evidence is not None else None,
                "refused": row.fault or None,
            },
        }
