"""The manual pages are those of today's help texts, and the programs that show them take them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from docs.man_pages import FOLDER, render_pages
from kafkaform.cli.command_tree import get_commands
from kafkaform.version import VERSION

PAGES = render_pages()
CHECKS = {
    "mandoc": ("mandoc", "-Tlint", "-W", "warning"),
    "groff": ("groff", "-man", "-Tutf8", "-ww", "-z"),
}
"""Program -> the command that reports faults of a page."""
NO_DATE = 'WARNING: missing date, using ""'
"""A page has the version instead: the day of a release is not known when the page is made."""


def list_commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Each command with the words that name it."""
    for name, command in group.commands.items():
        words = f"{path} {name}"
        yield words, command
        if hasattr(command, "commands"):
            yield from list_commands(command, words)


def test_the_pages_are_current() -> None:
    """`python docs/man_pages.py` writes them."""
    written = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.1")}
    assert written == PAGES, "run `python docs/man_pages.py`"


def test_every_command_and_flag_is_in_a_page() -> None:
    """Also those of groups; each page names the version."""
    whole = "\n".join(PAGES.values()).replace("\\-", "-")
    for words, command in list_commands(get_commands(), "kafkaform"):
        if command.hidden:
            continue
        assert hasattr(command, "commands") or f"\\fB{words}\\fP" in whole, words
        page = PAGES[f"kafkaform-{words.split()[1]}.1"].replace("\\-", "-")
        for parameter in command.params:
            flags = [flag for flag in parameter.opts if flag.startswith("-")]
            assert getattr(parameter, "hidden", False) or all(flag in page for flag in flags)
    assert all(f'"kafkaform {VERSION}"' in page for page in PAGES.values())


@pytest.mark.parametrize("program", CHECKS)
def test_the_programs_of_manuals_find_no_fault(program: str) -> None:
    """No warning about any page."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on the path")
    pages = [str(FOLDER / name) for name in PAGES]
    done = subprocess.run([*CHECKS[program], *pages], capture_output=True, text=True, timeout=120)
    lines = (done.stdout + done.stderr).splitlines()
    assert [line for line in lines if NO_DATE not in line] == []


def test_man_shows_what_the_help_says() -> None:
    """Text and flags come out as they were typed, hyphens and quotes too."""
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man or groff is not on the path")
    command = ["man", "-l", str(FOLDER / "kafkaform-plan.1")]
    environment = {"PATH": "/usr/bin:/bin", "MANWIDTH": "200", "LANG": "C.UTF-8", "MANPAGER": "cat"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    shown = re.sub(r"\s+", " ", re.sub(".\b|\x1b\\[[0-9;]*m", "", done.stdout))
    assert done.returncode == 0 and not done.stderr
    for text in ("kafkaform plan [OPTIONS]", "--detailed-exitcode", "-h, --help", "Don't trust"):
        assert text in shown
