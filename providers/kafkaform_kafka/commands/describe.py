"""The commands of `kafkaform describe`: show what a cluster has, without a configuration if
wanted."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Annotated

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.text.foreign import inline
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer, Command, CommandGroup, Operand, Option, Question
from kafkaform.provider.contract import Session
from kafkaform.provider.page import Page

from ..inspect.configs import CONFIG_ENTITIES, find_unknown, select_own
from ..inspect.document_page import document_page
from ..inspect.documents import read_document
from ..inspect.source import DescribeQuery
from ..kinds.acl.resource_type import OPERATIONS, PERMISSIONS, RESOURCE_TYPES
from .completion import (
    complete_described_configs,
    complete_entity,
    list_addresses,
    list_clients,
    list_principals,
    list_users,
    offer_names,
    offer_words,
)
from .delegation_tokens import ask_delegation_tokens
from .describe_groups import ask_groups
from .describe_transactions import ask_transactions
from .features import ask_features

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
    wanted = DescribeQuery(name, tuple(names or ()), partitions=partitions, sizes=sizes)
    return ask_document("topics", wanted)


def ask_configs(
    keys: Annotated[list[str] | None, Operand("CONFIG…", complete_described_configs)] = None,
    entity_type: Annotated[
        str,
        Option(
            "--entity-type",
            ", ".join(CONFIG_ENTITIES) + ".",
            "TYPE",
            offer_words(CONFIG_ENTITIES),
        ),
    ] = "topics",
    entity_name: Annotated[
        list[str] | None,
        Option("--entity-name", "Only this entity; '' is the default.", "NAME", complete_entity),
    ] = None,
    entity_default: Annotated[
        bool, Option("--entity-default", "The configs that all brokers share.")
    ] = False,
    name: Annotated[
        str,
        Option("--name", "Only topics, brokers, … with matching names.", "GLOB", complete_entity),
    ] = "*",
) -> Question:
    """Show configs with value and source.

    A name can be a glob. Defaults are included. The five columns are those of KIP-248.
    """
    if entity_type not in CONFIG_ENTITIES:
        raise UsageError(
            f"--entity-type {entity_type!r} has no configs to describe",
            suggest(entity_type, CONFIG_ENTITIES)
            or f"It is one of {', '.join(CONFIG_ENTITIES)}. `kafkaform describe quotas` and "
            "`kafkaform describe users` show clients and users.",
        )
    named = tuple(dict.fromkeys(entity_name or ()))
    if (entity_default or "" in named) and entity_type != "brokers":
        raise UsageError(
            f"{entity_type} have no default entity (--entity-default, or an empty --entity-name)",
            "Only brokers have configs that apply to all of them: --entity-type brokers.",
        )
    if entity_default and named:
        raise UsageError(
            "--entity-default and --entity-name exclude each other", "Give one of them."
        )
    if name != "*" and (entity_default or named):
        raise UsageError(
            f"--name selects among all {entity_type}, so it excludes --entity-name and "
            "--entity-default",
            "Give one of them. Configs are named without a flag: `kafkaform describe configs "
            "retention.ms --entity-name orders`.",
        )
    wanted = DescribeQuery(
        name,
        named,
        entity_type=entity_type,
        default=entity_default,
        keys=tuple(dict.fromkeys(keys or ())),
    )
    return Question(partial(_read_configs, wanted=wanted), document_page)


def ask_acls(
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
    """List ACLs: who can do what with which resources."""
    asked = {
        "acl_principal": principal,
        "resource_type": resource_type,
        "resource_name": resource_name,
        "acl_operation": operation,
        "acl_permission_type": permission,
    }
    fields = FrozenMap({field: glob for field, glob in asked.items() if glob != "*"})
    return ask_document("acls", DescribeQuery(fields=fields))


def ask_quotas(
    user: Annotated[str | None, Option("--user", None, "GLOB", offer_names(list_users))] = None,
    client_id: Annotated[
        str | None, Option("--client-id", None, "GLOB", offer_names(list_clients))
    ] = None,
    ip: Annotated[str | None, Option("--ip", None, "GLOB", offer_names(list_addresses))] = None,
    only: Annotated[
        bool, Option("--only", "Leave out combinations, such as a client of the user.")
    ] = False,
) -> Question:
    """List client quotas with their levels.

    `default`, or an empty name, stands for the default user, client ID or IP address.
    """
    asked = {"user": user, "client-id": client_id, "ip": ip}
    if only and not any(glob is not None for glob in asked.values()):
        raise UsageError(
            "--only leaves out what is combined with a user, client ID or IP address, and none is "
            "given",
            "Give --user, --client-id or --ip; '*' stands for all.",
        )
    fields = FrozenMap({part: glob for part, glob in asked.items() if only or glob is not None})
    return ask_document("quotas", DescribeQuery(fields=fields))


def ask_users(name: Name = "*") -> Question:
    """List users with their SCRAM mechanisms."""
    return ask_document("users", DescribeQuery(name))


def ask_brokers(name: Name = "*") -> Question:
    """List brokers with host, rack and fencing."""
    return ask_document("brokers", DescribeQuery(name))


def ask_cluster() -> Question:
    """Show the cluster's properties and your rights.

    The properties are its ID, controller and features, and what is known about its authorizer.
    """
    return ask_document("cluster", DescribeQuery())


# ── answers ─────────────────────────────────────────────────────────────────────────────


def ask_document(kind: str, wanted: DescribeQuery) -> Question:
    """A question for a document that is either whole or not there."""
    return Question(lambda session: Answer(read_document(session, kind, wanted)), document_page)


def ask_own_configs(wanted: DescribeQuery) -> Question:
    """A question for configs. The page shows those that are set on the entities themselves."""
    return Question(partial(_read_configs, wanted=wanted), _own_configs_page)


def _read_configs(session: Session, wanted: DescribeQuery) -> Answer:
    document = read_document(session, "configs", wanted)
    # A config that nothing here has is a typing error: with only such names there is nothing to
    # show.
    missing = find_unknown(document, wanted.keys) if wanted.keys else ()
    if missing and missing == wanted.keys:
        raise _make_unknown_error(wanted.entity_type, missing)
    unread = sum(entity["error"] is not None for entity in document["entities"])
    if unread:
        what = f"{unread:,} {'entity' if unread == 1 else 'entities'}"
        fault = KafkaformError(
            f"the configs of {what} cannot be read", "The answer names the reason for each."
        )
        return Answer(document, fault)
    return Answer(document, _make_unknown_error(wanted.entity_type, missing) if missing else None)


def _make_unknown_error(kind: str, missing: tuple[str, ...]) -> UsageError:
    """The error for names of configs that no entity here has."""
    known = CONFIG_ENTITIES[kind].known()
    near = {name: text for name in missing if (text := suggest(name, known))}
    advice = [text if len(missing) == 1 else f"{inline(n)}: {text}" for n, text in near.items()]
    return UsageError(
        f"{kind} have no config {', '.join(map(inline, missing))}",
        " ".join(advice)
        or f"Entities are named with a flag: --entity-name {shlex.quote(missing[0])}.",
    )


def _own_configs_page(document: FrozenMap) -> Page:
    """The page of the configs that are set on each entity itself, and how to see all."""
    # A broker has hundreds of configs, and after an `alter` one of them is of interest.
    own = select_own(document)
    yield from document_page(own)
    if own != document:
        names = " ".join(f"--entity-name {shlex.quote(e['name'])}" for e in document["entities"])
        kind = document["entity_type"]
        yield f"All of them: `kafkaform describe configs --entity-type {kind} {names}`."


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
