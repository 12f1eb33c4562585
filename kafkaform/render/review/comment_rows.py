"""The rows of a comment: each change of the plan once, the dangerous ones first.

Foreign text is written so that it cannot become Markdown or HTML. Names are in code spans. Prose is
written with character references, which CommonMark (2.5) never reads as structure. Differences are
in fences that are longer than any run of backticks in them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from markupsafe import Markup
from msgspec import Struct

from ...core.change import Action, Change
from ...core.finding import POLICY, Finding, Harm, Level
from ...core.words import Words
from ..change_entries import ChangeEntry, select_dangers, select_findings
from ..change_entries import list_names as list_names_of
from ..change_lines import (
    ACTIONS,
    add_names,
    has_sentence,
    is_line,
    is_plain,
    name_object,
    name_plain,
    render_brief,
    render_name,
    render_owners,
    render_title,
    render_values,
    says_differently,
)
from ..plan_view import Group, PlanView
from ..text import inline

_ACTIVE = re.compile(r"[\\`*\[\]<>#|~&@!$]|:(?=//)|(?<=www)\.|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_JOINER = "\u200d"
_JOINED = frozenset("@#!")

URGENT = ("dangers", "access", "delete", "loses", "blocked")
"""Tables that a comment shows whole before it names anything else."""
_DANGER_HEAD = "| Danger | Object | Change | What could happen |\n|---|---|---|---|"
_BLOCKED_HEAD = "| Object | Why | Fix |\n|---|---|---|"
_LOSS_HEAD = "| Address | Object | What is lost |\n|---|---|---|"
_NOTE_HEAD = "| Object | Change | What to know |\n|---|---|---|"
ROW_NAMES = 10
"""Objects that a row names; the others stand below the table."""


def render_code(text: str) -> Markup:
    """A code span."""
    return _render_span(inline(text))


def render_cell(text: str) -> Markup:
    """A code span in a table cell."""
    # `\|` in a cell is a pipe to one parser and the end of the cell to another, so a pipe after a
    # backslash is written as \x7c.
    line = inline(text)
    return _render_span(re.sub(r"(?<=\\)\|", "x7c", line).replace("|", r"\|"))


def _render_span(line: str) -> Markup:
    ticks = "`" * (_measure_longest_run(line) + 1)
    gap = " " if not line.strip() or line[0] in "` " or line[-1] in "` " else ""
    return Markup(f"{ticks}{gap}{line}{gap}{ticks}")


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


class Item(Struct, frozen=True):
    """One entry as a row, or as no more than the names of its objects."""

    changes: tuple[Change, ...]
    row: Markup
    """It names the first `ROW_NAMES` changes."""
    plain: bool = False
    """True if the row says no more than the heading and the name."""


class CommentTable(Struct, frozen=True):
    """Rows under one heading."""

    name: str
    title: str
    head: str
    """The head of a table; empty for a list."""
    items: tuple[Item, ...]

    @property
    def urgent(self) -> bool:
        return self.name in URGENT


def make_tables(view: PlanView) -> Iterator[CommentTable]:
    """All changes of the plan, in the order in which room is given to them.

    A change stands in one table only, apart from blocked ones that would be grave.
    """
    danger = partial(_render_danger, view=view)
    yield _make_table("dangers", "Dangers", _DANGER_HEAD, view, view.dangers, danger)
    groups = {group.name: group for group in view.groups}
    loss, block = partial(_render_loss, view=view), partial(_render_blocked, view=view)
    for name, head, render in (
        ("delete", _LOSS_HEAD, loss),
        ("loses", _LOSS_HEAD, loss),
        ("blocked", _BLOCKED_HEAD, block),
        ("kept", _BLOCKED_HEAD, block),
    ):
        if name in groups:
            yield _make_group(groups[name], head, view, render)
    plain_groups = [group for group in view.groups if group.name not in (*URGENT, "kept")]
    note = partial(_render_note, view=view)
    noted = [
        noted_entry
        for group in plain_groups
        for noted_entry in group.entries
        if _is_noted(noted_entry)
    ]
    yield _make_table("noted", "Other findings", _NOTE_HEAD, view, noted, note)
    for group in plain_groups:
        plain = [
            sentence
            for entry in group.entries
            if not _is_noted(entry) and not entry.lead.grave
            for sentence in _split_sentences(entry, view)
        ]
        total = sum(len(entry.changes) for entry in plain)
        above = len(group.changes) - total
        above_text = f", {above:,} of them above" if above else ""
        title = f"{group.title} ({len(group.changes):,}{above_text})"
        items = tuple(
            Item(
                noted_entry.changes,
                _render_line(noted_entry, view),
                noted_entry.lead.action is not Action.UPDATE,
            )
            for noted_entry in plain
        )
        yield CommentTable(f"list-{group.name}", title, "", items)


def _is_noted(entry: ChangeEntry) -> bool:
    lead = entry.lead
    return not lead.grave and bool(entry.remarks)


def _make_table(
    name: str,
    title: str,
    head: str,
    view: PlanView,
    entries: Iterable[ChangeEntry],
    render: Callable[[ChangeEntry], Markup],
) -> CommentTable:
    items = tuple(
        Item(piece.changes, render(piece))
        for entry in entries
        for piece in _split_entry(entry, view)
    )
    total = sum(len(item.changes) for item in items)
    return CommentTable(name, f"{title} ({total:,})", head, items)


def _split_entry(entry: ChangeEntry, view: PlanView) -> Iterator[ChangeEntry]:
    """The entry, or its few objects one by one: an example would hide what is said about each. Who
    gets access to what stands in the rows of access, too."""
    if len(entry.changes) > ROW_NAMES or entry.blocks:
        yield entry
        return
    grave = {
        tuple(item.text for item in select_dangers(change) if not item.figures)
        for change in entry.changes
    }
    if says_differently(entry) and (len(grave) > 1 or not entry.lead.grave):
        yield from (ChangeEntry((change,)) for change in entry.changes)
    else:
        yield from _split_sentences(entry, view)


def _split_sentences(entry: ChangeEntry, view: PlanView) -> Iterator[ChangeEntry]:
    """The entry, or its objects one by one if a sentence describes each of them."""
    if is_line(entry.lead, view.words_of(entry.lead.identity.instance)):
        yield from (ChangeEntry((change,)) for change in entry.changes)
    else:
        yield entry


def _make_group(
    group: Group, head: str, view: PlanView, render: Callable[[ChangeEntry], Markup]
) -> CommentTable:
    # What is grave stands among the dangers with all that there is to say about it. A block says
    # something else: what to do about it.
    listed = [
        entry for entry in group.entries if entry.lead.blocked is not None or not entry.lead.grave
    ]
    table = _make_table(group.name, group.title, head, view, listed, render)
    total = sum(len(item.changes) for item in table.items)
    if total == len(group.changes):
        return table
    title = f"{group.title} ({len(group.changes):,}, {len(group.changes) - total:,} of them above)"
    return CommentTable(table.name, title, head, table.items)


def list_names(
    changes: Iterable[Change], view: PlanView, render: Callable[[str], Markup] = render_code
) -> Iterator[Markup]:
    """One name for each change: `kafka_topic.t["a"]`, and only `["b"]` where the rest is the same
    as before. What people call the object follows where the address does not contain it."""
    last = ""
    for change in changes:
        words = view.words_of(change.identity.instance)
        # A sentence is too long for a list of names.
        name = inline(change.address) if has_sentence(change, words) else add_names(change, words)
        base, bracket, key = name.partition("[")
        yield render(f"[{key}" if bracket and base == last else name)
        last = base


def _name_objects(entry: ChangeEntry, view: PlanView) -> str:
    """The objects of a table's row."""
    lead = entry.lead
    suffix = f" on {render_cell(lead.identity.instance)}" if len(view.instances) > 1 else ""
    words = view.words_of(lead.identity.instance)
    # What an update is about stands in its values. Of a grant, the name is all that there is.
    named = lead.action is not Action.UPDATE or is_line(lead, words)
    if len(entry.changes) == 1 and named:
        return f"{render_cell(_render_whole_name(lead, words))}{suffix}"
    return f"{_join_names(entry, view, render_cell)}{suffix}"


