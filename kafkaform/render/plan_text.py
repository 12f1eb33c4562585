"""Render a plan for terminals: dangers and summary first, then every value that is written, and the
drift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from msgspec.structs import replace

from ..core.change import Change
from ..core.diagnostics import Diagnostic
from ..core.finding import Finding, Harm, Level
from ..core.resource import SETTING, TASK
from ..core.text import cell_width
from ..core.words import NO_WORDS, Vocabulary, Words
from ..plan.model import Plan, Removal
from .attributes import Line, list_output_lines
from .change_entries import LEAST, ChangeEntry
from .change_lines import (
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
from .diagnostics import render_diagnostics
from .findings import render_access, render_finding, render_sentence
from .plan_view import COLUMNS, Drift, Group, PlanView, make_view, pending_words
from .text import Detail, Paint, inline, render_count, render_message, render_table, wrap_lines

DANGERS_LIMIT = 20
"""Entries of the list of dangers; more would push the summary off the screen."""
DRIFT_LIMIT = 20
"""Entries of drifted objects of one kind that are listed."""
SHARED_BLOCK = 3
"""If more changes than this are blocked for one reason, the reason is given once for all."""

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


def _render_danger(entry: ChangeEntry, objects: str) -> Iterator[str]:
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


def name_objects(entry: ChangeEntry, words: Words) -> str:
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


def _drop_block(entry: ChangeEntry) -> ChangeEntry:
    return ChangeEntry(
        tuple(replace(change, findings=change.findings[1:]) for change in entry.changes)
    )


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


def _render_singly(entries: Iterable[ChangeEntry], view: PlanView, paint: Paint) -> Iterator[str]:
    """Each change by itself."""
    several = len(view.instances) > 1
    for change in (change for entry in entries for change in entry.changes):
        yield ""
        words = view.words_of(change.identity.instance)
        lines = render_change(change, words, several, whole=True)
        yield from (render_line(line, paint) for line in lines)


def _render_entries(entries: Sequence[ChangeEntry], view: PlanView, paint: Paint) -> Iterator[str]:
    """Equal changes together, and runs of objects that are no more than their names in a list."""
    several = len(view.instances) > 1
    for key, run in groupby(entries, partial(_get_plain_kind, view)):
        members = list(run)
        lead = members[0].lead
        is_one_line = is_line(lead, view.words_of(lead.identity.instance))
        if key is not None and (len(members) >= LEAST or is_one_line):
            yield from _render_plain_run([entry.lead for entry in members], view, paint)
            continue
        for entry in members:
            yield ""
            words = view.words_of(entry.lead.identity.instance)
            lines = render_entry(entry, words, several)
            yield from (render_line(line, paint) for line in lines)


def _get_plain_kind(view: PlanView, entry: ChangeEntry) -> tuple[str, ...] | None:
    identity = entry.lead.identity
    plain = len(entry.changes) == 1 and is_plain(entry.lead, view.words_of(identity.instance))
    return (identity.instance, identity.kind, entry.lead.action) if plain else None


def _render_plain_run(changes: list[Change], view: PlanView, paint: Paint) -> Iterator[str]:
    several = len(view.instances) > 1
    words = view.words_of(changes[0].identity.instance)
    yield ""
    for change in changes:
        lines = render_plain(change, words, several)
        yield from (render_line(line, paint) for line in lines)
    yield from (render_line(line, paint) for line in render_requests(changes, words))


def _render_short(entries: Iterable[ChangeEntry], view: PlanView, paint: Paint) -> Iterator[str]:
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


def _list_signs(entry: ChangeEntry) -> Iterator[str]:
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


def _render_drifted(entry: ChangeEntry, view: PlanView, *, single: bool) -> Iterator[str]:
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
    for instance, finding in view.warnings:
        label = "Note" if finding.level is Level.NOTE else "Warning"
        yield paint("warning", f"{label}: ") + f"{inline(instance)}: {render_sentence(finding)}"
        if finding.fix:
            yield f"  fix: {inline(finding.fix)}"
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
