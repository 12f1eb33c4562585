"""Render a plan for terminals: summary and dangers first, then every value that is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from msgspec.structs import replace

from ..core.change import Action, Blocker, Change
from ..core.diagnostics import Diagnostic
from ..core.resource import SETTING, TASK, Output
from ..core.text.cell_width import cell_width
from ..core.words import NO_WORDS, Vocabulary, Words
from ..plan.model import OutputChange, Plan, Removal, Unmanaged
from .diagnostics import render_diagnostics
from .jsonplan import choose_output_action
from .lines import Line, render_brief, render_change, render_changed_names, render_impact
from .protection import describe_protection
from .style import Paint
from .text import (
    ARROW,
    NOT_SET,
    SENSITIVE,
    inline,
    quote,
    render_count,
    render_message,
    render_spread,
    render_table,
    render_value,
)
from .view import COLUMNS, Drift, Group, PlanView, make_view, pending_words

DRIFT_LIMIT = 20
"""Drifted objects of one kind that are listed."""
SHARED_BLOCK = 3
"""If more changes than this are blocked for one reason, the reason is given once for all."""
DESTROYS_ALL = "This plan destroys everything that the state records."
DESTROYS_CHOSEN = "This plan destroys part of what the state records."
DECLARES_NOTHING = (
    "The configuration declares nothing, and the state records nothing. Write a resource block, or "
    "generate blocks for existing objects with `kafkaform import --all`."
)
REFRESHES = (
    "This is a refresh-only plan: an apply records these live values in the state, and takes out "
    "what is gone. It changes nothing else."
)
_ALWAYS = frozenset({"destroy", "change", "create"})
"""Columns that stand in every table, as their counts stand in every last line."""


def human(
    plan: Plan,
    *,
    words: Vocabulary = NO_WORDS,
    colour: bool = False,
    width: int = 100,
    detail: bool = True,
) -> str:
    """The plan as text with a final newline; its last line is Terraform's `Plan: …`.

    words: of its providers; width: in columns; detail: False renders one line per change. Every
    line is safe to print (see `text`).
    """
    seen, paint = make_view(plan, words), Paint(colour)
    # What a refresh-only plan records is approved, so all of it is listed.
    limit = None if seen.refresh else DRIFT_LIMIT if detail else 0
    drift = partial(_render_drift, seen.drift, paint, limit)
    # Each section beside what it is about. An empty one is left out together with its heading.
    sections: tuple[tuple[object, Callable[[], Iterator[str]]], ...] = (
        (seen.drift if limit else (), partial(_render_omissions, seen.drift, paint)),
        (seen.instances, partial(_render_systems, seen, paint)),
        (seen.destroy or seen.partial, partial(_render_scope, seen, paint)),
        (() if seen.refresh else seen.kinds, partial(_render_table, seen, paint)),
        (seen.drift if seen.refresh else (), drift),
        (seen.pending, partial(_render_pending, seen, paint)),
        (seen.removals, partial(_render_removals, seen, paint)),
        *((group, partial(_render_group, group, seen, paint, detail)) for group in seen.groups),
        (() if seen.refresh else seen.drift, drift),
        (seen.outputs, partial(_render_outputs, seen.outputs, paint, width)),
        (seen.unmanaged, partial(_render_unmanaged, seen.unmanaged, paint)),
        (seen.warnings or seen.diagnostics, partial(_render_warnings, seen, paint, width)),
        (True, partial(_render_closing, seen, paint)),
    )
    texts = ("\n".join(render()) for content, render in sections if content)
    return "\n\n".join(filter(None, texts)) + "\n"


def render_last_line(seen: PlanView) -> str:
    """Terraform's closing line: `Plan: 1 to add, 0 to change, 0 to destroy.`"""
    # Scripts match Terraform's line, so everything that Terraform does not have stands outside its
    # three counts and appears only if it is not zero.
    counts = seen.counts
    first = f"{counts.imports} to import, " if counts.imports else ""
    rest = "".join(
        f", {number} to {what}"
        for number, what in (
            (counts.adopt, "adopt"),
            (counts.forget, "forget"),
            (counts.refresh, "refresh"),
        )
        if number
    )
    core = f"{counts.add} to add, {counts.change} to change, {counts.destroy} to destroy"
    last = (
        f", {render_count(counts.removals, seen.removal_words().setting)} to remove"
        if counts.removals
        else ""
    )
    blocked = f" {counts.blocked} blocked." if counts.blocked else ""
    return f"Plan: {first}{core}{rest}{last}.{blocked}"


