"""One apply or destroy from the command line: run it, show it, end with its exit code."""

from __future__ import annotations

from msgspec.structs import replace

from ...core.address import parse_address
from ...core.diagnostics import Diagnostics, Range, has_errors
from ...core.errors import ConfigurationError
from ...core.resource import Import
from ...plan.model import Plan
from ...workflow.applying import apply
from ...workflow.configuration.evaluation import Inputs, recorded
from ...workflow.planning import refuse_unmet
from ...workflow.run import Ask
from ...workflow.workspace import Workspace, open_workspace
from .console import Console
from .screen import Screen, screen

COMMAND_LINE = Range("command line", 1, 1, 1, 1)


def run_apply(
    ask: Ask,
    inputs: Inputs,
    state_file: str | None,
    console: Console,
    *,
    json: bool,
    quiet: bool,
    detail: bool,
) -> None:
    """Apply and show what came of it. Raises the error that the exit code stands for."""
    with screen(console, json=json, quiet=quiet, detail=detail) as shown:
        space = _with_import(open_workspace(inputs, state_file), ask)
        shown.words = space.words
        done = apply(space, ask, shown)
        if done.already:
            shown.note(f"Already applied by run {done.already}; everything is still so.")
        if done.report is None:
            _refuse_broken(shown, done.told)
            _refuse_unmet(ask, done.plan)
            return
        shown.result(done.report, done.run, done.plan)
        shown.outputs(recorded(done.state.outputs))
        error = done.report.error(ask.again)
        if error is not None:
            shown.diagnostics(done.told)
            raise error
        _refuse_broken(shown, done.told)
        _refuse_unmet(ask, done.plan)


def _refuse_broken(shown: Screen, told: Diagnostics) -> None:
    """Show the rules that do not hold. Raises ConfigurationError if one of them must."""
    if has_errors(told):
        raise ConfigurationError("it was applied, but a rule does not hold", diagnostics=told)
    shown.diagnostics(told)


def _refuse_unmet(ask: Ask, plan: Plan) -> None:
    """Raises Blocked if something was asked for and is not applied; an import asks for one object
    and no other."""
    if ask.imported is None:
        refuse_unmet(plan)


def _with_import(space: Workspace, ask: Ask) -> Workspace:
    """The workspace with the import that the command line asks for."""
    if ask.imported is None:
        return space
    address, key = ask.imported
    block = Import(parse_address(address), key, COMMAND_LINE)
    desired = replace(space.desired, imports=(*space.desired.imports, block))
    return replace(space, desired=desired)
