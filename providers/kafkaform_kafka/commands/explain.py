"""The commands of `kafkaform explain`: who can do what and which ACL decides, what limits a client,
and where the value of a config comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from kafkaform.core.diagnostics import Diagnostic, Severity, suggest
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.resource import CoverageKind, Depth, Sweep
from kafkaform.core.text import inline
from kafkaform.provider.commands import (
    Answer,
    Ask,
    Command,
    CommandGroup,
    Operand,
    Option,
    Question,
    offer_names,
    offer_words,
)
from kafkaform.provider.contract import Session

from ..inspect.configs import ENTITIES, config_page, explain_config
from ..inspect.explanations import (
    AccessQuery,
    Client,
    access_page,
    build_access,
    explain_access,
    explain_quotas,
    find_principal_fault,
    normalize_host,
    quota_page,
)
from ..kinds.quota import resource_type as quotas
from ..protocol import acl as acls
from ..protocol.broker_rules import plain_name_faults
from ..protocol.config_keys import broker_keys
from ..session import KafkaSession
from .completion import (
    CLIENT_LISTINGS,
    KEYS,
    NAMELESS,
    RESOURCE_LISTINGS,
    complete_entity,
    complete_objects,
    list_addresses,
    list_clients,
    list_groups,
    list_principals,
    list_topics,
    list_users,
    merge_objects,
    read_objects,
)

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


def read_resource(words: Sequence[str]) -> tuple[str, str]:
    """Type and name of the resource that words such as `topic orders` name. Raises UsageError."""
    named = merge_objects(read_objects(words, RESOURCE_LISTINGS), {})
    return _choose_resource({**named, NAMELESS: acls.CLUSTER} if NAMELESS in named else named)


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
        NAMELESS: acls.CLUSTER if cluster else None,
    }
    objects = merge_objects(read_objects(words or (), RESOURCE_LISTINGS), names)
    kind, name = _choose_resource(
        {**objects, NAMELESS: acls.CLUSTER} if NAMELESS in objects else objects
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


# ── quotas ──────────────────────────────────────────────────────────────────────────────


def ask_quota(
    words: Annotated[
        list[str] | None, Operand("[user|client|ip NAME]…", complete_objects(CLIENT_LISTINGS))
    ] = None,
    user: Annotated[
        str | None,
        Option(
            "--user", "The user name, without User:.", "NAME", offer_names(list_users), hidden=True
        ),
    ] = None,
    client_id: Annotated[
        str | None,
        Option(
            "--client-id",
            "The ID that the client sends.",
            "ID",
            offer_names(list_clients),
            hidden=True,
        ),
    ] = None,
    ip: Annotated[
        str | None,
        Option(
            "--ip", "The client's IP address.", "ADDRESS", offer_names(list_addresses), hidden=True
        ),
    ] = None,
) -> Question:
    """Show which quotas limit a client, and who shares them.

    Lists all eight levels, and the level that applies. Limits can depend on the user and on the
    client ID; for one of them alone, the answer is for all that have no limit by name.
    """
    named = read_objects(words or (), CLIENT_LISTINGS)
    entity = merge_objects(named, {"user": user, "client": client_id, "ip": ip})
    user, client_id, ip = (entity.get(kind) for kind in CLIENT_LISTINGS)
    client = _make_client(user, client_id, ip)
    # Quotas name the user without the type of a principal: User:ci is a user whom nobody has.
    doubts = tuple(
        Diagnostic(Severity.WARNING, f"user {inline(text)}", advice=inline(f"{advice}."))
        for text, advice in plain_name_faults(user or "")
    )

    def read(session: Session) -> Answer:
        sweep = session.sweep(quotas.KIND, Depth.FULL)
        if sweep.coverage.fault is not None:
            fault = sweep.coverage.fault
            raise KafkaformError(f"the quotas cannot be read: {fault.message}", fault.advice)
        return Answer(explain_quotas(client, sweep, session.facts))

    return Question(read, quota_page, doubts)


def _make_client(user: str | None, client_id: str | None, ip: str | None) -> Client:
    """The client that the flags mean. Raises UsageError."""
    if user is None and client_id is None and ip is None:
        raise UsageError("no client is named", "Write `user NAME`, `client ID` or `ip ADDRESS`.")
    if "" in (user, ip):
        raise UsageError(
            f"the {'user' if user == '' else 'ip'} is empty, which names the default and no client",
            "Name a client that has no limit of its own to see the defaults, or type "
            "`kafkaform describe quotas user ''`. One without a login is `user ANONYMOUS`.",
        )
    return Client(user, client_id, ip)


# ── configs ─────────────────────────────────────────────────────────────────────────────

_ADVICE = (
    "Write `topic NAME KEY`, `broker ID KEY`, `cluster KEY`, `group NAME KEY` or "
    "`client-metrics NAME KEY`."
)


def _complete_config(words: Sequence[str], ask: Ask) -> Iterable[str]:
    """Complete the words of `explain config`: an entity, its name unless it is the cluster, a
    key."""
    if len(words) == 2:
        return ENTITIES
    entity, names = words[2], words[3:]
    if not names and entity != "cluster":
        return complete_entity(("alter", entity), ask)
    if len(names) > (entity != "cluster"):
        return ()
    keys = broker_keys if entity in ("broker", "cluster") else KEYS.get(entity, tuple)
    return keys()


def ask_config(
    words: Annotated[
        list[str],
        Operand("topic|broker|cluster|group|client-metrics [NAME] KEY", _complete_config),
    ],
) -> Question:
    """Show where a config's value comes from.

    Lists every level that can set the config, and the level that wins.
    """
    entity, name, key = _read_words(words)

    def read(session: Session) -> Answer:
        # The levels are read with requests of their own, which no session of another system has.
        if not isinstance(session, KafkaSession):
            raise UsageError("only Kafka has such configs", "Choose a kafka provider block.")
        return Answer(explain_config(session.context, entity, name, key))

    return Question(read, config_page)


def _read_words(words: list[str]) -> tuple[str, str, str]:
    """What the words name: entity, its name ("" for the cluster) and the key. Raises UsageError."""
    entity, *names = words
    if entity not in ENTITIES:
        raise UsageError(
            f"{entity!r} has no configs to explain", suggest(entity, ENTITIES) or _ADVICE
        )
    if entity == "cluster":
        names = ["", *names]
    if len(names) != 2 or not names[1]:
        raise UsageError(f"explain config {entity} does not say which config", _ADVICE)
    if entity == "broker" and not names[0]:
        entity = "cluster"  # an empty name is the default of all brokers (KIP-248)
    if not names[0] and entity != "cluster":
        raise UsageError(f"no {entity} has an empty name", _ADVICE)
    return entity, names[0], names[1]


GROUP = CommandGroup(
    "kafka",
    "Explain access, quotas and config values.",
    (
        Command("access", ask_access),
        Command("quota", ask_quota),
        Command("config", ask_config),
    ),
)
