"""`kafkaform lock show|release`: show who has the state's lock, and release that of a dead run.
Scripts call it often, so it loads nothing of the other commands.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ...render.text import inline
from ...workflow.stores import open_store
from ..options.flags import StateFile
from ..terminal.console import Console, outlive_output

app = typer.Typer(help="Show or release the state lock.", no_args_is_help=True)


@app.command()
def show(state: StateFile = None) -> None:
    """Show which run has the lock. A lock is free if its process has ended."""
    holder = open_store(state).backend.holder()
    console = Console.make_standard()
    if holder is None:
        console.write("The state is not locked.")
        return
    console.write(
        f"Locked by {inline(holder.who)} on {inline(holder.host)}, process {holder.pid}, "
        f"since {holder.started}: `{inline(holder.command)}`, run {holder.run}."
    )


@app.command()
def release(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run ID that `lock show` prints.")],
    state: StateFile = None,
) -> None:
    """Release the lock of a run that died.

    Use this only if you know that the run has ended. In an object store, a lock expires by itself a
    few minutes after its run. The next run first finds out which changes this one had started.
    """
    # The lock is released even if the reader of the output has gone.
    outlive_output()
    ended = open_store(state).backend.break_lock(run)
    Console.make_standard().write(f"Released the lock of {inline(str(ended))}.")


@app.callback()
def group() -> None:
    """Show or release the state lock."""
