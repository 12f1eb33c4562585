"""The tab key in the user's own shell: names that the cluster has now."""

from __future__ import annotations

import os
import subprocess
import sys

from ...kit.commands.bare import Bare


def offer(bare: Bare, *words: str) -> list[str]:
    """What bash is offered for the last word."""
    typed = ("kafkaform", *words[:-1], "--command-config", str(bare.config), words[-1])
    wanted = {
        "COMP_WORDS": " ".join(typed),
        "COMP_CWORD": str(len(typed) - 1),
        "_KAFKAFORM_COMPLETE": "complete_bash",
    }
    done = subprocess.run(
        [sys.executable, "-m", "kafkaform"],
        env={**os.environ, **wanted},
        cwd=bare.folder.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    return done.stdout.split()


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
