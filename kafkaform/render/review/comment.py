"""Render a plan as a review comment in Markdown that foreign text cannot break out of.

Every change is named. A comment is fitted into the limit of a forge: names before values, danger
before everything else. What does not fit is counted in the first line, so that no shortened comment
looks complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from ...core.change import Change
from ...core.finding import Harm, Level
from ...core.resource import Identity, Pending
from ...core.words import NO_WORDS, Vocabulary, shared
from ...plan.model import OutputChange, Plan, PlanInstance, Removal
from ..attributes import Line, list_output_lines
from ..change_entries import ChangeEntry
from ..change_lines import (
    is_brief,
    name_object,
    render_brief,
    render_details,
    render_headline,
    render_title,
)
from ..findings import (
    LISTED,
    PrincipalAccess,
    render_principals,
    render_rights,
    render_sentence,
)
from ..plan_text import REFRESHES, describe_destroy, render_last_line, render_no_changes
from ..plan_view import COLUMNS, KindRow, PlanView, make_view, pending_words
from ..text import ARROW, inline, render_count
from .comment_rows import (
    ROW_NAMES,
    CommentTable,
    Item,
    list_names,
    make_tables,
    render_cell,
    render_code,
    render_fence,
    render_labelled,
    render_prose,
    render_tag,
)

LEAST = 200
"""Characters: where less is left of a section's room, hardly any piece fits."""
URGENT_SHARE = 0.6
"""The part of the room that rows of urgent tables can take from the names of all other changes."""
MARGIN = 400
"""Characters: a name is longer where the one before it got a row."""
FOLD = 20
"""Rows of a list; a longer one is folded."""


class Shortened(Markup):
    """A piece of the comment from which lines were left out."""


class Section(Struct, frozen=True):
    """A section before it is cut to fit."""

    name: str
    title: str
    head: str
    """The head of a table, or nothing."""
    pieces: Callable[[], Iterator[Markup]]
    """Renders the pieces one by one, so that those without room are never rendered."""
    weights: tuple[int, ...]
    """How many each piece counts."""
    noun: str
    """What the tail counts: `change` in `… and 12 more changes`."""
    share: float
    """The part of the remaining room that the section can take at most."""
    before: str = ""
    """What the first line says before the number of missing pieces: `the details of `."""


class Filled(Struct, frozen=True):
    """A section as the template shows it."""

    title: str
    head: Markup
    pieces: tuple[Markup, ...]
    names: Markup = Markup()
    """The names of objects that got no row."""
    tail: str = ""
    """How many pieces did not fit: `… and 12 more changes`, or nothing."""
    omitted: str = ""
    """The same for the first line: `details of 12 changes`."""
    folded: bool = False

    @property
    def size(self) -> int:
        return sum(len(piece) + 1 for piece in self.pieces) + len(self.names)


T = TypeVar("T")


def make_section(
    name: str,
    title: str,
    items: Sequence[T],
    row: Callable[[T], Markup],
    remainder: str,
    head: str = "",
    share: float = 1.0,
    before: str = "",
    weights: tuple[int, ...] = (),
) -> Section:
    weights = weights or (1,) * len(items)
    title = f"{title} ({sum(weights):,})" if title else ""
    return Section(name, title, head, lambda: map(row, items), weights, remainder, share, before)


def fill_sections(sections: Iterable[Section], room: int) -> dict[str, Filled]:
    """The sections that have content, cut to fit. room: characters for all of them together."""
    filled = {}
    for section in sections:
        if not section.weights:
            continue
        pieces = dict(_keep_pieces(section, int(max(room, 0) * section.share)))
        hidden_weight = sum(section.weights) - sum(section.weights[index] for index in pieces)
        tail = (
            f"… and {render_count(hidden_weight, 'more ' + section.noun)}" if hidden_weight else ""
        )
        omitted = (
            f"{section.before}{render_count(hidden_weight, section.noun)}" if hidden_weight else ""
        )
        filled[section.name] = Filled(
            section.title, Markup(section.head), tuple(pieces.values()), tail=tail, omitted=omitted
        )
        room -= filled[section.name].size
    return filled


def _keep_pieces(section: Section, allowed: int) -> Iterator[tuple[int, Markup]]:
    """The pieces that fit, with their places."""
    for index, piece in enumerate(section.pieces()):
        if allowed < LEAST:
            return
        # A shorter piece can still fit.
        if len(piece) < allowed:
            allowed -= len(piece) + 1
            yield index, piece


