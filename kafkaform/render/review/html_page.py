"""Render a plan as one HTML page for its review, which loads nothing, and the plans of many folders
as one page.

It has a row for each entry, with what filters and readers need of it. With many folders, a table of
the folders comes first, with a search over all of them, then a part for each folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jinja2 import Environment
from markupsafe import Markup
from msgspec import Struct, structs

from ...core.change import Action, Change
from ...core.finding import Finding, Harm, Level
from ...core.resource import Identity
from ...core.secret import mask_secrets
from ...core.text import render_count
from ...core.words import NEUTRAL, NO_WORDS, Vocabulary, Words
from ...html.document import make_environment, render_document
from ...plan.model import Plan, PlanInstance
from ...version import VERSION
from ..attributes import Line, list_output_lines
from ..change_entries import ChangeEntry
from ..change_lines import (
    ACTIONS,
    is_line,
    list_texts,
    name_both,
    name_object,
    render_brief,
    render_details,
    render_name,
    render_names,
    render_title,
    render_values,
    says_differently,
)
from ..diagnostics import render_diagnostics
from ..findings import count_principals, render_rights
from ..folders import FolderRow, FoldersSummary, render_folder_counts
from ..plan_text import describe_destroy, render_last_line, render_no_changes, render_removal
from ..plan_view import COLUMNS, Drift, Group, PlanView, make_view, pending_words
from ..text import inline, quote

_CHIP_STYLES = {
    Level.BLOCK: "bad",
    Level.DANGER: "bad",
    Level.CAUTION: "warn",
    Level.NOTE: "note",
}

NAMED = 10
"""Objects of a danger and principals of a row that are named; the others are folded."""
LINE_WIDTH = 96
"""Columns of an output or an excerpt of the configuration that stands on one line."""
_SHORT = {
    "blocked": "Blocked",
    "kept": "Blocked, stay",
    "delete": "To destroy",
    "loses": "With loss",
    "update": "To change",
    "create": "To create",
    "move": "To move",
    "adopt": "To adopt",
    "import": "To import",
    "forget": "To forget",
    "noted": "Worth knowing",
}
"""Group -> the text of the link to it."""


class Chip(Struct, frozen=True):
    """A short coloured word."""

    text: str
    style: str
    """`bad`, `warn` or `note`."""


class ReviewRow(Struct, frozen=True):
    """One entry on the page."""

    id: str
    """The anchor, unique on the page."""
    action: str
    """A value of `ACTIONS`."""
    style: str
    """The action, or `blocked`, for the colour of the symbol."""
    entry: ChangeEntry
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
        words = (word for item in self.all_findings for word in (item.level.value, item.harm.value))
        return " ".join(dict.fromkeys(words))

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """All findings about its objects, also the notes that the section about access shows."""
        return tuple(item for change in self.entry.changes for item in change.findings)

    @property
    def symbol(self) -> str:
        return "!" if self.lead.blocked else self.lead.action.symbol


class RowGroup(Struct, frozen=True):
    """Rows under one heading."""

    name: str
    title: str
    total: int
    """The objects of all rows."""
    rows: tuple[ReviewRow, ...]


def make_rows(view: PlanView) -> tuple[RowGroup, ...]:
    """The groups of a plan, in reading order."""
    return tuple(_make_group(group, view) for group in view.groups)


def list_choices(groups: Iterable[RowGroup]) -> dict[str, dict[str, str]]:
    """Filter -> its choices, as value and text; a filter with one choice is left out."""
    rows = [row for group in groups for row in group.rows]
    findings = [item for row in rows for item in row.all_findings]
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


def list_drift(drift: Iterable[Drift]) -> tuple[tuple[ChangeEntry, str], ...]:
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


def _make_row(name: str, group: str, entry: ChangeEntry, view: PlanView) -> ReviewRow:
    lead = entry.lead
    words = view.words_of(lead.identity.instance)
    return ReviewRow(
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


def _list_chips(entry: ChangeEntry) -> Iterator[Chip]:
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


def _render_brief_line(entry: ChangeEntry, words: Words) -> str:
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


def render_html(
    plan: Plan, *, words: Vocabulary = NO_WORDS, command: str = "", back: str = ""
) -> str:
    """The page. The same plan gives the same bytes.

    words: of the plan's providers; command: applies exactly this plan, by default
    `kafkaform apply --expect TOKEN`; back: the path of the page that leads here, empty for a page
    that stands alone.
    """
    view = make_view(plan, words)
    page = make_part(view, "")
    return render_document(
        make_pages(words),
        "plan.html.j2",
        "plan.css.j2",
        "filter.js.j2",
        plan=plan,
        back=back,
        first=NAMED,
        choices=list_choices(page.groups),
        places=tuple(_list_places(view, page.groups)),
        command=command or f"kafkaform apply --expect {view.token}",
        **structs.asdict(page),
    )


class PagePart(Struct, frozen=True):
    """A plan as the templates show it, on a page of its own or among others."""

    view: PlanView
    title: str
    groups: tuple[RowGroup, ...]
    anchors: Mapping[str, str]
    """Identity of an object -> the id of its row."""
    total: int
    """The objects of all rows."""
    warnings: int
    columns: tuple[tuple[int, str], ...]
    """The columns of the table of kinds, with their places."""
    drift: tuple[tuple[ChangeEntry, str], ...]
    destroys: str
    diagnostics: str
    prefix: str
    """Of all anchors of the part."""


def make_part(view: PlanView, prefix: str) -> PagePart:
    """What the templates show of a plan. prefix: keeps its anchors apart from those of others."""
    groups = make_rows(view)
    return PagePart(
        view=view,
        title=render_no_changes(view) if view.empty else render_last_line(view),
        groups=groups,
        anchors={
            str(change.identity): row.id
            for group in groups
            for row in group.rows
            for change in row.entry.changes
        },
        total=sum(group.total for group in groups),
        warnings=len(view.warnings) + len(view.diagnostics),
        columns=tuple(
            (index, name)
            for index, name in enumerate(COLUMNS)
            if any(row.counts[index] for row in view.kinds)
        ),
        drift=list_drift(view.drift),
        destroys=" ".join(describe_destroy(view)) if view.destroy else "",
        diagnostics=render_diagnostics(view.diagnostics, False, LINE_WIDTH).strip("\n"),
        prefix=prefix,
    )


def make_pages(words: Vocabulary) -> Environment:
    """The templates of pages with plans. words: of the providers of all plans on a page."""

    def words_of(instance: str) -> Words:
        return words.get(instance, NEUTRAL)

    def name_identity(identity: Identity) -> str:
        object_name = words_of(identity.instance).describe_object(identity.kind, identity.key)
        return object_name or str(identity)

    return make_environment(
        "kafkaform.render.review",
        {
            "number": lambda value: f"{value:,}",
            "count": render_count,
            "name": lambda subject: render_name(subject, words_of(subject.identity.instance)),
            "both": lambda subject: name_both(subject, words_of(subject.identity.instance)),
            "title": lambda subject: name_object(subject, words_of(subject.identity.instance)),
            "identity": name_identity,
            "known_as": lambda key, instance, kind: words_of(instance).name_object(kind, key),
            "objects": lambda entry: words_of(entry.lead.identity.instance).name_objects(
                len(entry.changes), entry.lead.identity.kind
            ),
            "rights": lambda rows: render_rights(rows, None),
            "principals": count_principals,
            "output": lambda change: list_output_lines(change, LINE_WIDTH),
            "address": _find_address,
            "since": lambda item: pending_words(item, words_of(item.identity.instance)),
            # Excerpts of the configuration keep their lines.
            "block": lambda text: Markup("\n").join(map(mask_secrets, text.split("\n"))),
            "removal": lambda subject: render_removal(subject, words_of(subject.identity.instance)),
        },
    )


def _list_places(view: PlanView, groups: tuple[RowGroup, ...]) -> Iterator[tuple[str, str, int]]:
    """The sections to which links at the top lead: id, name, how many."""
    yield from ((group.name, _SHORT[group.name], group.total) for group in groups)
    yield from (
        (name, title, number)
        for name, title, number in (
            ("drift", "Changed outside", view.counts.drift),
            ("outputs", "Outputs", len(view.outputs)),
            ("warnings", "Warnings", len(view.warnings) + len(view.diagnostics)),
        )
        if number
    )
    if view.applicable and view.token:
        yield "apply", "Apply", 0


def _find_address(instance: PlanInstance, setting: str) -> str:
    """Where the system is. setting: what the provider calls it."""
    address = instance.display.get(setting)
    return (
        ", ".join(map(str, address if isinstance(address, tuple) else (address,)))
        if address
        else ""
    )


class FolderPart(Struct, frozen=True):
    """The part of one folder."""

    id: str
    """The anchor, unique on the page."""
    row: FolderRow
    page: PagePart


def render_folders_html(summary: FoldersSummary, *, command: str = "") -> str:
    """The page. The same plans give the same bytes. command: applies exactly these plans."""
    sections = [
        FolderPart(f"folder-{number}", row, make_part(row.view, f"folder-{number}-"))
        for number, row in enumerate(summary.planned, 1)
        if row.view is not None
    ]
    words = {name: item for section in sections for name, item in section.row.review.words.items()}
    groups = [group for section in sections for group in section.page.groups]
    return render_document(
        make_pages(words),
        "folders.html.j2",
        "plan.css.j2",
        "filter.js.j2",
        title=" ".join(render_folder_counts(summary)) or summary.name,
        unplanned=[row for row in summary.rows if row.view is None],
        parts=[{"id": p.id, "row": p.row, **structs.asdict(p.page)} for p in sections],
        idle=len(summary.rows) - len(summary.listed),
        choices=list_choices(groups) if groups else {},
        first=NAMED,
        command=command if summary.digest else "",
        version=VERSION,
    )
