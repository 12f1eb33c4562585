"""`kafkaform version`: show the versions of kafkaform, its providers and Python."""

from __future__ import annotations

from typing import Annotated

import typer

from ..terminal.versions import show_version


def version(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show the versions of kafkaform, its providers and Python."""
    show_version(json=json)