class Fit(Struct, frozen=True):
    """The tables as they fit."""

    filled: dict[str, Filled]
    named: frozenset[Identity]
    """The objects that the comment names."""
    bare: frozenset[Identity]
    """Those of them that no row says anything about."""


def fit_tables(tables: Sequence[CommentTable], view: PlanView, room: int) -> Fit:
    """The tables, cut to fit. tables: the dangerous ones first.

    Rows are given up before names, and nothing is named after the first name without room.
    """
    chosen = _choose_rows(tables, view, room)
    room -= sum(len(item.row) + 1 for has_row, _, item in chosen if has_row)
    filled: dict[str, Filled] = {}
    named: set[Identity] = set()
    explained: set[Identity] = set()
    for table in tables:
        own = [(has_row, item) for has_row, at, item in chosen if at is table]
        rows = [item.row for has_row, item in own if has_row]
        hidden_changes: list[Change] = []
        for has_row, item in own:
            inside = ROW_NAMES if has_row else 0
            named.update(change.identity for change in item.changes[:inside])
            explained.update(change.identity for change in item.changes if has_row or item.plain)
            hidden_changes += item.changes[inside:]
        names, room = _fit_names(hidden_changes, view, room)
        named.update(change.identity for change, _ in zip(hidden_changes, names, strict=False))
        if table.items:
            filled[table.name] = _fill_table(table, rows, names, len(hidden_changes) - len(names))
    return Fit(filled, frozenset(named), frozenset(named - explained))


def _fit_names(changes: Sequence[Change], view: PlanView, room: int) -> tuple[list[Markup], int]:
    """As many names as there is room for, and the room that is left; below 0 if a name is cut."""
    names = []
    for name in list_names(changes, view):
        room -= len(name) + 2
        if room < 0:
            break
        names.append(name)
    return names, room


def _choose_rows(
    tables: Sequence[CommentTable], view: PlanView, room: int
) -> list[tuple[bool, CommentTable, Item]]:
    """All items, and whether they get their rows."""
    candidates = [
        (table, item, sizes) for table in tables for item, sizes in _measure_names(table, view)
    ]
    spare = room - MARGIN - sum(sum(sizes) for _, _, sizes in candidates)
    share = int(room * URGENT_SHARE)
    # What a row takes beyond the names that it saves.
    extra = [len(item.row) + 1 - sum(sizes[:ROW_NAMES]) for _, item, sizes in candidates]
    chosen = set()
    for index in sorted(
        range(len(candidates)), key=lambda at: _rank_row(*candidates[at][:2], extra[at])
    ):
        table, item, _ = candidates[index]
        size = len(item.row) + 1
        if extra[index] <= spare or (table.urgent and size <= share):
            chosen.add(index)
            spare -= extra[index]
            share -= size
    return [(index in chosen, table, item) for index, (table, item, _) in enumerate(candidates)]


def _rank_row(table: CommentTable, item: Item, extra: int) -> tuple[int, float]:
    """Who gets a row first: what is dangerous, then what says most about many in little room."""
    if table.urgent:
        return 0, 0
    several = len(item.changes) > 1
    rank = 1 if several else 2 if table.head else 4 if item.plain else 3
    return rank, extra / len(item.changes)


def _measure_names(table: CommentTable, view: PlanView) -> Iterator[tuple[Item, list[int]]]:
    """Each item with the room that the names of its objects take."""
    names = list_names((change for item in table.items for change in item.changes), view)
    for item in table.items:
        yield item, [len(next(names)) + 2 for _ in item.changes]


def _fill_table(
    table: CommentTable, rows: list[Markup], names: list[Markup], hidden_count: int
) -> Filled:
    return Filled(
        table.title,
        Markup(table.head if rows else ""),
        tuple(rows),
        Markup(", ").join(names),
        f"… and {render_count(hidden_count, 'more change')}" if hidden_count else "",
        folded=not table.head and len(rows) > FOLD,
    )


# GitHub refuses comments of more than 65,536 characters.
LIMIT = 60_000
"""Characters of the whole comment."""
DETAIL_LIMIT = 6_000
"""Characters of one change, so that one huge object cannot take the room of all others."""
OUTPUT_WIDTH = 100
"""Columns; of an output that takes more, only the paths that change are shown."""
_TAILS = 100
"""Characters reserved in each section for what says that it is cut."""
_FIRST_LINE = 800
"""Characters reserved for the first line of a shortened comment, without the name of a file."""

