"""What expressions refer to, as far as the text alone tells; the order of evaluation; cycles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from ...syntax.nodes import (
    Attr,
    AttrSplat,
    Binary,
    Call,
    Expression,
    ForObject,
    ForTuple,
    FullSplat,
    Index,
    LegacyIndex,
    Lit,
    Object,
    Paren,
    Root,
    TemplateFor,
    children,
    operands,
)


class Step(Struct, frozen=True, eq=False):
    """One step of a reference: `.name` (attribute), `[key]` (key None if it is computed), or
    a splat (key None, too)."""

    node: Expression
    attribute: str | None = None
    key: str | int | None = None


class Reference(Struct, frozen=True, eq=False):
    """`root.a["b"]…`; place: the node that spells all of it."""

    root: Root
    steps: tuple[Step, ...]

    @property
    def place(self) -> Expression:
        return self.steps[-1].node if self.steps else self.root


class Uses(Struct, frozen=True, eq=False):
    """What an expression uses: references, but for names that a `for` sets; calls of functions."""

    references: tuple[Reference, ...]
    calls: tuple[Call, ...]


class AllUses(dict[Expression, Uses]):
    """The uses of expressions, each looked for once however often it is asked for."""

    def __missing__(self, node: Expression) -> Uses:
        found = self[node] = uses(node)
        return found


def uses(node: Expression) -> Uses:
    """What one expression uses, in the order of the text."""
    if type(node) is Lit:
        return _NONE
    walk = _Walk([], [])
    walk.into(node, _NOTHING, ())
    return Uses(tuple(walk.references), tuple(walk.calls))


def references(node: Expression) -> tuple[Reference, ...]:
    """Every reference in an expression, but for names that a `for` sets."""
    return uses(node).references


_NONE = Uses((), ())
_NOTHING: frozenset[str] = frozenset()


class _Walk(Struct, frozen=True):
    references: list[Reference]
    calls: list[Call]

    def into(self, node: Expression, bound: frozenset[str], steps: tuple[Step, ...]) -> None:
        """bound: names that enclosing `for`s set; steps: those that follow the node."""
        kind = type(node)
        if kind is not Lit:
            _WALKS.get(kind, _Walk.parts)(self, node, bound, steps)

    def parts(self, node: Expression, bound: frozenset[str], _: tuple[Step, ...]) -> None:
        for part in children(node):
            self.into(part, bound, ())

    def root(self, node: Root, bound: frozenset[str], steps: tuple[Step, ...]) -> None:
        if node.name not in bound:
            self.references.append(Reference(node, steps))

    def attr(self, node: Attr, bound: frozenset[str], steps: tuple[Step, ...]) -> None:
        self.into(node.target, bound, (Step(node, node.name), *steps))

    def legacy(self, node: LegacyIndex, bound: frozenset[str], steps: tuple[Step, ...]) -> None:
        self.into(node.target, bound, (Step(node, None, node.index), *steps))

    def index(self, node: Index, bound: frozenset[str], steps: tuple[Step, ...]) -> None:
        key = _constant(node.key)
        if key is None:
            self.into(node.key, bound, ())
        self.into(node.target, bound, (Step(node, None, key), *steps))

    def splat(
        self, node: AttrSplat | FullSplat, bound: frozenset[str], steps: tuple[Step, ...]
    ) -> None:
        self.into(node.target, bound, (Step(node), *_inside(node.each), *steps))
        self.into(node.each, bound, ())

    def paren(self, node: Paren, bound: frozenset[str], steps: tuple[Step, ...]) -> None:
        self.into(node.inner, bound, steps)

    def call(self, node: Call, bound: frozenset[str], _: tuple[Step, ...]) -> None:
        self.calls.append(node)
        for argument in node.args:
            self.into(argument, bound, ())

    def loop(
        self, node: ForTuple | ForObject | TemplateFor, bound: frozenset[str], _: tuple[Step, ...]
    ) -> None:
        collection, *rest = children(node)
        inner = bound.union(name for name in (node.key, node.value) if name)
        self.into(collection, bound, ())
        for part in rest:
            self.into(part, inner, ())

    def binary(self, node: Binary, bound: frozenset[str], _: tuple[Step, ...]) -> None:
        first, chain = operands(node)
        self.into(first, bound, ())
        for step in chain:
            self.into(step.right, bound, ())

    def object(self, node: Object, bound: frozenset[str], _: tuple[Step, ...]) -> None:
        for item in node.items:
            if not isinstance(item.key, Root):
                self.into(item.key, bound, ())
            self.into(item.value, bound, ())


_WALKS: Mapping[type, Callable[[_Walk, Any, frozenset[str], tuple[Step, ...]], None]] = {
    Root: _Walk.root,
    Attr: _Walk.attr,
    LegacyIndex: _Walk.legacy,
    Index: _Walk.index,
    AttrSplat: _Walk.splat,
    FullSplat: _Walk.splat,
    Paren: _Walk.paren,
    Call: _Walk.call,
    ForTuple: _Walk.loop,
    ForObject: _Walk.loop,
    TemplateFor: _Walk.loop,
    Binary: _Walk.binary,
    Object: _Walk.object,
}


def _constant(node: Expression) -> str | int | None:
    if isinstance(node, Lit) and isinstance(node.value, str | int):
        return None if isinstance(node.value, bool) else node.value
    return None


def _inside(each: Expression) -> tuple[Step, ...]:
    """The attribute steps directly behind a splat."""
    steps: list[Step] = []
    while isinstance(each, Attr | Index | LegacyIndex):
        name = each.name if isinstance(each, Attr) else None
        steps.append(Step(each, name))
        each = each.target
    return tuple(reversed(steps))


Name = TypeVar("Name", bound=Hashable)


_ROOM = 100_000
"""Names in all cycles that are told; a few hundred names can have a million cycles."""


def ordered(
    graph: Mapping[Name, Iterable[Name]],
) -> tuple[list[Name], list[list[Name]], frozenset[Name]]:
    """All names, each after what it needs; the cycles, each as a closed chain of names; and all
    names that are in one. graph: name -> what it needs; needed names that it lacks are passed
    over."""
    order: list[Name] = []
    cycles: list[list[Name]] = []
    looping: set[Name] = set()
    done: set[Name] = set()
    room = _ROOM
    for start in graph:
        if start in done:
            continue
        path, place, waiting, lowest = [start], {start: 0}, [iter(graph[start])], [len(graph)]
        while path:
            for needed in waiting[-1]:
                if needed in place:
                    lowest[-1] = min(lowest[-1], place[needed])
                    if room > 0:
                        cycles.append([*path[place[needed] :], needed])
                        room -= len(cycles[-1])
                elif needed in graph and needed not in done:
                    place[needed] = len(path)
                    path.append(needed)
                    waiting.append(iter(graph[needed]))
                    lowest.append(len(graph))
                    break
            else:
                current, low = path.pop(), lowest.pop()
                at = place.pop(current)
                if low <= at:
                    looping.add(current)
                if low < at:
                    lowest[-1] = min(lowest[-1], low)
                waiting.pop()
                done.add(current)
                order.append(current)
    return order, cycles, frozenset(looping)
