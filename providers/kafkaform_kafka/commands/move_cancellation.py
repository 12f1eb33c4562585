"""`alter topic NAME --cancel-move`: stop a move and leave replicas where they are.

Stopping is a move to where the replicas are, so it is planned, shown, approved, logged and
recovered like any other change. Managed topics allow it: the declaration stays, and the next plan
shows the difference again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Change, add_findings
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Identity, Observed, Reading
from kafkaform.core.text.display import inline
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Alteration, Draft, Question

from ..kinds.topic.resource_type import KIND
from ..rules.commands import MOVE_STOPPED
from .drafts import refuse_missing

STOPPED = "the move that runs is stopped; its replicas stay where they are"


def cancel_moves(
    names: Sequence[str], documents: tuple[Question, ...], *, other_changes: bool
) -> Alteration:
    """The alteration that stops the moves of these topics. others: other options are given beside
    it. Raises UsageError."""
    if other_changes:
        raise UsageError(
            "--cancel-move cannot be combined with other options", "Use separate commands."
        )
    if not names:
        raise UsageError("no topic is named", "Name the topics whose moves to stop.")
    drafts = tuple(
        Draft(KIND, name, _stay, _note_stop, address=f"{KIND}.{name}", managed=True)
        for name in dict.fromkeys(names)
    )
    needs = tuple((draft.kind, draft.key) for draft in drafts)
    return Alteration(drafts, documents, needs, _refuse_still)


def _refuse_still(readings: Mapping[Identity, Reading]) -> None:
    """Raise UsageError for a topic that is not there, or of which no move runs."""
    refuse_missing(readings)
    # The controller has no dry run for this (KIP-455): it would answer with error 85 for each
    # partition that does not move, after the approval.
    for identity, reading in readings.items():
        if isinstance(reading, Observed) and reading.moving is None:
            raise UsageError(
                f'no move of the topic "{inline(identity.key)}" runs',
                "`kafkaform plan` shows the moves that run.",
            )


def _stay(attributes: FrozenMap | None, reading: Reading) -> FrozenMap | None:
    """The attributes with the replicas where they are, instead of where they move."""
    if attributes is None or not isinstance(reading, Observed):
        return attributes
    names = (reading.moving or {}).keys()
    return attributes.with_items({name: reading.attributes[name] for name in names})


def _note_stop(change: Change, _: Reading) -> Change:
    return add_findings(change, MOVE_STOPPED.find(STOPPED))
