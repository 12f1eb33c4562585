"""The rows of the page: one for each entry, with what filters and readers need of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ....core.change import Action, Change
from ....core.finding import Harm, Level
from ....core.words import Words
from ...body import Line
from ...entries import Entry
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

_CHIP_STYLES = {
    Level.BLOCK: "bad",
    Level.DANGER: "bad",
    Level.CAUTION: "warn",
    Level.NOTE: "note",
}


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
        """The levels and harms of its findings, for the filter."""
        findings = self.entry.findings
        words = (word for item in findings for word in (item.level.value, item.harm.value))
        return " ".join(dict.fromkeys(words))

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
    findings = [item for row in rows for item in row.entry.findings]
    levels, harms = {item.level for item in findings}, {item.harm for item in findings}
    names_by_choice = {
        "action": _name_same(row.action for row in rows),
        "kind": _name_same(sorted({row.lead.identity.kind for row in rows})),
        "finding": {
            "any": "any finding",
            **{level.value: level.value for level in Level if level in levels},
            **{harm.value: harm.label for harm in Harm if harm in harms and harm.label},
        },
        "instance": _name_same(sorted({row.lead.identity.instance for row in rows})),
    }
    return {name: choices for name, choices in names_by_choice.items() if len(choices) > 1}


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
    harmful = [item for item in entry.remarks if item.harm is not Harm.NONE]
    levels = {item.harm: item.level for item in reversed(harmful)}
    for harm in dict.fromkeys(item.harm for item in harmful):
        yield Chip(harm.label, _CHIP_STYLES[levels[harm]])
    if entry.lead.adopts and entry.lead.action is Action.UPDATE:
        yield Chip("adopted", "note")
    notes = [item for item in entry.findings if item.harm is Harm.NONE]
    if any(item.rule.startswith("policy/") for item in notes):
        yield Chip("policy", "bad" if entry.blocks else "warn")
    elif notes and not entry.blocks:
        yield Chip(notes[0].level.value, _CHIP_STYLES[notes[0].level])


def _render_brief_line(entry: Entry, words: Words) -> str:
    """The first of these: why it is blocked, what it destroys, what to know, what changes."""
    lead = entry.lead
    if entry.blocks:
        return entry.blocks[0].text
    texts = [entry.impact.text] if entry.impact else []
    texts += [item.text for item in entry.findings]
    if texts:
        return texts[0]
    if is_line(lead, words):
        # The name says it all; of several, the page lists each on a line of its own.
        hidden_count = len(entry.changes) - 1
        if hidden_count:
            return f"{name_object(lead, words)}, … and {hidden_count:,} more"
        return render_values(lead) if lead.action is Action.UPDATE else inline(lead.reason)
    if len(entry.changes) > 1:
        return render_names(entry, words)
    return render_values(lead) if lead.action is Action.UPDATE else quote(lead.identity.key)