# ── sections ────────────────────────────────────────────────────────────────────────────


def _render_omissions(drift: tuple[Drift, ...], paint: Paint) -> Iterator[str]:
    # First of all sections: nobody looks for something that they do not know is missing.
    for kind in drift:
        if len(kind.changes) > DRIFT_LIMIT:
            yield paint("warning", "Shortened: ") + (
                f"{DRIFT_LIMIT} of {len(kind.changes):,} {inline(kind.kind)} that were changed "
                "outside kafkaform are listed below; --json lists them all."
            )


def _render_systems(seen: PlanView, paint: Paint) -> Iterator[str]:
    for name, instance in seen.instances:
        parts = [f"{inline(name)}: {inline(instance.facts.scope_id)}"]
        words = seen.words_of(name)
        address = instance.display.get(words.address)
        if address:
            names = address if isinstance(address, tuple) else (address,)
            parts.append(f"at {','.join(inline(str(name)) for name in names)}")
        if instance.facts.principal:
            parts.append(f"as {inline(instance.facts.principal)}")
        yield paint("title", f"{words.system.capitalize()} ") + " ".join(parts)


def _render_scope(seen: PlanView, paint: Paint) -> Iterator[str]:
    """What the plan is about, if that is not simply the whole configuration."""
    chosen = " ".join(map(inline, seen.partial))
    if seen.destroy:
        yield paint("delete", DESTROYS_CHOSEN if chosen else DESTROYS_ALL)
        yield from describe_protection(seen)
    if chosen:
        rest = (
            "all other objects stay" if seen.destroy else "changes to other objects are not shown"
        )
        yield paint("warning", f"Partial plan ({chosen})") + f": {rest}."


def _render_table(seen: PlanView, paint: Paint) -> Iterator[str]:
    used = [
        index
        for index, name in enumerate(COLUMNS)
        if name in _ALWAYS or any(row.counts[index] for row in seen.kinds)
    ]
    several = len(seen.instances) > 1
    rows = [["", *(COLUMNS[index] for index in used)]]
    for row in seen.kinds:
        label = inline(f"{row.instance} {row.kind}" if several else row.kind)
        rows.append([label, *(f"{row.counts[index] or '·'}" for index in used)])
    head, *body = render_table(rows, right=frozenset(range(1, len(used) + 1)))
    yield paint("title", head)
    yield from body


