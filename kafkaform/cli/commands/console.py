"""`kafkaform console`: try expressions on this folder's configuration."""

from __future__ import annotations

from pathlib import Path

from ...language.console import make_evaluator
from ...workflow.configuration.evaluation import Inputs, read_configuration
from ..options.flags import NoColor, Var, VarFile
from ..terminal.console import Console
from ..terminal.repl import run_console


def console(var: Var = [], var_file: VarFile = [], no_color: NoColor = False) -> int:
    """Evaluate expressions against the configuration.

    Needs no cluster.

    You can use variables, locals, functions and what resources declare; `help` explains the rest.
    With expressions from a pipe, the console exits with 1 if any of them failed.
    """
    screen = Console.make_standard(no_color=no_color)
    configuration = read_configuration(Path(), Inputs.read(var, var_file))
    built = configuration.evaluate(offline=True)
    if configuration.tree.configuration:  # without files, there are functions all the same
        screen.show_diagnostics(built.desired.diagnostics)
    return run_console(make_evaluator(built), screen)
