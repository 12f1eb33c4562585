"""The commands of `kafkaform describe`: show what a cluster has, without a configuration if
wanted."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.text.display import inline
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer, Command, CommandGroup, Operand, Option, Question
from kafkaform.provider.contract import Session

from ..inspect.configs import is_glob
from ..inspect.document_page import document_page
from ..inspect.documents import read_document
from ..inspect.source import DescribeQuery
from ..protocol.acl import OPERATIONS, PERMISSIONS, RESOURCE_TYPES
from .completion import (
    complete_entity,
    list_addresses,
    list_clients,
    list_principals,
    list_users,
    offer_names,
    offer_words,
)
from .delegation_tokens import ask_delegation_tokens
from .describe_configs import ask_configs
from .describe_groups import ask_groups
from .describe_transactions import ask_transactions
from .explain_access import RESOURCE_LISTINGS, read_resource
from .features import ask_features
from .named_objects import complete_objects, merge_objects, read_objects

CLIENT_PARTS = {"user": "user", "client": "client-id", "ip": "ip"}
"""Kind of whom a quota limits -> its part of the entity."""
CLIENT_LISTINGS = {"user": list_users, "client": list_clients, "ip": list_addresses}
Name = Annotated[
    str,
    Option("--name", "Only matching names; * stands for any text.", "GLOB", complete_entity),
]


def ask_topics(
    names: Annotated[list[str] | None, Operand("TOPIC…", complete_entity)] = None,
    name: Name = "*",
    partitions: Annotated[
        bool, Option("--partitions", "Show each partition's leader and replicas.")
    ] = False,
    sizes: Annotated[bool, Option("--sizes", "Show the replicas' bytes on disk.")] = False,
) -> Question:
    """List topics with partitions, replicas and faults."""
    # A broker would answer with INVALID_TOPIC_EXCEPTION, and `-- "$TOPIC"` of an unset variable is
    # the usual reason.
    if "" in (names or ()):
        raise UsageError("no topic has an empty name", "`kafkaform describe topics` lists all.")
    query = DescribeQuery(name, tuple(names or ()), partitions=partitions, sizes=sizes)
    return ask_document("topics", query)


def ask_acls(
    words: Annotated[
        list[str] | None, Operand("[KIND NAME]", complete_objects(RESOURCE_LISTINGS))
    ] = None,
    principal: Annotated[
        str,
        Option("--principal", "For example User:ci.", "GLOB", offer_names(list_principals)),
    ] = "*",
    resource_type: Annotated[
        str,
        Option("--resource-type", "Topic, Group, Cluster, …", "GLOB", offer_words(RESOURCE_TYPES)),
    ] = "*",
    resource_name: Annotated[str, Option("--resource-name", "Name or prefix.", "GLOB")] = "*",
    operation: Annotated[
        str, Option("--operation", "Read, …", "GLOB", offer_words(OPERATIONS))
    ] = "*",
    permission: Annotated[
        str, Option("--permission", "Allow or Deny.", "GLOB", offer_words(PERMISSIONS))
    ] = "*",
) -> Question:
    """List ACLs: who can do what with which resources.

    `topic NAME`, `group NAME`, `cluster` and the like choose a resource.
    """
    if words:
        if (resource_type, resource_name) != ("*", "*"):
            raise UsageError(
                "a resource excludes --resource-type and --resource-name", "Leave out the flags."
            )
        resource_type, resource_name = read_resource(words)
    filters = {
        "acl_principal": principal,
        "resource_type": resource_type,
        "resource_name": resource_name,
        "acl_operation": operation,
        "acl_permission_type": permission,
    }
    fields = FrozenMap({field: glob for field, glob in filters.items() if glob != "*"})
    return ask_document("acls", DescribeQuery(fields=fields))


def ask_quotas(
    words: Annotated[
        list[str] | None, Operand("[user|client|ip NAME]…", complete_objects(CLIENT_LISTINGS))
    ] = None,
    user: Annotated[
        str | None, Option("--user", None, "GLOB", offer_names(list_users), hidden=True)
    ] = None,
    client_id: Annotated[
        str | None, Option("--client-id", None, "GLOB", offer_names(list_clients), hidden=True)
    ] = None,
    ip: Annotated[
        str | None, Option("--ip", None, "GLOB", offer_names(list_addresses), hidden=True)
    ] = None,
    only: Annotated[
        bool, Option("--only", "Leave out combinations, such as a client of the user.")
    ] = False,
) -> Question:
    """List client quotas with their levels.

    `default`, or an empty name, stands for the default user, client ID or IP address.
    """
    named = read_objects(words or (), CLIENT_LISTINGS)
    if any(name is None for name in named.values()):
        named = {kind: "*" if name is None else name for kind, name in named.items()}
    entity = merge_objects(named, {"user": user, "client": client_id, "ip": ip})
    filters = {field: entity.get(kind) for kind, field in CLIENT_PARTS.items()}
    if only and not any(glob is not None for glob in filters.values()):
        raise UsageError(
            "--only leaves out what is combined with a user, client ID or IP address, and none is "
            "given",
            "Name one, as in `user NAME`; '*' stands for all.",
        )
    fields = FrozenMap({field: glob for field, glob in filters.items() if only or glob is not None})
    return ask_document("quotas", DescribeQuery(fields=fields))


def ask_users(
    names: Annotated[list[str] | None, Operand("NAME…", complete_entity)] = None,
    name: Name = "*",
) -> Question:
    """List users with their SCRAM mechanisms."""
    return _ask_rows("users", "user", "name", names or (), name)


def ask_brokers(
    ids: Annotated[list[str] | None, Operand("ID…", complete_entity)] = None, name: Name = "*"
) -> Question:
    """List brokers with host, rack and fencing."""
    return _ask_rows("brokers", "broker", "id", ids or (), name)


def ask_cluster() -> Question:
    """Show the cluster's properties and your rights.

    The properties are its ID, controller and features, and what is known about its authorizer.
    """
    return ask_document("cluster", DescribeQuery())


# ── answers ─────────────────────────────────────────────────────────────────────────────


def ask_document(kind: str, query: DescribeQuery) -> Question:
    """A question for a document that is either whole or not there."""
    return Question(lambda session: Answer(read_document(session, kind, query)), document_page)


def _ask_rows(
    document_name: str, noun: str, column: str, names: Sequence[str], glob: str
) -> Question:
    """A question for the rows of a document that names or globs choose. A name that is not there is
    an error, after the others are shown."""
    if names and glob != "*":
        raise UsageError("--name and names exclude each other", "Give one of them.")

    def read(session: Session) -> Answer:
        document = read_document(session, document_name, DescribeQuery(glob))
        if not names:
            return Answer(document)
        rows = {str(row[column]): row for row in document[document_name]}
        chosen = tuple(
            row for key, row in rows.items() if any(fnmatchcase(key, name) for name in names)
        )
        missing = [name for name in names if not is_glob(name) and name not in rows]
        fault = (
            KafkaformError(
                f"there is no {noun} {', '.join(map(inline, missing))}",
                suggest(missing[0], rows) or f"`kafkaform describe {document_name}` lists all.",
            )
            if missing
            else None
        )
        return Answer(document.with_items({document_name: chosen}), fault)

    return Question(read, document_page)


GROUP = CommandGroup(
    "Show topics, configs, ACLs, quotas, users, groups, brokers.",
    (
        Command("topics", ask_topics),
        Command("configs", ask_configs),
        Command("acls", ask_acls),
        Command("quotas", ask_quotas),
        Command("users", ask_users),
        Command("delegation-tokens", ask_delegation_tokens),
        Command("brokers", ask_brokers),
        Command("cluster", ask_cluster),
        Command("features", ask_features),
        Command("groups", ask_groups),
        Command("transactions", ask_transactions),
    ),
)
