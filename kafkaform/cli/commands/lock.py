"""`kafkaform lock show|release`: who holds the state, and the end of a lock
that nobody gives back."""

from __future__ import annotations

from typing import Annotated

import typer

from ...render.text import inline
from ...workflow.stores import open_store
from ..options.flags import StateFile
from ..terminal.console import Console
from ..terminal.outlet import outlive_output

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


@app.command()
def release(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run that `lock show` names.")],
    state: StateFile = None,
) -> None:
    """End the lock of a run that died before it could give it back.

    Only for runs of which you know that they have ended: a lock of an object store ends by itself
    some minutes after its run. The next run first finds out what this one had under way.
    """
    outlive_output()
    ended = open_store(state).backend.break_lock(run)
    Console.standard().out(f"Released the lock of {inline(str(ended))}.")


@app.callback()
def group() -> None:
    """The lock of the state."""
