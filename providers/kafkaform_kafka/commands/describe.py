"""`kafkaform describe groups` and `describe transactions`: what consumers and producers do at the
moment.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.text import Page, inline
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import (
    Answer,
    Command,
    CommandGroup,
    Operand,
    Option,
    Question,
    is_glob,
    offer_names,
    offer_words,
    refuse_missing,
    select_names,
)
from kafkaform.provider.contract import Session

from .. import inspect
from ..inspect.configs import CONFIG_ENTITIES, ENTITY_TYPES, find_unknown, select_own
from ..inspect.document_page import document_page
from ..inspect.documents import open_source, read_document
from ..inspect.source import DescribeQuery
from ..protocol.acl import OPERATIONS, PERMISSIONS, RESOURCE_TYPES
from .commanded import ask_delegation_tokens, ask_features
from .completion import (
    CLIENT_LISTINGS,
    NAMELESS,
    RESOURCE_LISTINGS,
    complete_described_configs,
    complete_entity,
    complete_objects,
    list_active_groups,
    list_addresses,
    list_clients,
    list_principals,
    list_topics,
    list_transactional_ids,
    list_users,
    merge_objects,
    read_objects,
)
from .explain import read_resource

STATES = (
    *("Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance"),  # classic
    *("Assigning", "Reconciling", "NotReady"),  # the newer protocols
)
"""The states of groups (GroupState of Kafka 4.3)."""
TYPES = ("classic", "consumer", "share", "streams")
"""The types of groups (GroupType of Kafka 4.3)."""


Names = Annotated[list[str] | None, Operand("GROUP…", offer_names(list_active_groups))]
GroupName = Annotated[
    str,
    Option(
        "--name",
        "Only matching names; * stands for any text.",
        "GLOB",
        offer_names(list_active_groups),
    ),
]
Topic = Annotated[
    str | None,
    Option(
        "--topic",
        "Only groups that read such a topic, and only what they read of it.",
        "GLOB",
        offer_names(list_topics),
    ),
]


def ask_groups(
    names: Names = None,
    name: GroupName = "*",
    type_: Annotated[
        list[str] | None,
        Option("--type", ", ".join(TYPES) + ".", "TYPE", offer_words(TYPES)),
    ] = None,
    state: Annotated[
        list[str] | None,
        Option("--state", "Stable, Empty, …", "STATE", offer_words(STATES)),
    ] = None,
    topic: Topic = None,
    members: Annotated[
        bool, Option("--members", "Show the members and what they are assigned.")
    ] = False,
    offsets: Annotated[
        bool, Option("--offsets", "Show the offset and lag of each partition.")
    ] = False,
) -> Question:
    """List groups with their state, members and lag.

    If you name groups, their members and offsets are shown, too: with --members or --offsets only
    these. Lags are in records.
    """
    if "" in (names or ()):
        raise UsageError("no group has an empty name", "`kafkaform describe groups` lists all.")
    types = find_words(type_ or (), TYPES, "--type")
    states = find_words(state or (), STATES, "--state")
    everything = bool(names) and not members and not offsets

    def read(session: Session) -> Answer:
        exact = tuple(dict.fromkeys(names or ()))
        details = (members or everything, offsets or everything)
        query = inspect.groups.GroupQuery(name, exact, states, types, topic, *details)
        return inspect.groups.read_groups(open_source(session), query)

    return Question(read, _render_groups)


def find_words(typed: Sequence[str], words: Sequence[str], flag: str) -> tuple[str, ...]:
    """The words that were typed, as Kafka spells them. Raises UsageError for an unknown one."""
    spellings = {word.lower(): word for word in words}
    for text in typed:
        if text.lower() not in spellings:
            raise UsageError(
                f"{flag} {text!r} does not exist",
                suggest(text, words) or f"It is one of {', '.join(words)}.",
            )
    return tuple(dict.fromkeys(spellings[text.lower()] for text in typed))


def _render_groups(document: FrozenMap) -> Page:
    return inspect.groups.groups_page(document)


# ── transactions ────────────────────────────────────────────────────────────────────────


TRANSACTION_STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("PrepareEpochFence", "Dead"),
)
"""The states of transactions (TransactionState of Kafka 4.3)."""
_MINUTE_MS = 60_000


Ids = Annotated[list[str] | None, Operand("ID…", offer_names(list_transactional_ids))]
TransactionalId = Annotated[
    str,
    Option(
        "--name",
        "Only matching ids; * stands for any text.",
        "GLOB",
        offer_names(list_transactional_ids),
    ),
]
WrittenTopic = Annotated[
    str | None,
    Option(
        "--topic",
        "Only transactions with partitions of such a topic.",
        "GLOB",
        offer_names(list_topics),
    ),
]


def ask_transactions(
    ids: Ids = None,
    name: TransactionalId = "*",
    state: Annotated[
        list[str] | None,
        Option("--state", "Ongoing, Empty, …", "STATE", offer_words(TRANSACTION_STATES)),
    ] = None,
    topic: WrittenTopic = None,
    older_than: Annotated[
        int | None,
        Option("--older-than", "Only transactions that are open for longer.", "MINUTES"),
    ] = None,
    hanging: Annotated[
        bool,
        Option("--hanging", "Search partitions for open transactions that nobody will end."),
    ] = False,
) -> Question:
    """List transactional IDs with state and age.

    With --hanging, search the partitions of all topics, or of those that match --topic, for
    transactions that no coordinator will end (KIP-664); --older-than is 15 then if it is not given.
    """
    if "" in (ids or ()):
        raise UsageError(
            "no transactional id is empty", "`kafkaform describe transactions` lists all."
        )
    if older_than is not None and older_than < 0:
        raise UsageError(f"--older-than {older_than} is negative", "Give a number of minutes.")
    states = find_words(state or (), TRANSACTION_STATES, "--state")
    if hanging and (ids or states or name != "*"):
        raise UsageError(
            "--hanging searches partitions, so it excludes ids, --name and --state",
            "Narrow the search with --topic.",
        )
    limit = None if older_than is None else older_than * _MINUTE_MS

    def read(session: Session) -> Answer:
        source = open_source(session)
        if hanging:
            oldest = inspect.transactions.DEFAULT_MS if limit is None else limit
            return inspect.transactions.find_hanging(source, topic or "*", oldest)
        query = inspect.transactions.TransactionQuery(
            name, tuple(dict.fromkeys(ids or ())), states, topic, limit
        )
        return inspect.transactions.read_transactions(source, query)

    return Question(read, _render_hanging if hanging else _render_transactions)


def _render_transactions(document: FrozenMap) -> Page:
    return inspect.transactions.transactions_page(document)


def _render_hanging(document: FrozenMap) -> Page:
    return inspect.transactions.hanging_page(document)


_TYPES = ", ".join(CONFIG_ENTITIES) + "."
_ENTITY_TYPE = Option("--entity-type", _TYPES, "TYPE", offer_words(CONFIG_ENTITIES), hidden=True)
_ENTITY_NAME = Option(
    "--entity-name", "Only this entity; '' is the default.", "NAME", complete_entity, hidden=True
)
_NAME_OPTION = Option(
    "--name",
    "Only topics, brokers, … with matching names.",
    "GLOB",
    complete_entity,
    hidden=True,
)


def ask_configs(
    words: Annotated[
        list[str] | None,
        Operand(
            "[topic|broker|cluster|group|client-metrics] [NAME] [CONFIG…]",
            complete_described_configs,
        ),
    ] = None,
    entity_type: Annotated[str, _ENTITY_TYPE] = "topics",
    entity_name: Annotated[list[str] | None, _ENTITY_NAME] = None,
    entity_default: Annotated[
        bool, Option("--entity-default", "The configs that all brokers share.", hidden=True)
    ] = False,
    name: Annotated[str, _NAME_OPTION] = "*",
) -> Question:
    """Show configs with value and source.

    Names can be globs; without a name, it shows all objects of the kind, without a kind, all
    topics. Defaults are included. The five columns are those of KIP-248.
    """
    if words and words[0] in ENTITY_TYPES:
        if (entity_type, name) != ("topics", "*") or entity_name or entity_default:
            raise UsageError(
                f"`{words[0]}` names what to show, so it excludes --entity-type, --entity-name, "
                "--entity-default and --name",
                "Leave out the flags.",
            )
        return _ask_object_configs(words[0], words[1:])
    named = tuple(dict.fromkeys(entity_name or ()))
    _check_flags(entity_type, named, name, default=entity_default)
    query = DescribeQuery(
        name,
        named,
        entity_type=entity_type,
        default=entity_default,
        keys=tuple(dict.fromkeys(words or ())),
    )
    return Question(partial(_read_configs, query=query), document_page)


def _check_flags(entity_type: str, named: Sequence[str], name: str, *, default: bool) -> None:
    """Raises UsageError for flags that exclude each other, or that this entity type lacks."""
    if entity_type not in CONFIG_ENTITIES:
        raise UsageError(
            f"--entity-type {entity_type!r} has no configs to describe",
            suggest(entity_type, CONFIG_ENTITIES)
            or f"It is one of {', '.join(CONFIG_ENTITIES)}. `kafkaform describe quotas` and "
            "`kafkaform describe users` show clients and users.",
        )
    if (default or "" in named) and entity_type != "brokers":
        raise UsageError(
            f"{entity_type} have no default entity (--entity-default, or an empty --entity-name)",
            "Only brokers have configs that apply to all: `kafkaform describe configs cluster`.",
        )
    if default and named:
        raise UsageError(
            "--entity-default and --entity-name exclude each other", "Give one of them."
        )
    if name != "*" and (default or named):
        raise UsageError(
            f"--name selects among all {entity_type}, so it excludes --entity-name and "
            "--entity-default",
            "Give one of them. Configs follow the name of the object: `kafkaform describe configs "
            "topic orders retention.ms`.",
        )


def _ask_object_configs(kind: str, words: Sequence[str]) -> Question:
    """The question for the configs of the objects that `topic orders retention.ms` and its like
    name."""
    entity_type, default = ENTITY_TYPES[kind], kind == NAMELESS
    name, keys = ("*", words) if default else ((*words, "*")[0], words[1:])
    if name == "":
        if entity_type != "brokers":
            raise UsageError(
                f"no {kind} has an empty name", f"`kafkaform describe configs {kind}` shows all."
            )
        default = True
    exact = () if default or is_glob(name) else (name,)
    query = DescribeQuery(
        "*" if default or exact else name,
        exact,
        entity_type=entity_type,
        default=default,
        keys=tuple(dict.fromkeys(keys)),
    )
    return Question(partial(_read_configs, query=query), document_page)


def ask_own_configs(query: DescribeQuery) -> Question:
    """A question for configs. The page shows those that are set on the entities themselves."""
    return Question(partial(_read_configs, query=query), _own_configs_page)


def _read_configs(session: Session, query: DescribeQuery) -> Answer:
    document = read_document(session, "configs", query)
    # A config that nothing here has is a typing error: with only such names there is nothing to
    # show.
    missing = find_unknown(document, query.keys) if query.keys else ()
    if missing and missing == query.keys:
        raise _make_unknown_error(query.entity_type, missing)
    unread = sum(entity["error"] is not None for entity in document["entities"])
    if unread:
        amount = f"{unread:,} {'entity' if unread == 1 else 'entities'}"
        fault = KafkaformError(
            f"the configs of {amount} cannot be read", "The answer names the reason for each."
        )
        return Answer(document, fault)
    return Answer(document, _make_unknown_error(query.entity_type, missing) if missing else None)


def _make_unknown_error(kind: str, missing: tuple[str, ...]) -> UsageError:
    """The error for names of configs that no entity here has."""
    keys = CONFIG_ENTITIES[kind].known()
    near = {name: text for name in missing if (text := suggest(name, keys))}
    advice = [text if len(missing) == 1 else f"{inline(n)}: {text}" for n, text in near.items()]
    return UsageError(
        f"{kind} have no config {', '.join(map(inline, missing))}",
        " ".join(advice)
        or f"`kafkaform describe configs {_name_kind(kind)} {shlex.quote(missing[0])}` shows the "
        "configs of one object.",
    )


def _own_configs_page(document: FrozenMap) -> Page:
    """The page of the configs that are set on each entity itself, and how to see all."""
    # A broker has hundreds of configs, and after an `alter` one of them is of interest.
    own = select_own(document)
    yield from document_page(own)
    if own != document:
        kind, names = document["entity_type"], [e["name"] for e in document["entities"]]
        if len(names) > 1:
            flags = " ".join(f"--entity-name {shlex.quote(name)}" for name in names)
            words = f"--entity-type {kind} {flags}"
        else:
            words = f"{_name_kind(kind)} {shlex.quote(names[0])}" if names[0] else NAMELESS
        yield f"All of them: `kafkaform describe configs {words}`."


def _name_kind(entity_type: str) -> str:
    """`topic` for `topics`."""
    return next(kind for kind, type_ in ENTITY_TYPES.items() if type_ == entity_type)


CLIENT_PARTS = {"user": "user", "client": "client-id", "ip": "ip"}
"""Kind of whom a quota limits -> its part of the entity."""
Name = Annotated[
    str,
    Option("--name", "Only matching names; * stands for any text.", "GLOB", complete_entity),
]


# ── the other commands ──────────────────────────────────────────────────────────────────


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
    ids: Annotated[list[str] | None, Operand("ID…", complete_entity)] = None,
    name: Name = "*",
    disks: Annotated[
        bool, Option("--disks", "Show their disks: use, growth, when they are full.")
    ] = False,
) -> Question:
    """List brokers with host, rack and fencing."""
    return _ask_rows("brokers", "broker", "id", ids or (), name, disks=disks)


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
    document_name: str,
    noun: str,
    column: str,
    names: Sequence[str],
    glob: str,
    *,
    disks: bool = False,
) -> Question:
    """A question for the rows of a document that names or globs choose. A name that is not there is
    an error, after the others are shown."""
    if names and glob != "*":
        raise UsageError("--name and names exclude each other", "Give one of them.")

    def read(session: Session) -> Answer:
        document = read_document(session, document_name, DescribeQuery(glob, disks=disks))
        if not names:
            return Answer(document)
        rows = {str(row[column]): row for row in document[document_name]}
        chosen = tuple(rows[key] for key in select_names(rows, names))
        fault = refuse_missing(rows, names, noun, document_name)
        return Answer(document.with_items({document_name: chosen}), fault)

    return Question(read, document_page)


GROUP = CommandGroup(
    "kafka",
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
