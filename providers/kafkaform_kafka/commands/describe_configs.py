"""`kafkaform describe configs`: the configs of topics, brokers, groups and subscriptions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.text.display import inline
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer, Operand, Option, Question
from kafkaform.provider.contract import Session
from kafkaform.provider.page import Page

from ..inspect.configs import CONFIG_ENTITIES, ENTITY_TYPES, find_unknown, is_glob, select_own
from ..inspect.document_page import document_page
from ..inspect.documents import read_document
from ..inspect.source import DescribeQuery
from .completion import complete_described_configs, complete_entity, offer_words
from .named_objects import NAMELESS

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
