"""The rows of a comment: each change of the plan once, the dangerous ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from markupsafe import Markup
from msgspec import Struct

from ....core.change import Action, Change
from ....core.words import Words
from ...entries import Entry
from ...findings import render_findings
from ...lines import (
    is_line,
    is_plain,
    name_object,
    name_plain,
    render_name,
    render_owners,
    render_risk,
    render_title,
    render_values,
)
from ...text import inline
from ...view import Group, PlanView
from ..brief import ACTIONS, says_differently
from .text import render_cell, render_code, render_prose

URGENT = ("risks", "blocked", "delete", "loses")
"""Tables that a comment shows whole before it names anything else."""

_RISK_HEAD = "| Finding | Change | Object | What could happen |\n|---|---|---|---|"
_BLOCKED_HEAD = "| Object | Why | To do |\n|---|---|---|"
_LOSS_HEAD = "| Address | Object | What is lost |\n|---|---|---|"
_NOTE_HEAD = "| Object | Change | What to know |\n|---|---|---|"


ROW_NAMES = 40
"""Objects that a row names; the others stand below the table."""


class Item(Struct, frozen=True):
    """One entry as a row, or as no more than the names of its objects."""

    changes: tuple[Change, ...]
    row: Markup
    """It names the first `ROW_NAMES` changes."""
    plain: bool = False
    """True if the row says no more than the heading and the name."""


class Table(Struct, frozen=True):
    """Rows under one heading."""

    name: str
    title: str
    head: str
    """The head of a table; empty for a list."""
    items: tuple[Item, ...]

    @property
    def urgent(self) -> bool:
        return self.name in URGENT


def make_tables(view: PlanView) -> Iterator[Table]:
    """All changes of the plan, in the order in which room is given to them.

    A change stands in one table only, apart from blocked ones that would be grave.
    """
    risks = partial(_render_risks, view=view)
    yield _make_table("risks", "Risks", _RISK_HEAD, view, view.risks, risks)
    groups = {group.name: group for group in view.groups}
    loss, block = partial(_render_loss, view=view), partial(_render_blocked, view=view)
    for name, head, render in (
        ("blocked", _BLOCKED_HEAD, block),
        ("delete", _LOSS_HEAD, loss),
        ("loses", _LOSS_HEAD, loss),
        ("kept", _BLOCKED_HEAD, block),
    ):
        if name in groups:
            yield _make_group(groups[name], head, view, render)
    rest = [group for group in view.groups if group.name not in (*URGENT, "kept")]
    note = partial(_render_note, view=view)
    noted = [one for group in rest for one in group.entries if _is_noted(one)]
    yield _make_table("noted", "Other risks and notes", _NOTE_HEAD, view, noted, note)
    for group in rest:
        plain = [
            part
            for entry in group.entries
            if not _is_noted(entry) and not entry.lead.grave
            for part in _split_sentences(entry, view)
        ]
        total = sum(len(entry.changes) for entry in plain)
        above = len(group.changes) - total
        others = f", {above:,} of them above" if above else ""
        title = f"{group.title} ({len(group.changes):,}{others})"
        items = tuple(
            Item(one.changes, _render_line(one, view), one.lead.action is not Action.UPDATE)
            for one in plain
        )
        yield Table(f"list-{group.name}", title, "", items)


def _is_noted(entry: Entry) -> bool:
    lead = entry.lead
    return not lead.grave and bool(lead.notes or lead.risks or entry.breaches)


def _make_table(
    name: str,
    title: str,
    head: str,
    view: PlanView,
    entries: Iterable[Entry],
    render: Callable[[Entry], Markup],
) -> Table:
    items = tuple(
        Item(one.changes, render(one)) for entry in entries for one in _split_entry(entry, view)
    )
    total = sum(len(item.changes) for item in items)
    return Table(name, f"{title} ({total:,})", head, items)


def _split_entry(entry: Entry, view: PlanView) -> Iterator[Entry]:
    """The entry, or its objects one by one: an example would hide who gets access to what."""
    grave = {tuple(r.text for r in one.risks if not r.figures) for one in entry.changes}
    if says_differently(entry) and (len(grave) > 1 or not entry.lead.grave):
        yield from (Entry((change,)) for change in entry.changes)
    else:
        yield from _split_sentences(entry, view)


def _split_sentences(entry: Entry, view: PlanView) -> Iterator[Entry]:
    """The entry, or its objects one by one if a sentence describes each of them."""
    if is_line(entry.lead, view.words_of(entry.lead.identity.instance)):
        yield from (Entry((change,)) for change in entry.changes)
    else:
        yield entry


def _make_group(
    group: Group, head: str, view: PlanView, render: Callable[[Entry], Markup]
) -> Table:
    # What is grave stands among the risks with all that there is to say about it. A block says
    # something else: what to do about it.
    shown = [one for one in group.entries if one.lead.blocked is not None or not one.lead.grave]
    table = _make_table(group.name, group.title, head, view, shown, render)
    total = sum(len(item.changes) for item in table.items)
    if total == len(group.changes):
        return table
    title = f"{group.title} ({len(group.changes):,}, {len(group.changes) - total:,} of them above)"
    return Table(table.name, title, head, table.items)


def list_names(
    changes: Iterable[Change], render: Callable[[str], Markup] = render_code
) -> Iterator[Markup]:
    """One name for each change: `kafka_topic.t["a"]`, and only `["b"]` where the rest is the same
    as before."""
    last = ""
    for change in changes:
        base, bracket, key = change.address.partition("[")
        yield render(f"[{key}" if bracket and base == last else change.address)
        last = base


def _name_objects(entry: Entry, view: PlanView) -> str:
    """The objects of a table's row."""
    lead = entry.lead
    where = f" on {render_cell(lead.identity.instance)}" if len(view.instances) > 1 else ""
    words = view.words_of(lead.identity.instance)
    # What an update is about stands in its values. Of a grant, the name is all that there is.
    named = lead.action is not Action.UPDATE or is_line(lead, words)
    if len(entry.changes) == 1 and named:
        return f"{render_cell(_render_whole_name(lead, words))}{where}"
    return f"{_join_names(entry, render_cell)}{where}"


