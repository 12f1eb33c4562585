"""`kafkaform check`: judge what a live system has by the rules, without a configuration."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from ...core.errors import UsageError
from ...core.finding import CheckedSystem
from ...provider.registry import Registry
from ...render.judgement import make_check_data, make_sarif, render_check
from ...render.text import render_json
from ...workflow.connection import Connection, resolve_every
from ...workflow.judgement import WORDS, check_fail_on, check_system, find_rules, refuse_findings
from ..options.flags import complete_findings
from ..options.provider_commands import Json, Opener, connects

FailOn = Annotated[
    list[str],
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        autocompletion=complete_findings,
        help="Exit with 8 if there are findings of this level (danger, caution), this kind of harm "
        "such as data-loss, or this rule.",
    ),
]
Sarif = Annotated[
    bool, typer.Option("--sarif", help="Print the findings as SARIF 2.1.0, for code scanning.")
]


@connects
def check(opener: Opener, fail_on: FailOn = [], sarif: Sarif = False, json: Json = False) -> None:
    """Judge a live cluster by the rules.

    Shows cautions and dangers of everything that exists. Changes nothing.
    """
    if sarif and json:
        raise UsageError("--sarif and --json exclude each other", "Leave one of them out.")
    # Before anything is read: a wrong word must not cost a whole look at the system.
    conditions = check_fail_on(fail_on, words=WORDS, live=True)
    systems: list[CheckedSystem] = []
    for connection in _list_connections(opener):
        with ExitStack() as stack:
            # A session of the shell stays open for its next commands.
            if opener.shell is None:
                session = connection.open()
                stack.callback(session.close)
            else:
                session = opener.shell.get_session(connection)
            systems.append(check_system(connection.instance, connection.provider, session))
    if sarif:
        opener.console.write(render_json(make_sarif(systems, find_rules(Registry()))))
    elif json:
        opener.console.write(render_json(make_check_data(systems)))
    else:
        opener.console.write_lines(render_check(systems))
    # After the output, so that whoever is refused sees why.
    refuse_findings(systems, conditions)


def _list_connections(opener: Opener) -> tuple[Connection, ...]:
    if opener.inputs.direct:
        return (opener.resolve_connection(),)
    return resolve_every(opener.inputs)
