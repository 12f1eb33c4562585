"""Render the changes of a plan as text: its dangers, its groups of changes, and the drift."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

from msgspec.structs import replace

from ..core.change import Change
from ..core.finding import Finding, Harm, Level
from ..core.words import Words
from .body import Line
from .entries import LEAST, Entry
from .findings import render_finding, render_sentence
from .lines import (
    ALL_LISTED,
    is_line,
    is_plain,
    name_both,
    name_object,
    render_brief,
    render_brief_entry,
    render_change,
    render_entry,
    render_members,
    render_names,
    render_plain,
    render_requests,
)
from .style import Detail, Paint
from .text import inline, render_count
from .view import Drift, Group, PlanView

DANGERS_LIMIT = 20
"""Entries of the list of dangers; more would push the summary off the screen."""
DRIFT_LIMIT = 20
"""Entries of drifted objects of one kind that are listed."""
SHARED_BLOCK = 3
"""If more changes than this are blocked for one reason, the reason is given once for all."""


def render_dangers(view: PlanView, paint: Paint, detail: Detail) -> Iterator[str]:
    """What a reader with one minute has to see."""
    number = sum(len(entry.changes) for entry in view.dangers)
    yield paint("error", f"Dangers ({number:,})")
    # The concise form says nothing more about them at their changes.
    listed = view.dangers[:DANGERS_LIMIT] if detail == "grouped" else view.dangers
    several = len(view.instances) > 1
    for entry in listed:
        instance = entry.lead.identity.instance
        suffix = f" on {inline(instance)}" if several else ""
        blocked = ", blocked" if entry.lead.blocked is not None else ""
        objects = f"{name_objects(entry, view.words_of(instance))}{suffix}{blocked}"
        first, *lines = _render_danger(entry, objects)
        yield f"  {paint('error', f'! {first}')}"
        yield from (f"      {paint('error', f'· {text}')}" for text in lines)
    if len(listed) < len(view.dangers):
        yield f"  … and {len(view.dangers) - len(listed):,} more, each at its change below"


def _render_danger(entry: Entry, objects: str) -> Iterator[str]:
    """`data loss: NAME (ADDRESS): all records are deleted; deletes …`; several dangers stand on
    lines of their own."""
    first, *further = entry.dangers
    title = f"{first.harm.label or first.level.value}: {objects}"
    texts = [render_sentence(first)]
    # A harm is named once, before its first sentence.
    named = {first.harm}
    for danger in further:
        texts.append(render_sentence(danger) if danger.harm in named else render_finding(danger))
        named.add(danger.harm)
    if entry.impact is not None and first.harm is Harm.DATA_LOSS:
        impact = inline(entry.impact.text).removesuffix(".")
        texts.append(impact[:1].lower() + impact[1:])
    yield from (title, *texts) if further else (f"{title}: {'; '.join(texts)}",)


def name_objects(entry: Entry, words: Words) -> str:
    """One object by name and address; of several their number and the first names."""
    lead = entry.lead
    if len(entry.changes) == 1:
        return name_both(lead, words)
    objects = words.name_objects(len(entry.changes), lead.identity.kind)
    return f"{inline(objects)} ({render_names(entry, words)})"


def render_omissions(
    drift: tuple[Drift, ...], outputs: int, paint: Paint, detail: Detail
) -> Iterator[str]:
    """What the text leaves out. outputs: how many of them are too long."""
    # Before all changes: nobody looks for something that they do not know is missing.
    for kind in drift:
        if detail == "grouped" and len(kind.entries) > DRIFT_LIMIT:
            listed = sum(len(entry.changes) for entry in kind.entries[:DRIFT_LIMIT])
            yield paint("warning", "Shortened: ") + (
                f"{listed:,} of {len(kind.changes):,} {inline(kind.kind)} that were changed "
                "outside kafkaform are listed below; --detail lists them all."
            )
    if outputs and detail != "full":
        number = render_count(outputs, "long output")
        yield paint("warning", "Shortened: ") + f"{number}; --detail shows all of it."


def render_group(group: Group, view: PlanView, paint: Paint, detail: Detail) -> Iterator[str]:
    style = {"blocked": "error", "kept": "kept", "delete": "error", "loses": "error"}
    entries = group.entries
    number = sum(len(entry.changes) for entry in entries)
    yield paint(style.get(group.name, "title"), f"{group.title} ({number:,})")
    shared = _find_shared_block(group) if number > SHARED_BLOCK else None
    if shared is not None and detail != "full":
        yield f"  ! blocked: {render_sentence(shared)}"
        yield f"    fix: {inline(shared.fix)}"
        entries = tuple(map(_drop_block, entries))
        detail = "concise"
    render = {"concise": _render_short, "grouped": _render_entries, "full": _render_singly}
    yield from render[detail](entries, view, paint)


def _drop_block(entry: Entry) -> Entry:
    return Entry(tuple(replace(change, findings=change.findings[1:]) for change in entry.changes))


def _find_shared_block(group: Group) -> Finding | None:
    """The blocker of all changes of a group, or None if they differ or are not blocked."""
    # A guard blocks hundreds of deletions for one reason: repeated, it would bury the list.
    blocks = {change.blocked for change in group.changes}
    return blocks.pop() if len(blocks) == 1 else None


def render_line(line: Line, paint: Paint) -> str:
    indent = "  " + "    " * line.depth
    if line.symbol == " ":
        return indent + "  " + paint(line.style if line.style != "title" else "", line.text)
    if line.symbol in "#!":
        return indent + paint(line.style, f"{line.symbol} {line.text}")
    return f"{indent}{paint(line.style, line.symbol)} {line.text}"


def _render_singly(entries: Iterable[Entry], view: PlanView, paint: Paint) -> Iterator[str]:
    """Each change by itself."""
    several = len(view.instances) > 1
    for change in (change for entry in entries for change in entry.changes):
        yield ""
        words = view.words_of(change.identity.instance)
        lines = render_change(change, words, several, whole=True)
        yield from (render_line(line, paint) for line in lines)


def _render_entries(entries: Sequence[Entry], view: PlanView, paint: Paint) -> Iterator[str]:
    """Equal changes together, and runs of objects that are no more than their names in a list."""
    several = len(view.instances) > 1
    for key, run in groupby(entries, partial(_get_plain_kind, view)):
        members = list(run)
        if key is not None and (len(members) >= LEAST or _has_lines(members[0], view)):
            yield from _render_plain_run([entry.lead for entry in members], view, paint)
            continue
        for entry in members:
            yield ""
            words = view.words_of(entry.lead.identity.instance)
            lines = render_entry(entry, words, several)
            yield from (render_line(line, paint) for line in lines)


def _get_plain_kind(view: PlanView, entry: Entry) -> tuple[str, ...] | None:
    identity = entry.lead.identity
    plain = len(entry.changes) == 1 and is_plain(entry.lead, view.words_of(identity.instance))
    return (identity.instance, identity.kind, entry.lead.action) if plain else None


def _has_lines(entry: Entry, view: PlanView) -> bool:
    return is_line(entry.lead, view.words_of(entry.lead.identity.instance))


def _render_plain_run(changes: list[Change], view: PlanView, paint: Paint) -> Iterator[str]:
    several = len(view.instances) > 1
    words = view.words_of(changes[0].identity.instance)
    yield ""
    for change in changes:
        lines = render_plain(change, words, several)
        yield from (render_line(line, paint) for line in lines)
    yield from (render_line(line, paint) for line in render_requests(changes, words))


def _render_short(entries: Iterable[Entry], view: PlanView, paint: Paint) -> Iterator[str]:
    """One line per entry, with its signs on it, and the objects of an entry of several."""
    several = len(view.instances) > 1
    for entry in entries:
        lead = entry.lead
        suffix = f" on {inline(lead.identity.instance)}" if several else ""
        words = view.words_of(lead.identity.instance)
        brief = render_brief_entry(entry, words)
        pieces = [f"{brief}{suffix}", *_list_signs(entry)]
        yield f"  {paint(lead.action.value, lead.action.symbol)} {'  '.join(pieces)}"
        if len(entry.changes) > 1:
            yield from (f"  {render_line(line, paint)}" for line in render_members(entry, words))


def _list_signs(entry: Entry) -> Iterator[str]:
    for block in entry.blocks:
        todo = f"; fix: {inline(block.fix)}" if block.fix else ""
        yield f"blocked: {render_sentence(block)}{todo}"
    # Dangers lead the plan with all that there is to say about them.
    harms = dict.fromkeys(danger.harm for danger in entry.dangers)
    yield from (f"! {harm.label or 'danger'}" for harm in harms)
    if entry.impact is not None and not entry.lead.has_harm(Harm.DATA_LOSS):
        yield f"! {inline(entry.impact.text)}"
    remarks = (item for item in entry.remarks if item.level is not Level.DANGER)
    yield from (f"! {render_finding(item)}" for item in remarks)


def render_drift(view: PlanView, paint: Paint, detail: Detail) -> Iterator[str]:
    total = sum(len(kind.changes) for kind in view.drift)
    yield paint("title", f"Changed outside kafkaform since the last run ({total:,})")
    limit = {"concise": 0, "grouped": DRIFT_LIMIT}.get(detail)
    for kind in view.drift:
        yield f"  {inline(kind.kind)} ({len(kind.changes):,})"
        listed = kind.entries[:limit]
        for entry in listed:
            yield from _render_drifted(entry, view, single=detail == "full")
        hidden_count = sum(len(entry.changes) for entry in kind.entries[len(listed) :])
        if listed and hidden_count:
            yield f"    … and {hidden_count:,} more (--detail lists them all)"


def _render_drifted(entry: Entry, view: PlanView, *, single: bool) -> Iterator[str]:
    drift = ", ".join(map(render_brief, entry.lead.drift))
    if len(entry.changes) > 1 and not single:
        identity = entry.lead.identity
        words = view.words_of(identity.instance)
        yield f"    ~ {inline(words.name_objects(len(entry.changes), identity.kind))}: {drift}"
        yield f"      {render_names(entry, words, ALL_LISTED)}"
        if len({change.last_set for change in entry.changes}) == 1:
            yield from _render_last_set(entry.lead)
        return
    for change in entry.changes:
        words = view.words_of(change.identity.instance)
        yield f"    ~ {name_object(change, words)}: {drift}"
        yield from _render_last_set(change)
        if view.refresh:
            yield from (f"      ! {render_finding(item)}" for item in change.findings)


def _render_last_set(change: Change) -> Iterator[str]:
    if change.last_set:
        yield f"      {inline(change.last_set)}"
