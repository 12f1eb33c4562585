"""`kafkaform describe`: what a cluster has, with or without a configuration."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from kafkaform_kafka.inspect.configs import CONFIG_ENTITIES, find_unknown
from kafkaform_kafka.inspect.document_page import document_page
from kafkaform_kafka.inspect.documents import describe
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.session import KafkaSession

from ...core.diagnostics import suggest
from ...core.errors import KafkaformError, UsageError
from ...core.value import FrozenMap
from ...provider.contract import Session
from ...render.page import render_page
from ...render.text import inline, render_count, render_json
from ..options.connection import Way, connects
from ..options.variable_order import InOrder
from ..terminal.console import Console

app = typer.Typer(help="Show topics, configs, ACLs, quotas, users, brokers.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Name = Annotated[
    str, typer.Option("--name", metavar="GLOB", help="Only matching names; * stands for any text.")
]


@app.command(cls=InOrder)
@connects
def topics(
    way: Way,
    names: Annotated[list[str] | None, typer.Argument(metavar="TOPIC")] = None,
    name: Name = "*",
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Show each partition's leader and replicas.")
    ] = False,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Show the replicas' bytes on disk.")
    ] = False,
    json: Json = False,
) -> None:
    """List topics with their partitions, replicas and problems."""
    if "" in (names or ()):
        raise UsageError("no topic has an empty name", "`kafkaform describe topics` lists all.")
    wanted = DescribeQuery(name, tuple(names or ()), partitions=partitions, sizes=sizes)
    _show_document(way, "topics", wanted, json=json)


@app.command(cls=InOrder)
@connects
def configs(
    way: Way,
    keys: Annotated[list[str] | None, typer.Argument(metavar="CONFIG")] = None,
    entity_type: Annotated[
        str, typer.Option("--entity-type", metavar="TYPE", help=", ".join(CONFIG_ENTITIES) + ".")
    ] = "topics",
    entity_name: Annotated[
        list[str],
        typer.Option("--entity-name", metavar="NAME", help="Only this entity; '' is the default."),
    ] = [],
    entity_default: Annotated[
        bool, typer.Option("--entity-default", help="The configs that all brokers share.")
    ] = False,
    name: Annotated[
        str,
        typer.Option("--name", metavar="GLOB", help="Only topics, brokers, … with matching names."),
    ] = "*",
    json: Json = False,
) -> None:
    """Show configs with value and source.

    A name can be a glob. Defaults are included. The five columns are those of KIP-248.
    """
    if entity_type not in CONFIG_ENTITIES:
        raise UsageError(
            f"--entity-type {entity_type!r} has no configs to describe",
            suggest(entity_type, CONFIG_ENTITIES)
            or f"It is one of {', '.join(CONFIG_ENTITIES)}. `kafkaform describe quotas` and "
            "`kafkaform describe users` tell of clients and users.",
        )
    if (entity_default or "" in entity_name) and entity_type != "brokers":
        raise UsageError(
            f"--entity-default, or an empty --entity-name, is nothing of {entity_type}",
            "Only brokers have configs that hold for all of them: --entity-type brokers.",
        )
    if entity_default and entity_name:
        raise UsageError("--entity-default stands in the place of --entity-name", "Give one.")
    if name != "*" and (entity_default or entity_name):
        raise UsageError(
            f"--name chooses among all {entity_type}, and --entity-name or --entity-default has "
            "chosen already",
            "Give one of them. Configs are named without a flag: `kafkaform describe configs "
            "retention.ms --entity-name orders`.",
        )
    wanted = DescribeQuery(
        name,
        tuple(dict.fromkeys(entity_name)),
        entity_type=entity_type,
        default=entity_default,
        keys=tuple(dict.fromkeys(keys or ())),
    )
    _show_document(way, "configs", wanted, json=json)


def _refuse_unknown(kind: str, missing: tuple[str, ...]) -> None:
    """Raises UsageError for names of configs that nothing here has."""
    if missing:
        raise UsageError(
            f"{kind} have no config {', '.join(map(inline, missing))}",
            suggest(missing[0], CONFIG_ENTITIES[kind].known())
            or f"What has configs is named with a flag: --entity-name {shlex.quote(missing[0])}.",
        )


@app.command(cls=InOrder)
@connects
def acls(
    way: Way,
    principal: Annotated[
        str, typer.Option("--principal", metavar="GLOB", help="For example User:ci.")
    ] = "*",
    resource_type: Annotated[
        str, typer.Option("--resource-type", metavar="GLOB", help="Topic, Group, Cluster, …")
    ] = "*",
    resource_name: Annotated[
        str, typer.Option("--resource-name", metavar="GLOB", help="Name or prefix.")
    ] = "*",
    operation: Annotated[str, typer.Option("--operation", metavar="GLOB", help="Read, …")] = "*",
    permission: Annotated[
        str, typer.Option("--permission", metavar="GLOB", help="Allow or Deny.")
    ] = "*",
    json: Json = False,
) -> None:
    """List ACLs: who can do what with which resources."""
    asked = {
        "acl_principal": principal,
        "resource_type": resource_type,
        "resource_name": resource_name,
        "acl_operation": operation,
        "acl_permission_type": permission,
    }
    fields = FrozenMap({field: glob for field, glob in asked.items() if glob != "*"})
    _show_document(way, "acls", DescribeQuery(fields=fields), json=json)


@app.command(cls=InOrder)
@connects
def quotas(
    way: Way,
    user: Annotated[str | None, typer.Option("--user", metavar="GLOB")] = None,
    client_id: Annotated[str | None, typer.Option("--client-id", metavar="GLOB")] = None,
    ip: Annotated[str | None, typer.Option("--ip", metavar="GLOB")] = None,
    json: Json = False,
) -> None:
    """List client quotas and the level that each belongs to.

    `default`, or an empty name, stands for the default user, client ID or IP address.
    """
    asked = {"user": user, "client-id": client_id, "ip": ip}
    fields = FrozenMap({part: glob for part, glob in asked.items() if glob is not None})
    _show_document(way, "quotas", DescribeQuery(fields=fields), json=json)


@app.command(cls=InOrder)
@connects
def users(way: Way, name: Name = "*", json: Json = False) -> None:
    """List users with SCRAM credentials: mechanisms and iterations."""
    _show_document(way, "users", DescribeQuery(name), json=json)


@app.command(cls=InOrder)
@connects
def brokers(way: Way, name: Name = "*", json: Json = False) -> None:
    """List brokers with host, rack and fencing."""
    _show_document(way, "brokers", DescribeQuery(name), json=json)


@app.command(cls=InOrder)
@connects
def cluster(way: Way, json: Json = False) -> None:
    """Show the cluster's properties and your rights.

    The properties are its ID, controller and features, and what is known about its authorizer.
    """
    _show_document(way, "cluster", DescribeQuery(), json=json)


def _show_document(way: Way, kind: str, wanted: DescribeQuery, *, json: bool) -> None:
    """Print the document. Raises KafkaformError for what of it cannot be read, or is not there."""
    with way.open_session() as session:
        document = read_document(session, kind, wanted)
    missing = find_unknown(document, wanted.keys) if wanted.keys else ()
    if missing == wanted.keys:
        _refuse_unknown(wanted.entity_type, missing)
    if json:
        way.console.write(render_json(document))
    else:
        way.console.write_lines(
            render_page(document_page(document), get_terminal_width(way.console))
        )
    unread = [entity["name"] for entity in document.get("entities", ()) if entity["error"]]
    if unread:
        raise KafkaformError(
            f"the configs of {render_count(len(unread), 'entity', 'entities')} cannot be read",
            "The answer names the reason for each.",
        )
    _refuse_unknown(wanted.entity_type, missing)


def read_document(session: Session, kind: str, wanted: DescribeQuery) -> FrozenMap:
    """What the cluster tells of this kind. Raises KafkaformError, UsageError for a cluster that
    is not Kafka."""
    if not isinstance(session, KafkaSession):
        raise UsageError("only Kafka clusters can be described", "Choose a kafka provider block.")
    document: FrozenMap = describe(kind, session.context, session.sweep, wanted)
    return document


def get_terminal_width(console: Console) -> int | None:
    """How wide a table may be; a pipe has no width, so that nothing is cut off there."""
    return console.width if sys.stdout.isatty() else None
