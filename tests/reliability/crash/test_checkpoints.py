"""An apply that dies, or gets no answer, while it stores a checkpoint leaves nothing that a later
one believes wrongly; `python -m tests.long checkpoints` tries every request."""

from __future__ import annotations

from pathlib import Path

import pytest

from .struck_checkpoints import WAYS, Blow, strike_apply

SEAM = ("checkpoints", "log/checkpoints")
NONE = 10_000
"""The number of a request that is never made."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["local", "remote"])
def test_a_blow_at_each_request_about_checkpoints(tmp_path: Path, kind: str, way: str) -> None:
    """The process ends before or after it, it is refused, or its answer is lost: the next apply
    goes on, and what it reads from a checkpoint is what the log says. The append that follows is
    struck, too."""
    calm = strike_apply(tmp_path / "calm", kind, [Blow(NONE, way)])
    assert calm.faults == []
    numbers = [n for n, text in enumerate(calm.requests, 1) if text.split()[1].startswith(SEAM)]
    assert {calm.requests[n - 1].split()[0] for n in numbers} >= {
        "names",
        "read",
        "create",
        "delete",
    }
    if kind == "remote":
        stored = next(n for n in numbers if calm.requests[n - 1].startswith("create"))
        appends = enumerate(calm.requests[stored:], stored + 1)
        numbers.append(next(n for n, text in appends if text.startswith("create")))
    for number in numbers:
        struck = strike_apply(tmp_path / "struck", kind, [Blow(number, way)])
        assert struck.faults == [], calm.requests[number - 1]


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_two_blows(tmp_path: Path, kind: str) -> None:
    """A run that was killed between the checkpoint and its record, and then the next one as well:
    the object is there, and no record names it until a third run writes both."""
    calm = strike_apply(tmp_path / "calm", kind, [Blow(NONE, "after")])
    requests = enumerate(calm.requests, 1)
    stored = next(n for n, text in requests if text.startswith("create") and ".gz" in text)
    blows = [Blow(stored, "after"), Blow(stored, "after")]
    assert strike_apply(tmp_path / "struck", kind, blows).faults == []
