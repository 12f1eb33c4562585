"""Render changes as lines of symbol and text, for terminals and for review comments, and entries in
few words for the forms of a plan that fold its details."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..core.change import Action, Change, Evidence, Ownership, Path, PathChange
from ..core.finding import Level
from ..core.value import EMPTY, FrozenMap
from ..core.words import NEUTRAL, Words
from .attributes import (
    STYLES,
    AttributeTree,
    Line,
    are_long,
    build_tree,
    compare_parts,
    drop_texts,
    list_leaves,
    render_node,
    render_piece,
    render_sides,
    render_texts,
)
from .change_entries import ChangeEntry, is_name, list_names, select_findings
from .findings import render_finding, render_findings
from .text import ARROW, inline, quote, render_path, render_value

NAMES_LIMIT = 6
"""Changed paths that a one-line form names."""
LISTED = 10
"""Objects of an entry that a text names; more would hide the next entry."""
ALL_LISTED = "--detail lists them all"
BRIEF_LIMIT = 120
"""Characters of one changed value; of a longer one only the path is named."""
BRIEF_PATHS = 3
"""Changed values that a one-line form shows."""

_WILL = {
    Action.CREATE: "be created",
    Action.UPDATE: "be updated in-place",
    Action.DELETE: "be destroyed",
    Action.ADOPT: "be adopted",
    Action.FORGET: "be forgotten (no longer managed, the object stays)",
    Action.IMPORT: "be imported",
    Action.REFRESH: "be recorded as it is",
    Action.NOOP: "stay as it is",
}

_ALL_WILL = {
    Action.FORGET: "be forgotten (no longer managed, the objects stay)",
    Action.NOOP: "stay as they are",
}
"""The verbs of several objects that differ from `_WILL`."""
_WHOLE = (Action.CREATE, Action.DELETE, Action.ADOPT, Action.IMPORT)
"""Actions that show the whole object."""
ADDRESS_PARTS = re.compile(r'(?<=\[")[^"]*(?="\])|(?<=\.)[\w-]+(?=$|\[)')
"""The labels and keys in an address."""
_SEPARATOR = re.compile(r"[|/,=]")
_PROTECTION = {
    "default": "on (default)",
    "explicit": "on (prevent_destroy = true)",
    "shared": "on (shared = true)",
    "no": "off",
}
# A plan that only read the live objects must not claim what no dry run has shown yet.
WILL_CHECK = {
    Evidence.REMOTE: "the {node} will check",
    Evidence.LOCAL: "will be checked locally",
    Evidence.NONE: "cannot be checked in advance",
}
"""Before the dry run."""
CHECKED = {
    Evidence.REMOTE: "checked by the {node}",
    Evidence.LOCAL: "checked locally",
    Evidence.NONE: "cannot be checked in advance",
}
"""After it."""

STRENGTH = tuple(Evidence)
"""Kinds of evidence, strongest first."""

ACTIONS = {
    "blocked": "blocked",
    "kept": "blocked",
    "delete": "destroy",
    "loses": "change",
    "update": "change",
    "create": "create",
    "move": "move",
    "adopt": "adopt",
    "import": "import",
    "forget": "forget",
    "refresh": "record",
    "noted": "nothing to do",
}
"""Group -> what happens to its objects, in the words of the table of kinds."""


def render_change(
    change: Change, words: Words = NEUTRAL, with_instance: bool = False, *, whole: bool = False
) -> Iterator[Line]:
    """Everything that people see of one change.

    words: of its provider; with_instance: name the provider instance, for plans with several;
    whole: also the attributes of an object that its sentence describes.
    """
    if not whole and is_line(change, words):
        yield _render_name_line(change, words, with_instance)
    else:
        name = "" if whole else name_object(change, words)
        headline = render_headline(change, with_instance=with_instance, name=name)
        yield Line(0, "#", headline, "title")
    yield from render_details(change, words, whole=whole)


def render_entry(
    entry: ChangeEntry, words: Words = NEUTRAL, with_instance: bool = False
) -> Iterator[Line]:
    """Everything that people see of one entry: what is equal is rendered once.

    words, with_instance: as in `render_change`.
    """
    lead = entry.lead
    if len(entry.changes) == 1:
        yield from render_change(lead, words, with_instance)
        return
    suffix = f" on {inline(lead.identity.instance)}" if with_instance else ""
    yield Line(0, "#", f"{render_title(entry, words)}{suffix}", "title")
    yield from render_members(entry, words)
    yield from render_details(entry, words)


def render_details(
    subject: Change | ChangeEntry, words: Words = NEUTRAL, *, whole: bool = False
) -> Iterator[Line]:
    """What people see of a change, or of equal ones, below the names of the objects."""
    entry = subject if isinstance(subject, ChangeEntry) else ChangeEntry((subject,))
    lead, changes = entry.lead, entry.changes
    yield from _render_signs(entry)
    if whole or not is_line(lead, words):
        yield from _render_body(lead, changes, words)
        return
    yield from _render_records(lead)
    yield from render_requests(changes, words)


def render_members(entry: ChangeEntry, words: Words) -> Iterator[Line]:
    """The objects of an entry of several: the first few, and how many more there are."""
    if not is_line(entry.lead, words):
        yield Line(0, " ", render_names(entry, words, ALL_LISTED))
        return
    for change in entry.changes[:LISTED]:
        yield _render_name_line(change, words)
    if len(entry.changes) > LISTED:
        yield Line(0, " ", f"… and {len(entry.changes) - LISTED:,} more ({ALL_LISTED})")


def render_brief_entry(entry: ChangeEntry, words: Words) -> str:
    """One entry on one line without its signs: the objects and the values that change."""
    lead = entry.lead
    values = _render_brief_values(lead, words)
    if len(entry.changes) > 1:
        changed = f": {values}" if values and not find_only_path(lead) else ""
        return f"{render_title(entry, words, will=False)}{changed}"
    return f"{name_object(lead, words)}{f'  {values}' if values else ''}"


def _render_brief_values(change: Change, words: Words) -> str:
    """What an update changes, and what a new object has."""
    if change.blocked is not None or is_line(change, words):
        is_update = change.action is Action.UPDATE and change.blocked is None
        return render_values(change) if is_update else ""
    if change.action is Action.UPDATE:
        return render_values(change)
    if change.action is not Action.CREATE:
        return ""
    # What the system decides is no value of the declaration.
    leaves = [
        (name, leaf)
        for name, leaf in list_leaves(_drop_names(change, words))
        if leaf.effective is None
    ]
    texts = [f"{name} {render_sides(leaf)}" for name, leaf in leaves[:BRIEF_PATHS]]
    values_shown = [
        text if len(text) <= BRIEF_LIMIT else name
        for text, (name, _) in zip(texts, leaves, strict=False)
    ]
    remainder = [f"{len(leaves) - BRIEF_PATHS} more"] if len(leaves) > BRIEF_PATHS else []
    return ", ".join([*values_shown, *remainder])


def render_title(entry: ChangeEntry, words: Words, *, will: bool = True) -> str:
    """`70 boxes: keep.ms 7 d → 3 d (…)`, or `70 boxes will be created`."""
    lead = entry.lead
    objects = inline(words.name_objects(len(entry.changes), lead.identity.kind))
    only = find_only_path(lead)
    if only is not None:
        return f"{objects}{', adopted' if lead.adopts else ''}: {render_brief(only)}"
    if not will:
        return objects
    if lead.blocked is not None and lead.action is Action.NOOP:
        return f"{objects} cannot be planned"
    verb = _ALL_WILL.get(lead.action) or _choose_verb(lead)
    return f"{objects} {'would' if lead.blocked is not None else 'will'} {verb}"


def render_names(entry: ChangeEntry, words: Words, suffix: str = "") -> str:
    """The objects of an entry, the first few: `box.a, box.b (prod.b), … and 60 more`. where: what
    lists all of them."""
    names = ", ".join(render_name(change, words) for change in entry.changes[:LISTED])
    hidden_count = len(entry.changes) - LISTED
    hint = f" ({suffix})" if suffix else ""
    return f"{names}, … and {hidden_count:,} more{hint}" if hidden_count > 0 else names


def name_both(change: Change, words: Words) -> str:
    """What people call the object, then its address: `orders (box.orders["eu"])`."""
    key, address = inline(change.identity.key), inline(change.address)
    sentence = inline(words.describe_object(change.identity.kind, change.identity.key))
    name = sentence or ", ".join(map(inline, list_names(change, words)))
    return f"{name or key} ({address})"


def render_name(change: Change, words: Words) -> str:
    """The address, and what people call the object where the address does not contain it."""
    return name_object(change, words) if has_sentence(change, words) else add_names(change, words)


def add_names(change: Change, words: Words) -> str:
    """The address, followed by what people call the object if that is not in the address."""
    address, names = inline(change.address), list_names(change, words)
    labels = ADDRESS_PARTS.findall(change.address)
    return address if set(names) <= set(labels) else f"{address} ({', '.join(map(inline, names))})"


def name_object(change: Change, words: Words) -> str:
    """The object in one sentence with its address, of a kind without sentences the address and what
    people call the object where the address does not contain it."""
    key, address = change.identity.key, inline(change.address)
    sentence = inline(words.describe_object(change.identity.kind, key)) if key else ""
    if not sentence:
        return add_names(change, words)
    # Some addresses are made of the key, which says nothing new.
    return sentence if key in change.address else f"{sentence} ({address})"


def has_sentence(change: Change, words: Words) -> bool:
    """True if one sentence stands for all attributes of the object."""
    return bool(words.describe_object(change.identity.kind, change.identity.key))


def is_line(change: Change, words: Words) -> bool:
    """True if the symbol of the change and the sentence of the object say what happens."""
    return change.action is not Action.NOOP and not change.moves and has_sentence(change, words)


def render_requests(changes: Sequence[Change], words: Words) -> Iterator[Line]:
    """The requests of the changes together, and how far they can be checked in advance."""
    steps = [step for change in changes for step in change.steps]
    if steps:
        tally = Counter(step.request.name for step in steps)
        names = (f"{inline(name)}{'' if n == 1 else f' x{n:,}'}" for name, n in tally.items())
        evidence = render_evidence([(s.request.name, s.evidence) for s in steps], words)
        yield Line(0, "#", f"requests: {', '.join(names)} ({evidence})", "dim")


def is_plain(change: Change, words: Words) -> bool:
    """True for an object that is one line: one with a sentence, or whose key says all that its
    attributes say."""
    if is_line(change, words):
        return True
    if change.action not in _WHOLE or change.blocked is not None or _list_records(change):
        return False
    segments = {*_SEPARATOR.split(change.identity.key), None}
    sides = (change.before or EMPTY, change.after or EMPTY)
    return all(isinstance(v, str | None) and v in segments for side in sides for v in side.values())


def name_plain(change: Change, words: Words) -> str:
    """An object of `is_plain` with all that there is to say about it."""
    if is_line(change, words):
        return name_object(change, words)
    return f"{inline(change.address)} = {quote(change.identity.key)}"


def render_plain(change: Change, words: Words, with_instance: bool = False) -> Iterator[Line]:
    """An object of `is_plain` in one line, and its signs. Its requests are those of its group."""
    yield _render_name_line(change, words, with_instance)
    yield from _render_signs(ChangeEntry((change,)))
    if is_line(change, words):
        yield from _render_records(change)


def _render_name_line(change: Change, words: Words, with_instance: bool = False) -> Line:
    suffix = f" on {inline(change.identity.instance)}" if with_instance else ""
    text = f"{name_plain(change, words)}{suffix}"
    return Line(0, change.action.symbol, text, change.action.value)


def _render_signs(entry: ChangeEntry) -> Iterator[Line]:
    """What a reader has to know before the values: reason, losses and findings."""
    lead = entry.lead
    # Some reasons repeat the headline: "adopted" under "will be adopted" tells nobody anything.
    if lead.reason and lead.reason not in _choose_verb(lead):
        yield Line(0, "#", f"({inline(lead.reason)})", "dim")
    yield from render_findings(entry.blocks)
    if entry.impact is not None:
        yield Line(1, "!", inline(entry.impact.text), "delete")
    yield from render_findings(entry.remarks)


def render_headline(change: Change, *, with_instance: bool = False, name: str = "") -> str:
    """`kafka_topic.orders["eu"] will be updated in-place`, with the instance on request. name: of
    the object, by default its address."""
    will = "would" if change.blocked is not None else "will"
    suffix = f" on {inline(change.identity.instance)}" if with_instance else ""
    # Blocked before an action was chosen, for example because the object could not be read.
    if change.blocked is not None and change.action is Action.NOOP:
        return f"{name or inline(change.address)} cannot be planned{suffix}"
    return f"{name or inline(change.address)} {will} {_choose_verb(change)}{suffix}"


def _choose_verb(change: Change) -> str:
    if change.adopts and change.action is Action.UPDATE:
        return "be adopted and updated in-place"
    if change.moves:
        return f"be moved from {render_owners(change.row_before)}"
    if change.released and change.removed:
        return "be released: what kafkaform set is removed, the rest stays"
    return _WILL[change.action]


def render_owners(row: Ownership) -> str:
    """The addresses that the state records."""
    return ", ".join(map(inline, row.owners))


def render_impact(change: Change) -> str:
    """What is lost, as a sentence; its figures are for programs."""
    return "" if change.impact is None else inline(change.impact.text)


def render_brief(item: PathChange) -> str:
    """One path on one line: `keep.ms 7 d → 3 d (…)`, of long texts the differences."""
    if not item.path:
        return "deleted" if item.after is None else "created"
    if not item.sensitive and are_long(item.before, item.after):
        pieces = (render_piece(piece) for piece in compare_parts(item.before, item.after))
        return (
            f"{name_path(item.path)} {', '.join(f'{sign} {text}'.strip() for sign, text in pieces)}"
        )
    return f"{name_path(item.path)} {render_sides(item, whole=True)}"


def name_path(path: Path) -> str:
    """A path for one line: `width`, or `keep.ms` for a key with a dot in a map."""
    return inline(path[-1]) if len(path) == 2 and "." in path[-1] else render_path(path)


def render_values(change: Change) -> str:
    """`keep.ms 7 d → 3 d (…), width 3 → 4, 2 more`; without paths, what is recorded anew."""
    if not change.paths:
        return render_changed_names(change)
    briefs = ((item, render_brief(item)) for item in change.paths[:BRIEF_PATHS])
    texts = [text if len(text) <= BRIEF_LIMIT else _cut_brief(item) for item, text in briefs]
    hidden_count = len(change.paths) - BRIEF_PATHS
    remainder = [f"{hidden_count} more"] if hidden_count > 0 else []
    return ", ".join([*texts, *remainder])


def _cut_brief(item: PathChange) -> str:
    """A path whose values are too long for one line: its name, and of a long text the first part
    that differs, which is one that is new or gone if there is one."""
    name = name_path(item.path)
    if item.sensitive or not are_long(item.before, item.after):
        return name
    pieces = [piece for piece in compare_parts(item.before, item.after) if not piece.unchanged]
    first = " ".join(render_piece(pieces[0])) if pieces else ""
    if not 0 < len(first) <= BRIEF_LIMIT:
        return name
    hidden_count = len(pieces) - 1
    return f"{name} {first}{f' and {hidden_count:,} more differences' if hidden_count else ''}"


def render_changed_names(change: Change) -> str:
    """The paths that an update touches, for one-line forms."""
    names = [name_path(item.path) for item in change.paths]
    names += [label for label, _, _ in _list_records(change)]
    remainder = f" and {len(names) - NAMES_LIMIT} more" if len(names) > NAMES_LIMIT else ""
    return ", ".join(names[:NAMES_LIMIT]) + remainder


# ── the block of attributes ─────────────────────────────────────────────────────────────


def _render_body(lead: Change, changes: Sequence[Change], words: Words) -> Iterator[Line]:
    """The values and the requests of equal changes, of which `lead` is the first."""
    # A blocked update still shows the values that were compared: they explain the block. A blocked
    # create or delete would only list a whole object to which nothing happens.
    with_body = lead.blocked is None or lead.action is Action.UPDATE
    # The headline of a move names both addresses.
    if not with_body or lead.action is Action.NOOP or lead.moves:
        return
    if len(changes) == 1:
        yield from _render_object(lead, words)
    # One value stands in the title already.
    elif not find_only_path(lead):
        # What is not shown can differ between the objects, so it is not counted.
        yield from render_node(drop_texts(_drop_names(lead, words), lead, words), 1, EMPTY)
        yield from render_texts(lead, words)
        yield from _render_records(lead)
    yield from render_requests(changes, words)


def _render_object(change: Change, words: Words) -> Iterator[Line]:
    title = f"{inline(change.identity.kind)} {quote(change.identity.key)}"
    # Only an update leaves attributes out. All other actions list the whole object.
    whole = change.after if change.action is Action.UPDATE else None
    tree = drop_texts(build_tree(change, words), change, words)
    entries = FrozenMap(drop_texts(whole or EMPTY, change, words))
    lines = [
        *render_node(tree, 1, entries),
        *render_texts(change, words),
        *_render_records(change),
    ]
    symbol = change.action.symbol
    if lines:
        yield Line(0, symbol, title + " {", change.action.value)
        yield from lines
        yield Line(0, " ", "}")
    else:
        yield Line(0, symbol, title, change.action.value)


def find_only_path(change: Change) -> PathChange | None:
    """The path of an update that changes just one short value, else None."""
    if change.action is not Action.UPDATE or len(change.paths) != 1 or _list_records(change):
        return None
    (item,) = change.paths
    short = not any(isinstance(side, tuple | FrozenMap) for side in (item.before, item.after))
    return item if short and not are_long(item.before, item.after) else None


def _drop_names(change: Change, words: Words) -> AttributeTree:
    """The values to show without those that name the object."""
    return {
        name: item
        for name, item in build_tree(change, words).items()
        if not is_name(
            name,
            (item.after or item.before) if isinstance(item, PathChange) else None,
            change,
            words,
        )
    }


# ── bookkeeping and checks ──────────────────────────────────────────────────────────────


def _render_records(change: Change) -> Iterator[Line]:
    for label, old, new in _list_records(change):
        symbol = "+" if old is None else "-" if new is None else "~"
        text = f"{old} {ARROW} {new}" if symbol == "~" else new or old
        yield Line(1, symbol, f"{label}: {text}", STYLES[symbol])


def _list_records(change: Change) -> list[tuple[str, str | None, str | None]]:
    """What changes in the state beside the object's attributes: label, old text, new text."""
    before, after = change.row_before, change.row_after
    sides: tuple[Ownership, ...] = (before, after)
    records: list[tuple[str, str | None, str | None]] = []
    # The headline already names an object's only owner.
    if not {before.owners, after.owners} <= {(), (change.address,)}:
        old, new = (render_value(row.owners) if row.owners else None for row in sides)
        records.append(("recorded owners", old, new))
    # Protection that was off and stays off is not news.
    if not {before.protected, after.protected} <= {None, "no"}:
        old, new = (_PROTECTION.get(row.protected or "") for row in sides)
        records.append(("delete protection", old, new))
    old, new = (quote(row.secret_version) if row.secret_version else None for row in sides)
    records.append(("recorded secret version", old, new))
    return [(label, old, new) for label, old, new in records if old != new]


