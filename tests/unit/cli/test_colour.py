"""When output has colours: flags first, then variables, then the terminal."""

from __future__ import annotations

import io
import sys

import pytest

from kafkaform.cli.options.translation import move_color
from kafkaform.cli.terminal.console import Console, set_colour_mode

from ...kit.commands.here import Here


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM")


@pytest.mark.parametrize(
    ("variables", "terminal", "pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"CLICOLOR": "0"}, False, False),
        ({"CLICOLOR": "1"}, True, False),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR_FORCE": "0"}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "3", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True, True),
    ],
    ids=str,
)
def test_variables_choose_colours(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], terminal: bool, pipe: bool
) -> None:
    """An empty variable is as good as none, and NO_COLOR wins; a flag wins over all of them."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    for stream, colour in ((Terminal(), terminal), (io.StringIO(), pipe)):
        monkeypatch.setattr(sys, "stdout", stream)
        assert Console.make_standard().colour is colour
        assert not Console.make_standard(no_color=True).colour
        for mode, forced in (("always", True), ("never", False)):
            with set_colour_mode(mode):
                assert Console.make_standard().colour is forced


@pytest.mark.parametrize(
    ("typed", "moved"),
    [
        (("plan", "--color=always"), ["--color=always", "plan"]),
        (("plan", "-color", "never", "-q"), ["-color", "never", "plan", "-q"]),
        (("--color", "auto", "plan"), ["--color", "auto", "plan"]),
        (("plan", "--color"), ["--color", "plan"]),
        (("console", "--", "--color=never"), ["console", "--", "--color=never"]),
    ],
)
def test_the_flag_can_follow_the_command(typed: tuple[str, ...], moved: list[str]) -> None:
    """It is a flag of kafkaform and not of a command, and people type it at the end."""
    assert move_color(typed) == moved


def test_a_log_can_have_colours(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of a pipeline is no terminal and still shows colours."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    here.write("main.kf.hcl", "x = ")
    assert "\033[" not in here.run("validate").err
    assert "\033[" in here.run("validate", "--color=always").err
    assert "\033[" not in here.run("--color", "always", "validate", "--no-color").err
    refused = here.run("validate", "--color", "sometimes")
    assert refused.code == 1 and "always, auto, never" in refused.text
