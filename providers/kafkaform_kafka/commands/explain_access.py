"""The command `kafkaform explain access`: who can do something, and which ACL decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.resource import CoverageKind, Depth, Sweep
from kafkaform.provider.commands import (
    Answer,
    NameListing,
    Operand,
    Option,
    Question,
    offer_names,
    offer_words,
)
from kafkaform.provider.contract import Session

from ..inspect.access import (
    AccessQuery,
    access_page,
    build_access,
    explain_access,
    find_principal_fault,
    normalize_host,
)
from ..protocol import acl as acls
from .completion import (
    complete_objects,
    list_groups,
    list_principals,
    list_tokens,
    list_topics,
    list_transactional_ids,
    merge_objects,
    read_objects,
)

CLUSTER = "cluster"
RESOURCES = {
    "topic": "Topic",
    "group": "Group",
    "transactional-id": "TransactionalID",
    "delegation-token": "DelegationToken",
    "user-principal": "User",
}
"""Flag -> resource type. The flags are those of kafka-acls.sh."""


Principal = Annotated[
    str | None,
    Option(
        "--principal",
        "Default: list every principal that can.",
        "TYPE:NAME",
        offer_names(list_principals),
    ),
]
Operation = Annotated[
    list[str] | None,
    Option("--operation", "Default: all operations.", "NAME", offer_words(acls.OPERATIONS)),
]
Topic = Annotated[
    str | None, Option("--topic", None, "NAME", offer_names(list_topics), hidden=True)
]
Group = Annotated[
    str | None, Option("--group", None, "NAME", offer_names(list_groups), hidden=True)
]
TransactionalId = Annotated[str | None, Option("--transactional-id", None, "NAME", hidden=True)]
DelegationToken = Annotated[str | None, Option("--delegation-token", None, "NAME", hidden=True)]
UserPrincipal = Annotated[
    str | None, Option("--user-principal", None, "NAME", offer_names(list_principals), hidden=True)
]
Cluster = Annotated[bool, Option("--cluster", "Explain access to the cluster itself.", hidden=True)]
Host = Annotated[str | None, Option("--host", "The client's IP address.", "ADDRESS")]
SuperUser = Annotated[
    list[str] | None,
    Option(
        "--super-user", "A super user of the brokers.", "TYPE:NAME", offer_names(list_principals)
    ),
]
AllowIfNoAcl = Annotated[
    bool | None,
    Option(
        "--allow-if-no-acl/--no-allow-if-no-acl",
        "The brokers' value of allow.everyone.if.no.acl.found.",
    ),
]


RESOURCE_LISTINGS: Mapping[str, NameListing | None] = {
    "topic": list_topics,
    "group": list_groups,
    "transactional-id": list_transactional_ids,
    "delegation-token": list_tokens,
    "user-principal": list_principals,
    CLUSTER: None,
}
"""Kind of resource -> what lists the names that there are."""


def read_resource(words: Sequence[str]) -> tuple[str, str]:
    """Type and name of the resource that words such as `topic orders` name. Raises UsageError."""
    named = merge_objects(read_objects(words, RESOURCE_LISTINGS), {})
    return _choose_resource({**named, CLUSTER: acls.CLUSTER} if CLUSTER in named else named)


def ask_access(
    words: Annotated[
        list[str] | None, Operand("[KIND NAME]", complete_objects(RESOURCE_LISTINGS))
    ] = None,
    principal: Principal = None,
    operation: Operation = None,
    topic: Topic = None,
    group: Group = None,
    transactional_id: TransactionalId = None,
    delegation_token: DelegationToken = None,
    user_principal: UserPrincipal = None,
    cluster: Cluster = False,
    host: Host = None,
    super_user: SuperUser = None,
    allow_if_no_acl: AllowIfNoAcl = None,
) -> Question:
    """Show who can do what with a resource, and which ACL decides.

    The resource is `topic NAME`, `group NAME`, `transactional-id NAME`, `delegation-token NAME`,
    `user-principal NAME` or `cluster`.

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
    objects = merge_objects(read_objects(words or (), RESOURCE_LISTINGS), names)
    kind, name = _choose_resource(
        {**objects, CLUSTER: acls.CLUSTER} if CLUSTER in objects else objects
    )
    for principal_name in super_user or ():
        _check_principal("--super-user", principal_name)
    query = AccessQuery(
        kind,
        name,
        _read_operations(kind, operation or ()),
        _check_principal("--principal", principal),
        _check_host(host),
    )

    def read(session: Session) -> Answer:
        # Brokers report neither super users nor allow.everyone.if.no.acl.found, so the flags can
        # say them for this question; without a flag the provider block does.
        facts = session.facts
        access = build_access(_read_acls(session), facts, super_user or None, allow_if_no_acl)
        return Answer(explain_access(access, query, facts.scope_id))

    return Question(read, access_page)


def _read_acls(session: Session) -> Sweep:
    """All ACLs. Raises KafkaformError."""
    # Of all ACLs or none: a DENY that is missing from a part of them would turn the answer round.
    sweep = session.sweep(acls.KIND, Depth.FULL)
    if sweep.coverage.kind is not CoverageKind.COMPLETE:
        fault = sweep.coverage.fault
        raise KafkaformError(
            "the ACLs cannot be read" + (f": {fault.message}" if fault else ""),
            fault.advice if fault else "",
        )
    return sweep


def _choose_resource(names: Mapping[str, str | None]) -> tuple[str, str]:
    """Type and name of the resource that the flags name. Raises UsageError."""
    named = {kind: name for kind, name in names.items() if name is not None}
    if len(named) != 1:
        flags = ", ".join(named) or "no resource"
        listed = ", ".join(RESOURCE_LISTINGS)
        raise UsageError(
            f"{flags}: exactly one resource is needed",
            f"Write its kind and its name, such as `topic NAME`; the kinds are {listed}.",
        )
    ((kind, name),) = named.items()
    if not name:
        raise UsageError(f"the name of the {kind} is empty", "Name one.")
    return RESOURCES.get(kind, "Cluster"), name


def _read_operations(kind: str, operations: Sequence[str]) -> tuple[str, ...]:
    """The operations as ACLs spell them; without any, all that a resource of this type has."""
    spellings = {name.lower(): name for name in acls.SUPPORTED[kind]}
    for name in operations:
        if name.lower() not in spellings:
            listed = f"It is one of {', '.join(acls.SUPPORTED[kind])}."
            raise UsageError(
                f"--operation {name!r} does not exist for resources of type {kind}",
                suggest(name, acls.SUPPORTED[kind]) or listed,
            )
    return tuple(spellings[name.lower()] for name in operations) or acls.SUPPORTED[kind]


def _check_principal(flag: str, principal: str | None) -> str | None:
    fault = None if principal is None else find_principal_fault(principal)
    if fault is not None:
        raise UsageError(f"{flag} {principal!r} {fault[0]}", fault[1])
    return principal


def _check_host(host: str | None) -> str | None:
    try:
        return None if host is None else normalize_host(host)
    except ValueError:
        raise UsageError(
            f"--host {host!r} is not an IP address",
            "Kafka compares ACLs with the client's address, never with its name.",
        ) from None
