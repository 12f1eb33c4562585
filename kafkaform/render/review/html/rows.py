"""The rows of the page: one for each entry, with what filters and readers need of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ....core.change import Action, Change
from ....core.finding import Harm, Level
from ....core.words import Words
from ...body import Line
from ...entries import Entry
from ...findings import render_findings
from ...lines import (
    is_line,
    name_object,
    render_brief,
    render_details,
    render_names,
    render_title,
    render_values,
)
from ...text import inline, quote
from ...view import Drift, Group, PlanView
from ..brief import ACTIONS, list_texts, says_differently


class Chip(Struct, frozen=True):
    """A short coloured word."""

    text: str
    style: str
    """`bad`, `warn` or `note`."""


class Row(Struct, frozen=True):
    """One entry on the page."""

    id: str
    """The anchor, unique on the page."""
    action: str
    """A value of `ACTIONS`."""
    style: str
    """The action, or `blocked`, for the colour of the symbol."""
    entry: Entry
    title: str
    """What several objects have in common, such as `70 boxes: keep.ms 7 d → 3 d`; empty for one."""
    chips: tuple[Chip, ...]
    brief: str
    """What happens, on one line."""
    texts: tuple[tuple[Change, str], ...]
    """The objects with what is special about each of them; empty if nothing is."""
    lines: tuple[Line, ...]
    """All that is known of it."""

    @property
    def lead(self) -> Change:
        return self.entry.lead

    @property
    def kinds(self) -> str:
        """The kinds of its risks, for the filter."""
        return " ".join(risk.harm.value for risk in self.entry.risks)

    @property
    def symbol(self) -> str:
        return "!" if self.lead.blocked else self.lead.action.symbol


class RowGroup(Struct, frozen=True):
    """Rows under one heading."""

    name: str
    title: str
    total: int
    """The objects of all rows."""
    rows: tuple[Row, ...]


def make_rows(view: PlanView) -> tuple[RowGroup, ...]:
    """The groups of a plan, in reading order."""
    return tuple(_make_group(group, view) for group in view.groups)


def list_choices(groups: Iterable[RowGroup]) -> dict[str, dict[str, str]]:
    """Filter -> its choices, as value and text; a filter with one choice is left out."""
    rows = [row for group in groups for row in group.rows]
    risks = {risk.harm for row in rows for risk in row.entry.risks}
    found = {
        "action": _name_same(row.action for row in rows),
        "kind": _name_same(sorted({row.lead.identity.kind for row in rows})),
        "risk": {"any": "any risk"} | {k.value: k.label for k in Harm if k in risks},
        "instance": _name_same(sorted({row.lead.identity.instance for row in rows})),
    }
    return {name: choices for name, choices in found.items() if len(choices) > 1}


def list_drift(drift: Iterable[Drift]) -> tuple[tuple[Entry, str], ...]:
    """What changed outside kafkaform: objects, and how they differ."""
    return tuple(
        (entry, ", ".join(map(render_brief, entry.lead.drift)))
        for kind in drift
        for entry in kind.entries
    )


def _name_same(values: Iterable[str]) -> dict[str, str]:
    return {value: value for value in values}


def _make_group(group: Group, view: PlanView) -> RowGroup:
    rows = tuple(
        _make_row(f"{group.name}-{number}", group.name, entry, view)
        for number, entry in enumerate(group.entries, 1)
    )
    return RowGroup(group.name, group.title, len(group.changes), rows)


def _make_row(name: str, group: str, entry: Entry, view: PlanView) -> Row:
    lead = entry.lead
    words = view.words_of(lead.identity.instance)
    return Row(
        name,
        ACTIONS[group],
        "blocked" if lead.blocked else lead.action.value,
        entry,
        render_title(entry, words) if len(entry.changes) > 1 else "",
        tuple(_list_chips(entry)),
        _render_brief_line(entry, words),
        list_texts(entry) if says_differently(entry) or is_line(lead, words) else (),
        # The row's own line names the object, and those of a row of several stand above its lines.
        tuple(render_details(entry if len(entry.changes) > 1 else lead, words)),
    )


def _list_chips(entry: Entry) -> Iterator[Chip]:
    levels = {risk.harm: risk.level for risk in reversed(entry.risks)}
    for harm in dict.fromkeys(risk.harm for risk in entry.risks):
        yield Chip(harm.label, "bad" if levels[harm] is Level.DANGER else "warn")
    if entry.lead.adopts and entry.lead.action is Action.UPDATE:
        yield Chip("adopted", "note")
    if entry.lead.notes:
        yield Chip("note", "note")
    if entry.breaches:
        yield Chip("policy", "bad" if entry.blocked else "warn")


def _render_brief_line(entry: Entry, words: Words) -> str:
    """The first of these: why it is blocked, what it destroys, what to know, what changes."""
    lead = entry.lead
    if entry.blocked is not None:
        return entry.blocked.text
    texts = [entry.impact.text] if entry.impact else []
    texts += [*(risk.text for risk in entry.risks), *entry.notes]
    texts += [text for text, _ in render_findings(entry)]
    if texts:
        return texts[0]
    if is_line(lead, words):
        # The name says it all; of several, the page lists each on a line of its own.
        rest = len(entry.changes) - 1
        if rest:
            return f"{name_object(lead, words)}, … and {rest:,} more"
        return render_values(lead) if lead.action is Action.UPDATE else inline(lead.reason)
    if len(entry.changes) > 1:
        return render_names(entry, words)
    return render_values(lead) if lead.action is Action.UPDATE else quote(lead.identity.key)
