"""The tab key in the user's own shell: names that the cluster has now."""

from __future__ import annotations

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform.cli.options import flags

from ...kit.commands.bare import Bare


def offer(bare: Bare, *words: str) -> list[str]:
    """What bash is offered for the last word."""
    typed = ("kafkaform", *words[:-1], "--command-config", str(bare.config), words[-1])
    patch = bare.folder.monkeypatch
    # A loaded computer can take longer than somebody at a keyboard would wait.
    patch.setattr(flags, "SECONDS", 60.0)
    patch.setenv("COMP_WORDS", " ".join(typed))
    patch.setenv("COMP_CWORD", str(len(typed) - 1))
    patch.setenv("_KAFKAFORM_COMPLETE", "complete_bash")
    patch.setenv(flags.PREFIX, "")
    bare.folder.capsys.readouterr()
    with pytest.raises(SystemExit):
        run_command_line([])
    said = bare.folder.capsys.readouterr()
    assert not said.err
    return said.out.split()


def test_names_of_the_cluster_are_offered(bare: Bare) -> None:
    """Topics after `describe`, `alter` and `explain`, over the connection of the command line."""
    bare.folder.create("orders")
    name = f"{bare.folder.prefix}orders"
    for command in (("describe", "topics"), ("alter", "topic"), ("explain", "config", "topic")):
        assert offer(bare, *command, bare.folder.prefix) == [name]
    assert offer(bare, "explain", "config", "topic", name, "retention.m") == ["retention.ms"]


def test_a_cluster_that_is_not_there_offers_nothing(bare: Bare) -> None:
    """Without an error in the middle of a command line."""
    bare.config.write_text("bootstrap.servers=127.0.0.1:1\n")
    assert offer(bare, "describe", "topics", "a") == []
