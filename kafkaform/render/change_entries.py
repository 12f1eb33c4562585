"""Join equal changes of several objects into entries, so that readers see each change once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Action, Change, Impact, Ownership, PathChange
from ..core.finding import Finding, Level
from ..core.text import render_amount
from ..core.value import EMPTY, FrozenMap, Value
from ..core.words import NEUTRAL, NO_WORDS, KindWords, Vocabulary, Words

LEAST = 3
"""Fewer equal changes are shown one by one: two headlines are as short as one with a list."""

LEAST_BLOCKED = 2
"""Two objects that are blocked for one reason are shown together: nothing else is read of them."""

NAMED = 5
"""Objects with one result that are named."""

_NUMBER = re.compile(r"\d[\d,.]*")
_WORD = re.compile(r"[\w.:*-]+")
_WHOLE = "of_"
"""In the name of a figure: how much there is of the one without it."""
_UNITS = {"bytes": "bytes", "seconds": "s"}
_NAMELESS = KindWords("", ())
"""Stands for the words of a kind that has none."""
_NAME = "\0"
"""Stands for the object's own name where changes are compared."""


class ChangeEntry(Struct, frozen=True):
    """One change, or equal changes of several objects."""

    changes: tuple[Change, ...]
    """Sorted by address; never empty."""

    @property
    def lead(self) -> Change:
        """The first change, which stands for all."""
        return self.changes[0]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What rules found about the changes, blocks first. Of texts that name their object, one
        is an example; figures that differ between the objects are added up. Without notes about
        access, which the section about access has.

        The changes of an entry of drift or of `PlanView.dangers` can have other findings: then all.
        """
        return _join_findings([select_findings(change) for change in self.changes])

    @property
    def dangers(self) -> tuple[Finding, ...]:
        """Those of `findings` that are dangers."""
        return _join_findings([select_dangers(change) for change in self.changes])

    @property
    def remarks(self) -> tuple[Finding, ...]:
        """Those of `findings` that do not block."""
        return tuple(item for item in self.findings if item.level is not Level.BLOCK)

    @property
    def blocks(self) -> tuple[Finding, ...]:
        """Those of `findings` that keep the changes from being made."""
        return tuple(item for item in self.findings if item.level is Level.BLOCK)

    @property
    def impact(self) -> Impact | None:
        """What all the changes together destroy or move."""
        optional_impacts = [change.impact for change in self.changes]
        impacts = [impact for impact in optional_impacts if impact is not None]
        if len(optional_impacts) == 1 or not impacts:
            return optional_impacts[0]
        rows = [EMPTY if impact is None else impact.figures for impact in optional_impacts]
        text = _render_sum(rows) or join_texts([impact.text for impact in impacts])
        return Impact(text, _add_up(rows))


KeyMaker: TypeAlias = Callable[[Change, Words], Hashable]


def make_key(change: Change, words: Words) -> Hashable:
    """Equal for changes that read the same apart from their objects' names and their figures."""
    key, own = change.identity.key, frozenset[str]()
    findings = select_findings(change)
    if findings:
        own = read_names(change, words)
    if change.blocked is not None and change.action is not Action.UPDATE:
        # Nothing happens to the object, so only the reason is read.
        return _read_subject(change), _read_findings(findings, own)
    names = words.kinds.get(change.identity.kind, _NAMELESS).names
    # An update shows the paths that change, every other action the whole object.
    whole = () if change.action is Action.UPDATE else (change.before, change.after)
    return (
        _read_subject(change),
        (change.adopts, change.released, change.impact is None),
        _read_findings(findings, own),
        tuple([_read_path(item, key, names) for item in change.paths]),
        tuple([_read_attributes(side or EMPTY, key, names) for side in whole]),
        (_read_row(change.row_before, change), _read_row(change.row_after, change)),
        tuple((step.request.name, step.evidence) for step in change.steps),
    )


def _read_subject(change: Change) -> Hashable:
    return change.identity.instance, change.identity.kind, change.action, change.reason


def make_drift_key(change: Change, _: Words) -> Hashable:
    """Equal for objects of one kind that somebody changed in the same way."""
    return change.identity.instance, change.identity.kind, change.drift


