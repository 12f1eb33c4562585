"""Render the outputs that a plan changes: on one line, or path by path if that is too long."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.resource import Output
from ..core.text.display import cell_width
from ..core.value import FrozenMap, Value
from ..plan.model import OutputChange
from .attributes import STYLES, Line, compare_parts, render_piece
from .terraform import choose_output_action
from .text import ARROW, NOT_SET, SENSITIVE, inline, quote, render_spread, render_value


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
