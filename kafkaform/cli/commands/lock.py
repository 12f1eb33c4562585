"""`kafkaform lock show`: who holds the state."""

from __future__ import annotations

import typer

from ...render.text import inline
from ..console import Console
from ..flags import StateFile
from ..workspace import open_store

app = typer.Typer(help="The lock of the state.", no_args_is_help=True)


@app.command()
def show(state: StateFile = None) -> None:
    """Show who holds the lock; a lock of a process that ended is free."""
    holder = open_store(state).backend.holder()
    console = Console.standard()
    if holder is None:
        console.out("The state is not locked.")
        return
    console.out(
        f"Locked by {inline(holder.who)} on {inline(holder.host)}, process {holder.pid}, "
        f"since {holder.started}: `{inline(holder.command)}`, run {holder.run}."
    )


@app.callback()
def group() -> None:
    """The lock of the state."""
