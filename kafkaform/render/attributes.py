"""Render the attributes of a change as a block of lines: what is set, before and after; and the
outputs that a plan changes.

Long texts and lists are compared part by part, so that every difference is visible. An output is on
one line, or path by path if that is too long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Action, Change, Path, PathChange
from ..core.resource import Output
from ..core.text import NO_LIMIT, cell_width, render_quantity
from ..core.value import EMPTY, FrozenMap, Value
from ..core.words import Words
from ..plan.model import OutputChange
from .text import (
    ARROW,
    NOT_SET,
    SENSITIVE,
    inline,
    mask_value,
    pad_text,
    quote,
    render_count,
    render_spread,
    render_value,
)

LONG = 240
"""Characters; two texts are compared part by part if one of them has more."""
MANY = 500
"""Parts; with more of them, everything between the first and the last difference counts as
different."""

ALIKE = 0.5
"""The share of words that an edited part has in common with the one that it replaces."""

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^,;\n]*[,;\n]|[^,;\n]+")
Sided = TypeVar("Sided")

INLINE_LIMIT = 100
"""Characters; a list that takes more is shown element by element."""
_WITHOUT_PATHS = (Action.ADOPT, Action.IMPORT)
"""Actions that change no path, so that nothing says the units of what they show."""
DEFAULT = " (default)"
"""Stands behind a value that is in effect although nothing sets it."""
STYLES = {"+": "create", "~": "update", "-": "delete"}
"""Symbol -> a name in `style.SGR`."""
T = TypeVar("T")
AttributeTree: TypeAlias = "dict[str, AttributeTree | PathChange]"


class Piece(Struct, frozen=True):
    """One removed or added part, or a run of unchanged parts."""

    sign: str
    """`-` or `+` for one part, a space for unchanged ones."""
    value: Value = None
    unchanged: int = 0
    """The number of unchanged parts."""


def split_text(text: str) -> list[str]:
    """The text cut after each comma, semicolon and line end. Joined, the parts are the text."""
    return _PART.findall(text)


def are_long(before: Value, after: Value) -> bool:
    """True for two texts if one of them is too long to be read beside the other."""
    both = isinstance(before, str) and isinstance(after, str)
    return both and max(len(before), len(after)) > LONG  # type: ignore[arg-type]


def compare_parts(before: Value, after: Value) -> Iterator[Piece]:
    """The parts of two texts or two lists that differ, between runs of equal parts."""
    old, new = (
        split_text(s) if isinstance(s, str) else list(s if isinstance(s, tuple) else ())
        for s in (before, after)
    )
    # Equal ends are cut off first. Most changes of a long list leave little in between.
    head = _count_shared(old, new)
    tail = _count_shared(old[head:][::-1], new[head:][::-1])
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    if head:
        yield Piece(" ", unchanged=head)
    yield from _compare_middle(gone, come)
    if tail:
        yield Piece(" ", unchanged=tail)


def _compare_middle(gone: Sequence[Value], come: Sequence[Value]) -> Iterator[Piece]:
    blocks: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(gone), 0, len(come))]
    # SequenceMatcher takes time in proportion to the product of both lengths, or worse.
    if max(len(gone), len(come)) <= MANY:
        blocks = SequenceMatcher(None, gone, come).get_opcodes()
    for kind, start, end, first, last in blocks:
        if kind == "equal":
            yield Piece(" ", unchanged=end - start)
            continue
        yield from _order_replaced(gone[start:end], come[first:last])


def _order_replaced(gone: Sequence[Value], come: Sequence[Value]) -> Iterator[Piece]:
    """Parts that replace others: what is new or gone first, so that it does not hide among parts
    that were only edited, then each edited part with the one that it replaces."""
    pairs = _pair_edits(gone, come) if 1 < len(gone) + len(come) - 1 <= MANY else {}
    replaced = set(pairs.values())
    yield from (Piece("-", element) for index, element in enumerate(gone) if index not in replaced)
    yield from (Piece("+", element) for index, element in enumerate(come) if index not in pairs)
    for index, old in pairs.items():
        yield from (Piece("-", gone[old]), Piece("+", come[index]))


def _pair_edits(gone: Sequence[Value], come: Sequence[Value]) -> dict[int, int]:
    """Place of a new part -> place of the old part that it edits: the one with most words in
    common, if that is at least half of the words of both."""
    words = [[set(_WORD.findall(str(element))) for element in side] for side in (gone, come)]
    scores = [
        (len(old & new) / len(old | new), -abs(index - at), index, at)
        for at, old in enumerate(words[0])
        for index, new in enumerate(words[1])
        if old & new
    ]
    pairs: dict[int, int] = {}
    paired: set[int] = set()
    for score, _, index, at in sorted(scores, reverse=True):
        if score < ALIKE:
            break
        if index not in pairs and at not in paired:
            pairs[index] = at
            paired.add(at)
    return dict(sorted(pairs.items()))


def _count_shared(first: Sequence[Sided], second: Sequence[Sided]) -> int:
    """The number of equal elements at the start of both."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


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


