"""Render a plan for terminals: dangers and summary first, then every value that is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from ..core.change import Change
from ..core.diagnostics import Diagnostic
from ..core.resource import SETTING, TASK
from ..core.text.cell_width import cell_width
from ..core.words import NO_WORDS, Vocabulary, Words
from ..plan.model import Plan, Removal
from .body import Line
from .change_list import (
    render_dangers,
    render_drift,
    render_group,
    render_line,
    render_omissions,
)
from .diagnostics import render_diagnostics
from .findings import render_access
from .outputs import list_output_lines
from .style import Detail, Paint
from .text import inline, render_count, render_message, render_table, wrap_lines
from .view import COLUMNS, PlanView, make_view, pending_words

PROTECTED_LIMIT = 5
"""Protected objects that stay and are named."""
OUTPUT_LIMIT = 20
"""Lines of one output."""
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


def render_plan_text(
    plan: Plan,
    *,
    words: Vocabulary = NO_WORDS,
    colour: bool = False,
    width: int = 100,
    detail: Detail = "grouped",
    approval: bool = True,
) -> str:
    """The plan as text with a final newline; its last line is Terraform's `Plan: …`.

    words: of its providers; width: in columns; approval: show the token, for readers who apply
    the plan later. No line is wider, apart from a single name and the last two lines, which scripts
    read. Every line is safe to print (see `text`).
    """
    view, paint = make_view(plan, words), Paint(colour)
    outputs = [list(list_output_lines(change, width - 2)) for change in view.outputs]
    long = sum(len(lines) > OUTPUT_LIMIT for lines in outputs)
    # What a refresh-only plan records is approved, so all of it is listed.
    drift = partial(render_drift, view, paint, "full" if view.refresh else detail)
    cut = () if view.refresh else view.drift
    # Each section beside what it is about. An empty one is left out together with its heading.
    sections: tuple[tuple[object, Callable[[], Iterator[str]]], ...] = (
        (view.instances, partial(_render_systems, view, paint)),
        (view.dangers, partial(render_dangers, view, paint, detail)),
        (view.access, partial(render_access, view.access, paint, detail)),
        (cut or long, partial(render_omissions, cut, long, paint, detail)),
        (view.destroy or view.partial, partial(_render_scope, view, paint)),
        (() if view.refresh else view.kinds, partial(_render_table, view, paint, width)),
        (view.drift if view.refresh else (), drift),
        (view.pending, partial(_render_pending, view, paint)),
        (view.removals, partial(_render_removals, view, paint)),
        *((group, partial(render_group, group, view, paint, detail)) for group in view.groups),
        (() if view.refresh else view.drift, drift),
        (view.outputs, partial(_render_outputs, outputs, paint, detail)),
        (view.unmanaged, partial(_render_unmanaged, view, paint, detail)),
        (view.warnings or view.diagnostics, partial(_render_warnings, view, paint, width)),
    )
    texts = ["\n".join(wrap_lines(render(), width)) for content, render in sections if content]
    # Scripts read these lines, so they are not wrapped.
    texts.append("\n".join(_render_closing(view, paint, width, approval=approval)))
    return "\n\n".join(filter(None, texts)) + "\n"


def render_last_line(view: PlanView) -> str:
    """Terraform's closing line: `Plan: 1 to add, 0 to change, 0 to destroy.`"""
    # Scripts match Terraform's line, so everything that Terraform does not have stands outside its
    # three counts and appears only if it is not zero.
    counts = view.counts
    first = f"{counts.imports} to import, " if counts.imports else ""
    further = "".join(
        f", {number} to {noun}"
        for number, noun in (
            (counts.move, "move"),
            (counts.adopt, "adopt"),
            (counts.forget, "forget"),
            (counts.refresh, "refresh"),
        )
        if number
    )
    core = f"{counts.add} to add, {counts.change} to change, {counts.destroy} to destroy"
    last = (
        f", {render_count(counts.removals, view.removal_words().setting)} to remove"
        if counts.removals
        else ""
    )
    blocked = f" {counts.blocked} blocked." if counts.blocked else ""
    return f"Plan: {first}{core}{further}{last}.{blocked}"


# ── sections ────────────────────────────────────────────────────────────────────────────


