"""`kafkaform fmt [TARGET…]`: one layout for all configuration files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options.flags import NoColor
from ..terminal import formatting

Targets = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="TARGET", help="Files, folders, or - for standard input.", show_default=False
    ),
]


def fmt(
    targets: Targets = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show the changes.")] = False,
    recursive: Annotated[bool, typer.Option("--recursive", help="Include subfolders.")] = False,
    names: Annotated[
        bool, typer.Option("--list/--no-list", help="Print the names of changed files.")
    ] = True,
    write: Annotated[bool, typer.Option("--write/--no-write", help="Write the files.")] = True,
    no_color: NoColor = False,
) -> int:
    """Rewrite configuration files in the standard format.

    Without TARGET, format this folder's files. Only whitespace changes. A file with errors stays as
    it is.
    """
    return formatting.fmt(
        targets or (),
        check=check,
        diff=diff,
        recursive=recursive,
        names=names,
        write=write,
        no_color=no_color,
    )
