"""`kafkaform lsp`: the language server that editors start."""

from __future__ import annotations

import os

from ....core.errors import UsageError
from ....core.installation import render_extra_command


def lsp() -> None:
    """Serve an editor with the Language Server Protocol.

    Editors start this command and talk to it over standard input and output. It checks what is
    typed, completes, explains, finds and renames. It needs no cluster, reads no secrets and runs no
    commands.
    """
    try:
        from ....editor.server import run_server  # noqa: PLC0415  # its library is optional
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise UsageError(
            "the language server needs packages that are not installed",
            f"Run `{render_extra_command('lsp')}`.",
        ) from None
    # The library closes its streams at the end, and the command line still flushes its own then.
    with os.fdopen(os.dup(0), "rb") as incoming, os.fdopen(os.dup(1), "wb") as outgoing:
        run_server(incoming, outgoing)
