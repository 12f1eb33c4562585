"""Ask the questions of `describe` and `explain`, and show the answers as text or JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from ...provider.commands import Question
from ...render.text import render_json, render_page
from ..options.connection import Way, connects
from ..options.flag_groups import take_flags
from ..terminal.console import Console

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