def render_evidence(
    requests: Sequence[tuple[str, Evidence]],
    words: Words = NEUTRAL,
    phrases: Mapping[Evidence, str] = WILL_CHECK,
) -> str:
    """How far a dry run can check one change: `the server will check`.

    requests: name and evidence of each request, at least one; phrases: `WILL_CHECK` or `CHECKED`.
    """
    # A change is checked only as well as its weakest request, so that one decides.
    weakest = max((evidence for _, evidence in requests), key=STRENGTH.index)
    weak = dict.fromkeys(name for name, evidence in requests if evidence is weakest)
    checked = phrases[weakest].format(node=words.node)
    if all(evidence is weakest for _, evidence in requests):
        return checked
    return f"{checked}: {', '.join(map(inline, weak))} has no dry run"


def says_differently(entry: ChangeEntry) -> bool:
    """True if the findings of its objects differ, so that an entry has just an example: who gets
    access to what, and who loses it."""
    return len({_read_texts(change) for change in entry.changes}) > 1


def list_texts(entry: ChangeEntry) -> tuple[tuple[Change, str], ...]:
    """Each object, with its own findings."""
    return tuple((change, "; ".join(_read_texts(change))) for change in entry.changes)


def _read_texts(change: Change) -> tuple[str, ...]:
    # Texts with figures are added up for all objects together.
    return tuple(
        render_finding(item)
        for item in select_findings(change)
        if item.level is not Level.BLOCK and not item.figures
    )


def is_brief(entry: ChangeEntry, words: Words) -> bool:
    """True if a row says everything: the name of the object and one short value, if any."""
    lead = entry.lead
    # Its row is the sentence, with what is to be known about it.
    if is_line(lead, words):
        return True
    # A row about several objects or a block says why, and not from what to what. Of what is
    # blocked, only an update has values to show.
    if lead.blocked is not None:
        return lead.action is not Action.UPDATE
    if lead.grave and len(entry.changes) > 1:
        return False
    only = find_only_path(lead)
    if only is not None:
        return len(render_brief(only)) <= BRIEF_LIMIT
    return is_plain(lead, words) or lead.action in (Action.NOOP, Action.FORGET)
