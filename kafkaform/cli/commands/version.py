"""`kafkaform version`: show the versions of kafkaform, its providers and Python. The flag
`--version` needs it without the other commands."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from ... import render
from ...provider.registry import Registry
from ...version import VERSION
from ..terminal.console import Console


def show_version(json: bool = False) -> None:
    """Print the versions as lines, or as JSON for programs."""
    registry, console = Registry(), Console.make_standard()
    providers = {name: registry.describe_package(name) for name in registry.names}
    if json:
        console.write(
            render.text.render_json(
                {
                    "kafkaform_version": VERSION,
                    "platform": f"{platform.system().lower()}_{platform.machine()}",
                    "python_version": platform.python_version(),
                    "provider_selections": providers,
                }
            )
        )
        return
    console.write(f"kafkaform {VERSION}")
    console.write_lines(f"  provider {name}: {package}" for name, package in providers.items())
    console.write(f"  Python {platform.python_version()} on {platform.system()}")


def version(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show the versions of kafkaform, its providers and Python."""
    show_version(json=json)
