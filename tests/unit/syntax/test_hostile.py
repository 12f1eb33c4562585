"""Hostile texts end quickly, in little memory, with a diagnostic at its line; none with a crash.

Each is parsed in a process of its own whose memory is bounded.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from kafkaform.syntax import nodes

from . import bombs

SECONDS, MEGABYTES = 5, 512

Parsed: TypeAlias = Callable[[str], tuple[str, int, list[str]]]
"""Name of a text -> its first diagnostic's summary and line, and the severities of all."""


@pytest.fixture(scope="module")
def parsed() -> Iterator[Parsed]:
    """Parses within the bounds of time and memory, or fails."""
    command = [sys.executable, "-m", "tests.unit.syntax.bombs"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        questions, answers = process.stdin, process.stdout
        assert questions is not None and answers is not None

        def ask(name: str) -> tuple[str, int, list[str]]:
            print(name, file=questions, flush=True)
            answer = answers.readline()
            assert answer.startswith("["), f"{name}: {answer}"
            seconds, megabytes, summary, line, severities = json.loads(answer)
            assert seconds < SECONDS
            assert megabytes < MEGABYTES
            return summary, line, severities

        yield ask
        questions.close()


@pytest.mark.slow("parses up to the limits")
@pytest.mark.parametrize("name", bombs.REFUSED)
def test_bomb_is_refused(name: str, parsed: Parsed) -> None:
    """A bomb gives its error with a line, and not more errors than can be read."""
    summary, line, severities = parsed(name)
    assert bombs.REFUSED[name][1] in summary
    assert line >= 1
    assert set(severities) == {"error"}
    assert len(severities) <= nodes.DIAGNOSTICS


@pytest.mark.parametrize("name", bombs.WARNED)
def test_hidden_characters_are_pointed_out(name: str, parsed: Parsed) -> None:
    """What does not show, or turns what shows, is read with one warning at its line."""
    summary, line, severities = parsed(name)
    assert summary.startswith("Invisible character U+")
    assert line >= 1
    assert severities == ["warning"]


@pytest.mark.slow("parses up to the limits")
@pytest.mark.parametrize("name", bombs.ACCEPTED)
def test_large_but_legal(name: str, parsed: Parsed) -> None:
    """What lies just inside the limits is accepted, as quickly."""
    assert parsed(name)[2] == []


def test_names_are_used_once() -> None:
    """Every text of the tables is asked for by a name of its own."""
    names = [*bombs.REFUSED, *bombs.WARNED, *bombs.ACCEPTED]
    assert len(names) == len(set(names))
