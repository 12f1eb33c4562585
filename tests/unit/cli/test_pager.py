"""A plan that is longer than the terminal is shown in the user's pager."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from kafkaform.cli.terminal.console import Console
from kafkaform.cli.terminal.results import DEFAULT, choose_pager
from kafkaform.cli.terminal.screen import TextScreen, open_screen
from kafkaform.workflow.plan_documents import save_plan

from ...kit.commands.terminal import Terminal
from ..render.screens import many

SAVES = 'import sys; open(sys.argv[1], "w").write(sys.stdin.read())'
"""A pager that saves the text that it gets."""
WAITS = """
import select, signal, sys
signal.signal(signal.SIGINT, lambda *_: print("SEARCH STOPPED", flush=True))
terminal = open("/dev/tty")
print("READY", flush=True)
while not select.select([terminal], [], [], 0.1)[0]:
    pass
"""
"""A pager that an interrupt does not end, and that ends at a key. It looks up now and then, because
a signal that comes just before a wait would be noticed at its end only."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a saved plan of 300 changes, `plan`."""
    save_plan(many(300), tmp_path / "plan")
    return tmp_path


def show(folder: Path, *flags: str, rows: int = 24, **variables: str) -> Terminal:
    """`kafkaform show plan` on a terminal."""
    return Terminal(folder, ["show", "plan", *flags], more=variables, rows=rows)


def python(code: str, *words: str) -> str:
    """The command of a pager that runs this code."""
    return shlex.join([sys.executable, "-c", code, *words])


def test_a_long_plan_goes_through_the_pager(folder: Path) -> None:
    """The pager gets the whole text with its colours, the terminal nothing, and the code is 0."""
    terminal = show(folder, KAFKAFORM_PAGER=python(SAVES, "taken"))
    assert terminal.end() == 0 and terminal.raw == ""
    text = (folder / "taken").read_text(encoding="utf-8")
    assert "Dangers (3)" in text and "\x1b[1;31m" in text and text.endswith("blocked.\n")


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager-here", "broken ' quote"])
def test_without_a_pager_the_plan_is_printed(folder: Path, pager: str) -> None:
    """An empty value and `cat` switch it off, and a pager that is missing loses no text."""
    terminal = show(folder, KAFKAFORM_PAGER=pager, PAGER="false")
    assert terminal.end() == 0 and "Dangers (3)" in terminal.seen


def test_a_plan_that_fits_is_printed(folder: Path) -> None:
    """Nobody has to leave a pager for text that fits the screen."""
    terminal = show(folder, rows=9999, KAFKAFORM_PAGER="false")
    assert terminal.end() == 0 and "Dangers (3)" in terminal.seen


def test_json_is_never_paged(folder: Path) -> None:
    """What is for programs goes to standard output."""
    terminal = show(folder, "--json", KAFKAFORM_PAGER="false")
    assert terminal.end() == 0 and '"resource_changes"' in terminal.seen


def test_leaving_the_pager_early_is_no_error(folder: Path) -> None:
    """A pager that reads nothing of a text longer than a pipe ends the command with code 0."""
    terminal = show(folder, "--detail", KAFKAFORM_PAGER="true")
    assert terminal.end() == 0 and terminal.raw == ""


def test_an_interrupt_belongs_to_the_pager(folder: Path) -> None:
    """Ctrl-C stops a search of the pager and not the command, which ends when the pager does."""
    terminal = show(folder, KAFKAFORM_PAGER=python(WAITS))
    terminal.wait_for("READY")
    terminal.type("\x03")
    terminal.wait_for("SEARCH STOPPED")
    assert terminal.process.poll() is None
    terminal.type("q\n")
    assert terminal.end() == 0


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_less_shows_the_first_screen(folder: Path) -> None:
    """A long plan waits in less, and q leaves its first screen behind."""
    terminal = show(folder, KAFKAFORM_PAGER=DEFAULT)
    terminal.wait_for("Dangers (3)")
    terminal.wait_for("\n:")
    terminal.type("q")
    assert terminal.end() == 0 and "Plan: " not in terminal.seen


def test_the_first_variable_decides() -> None:
    """KAFKAFORM_PAGER comes before PAGER, and a plain terminal has none."""
    assert choose_pager({"KAFKAFORM_PAGER": "true -x", "PAGER": "false"}) == ["true", "-x"]
    assert choose_pager({"PAGER": "false"}) == ["false"]
    assert choose_pager({"KAFKAFORM_PAGER": "", "PAGER": "false"}) == []
    assert choose_pager({"PAGER": "false", "TERM": "dumb"}) == []
    assert choose_pager({"PAGER": ""}) == []
    assert choose_pager({}) == (DEFAULT.split() if shutil.which("less") else [])


@pytest.mark.parametrize(
    ("quiet", "interactive", "pages"),
    [(False, True, True), (True, True, False), (False, False, False)],
)
def test_only_a_person_gets_the_pager(quiet: bool, interactive: bool, pages: bool) -> None:
    """With --quiet, and where nobody can press a key, a plan is printed."""
    console = Console(False, False, interactive, 80)
    with open_screen(console, json=False, quiet=quiet, sends=False, pages=True) as shown:
        assert isinstance(shown, TextScreen) and shown.pages is pages
