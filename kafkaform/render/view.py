"""What a plan says, grouped, ordered and counted once for every renderer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..core.change import Action, Change
from ..core.diagnostics import Diagnostics, has_errors
from ..core.resource import SETTING, TASK, Pending
from ..core.words import NEUTRAL, NO_WORDS, Vocabulary, Words, shared
from ..plan.model import Mode, OutputChange, Plan, PlanInstance, Removal, Unmanaged


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
    changes: tuple[Change, ...]
    """In reading order: changes with notes first, then by address."""


class KindRow(Struct, frozen=True):
    """One row of the summary table: the objects of one kind, counted by column of `COLUMNS`."""

    instance: str
    kind: str
    counts: tuple[int, ...]


class Drift(Struct, frozen=True):
    """The objects of one kind that somebody changed outside kafkaform."""

    kind: str
    changes: tuple[Change, ...]


class PlanView(Struct, frozen=True):
    """A plan, grouped and counted."""

    instances: tuple[tuple[str, PlanInstance], ...]
    groups: tuple[Group, ...]
    """Non-empty groups in reading order: blocked first, then deletions, losses and the rest."""
    kinds: tuple[KindRow, ...]
    drift: tuple[Drift, ...]
    counts: Counts
    outputs: tuple[OutputChange, ...]
    unmanaged: tuple[tuple[str, Unmanaged], ...]
    """Each with the name of its provider instance."""
    pending: tuple[Pending, ...]
    removals: tuple[Removal, ...]
    warnings: tuple[tuple[str, str], ...]
    """Provider instance and text."""
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

    def removal_words(self) -> Words:
        """The words for all removals together."""
        return shared(self.words_of(one.identity.instance) for one in self.removals)

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
    "kept": f"Blocked: these stay as they are{_REST}",
    "delete": "To destroy",
    "loses": "To change, with loss",
    "update": "To change",
    "create": "To create",
    "adopt": "To adopt",
    "import": "To import",
    "forget": "To forget (no longer managed, the objects stay)",
    "noted": "Nothing to do, but worth knowing",
}
"""Group -> heading, in reading order. Readers of long plans stop early, so everything that needs
a decision comes before everything that does not."""

COLUMNS = ("destroy", "change", "create", "adopt", "import", "forget", "blocked")
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
        groups=_group_changes(plan),
        kinds=kinds,
        drift=_group_drift(drifted) if drifted else (),
        counts=counts,
        outputs=plan.outputs,
        unmanaged=tuple((name, kind) for name, one in instances for kind in one.unmanaged),
        pending=plan.pending,
        removals=plan.removals,
        warnings=tuple((name, text) for name, one in instances for text in one.warnings),
        diagnostics=plan.diagnostics,
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


def pending_words(item: Pending, words: Words) -> tuple[str, str]:
    """What is pending, and since when: `move`, `moving since`."""
    if item.action == TASK:
        return words.task, f"{words.working} since"
    if item.action == SETTING:
        return words.setting, f"{words.held} since"
    return item.action, "unresolved from"


def _choose_group(change: Change) -> str | None:
    """The group that lists the change; None for a change that nobody needs to read."""
    if change.blocked is not None:
        return "blocked" if change.blocked.kind.stops else "kept"
    # Before the action is asked: a release is an update that takes something away, and readers
    # must find it among the deletions.
    if change.takes_away:
        return "delete"
    if change.action is Action.NOOP:
        return "noted" if change.notes else None
    if change.action is Action.UPDATE and change.impact is not None:
        return "loses"
    return change.action.value


def _list_columns(change: Change) -> list[str]:
    """The columns that count the change. An update that adopts its object counts twice."""
    if change.blocked is not None:
        return ["blocked"]
    columns = ["adopt"] if change.adopts and change.action is Action.UPDATE else []
    if change.takes_away:
        columns.append("destroy")
    elif change.action in _COLUMN_OF:
        columns.append(_COLUMN_OF[change.action])
    return columns


def _group_changes(plan: Plan) -> tuple[Group, ...]:
    changes = plan.changes
    members: dict[str, list[Change]] = {name: [] for name in GROUPS}
    for change in changes:
        # What a refresh-only plan records is its drift, and stands there.
        refreshes = plan.options.mode is Mode.REFRESH and change.blocked is None
        name = None if refreshes else _choose_group(change)
        if name is not None:
            members[name].append(change)
    # The heading must not promise a rest where all that is left is blocked.
    rest = any(change.effective for change in changes)
    return tuple(
        Group(
            name,
            title if rest else title.removesuffix(_REST),
            tuple(
                sorted(
                    members[name],
                    # Two instances can have one address, so the identity decides at last.
                    key=lambda one: (not one.notes, one.address, str(one.identity)),
                )
            ),
        )
        for name, title in GROUPS.items()
        if members[name]
    )


def _count_kinds(changes: Iterable[Change]) -> tuple[KindRow, ...]:
    tallies: dict[tuple[str, str], Counter[str]] = {}
    for change in changes:
        columns = _list_columns(change)
        if columns:
            kind = (change.identity.instance, change.identity.kind)
            tallies.setdefault(kind, Counter()).update(columns)
    return tuple(
        KindRow(instance, kind, tuple(tallies[instance, kind][name] for name in COLUMNS))
        for instance, kind in sorted(tallies)
    )


def _group_drift(changes: Iterable[Change]) -> tuple[Drift, ...]:
    kinds: dict[str, list[Change]] = {}
    for change in changes:
        kinds.setdefault(change.identity.kind, []).append(change)
    return tuple(
        Drift(kind, tuple(sorted(kinds[kind], key=lambda change: change.address)))
        for kind in sorted(kinds)
    )


def _make_counts(plan: Plan, kinds: Sequence[KindRow]) -> Counts:
    # Sums of the table's columns, so that the last line cannot disagree with the table.
    totals = {name: sum(row.counts[n] for row in kinds) for n, name in enumerate(COLUMNS)}
    noops = sum(one.action is Action.NOOP and one.blocked is None for one in plan.changes)
    return Counts(
        effective=len(plan.effective),
        add=totals["create"],
        change=totals["change"],
        destroy=totals["destroy"],
        imports=totals["import"],
        adopt=totals["adopt"],
        forget=totals["forget"],
        refresh=plan.count(Action.REFRESH),
        blocked=totals["blocked"],
        stopping=sum(1 for _ in plan.list_blocked(stopping=True)),
        # The plan lists an unchanged object only if it has drifted; the others it just counts.
        unchanged=plan.unchanged + noops,
        drift=len(plan.drifted),
        removals=len(plan.removals),
    )
