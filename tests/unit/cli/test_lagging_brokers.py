"""What is said of brokers that do not show what was applied."""

from __future__ import annotations

import pytest

from kafkaform.apply.verify import Invisible, Sight
from kafkaform.cli.terminal.console import Console
from kafkaform.cli.terminal.screen import TextScreen


def test_a_broker_that_lags_and_one_that_is_silent_are_told_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The second one was not asked in vain for something that it lacks."""
    screen = TextScreen(Console.make_standard(no_color=True, interactive=False))
    rows = (("t.a", "1", ""), ("t.a", "3", "refused"), ("t.b", "1", ""))
    sights = {"": Sight.LATE, "refused": Sight.SILENT}
    screen._show_late(tuple(Invisible(*row, "broker", sights[row[2]]) for row in rows))
    told = capsys.readouterr()
    assert (told.out + told.err).splitlines() == [
        "t.a: applied, not yet visible on broker 1.",
        "t.b: applied, not yet visible on broker 1.",
        "t.a: applied, not yet visible on broker 3: it does not answer (refused).",
    ]


def test_many_objects_are_counted_and_a_missing_right_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Three brokers hide the same topic: that is one line, and nine topics are one, too."""
    screen = TextScreen(Console.make_standard(no_color=True, interactive=False))
    screen._show_late(
        tuple(
            Invisible(
                f"t.{n}", node, f"User:ci no longer has the right {n}", "broker", Sight.HIDDEN
            )
            for node in "123"
            for n in "abcdefghi"
        )
    )
    screen._show_late(tuple(Invisible(f"t.{n}", "2", f"x is {n}", "broker") for n in "abcdef"))
    screen._show_late((Invisible("t.z", "2", "x is 1", "broker"),))
    told = capsys.readouterr()
    assert (told.out + told.err).splitlines() == [
        "9 objects: applied, but cannot be seen: User:ci no longer has the right a, and 8 more "
        "like it: t.a, t.b, t.c, t.d, t.e, … and 4 more.",
        "6 objects: applied, not yet visible on broker 2: t.a, t.b, t.c, t.d, t.e, … and 1 more.",
        "t.z: applied, not yet visible on broker 2: x is 1.",
    ]
