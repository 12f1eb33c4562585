"""`kafkaform version`: what is installed."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from ...provider.registry import Registry
from ...render.text import json_line
from ...version import VERSION
from ..terminal.console import Console


def version(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show the versions of kafkaform, its providers and Python."""
    registry = Registry()
    providers = {name: registry.package(name) for name in registry.names}
    console = Console.standard()
    if json:
        console.out(
            json_line(
                {
                    "kafkaform_version": VERSION,
                    "platform": f"{platform.system().lower()}_{platform.machine()}",
                    "python_version": platform.python_version(),
                    "provider_selections": providers,
                }
            )
        )
        return
    console.out(f"kafkaform {VERSION}")
    console.lines(f"  provider {name}: {package}" for name, package in providers.items())
    console.out(f"  Python {platform.python_version()} on {platform.system()}")