def make_danger_key(change: Change, words: Words) -> Hashable:
    """Equal for changes of one kind with the same dangers, whatever else they do."""
    identity, dangers = change.identity, select_dangers(change)
    own = read_names(change, words)
    return identity.instance, identity.kind, change.block is None, _read_findings(dangers, own)


def make_entries(
    changes: Iterable[Change], words: Vocabulary = NO_WORDS, make_key: KeyMaker = make_key
) -> tuple[ChangeEntry, ...]:
    """The changes as entries, in the order of the addresses of their first changes.

    words: of the providers, which say what names an object; make_key: changes with equal keys are
    equal.
    """
    remaining = list(changes)
    if len(remaining) < LEAST_BLOCKED:
        return tuple(ChangeEntry((change,)) for change in remaining)
    remaining.sort(key=_get_place)
    alike: dict[Hashable, list[Change]] = {}
    for change in remaining:
        key = make_key(change, words.get(change.identity.instance, NEUTRAL))
        alike.setdefault(key, []).append(change)
    entries = [
        entry
        for group in alike.values()
        for entry in (
            [ChangeEntry(tuple(group))]
            if len(group) >= (LEAST if group[0].blocked is None else LEAST_BLOCKED)
            else [ChangeEntry((c,)) for c in group]
        )
    ]
    return tuple(sorted(entries, key=lambda entry: _get_place(entry.lead)))


def is_name(attribute: str, value: Value, change: Change, words: Words) -> bool:
    """True if the value of the attribute is what people call the object."""
    names = words.kinds.get(change.identity.kind, _NAMELESS).names
    return value == change.identity.key or attribute in names


def list_names(change: Change, words: Words) -> tuple[str, ...]:
    """What people call the object: the values of the attributes that name it, or its key."""
    attributes = change.after or change.before or EMPTY
    names = words.kinds.get(change.identity.kind, _NAMELESS).names
    values = [attributes.get(name) for name in names]
    named = all(isinstance(value, str) for value in values)
    return tuple(map(str, values)) if values and named else (change.identity.key,)


def render_figures(figures: FrozenMap) -> str:
    """`1.2 GiB of 3 GiB, 5,000 offsets; groups: a, b`."""
    numbers = [
        _render_figure(name, figures)
        for name, value in figures.items()
        if isinstance(value, int) and name.removeprefix(_WHOLE) not in figures.keys() - {name}
    ]
    texts = [f"{name}: {value}" for name, value in figures.items() if isinstance(value, str)]
    return "; ".join(filter(None, (", ".join(numbers), *texts)))


def _render_figure(name: str, figures: FrozenMap) -> str:
    """`1.2 GiB` for `bytes`, `1.2 GiB copied` for `copied_bytes`, `1 of 5 offsets` for two."""
    label, _, measure = name.rpartition("_")
    unit = _UNITS.get(measure)
    amounts = [
        render_amount(value, unit) if unit else f"{value:,}"
        for value in (figures[name], figures.get(_WHOLE + name))
        if isinstance(value, int)
    ]
    return " ".join(filter(None, (" of ".join(amounts), label if unit else name)))


def _get_place(change: Change) -> tuple[str, str]:
    # Two instances can have one address, so the identity decides at last.
    return change.address, str(change.identity)


def read_names(change: Change, words: Words) -> frozenset[str]:
    """All that people call the object."""
    return frozenset((*list_names(change, words), change.identity.key, change.address))


def mask_names(text: str, own: frozenset[str]) -> str:
    """The text without these names, to compare texts that differ in names only."""

    def mask(word: re.Match[str]) -> str:
        name = word[0].rstrip(".:-")
        return _NAME + word[0][len(name) :] if name in own else word[0]

    return _WORD.sub(mask, text)


def _read_path(item: PathChange, key: str, names: Collection[str]) -> Hashable:
    if len(item.path) > 1 and item.path[0] not in names:
        return item
    sides: Iterable[Value] = (item.before, item.after, item.effective, item.effective_before)
    if item.path and item.path[0] in names:
        sides = [None if side is None else _NAME for side in sides]
    else:
        # Only attributes name an object. A config that happens to equal a name is a value.
        sides = [_NAME if side == key else side for side in sides]
    return item.path, tuple(sides), item.sensitive, item.unit


