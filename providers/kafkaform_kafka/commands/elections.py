"""`alter topic NAME --elect-preferred`: the first replica of each partition leads again.

It changes what no block declares and no state records, so managed topics allow it too.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kafkaform.core.change import Change, add_findings
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Observed, Reading
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.commands import Alteration, Draft, Question

from ..inspect.cells import count
from ..kinds.leaders.resource_type import KIND
from ..rules.commands import LEADERS_ELECTED
from .drafts import refuse_missing


def elect_preferred(
    names: Sequence[str], documents: tuple[Question, ...] = (), *, other_changes: bool = False
) -> Alteration:
    """The alteration that elects the first replicas of these topics as leaders. others: other
    options are given beside it. Raises UsageError."""
    if other_changes:
        raise UsageError(
            "--elect-preferred cannot be combined with other options", "Use separate commands."
        )
    if not names:
        raise UsageError("no topic is named", "Name the topics whose leaders to elect.")
    drafts = tuple(
        Draft(KIND, name, _elect_ready, _note_election, managed=True)
        for name in dict.fromkeys(names)
    )
    needs = tuple((draft.kind, draft.key) for draft in drafts)
    return Alteration(drafts, documents, needs, refuse_missing)


def _elect_ready(attributes: FrozenMap | None, reading: Reading) -> FrozenMap | None:
    """The leaders after the election."""
    # A first replica that is not in sync cannot lead: the controller answers with error 80
    # (PREFERRED_LEADER_NOT_AVAILABLE) for its partition.
    if attributes is None:
        return None
    first, ready = _read_candidates(reading)
    leaders = {n: first[n] if n in ready else led for n, led in attributes["leaders"].items()}
    return attributes.with_items({"leaders": FrozenMap(leaders)})


def _read_candidates(reading: Reading) -> tuple[FrozenMap, Sequence[str]]:
    """The first replica of each partition, and the partitions where it can lead."""
    details = reading.details if isinstance(reading, Observed) else EMPTY
    return details.get("preferred") or EMPTY, details.get("ready") or ()


def _note_election(change: Change, reading: Reading) -> Change:
    noted = replace(
        change,
        before=_select_changing(change.before, change),
        after=_select_changing(change.after, change),
    )
    notes = _list_notes(change, *_read_candidates(reading))
    return add_findings(noted, *map(LEADERS_ELECTED.find, notes))


def _select_changing(attributes: FrozenMap | None, change: Change) -> FrozenMap | None:
    """The attributes with the leaders that change."""
    # Other leaders can change until the plan is applied, without making it stale.
    if attributes is None:
        return None
    numbers = [item.path[1] for item in change.paths]
    leaders = FrozenMap({number: attributes["leaders"][number] for number in numbers})
    return attributes.with_items({"leaders": leaders})


def _list_notes(change: Change, first: FrozenMap, ready: Sequence[str]) -> tuple[str, ...]:
    if change.before is None:
        return ()
    notes = (
        [f"preferred leaders of {count(len(change.paths), 'partition')}"] if change.paths else []
    )
    unable = [f"{number} (broker {first[number]})" for number in first if number not in ready]
    if unable:
        notes.append(
            f"left out, because the first replica is not in sync and cannot lead: partition "
            f"{', '.join(unable)}"
        )
    return tuple(notes)
