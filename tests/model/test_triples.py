"""No delete of what is not in the state, and no replacement of anything."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action
from kafkaform.workflow import applying

from .triples import judged

FIRST, TRIPLES = 100, 500
LATER = pytest.param(range(FIRST, TRIPLES), marks=pytest.mark.slow("plays hundreds of triples"))


@pytest.mark.parametrize("seeds", [range(FIRST), LATER], ids=repr)
def test_nothing_is_deleted_that_is_not_ours(seeds: range) -> None:
    """Of random states, configurations and clusters: plans delete rows only, and applies only
    what the log proves; some of both happens."""
    verdicts = [judged(seed) for seed in seeds]
    assert [text for verdict in verdicts for text in verdict.wrong] == []
    assert sum(verdict.planned for verdict in verdicts) > len(seeds) / 10
    assert sum(verdict.gone for verdict in verdicts) >= len(seeds) / 25


def test_a_delete_without_proof_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard in front of deletes, the same triples show deletes without a proof."""
    monkeypatch.setattr(applying, "refuse_unproven_removals", lambda *_: None)
    assert any("proves" in text for seed in range(100) for text in judged(seed).wrong)


def test_there_is_no_replacement() -> None:
    """The actions are these eight: none deletes an object to make it again."""
    assert {action.value for action in Action} == {
        *("create", "update", "delete", "adopt", "forget", "import", "refresh", "noop")
    }