def _read_attributes(attributes: FrozenMap, key: str, names: Collection[str]) -> Hashable:
    return tuple(
        [
            (name, _NAME if name in names or attributes[name] == key else attributes[name])
            for name in sorted(attributes)
        ]
    )


def _read_findings(findings: Iterable[Finding], own: frozenset[str]) -> Hashable:
    """What people read of the findings, without the names of their object. A right is no name:
    changes that differ in one are never shown as one."""
    texts = ((item, mask_names(item.text, own)) for item in findings)
    return tuple(
        (
            (item.rule, item.level, item.path, item.accepted, mask_names(item.fix, own)),
            _NUMBER.sub("0", text) if item.figures else text,
            tuple((row.breadth, row.operations) for row in item.access),
        )
        for item, text in texts
    )


def _read_row(row: Ownership, change: Change) -> Hashable:
    owners = tuple("" if owner == change.address else owner for owner in row.owners)
    return owners, row.protected, row.secret_version


def select_findings(change: Change) -> tuple[Finding, ...]:
    """The findings that are shown at a change. A note about who gains access repeats the rows of
    the section about access."""
    return tuple(
        item for item in change.findings if item.level is not Level.NOTE or not item.access
    )


def select_dangers(change: Change) -> tuple[Finding, ...]:
    """The findings of a change that are dangers."""
    return tuple(item for item in change.findings if item.level is Level.DANGER)


def _join_findings(rows: list[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """The findings of several changes, whose rows agree up to names and figures, as those of
    one."""
    if len({tuple((item.rule, item.level, item.path) for item in row) for row in rows}) > 1:
        return tuple(sorted(dict.fromkeys(item for row in rows for item in row), key=_ORDER))
    return tuple(map(_add_figures, zip(*rows, strict=True)))


_ORDER = attrgetter("order")


def _add_figures(findings: tuple[Finding, ...]) -> Finding:
    first = findings[0]
    if len(findings) == 1:
        return first
    rows = [item.figures for item in findings]
    texts = (_render_sum(rows), join_texts([item.text for item in findings]))
    return replace(
        first,
        text="; ".join(filter(None, texts)),
        fix=join_sentences([item.fix for item in findings]),
        figures=_add_up(rows),
        access=tuple(row for item in findings for row in item.access),
    )


def _render_sum(rows: list[FrozenMap]) -> str:
    """`together 3 GiB` for the figures of several objects, empty if there is nothing to add up."""
    figures = _add_up(rows)
    if not any(isinstance(value, int) and value for value in figures.values()):
        return ""
    # A figure that is not known for each object is a lower bound.
    least = "" if all(row.keys() >= figures.keys() for row in rows) else "at least "
    return f"together {least}{render_figures(figures)}"


def join_names(names: Sequence[str]) -> str:
    """`a, b, c, d, e, … and 995 more`, for results whose names the log has in full."""
    hidden_count = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f", … and {hidden_count:,} more" if hidden_count > 0 else "")


def join_texts(texts: Sequence[str]) -> str:
    """One text for several that differ in names and figures only: the same, or an example."""
    return texts[0] if len(set(texts)) == 1 else f"for example, {texts[0]}"


def join_sentences(texts: Sequence[str]) -> str:
    """`join_texts` for texts that are whole sentences: what to do, and details."""
    return texts[0] if len(set(texts)) == 1 else f"for example: {texts[0]}"


def _add_up(rows: Iterable[FrozenMap]) -> FrozenMap:
    """Numbers are added, texts are listed once each."""
    totals: Counter[str] = Counter()
    texts: dict[str, dict[str, None]] = {}
    for name, value in (item for row in rows for item in row.items()):
        if isinstance(value, int):
            totals[name] += value
        else:
            texts.setdefault(name, {})[str(value)] = None
    return FrozenMap({**totals, **{name: ", ".join(words) for name, words in texts.items()}})
