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
from .world import make_folder

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]+")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """The command in a folder, until the test ends it."""
    folder = make_folder(tmp_path / "folder")
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
