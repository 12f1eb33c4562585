"""`kafkaform explain config`: where the value of a config comes from, level by level."""

from __future__ import annotations

from typing import Annotated

import typer

from kafkaform_kafka.inspect.config_explanation import ENTITIES, explain_config
from kafkaform_kafka.inspect.config_page import config_page
from kafkaform_kafka.session import KafkaSession

from ....core.diagnostics import suggest
from ....core.errors import UsageError
from ....render.page import render_page
from ....render.text import render_json
from ...options.connection import Way, connects
from ..describe import get_terminal_width

_ADVICE = (
    "Write `topic NAME KEY`, `broker ID KEY`, `cluster KEY`, `group NAME KEY` or "
    "`client-metrics NAME KEY`."
)


@connects
def config(
    way: Way,
    words: Annotated[
        list[str], typer.Argument(metavar="topic|broker|cluster|group|client-metrics [NAME] KEY")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show where a config's value comes from.

    Lists every level that can set the config, and the level that wins.
    """
    entity, name, key = _read_words(words)
    with way.open_session() as session:
        if not isinstance(session, KafkaSession):
            raise UsageError("only Kafka has such configs", "Choose a kafka provider block.")
        document = explain_config(session.context, entity, name, key)
    if json:
        way.console.write(render_json(document))
    else:
        way.console.write_lines(render_page(config_page(document), get_terminal_width(way.console)))


def _read_words(words: list[str]) -> tuple[str, str, str]:
    """What the words name: entity, its name ("" for the cluster) and the key. Raises UsageError."""
    entity, *rest = words
    if entity not in ENTITIES:
        raise UsageError(
            f"{entity!r} has no configs to explain", suggest(entity, ENTITIES) or _ADVICE
        )
    if entity == "cluster":
        rest = ["", *rest]
    if len(rest) != 2 or not rest[1]:
        raise UsageError(f"explain config {entity} does not say which config", _ADVICE)
    if entity == "broker" and not rest[0]:
        entity = "cluster"  # an empty name is the default of all brokers (KIP-248)
    if not rest[0] and entity != "cluster":
        raise UsageError(f"no {entity} has an empty name", _ADVICE)
    return entity, rest[0], rest[1]
