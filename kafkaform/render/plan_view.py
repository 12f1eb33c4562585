"""What a plan says, grouped, ordered and counted once for every renderer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from ..core.change import Action, Change
from ..core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors
from ..core.finding import Breadth, Finding, Harm, Level
from ..core.resource import SETTING, TASK, Identity, Pending
from ..core.words import NEUTRAL, NO_WORDS, Vocabulary, Words, shared
from ..plan.model import Mode, OutputChange, Plan, PlanInstance, Removal, Unmanaged
from .change_entries import (
    ChangeEntry,
    KeyMaker,
    make_danger_key,
    make_drift_key,
    make_entries,
    make_key,
)
from .findings import PrincipalAccess, collect_access
from .text import inline, quote


class Counts(Struct, frozen=True):
    """How many objects a plan creates, changes, destroys and so on."""

    effective: int = 0
    """Objects for which an apply does something."""
    add: int = 0
    change: int = 0
    """Updates, also of objects that are adopted with the same update."""
    destroy: int = 0
    """Deletions, and releases that remove settings: all that takes something away."""
    imports: int = 0
    adopt: int = 0
    """Adoptions, those that also update the object among them."""
    forget: int = 0
    move: int = 0
    """Objects of which only the address changes."""
    refresh: int = 0
    """Objects whose live values are only recorded."""
    blocked: int = 0
    """Blocked changes, those of `stopping` among them."""
    stopping: int = 0
    """Blocked changes that keep the whole plan from being applied."""
    unchanged: int = 0
    drift: int = 0
    removals: int = 0
    """Settings of earlier runs that this apply removes."""


class Group(Struct, frozen=True):
    """Changes under one heading."""

    name: str
    """A stable word for renderers, such as `delete`."""
    title: str
    entries: tuple[ChangeEntry, ...]
    """In reading order: dangers first, then what holds data, then notes, then by address."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The single changes in reading order."""
        return tuple(change for entry in self.entries for change in entry.changes)


class KindRow(Struct, frozen=True):
    """One row of the summary table: the objects of one kind, counted by column of `COLUMNS`."""

    instance: str
    kind: str
    counts: tuple[int, ...]


class Drift(Struct, frozen=True):
    """The objects of one kind that somebody changed outside kafkaform."""

    kind: str
    entries: tuple[ChangeEntry, ...]
    """Objects that were changed in the same way are one entry."""

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(change for entry in self.entries for change in entry.changes)


class PlanView(Struct, frozen=True):
    """A plan, grouped and counted."""

    instances: tuple[tuple[str, PlanInstance], ...]
    dangers: tuple[ChangeEntry, ...]
    """All that could destroy data, stop clients or give much access, the worst first: every form of
    the plan begins with these. Only their `dangers` are equal within an entry. Changes that stay
    blocked while the rest is applied are left out, because nothing happens to them."""
    access: tuple[PrincipalAccess, ...]
    """Who gains and loses access, the widest first; principals with equal access are one row."""
    groups: tuple[Group, ...]
    """Non-empty groups in reading order: what needs a decision comes first."""
    kinds: tuple[KindRow, ...]
    drift: tuple[Drift, ...]
    counts: Counts
    outputs: tuple[OutputChange, ...]
    unmanaged: tuple[tuple[str, Unmanaged], ...]
    """Each with the name of its provider instance."""
    pending: tuple[Pending, ...]
    removals: tuple[Removal, ...]
    warnings: tuple[tuple[str, Finding], ...]
    """What rules found about a system as a whole, each with its provider instance."""
    unevaluated: int
    """How many blocks are left out because a data source could not be read."""
    diagnostics: Diagnostics
    partial: tuple[str, ...]
    """The flags that make the plan partial; empty for a whole plan."""
    destroy: bool
    refresh: bool
    """The plan only records what is live. Its changes stand in `drift`, in `groups` only blocked
    ones."""
    errored: bool
    token: str
    """The approval token. Empty for the plan of a command such as `alter`, which is approved in
    that command and nowhere else."""
    words: Vocabulary
    has_work: bool
    """True if an apply would send or record something."""

    def words_of(self, instance: str) -> Words:
        return self.words.get(instance, NEUTRAL)

    def name_identity(self, identity: Identity) -> str:
        """What people call an object of which no more is known than its identity."""
        words = self.words_of(identity.instance)
        return words.describe_object(identity.kind, identity.key) or str(identity)

    def name_unmanaged(self, instance: str, kind: str, key: str) -> str:
        """An object of a list of keys: its sentence, else its key in quotes."""
        sentence = self.words_of(instance).describe_object(kind, key)
        return inline(sentence) if sentence else quote(key)

    def removal_words(self) -> Words:
        """The words for all removals together."""
        return shared(self.words_of(removal.identity.instance) for removal in self.removals)

    @property
    def empty(self) -> bool:
        """True if there is nothing to do, nothing is blocked and nothing failed."""
        return not (self.has_work or self.counts.blocked or self.errored)

    @property
    def applicable(self) -> bool:
        """True if an apply has something to do and nothing forbids it."""
        return self.has_work and not self.counts.stopping and not self.errored