_ELSEWHERE = Markup(" Run `kafkaform plan` with the same flags to see everything.")
_DIFF = {"~": "!", "=": " ", ".": " ", "!": "#"}
_MISSING = {
    "blocked": "blocked",
    "kept": "blocked",
    "delete": "to destroy",
    "loses": "to change with loss",
    "update": "to change",
    "create": "to create",
    "move": "to move",
    "adopt": "to adopt",
    "import": "to import",
    "forget": "to forget",
    "noted": "with nothing to do",
}


def render_markdown(
    plan: Plan,
    *,
    words: Vocabulary = NO_WORDS,
    command: str = "",
    whole: str = "",
    name: str = "",
    limit: int = LIMIT,
    closes: bool = True,
) -> str:
    """The comment, at most `limit` characters.

    words: of the plan's providers; command: applies exactly this plan, by default
    `kafkaform apply --expect TOKEN`; whole: a file that has the whole plan, for comments that have
    not; name: of the folder or environment, for the heading; closes: say how to apply the plan,
    which a part of a larger comment does not.
    """
    view = make_view(plan, words)
    command = command or f"kafkaform apply --expect {inline(view.token)}"
    render = _make_page(view, command if closes else "", name, whole)
    first, tables, last = _make_first(view), tuple(make_tables(view)), _make_last(view)
    empty = fill_sections((*first, *last), 0) | fit_tables(tables, view, 0).filled
    # The page without pieces shows how much of the limit is left for them.
    room = limit - _FIRST_LINE - 2 * len(whole) - _TAILS * len(empty) - len(render(empty, ""))
    filled = fill_sections(first, room)
    fit = fit_tables(tables, view, room - _measure(filled))
    filled |= fit.filled
    filled |= fill_sections(last, room - _measure(filled))
    cut = _render_shortened(view, filled, fit, "comment" if closes else "part")
    if cut and closes:
        cut += Markup(f" The whole plan is in {render_code(whole)}.") if whole else _ELSEWHERE
    return render(filled, cut)


def _measure(filled: dict[str, Filled]) -> int:
    return sum(section.size for section in filled.values())


# ── the first line ──────────────────────────────────────────────────────────────────────


def _render_shortened(view: PlanView, filled: dict[str, Filled], fit: Fit, noun: str) -> Markup:
    """What the comment leaves out; empty for a whole comment. noun: what it is called."""
    missing = [
        (group.name, change)
        for group in view.groups
        for change in group.changes
        if change.identity not in fit.named
    ]
    omitted = ", ".join(_list_omissions(filled.values()))
    if not (missing or fit.bare or omitted):
        return Markup()
    text = f"**This {noun} is shortened.** "
    text += _count_missing(missing) if missing else "It names every change."
    if fit.bare:
        text += f" Of {render_count(len(fit.bare), 'change')} it gives only the names."
    return Markup(f"{text} It leaves out {omitted}." if omitted else text)


def _count_missing(missing: list[tuple[str, Change]]) -> str:
    """`It does not name 12 changes: 2 to change, 10 to create; none of them has a danger.`"""
    kinds = Counter(_MISSING[name] for name, _ in missing)
    counts = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    grave = sum(change.grave for _, change in missing)
    harmful = sum(change.has_harm(*Harm) for _, change in missing if not change.grave)
    dangers = [f"{grave:,} with a danger"] * bool(grave)
    dangers += [f"{harmful:,} with a caution"] * bool(harmful)
    danger = f"{' and '.join(dangers)} among them" if dangers else "none of them has a danger"
    return f"It does not name {render_count(len(missing), 'change')}: {counts}; {danger}."


def _list_omissions(sections: Iterable[Filled]) -> Iterator[str]:
    for section in sections:
        short = sum(isinstance(piece, Shortened) for piece in section.pieces)
        if section.omitted:
            yield section.omitted
        if short:
            yield f"parts of {render_count(short, 'change')}"


# ── sections before and after the changes ───────────────────────────────────────────────


def _make_first(view: PlanView) -> tuple[Section, ...]:
    system = shared(view.words_of(name) for name, _ in view.instances).system
    setting = view.removal_words().setting
    # A column for every action of the system; few plans move an address.
    columns = [name for name in COLUMNS if name != "move" or view.counts.move]
    head = f"| | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}"
    removal, pending = partial(_render_removal, view), partial(_render_pending, view)
    title = f"{setting.capitalize()}s to remove"
    warnings = _list_warnings(view)
    kinds = () if view.refresh else view.kinds
    return (
        _make_access_section("access", "Access", _select_wide(view), share=0.3),
        make_section("instances", "", view.instances, _render_instance, system, share=0.1),
        make_section("kinds", "", kinds, partial(_render_kind, columns), "kind", head, share=0.1),
        make_section("pending", "", view.pending, pending, "intent", share=0.1),
        make_section("removals", title, view.removals, removal, setting, share=0.1),
        make_section("warnings", "", warnings, _render_warning, "warning", share=0.1),
    )


