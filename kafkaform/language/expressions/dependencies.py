"""Find what expressions and blocks refer to, by their text alone; order names by need, and find
cycles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from ...syntax.nodes import (
    Attr,
    AttrSplat,
    Binary,
    Block,
    Body,
    Expression,
    ForObject,
    ForTuple,
    FullSplat,
    FunctionCall,
    Index,
    LegacyIndex,
    Lit,
    Object,
    Paren,
    Root,
    TemplateFor,
    list_children,
    split_operands,
)


class ReferenceStep(Struct, frozen=True, eq=False):
    """One step of a reference: `.name`, `[key]` or a splat."""

    node: Expression
    attribute: str | None = None
    """The name of a `.name`."""
    key: str | int | None = None
    """The key of a `[key]`; None if it is computed."""


class Reference(Struct, frozen=True, eq=False):
    """`root.a["b"]…`."""

    root: Root
    steps: tuple[ReferenceStep, ...]

    @property
    def node(self) -> Expression:
        """What spells all of the reference."""
        return self.steps[-1].node if self.steps else self.root


class Uses(Struct, frozen=True, eq=False):
    """What an expression uses."""

    references: tuple[Reference, ...]
    """Without names that a `for` sets."""
    calls: tuple[FunctionCall, ...]
    """Calls of functions."""
    dotted: tuple[Attr, ...] = ()
    """Keys of objects with dots and without quotes, which are faults and not references."""


class AllUses(dict[Expression, Uses]):
    """The uses of expressions. Each is looked for once: the check of names, the graph and the
    places of values all ask for them."""

    def __missing__(self, node: Expression) -> Uses:
        uses = _NONE
        if type(node) is not Lit:
            walk = _ReferenceWalk([], [], [])
            walk.walk_into(node, _NOTHING, ())
            uses = Uses(tuple(walk.references), tuple(walk.calls), tuple(walk.dotted))
        self[node] = uses
        return uses


_NONE = Uses((), ())
_NOTHING: frozenset[str] = frozenset()


class _ReferenceWalk(Struct, frozen=True):
    """A walk over one expression. It may recurse, because the depth of expressions is limited."""

    references: list[Reference]
    calls: list[FunctionCall]
    dotted: list[Attr]

    def walk_into(
        self, node: Expression, bound: frozenset[str], steps: tuple[ReferenceStep, ...]
    ) -> None:
        """Note what a node uses. bound: names that enclosing `for` expressions set; steps: the
        steps behind the node."""
        kind = type(node)
        if kind is not Lit:
            _WALKS.get(kind, _ReferenceWalk.walk_parts)(self, node, bound, steps)

    def walk_parts(
        self, node: Expression, bound: frozenset[str], _: tuple[ReferenceStep, ...]
    ) -> None:
        for child in list_children(node):
            self.walk_into(child, bound, ())

    def walk_root(
        self, node: Root, bound: frozenset[str], steps: tuple[ReferenceStep, ...]
    ) -> None:
        if node.name not in bound:
            self.references.append(Reference(node, steps))

    def walk_attr(
        self, node: Attr, bound: frozenset[str], steps: tuple[ReferenceStep, ...]
    ) -> None:
        self.walk_into(node.target, bound, (ReferenceStep(node, node.name), *steps))

    def walk_legacy(
        self, node: LegacyIndex, bound: frozenset[str], steps: tuple[ReferenceStep, ...]
    ) -> None:
        self.walk_into(node.target, bound, (ReferenceStep(node, None, node.index), *steps))

    def walk_index(
        self, node: Index, bound: frozenset[str], steps: tuple[ReferenceStep, ...]
    ) -> None:
        constant = node.key.value if isinstance(node.key, Lit) else None
        key = constant if isinstance(constant, str | int) else None
        key = None if isinstance(constant, bool) else key
        if key is None:
            self.walk_into(node.key, bound, ())
        self.walk_into(node.target, bound, (ReferenceStep(node, None, key), *steps))

    def walk_splat(
        self, node: AttrSplat | FullSplat, bound: frozenset[str], steps: tuple[ReferenceStep, ...]
    ) -> None:
        self.walk_into(
            node.target, bound, (ReferenceStep(node), *_list_inner_steps(node.each), *steps)
        )
        self.walk_into(node.each, bound, ())

    def walk_paren(
        self, node: Paren, bound: frozenset[str], steps: tuple[ReferenceStep, ...]
    ) -> None:
        self.walk_into(node.inner, bound, steps)

    def walk_call(
        self, node: FunctionCall, bound: frozenset[str], _: tuple[ReferenceStep, ...]
    ) -> None:
        self.calls.append(node)
        for argument in node.args:
            self.walk_into(argument, bound, ())

    def walk_loop(
        self,
        node: ForTuple | ForObject | TemplateFor,
        bound: frozenset[str],
        _: tuple[ReferenceStep, ...],
    ) -> None:
        collection, *bodies = list_children(node)
        inner = bound.union(name for name in (node.key, node.value) if name)
        self.walk_into(collection, bound, ())
        for body in bodies:
            self.walk_into(body, inner, ())

    def walk_binary(
        self, node: Binary, bound: frozenset[str], _: tuple[ReferenceStep, ...]
    ) -> None:
        # Not by recursion: `1+1+1+…` can be thousands of levels deep.
        first, chain = split_operands(node)
        self.walk_into(first, bound, ())
        for step in chain:
            self.walk_into(step.right, bound, ())

    def walk_object(
        self, node: Object, bound: frozenset[str], _: tuple[ReferenceStep, ...]
    ) -> None:
        for item in node.items:
            if isinstance(item.key, Attr) and render_dotted_name(item.key):
                self.dotted.append(item.key)
            elif not isinstance(item.key, Root):  # a bare word is a key, not a reference
                self.walk_into(item.key, bound, ())
            self.walk_into(item.value, bound, ())


_WALKS: Mapping[
    type, Callable[[_ReferenceWalk, Any, frozenset[str], tuple[ReferenceStep, ...]], None]
] = {
    Root: _ReferenceWalk.walk_root,
    Attr: _ReferenceWalk.walk_attr,
    LegacyIndex: _ReferenceWalk.walk_legacy,
    Index: _ReferenceWalk.walk_index,
    AttrSplat: _ReferenceWalk.walk_splat,
    FullSplat: _ReferenceWalk.walk_splat,
    Paren: _ReferenceWalk.walk_paren,
    FunctionCall: _ReferenceWalk.walk_call,
    ForTuple: _ReferenceWalk.walk_loop,
    ForObject: _ReferenceWalk.walk_loop,
    TemplateFor: _ReferenceWalk.walk_loop,
    Binary: _ReferenceWalk.walk_binary,
    Object: _ReferenceWalk.walk_object,
}


def render_dotted_name(node: Attr) -> str:
    """`a.b.c` as it is written; empty if the node is more than names and dots."""
    names: list[str] = []
    target: Expression = node
    while isinstance(target, Attr):
        names.append(target.name)
        target = target.target
    return ".".join((target.name, *reversed(names))) if isinstance(target, Root) else ""


def _list_inner_steps(node: Expression) -> tuple[ReferenceStep, ...]:
    """The steps directly behind a splat, in the order of the text."""
    steps: list[ReferenceStep] = []
    while isinstance(node, Attr | Index | LegacyIndex):
        name = node.name if isinstance(node, Attr) else None
        steps.append(ReferenceStep(node, name))
        node = node.target
    return tuple(reversed(steps))


Name = TypeVar("Name", bound=Hashable)


_ROOM = 100_000
"""Names in all cycles that are reported: a few hundred names can have a million cycles."""


def order_names(
    graph: Mapping[Name, Iterable[Name]],
) -> tuple[list[Name], list[list[Name]], frozenset[Name]]:
    """All names, each after what it needs; the cycles, each as a closed chain of names; and all
    names that are part of a cycle.

    graph: name -> the names that it needs; names that are not in the graph are ignored.
    """
    # Tarjan's algorithm for strongly connected components, with a list instead of recursion: a
    # chain of local values can be longer than Python's stack. `path` is the chain that is being
    # followed, `positions` the position of each name in it, `pending` what is left to follow for
    # each, and `lowest` the first position of the path that each of them leads back to.
    order: list[Name] = []
    cycles: list[list[Name]] = []
    looping: set[Name] = set()
    ordered: set[Name] = set()
    free_names = _ROOM
    for start in graph:
        if start in ordered:
            continue
        path, positions, pending, lowest = [start], {start: 0}, [iter(graph[start])], [len(graph)]
        while path:
            for needed in pending[-1]:
                if needed in positions:  # the path leads back to itself
                    lowest[-1] = min(lowest[-1], positions[needed])
                    if free_names > 0:
                        cycles.append([*path[positions[needed] :], needed])
                        free_names -= len(cycles[-1])
                elif needed in graph and needed not in ordered:
                    positions[needed] = len(path)
                    path.append(needed)
                    pending.append(iter(graph[needed]))
                    lowest.append(len(graph))
                    break
            else:  # everything that the last name needs is done
                current, lowest_position = path.pop(), lowest.pop()
                position = positions.pop(current)
                if lowest_position <= position:
                    looping.add(current)
                if lowest_position < position:
                    lowest[-1] = min(lowest[-1], lowest_position)
                pending.pop()
                ordered.add(current)
                order.append(current)
    return order, cycles, frozenset(looping)


PATH_ARGUMENTS = ("ignore_changes", "ignore_changes_except", "replace_triggered_by")
"""Arguments of nested blocks whose expressions are names of attributes and are not evaluated."""


def walk_expressions(body: Body, skip: Collection[str] = ()) -> Iterator[Expression]:
    """Every expression of a body and of its nested blocks. skip: arguments of the body itself."""
    for name, attribute in body.attributes.items():
        if name not in skip:
            yield attribute.value
    for block in body.blocks:
        yield from walk_expressions(block.body, PATH_ARGUMENTS)


def find_iterator(block: Block) -> str | None:
    """The word that a `dynamic` block sets for its content: what `iterator` says, else its label.
    None if the block has not exactly one label, which is a fault."""
    if len(block.labels) != 1:
        return None
    iterator = block.body.attributes.get("iterator")
    if iterator is not None and isinstance(iterator.value, Root):
        return iterator.value.name
    return block.labels[0].text