def _render_systems(view: PlanView, paint: Paint) -> Iterator[str]:
    for name, instance in view.instances:
        texts = [f"{inline(name)}: {inline(instance.facts.scope_id or 'unknown')}"]
        words = view.words_of(name)
        address = instance.display.get(words.address)
        if address:
            names = address if isinstance(address, tuple) else (address,)
            texts.append(f"at {', '.join(inline(str(name)) for name in names)}")
        if instance.facts.principal:
            texts.append(f"as {inline(instance.facts.principal)}")
        if instance.facts.profile:
            texts.append(f"({inline(instance.facts.profile)})")
        if instance.unread:
            texts.append(paint("warning", f"could not be asked: {inline(instance.unread)}"))
        yield paint("title", f"{words.system.capitalize()} ") + " ".join(texts)


def _render_scope(view: PlanView, paint: Paint) -> Iterator[str]:
    """What the plan is about, if that is not simply the whole configuration."""
    chosen = " ".join(map(inline, view.partial))
    if view.destroy:
        first, *lines = describe_destroy(view)
        yield paint("delete", first)
        yield from lines
    if chosen:
        options = (
            "all other objects stay" if view.destroy else "changes to other objects are not shown"
        )
        yield paint("warning", f"Partial plan ({chosen})") + f": {options}."


def describe_destroy(view: PlanView) -> list[str]:
    """What a plan that destroys is about, in sentences."""
    return [DESTROYS_CHOSEN if view.partial else DESTROYS_ALL, *_describe_protection(view)]


def _describe_protection(view: PlanView) -> Iterator[str]:
    """The sentences about protection in a plan that destroys; none if nothing is protected."""
    listed = {group.name: group.changes for group in view.groups}
    # `destroy` asks for its deletions, so the protection that nobody chose does not stop it. The
    # reader must learn of it, because a plan of a removed block is blocked for the same object.
    overridden = _select_protected(listed.get("delete", ()), "default")
    if overridden:
        kinds = ", ".join(sorted({inline(change.identity.kind) for change in overridden}))
        objects = render_count(len(overridden), "object")
        yield f"It overrides the delete protection that is on by default for {objects} ({kinds})."
    protected = _select_protected(listed.get("kept", ()), "explicit")
    if protected:
        objects = render_count(len(protected), "object that stays", "objects that stay")
        names = ", ".join(inline(change.address) for change in protected[:PROTECTED_LIMIT])
        remainder = (
            f" and {len(protected) - PROTECTED_LIMIT:,} more"
            if len(protected) > PROTECTED_LIMIT
            else ""
        )
        yield f"prevent_destroy protects {objects}: {names}{remainder}."


def _select_protected(changes: tuple[Change, ...], protection: str) -> list[Change]:
    return [change for change in changes if change.row_before.protected == protection]


def _render_table(view: PlanView, paint: Paint, width: int) -> Iterator[str]:
    used = [
        index
        for index, name in enumerate(COLUMNS)
        if name in _ALWAYS or any(row.counts[index] for row in view.kinds)
    ]
    several = len(view.instances) > 1
    rows = [["", *(COLUMNS[index] for index in used)]]
    figures = sum(len(COLUMNS[index]) + 2 for index in used)
    for row in view.kinds:
        label = inline(f"{row.instance} {row.kind}" if several else row.kind)
        # A name that leaves no room for the figures stands on a line of its own.
        if cell_width(label) + figures > width:
            rows.append([label, *("" for _ in used)])
            label = ""
        rows.append([label, *(f"{row.counts[index] or '·'}" for index in used)])
    head, *body = render_table(rows, right=frozenset(range(1, len(used) + 1)))
    yield paint("title", head)
    yield from body