_REST = ", the rest can be applied"

GROUPS = {
    "blocked": "Blocked: nothing can be applied until these are resolved",
    "delete": "To destroy",
    "loses": "To change, with loss",
    "kept": f"Blocked: these stay as they are{_REST}",
    "update": "To change",
    "create": "To create",
    "move": "To move to another address",
    "adopt": "To adopt",
    "import": "To import",
    "forget": "To forget (no longer managed, the objects stay)",
    "noted": "Nothing to do, but worth knowing",
}
"""Group -> heading, in reading order. Readers of long plans stop early, so everything that needs
a decision comes before everything that does not."""

COLUMNS = ("destroy", "change", "create", "move", "adopt", "import", "forget", "blocked")
"""Columns of the summary table. The dangerous one stands first."""

_COLUMN_OF = {
    Action.UPDATE: "change",
    Action.CREATE: "create",
    Action.ADOPT: "adopt",
    Action.IMPORT: "import",
    Action.FORGET: "forget",
}


def make_view(plan: Plan, words: Vocabulary = NO_WORDS) -> PlanView:
    """Group, order and count a plan for all renderers. words: of its providers."""
    instances = tuple(sorted(plan.instances.items()))
    chosen = (("--target", plan.options.target), ("--exclude", plan.options.exclude))
    drifted, kinds = plan.drifted, _count_kinds(plan.changes)
    refresh = plan.options.mode is Mode.REFRESH
    counts = _make_counts(plan, kinds)
    return PlanView(
        instances=instances,
        dangers=_collect_dangers(plan.changes, words),
        access=collect_access(plan.effective),
        groups=_group_changes(plan, words),
        kinds=kinds,
        drift=_group_drift(drifted, words) if drifted else (),
        counts=counts,
        outputs=plan.outputs,
        unmanaged=tuple((name, kind) for name, item in instances for kind in item.unmanaged),
        pending=plan.pending,
        removals=plan.removals,
        warnings=tuple((name, finding) for name, item in instances for finding in item.findings),
        diagnostics=(*plan.diagnostics, *_describe_unevaluated(plan)),
        unevaluated=len(plan.unevaluated),
        partial=tuple(f"{flag}={glob}" for flag, globs in chosen for glob in globs),
        destroy=plan.options.mode is Mode.DESTROY,
        refresh=refresh,
        errored=has_errors(plan.diagnostics),
        # The plan of `alter` has no configuration, so no later apply could match its token.
        token=plan.token if plan.configuration else "",
        words=words,
        # Outputs count: an apply writes them to the state, though it sends nothing for them.
        has_work=bool(counts.effective or plan.removals or plan.outputs),
    )


def _describe_unevaluated(plan: Plan) -> Iterator[Diagnostic]:
    """A warning that names the blocks which could not be evaluated, if there are any."""
    if plan.unevaluated:
        named = "resource block is" if len(plan.unevaluated) == 1 else "resource blocks are"
        yield Diagnostic(
            Severity.WARNING,
            f"{len(plan.unevaluated):,} {named} left out, because a data source could not be read",
            ", ".join(plan.unevaluated),
            advice="Their objects stay as they are. Plan again when the system answers.",
        )


def pending_words(item: Pending, words: Words) -> tuple[str, str]:
    """What is pending, and since when: `move`, `moving since`."""
    if item.action == TASK:
        return words.task, f"{words.working} since"
    if item.action == SETTING:
        return words.setting, f"{words.held} since"
    return item.action, "unresolved from"


def _choose_group(change: Change) -> str | None:
    """The group that lists the change; None for a change that nobody needs to read."""
    if change.block is not None:
        return "blocked" if change.block.stops else "kept"
    # Before the action is asked: a release is an update that takes something away, and readers
    # must find it among the deletions.
    if change.takes_away:
        return "delete"
    if change.action is Action.REFRESH:
        return None
    if change.action is Action.NOOP:
        return "noted" if change.findings else None
    if change.action is Action.UPDATE and _loses(change):
        return "loses"
    if change.moves:
        return "move"
    return change.action.value


