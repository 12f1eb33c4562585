"""What `alter` says after its apply."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.cli.commands.alter import _show_documents
from kafkaform.cli.terminal.console import Console
from kafkaform.core.errors import ConnectError
from kafkaform.provider.commands import Alteration, Question


class Away:
    """The way to a cluster that went away after the apply."""

    def open_session(self) -> Any:
        raise ConnectError("cannot reach Kafka at a:1", "Start it.")


def never(_: Any) -> Any:
    raise AssertionError("nothing can be read")


def test_a_change_that_cannot_be_described_stays_applied(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """After "Apply complete" comes no error: the change is made, and the reason is a note."""
    way: Any = Away()
    wanted = Alteration((), (Question(never, never),))
    _show_documents(way, Console.make_standard(), wanted, json=False)
    said = capsys.readouterr()
    assert said.out == ""
    assert "The result cannot be described: cannot reach Kafka at a:1" in said.err