def _render_whole_name(change: Change, words: Words) -> str:
    """The address, and the key of an object that is no more than its key."""
    return name_plain(change, words) if is_plain(change, words) else render_name(change, words)


def _join_names(entry: ChangeEntry, view: PlanView, render: Callable[[str], Markup]) -> str:
    words = view.words_of(entry.lead.identity.instance)
    named = entry.changes[:ROW_NAMES]
    # Where a sentence is all that there is to say about an object, its address alone says nothing.
    if is_line(entry.lead, words):
        names = ", ".join(render(name_object(change, words)) for change in named)
    else:
        names = ", ".join(list_names(named, view, render))
    hidden_count = len(entry.changes) - ROW_NAMES
    return f"{names} and {hidden_count:,} more, named below" if hidden_count > 0 else names


def _render_danger(entry: ChangeEntry, view: PlanView) -> Markup:
    dangers = entry.dangers
    harms = ", ".join(dict.fromkeys(item.harm.label or item.level.value for item in dangers))
    # Objects that share a danger can differ in what else changes.
    verbs = dict.fromkeys(map(_choose_word, entry.changes))
    change = ", ".join(verbs) if len(entry.changes) > 1 else _render_change(entry.lead)
    texts = [_render_text(item, item.text) for item in dangers]
    texts += [render_prose(entry.impact.text.removesuffix("."))] if entry.impact else []
    # Objects that share a danger can differ in all else, which their details say.
    texts += _list_other_remarks(entry)
    # The reason why an object goes, such as "no longer declared".
    texts += [render_prose(entry.lead.reason)] if entry.lead.takes_away else []
    text = Markup("<br>").join(filter(None, texts))
    return Markup(f"| **{harms}** | {_name_with_address(entry, view)} | {change} | {text} |")