def _render_pending(view: PlanView, paint: Paint) -> Iterator[str]:
    items = view.pending
    # A task under way is no cause for alarm. A request with an unknown result is.
    running = all(item.action in (TASK, SETTING) for item in items)
    title = "Under way since earlier runs" if running else "Unresolved from earlier runs"
    yield paint("warning", f"{title} ({len(items)})")
    for item in items:
        moment = datetime.fromtimestamp(item.time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        name, since = pending_words(item, view.words_of(item.identity.instance))
        object_name = f"{inline(name)} {inline(view.name_identity(item.identity))}"
        far = f": {render_message(item.note)}" if item.note else ""
        yield f"  ? {object_name}: {since} run {inline(item.run)} of {moment}{far}"


def _render_removals(view: PlanView, paint: Paint) -> Iterator[str]:
    words, number = view.removal_words(), len(view.removals)
    title = f"{words.setting}s to remove once their {words.task}s have ended ({number})"
    yield paint("title", title[0].upper() + title[1:])
    for removal in view.removals:
        line = render_removal(removal, view.words_of(removal.identity.instance))
        yield f"  {paint('delete', '-')} {line}"


def render_removal(removal: Removal, words: Words) -> str:
    """`ADDRESS: the setting that run R set for the task on it (TICKET)`."""
    set_by = f"the {words.setting} that run {inline(removal.run)} set for the {words.task_on_it}"
    return f"{inline(removal.address)}: {set_by} ({inline(removal.ticket)})"


def _render_outputs(outputs: list[list[Line]], paint: Paint, detail: Detail) -> Iterator[str]:
    yield paint("title", f"Outputs ({len(outputs)})")
    for lines in outputs:
        listed = lines if detail == "full" else lines[:OUTPUT_LIMIT]
        yield from (render_line(line, paint) for line in listed)
        if len(listed) < len(lines):
            remainder = render_count(len(lines) - len(listed), "more line")
            yield f"    … and {remainder} (--detail shows them all)"


def _render_unmanaged(view: PlanView, paint: Paint, detail: Detail) -> Iterator[str]:
    yield paint("title", "Not managed by this configuration")
    for instance, kind in view.unmanaged:
        objects = (view.name_unmanaged(instance, kind.kind, key) for key in kind.names)
        names = ", ".join(objects) if detail == "full" else ""
        hidden_count = kind.count - len(kind.names)
        remainder = f" and {hidden_count:,} more" if hidden_count > 0 and names else ""
        listed = f": {names}{remainder}" if names else ""
        yield f"  {kind.count:,} {inline(kind.kind)} on {inline(instance)}{listed}"


def _render_warnings(view: PlanView, paint: Paint, width: int) -> Iterator[str]:
    for instance, text in view.warnings:
        yield paint("warning", "Warning: ") + f"{inline(instance)}: {inline(text)}"
    warnings: tuple[Diagnostic, ...] = view.diagnostics
    if warnings:
        yield render_diagnostics(warnings, paint.colour, width).rstrip("\n")


def render_no_changes(view: PlanView) -> str:
    """The last line of a plan that does nothing: `No changes.`, and what was compared."""
    number = view.counts.unchanged
    # The plan of a command such as `alter` is not about the configuration.
    if not view.token:
        return "No changes."
    # "Matches the configuration" would be true of an empty folder, and mislead: objects may exist
    # that nobody declared. So the line says how many were compared.
    if not number:
        if view.partial:
            return "No changes. This partial plan covers no managed object."
        if view.unevaluated:
            return "No changes. Nothing that is declared could be evaluated."
        if view.destroy:
            return "No changes. The state records nothing, so there is nothing to destroy."
        return f"No changes. {DECLARES_NOTHING}"
    objects = render_count(number, "managed object")
    if view.refresh:
        verb = "is" if number == 1 else "are"
        return f"No changes. {objects} {verb} as the state records."
    scope = " in this partial plan" if view.partial else ""
    verb = "matches" if number == 1 else "match"
    return f"No changes. {objects}{scope} {verb} the configuration."


def _render_closing(view: PlanView, paint: Paint, width: int, *, approval: bool) -> Iterator[str]:
    if view.empty:
        yield from wrap_lines([paint("create", render_no_changes(view))], width)
        return
    if view.counts.unchanged:
        yield paint("dim", f"{render_count(view.counts.unchanged, 'object')} unchanged.")
    if view.errored:
        yield paint("error", "This plan has errors and cannot be applied.")
    elif view.counts.stopping:
        blocked = render_count(view.counts.stopping, "blocked change is", "blocked changes are")
        yield paint("blocked", f"This plan cannot be applied until {blocked} resolved.")
    elif not view.applicable:
        yield "Nothing to apply: every change is blocked."
    elif view.token:
        if view.refresh:
            yield from wrap_lines([REFRESHES], width)
        if approval:
            yield f"Approval: {inline(view.token)}"
    yield paint("title", "Plan:") + render_last_line(view).removeprefix("Plan:")
