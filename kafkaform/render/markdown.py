"""Render a plan as a review comment in Markdown that foreign text cannot break out of.

Names stand in code spans. Prose is written with character references, which CommonMark (2.5) never
reads as structure. Differences stand in fences that are longer than any run of backticks in them.
Pieces that do not fit under the limit are counted, so that no shortened comment looks complete.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from ..core.change import Change
from ..core.resource import Pending
from ..core.words import NO_WORDS, Vocabulary, shared
from ..plan.model import OutputChange, Plan, PlanInstance, Removal
from .body import Line
from .human import (
    DESTROYS_ALL,
    DESTROYS_CHOSEN,
    render_last_line,
    render_no_changes,
)
from .lines import render_brief, render_change, render_headline, render_impact
from .outputs import render_output_change
from .text import inline, render_count
from .view import COLUMNS, Group, KindRow, PlanView, make_view, pending_words

# GitHub refuses comments of more than 65,536 characters.
LIMIT = 60_000
"""Characters of the whole comment."""
DETAIL_LIMIT = 6_000
"""Characters of one change, so that one huge object cannot take the room of all others."""
LEAST = 200
"""Characters: where less is left of a section's room, hardly any piece fits."""
_TAILS = 60
"""Characters reserved in each section for its `… and 12 more changes`."""