def _list_other_remarks(entry: ChangeEntry) -> Iterator[Markup]:
    """What is known beside the dangers. Objects that share a danger can differ in it, so of those
    that do, the rules are named."""
    remarks = [item for item in entry.remarks if item.level is not Level.DANGER]
    if len({tuple(item.rule for item in select_findings(change)) for change in entry.changes}) == 1:
        yield from map(render_labelled, remarks)
    elif remarks:
        rules = dict.fromkeys(render_code(item.rule) for item in remarks)
        yield Markup(f"some of them also: {', '.join(rules)}")


def _render_text(finding: Finding, text: str) -> Markup:
    """The sentence, and the id of its rule. A note stands for itself, and a policy names itself."""
    accepted = f" (accepted: --accept {finding.rule})" if finding.accepted else ""
    sentence = render_prose(f"{text}{accepted}")
    if finding.level is Level.NOTE or finding.rule.startswith(POLICY):
        return sentence
    return Markup(f"{sentence} {render_code(finding.rule)}")


def render_labelled(finding: Finding) -> Markup:
    """The sentence after its harm, or after the word that it blocks the change."""
    label = "" if finding.harm is Harm.NONE or finding.level is Level.NOTE else finding.harm.label
    label = "blocked" if finding.level is Level.BLOCK else label
    return _render_text(finding, f"{label}: {finding.text}" if label else finding.text)


def _name_with_address(entry: ChangeEntry, view: PlanView) -> Markup:
    """`orders` (`kafka_topic.orders`); of several objects their number and their names."""
    lead = entry.lead
    words = view.words_of(lead.identity.instance)
    if len(entry.changes) == 1 and not is_line(lead, words):
        name = ", ".join(list_names_of(lead, words))
        suffix = f" on {render_cell(lead.identity.instance)}" if len(view.instances) > 1 else ""
        return Markup(f"{render_cell(name)} ({render_cell(lead.address)}){suffix}")
    if len(entry.changes) == 1:
        return Markup(_name_objects(entry, view))
    number = words.name_objects(len(entry.changes), lead.identity.kind)
    return Markup(f"{render_prose(number)}: {_name_objects(entry, view)}")


def _choose_word(change: Change) -> str:
    if change.blocked is not None:
        return "blocked"
    if change.action is Action.NOOP:
        return "nothing"
    return "destroy" if change.takes_away else ACTIONS[change.action.value]


def _render_change(change: Change) -> str:
    """The values of an update, else what happens to the object."""
    if change.action is Action.REFRESH:
        return render_cell(", ".join(map(render_brief, change.drift)))
    values = render_values(change) if change.action is Action.UPDATE else ""
    return render_cell(values) if values and not change.takes_away else _choose_word(change)


def _render_blocked(entry: ChangeEntry, view: PlanView) -> Markup:
    texts = [_render_text(item, item.text) for item in entry.blocks]
    reasons = Markup("; ").join((*texts, *map(render_labelled, entry.remarks)))
    fixes = dict.fromkeys(item.fix for item in entry.blocks if item.fix)
    return Markup(f"| {_name_objects(entry, view)} | {reasons} | {render_prose(' '.join(fixes))} |")


def _render_loss(entry: ChangeEntry, view: PlanView) -> Markup:
    lead = entry.lead
    texts = [render_prose(entry.impact.text)] if entry.impact else []
    texts += map(render_labelled, entry.findings)
    texts += [render_prose(lead.reason)] if lead.reason and not texts else []
    words = view.words_of(lead.identity.instance)
    key = words.name_object(lead.identity.kind, lead.identity.key)
    if len(entry.changes) > 1:
        key = words.name_objects(len(entry.changes), lead.identity.kind)
    object_name = f"{render_cell(key)} on {render_cell(lead.identity.instance)}"
    names = _join_names(entry, view, render_cell)
    return Markup(f"| {names} | {object_name} | {Markup('; ').join(texts)} |")


def _render_note(entry: ChangeEntry, view: PlanView) -> Markup:
    lead = entry.lead
    text = Markup("; ").join(map(render_labelled, entry.findings))
    return Markup(f"| {_name_objects(entry, view)} | {_render_change(lead)} | {text} |")


def _render_line(entry: ChangeEntry, view: PlanView) -> Markup:
    lead = entry.lead
    identity = lead.identity
    several = len(view.instances) > 1
    suffix = f" on {inline(identity.instance)}" if several else ""
    if len(entry.changes) > 1:
        title = render_title(entry, view.words_of(identity.instance))
        names = _join_names(entry, view, render_code)
        return Markup(f"- {render_code(f'{lead.action.symbol} {title}{suffix}')}: {names}")
    words = view.words_of(identity.instance)
    if lead.action is not Action.UPDATE:
        name = _render_whole_name(lead, words)
        return Markup(f"- {render_code(f'{lead.action.symbol} {name}{suffix}')}")
    name = name_object(lead, words)
    if lead.moves:
        before = render_code(render_owners(lead.row_before))
        return Markup(f"- {render_code(f'= {name}{suffix}')}: moved from {before}")
    values = render_values(lead)
    suffix_values = f": {render_code(values)}" if values else ""
    return Markup(f"- {render_code(f'{lead.action.symbol} {name}{suffix}')}{suffix_values}")