def build_tree(change: Change, words: Words) -> AttributeTree:
    """The values to show, nested by attribute and key. words: of the change's provider."""
    tree: AttributeTree = {}
    source = change.before if change.action is Action.DELETE else change.after
    comes, goes = change.action is not Action.CREATE, change.action is not Action.DELETE
    if change.action is not Action.UPDATE:
        for name, item in sorted((source or EMPTY).items()):
            _insert(tree, PathChange((name,), item if comes else None, item if goes else None))
    # The changed paths go over the whole object because only they say which values are sensitive.
    # Shorter paths first: a longer one refines the value that a shorter one put there.
    for path in sorted(change.paths, key=lambda item: len(item.path)):
        _insert(tree, path)
    kind = words.kinds.get(change.identity.kind)
    if change.action in _WITHOUT_PATHS and kind is not None and kind.unit is not None:
        return _add_units(tree, (), kind.unit)
    return tree


def list_text_lines(change: Change, words: Words) -> tuple[str, ...]:
    """The lines that stand for the whole documents of an object (`KindWords.texts`): what they are,
    and how an update changes them."""
    before, after = change.before, change.after
    if change.action is not Action.UPDATE:
        before, after = (before, None) if change.action is Action.DELETE else (None, after)
    return words.describe_texts(change.identity.kind, before, after)


def drop_texts(values: Mapping[str, T], change: Change, words: Words) -> dict[str, T]:
    """The values by attribute without the documents for which lines stand."""
    lines = list_text_lines(change, words)
    texts = words.kinds[change.identity.kind].texts if lines else ()
    return {name: value for name, value in values.items() if name not in texts}


def render_texts(change: Change, words: Words) -> Iterator[Line]:
    """The lines that stand for documents. A line that begins with the symbol of an added, removed
    or changed part has its colour."""
    for number, text in enumerate(list_text_lines(change, words)):
        label = f"{', '.join(words.kinds[change.identity.kind].texts)}: " if number == 0 else ""
        symbol = change.action.symbol if number == 0 else " "
        if text[:2].rstrip() in STYLES and text[1:2] == " ":
            symbol, text = text[0], text[2:]
        yield Line(1 if label else 2, symbol, f"{label}{inline(text)}", STYLES.get(symbol, ""))


def _add_units(
    tree: AttributeTree, position: Path, find_unit: Callable[[Path], str]
) -> AttributeTree:
    tree_with_units: AttributeTree = {}
    for name, child in tree.items():
        path = (*position, name)
        if isinstance(child, PathChange):
            tree_with_units[name] = replace(child, unit=child.unit or find_unit(path))
        else:
            tree_with_units[name] = _add_units(child, path, find_unit)
    return tree_with_units


def _insert(tree: AttributeTree, item: PathChange) -> None:
    node = tree
    for name in item.path[:-1]:
        child = node.setdefault(name, {})
        if isinstance(child, PathChange):
            # A value stands where this path needs a map (text before, map after): shown beside it.
            tree[".".join(item.path)] = item
            return
        node = child
    name = item.path[-1] if item.path else "object"
    items = _split_map(item)
    if items is None:
        node[name] = item
    else:
        child = {}
        node[name] = child
        for element in items:
            _insert(child, element)


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


def render_node(
    tree: AttributeTree, depth: int, whole: FrozenMap, quoted: bool = False
) -> Iterator[Line]:
    """The entries of an object or a map. whole: all its entries, those not in `tree` are counted;
    quoted: keys of a map, as opposed to attributes."""
    leaves: list[tuple[str, PathChange]] = []
    maps: list[tuple[str, str, AttributeTree]] = []
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
        unchanged = _get_map(whole.get(name))
        # A map with unchanged entries is changed as a whole, even if all that is shown is new.
        symbol = "~" if _count_hidden(inner, unchanged) else _choose_common_symbol(inner)
        yield Line(depth, symbol, f"{label} = {{", STYLES.get(symbol, ""))
        yield from render_node(inner, depth + 1, unchanged, quoted=True)
        yield Line(depth, " ", "}")
    hidden = _count_hidden(tree, whole) if whole else 0
    if hidden:
        noun = "key" if quoted else "attribute"
        yield Line(depth, " ", f"# ({render_count(hidden, 'unchanged ' + noun)} hidden)", "dim")


