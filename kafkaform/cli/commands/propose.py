"""`kafkaform propose`: compute configuration from what a system has. Nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ...provider.commands import Proposal
from ...render.text import inline, render_json, render_page
from ...workflow.transfer.proposals import choose_override_file, read_declared, save_overrides
from ..options.flags import take_flags
from ..options.provider_commands import Json, Opener, connects, get_terminal_width, make_app

UNCHANGED = "Nothing to write: no block has to change."

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write the proposal as an override file."),
]


def _carry_out(make: Callable[..., Proposal], _: str) -> Callable[..., None]:
    """A command that shows the proposal that `make` makes of its flags, and writes it."""

    @connects
    @take_flags("proposal", make, first=True)
    def command(opener: Opener, proposal: Proposal, out: Out = None, json: Json = False) -> None:
        _propose(opener, proposal, out, json)

    return command


app = make_app("propose", _carry_out)


def _propose(opener: Opener, proposal: Proposal, out: Path | None, json: bool) -> None:
    """Compute, show and write. Raises KafkaformError, before anything is written."""
    connection, console = opener.resolve_connection(), opener.console
    # Before anything is computed, which can take long.
    target = None if out is None else choose_override_file(connection.configuration, out)
    with opener.open_session() as session:
        declared = read_declared(connection, session.facts.scope_id)
        proposed = proposal.compute(session, declared)
    if json:
        console.write(render_json(proposed.document))
    else:
        width = get_terminal_width(console)
        console.write_lines(render_page(proposal.page(proposed.document), width))
    if not proposed.arguments:
        if target is not None:
            console.note(UNCHANGED)
        return
    if target is None:
        if declared is not None:
            console.note("Nothing is written. --out NAME_override.kf.hcl writes the proposal.")
        return
    save_overrides(target, proposed.arguments, declared or ())
    console.note(f"Wrote {inline(str(target))}. Look at it, then: kafkaform plan")