def _render_pending(seen: PlanView, paint: Paint) -> Iterator[str]:
    items = seen.pending
    # A task under way is no cause for alarm. A request with an unknown result is.
    running = all(item.action in (TASK, SETTING) for item in items)
    title = "Under way since earlier runs" if running else "Unresolved from earlier runs"
    yield paint("warning", f"{title} ({len(items)})")
    for item in items:
        when = datetime.fromtimestamp(item.time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        name, since = pending_words(item, seen.words_of(item.identity.instance))
        what = f"{inline(name)} {inline(str(item.identity))}"
        far = f": {render_message(item.note)}" if item.note else ""
        yield f"  ? {what}: {since} run {inline(item.run)} of {when}{far}"


def _render_removals(seen: PlanView, paint: Paint) -> Iterator[str]:
    words, number = seen.removal_words(), len(seen.removals)
    title = f"{words.setting}s to remove once their {words.task}s have ended ({number})"
    yield paint("title", title[0].upper() + title[1:])
    for one in seen.removals:
        line = render_removal(one, seen.words_of(one.identity.instance))
        yield f"  {paint('delete', '-')} {line}"


def render_removal(one: Removal, words: Words) -> str:
    """`ADDRESS: the setting that run R set for the task on it (TICKET)`."""
    set_by = f"the {words.setting} that run {inline(one.run)} set for the {words.task_on_it}"
    return f"{inline(one.address)}: {set_by} ({inline(one.ticket)})"


def _render_group(group: Group, seen: PlanView, paint: Paint, detail: bool) -> Iterator[str]:
    style = {"blocked": "error", "kept": "kept", "delete": "error", "loses": "error"}
    title = f"{group.title} ({len(group.changes):,})"
    yield paint(style.get(group.name, "title"), title)
    several = len(seen.instances) > 1
    shared = _find_shared_block(group) if len(group.changes) > SHARED_BLOCK else None
    if shared is not None:
        yield f"  ! blocked: {inline(shared.reason)}"
        yield f"    to do: {inline(shared.advice)}"
        detail = False
    for change in group.changes:
        if detail:
            yield ""
            lines = render_change(change, seen.words_of(change.identity.instance), several)
            yield from (_render_line(line, paint) for line in lines)
        else:
            yield _render_short(
                change if shared is None else replace(change, blocked=None), paint, several
            )


def _find_shared_block(group: Group) -> Blocker | None:
    """The blocker of all changes of a group, or None if they differ or are not blocked."""
    # A guard blocks hundreds of deletions for one reason: repeated, it would bury the list.
    blocks = {change.blocked for change in group.changes}
    return blocks.pop() if len(blocks) == 1 else None


def _render_line(line: Line, paint: Paint) -> str:
    indent = "  " + "    " * line.depth
    if line.symbol == " ":
        return indent + "  " + paint(line.style if line.style != "title" else "", line.text)
    if line.symbol in "#!":
        return indent + paint(line.style, f"{line.symbol} {line.text}")
    return f"{indent}{paint(line.style, line.symbol)} {line.text}"


def _render_short(change: Change, paint: Paint, with_instance: bool) -> str:
    where = f" on {inline(change.identity.instance)}" if with_instance else ""
    parts = [inline(change.address) + where]
    if change.blocked is not None:
        todo = f"; to do: {inline(change.blocked.advice)}" if change.blocked.advice else ""
        parts.append(f"blocked: {inline(change.blocked.reason)}{todo}")
    elif change.action is Action.UPDATE:
        parts.append(f"({render_changed_names(change)})")
    if change.impact is not None:
        parts.append(f"! {render_impact(change)}")
    parts += [f"! {risk.kind.label}: {inline(risk.text)}" for risk in change.risks]
    parts += [f"! {inline(note)}" for note in change.notes]
    return f"  {paint(change.action.value, change.action.symbol)} " + "  ".join(parts)


def _render_drift(drift: tuple[Drift, ...], paint: Paint, limit: int | None) -> Iterator[str]:
    total = sum(len(kind.changes) for kind in drift)
    yield paint("title", f"Changed outside kafkaform since the last run ({total:,})")
    for kind in drift:
        yield f"  {inline(kind.kind)} ({len(kind.changes):,})"
        shown = kind.changes[:limit]
        for change in shown:
            yield f"    {inline(change.address)}: {', '.join(map(render_brief, change.drift))}"
            if change.last_set:
                yield paint("dim", f"      {inline(change.last_set)}")
            if limit is None:
                yield from (f"      ! {inline(note)}" for note in change.notes)
        if 0 < len(shown) < len(kind.changes):
            yield f"    … and {len(kind.changes) - len(shown):,} more (--json lists them all)"


def _render_outputs(outputs: tuple[OutputChange, ...], paint: Paint, width: int) -> Iterator[str]:
    yield paint("title", f"Outputs ({len(outputs)})")
    for change in outputs:
        line, style = render_output_change(change), choose_output_action(change)
        lines = [line] if cell_width(line) + 2 <= width else _render_output_lines(change, width - 4)
        yield from (f"  {paint(style, line)}" for line in lines)


def _render_output_lines(change: OutputChange, width: int) -> Iterator[str]:
    """`render_output_change` with each collection spread over several lines."""
    name, _, _ = render_output_change(change).partition(" = ")
    sides = [side for side in (change.before, change.after) if side is not None]
    for number, side in enumerate(sides):
        lead = f"  {ARROW} " if number else f"{name} = "
        shown = not (side.sensitive or side.deferred)
        first, *rest = render_spread(side.value, width) if shown else (_render_output(side),)
        yield lead + first
        yield from (f"  {line}" for line in rest)
    if change.after is None:
        yield f"  {ARROW} {NOT_SET}"


def render_output_change(change: OutputChange) -> str:
    """`~ names = ["a"] → ["a", "b"]`, sensitive values masked."""
    one = change.after or change.before
    name = inline(one.name) if one is not None else ""
    before, after = _render_output(change.before), _render_output(change.after)
    if change.before is None:
        return f"+ {name} = {after}"
    return f"{'-' if change.after is None else '~'} {name} = {before} {ARROW} {after}"


def _render_output(output: Output | None) -> str:
    if output is None:
        return NOT_SET
    if output.sensitive:
        return SENSITIVE
    return "(known after apply)" if output.deferred else render_value(output.value)


def _render_unmanaged(unmanaged: tuple[tuple[str, Unmanaged], ...], paint: Paint) -> Iterator[str]:
    yield paint("title", "Not managed by this configuration")
    for instance, kind in unmanaged:
        names = ", ".join(quote(name) for name in kind.names)
        rest = kind.count - len(kind.names)
        more = f" and {rest:,} more" if rest > 0 and names else ""
        listed = f": {names}{more}" if names else ""
        yield f"  {kind.count:,} {inline(kind.kind)} on {inline(instance)}{listed}"


def _render_warnings(seen: PlanView, paint: Paint, width: int) -> Iterator[str]:
    for instance, text in seen.warnings:
        yield paint("warning", "Warning: ") + f"{inline(instance)}: {inline(text)}"
    shown: tuple[Diagnostic, ...] = seen.diagnostics
    if shown:
        yield render_diagnostics(shown, paint.colour, width).rstrip("\n")


def render_no_changes(seen: PlanView) -> str:
    """The last line of a plan that does nothing: `No changes.`, and what was compared."""
    number = seen.counts.unchanged
    # The plan of a command such as `alter` is not about the configuration.
    if not seen.token:
        return "No changes."
    # "Matches the configuration" would be true of an empty folder, and mislead: objects may exist
    # that nobody declared. So the line says how many were compared.
    if not number:
        if seen.partial:
            return "No changes. This partial plan covers no managed object."
        if seen.destroy:
            return "No changes. The state records nothing, so there is nothing to destroy."
        return f"No changes. {DECLARES_NOTHING}"
    objects = render_count(number, "managed object")
    if seen.refresh:
        verb = "is" if number == 1 else "are"
        return f"No changes. {objects} {verb} as the state records."
    where = " in this partial plan" if seen.partial else ""
    verb = "matches" if number == 1 else "match"
    return f"No changes. {objects}{where} {verb} the configuration."


def _render_closing(seen: PlanView, paint: Paint) -> Iterator[str]:
    if seen.empty:
        yield paint("create", render_no_changes(seen))
        return
    if seen.counts.unchanged:
        yield paint("dim", f"{render_count(seen.counts.unchanged, 'object')} unchanged.")
    if seen.errored:
        yield paint("error", "This plan has errors and cannot be applied.")
    elif seen.counts.stopping:
        blocked = render_count(seen.counts.stopping, "blocked change is", "blocked changes are")
        yield paint("blocked", f"This plan cannot be applied until {blocked} resolved.")
    elif not seen.applicable:
        yield "Nothing to apply: every change is blocked."
    elif seen.token:
        if seen.refresh:
            yield REFRESHES
        yield f"Approval: {inline(seen.token)}"
    yield paint("title", "Plan:") + render_last_line(seen).removeprefix("Plan:")
