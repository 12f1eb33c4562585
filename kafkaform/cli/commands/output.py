"""`kafkaform output [NAME]`: the outputs that the last apply recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.canonical import dumps
from ...core.diagnostics import suggest
from ...core.errors import UsageError
from ...core.value import FrozenMap
from ...render.text import inline, value
from ..console import Console
from ..flags import StateFile
from ..workspace import open_store


def output(
    name: Annotated[str | None, typer.Argument(metavar="NAME")] = None,
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="A string as it is, for scripts.")] = False,
    state: StateFile = None,
) -> None:
    """Show the outputs that the last apply recorded.

    Sensitive ones are never stored, so they are never shown.
    """
    found = open_store(state).backend.load().state
    outputs = found.outputs if found else FrozenMap()
    console = Console.standard()
    if name is None:
        if raw:
            raise UsageError("--raw needs the name of one output")
        _all(console, outputs, json=json)
        return
    if name not in outputs:
        raise UsageError(
            f"there is no output {name!r} in the state",
            suggest(name, outputs) or "Outputs are recorded by `kafkaform apply`.",
        )
    _one(console, name, outputs[name], json=json, raw=raw)


def _all(console: Console, outputs: FrozenMap, *, json: bool) -> None:
    if json:
        console.out(dumps(outputs))
        return
    if not outputs:
        console.out("No outputs are recorded.")
    for name, item in sorted(outputs.items()):
        console.out(f"{inline(name)} = {_text(item)}")


def _one(console: Console, name: str, item: FrozenMap, *, json: bool, raw: bool) -> None:
    if item["sensitive"]:
        raise UsageError(f"output {name!r} is sensitive, so its value was not stored")
    if json:
        console.out(dumps(item["value"]))
    elif raw:
        if not isinstance(item["value"], str | int | bool):
            raise UsageError(f"output {name!r} is not a single value", "Use --json.")
        plain = item["value"]
        console.out(str(plain).lower() if isinstance(plain, bool) else str(plain))
    else:
        console.out(_text(item))


def _text(item: FrozenMap) -> str:
    return "(sensitive)" if item["sensitive"] else value(item["value"])
