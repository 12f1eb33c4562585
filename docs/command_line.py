"""Writes docs/command-line.md, what `--help` says of every command: `python docs/command_line.py`.

A test compares the page with what this prints. docs/commands.md explains the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkaform.cli.command_tree import get_commands

FILE = Path(__file__).with_name("command-line.md")
WIDTH = 96
_INTRO = """\
# Command line

What `--help` says of every command. [Commands](commands.md) explains them, and
[exit codes](architecture.md#7-exit-codes) what the numbers mean.
"""


def page() -> str:
    """The page."""
    return "\n".join((_INTRO, *_render_command(get_commands(), "kafkaform", None)))


def _render_command(command: Any, name: str, parent: Any) -> Iterator[str]:
    """The section of a command, and those of its subcommands."""
    context = command.context_class(
        command,
        info_name=name,
        parent=parent,
        **{**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH},
    )
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    members = getattr(command, "commands", {})
    for inner in members:
        if not members[inner].hidden:
            yield from _render_command(members[inner], inner, context)


def main() -> None:
    """Write it."""
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
