"""`kafkaform output [NAME]`: the outputs that the last apply recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options.flags import StateFile
from ..terminal import outputs


def output(
    name: Annotated[str | None, typer.Argument(metavar="NAME")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print a string, number or bool as is, for scripts.")
    ] = False,
    state: StateFile = None,
) -> int:
    """Show the outputs that the last apply recorded.

    Sensitive outputs are never stored, so they are never shown.
    """
    return outputs.output(name, json=json, raw=raw, state=state)
