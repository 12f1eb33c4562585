"""`kafkaform output [NAME]`: show the outputs that the last apply recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from ...core.canonical import render_number
from ...core.diagnostics import suggest
from ...core.errors import KafkaformError, UsageError
from ...core.value import EMPTY, FrozenMap, Value
from ...render.terraform import infer_type
from ...render.text import SENSITIVE, inline, render_json
from ...workflow import configuration
from ...workflow.stores import open_store
from ..options.flags import StateFile
from ..terminal.console import Console
from ..terminal.results import render_output_value

_HALVES = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which UTF-8 cannot encode."""
RECORDED = "Outputs are recorded by `kafkaform apply`."


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
    recorded = open_store(state).backend.load().state
    outputs = recorded.outputs if recorded else EMPTY
    console = Console.make_standard()
    if name is None:
        _print_all(console, outputs, json=json, raw=raw)
        return 0
    value = _find_value(name, outputs)
    if raw:
        console.write_bytes(_render_plain(name, value).encode())
    else:
        console.write(render_json(value) if json else render_output_value(value))
    return 0


def _print_all(console: Console, outputs: FrozenMap, *, json: bool, raw: bool) -> None:
    if raw:
        raise UsageError("--raw needs the name of one output")
    if json:
        console.write(render_json({name: _make_typed(item) for name, item in outputs.items()}))
        return
    for name, item in sorted(outputs.items()):
        text = SENSITIVE if item["sensitive"] else render_output_value(item["value"])
        console.write(f"{inline(name)} = {text}")
    missing = {name: reason for name, reason in _find_declared().items() if name not in outputs}
    if not outputs and not missing:
        console.note("No outputs are recorded.")
    for name, reason in sorted(missing.items()):
        console.note(f"{inline(name)} is declared but not recorded: {reason}")


def _make_typed(item: FrozenMap) -> dict[str, object]:
    """One output in Terraform's shape."""
    value = item["value"]
    return {"sensitive": item["sensitive"], "type": infer_type(value), "value": value}


def _find_value(name: str, outputs: FrozenMap) -> Value:
    """The recorded value. Raises UsageError if there is none, or a sensitive one."""
    if name not in outputs:
        declared = _find_declared()
        advice = suggest(name, {*outputs, *declared})
        if name in declared:
            advice = f"It is declared, but not recorded: {declared[name]}"
        raise UsageError(f"there is no output {name!r} in the state", advice or RECORDED)
    if outputs[name]["sensitive"]:
        raise UsageError(f"output {name!r} is sensitive, so its value was not stored")
    value: Value = outputs[name]["value"]
    return value


def _render_plain(name: str, value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return render_number(value)
    if isinstance(value, str) and not _HALVES.search(value):
        return value
    noun = "null" if value is None else "not a single value"
    raise UsageError(f"output {name!r} is {noun}", "Use --json.")


def _find_declared() -> Mapping[str, str]:
    """Declared outputs -> why the state lacks them; none if the configuration has faults."""
    try:
        desired = (
            configuration.evaluation.read_configuration(Path(), configuration.evaluation.Inputs())
            .evaluate(offline=True)
            .desired
        )
    except KafkaformError:
        # They only explain why a value is missing; the state has the others all the same.
        return {}
    return {
        item.name: "it needs what the cluster sets on an object that was not there at the last "
        "apply; apply again."
        if item.deferred
        else "no apply has run since it was written."
        for item in desired.outputs
    }
