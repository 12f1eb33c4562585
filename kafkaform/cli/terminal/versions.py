"""What is installed: kafkaform, its providers, Python."""

from __future__ import annotations

import platform

from ...provider.registry import Registry
from ...version import VERSION
from .console import Console


def show_version(json: bool = False) -> None:
    """Print the versions, as lines or as JSON for programs."""
    registry, console = Registry(), Console.standard()
    providers = {name: registry.package(name) for name in registry.names}
    if json:
        from ...render.text import json_line  # noqa: PLC0415  # only programs ask for JSON

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
