"""The command that applies a plan, as it has to be typed after this command line."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import Struct
from typer import Context

from ...plan.model import Plan
from ...workflow.planning import list_apply_words


class TypedFlags(Struct, frozen=True):
    """The flags of a command line that decide what is planned, and where."""

    context: Context
    """Of the command; its root has the folder of -chdir."""
    state: str | None
    """The place of --state."""
    given: Sequence[str | Path]
    """The values of --var and the files of --var-file, as `InOrder` puts them."""
    sensitive: Collection[str]
    """Variables whose values are not shown, so that the user has to type them again."""


def render_next_command(plan: Plan, saved: Path | None, typed: TypedFlags) -> str:
    """The whole command line, to be typed where this one was.

    saved: the file that the plan was saved to, if any.
    """
    command, *arguments = ["apply", str(saved)] if saved else list_apply_words(plan)
    words, chdir = ["kafkaform"], typed.context.find_root().params["chdir"]
    words += [] if chdir is None else [f"-chdir={chdir}"]
    words += [command, *arguments]
    words += [] if typed.state is None else [f"--state={typed.state}"]
    variables = (_render_variable(item, typed.sensitive) for item in typed.given)
    return " ".join((*map(shlex.quote, words), *variables))


def _render_variable(item: str | Path, sensitive: Collection[str]) -> str:
    if isinstance(item, Path):
        return shlex.quote(f"--var-file={item}")
    name = item.partition("=")[0]
    if name.strip() in sensitive:
        return f"--var {shlex.quote(name)}=…"
    return f"--var {shlex.quote(item)}"