_ACTIVE = re.compile(r"[\\`*\[\]<>#|~&@!$]|:(?=//)|(?<=www)\.|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_JOINER = "\u200d"
_JOINED = frozenset("@#!")
_DIFF = {"~": "!", "=": " ", ".": " ", "!": "#"}


def render_markdown(plan: Plan, *, words: Vocabulary = NO_WORDS, command: str = "") -> str:
    """The comment, at most `LIMIT` characters.

    words: of the plan's providers; command: applies exactly this plan, by default
    `kafkaform apply --expect TOKEN`.
    """
    seen = make_view(plan, words)
    system = shared(seen.words_of(name) for name, _ in seen.instances).system
    setting = seen.removal_words().setting
    render = _make_page(seen, command or f"kafkaform apply --expect {inline(seen.token)}")
    sections = (
        *(_make_table(seen, name, row) for name, row in _TABLES),
        _make_kinds(seen),
        _make_section("instances", "", seen.instances, _render_instance, system, share=0.2),
        _make_section(
            "pending", "", seen.pending, partial(_render_pending, seen), "intent", share=0.2
        ),
        _make_section(
            "removals",
            f"{setting.capitalize()}s to remove",
            seen.removals,
            partial(_render_removal, seen),
            setting,
            share=0.2,
        ),
        _make_section("warnings", "", _list_warnings(seen), _render_warning, "warning", share=0.2),
        _make_details(seen),
        _make_drift(seen),
        _make_section("outputs", "Outputs", seen.outputs, _render_output, "output"),
    )
    # The page without pieces shows how much of the limit is left for them.
    room = LIMIT - _TAILS * len(sections) - len(render(_fill_sections(sections, 0)))
    return render(_fill_sections(sections, room))


# ── foreign text ────────────────────────────────────────────────────────────────────────


def render_code(text: str) -> Markup:
    """A code span."""
    return _render_span(inline(text))


def render_cell(text: str) -> Markup:
    """A code span in a table cell."""
    # `\|` in a cell is a pipe to one parser and the end of the cell to another, so a pipe after a
    # backslash is written as \x7c.
    shown = inline(text)
    return _render_span(re.sub(r"(?<=\\)\|", "x7c", shown).replace("|", r"\|"))


def _render_span(shown: str) -> Markup:
    ticks = "`" * (_measure_longest_run(shown) + 1)
    gap = " " if not shown.strip() or shown[0] in "` " or shown[-1] in "` " else ""
    return Markup(f"{ticks}{gap}{shown}{gap}{ticks}")


def render_prose(text: str) -> Markup:
    """A sentence with foreign parts, its active characters as references."""
    # GitHub looks for @names and #numbers after it has resolved references, so a zero-width joiner
    # breaks those.
    return Markup(_ACTIVE.sub(_render_reference, inline(text.strip())))


def render_tag(text: str) -> Markup:
    """Foreign text inside an HTML block."""
    return Markup(f"<code>{html.escape(inline(text))}</code>")


def render_fence(lines: Iterable[str], language: str) -> Markup:
    """A fenced block that its content cannot close."""
    body = "\n".join(lines)
    ticks = "`" * max(3, _measure_longest_run(body) + 1)
    return Markup(f"{ticks}{language}\n{body}\n{ticks}")


def _render_reference(match: re.Match[str]) -> str:
    char = match[0]
    return f"&#{ord(char)};{_JOINER if char in _JOINED else ''}"


def _measure_longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


class Shortened(Markup):
    """A piece of the comment from which lines were left out."""


# ── sections that are cut to fit ────────────────────────────────────────────────────────

T = TypeVar("T")


class Section(Struct, frozen=True):
    """A section before it is cut to fit."""

    name: str
    title: str
    head: str
    """The head of a table, or nothing."""
    pieces: Callable[[], Iterator[Markup]]
    """Renders the pieces one by one, so that those without room are never rendered."""
    total: int
    more: str
    """What the tail counts: `change` in `… and 12 more changes`."""
    share: float
    """The part of the remaining room that the section can take at most."""


class Filled(Struct, frozen=True):
    """A section as the template shows it."""

    title: str
    head: Markup
    pieces: tuple[Markup, ...]
    tail: str
    """How many pieces did not fit: `… and 12 more changes`, or nothing."""


def _make_section(
    name: str,
    title: str,
    items: Sequence[T],
    row: Callable[[T], Markup],
    more: str,
    head: str = "",
    share: float = 1.0,
) -> Section:
    total = len(items)
    title = f"{title} ({total:,})" if title else ""
    return Section(name, title, head, lambda: map(row, items), total, more, share)


def _fill_sections(sections: Sequence[Section], room: int) -> dict[str, Filled]:
    """The sections that have content, cut to fit. room: characters for all of them together."""
    filled = {}
    for section in sections:
        kept: list[Markup] = []
        allowed = int(room * section.share)
        for piece in section.pieces() if room > 0 else ():
            if len(piece) >= allowed:
                if allowed < LEAST:
                    break
                continue  # a shorter piece can still fit
            allowed -= len(piece) + 1
            room -= len(piece) + 1
            kept.append(piece)
        rest = section.total - len(kept)
        tail = f"… and {render_count(rest, 'more ' + section.more)}" if rest else ""
        if section.total:
            filled[section.name] = Filled(section.title, Markup(section.head), tuple(kept), tail)
    return filled


def _render_blocked(change: Change) -> Markup:
    block = change.blocked
    reason, advice = (block.reason, block.advice) if block else ("", "")
    return Markup(
        f"| {render_cell(change.address)} | {render_prose(reason)} | {render_prose(advice)} |"
    )


def _render_loss(change: Change) -> Markup:
    what = render_prose(render_impact(change) or "; ".join(change.notes) or change.reason)
    place = f"{render_cell(change.identity.key)} on {render_cell(change.identity.instance)}"
    return Markup(f"| {render_cell(change.address)} | {place} | {what} |")


_BLOCKED_HEAD = "| Object | Why | To do |\n|---|---|---|"
_LOSS_HEAD = "| Address | Object | What is lost |\n|---|---|---|"
_TABLES = (
    ("blocked", (_BLOCKED_HEAD, _render_blocked)),
    ("kept", (_BLOCKED_HEAD, _render_blocked)),
    ("delete", (_LOSS_HEAD, _render_loss)),
    ("loses", (_LOSS_HEAD, _render_loss)),
)


def _make_table(
    seen: PlanView, name: str, shape: tuple[str, Callable[[Change], Markup]]
) -> Section:
    head, row = shape
    group = next((one for one in seen.groups if one.name == name), Group(name, "", ()))
    return _make_section(name, group.title, group.changes, row, "change", head, share=0.4)


def _make_kinds(seen: PlanView) -> Section:
    head = f"| | {' | '.join(COLUMNS)} |\n|---|{'--:|' * len(COLUMNS)}"
    return _make_section("kinds", "", seen.kinds, _render_kind, "kind", head, share=0.2)


def _render_kind(row: KindRow) -> Markup:
    numbers = " | ".join(str(number or "·") for number in row.counts)
    return Markup(f"| {render_cell(row.instance)} {render_cell(row.kind)} | {numbers} |")


def _make_details(seen: PlanView) -> Section:
    # The tables above say everything about changes that stay blocked and about notes.
    groups = [group for group in seen.groups if group.name not in ("kept", "noted")]
    changes = [change for group in groups for change in group.changes]
    row = partial(_render_detail, seen=seen)
    return _make_section("details", "Changes in detail", changes, row, "change", share=0.9)


def _render_detail(change: Change, seen: PlanView) -> Markup:
    several, words = len(seen.instances) > 1, seen.words_of(change.identity.instance)
    lines = [_render_diff_line(line) for line in list(render_change(change, words, several))[1:]]
    head = (
        f"<details><summary>{render_tag(render_headline(change, with_instance=several))}</summary>"
    )
    shown = [*_shorten_lines(lines)]
    text = f"{head}\n\n{render_fence(shown, 'diff')}\n\n</details>"
    return Markup(text) if shown == lines else Shortened(text)


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


def _make_drift(seen: PlanView) -> Section:
    changes = [change for kind in seen.drift for change in kind.changes]
    return _make_section(
        "drift", "Changed outside kafkaform", changes, _render_drift, "object", share=0.8
    )


def _render_drift(change: Change) -> Markup:
    return Markup(
        f"- {render_code(change.address)} {render_code(', '.join(map(render_brief, change.drift)))}"
    )


def _render_output(change: OutputChange) -> Markup:
    return Markup(f"- {render_code(render_output_change(change))}")


def _render_instance(named: tuple[str, PlanInstance]) -> Markup:
    name, instance = named
    principal = instance.facts.principal
    planner = f", planned as {render_code(principal)}" if principal else ""
    return Markup(f"- {render_code(name)} is {render_code(instance.facts.scope_id)}{planner}")


def _render_pending(seen: PlanView, item: Pending) -> Markup:
    name, since = pending_words(item, seen.words_of(item.identity.instance))
    what = f"{render_code(name)} {render_code(str(item.identity))}"
    far = Markup(f": {render_prose(item.note)}") if item.note else ""
    return Markup(f"- **{since.capitalize()} run** {render_code(item.run)}: {what}{far}")


def _render_removal(seen: PlanView, one: Removal) -> Markup:
    words = seen.words_of(one.identity.instance)
    return Markup(
        f"- {render_code(one.address)}: once its {words.task} has ended, this removes the "
        f"{words.setting} that run {render_code(one.run)} set for it ({render_code(one.ticket)})"
    )


def _list_warnings(seen: PlanView) -> list[str]:
    texts = [f"{name}: {text}" for name, text in seen.warnings]
    for item in seen.diagnostics:
        where = f" ({item.range})" if item.range else ""
        texts.append(f"{item.severity.value}: {item.summary}{where}. {item.detail}")
    return texts


def _render_warning(text: str) -> Markup:
    return Markup(f"- **Note** {render_prose(text)}")


# ── the page ────────────────────────────────────────────────────────────────────────────


def _make_page(seen: PlanView, command: str) -> Callable[[dict[str, Filled]], str]:
    """The template with everything but the sections filled in."""
    environment = Environment(
        loader=PackageLoader("kafkaform.render", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # A misspelt name in the template must fail a test instead of leaving a gap in a review.
        undefined=StrictUndefined,
    )
    template = environment.get_template("comment.md.j2")
    context = {
        "title": "no changes" if seen.empty else render_last_line(seen)[len("Plan: ") : -1],
        "destroys": (DESTROYS_CHOSEN if seen.partial else DESTROYS_ALL) if seen.destroy else "",
        "partial": render_code(" ".join(seen.partial)) if seen.partial else "",
        "destroy": seen.destroy,
        "applicable": seen.applicable,
        "stopped": seen.errored or seen.counts.stopping > 0,
        "no_changes": render_prose(render_no_changes(seen)) if seen.empty else "",
        "unchanged": render_count(seen.counts.unchanged, "object"),
        "token": render_code(seen.token),
        "command": render_fence([inline(command)], "sh"),
    }
    return lambda sections: template.render(
        **context, sections=sections, cut=", ".join(_list_omissions(sections.values()))
    )


def _list_omissions(sections: Iterable[Filled]) -> Iterator[str]:
    """What the comment leaves out, for its first line."""
    for section in sections:
        short = sum(isinstance(piece, Shortened) for piece in section.pieces)
        if section.tail:
            yield section.tail.removeprefix("… and ")
        if short:
            yield f"parts of {render_count(short, 'change')}"