def _make_last(view: PlanView) -> tuple[Section, ...]:
    drift = [change for kind in view.drift for change in kind.changes]
    # The rows above say everything about moves, notes and changes that stay blocked.
    entries = [
        entry
        for group in view.groups
        if group.name not in ("kept", "noted", "move")
        for entry in group.entries
        if not is_brief(entry, view.words_of(entry.lead.identity.instance))
    ]
    detail = partial(_render_detail, view=view)
    outside, details = "Changed outside kafkaform", "Changes in detail"
    wide = _select_wide(view)
    narrow = [row for row in view.access if row not in wide]
    return (
        _make_access_section("narrow-access", "Access to single objects", narrow, share=0.8),
        make_section(
            "drift", outside, drift, partial(_render_drift, view), "drifted object", share=0.8
        ),
        make_section("outputs", "Outputs", view.outputs, _render_output, "output", share=0.8),
        make_section(
            "details",
            details,
            entries,
            detail,
            "change",
            before="the details of ",
            weights=tuple(len(entry.changes) for entry in entries),
        ),
    )


def _render_instance(named: tuple[str, PlanInstance]) -> Markup:
    name, instance = named
    principal = instance.facts.principal
    planner = f", planned as {render_code(principal)}" if principal else ""
    profile = f" ({render_code(instance.facts.profile)})" if instance.facts.profile else ""
    unread = f": **could not be asked**, {render_code(instance.unread)}" if instance.unread else ""
    return Markup(
        f"- {render_code(name)} is {render_code(instance.facts.scope_id or 'unknown')}{planner}"
        f"{profile}{unread}"
    )


def _select_wide(view: PlanView) -> Sequence[PrincipalAccess]:
    """Whose access stands before the deletions: access to more than single objects, or to what is
    first in a short list."""
    few = len(view.access) <= LISTED
    return [row for row in view.access if few or row.is_wide]


def _make_access_section(
    name: str, title: str, rows: Sequence[PrincipalAccess], share: float
) -> Section:
    head = "| Principal | gains | loses |\n|---|---|---|"
    weights = tuple(len(row.principals) for row in rows)
    return make_section(name, title, rows, _render_access, "principal", head, share, "", weights)


def _render_access(row: PrincipalAccess) -> Markup:
    """All rights: a row that does not fit is left out whole, and counted."""
    gains, losses = (
        render_cell(render_rights(rights, None)) if rights else ""
        for rights in (row.gains, row.losses)
    )
    return Markup(f"| {render_cell(render_principals(row))} | {gains} | {losses} |")


def _render_kind(columns: Collection[str], row: KindRow) -> Markup:
    cells = [number for name, number in zip(COLUMNS, row.counts, strict=True) if name in columns]
    numbers = " | ".join(f"{number:,}" if number else "·" for number in cells)
    return Markup(f"| {render_cell(row.instance)} {render_cell(row.kind)} | {numbers} |")


def _render_pending(view: PlanView, item: Pending) -> Markup:
    name, since = pending_words(item, view.words_of(item.identity.instance))
    object_name = f"{render_code(name)} {render_code(view.name_identity(item.identity))}"
    far = Markup(f": {render_prose(item.note)}") if item.note else ""
    return Markup(f"- **{since.capitalize()} run** {render_code(item.run)}: {object_name}{far}")


def _render_removal(view: PlanView, removal: Removal) -> Markup:
    words = view.words_of(removal.identity.instance)
    return Markup(
        f"- {render_code(removal.address)}: once its {words.task} has ended, this removes the "
        f"{words.setting} that run {render_code(removal.run)} set for it "
        f"({render_code(removal.ticket)})"
    )


def _list_warnings(view: PlanView) -> list[str]:
    texts = [
        ". ".join(filter(None, (f"{name}: {render_sentence(finding)}", finding.fix)))
        for name, finding in view.warnings
    ]
    for item in view.diagnostics:
        suffix = f" ({item.range})" if item.range else ""
        texts.append(f"{item.severity.value}: {item.summary}{suffix}. {item.detail}")
    return texts