def list_leaves(tree: AttributeTree) -> Iterator[tuple[str, PathChange]]:
    """Each value that is set, with the name of its attribute, or of its key in a map."""
    for name, child in tree.items():
        if _is_nothing(child):
            continue
        if isinstance(child, PathChange):
            yield inline(name), child
        else:
            yield from list_leaves(child)


def _count_hidden(tree: AttributeTree, whole: FrozenMap) -> int:
    """The number of entries of the whole map that are set but not shown."""
    hidden = (item for name, item in whole.items() if name not in tree)
    return sum(item not in (None, (), EMPTY) for item in hidden)


def _is_nothing(node: AttributeTree | PathChange) -> bool:
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


def _choose_common_symbol(tree: AttributeTree) -> str:
    """The symbol that all leaves below share, or `~` if they differ."""
    symbols = {
        _choose_symbol(child) if isinstance(child, PathChange) else _choose_common_symbol(child)
        for child in tree.values()
    }
    return symbols.pop() if len(symbols) == 1 else "~"


def _render_leaf(label: str, item: PathChange, depth: int) -> Iterator[Line]:
    symbol = _choose_symbol(item)
    style = STYLES.get(symbol, "")
    if not item.sensitive and are_long(item.before, item.after):
        sizes = f"{len(item.before):,} {ARROW} {len(item.after):,} characters"  # type: ignore[arg-type]
        yield Line(depth, symbol, f"{label} = ({sizes}, part by part)", style)
        yield from _render_pieces(item.before, item.after, depth + 1)
        return
    text = render_sides(item)
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


def render_sides(item: PathChange, *, whole: bool = False) -> str:
    """The values of one path: `30 d → 1 s (2592000000 → 1000)`, of a new one `7 d (604800000)`.

    whole: always both sides, for a line without a symbol.
    """
    symbol = "~" if whole else _choose_symbol(item)
    before, after = _list_effective_sides(item)
    if symbol == " " or (symbol == "+" and before is None):
        text = mask_value(after, item.sensitive, item.unit)
        return text if item.effective is None else f"{text}  # the default"
    if symbol == "-" and after is None:
        return mask_value(before, item.sensitive, item.unit)
    # What is in effect because nothing sets it is marked.
    marks = ["" if side is None else DEFAULT for side in (item.effective_before, item.effective)]
    if None not in (before, after) and not item.sensitive:
        amounts = _render_amounts((before, after), item.unit, marks)
        if amounts:
            return amounts
    sides = (mask_value(side, item.sensitive, item.unit) for side in (before, after))
    return f" {ARROW} ".join(f"{side}{mark}" for side, mark in zip(sides, marks, strict=True))


def _list_effective_sides(item: PathChange) -> tuple[Value, Value]:
    """What is in effect before and after the change; None where nobody knows."""
    before = item.before if item.effective_before is None else item.effective_before
    return before, item.after if item.effective is None else item.effective


def _render_amounts(sides: tuple[Value, Value], unit: str, marks: Sequence[str]) -> str:
    """`7 d (default) → 1 h (604800000 → 3600000)`; empty for values without an amount."""
    quantities = [render_quantity(side, unit) for side in sides]
    if not any(quantities):
        return ""
    # A value that has no short name keeps its unit, so that both sides can be compared.
    amounts = [text or f"{side} {unit}" for text, side in zip(quantities, sides, strict=True)]
    pair = f" {ARROW} ".join(f"{a}{mark}" for a, mark in zip(amounts, marks, strict=True))
    # Nobody has to type what is in effect without a limit.
    typed = [
        (f"{side}", amount)
        for side, amount, mark in zip(sides, amounts, marks, strict=True)
        if not (mark and amount == NO_LIMIT)
    ]
    if all(side == amount.partition(" ")[0] for side, amount in typed):
        return pair
    return f"{pair} ({f' {ARROW} '.join(side for side, _ in typed)})"


