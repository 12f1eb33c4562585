"""`kafkaform validate`: is the configuration sound? Offline, needs no broker and no state."""

from __future__ import annotations

from pathlib import Path

import typer

from ...core.canonical import dumps
from ...core.diagnostics import Severity, has_errors
from ...provider.registry import Registry
from ...render.diagnostics import diagnostic_data
from ...render.text import count
from ..configuration import Inputs, read_configuration
from ..console import Console
from ..flags import Json, NoColor, Var, VarFile


def validate(
    var: Var = [],
    var_file: VarFile = [],
    json: Json = False,
    no_color: NoColor = False,
) -> None:
    """Check the configuration offline. Every fault comes with its place and advice."""
    console = Console.standard(no_color=no_color)
    inputs = Inputs.of(var, var_file)
    found = read_configuration(Path.cwd(), inputs, Registry()).desired(offline=True)
    faults = found.diagnostics
    errors = sum(1 for item in faults if item.severity is Severity.ERROR)
    if json:
        console.out(
            dumps(
                {
                    "format_version": "1.0",
                    "valid": not errors,
                    "error_count": errors,
                    "warning_count": len(faults) - errors,
                    "diagnostics": [diagnostic_data(item) for item in faults],
                }
            )
        )
    else:
        console.diagnostics(faults)
        if not has_errors(faults):
            declared = count(len(found.declared), "object")
            console.out(f"The configuration is valid: {declared} declared.")
    if errors:
        raise typer.Exit(1)