def _render_warning(text: str) -> Markup:
    return Markup(f"- **Note** {render_prose(text)}")


def _render_drift(view: PlanView, change: Change) -> Markup:
    # A refresh-only plan has a table of dangers, and no other place for the rest.
    findings = [item for item in change.findings if item.level is not Level.DANGER]
    notes = (render_prose(change.last_set), *map(render_labelled, findings if view.refresh else ()))
    since = Markup("").join(Markup(f"; {text}") for text in notes if text)
    values = render_code(", ".join(map(render_brief, change.drift)))
    name = name_object(change, view.words_of(change.identity.instance))
    return Markup(f"- {render_code(name)} {values}{since}")


def _render_output(change: OutputChange) -> Markup:
    """The output on one line; of a large one, the paths that change."""
    lines = list_output_lines(change, OUTPUT_WIDTH)
    first, *further = (f"{line.symbol} {line.text}".strip() for line in lines)
    # Values that have no paths in common are shown whole, one after the other.
    if any(text.startswith(ARROW) for text in further):
        return Markup(f"- {render_code(' '.join((first, *further)))}")
    paths = f": {', '.join(further)}" if further else ""
    return Markup(f"- {render_code(first + paths)}")


# ── details ─────────────────────────────────────────────────────────────────────────────


def _render_detail(entry: ChangeEntry, view: PlanView) -> Markup:
    lead, with_instance = entry.lead, len(view.instances) > 1
    words = view.words_of(lead.identity.instance)
    # The rows above name the objects of an entry of several.
    if len(entry.changes) > 1:
        title = render_title(entry, words)
    else:
        title = render_headline(lead, with_instance=with_instance, name=name_object(lead, words))
    subject = entry if len(entry.changes) > 1 else lead
    lines = [_render_diff_line(line) for line in render_details(subject, words)]
    # Half of a change of rights would look like all of it, so it is shown whole or not at all.
    whole = any(change.gains or change.losses for change in entry.changes)
    listed = lines if whole else [*_shorten_lines(lines)]
    head = f"<details><summary>{render_tag(title)}</summary>"
    text = f"{head}\n\n{render_fence(listed, 'diff')}\n\n</details>"
    return Markup(text) if listed == lines else Shortened(text)


def _render_diff_line(line: Line) -> str:
    symbol = _DIFF.get(line.symbol, line.symbol)
    return f"{symbol} {'    ' * line.depth}{line.text}".rstrip()


def _shorten_lines(lines: list[str]) -> Iterator[str]:
    room = DETAIL_LIMIT
    for index, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            yield f"  … and {render_count(len(lines) - index, 'more line')}"
            return
        yield line


# ── the page ────────────────────────────────────────────────────────────────────────────


def _make_page(
    view: PlanView, command: str, name: str, whole: str
) -> Callable[[dict[str, Filled], str], str]:
    """The template with everything but the sections and the first line filled in. command: empty
    for a part of a comment, which does not say how to apply the plan."""
    environment = Environment(
        loader=PackageLoader("kafkaform.render.review"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # A misspelt name in the template must fail a test instead of leaving a gap in a review.
        undefined=StrictUndefined,
    )
    template = environment.get_template("comment.md.j2")
    context = {
        "title": _render_title(view),
        "name": render_code(name) if name else "",
        "refresh": view.refresh,
        "refreshes": REFRESHES if view.refresh and view.applicable else "",
        "destroys": render_prose(" ".join(describe_destroy(view))) if view.destroy else "",
        "partial": render_code(" ".join(view.partial)) if view.partial else "",
        "destroy": view.destroy,
        "applicable": view.applicable,
        "stopped": view.errored or view.counts.stopping > 0,
        "no_changes": render_prose(render_no_changes(view)) if view.empty else "",
        "unchanged": render_count(view.counts.unchanged, "object"),
        # Most commands have it, and it is long.
        "token": "" if view.token in command else render_code(view.token),
        "command": render_fence([inline(command)], "sh") if command else "",
        "whole": render_code(whole) if whole else "",
        "lists": [f"list-{group.name}" for group in view.groups],
    }
    return lambda sections, cut: template.render(**context, sections=sections, cut=cut)


def _render_title(view: PlanView) -> str:
    if view.empty:
        return "no changes"
    if view.refresh and view.drift:
        return f"drift of {render_count(view.counts.drift, 'object')}"
    return render_last_line(view)[len("Plan: ") : -1]