def _render_elements(item: PathChange, depth: int) -> list[Line]:
    """The changed elements of a long list, one per line, and the number of the others."""
    before = item.before if isinstance(item.before, tuple) else ()
    after = item.after if isinstance(item.after, tuple) else ()
    # In a list of lists, such as an assignment, the position is part of the meaning.
    if not any(isinstance(element, tuple) for element in (*before, *after)):
        return list(_render_pieces(before, after, depth))
    lines, by_position = _compare_by_position(before, after, depth)
    if lines and by_position:
        lines.append(
            Line(depth, " ", f"# ({render_count(by_position, 'unchanged element')} hidden)", "dim")
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
        sign, text = render_piece(piece)
        yield Line(depth, sign, text, STYLES.get(sign, "dim"))


def render_piece(piece: Piece) -> tuple[str, str]:
    """Symbol and text of a changed part, or of a run of unchanged ones."""
    if piece.unchanged:
        return " ", f"# ({render_count(piece.unchanged, 'unchanged element')} hidden)"
    return piece.sign, render_value(piece.value)


def list_output_lines(change: OutputChange, width: int) -> Iterator[Line]:
    """The lines of one output. width: of a line, in columns."""
    line, style = render_output_change(change), choose_output_action(change)
    symbol, _, text = line.partition(" ")
    if cell_width(line) <= width:
        yield Line(0, symbol, text, style)
        return
    name = text.partition(" = ")[0]
    before, after = (_get_collection(side) for side in (change.before, change.after))
    if before is not None and after is not None:
        lines = list(_compare_values("", before, after))
        # None differ if only the order of a list changed; then both are shown.
        if lines:
            yield Line(0, symbol, name, style)
            yield from lines
            return
    yield from _list_sides(name, change, symbol, style, width - 2)


def render_output_change(change: OutputChange) -> str:
    """`~ names = ["a"] → ["a", "b"]`, sensitive values masked."""
    output = change.after or change.before
    name = inline(output.name) if output is not None else ""
    before, after = _render_output(change.before), _render_output(change.after)
    if change.before is None:
        return f"+ {name} = {after}"
    return f"{'-' if change.after is None else '~'} {name} = {before} {ARROW} {after}"


def _render_output(output: Output | None) -> str:
    if output is None:
        return NOT_SET
    if output.sensitive:
        return SENSITIVE
    return "(known after apply)" if output.deferred else render_value(output.value)


def _get_collection(output: Output | None) -> tuple[Value, ...] | FrozenMap | None:
    """The map or list of an output that may be shown."""
    if output is None or output.sensitive or output.deferred:
        return None
    return output.value if isinstance(output.value, tuple | FrozenMap) else None


def _list_sides(
    name: str, change: OutputChange, symbol: str, style: str, width: int
) -> Iterator[Line]:
    """Both values whole, each collection spread over several lines."""
    sides = [side for side in (change.before, change.after) if side is not None]
    for number, side in enumerate(sides):
        visible = not (side.sensitive or side.deferred)
        first, *lines = render_spread(side.value, width) if visible else (_render_output(side),)
        if number:
            yield Line(0, " ", f"{ARROW} {first}")
        else:
            yield Line(0, symbol, f"{name} = {first}", style)
        yield from (Line(0, " ", line) for line in lines)
    if change.after is None:
        yield Line(0, " ", f"{ARROW} {NOT_SET}")


def _compare_values(path: str, before: Value, after: Value) -> Iterator[Line]:
    """The paths below `path` that differ, such as `eu["a b"].size`."""
    if before == after:
        return
    if isinstance(before, FrozenMap) and isinstance(after, FrozenMap):
        for key in sorted({*before, *after}):
            step = f".{key}" if key.isidentifier() else f"[{quote(key)}]"
            yield from _compare_sides(f"{path}{step}", key, before, after)
    elif isinstance(before, tuple) and isinstance(after, tuple):
        yield from _compare_lists(path, before, after)
    else:
        yield _make_line("~", path, f"{render_value(before)} {ARROW} {render_value(after)}")


def _compare_sides(path: str, key: str, before: FrozenMap, after: FrozenMap) -> Iterator[Line]:
    """One key of two maps. A null is a value, so a key is missing only if the map lacks it."""
    if key not in before:
        yield _make_line("+", path, render_value(after[key]))
    elif key not in after:
        yield _make_line("-", path, render_value(before[key]))
    else:
        yield from _compare_values(path, before[key], after[key])


def _compare_lists(
    path: str, before: tuple[Value, ...], after: tuple[Value, ...]
) -> Iterator[Line]:
    # In lists of one length the position is the identity; in others elements came or went.
    if len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _compare_values(f"{path}[{index}]", old, new)
        return
    prefix = f"{path.removeprefix('.')}: " if path else ""
    for piece in compare_parts(before, after):
        sign, text = render_piece(piece)
        yield Line(1, sign, f"{prefix}{text}", STYLES.get(sign, "dim"))


def _make_line(symbol: str, path: str, text: str) -> Line:
    return Line(1, symbol, f"{path.removeprefix('.')} = {text}", STYLES[symbol])


def choose_output_action(change: OutputChange) -> str:
    """Terraform's word for what happens to the output."""
    if change.before is None:
        return "create"
    return "delete" if change.after is None else "update"
