"""What a plan says, grouped, ordered and counted once for every renderer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from ..core.change import Action, Change
from ..core.diagnostics import Diagnostics, has_errors
from ..core.resource import SETTING, TASK, Pending
from ..core.words import NEUTRAL, NO_WORDS, Vocabulary, Words, shared
from ..plan.model import Mode, OutputChange, Plan, PlanInstance, Removal, Unmanaged


class Counts(Struct, frozen=True):
    """Objects by what happens to them. effective: all that an apply does something for; an
    adoption that also writes counts in change and in adopt; destroy: all that takes something
    away, releases included; removals: settings of earlier runs that go; blocked: all blocked, of
    which `stopping` stop an apply; unchanged: need nothing."""

    effective: int = 0
    add: int = 0
    change: int = 0
    destroy: int = 0
    imports: int = 0
    adopt: int = 0
    forget: int = 0
    blocked: int = 0
    stopping: int = 0
    unchanged: int = 0
    drift: int = 0
    removals: int = 0


class Group(Struct, frozen=True):
    """name: stable word (`delete`); title: for people; changes: in the order to read them."""

    name: str
    title: str
    changes: tuple[Change, ...]


class KindRow(Struct, frozen=True):
    """One line of the summary table: how many objects of a kind, by column of `COLUMNS`."""

    instance: str
    kind: str
    counts: tuple[int, ...]


class Drift(Struct, frozen=True):
    """The objects of one kind that were changed outside."""

    kind: str
    changes: tuple[Change, ...]


class PlanView(Struct, frozen=True):
    """groups: blocked first, then deletes, then what loses something, then the rest, empty ones
    left out; drift and unmanaged: by kind; warnings: of instances, each once; partial: why the
    plan is not about everything; applicable: an apply has something to do and may do it; token:
    empty for the plan of a command such as `alter`, which is approved there and nowhere else."""

    instances: tuple[tuple[str, PlanInstance], ...]
    groups: tuple[Group, ...]
    kinds: tuple[KindRow, ...]
    drift: tuple[Drift, ...]
    counts: Counts
    outputs: tuple[OutputChange, ...]
    unmanaged: tuple[tuple[str, Unmanaged], ...]
    pending: tuple[Pending, ...]
    removals: tuple[Removal, ...]
    warnings: tuple[tuple[str, str], ...]
    diagnostics: Diagnostics
    partial: tuple[str, ...]
    destroy: bool
    errored: bool
    token: str
    words: Vocabulary

    def words_of(self, instance: str) -> Words:
        return self.words.get(instance, NEUTRAL)

    def removed(self) -> Words:
        """The words for all removals together."""
        return shared(self.words_of(one.identity.instance) for one in self.removals)

    @property
    def empty(self) -> bool:
        """Nothing to do, and nothing that should be done but is blocked."""
        something = self.counts.effective or self.counts.removals or self.outputs
        return not (something or self.counts.blocked or self.errored)

    @property
    def manages_nothing(self) -> bool:
        """Nobody declares or manages anything, so that `empty` says nothing about what is
        live."""
        return bool(self.token) and not (self.counts.unchanged or self.partial)

    @property
    def applicable(self) -> bool:
        something = self.counts.effective or self.counts.removals or self.outputs
        return bool(something) and not self.counts.stopping and not self.errored


def _is_effective(action: Action) -> Callable[[Change], bool]:
    return lambda change: change.effective and change.action is action


def _takes_away(change: Change) -> bool:
    """Deletions, and releases: they count as what is destroyed."""
    return change.takes_away


def _loses(change: Change) -> bool:
    return change.effective and change.action is Action.UPDATE and change.impact is not None


_REST = ", the rest can be applied"

# A change belongs to the first group whose test it passes.
_GROUPS: tuple[tuple[str, str, Callable[[Change], bool]], ...] = (
    (
        "blocked",
        "Blocked: nothing can be applied until these are resolved",
        lambda change: change.blocked is not None and change.blocked.kind.stops,
    ),
    (
        "kept",
        f"Blocked: these stay as they are{_REST}",
        lambda change: change.blocked is not None,
    ),
    ("delete", "To destroy", _takes_away),
    ("loses", "To change, with loss", _loses),
    ("update", "To change", _is_effective(Action.UPDATE)),
    ("create", "To create", _is_effective(Action.CREATE)),
    ("adopt", "To adopt", _is_effective(Action.ADOPT)),
    ("import", "To import", _is_effective(Action.IMPORT)),
    ("forget", "To forget (they stay where they are)", _is_effective(Action.FORGET)),
    (
        "noted",
        "Nothing to do, but worth knowing",
        lambda change: change.action is Action.NOOP and bool(change.notes),
    ),
)

COLUMNS: tuple[tuple[str, Callable[[Change], bool]], ...] = (
    ("destroy", _takes_away),
    ("change", lambda change: _is_effective(Action.UPDATE)(change) and not change.takes_away),
    ("create", _is_effective(Action.CREATE)),
    ("adopt", lambda change: change.effective and _adopts(change)),
    ("import", _is_effective(Action.IMPORT)),
    ("forget", _is_effective(Action.FORGET)),
    ("blocked", lambda change: change.blocked is not None),
)


def make_view(plan: Plan, words: Vocabulary = NO_WORDS) -> PlanView:
    """Group, order and count a plan for all renderers. words: of its providers."""
    instances = tuple(sorted(plan.instances.items()))
    return PlanView(
        instances=instances,
        groups=_group_changes(plan.changes),
        kinds=_count_kinds(plan.changes),
        drift=_group_drift(plan.drifted),
        counts=_make_counts(plan),
        outputs=plan.outputs,
        unmanaged=tuple((name, kind) for name, one in instances for kind in one.unmanaged),
        pending=plan.pending,
        removals=plan.removals,
        warnings=tuple((name, text) for name, one in instances for text in one.warnings),
        diagnostics=plan.diagnostics,
        partial=_list_selection(plan),
        destroy=plan.options.mode is Mode.DESTROY,
        errored=has_errors(plan.diagnostics),
        token=plan.token if plan.configuration else "",
        words=words,
    )


def pending_words(item: Pending, words: Words) -> tuple[str, str]:
    """What is pending, and since when: `move`, `moving since`."""
    if item.action == TASK:
        return words.task, f"{words.working} since"
    if item.action == SETTING:
        return words.setting, f"{words.held} since"
    return item.action, "unresolved from"


def _needs_nothing(change: Change) -> bool:
    return change.action is Action.NOOP and change.blocked is None


def _adopts(change: Change) -> bool:
    return change.action is Action.ADOPT or (change.action is Action.UPDATE and change.adopts)


def _get_order(change: Change) -> tuple[bool, str, str]:
    """Changes that carry a note come before those that need no thought."""
    return not change.notes, change.address, str(change.identity)


def _group_changes(changes: Sequence[Change]) -> tuple[Group, ...]:
    rest = any(change.effective for change in changes)
    members: dict[str, list[Change]] = {name: [] for name, _, _ in _GROUPS}
    for change in changes:
        name = next((name for name, _, test in _GROUPS if test(change)), None)
        if name is not None:
            members[name].append(change)
    return tuple(
        Group(
            name,
            title if rest else title.removesuffix(_REST),
            tuple(sorted(members[name], key=_get_order)),
        )
        for name, title, _ in _GROUPS
        if members[name]
    )


def _count_kinds(changes: Iterable[Change]) -> tuple[KindRow, ...]:
    tallies: dict[tuple[str, str], Counter[str]] = {}
    for change in changes:
        hit = [name for name, test in COLUMNS if test(change)]
        if hit:
            kind = (change.identity.instance, change.identity.kind)
            tallies.setdefault(kind, Counter()).update(hit)
    names = [name for name, _ in COLUMNS]
    return tuple(
        KindRow(instance, kind, tuple(tallies[instance, kind][name] for name in names))
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


def _make_counts(plan: Plan) -> Counts:
    stopping, taking = sum(1 for _ in plan.list_blocked(stopping=True)), plan.taking
    return Counts(
        effective=len(plan.effective),
        add=plan.count(Action.CREATE),
        change=plan.count(Action.UPDATE) - sum(1 for one in taking if one.released),
        destroy=len(taking),
        imports=plan.count(Action.IMPORT),
        adopt=sum(1 for change in plan.effective if _adopts(change)),
        forget=plan.count(Action.FORGET),
        blocked=stopping + sum(1 for _ in plan.list_blocked(stopping=False)),
        stopping=stopping,
        unchanged=plan.unchanged + sum(map(_needs_nothing, plan.changes)),
        drift=len(plan.drifted),
        removals=len(plan.removals),
    )


def _list_selection(plan: Plan) -> tuple[str, ...]:
    chosen = (("--target", plan.options.target), ("--exclude", plan.options.exclude))
    return tuple(f"{flag}={glob}" for flag, globs in chosen for glob in globs)