def _render_whole_name(change: Change, words: Words) -> str:
    """The address, and the key of an object that is no more than its key."""
    return name_plain(change, words) if is_plain(change, words) else render_name(change, words)


def _join_names(entry: Entry, render: Callable[[str], Markup]) -> str:
    names = ", ".join(list_names(entry.changes[:ROW_NAMES], render))
    rest = len(entry.changes) - ROW_NAMES
    return f"{names} and {rest:,} more, named below" if rest > 0 else names


def _render_risks(entry: Entry, view: PlanView) -> Markup:
    kinds = ", ".join(dict.fromkeys(risk.harm.label for risk in entry.grave_risks))
    # Objects that share a risk can differ in what else changes.
    verbs = dict.fromkeys(map(_choose_word, entry.changes))
    change = ", ".join(verbs) if len(entry.changes) > 1 else _render_change(entry.lead)
    texts = [risk.text for risk in entry.grave_risks]
    texts += [entry.impact.text] if entry.impact else []
    # The reason why an object goes, such as "no longer declared".
    # Objects that share a risk can differ in all else, which their details say.
    texts += [] if says_differently(entry) else _list_remarks(entry)
    texts += [entry.lead.reason] if entry.lead.takes_away and entry.lead.reason else []
    what = Markup("<br>").join(render_prose(text.removesuffix(".")) for text in texts)
    return Markup(f"| **{kinds}** | {change} | {_name_objects(entry, view)} | {what} |")


def _choose_word(change: Change) -> str:
    if change.blocked is not None:
        return "blocked"
    if change.action is Action.NOOP:
        return "nothing"
    return "destroy" if change.takes_away else ACTIONS[change.action.value]


def _render_change(change: Change) -> str:
    """The values of an update, else what happens to the object."""
    values = render_values(change) if change.action is Action.UPDATE else ""
    return render_cell(values) if values and not change.takes_away else _choose_word(change)


def _list_remarks(entry: Entry) -> list[str]:
    """Its notes, and the policies that it breaks."""
    return [*entry.notes, *(text for text, _ in render_findings(entry))]


def _render_blocked(entry: Entry, view: PlanView) -> Markup:
    block = entry.blocked
    reason, advice = (block.text, block.fix) if block else ("", "")
    names = _name_objects(entry, view)
    reason = "; ".join((reason, *(text for text, _ in render_findings(entry))))
    return Markup(f"| {names} | {render_prose(reason)} | {render_prose(advice)} |")


def _render_loss(entry: Entry, view: PlanView) -> Markup:
    lead = entry.lead
    texts = [entry.impact.text] if entry.impact else []
    texts += [*(risk.text for risk in entry.risks), *_list_remarks(entry)]
    texts += [lead.reason] if lead.reason and not texts else []
    words = view.words_of(lead.identity.instance)
    key = words.name_object(lead.identity.kind, lead.identity.key)
    if len(entry.changes) > 1:
        key = words.name_objects(len(entry.changes), lead.identity.kind)
    place = f"{render_cell(key)} on {render_cell(lead.identity.instance)}"
    names = _join_names(entry, render_cell)
    return Markup(f"| {names} | {place} | {render_prose('; '.join(texts))} |")


def _render_note(entry: Entry, view: PlanView) -> Markup:
    lead = entry.lead
    known = render_prose("; ".join((*map(render_risk, entry.risks), *_list_remarks(entry))))
    return Markup(f"| {_name_objects(entry, view)} | {_render_change(lead)} | {known} |")


def _render_line(entry: Entry, view: PlanView) -> Markup:
    lead = entry.lead
    identity = lead.identity
    several = len(view.instances) > 1
    where = f" on {inline(identity.instance)}" if several else ""
    if len(entry.changes) > 1:
        title = render_title(entry, view.words_of(identity.instance))
        names = _join_names(entry, render_code)
        return Markup(f"- {render_code(f'{lead.action.symbol} {title}{where}')}: {names}")
    words = view.words_of(identity.instance)
    if lead.action is not Action.UPDATE:
        name = _render_whole_name(lead, words)
        return Markup(f"- {render_code(f'{lead.action.symbol} {name}{where}')}")
    name = name_object(lead, words)
    if lead.moves:
        before = render_code(render_owners(lead.row_before))
        return Markup(f"- {render_code(f'= {name}{where}')}: moved from {before}")
    values = render_values(lead)
    shown = f": {render_code(values)}" if values else ""
    return Markup(f"- {render_code(f'{lead.action.symbol} {name}{where}')}{shown}")
