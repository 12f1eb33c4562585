"""Render findings: what rules found about a change, in the words of the rules, and who gains and
loses access by a plan, the widest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Change
from ..core.finding import POLICY, AccessRow, Breadth, Finding, Harm, Level
from .attributes import Line
from .text import Detail, Paint, inline, render_count

LISTED = 10
"""Rows, principals of a row and rights of a principal that a text names; of further ones it says
the number."""
LEAST = 3
"""Fewer principals with equal access have rows of their own."""

Rights: TypeAlias = tuple[tuple[AccessRow, ...], tuple[AccessRow, ...]]
"""Gains and losses."""
_STYLES = {
    Level.BLOCK: "blocked",
    Level.DANGER: "delete",
    Level.CAUTION: "warning",
    Level.NOTE: "warning",
}


def render_finding(finding: Finding) -> str:
    """`data loss: records older than 1 h are deleted [box-keeping-cut]`, with the id of the
    rule for `kafkaform explain rule`."""
    label = "" if finding.harm is Harm.NONE else f"{finding.harm.label}: "
    if finding.level is Level.BLOCK:
        label = "blocked: "
    return f"{'' if finding.level is Level.NOTE else label}{render_sentence(finding)}"


def render_sentence(finding: Finding) -> str:
    """The sentence of a finding, and the id of its rule. A note stands for itself."""
    accepted = ""
    if finding.accepted:
        reason = finding.waiver.text if finding.waiver else f"accepted: --accept {finding.rule}"
        accepted = f" ({inline(reason)})"
    # The sentence of a policy begins with its name.
    named = finding.level is Level.NOTE or finding.rule.startswith(POLICY)
    return f"{inline(finding.text)}{accepted}{'' if named else f' [{finding.rule}]'}"


def render_findings(findings: Iterable[Finding]) -> Iterator[Line]:
    """The lines under a change, each block with what to do."""
    for finding in findings:
        label = "note: " if finding.level is Level.NOTE else ""
        yield Line(1, "!", f"{label}{render_finding(finding)}", _STYLES[finding.level])
        if finding.level is Level.BLOCK and finding.fix:
            yield Line(1, " ", f"fix: {inline(finding.fix)}")


# ── access ──────────────────────────────────────────────────────────────────────────────


class PrincipalAccess(Struct, frozen=True):
    """What one principal, or several alike, gain and lose by a whole plan."""

    principals: tuple[str, ...]
    """Sorted; never empty."""
    gains: tuple[AccessRow, ...]
    """The widest first. Of several principals, those of the first."""
    losses: tuple[AccessRow, ...]

    @property
    def order(self) -> tuple[int, int, str]:
        """The widest gain first, then the widest loss."""
        widths = [
            min((row.breadth.rank for row in rows), default=len(Breadth))
            for rows in (self.gains, self.losses)
        ]
        return widths[0], widths[1], self.principals[0]

    @property
    def is_wide(self) -> bool:
        """True if it is about more than single objects."""
        return any(row.breadth is not Breadth.ONE for row in (*self.gains, *self.losses))


def collect_access(changes: Iterable[Change]) -> tuple[PrincipalAccess, ...]:
    """One row for each principal whose access these changes change, the widest first. Principals
    with the same gains and losses share a row."""
    sides: dict[str, tuple[list[AccessRow], list[AccessRow]]] = {}
    for change in changes:
        for side, rows in enumerate((change.gains, change.losses)):
            for row in rows:
                sides.setdefault(row.principal, ([], []))[side].append(row)
    alike: dict[Rights, list[PrincipalAccess]] = {}
    for name, (gains, losses) in sides.items():
        rights = (_join_rows(gains), _join_rows(losses))
        # What else they could do before and can do after is not shown.
        key = (_drop_names(rights[0]), _drop_names(rights[1]))
        alike.setdefault(key, []).append(PrincipalAccess((name,), *rights))
    joined = (row for rows in alike.values() for row in _join_principals(rows))
    return tuple(sorted(joined, key=lambda row: row.order))


def _drop_names(rows: Iterable[AccessRow]) -> tuple[AccessRow, ...]:
    return tuple(replace(row, principal="", before=(), after=()) for row in rows)


def _join_principals(rows: Sequence[PrincipalAccess]) -> Iterator[PrincipalAccess]:
    if len(rows) < LEAST:
        yield from rows
        return
    names = sorted(row.principals[0] for row in rows)
    yield PrincipalAccess(tuple(names), rows[0].gains, rows[0].losses)


def count_principals(rows: Iterable[PrincipalAccess]) -> int:
    return sum(len(row.principals) for row in rows)


def _join_rows(rows: Sequence[AccessRow]) -> tuple[AccessRow, ...]:
    """The rows, those of the same objects as one, the widest first."""
    joined: dict[tuple[str, ...], AccessRow] = {}
    for row in rows:
        resource = (row.resource_type, row.pattern, row.name, row.host)
        first = joined.get(resource)
        operations = dict.fromkeys((*(first.operations if first else ()), *row.operations))
        joined[resource] = replace(first or row, operations=tuple(operations))
    return tuple(sorted(joined.values(), key=lambda row: (row.breadth.rank, row.name)))


def render_access(rows: Sequence[PrincipalAccess], paint: Paint, detail: Detail) -> Iterator[str]:
    """A line for each side of each row."""
    yield paint("title", f"Access ({render_count(count_principals(rows), 'principal')})")
    limit = None if detail == "full" else LISTED
    for row in rows[:limit]:
        several = len(row.principals) > 1
        for style, symbol, verb, rights in (
            ("create", "+", "gain", row.gains),
            ("delete", "-", "lose", row.losses),
        ):
            if rights:
                names, verb = render_principals(row, limit), verb if several else f"{verb}s"
                yield f"  {paint(style, symbol)} {names} {verb} {render_rights(rights, limit)}"
    hidden_count = count_principals(rows[limit:]) if limit else 0
    if hidden_count:
        yield f"  … and {render_count(hidden_count, 'more principal')} (--detail lists them all)"


def render_principals(row: PrincipalAccess, limit: int | None = LISTED) -> str:
    """`User:app`, or `60 principals (User:a, User:b, … and 58 more)`."""
    if len(row.principals) == 1:
        return inline(row.principals[0])
    names = _cut_list([inline(name) for name in row.principals], ", ", limit)
    return f"{len(row.principals):,} principals ({names})"


def render_rights(rows: Sequence[AccessRow], limit: int | None = LISTED) -> str:
    """`Read, Write on every Box; All on Box prod*`; of many rights the first ones."""
    return _cut_list([render_row(row) for row in rows], "; ", limit)


def _cut_list(texts: Sequence[str], separator: str, limit: int | None) -> str:
    hidden_count = len(texts) - limit if limit else 0
    return separator.join(
        [*texts[:limit], *([f"… and {hidden_count:,} more"] if hidden_count > 0 else [])]
    )


def render_row(row: AccessRow) -> str:
    """`Read, Write on every Box`, `All on Box prod* from 10.0.0.1`."""
    objects = f"{row.resource_type} {row.name}{'*' if row.pattern == 'prefixed' else ''}"
    if row.breadth is Breadth.SYSTEM:
        objects = f"the {row.resource_type.lower()}"
    elif row.name == "*":
        objects = f"every {row.resource_type}"
    suffix = "" if row.host == "*" else f" from {row.host}"
    return inline(f"{', '.join(row.operations)} on {objects}{suffix}")
