"""Mend a forked log: two runs wrote to it at the same time, and it becomes one chain again.

Both runs went on from the same record, so what one of them wrote does not follow the line before
it. No byte of it is wrong, and all of it happened. The branch that the state follows from stays as
it is; the records of the other branches are appended to it, sealed anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.value import FrozenMap
from .chain import ADVICE, seal_record
from .event import Line, Record, RecordKind, digest_line, match_last_members
from .journal import make_fork_body
from .sink import Torn


class Fork(Struct, frozen=True):
    """The branches of a forked log."""

    head: Head
    """The end of the branch that stays."""
    begin: int
    """The first number that two records have."""
    stays: tuple[bool, ...]
    """For each line that was read, in order: it belongs to the branch that stays."""
    start: Head = GENESIS
    """The record that the first of these lines follows."""


def find_fork(
    lines: Iterable[Line], source: str, anchor: Head | None = None, start: Head = GENESIS
) -> Fork | None:
    """The branches of a log, None if it has only one.

    anchor: the state's, which decides what branch stays; of several such branches, and without an
    anchor, the longest one stays; start: the record that the first line follows. Raises
    StorageError if something else is wrong with the log: a record that was changed, or one that
    follows no other.
    """
    heads: list[Head] = []
    parents: list[int] = []
    positions = {start: -1}
    for line in lines:
        head, prev = _parse_heads(line, source, len(heads))
        if prev not in positions or head in positions:
            problem = f"record {head.seq} (line {len(heads) + 1}) follows no other record"
            raise StorageError(f"{source}: {problem}", ADVICE)
        parents.append(positions[prev])
        positions[head] = len(heads)
        heads.append(head)
    ends = set(range(len(heads))) - set(parents)
    paths = [_find_branch(end, parents) for end in sorted(ends)]
    if anchor is not None and anchor.seq:
        paths = [path for path in paths if positions.get(anchor) in path]
        if not paths:
            missing = f"record {anchor.seq}, which the state follows from, is not in it"
            raise StorageError(f"{source}: {missing}", ADVICE)
    if len(ends) < 2:
        return None
    path = max(paths, key=len)
    stays = tuple(position in path for position in range(len(heads)))
    begin = heads[stays.index(False)].seq
    return Fork(heads[max(path)], begin, stays, start)


def rejoin_branches(
    fork: Fork,
    plans: Sequence[Record],
    records: Sequence[Record],
    torn: Torn,
    *,
    time: str,
    run: str,
    actor: str,
) -> Iterator[Record]:
    """The records to append: one that describes the fork, then those of the other branches.

    plans: records of the branch that stays with plans of runs in the others; they are repeated,
    because a reader has forgotten them by then. records: the records of the other branches, in the
    order of the log; torn: where the log as it was is kept; run, actor: who mends it.
    """
    lineage = records[0].body.get("lineage")
    body = make_fork_body(torn, len(records)).with_items({"lineage": lineage})
    first = seal_record(
        fork.head, time=time, run=run, actor=actor, kind=str(RecordKind.RECOVER), body=body
    )
    yield first
    head, numbers = Head(first.seq, first.hash), dict[int, int]()
    for old in (*plans, *records):
        # Who wrote it and when must stay visible: `forked` says what the record was before. A
        # record that others name by its number is named by the new one.
        was = FrozenMap(seq=old.seq, time=old.time, hash=old.hash)
        body = _renumber_references(old.body, numbers).with_items({"forked": was})
        new = seal_record(head, time=time, run=old.run, actor=old.actor, kind=old.kind, body=body)
        yield new
        head = Head(new.seq, new.hash)
        numbers |= {} if old in plans else {old.seq: new.seq}


def _parse_heads(line: Line, source: str, position: int) -> tuple[Head, Head]:
    """The head that a line makes, and the one before it. Raises StorageError."""
    match = match_last_members(line)
    if match is None or digest_line(line, match) != match["hash"]:
        raise StorageError(f"{source}: line {position + 1} was changed or overwritten", ADVICE)
    seq = int(match["seq"])
    return Head(seq, match["hash"].decode()), Head(seq - 1, match["prev"].decode())


def _find_branch(end: int, parents: Sequence[int]) -> set[int]:
    """The lines of a branch, from its end to the first record."""
    path = set()
    while end >= 0:
        path.add(end)
        end = parents[end]
    return path


def _renumber_references(body: FrozenMap, numbers: dict[int, int]) -> FrozenMap:
    if "discharges" in body:
        return body.with_items({"discharges": numbers.get(body["discharges"], body["discharges"])})
    rows = [item for item in body.get("objects") or () if isinstance(item, FrozenMap)]
    if not any(item.get("row") for item in rows):
        return body
    return body.with_items({"objects": tuple(_renumber_origin(item, numbers) for item in rows)})


def _renumber_origin(item: FrozenMap, numbers: dict[int, int]) -> FrozenMap:
    row = item.get("row")
    if not isinstance(row, FrozenMap) or "origin" not in row:
        return item
    origin = numbers.get(row["origin"], row["origin"])
    return item.with_items({"row": row.with_items({"origin": origin})})
