"""`kafkaform history NAME`: who changed what of an object, when, and what was there before."""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.clock import SystemClock
from ...provider.registry import Registry
from ...render.history import make_history_page
from ...render.text import render_json, render_page
from ...workflow.history import list_words, make_history_document, make_period, read_history
from ...workflow.stores import open_store
from ..options.flags import NoColor, Since, StateFile, Until
from ..options.provider_commands import get_terminal_width
from ..options.tab_names import complete_objects
from ..terminal.console import Console


def history(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS|KIND/NAME",
            autocompletion=complete_objects,
            help="Such as kafka_topic.orders, topic/orders or principal/ci.",
        ),
    ],
    path: Annotated[
        str,
        typer.Option("--path", metavar="PATH", help="Show only this value: retention.ms."),
    ] = "",
    since: Since = None,
    until: Until = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    state: StateFile = None,
    no_color: NoColor = False,
) -> None:
    """Show every change of an object: when, who, which run and commit, and what was there before.

    KIND is topic, acl, quota, user, config, schema, connector or principal, or the name of a type.
    Reads only the state and the audit log, so it also answers for objects that are gone.
    """
    console = Console.make_standard(no_color=no_color)
    period = make_period(since, until, SystemClock().now())
    answer = read_history(open_store(state), name, period, path)
    document = make_history_document(answer)
    if json:
        console.write(render_json(document))
        return
    words = list_words(Registry(), [item.identity for item in answer.objects])
    page = make_history_page(document, words)
    console.write_lines(render_page(page, get_terminal_width(console)))
