"""What a provider's review makes of the changes of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Blocker, BlockerKind, Review
from kafkaform.core.resource import Depth, Facts, Identity, Sweep
from kafkaform.plan.observe import Look
from kafkaform.plan.review import review_changes

HERE = Identity("kafka", "kafka_topic", "a")
HARD = Blocker(BlockerKind.CONFLICT, "it collides")
SOFT = Blocker(BlockerKind.GUARD, "it may hurt", "look", "pain")
OTHER = Blocker(BlockerKind.GUARD, "it may rain", "look", "rain")


@dataclass
class Judge:
    """A provider that always gives the same review."""

    found: Review

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return {}

    def review(
        self, changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts
    ) -> Review:
        return self.found


class Nowhere:
    def collect_sweeps(self, instance: str, needs: Mapping[str, Depth]) -> Mapping[str, Sweep]:
        return {}


def judged(found: Review, *accepted: str, blocked: Blocker | None = None) -> Change:
    """One change after its review."""
    change = Change(HERE, "kafka_topic.a", Action.DELETE, notes=("old",), blocked=blocked)
    providers: Any = {"kafka": Judge(found)}
    facts = {"kafka": Facts("c")}
    (after,), _ = review_changes([change], providers, cast(Look, Nowhere()), facts, accepted)
    return after


@pytest.mark.parametrize(
    ("accepted", "blocked"),
    [
        ((), SOFT),
        (("rain",), SOFT),
        (("pain",), OTHER),
        (("pain", "rain"), None),
    ],
)
def test_each_waiver_lifts_its_own_block(
    accepted: tuple[str, ...], blocked: Blocker | None
) -> None:
    """A change stays blocked until everything that blocks it is accepted."""
    assert judged(Review(unless={HERE: (SOFT, OTHER)}), *accepted).blocked == blocked


def test_what_was_accepted_stays_in_sight() -> None:
    """The reason of a lifted block is a note, with the flag that lifted it."""
    found = judged(Review(unless={HERE: (SOFT,)}), "pain")
    assert found.notes == ("old", "it may hurt (accepted: --accept-pain)")


def test_no_waiver_lifts_other_blocks() -> None:
    """Neither what the review blocks outright, nor what was blocked before."""
    both = Review(blocks={HERE: HARD}, unless={HERE: (SOFT,)})
    assert judged(both, "pain").blocked == HARD
    assert judged(both, "pain", blocked=OTHER).blocked == OTHER


def test_notes_and_losses_are_the_changes_own() -> None:
    """What a review tells of a change becomes part of it, and of nothing else."""
    found = judged(Review(notes={HERE: ("new",)}, losses={HERE: ("x loses y",)}))
    assert (found.notes, found.losses, found.blocked) == (("old", "new"), ("x loses y",), None)
