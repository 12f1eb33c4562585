"""The command `kafkaform serve` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ...kit.commands.server import Job, Running, get_server
from .test_repository import make_repository
from .world import make_folder

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]+")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """The command in a folder, until the test ends it."""
    yield from start(make_folder(tmp_path / "folder"))


@pytest.fixture
def at_the_top(tmp_path: Path) -> Iterator[Running]:
    """The same at the top of a repository."""
    yield from start(make_repository(tmp_path / "top"))


def start(folder: Path) -> Iterator[Running]:
    plain = {name: text for name, text in os.environ.items() if "KAFKAFORM" not in name}
    command = get_server().start(Job(["serve"], str(folder), plain))
    yield command
    command.send_signal(signal.SIGKILL)
    command.finish()


def find_address(command: Running) -> str:
    """What the command prints."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if (match := ADDRESS.search(command.printed())) and "Ctrl-C" in command.printed():
            return match[0]
        time.sleep(0.05)
    raise AssertionError(command.printed())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_until_a_signal(running: Running, number: int) -> None:
    """Its printed address leads to the overview, and one signal ends it without an error."""
    address = find_address(running)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(address, timeout=60) as answer:
        assert "<h1>Overview</h1>" in answer.read().decode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(address.partition("?")[0], timeout=60)
    assert refused.value.code == 403
    refused.value.close()
    running.send_signal(number)
    assert running.wait() == 0
    assert "Ended." in running.printed() and "Traceback" not in running.printed()


def test_at_the_top_it_shows_the_repository(at_the_top: Running) -> None:
    """Its folders, and behind each of them the pages of a folder."""
    address = find_address(at_the_top)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(address, timeout=60) as answer:
        page = answer.read().decode()
    assert "<h1>acme-kafka</h1>" in page
    link = re.search(r'href="(/[^"]*)">teams/shop<', page)
    assert link is not None
    with opener.open(address.partition("/?")[0] + link[1], timeout=60) as answer:
        assert "<h1>Overview</h1>" in answer.read().decode()
