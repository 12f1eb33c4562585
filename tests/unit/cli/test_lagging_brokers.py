"""What is said of brokers that do not show what was applied."""

from __future__ import annotations

import pytest

from kafkaform.apply.verify import Invisible
from kafkaform.cli.terminal.console import Console
from kafkaform.cli.terminal.screen import TextScreen


def test_a_broker_that_lags_and_one_that_is_silent_are_told_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The second one was not asked in vain for something that it lacks."""
    screen = TextScreen(Console.make_standard(no_color=True, interactive=False))
    rows = (("t.a", "1", ""), ("t.a", "3", "refused"), ("t.b", "1", ""))
    screen._show_late(tuple(Invisible(*row, noun="broker") for row in rows))
    told = capsys.readouterr()
    assert (told.out + told.err).splitlines() == [
        "t.a: applied, not yet visible on broker 1.",
        "t.b: applied, not yet visible on broker 1.",
        "t.a: applied, not yet visible on broker 3: it does not answer (refused).",
    ]
