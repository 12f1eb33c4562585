"""`kafkaform shell`: one command after another over one connection (KIP-4)."""

from __future__ import annotations

from typing import Annotated

import typer

from ..connection import Kept, Way, connects
from ..shell import Shell, greeting


@connects
def shell(
    way: Way,
    allow_apply: Annotated[
        bool, typer.Option("--allow-apply", help="Let `alter` change things.")
    ] = False,
) -> int:
    """Type describe, explain, plan and alter over one connection.

    It only reads unless --allow-apply is given. Lines from a pipe are carried out one by one; it
    ends with 1 if one of them failed.
    """
    kept = Kept(way.flags, allow_apply)
    try:
        session = kept.session(way.connection())
        greet = greeting(kept, session.facts.scope_id, session.facts.principal)
        way.console.note(greet)
        return Shell(kept, way.console).run()
    finally:
        kept.close()
