"""Keep `--var` and `--var-file` in the order of the command line, because the later one wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperCommand

VAR, VAR_FILE = "var", "var_file"
"""The parameters of the two flags."""


class InOrder(TyperCommand):
    """A command whose `var` gets the texts of --var (str) and the files of --var-file (Path) in the
    order of the command line. Typer itself collects the values of each flag separately."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = list(args)  # the parser empties its list
        remaining = super().parse_args(ctx, args)
        if ctx.resilient_parsing or not ctx.params.get(VAR_FILE):
            return remaining
        # The parser knows the order, and typer drops it, so the words are parsed once more.
        _, _, order = self.make_parser(ctx).parse_args(words)
        names = [option.name for option in order if option.name in (VAR, VAR_FILE)]
        # typer makes paths of the second only when it calls the command.
        values = {VAR: iter(ctx.params[VAR] or ()), VAR_FILE: map(Path, ctx.params[VAR_FILE])}
        ctx.params[VAR] = [next(values[name]) for name in names if name is not None]
        ctx.params[VAR_FILE] = []
        return remaining
