"""`kafkaform import ADDRESS ID`: record a live object as ours, without changing it."""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.address import parse_address
from ...core.errors import UsageError
from ...plan.model import Options
from ..configuration import Inputs
from ..console import Console
from ..flags import Json, LockTimeout, NoColor, Quiet, StateFile, Var, VarFile
from ..running import run_apply
from ..scene import Ask
from ..workspace import seconds_of


def import_command(
    address: Annotated[str, typer.Argument(metavar="ADDRESS")],
    id: Annotated[str, typer.Argument(metavar="ID", help="A topic's name, for instance.")],
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
    json: Json = False,
    no_color: NoColor = False,
    quiet: Quiet = False,
) -> None:
    """Record a live object as ours, without changing it.

    ADDRESS must be declared. Differences between the block and the object show in the next plan.
    """
    try:
        parse_address(address)
    except ValueError as error:
        raise UsageError(str(error)) from None
    ask = Ask(
        Options(target=(address,)),
        how="import",
        lock_timeout=seconds_of(lock_timeout, "--lock-timeout"),
        command="import",
        imported=(address, id),
    )
    console = Console.standard(no_color=no_color)
    run_apply(ask, Inputs.of(var, var_file), state, console, json=json, quiet=quiet, detail=True)
