"""Who gains and loses access by a plan: one row for each principal, the widest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Change
from ..core.finding import AccessRow, Breadth
from .style import Detail, Paint
from .text import inline, render_count

PRINCIPALS = 10
"""Principals that a text names; of further ones it says the number."""


class PrincipalAccess(Struct, frozen=True):
    """What one principal gains and loses by a whole plan."""

    principal: str
    gains: tuple[AccessRow, ...]
    """The widest first."""
    losses: tuple[AccessRow, ...]

    @property
    def order(self) -> tuple[int, int, str]:
        """The widest gain first, then the widest loss."""
        widths = [
            min((row.breadth.rank for row in rows), default=len(Breadth))
            for rows in (self.gains, self.losses)
        ]
        return widths[0], widths[1], self.principal


def collect_access(changes: Iterable[Change]) -> tuple[PrincipalAccess, ...]:
    """One row for each principal whose access these changes change, the widest first."""
    sides: dict[str, tuple[list[AccessRow], list[AccessRow]]] = {}
    for change in changes:
        for place, rows in enumerate((change.gains, change.losses)):
            for row in rows:
                sides.setdefault(row.principal, ([], []))[place].append(row)
    principals = (
        PrincipalAccess(name, _join_rows(gains), _join_rows(losses))
        for name, (gains, losses) in sides.items()
    )
    return tuple(sorted(principals, key=lambda row: row.order))


def _join_rows(rows: Sequence[AccessRow]) -> tuple[AccessRow, ...]:
    """The rows, those of the same objects as one, the widest first."""
    joined: dict[tuple[str, ...], AccessRow] = {}
    for row in rows:
        place = (row.resource_type, row.pattern, row.name, row.host)
        first = joined.get(place)
        operations = dict.fromkeys((*(first.operations if first else ()), *row.operations))
        joined[place] = replace(first or row, operations=tuple(operations))
    return tuple(sorted(joined.values(), key=lambda row: (row.breadth.rank, row.name)))


def render_access(
    principals: Sequence[PrincipalAccess], paint: Paint, detail: Detail
) -> Iterator[str]:
    """A line for each side of each principal."""
    yield paint("title", f"Access ({render_count(len(principals), 'principal')})")
    shown = principals if detail == "full" else principals[:PRINCIPALS]
    for principal in shown:
        for style, symbol, verb, rows in (
            ("create", "+", "gains", principal.gains),
            ("delete", "-", "loses", principal.losses),
        ):
            if rows:
                text = "; ".join(map(render_row, rows))
                yield f"  {paint(style, symbol)} {inline(principal.principal)} {verb} {text}"
    if len(shown) < len(principals):
        yield f"  … and {len(principals) - len(shown):,} more principals (--detail lists them all)"


def render_row(row: AccessRow) -> str:
    """`Read, Write on every Topic`, `All on Topic orders* from 10.0.0.1`."""
    objects = f"{row.resource_type} {row.name}{'*' if row.pattern == 'prefixed' else ''}"
    if row.breadth is Breadth.SYSTEM:
        objects = f"the {row.resource_type.lower()}"
    elif row.name == "*":
        objects = f"every {row.resource_type}"
    where = "" if row.host == "*" else f" from {row.host}"
    return inline(f"{', '.join(row.operations)} on {objects}{where}")
