"""`kafkaform explain`: why somebody may do something, by what clients are limited, and where the
value of a config comes from."""

from __future__ import annotations

import typer

from ...options.variable_order import InOrder
from .access import access
from .config import config
from .quota import quota

app = typer.Typer(help="Explain access, quotas and config values.", no_args_is_help=True)
for _name, _command in {"access": access, "quota": quota, "config": config}.items():
    app.command(_name, cls=InOrder)(_command)
