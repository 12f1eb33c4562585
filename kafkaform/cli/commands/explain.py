"""`kafkaform explain`: why a system treats somebody as it does, and what rules find. It loads the
questions of this command only.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.diagnostics import suggest
from ...core.errors import UsageError
from ...provider.registry import Registry
from ...render.judgement import make_rule_data, render_rule, render_rules
from ...render.text import render_json
from ...workflow.judgement import find_rules
from ..options.flags import NoColor, complete_rules
from ..options.provider_commands import Json, answer_question, make_app
from ..terminal.console import Console

app = make_app("explain", answer_question)


@app.command("rule")
def explain_rule(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", autocompletion=complete_rules)] = None,
    json: Json = False,
    no_color: NoColor = False,
) -> None:
    """Explain a rule, or list all of them.

    Says what it finds, why that is true, and what to do. Needs neither a cluster nor a
    configuration.
    """
    console, rules = Console.make_standard(no_color=no_color), find_rules(Registry())
    if id is None:
        rows = [make_rule_data(rule) for rule in rules.values()]
        console.write_lines([render_json(rows)] if json else render_rules(rules.values()))
        return
    if id not in rules:
        near = suggest(id, rules)
        raise UsageError(
            f"there is no rule {id!r}",
            f"{near + ' ' if near else ''}`kafkaform explain rule` lists the rules.",
        )
    if json:
        console.write(render_json(make_rule_data(rules[id])))
    else:
        console.write_lines(render_rule(rules[id]))
