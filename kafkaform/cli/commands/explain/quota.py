"""`kafkaform explain quota`: which limits a client has, level by level."""

from __future__ import annotations

from typing import Annotated

import typer

from kafkaform_kafka.inspect.quota_explanation import Client, explain_quotas
from kafkaform_kafka.inspect.quota_page import quota_page
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.protocol.broker_rules import plain_name_faults

from ....core.diagnostics import Diagnostic, Severity
from ....core.errors import KafkaformError, UsageError
from ....core.resource import Depth
from ....render.page import render_page
from ....render.text import inline, render_json
from ...options.connection import Way, connects
from ..describe import get_terminal_width

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@connects
def quota(
    way: Way,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="The user name, without User:.")
    ] = None,
    client_id: Annotated[
        str | None, typer.Option("--client-id", metavar="ID", help="The ID that the client sends.")
    ] = None,
    ip: Annotated[
        str | None, typer.Option("--ip", metavar="ADDRESS", help="The client's IP address.")
    ] = None,
    json: Json = False,
) -> None:
    """Show which quotas limit a client, and who shares them.

    Lists all eight levels, and the level that applies.
    """
    client = _make_client(user, client_id, ip)
    way.console.show_diagnostics(
        tuple(
            Diagnostic(Severity.WARNING, f"--user {inline(text)}", advice=inline(f"{advice}."))
            for text, advice in plain_name_faults(user or "")
        )
    )
    with way.open_session() as session:
        sweep, facts = session.sweep(quotas.KIND, Depth.FULL), session.facts
    if sweep.coverage.fault is not None:
        fault = sweep.coverage.fault
        raise KafkaformError(f"the quotas cannot be read: {fault.message}", fault.advice)
    document = explain_quotas(client, sweep, facts)
    if json:
        way.console.write(render_json(document))
    else:
        way.console.write_lines(render_page(quota_page(document), get_terminal_width(way.console)))


def _make_client(user: str | None, client_id: str | None, ip: str | None) -> Client:
    """Whom the flags mean. Raises UsageError."""
    if (user is None) != (client_id is None):
        raise UsageError(
            "--user and --client-id go together: limits depend on both",
            "A client without a name of its own is --client-id '', one without a login "
            "--user ANONYMOUS.",
        )
    if user is None and ip is None:
        raise UsageError("nobody is asked about", "Give --user and --client-id, or --ip.")
    if "" in (user, ip):
        raise UsageError(
            f"{'--user' if user == '' else '--ip'} is empty, and a client is asked about",
            "Name a client that has no limit of its own to see the defaults, or type "
            "`kafkaform describe quotas --user ''`. One without a login is --user ANONYMOUS.",
        )
    return Client(user, client_id, ip)
