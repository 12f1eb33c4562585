"""The story that the architecture tells about one topic is what an apply of one topic does."""

from __future__ import annotations

import re

from ...conftest import Broker
from ...metrics import ROOT, list_entered

STOP = re.compile(r"^(\d+)\. `([^`]+)` `([^`]+)`: ", re.MULTILINE)
LIMIT = 25
"""How many stops somebody remembers."""


def test_an_apply_makes_the_stops_of_the_story(broker: Broker) -> None:
    """Each stop of the story is entered for the first time after the stop before it."""
    document = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    stops = STOP.findall(document)
    assert [int(number) for number, _, _ in stops] == list(range(1, len(stops) + 1))
    assert 10 < len(stops) <= LIMIT
    entered = list_entered(broker.bootstrap, broker.admin_password, "apply", "--auto-approve")
    order = {stop: number for number, stop in enumerate(entered)}
    missing = [stop for stop in stops if stop[1:] not in order]
    assert not missing
    numbers = [order[file, function] for _, file, function in stops]
    late = [stop for stop, a, b in zip(stops[1:], numbers, numbers[1:], strict=False) if b < a]
    assert not late, "entered before the stop above it"
