"""`kafkaform explain access`: may somebody do something, which ACL decides, and who else may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from kafkaform_kafka.inspect.access_explanation import (
    AccessQuery,
    build_access,
    explain_access,
    normalize_host,
)
from kafkaform_kafka.inspect.access_page import access_page
from kafkaform_kafka.kinds.acl import resource_type as acls

from ....core.diagnostics import suggest
from ....core.errors import KafkaformError, UsageError
from ....core.resource import CoverageKind, Depth, Facts, Sweep
from ....render.page import render_page
from ....render.text import render_json
from ...options.connection import Way, connects
from ..describe import get_terminal_width

CLUSTER = "cluster"
RESOURCES = {
    "topic": "Topic",
    "group": "Group",
    "transactional-id": "TransactionalID",
    "delegation-token": "DelegationToken",
    "user-principal": "User",
}
"""Flag -> resource type, as Kafka's own ACL tool has them."""


Name = Annotated[str | None, typer.Option(metavar="NAME")]
Principal = Annotated[
    str | None,
    typer.Option(
        "--principal", metavar="TYPE:NAME", help="Default: list every principal that can."
    ),
]
Operation = Annotated[
    list[str], typer.Option("--operation", metavar="NAME", help="Default: all operations.")
]
Host = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="The client's IP address.")
]
SuperUser = Annotated[
    list[str],
    typer.Option("--super-user", metavar="TYPE:NAME", help="A super user of the brokers."),
]
AllowIfNoAcl = Annotated[
    bool | None,
    typer.Option(
        "--allow-if-no-acl/--no-allow-if-no-acl",
        help="The brokers' value of allow.everyone.if.no.acl.found.",
    ),
]


@connects
def access(
    way: Way,
    principal: Principal = None,
    operation: Operation = [],
    topic: Name = None,
    group: Name = None,
    transactional_id: Name = None,
    delegation_token: Name = None,
    user_principal: Name = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Explain access to the cluster itself.")
    ] = False,
    host: Host = None,
    super_user: SuperUser = [],
    allow_if_no_acl: AllowIfNoAcl = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show who can do what with a resource, and which ACL decides.

    The output names what is unknown, for example the brokers' super users if nothing declares them.
    """
    names = {
        "topic": topic,
        "group": group,
        "transactional-id": transactional_id,
        "delegation-token": delegation_token,
        "user-principal": user_principal,
        CLUSTER: acls.CLUSTER if cluster else None,
    }
    kind, name = _choose_resource(names)
    wanted = AccessQuery(
        kind,
        name,
        _read_operations(kind, operation),
        _check_principal(principal),
        _check_host(host),
    )
    sweep, facts = _read_acls(way)
    known = build_access(sweep, facts, super_user or None, allow_if_no_acl)
    document = explain_access(known, wanted, facts.scope_id)
    if json:
        way.console.write(render_json(document))
    else:
        way.console.write_lines(render_page(access_page(document), get_terminal_width(way.console)))


def _read_acls(way: Way) -> tuple[Sweep, Facts]:
    """All ACLs, and what is declared of the authorizer. Raises KafkaformError."""
    with way.open_session() as session:
        sweep, facts = session.sweep(acls.KIND, Depth.FULL), session.facts
    if sweep.coverage.kind is not CoverageKind.COMPLETE:
        fault = sweep.coverage.fault
        raise KafkaformError(
            "the ACLs cannot be read" + (f": {fault.message}" if fault else ""),
            fault.advice if fault else "",
        )
    return sweep, facts


def _choose_resource(names: dict[str, str | None]) -> tuple[str, str]:
    """Type and name of the one resource that is asked about. Raises UsageError."""
    given = {flag: name for flag, name in names.items() if name is not None}
    if len(given) != 1:
        flags = ", ".join(f"--{flag}" for flag in given) or "no resource"
        listed = ", ".join(f"--{flag}" for flag in names)
        raise UsageError(f"{flags}: exactly one resource is asked about", f"Give one of {listed}.")
    ((flag, name),) = given.items()
    if not name:
        raise UsageError(f"--{flag} is empty", "Name one.")
    return RESOURCES.get(flag, "Cluster"), name


def _read_operations(kind: str, given: Sequence[str]) -> tuple[str, ...]:
    """The operations as ACLs spell them, all of the resource's if none is given."""
    known = {name.lower(): name for name in acls.SUPPORTED[kind]}
    for name in given:
        if name.lower() not in known:
            listed = f"It is one of {', '.join(acls.SUPPORTED[kind])}."
            raise UsageError(
                f"--operation {name!r} is never asked of a {kind}",
                suggest(name, acls.SUPPORTED[kind]) or listed,
            )
    return tuple(known[name.lower()] for name in given) or acls.SUPPORTED[kind]


def _check_principal(given: str | None) -> str | None:
    kind, colon, name = (given or "").partition(":")
    if given is not None and not colon:
        raise UsageError(f"--principal {given!r} has no type", f"Write User:{given or 'NAME'}.")
    if given is not None and not (kind and name):
        raise UsageError(f"--principal {given!r} is no principal", "Write User:NAME.")
    return given


def _check_host(given: str | None) -> str | None:
    try:
        return None if given is None else normalize_host(given)
    except ValueError:
        raise UsageError(
            f"--host {given!r} is not an IP address",
            "Kafka compares ACLs with the client's address, never with its name.",
        ) from None
