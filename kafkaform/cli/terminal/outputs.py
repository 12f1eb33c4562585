"""The outputs that the last apply recorded, for people, programs and scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from ...core.canonical import render_number
from ...core.diagnostics import suggest
from ...core.errors import KafkaformError, UsageError
from ...core.value import EMPTY, FrozenMap, Value
from ...render.text import SENSITIVE, inline, render_block, render_json
from ...render.text import render_value as plainly
from ...syntax.write import write_value
from ...workflow.stores import open_store
from ...workflow.terraform_json import infer_type
from .console import Console

_HALVES = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which are no text."""
RECORDED = "Outputs are recorded by `kafkaform apply`."


def output(
    name: str | None = None, json: bool = False, raw: bool = False, state: str | None = None
) -> int:
    """Print all outputs, or the value of one. raw: a text, number or bool alone, without quotes
    and without a final newline, for scripts. Sensitive values are not stored, so never shown."""
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
        console.write(render_json(value) if json else _render_value(value))
    return 0


def _print_all(console: Console, outputs: FrozenMap, *, json: bool, raw: bool) -> None:
    if raw:
        raise UsageError("--raw needs the name of one output")
    if json:
        console.write(render_json({name: _make_typed(item) for name, item in outputs.items()}))
        return
    for name, item in sorted(outputs.items()):
        text = SENSITIVE if item["sensitive"] else _render_value(item["value"])
        console.write(f"{inline(name)} = {text}")
    missing = {name: why for name, why in _find_declared().items() if name not in outputs}
    if not outputs and not missing:
        console.note("No outputs are recorded.")
    for name, why in sorted(missing.items()):
        console.note(f"{inline(name)} is declared but not recorded: {why}")


def _render_value(value: Value) -> str:
    """As configuration writes it, or as plans do what configuration cannot say."""
    try:
        return render_block(write_value(value))
    except ValueError:  # half of a surrogate pair, which older versions let in
        return plainly(value)


def _make_typed(item: FrozenMap) -> dict[str, object]:
    """Terraform's shape of one output."""
    value = item["value"]
    return {"sensitive": item["sensitive"], "type": infer_type(value), "value": value}


def _find_value(name: str, outputs: FrozenMap) -> Value:
    """The recorded value. Raises UsageError if there is none that may be shown."""
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
    what = "null" if value is None else "not a single value"
    raise UsageError(f"output {name!r} is {what}", "Use --json.")


def _find_declared() -> Mapping[str, str]:
    """Outputs that the folder's configuration declares -> why the state may not have them yet;
    nothing if the configuration has faults, for then nobody can tell."""
    from ...workflow.configuration.evaluation import Inputs, read_configuration  # noqa: PLC0415  # only an answer that lacks something needs the language

    try:
        desired = read_configuration(Path(), Inputs()).evaluate(offline=True).desired
    except KafkaformError:
        return {}
    return {
        item.name: "it needs what the cluster sets on an object that was not there at the last "
        "apply; apply again."
        if item.deferred
        else "no apply has run since it was written."
        for item in desired.outputs
    }
