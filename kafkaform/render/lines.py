"""Render one change as lines of symbol and text, for terminals and for Markdown comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import TypeAlias

from msgspec import Struct

from ..core.change import Action, Change, Ownership, PathChange
from ..core.text.cell_width import cell_width
from ..core.value import EMPTY, FrozenMap, Value
from ..core.words import NEUTRAL, Words
from .evidence import render_evidence
from .parts import Piece, are_long, compare_parts
from .text import (
    ARROW,
    inline,
    mask_value,
    pad_text,
    quote,
    render_count,
    render_path,
    render_value,
)

INLINE_LIMIT = 100
"""Characters; a list that takes more is shown element by element."""
NAMES_LIMIT = 6
"""Changed paths that a one-line form names."""

Tree: TypeAlias = "dict[str, Tree | PathChange]"


class Line(Struct, frozen=True):
    """One line of a change, without indentation and colour."""

    depth: int
    """0 for the change itself, 1 for its attributes, and so on."""
    symbol: str
    """One of `+ ~ - = . # !`, or a space."""
    text: str
    """Safe to print: foreign text in it has gone through `text.inline`."""
    style: str = ""
    """A name in `style.SGR`."""


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

_STYLES = {"+": "create", "~": "update", "-": "delete"}

_PROTECTION = {"default": "on (default)", "explicit": "on (prevent_destroy = true)", "no": "off"}


def render_change(
    change: Change, words: Words = NEUTRAL, with_instance: bool = False
) -> Iterator[Line]:
    """Everything that people see of one change.

    words: of its provider; with_instance: name the provider instance, for plans with several.
    """
    yield Line(0, "#", render_headline(change, with_instance=with_instance), "title")
    # Some reasons repeat the headline: "adopted" under "will be adopted" tells nobody anything.
    if change.reason and change.reason not in _choose_verb(change):
        yield Line(0, "#", f"({inline(change.reason)})", "dim")
    if change.blocked is not None:
        yield Line(1, "!", f"blocked: {inline(change.blocked.reason)}", "blocked")
        if change.blocked.advice:
            yield Line(1, " ", f"to do: {inline(change.blocked.advice)}")
    if change.impact is not None:
        yield Line(1, "!", render_impact(change), "delete")
    for risk in change.risks:
        yield Line(1, "!", f"{risk.kind.label}: {inline(risk.text)}", "delete")
    yield from (Line(1, "!", f"note: {inline(note)}", "warning") for note in change.notes)
    # A blocked update still shows the values that were compared: they explain the block. A blocked
    # create or delete would only list a whole object to which nothing happens.
    shown = change.blocked is None or change.action is Action.UPDATE
    if shown and change.action is not Action.NOOP:
        yield from _render_body(change, words)


def render_headline(change: Change, *, with_instance: bool = False) -> str:
    """`kafka_topic.orders["eu"] will be updated in-place`, with the instance on request."""
    will = "would" if change.blocked is not None else "will"
    where = f" on {inline(change.identity.instance)}" if with_instance else ""
    # Blocked before an action was chosen, for example because the object could not be read.
    if change.blocked is not None and change.action is Action.NOOP:
        return f"{inline(change.address)} cannot be planned{where}"
    return f"{inline(change.address)} {will} {_choose_verb(change)}{where}"


def _choose_verb(change: Change) -> str:
    if change.adopts and change.action is Action.UPDATE:
        return "be adopted and updated in-place"
    if change.released and change.removed:
        return "be released: what kafkaform set is removed, the rest stays"
    return _WILL[change.action]


def render_impact(change: Change) -> str:
    """What is lost, as a sentence; its figures are for programs."""
    return "" if change.impact is None else inline(change.impact.text)


def render_brief(item: PathChange) -> str:
    """One path on one line: `config.retention.ms 1000 → 2000`, of long texts the differences."""
    if not item.path:
        return "deleted" if item.after is None else "created"
    if not item.sensitive and are_long(item.before, item.after):
        shown = (_render_piece(piece) for piece in compare_parts(item.before, item.after))
        return (
            f"{render_path(item.path)} "
            f"{', '.join(f'{sign} {text}'.strip() for sign, text in shown)}"
        )
    before, after = (mask_value(side, item.sensitive) for side in (item.before, item.after))
    return f"{render_path(item.path)} {before} {ARROW} {after}"


def render_changed_names(change: Change) -> str:
    """The paths that an update touches, for one-line forms."""
    names = [render_path(item.path) for item in change.paths]
    names += [label for label, _, _ in _list_records(change)]
    more = f" and {len(names) - NAMES_LIMIT} more" if len(names) > NAMES_LIMIT else ""
    return ", ".join(names[:NAMES_LIMIT]) + more


# ── the block of attributes ─────────────────────────────────────────────────────────────


def _render_body(change: Change, words: Words) -> Iterator[Line]:
    tree = _build_tree(change)
    title = f"{inline(change.identity.kind)} {quote(change.identity.key)}"
    # Only an update leaves attributes out. All other actions list the whole object.
    whole = change.after if change.action is Action.UPDATE else None
    lines = [*_render_node(tree, 1, whole or EMPTY), *_render_records(change)]
    symbol = change.action.symbol
    if lines:
        yield Line(0, symbol, title + " {", change.action.value)
        yield from lines
        yield Line(0, " ", "}")
    else:
        yield Line(0, symbol, title, change.action.value)
    if change.steps:
        tally = Counter(step.request.name for step in change.steps)
        names = (f"{inline(name)}{'' if n == 1 else f' x{n}'}" for name, n in tally.items())
        how = render_evidence([(s.request.name, s.evidence) for s in change.steps], words)
        yield Line(0, "#", f"requests: {', '.join(names)} ({how})", "dim")


def _build_tree(change: Change) -> Tree:
    """The values to show, nested by attribute and key."""
    tree: Tree = {}
    source = change.before if change.action is Action.DELETE else change.after
    comes, goes = change.action is not Action.CREATE, change.action is not Action.DELETE
    if change.action is not Action.UPDATE:
        for name, item in sorted((source or EMPTY).items()):
            _insert(tree, PathChange((name,), item if comes else None, item if goes else None))
    # The changed paths go over the whole object because only they say which values are sensitive.
    # Shorter paths first: a longer one refines the value that a shorter one put there.
    for path in sorted(change.paths, key=lambda item: len(item.path)):
        _insert(tree, path)
    return tree


def _insert(tree: Tree, item: PathChange) -> None:
    node = tree
    for name in item.path[:-1]:
        child = node.setdefault(name, {})
        if isinstance(child, PathChange):
            # A value stands where this path needs a map (text before, map after): shown beside it.
            tree[".".join(item.path)] = item
            return
        node = child
    name = item.path[-1] if item.path else "object"
    parts = _split_map(item)
    if parts is None:
        node[name] = item
    else:
        child = {}
        node[name] = child
        for part in parts:
            _insert(child, part)


def _split_map(item: PathChange) -> list[PathChange] | None:
    """A change of a whole map as changes of its keys, or None if it is no map."""
    sides = [side for side in (item.before, item.after) if side is not None]
    if item.sensitive or not sides or not all(isinstance(side, FrozenMap) for side in sides):
        return None
    before, after = (_get_map(item.before), _get_map(item.after))
    keys = sorted(set(before) | set(after))
    return [
        PathChange((key,), before.get(key), after.get(key))
        for key in keys
        if before.get(key) != after.get(key) or item.before == item.after
    ]


def _get_map(item: Value) -> FrozenMap:
    return item if isinstance(item, FrozenMap) else EMPTY


def _render_node(tree: Tree, depth: int, whole: FrozenMap, quoted: bool = False) -> Iterator[Line]:
    """The entries of an object or a map. whole: all its entries, those not in `tree` are counted;
    quoted: keys of a map, as opposed to attributes."""
    leaves: list[tuple[str, PathChange]] = []
    maps: list[tuple[str, str, Tree]] = []
    for name, child in tree.items():
        label = inline(name) if name.isidentifier() and not quoted else quote(name)
        if _is_nothing(child):
            continue
        if isinstance(child, PathChange):
            leaves.append((label, child))
        else:
            maps.append((name, label, child))
    width = max((cell_width(label) for label, _ in leaves), default=0)
    for label, leaf in leaves:
        yield from _render_leaf(pad_text(label, width), leaf, depth)
    for name, label, inner in maps:
        left = _get_map(whole.get(name))
        # A map with unchanged entries is changed as a whole, even if all that is shown is new.
        symbol = "~" if _count_hidden(inner, left) else _choose_common_symbol(inner)
        yield Line(depth, symbol, f"{label} = {{", _STYLES.get(symbol, ""))
        yield from _render_node(inner, depth + 1, left, quoted=True)
        yield Line(depth, " ", "}")
    hidden = _count_hidden(tree, whole) if whole else 0
    if hidden:
        noun = "key" if quoted else "attribute"
        yield Line(depth, " ", f"# ({render_count(hidden, 'unchanged ' + noun)} hidden)", "dim")


def _count_hidden(tree: Tree, whole: FrozenMap) -> int:
    """The number of entries of the whole map that are set but not shown."""
    left = (item for name, item in whole.items() if name not in tree)
    return sum(item not in (None, (), EMPTY) for item in left)


def _is_nothing(node: Tree | PathChange) -> bool:
    """True for what is set neither before nor after, such as an omitted attribute of a create."""
    if isinstance(node, PathChange):
        empty = (None, ())
        return node.before in empty and node.after in empty and node.before == node.after
    return all(map(_is_nothing, node.values()))


def _choose_symbol(item: PathChange) -> str:
    if item.before == item.after:
        return " " if item.effective is None and not item.sensitive else "~"
    if item.before is None:
        return "+"
    return "-" if item.after is None else "~"


def _choose_common_symbol(tree: Tree) -> str:
    """The symbol that all leaves below share, or `~` if they differ."""
    symbols = {
        _choose_symbol(child) if isinstance(child, PathChange) else _choose_common_symbol(child)
        for child in tree.values()
    }
    return symbols.pop() if len(symbols) == 1 else "~"


def _render_leaf(label: str, item: PathChange, depth: int) -> Iterator[Line]:
    symbol = _choose_symbol(item)
    style = _STYLES.get(symbol, "")
    if not item.sensitive and are_long(item.before, item.after):
        sizes = f"{len(item.before):,} {ARROW} {len(item.after):,} characters"  # type: ignore[arg-type]
        yield Line(depth, symbol, f"{label} = ({sizes}, part by part)", style)
        yield from _render_pieces(item.before, item.after, depth + 1)
        return
    before, after = (mask_value(side, item.sensitive) for side in (item.before, item.after))
    if symbol in "+ ":
        text = after if item.effective is None else f"{after}  # the default"
    elif item.effective is not None:
        text = (
            f"{before} {ARROW} (not set, {mask_value(item.effective, item.sensitive)} takes effect)"
        )
    elif symbol == "-":
        text = before
    else:
        text = f"{before} {ARROW} {after}"
    sides = (item.before, item.after)
    # One changed element of a list of hundreds cannot be found on one line.
    if len(text) > INLINE_LIMIT and any(isinstance(side, tuple) for side in sides):
        elements = _render_elements(item, depth + 1)
        # None differ if only the order changed; then the line above is the only honest form.
        if elements:
            yield Line(depth, symbol, f"{label} = [", style)
            yield from elements
            yield Line(depth, " ", "]")
            return
    yield Line(depth, symbol, f"{label} = {text}", style)


def _render_elements(item: PathChange, depth: int) -> list[Line]:
    """The changed elements of a long list, one per line, and the number of the others."""
    before = item.before if isinstance(item.before, tuple) else ()
    after = item.after if isinstance(item.after, tuple) else ()
    # In a list of lists, such as an assignment, the position is part of the meaning.
    if not any(isinstance(element, tuple) for element in (*before, *after)):
        return list(_render_pieces(before, after, depth))
    lines, same = _compare_by_position(before, after, depth)
    if lines and same:
        lines.append(
            Line(depth, " ", f"# ({render_count(same, 'unchanged element')} hidden)", "dim")
        )
    return lines


def _compare_by_position(
    before: tuple[Value, ...], after: tuple[Value, ...], depth: int
) -> tuple[list[Line], int]:
    pairs = list(enumerate(zip_longest(before, after)))
    lines = [
        line
        for index, (old, new) in pairs
        if old != new
        for line in _render_leaf(f"[{index}]", PathChange((), old, new), depth)
    ]
    return lines, sum(1 for _, (old, new) in pairs if old == new)


def _render_pieces(before: Value, after: Value, depth: int) -> Iterator[Line]:
    for piece in compare_parts(before, after):
        sign, text = _render_piece(piece)
        yield Line(depth, sign, text, _STYLES.get(sign, "dim"))


def _render_piece(piece: Piece) -> tuple[str, str]:
    """Symbol and text of a changed part, or of a run of unchanged ones."""
    if piece.same:
        return " ", f"# ({render_count(piece.same, 'unchanged element')} hidden)"
    return piece.sign, render_value(piece.part)


# ── bookkeeping and checks ──────────────────────────────────────────────────────────────


def _render_records(change: Change) -> Iterator[Line]:
    for label, old, new in _list_records(change):
        symbol = "+" if old is None else "-" if new is None else "~"
        text = f"{old} {ARROW} {new}" if symbol == "~" else new or old
        yield Line(1, symbol, f"{label}: {text}", _STYLES[symbol])


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
