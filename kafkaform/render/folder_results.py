"""What became of many folders after an apply: what failed comes first, then what was not tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..core.change import Action
from .report import ApplyReport, count_applied
from .terraform import Data
from .text import Paint, inline, render_count, wrap_lines


class FolderEnd(Struct, frozen=True):
    """What became of one folder."""

    path: str
    owner: str = ""
    report: ApplyReport | None = None
    """How its requests ended; None if nothing was sent."""
    fault: str = ""
    """Why something was not applied; empty if everything was."""
    skipped: str = ""
    """Why it was not tried; empty if it was."""
    code: int = 0
    """The exit code of this folder alone."""

    @property
    def numbers(self) -> tuple[int, int, int]:
        """How many objects were created, changed and destroyed."""
        counts = count_applied(() if self.report is None else self.report.rows)
        return counts[Action.CREATE], counts[Action.UPDATE], counts[Action.DELETE]

    @property
    def is_idle(self) -> bool:
        """True if there was nothing to send."""
        return self.report is None and not self.fault and not self.skipped


def _sum_numbers(ends: Sequence[FolderEnd]) -> tuple[int, int, int]:
    added, changed, destroyed = zip(*(end.numbers for end in ends), strict=True)
    return sum(added), sum(changed), sum(destroyed)


def render_folder_ends(ends: Sequence[FolderEnd], *, colour: bool = False, width: int = 100) -> str:
    """The summary for people, with a final newline."""
    paint = Paint(colour)
    faults = [*_list_faults(ends, paint)]
    counts = [*render_end_counts(ends)]
    return "\n".join(wrap_lines((*faults, *([""] if faults else []), *counts), width)) + "\n"


def _list_faults(ends: Sequence[FolderEnd], paint: Paint) -> Iterator[str]:
    failed = [end for end in ends if end.fault]
    if failed:
        folders = render_count(len(ends), "folder")
        yield paint("error", f"{len(failed):,} of {folders} failed")
    for end in failed:
        yield paint("error", f"  ! {inline(end.path)}: {inline(end.fault)}")
    for end in ends:
        if end.skipped:
            yield f"  {inline(end.path)} was skipped: {inline(end.skipped)}"


def render_end_counts(ends: Sequence[FolderEnd]) -> Iterator[str]:
    """How many folders had nothing to send, and the sums of the others."""
    if not ends:
        yield "No folder has changed, so nothing was sent."
    idle = sum(end.is_idle for end in ends)
    if idle:
        yield f"{render_count(idle, 'folder')} had nothing to send."
    sent = [end for end in ends if end.report is not None]
    if sent:
        added, changed, destroyed = _sum_numbers(sent)
        folders = render_count(len(sent), "folder")
        yield (
            f"Applied in {folders}: {added:,} added, {changed:,} changed, {destroyed:,} destroyed."
        )
    elif idle < len(ends):
        yield "Nothing was sent."


def make_ends_data(name: str, ends: Sequence[FolderEnd]) -> Data:
    """The summary for programs. name: of the repository."""
    added, changed, destroyed = _sum_numbers(ends) if ends else (0, 0, 0)
    return {
        "name": name,
        "operation": "apply",
        "folders": [_make_end_data(end) for end in ends],
        "failed": sum(bool(end.fault) for end in ends),
        "skipped": sum(bool(end.skipped) for end in ends),
        "add": added,
        "change": changed,
        "remove": destroyed,
    }


def _make_end_data(end: FolderEnd) -> Data:
    added, changed, destroyed = end.numbers
    return {
        "folder": end.path,
        "owner": end.owner,
        "add": added,
        "change": changed,
        "remove": destroyed,
        "run": "" if end.report is None else end.report.run,
        "error": end.fault,
        "skipped": end.skipped,
        "exit_code": end.code,
    }