def _loses(change: Change) -> bool:
    """True for an update that destroys data."""
    # What a move copies is measured, too, and is no loss.
    measured = change.impact is not None and not change.has_harm(Harm.MOVE)
    return measured or change.has_harm(Harm.DATA_LOSS)


def _list_columns(change: Change) -> list[str]:
    """The columns that count the change. An update that adopts its object counts twice."""
    if change.blocked is not None:
        return ["blocked"]
    columns = ["adopt"] if change.adopts and change.action is Action.UPDATE else []
    if change.takes_away:
        columns.append("destroy")
    elif change.moves:
        columns.append("move")
    elif change.action in _COLUMN_OF:
        columns.append(_COLUMN_OF[change.action])
    return columns


def _group_changes(plan: Plan, words: Vocabulary) -> tuple[Group, ...]:
    changes = plan.changes
    members: dict[str, list[Change]] = {name: [] for name in GROUPS}
    for change in changes:
        # What a refresh-only plan records is its drift, and stands there.
        refreshes = plan.options.mode is Mode.REFRESH and change.blocked is None
        name = None if refreshes else _choose_group(change)
        if name is not None:
            members[name].append(change)
    # The heading must not promise a rest where all that is left is blocked.
    has_effect = any(change.effective for change in changes)
    return tuple(
        Group(
            name,
            title if has_effect else title.removesuffix(_REST),
            _make_sorted(members[name], words),
        )
        for name, title in GROUPS.items()
        if members[name]
    )


def _collect_dangers(changes: Iterable[Change], words: Vocabulary) -> tuple[ChangeEntry, ...]:
    grave = [
        change
        for change in changes
        if change.grave and (change.block is None or change.block.stops)
    ]
    return _make_sorted(grave, words, make_danger_key) if grave else ()


def _make_sorted(
    changes: Sequence[Change], words: Vocabulary, make_key: KeyMaker = make_key
) -> tuple[ChangeEntry, ...]:
    entries = make_entries(changes, words, make_key)
    if len(entries) == 1:
        return entries
    return tuple(sorted(entries, key=partial(_rank_entry, words)))


def _rank_entry(words: Vocabulary, entry: ChangeEntry) -> tuple[int, ...]:
    """The place of an entry among others, low first; equal ranks stay in the order of addresses."""
    lead = entry.lead
    kinds = tuple(words.get(lead.identity.instance, NEUTRAL).kinds)
    kind = kinds.index(lead.identity.kind) if lead.identity.kind in kinds else len(kinds)
    remarks = [item for item in lead.findings if item.level is not Level.BLOCK]
    # Findings are sorted, so the first one is the worst. Notes move nothing before what contains
    # data.
    if not remarks or remarks[0].level is Level.NOTE:
        return Level.NOTE.rank, 0, 0, kind, not remarks
    first = remarks[0]
    widest = min((row.breadth.rank for row in first.access), default=len(Breadth))
    return first.level.rank, first.harm.rank, widest, kind, 0


def _count_kinds(changes: Iterable[Change]) -> tuple[KindRow, ...]:
    tallies = Counter(
        (change.identity.instance, change.identity.kind, column)
        for change in changes
        for column in _list_columns(change)
    )
    return tuple(
        KindRow(instance, kind, tuple(tallies[instance, kind, name] for name in COLUMNS))
        for instance, kind in sorted({(instance, kind) for instance, kind, _ in tallies})
    )


def _group_drift(changes: Iterable[Change], words: Vocabulary) -> tuple[Drift, ...]:
    kinds: dict[str, list[Change]] = {}
    for change in changes:
        kinds.setdefault(change.identity.kind, []).append(change)
    return tuple(
        Drift(kind, make_entries(kinds[kind], words, make_drift_key)) for kind in sorted(kinds)
    )


def _make_counts(plan: Plan, kinds: Sequence[KindRow]) -> Counts:
    # Sums of the table's columns, so that the last line cannot disagree with the table.
    totals = {name: sum(row.counts[n] for row in kinds) for n, name in enumerate(COLUMNS)}
    noops = sum(change.action is Action.NOOP and change.blocked is None for change in plan.changes)
    return Counts(
        effective=len(plan.effective),
        add=totals["create"],
        change=totals["change"],
        destroy=totals["destroy"],
        imports=totals["import"],
        adopt=totals["adopt"],
        forget=totals["forget"],
        move=totals["move"],
        refresh=sum(change.action is Action.REFRESH for change in plan.changes),
        blocked=totals["blocked"],
        stopping=sum(1 for _ in plan.list_blocked(stopping=True)),
        # The plan lists an unchanged object only if it has drifted; the others it just counts.
        unchanged=plan.unchanged + noops,
        drift=len(plan.drifted),
        removals=len(plan.removals),
    )
