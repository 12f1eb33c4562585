"""A change as lines of symbol and text: the part that terminals, comments and pages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

from msgspec import Struct

from ..core.change import Action, Change, Evidence, Ownership, PathChange
from ..core.text.cell_width import cell_width
from ..core.value import EMPTY, FrozenMap, Value
from ..core.words import NEUTRAL, Words
from .parts import Piece, are_long, compare_parts
from .text import (
    ARROW,
    NOT_SET,
    inline,
    mask_value,
    pad_text,
    quote,
    render_count,
    render_pair,
    render_path,
    render_value,
)

INLINE_LIMIT = 100

Tree: TypeAlias = "dict[str, Tree | PathChange]"


class Line(Struct, frozen=True):
    """depth: 0 for the change itself, 1 for its attributes, and so on; symbol: `+ ~ - = . #`
    or a space; style: a name in `style.SGR`. The text is ready to be shown."""

    depth: int
    symbol: str
    text: str
    style: str = ""


_WILL = {
    Action.CREATE: "be created",
    Action.UPDATE: "be updated in-place",
    Action.DELETE: "be destroyed",
    Action.ADOPT: "be adopted",
    Action.FORGET: "be forgotten (it stays where it is)",
    Action.IMPORT: "be imported",
    Action.NOOP: "stay as it is",
}

CHECKED = {
    Evidence.REMOTE: "checked by the {node}",
    Evidence.LOCAL: "checked locally",
    Evidence.NONE: "cannot be checked beforehand",
}

_STYLES = {"+": "create", "~": "update", "-": "delete"}


def render_change(
    change: Change, words: Words = NEUTRAL, with_instance: bool = False
) -> Iterator[Line]:
    """The whole story of one change. words: of its provider; with_instance: say which provider
    instance it is of."""
    yield Line(0, "#", render_headline(change, with_instance=with_instance), "title")
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
    shown = change.blocked is None or change.action is Action.UPDATE
    if shown and change.action is not Action.NOOP:
        yield from _render_body(change, words)


def render_headline(change: Change, *, with_instance: bool = False) -> str:
    """`kafka_topic.orders["eu"] will be updated in-place`, and where."""
    will = "would" if change.blocked is not None else "will"
    where = f" on {inline(change.identity.instance)}" if with_instance else ""
    if change.blocked is not None and change.action is Action.NOOP:
        return f"{inline(change.address)} cannot be planned{where}"
    return f"{inline(change.address)} {will} {_choose_verb(change)}{where}"


def _choose_verb(change: Change) -> str:
    if change.adopts and change.action is Action.UPDATE:
        return "be adopted and updated in-place"
    if change.released and change.removed:
        return "be released: what is recorded of it is removed, the rest stays"
    return _WILL[change.action]


def render_impact(change: Change) -> str:
    """What is lost: the sentence, and the figures that it does not name itself."""
    if change.impact is None:
        return ""
    figures = change.impact.figures
    text = inline(change.impact.text)
    rest = (name for name in sorted(figures) if name not in change.impact.text)
    shown = ", ".join(f"{inline(name)} {_render_figure(figures[name])}" for name in rest)
    return f"{text} ({shown})" if shown else text


def _render_figure(figure: Value) -> str:
    return f"{figure:,}" if isinstance(figure, int) else render_value(figure)


def render_brief(item: PathChange) -> str:
    """One path on one line: `config.retention.ms 1000 → 2000`; of long texts what differs."""
    if not item.path:
        return "deleted" if item.after is None else "created"
    if _is_long(item):
        shown = (_render_piece(piece) for piece in compare_parts(item.before, item.after))
        return (
            f"{render_path(item.path)} "
            f"{', '.join(f'{sign} {text}'.strip() for sign, text in shown)}"
        )
    before, after = render_pair(item.before, item.after, item.sensitive)
    return f"{render_path(item.path)} {before} {ARROW} {after}"


def render_changed_names(change: Change) -> str:
    """The paths that an update touches, for one-line forms."""
    names = [render_path(item.path) for item in change.paths]
    names += [f"recorded {item.path[0]}" for item in _list_records(change)]
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more


# ── the block of attributes ─────────────────────────────────────────────────────────────


def _render_body(change: Change, words: Words) -> Iterator[Line]:
    tree = _build_tree(change)
    title = f"{inline(change.identity.kind)} {quote(change.identity.key)}"
    whole = change.after if change.action is Action.UPDATE else None
    lines = [*_render_node(tree, 1, whole), *_render_records(change)]
    symbol = change.action.symbol
    if lines:
        yield Line(0, symbol, title + " {", change.action.value)
        yield from lines
        yield Line(0, " ", "}")
    else:
        yield Line(0, symbol, title, change.action.value)
    if change.steps:
        yield Line(0, "#", "requests: " + _render_requests(change, words), "dim")


def _build_tree(change: Change) -> Tree:
    """All that is shown of a change, by attribute and key. All but a plain update show the whole
    object; the listed paths are laid over it, since they know what is sensitive."""
    tree: Tree = {}
    source = change.before if change.action is Action.DELETE else change.after
    comes, goes = change.action is not Action.CREATE, change.action is not Action.DELETE
    if change.action is not Action.UPDATE:
        for name, item in sorted((source or EMPTY).items()):
            _insert(tree, PathChange((name,), item if comes else None, item if goes else None))
    for path in sorted(change.paths, key=lambda item: len(item.path)):
        _insert(tree, path)
    return tree


def _insert(tree: Tree, item: PathChange) -> None:
    node = tree
    for name in item.path[:-1]:
        child = node.setdefault(name, {})
        if isinstance(child, PathChange):
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
    before, after = (_as_map(item.before), _as_map(item.after))
    keys = sorted(set(before) | set(after))
    return [
        PathChange((key,), before.get(key), after.get(key))
        for key in keys
        if before.get(key) != after.get(key) or item.before == item.after
    ]


def _as_map(item: Value) -> FrozenMap:
    return item if isinstance(item, FrozenMap) else EMPTY


def _render_node(tree: Tree, depth: int, whole: Value, quoted: bool = False) -> Iterator[Line]:
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
        left = _as_map(whole).get(name)
        symbol = "~" if _count_hidden(inner, left) else _choose_common_symbol(inner)
        yield Line(depth, symbol, f"{label} = {{", _STYLES.get(symbol, ""))
        yield from _render_node(inner, depth + 1, left, quoted=True)
        yield Line(depth, " ", "}")
    hidden = _count_hidden(tree, whole)
    if hidden:
        noun = "key" if quoted else "attribute"
        yield Line(depth, " ", f"# ({render_count(hidden, 'unchanged ' + noun)} hidden)", "dim")


def _count_hidden(tree: Tree, whole: Value) -> int:
    """How many entries of the whole map are set and not shown."""
    left = (item for name, item in _as_map(whole).items() if name not in tree)
    return sum(item not in (None, (), EMPTY) for item in left)


def _is_nothing(node: Tree | PathChange) -> bool:
    """True for what was not set and is not set: left-out attributes of a create."""
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
    """The common symbol of all leaves below, `~` if they differ."""
    symbols = {
        _choose_symbol(child) if isinstance(child, PathChange) else _choose_common_symbol(child)
        for child in tree.values()
    }
    return symbols.pop() if len(symbols) == 1 else "~"


def _render_leaf(label: str, item: PathChange, depth: int) -> Iterator[Line]:
    symbol = _choose_symbol(item)
    style = _STYLES.get(symbol, "")
    if _is_long(item):
        sizes = f"{len(item.before):,} {ARROW} {len(item.after):,} characters"  # type: ignore[arg-type]
        yield Line(depth, symbol, f"{label} = ({sizes}, part by part)", style)
        yield from _render_pieces(item.before, item.after, depth + 1)
        return
    before, after = render_pair(item.before, item.after, item.sensitive)
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
    if len(text) > INLINE_LIMIT and any(isinstance(side, tuple) for side in sides):
        elements = _render_elements(item, depth + 1)
        if elements:
            yield Line(depth, symbol, f"{label} = [", style)
            yield from elements
            yield Line(depth, " ", "]")
            return
    yield Line(depth, symbol, f"{label} = {text}", style)


def _render_elements(item: PathChange, depth: int) -> list[Line]:
    """A long list, one changed element a line, the others counted. Lists of lists are
    compared by position."""
    before = item.before if isinstance(item.before, tuple) else ()
    after = item.after if isinstance(item.after, tuple) else ()
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


def _is_long(item: PathChange) -> bool:
    return not item.sensitive and are_long(item.before, item.after)


def _render_pieces(before: Value, after: Value, depth: int) -> Iterator[Line]:
    for piece in compare_parts(before, after):
        sign, text = _render_piece(piece)
        yield Line(depth, sign, text, _STYLES.get(sign, "dim"))


def _render_piece(piece: Piece) -> tuple[str, str]:
    """Symbol and text of one part, or of several that stay."""
    if piece.same:
        return " ", f"# ({render_count(piece.same, 'unchanged element')} hidden)"
    return piece.sign, render_value(piece.part)


# ── bookkeeping and checks ──────────────────────────────────────────────────────────────


def _render_records(change: Change) -> Iterator[Line]:
    for item in _list_records(change):
        text = _render_record(item)
        yield Line(
            1,
            _choose_symbol(item),
            f"recorded {item.path[0]} = {text}",
            _STYLES[_choose_symbol(item)],
        )


def _list_records(change: Change) -> list[PathChange]:
    """What the change leaves in the state beside the object itself."""
    before, after = change.row_before, change.row_after
    unprotected = {before.protected, after.protected} <= {None, "no"}
    rows: tuple[tuple[str, Value, Value], ...] = (
        (
            "owners",
            _find_shown_owners(before, after, change),
            _find_shown_owners(after, before, change),
        ),
        ("protected", *((None, None) if unprotected else (before.protected, after.protected))),
        ("secret version", before.secret_version, after.secret_version),
    )
    return [PathChange((name,), old, new) for name, old, new in rows if old != new]


def _find_shown_owners(row: Ownership, other: Ownership, change: Change) -> Value:
    """The owners, unless they are just the address that is shown anyway, come or gone."""
    return None if row.owners == (change.address,) and not other.owners else row.owners or None


def _render_record(item: PathChange) -> str:
    before, after = render_pair(item.before, item.after)
    if item.before is None:
        return after
    return f"{before} {ARROW} {after if item.after is not None else NOT_SET}"


def _render_requests(change: Change, words: Words) -> str:
    tally = Counter(step.request.name for step in change.steps)
    names = (f"{inline(name)}{'' if n == 1 else f' x{n}'}" for name, n in tally.items())
    how = render_evidence([(s.request.name, s.evidence) for s in change.steps], words)
    return f"{', '.join(names)} ({how})"


def render_evidence(requests: Sequence[tuple[str, Evidence]], words: Words = NEUTRAL) -> str:
    """How one change is checked beforehand: as well as its weakest request, which is named if
    others are checked better. requests: name and evidence of each, at least one."""
    weakest = max((evidence for _, evidence in requests), key=tuple(Evidence).index)
    weak = dict.fromkeys(name for name, evidence in requests if evidence is weakest)
    checked = CHECKED[weakest].format(node=words.node)
    if all(evidence is weakest for _, evidence in requests):
        return checked
    return f"{checked}: {', '.join(map(inline, weak))} has no dry run"
