"""What expressions refer to, as far as the text alone tells; the order of evaluation; cycles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..syntax.nodes import (
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


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of a reference: `.name` (attribute), `[key]` (key None if it is computed), or
    a splat (key None, too)."""

    node: Expression
    attribute: str | None = None
    key: str | int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """`root.a["b"]…`; place: the node that spells all of it."""

    root: Root
    steps: tuple[Step, ...]

    @property
    def place(self) -> Expression:
        return self.steps[-1].node if self.steps else self.root


_NOTHING: frozenset[str] = frozenset()


def references(
    node: Expression, bound: frozenset[str] = _NOTHING, steps: tuple[Step, ...] = ()
) -> Iterator[Reference]:
    """Every reference in an expression, but for names that a `for` sets."""
    match node:
        case Root():
            if node.name not in bound:
                yield Reference(node, steps)
        case Attr():
            yield from references(node.target, bound, (Step(node, node.name), *steps))
        case LegacyIndex():
            yield from references(node.target, bound, (Step(node, None, node.index), *steps))
        case Index():
            key = _constant(node.key)
            if key is None:
                yield from references(node.key, bound)
            yield from references(node.target, bound, (Step(node, None, key), *steps))
        case AttrSplat() | FullSplat():
            yield from references(node.target, bound, (Step(node), *_inside(node.each), *steps))
            yield from references(node.each, bound)
        case Paren():
            yield from references(node.inner, bound, steps)
        case _:
            yield from _within(node, bound)


def _within(node: Expression, bound: frozenset[str]) -> Iterator[Reference]:
    match node:
        case ForTuple() | ForObject() | TemplateFor():
            collection, *rest = children(node)
            inner = bound.union(name for name in (node.key, node.value) if name)
            yield from references(collection, bound)
            for part in rest:
                yield from references(part, inner)
        case Binary():
            first, chain = operands(node)
            yield from references(first, bound)
            for step in chain:
                yield from references(step.right, bound)
        case Object():
            for item in node.items:
                if not isinstance(item.key, Root):
                    yield from references(item.key, bound)
                yield from references(item.value, bound)
        case _:
            for part in children(node):
                yield from references(part, bound)


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


def calls(node: Expression) -> Iterator[Call]:
    """Every function call in an expression."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Call):
            yield current
        waiting.extend(children(current))


Graph = Mapping[str, Iterable[str]]
"""name -> what it needs, such as "local.a" -> ["var.x", "kafka_topic.b"]"""


def ordered(graph: Graph) -> tuple[list[str], list[list[str]]]:
    """All names, each after what it needs, and the cycles: each as a closed chain of names."""
    order: list[str] = []
    cycles: list[list[str]] = []
    done: set[str] = set()
    for start in graph:
        if start in done:
            continue
        path: dict[str, Iterator[str]] = {start: iter(graph[start])}
        while path:
            current = next(reversed(path))
            for needed in path[current]:
                if needed in path:
                    names = list(path)
                    cycles.append([*names[names.index(needed) :], needed])
                elif needed in graph and needed not in done:
                    path[needed] = iter(graph[needed])
                    break
            else:
                path.pop(current)
                done.add(current)
                order.append(current)
    return order, cycles
