"""Commands that providers offer, such as those of `describe`: their signatures are translated for
typer, and their answers are shown as text or JSON.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, get_args, get_origin

import typer

from ...provider.commands import Command, Complete, Operand, Option, Question
from ...provider.registry import Registry
from ...render.text import render_json, render_page
from ..terminal.console import Console
from .connection import Way, connects
from .flags import InOrder, take_flags
from .tab_names import complete_names


class _Offered(InOrder):
    """A command whose usage line has operands as the documents write them."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # typer writes `{NAME…}` for an operand that must be given, and `[NAME…]` for others.
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def make_app(group: str, run: Callable[[Callable[..., Any]], Callable[..., None]]) -> typer.Typer:
    """The commands of a group. run: makes a command from the function that checks its arguments."""
    groups = Registry().load_commands(group)
    app = typer.Typer(help=" ".join(item.help for item in groups), no_args_is_help=True)
    for command in (command for item in groups for command in item.commands):
        function = run(_translate_signature(command))
        function.__doc__ = command.make.__doc__
        app.command(command.name, cls=_Offered)(function)
    return app


def find_completions(group: str, name: str) -> Mapping[str, Complete]:
    """How the words of a command are completed: by flag, and "" for operands."""
    commands = (
        command for loaded in Registry().load_commands(group) for command in loaded.commands
    )
    command = next((command for command in commands if command.name == name), None)
    completions: dict[str, Complete] = {}
    for argument in map(_read_argument, _list_parameters(command) if command else ()):
        if argument.complete is not None:
            key = argument.flag if isinstance(argument, Option) else ""
            completions[key] = argument.complete
    return completions


def _list_parameters(command: Command) -> list[inspect.Parameter]:
    return list(inspect.signature(command.make, eval_str=True).parameters.values())


def _read_argument(parameter: inspect.Parameter) -> Option | Operand:
    """The `Option` or `Operand` in a parameter's annotation."""
    assert get_origin(parameter.annotation) is Annotated, f"{parameter.name} has no Option"
    argument = get_args(parameter.annotation)[1]
    assert isinstance(argument, Option | Operand)
    return argument


def _translate_signature(command: Command) -> Callable[..., Any]:
    """The function of a command with the annotations of typer."""

    @wraps(command.make)
    def make(**values: Any) -> Any:
        return command.make(**values)

    parameters = [_translate_parameter(parameter) for parameter in _list_parameters(command)]
    # typer reads flags and help from signatures (PEP 362) and docstrings only.
    make.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # PEP 362
    return make


def _translate_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    argument, type_ = _read_argument(parameter), get_args(parameter.annotation)[0]
    offer = None if argument.complete is None else _make_completion(argument.complete)
    meaning = (
        typer.Option(
            argument.flag,
            metavar=argument.metavar,
            help=argument.help,
            autocompletion=offer,
            hidden=argument.hidden,
        )
        if isinstance(argument, Option)
        else typer.Argument(metavar=argument.metavar, autocompletion=offer)
    )
    return parameter.replace(annotation=Annotated[type_, meaning])


def _make_completion(complete: Complete) -> Callable[[typer.Context, str], list[str]]:
    def offer(ctx: typer.Context, incomplete: str) -> list[str]:
        return complete_names(ctx, incomplete, complete)

    return offer


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def answer_question(make: Callable[..., Question]) -> Callable[..., None]:
    """A command that asks the question that `make` makes from its flags, and shows the answer."""

    @connects
    @take_flags("question", make, first=True)
    def command(way: Way, question: Question, json: Json = False) -> None:
        _show_answer(way, question, json)

    return command


def _show_answer(way: Way, question: Question, json: bool) -> None:
    """Ask and show. Raises KafkaformError for what cannot be read, after everything else is
    shown."""
    way.console.show_diagnostics(question.warnings)
    with way.open_session() as session:
        answer = question.read(session)
    if json:
        way.console.write(render_json(answer.document))
    else:
        width = get_terminal_width(way.console)
        way.console.write_lines(render_page(question.page(answer.document), width))
    if answer.fault is not None:
        raise answer.fault


def get_terminal_width(console: Console) -> int | None:
    """The largest width of a table; None for a pipe, where nothing is cut off."""
    return console.width if sys.stdout.isatty() else None
