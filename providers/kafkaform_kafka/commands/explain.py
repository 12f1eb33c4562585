"""The commands of `kafkaform explain`: who can do what, what limits a client, and where the value
of a config comes from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from kafkaform.core.diagnostics import Diagnostic, Severity, suggest
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.resource import Depth
from kafkaform.core.text.display import inline
from kafkaform.provider.commands import (
    Answer,
    Ask,
    Command,
    CommandGroup,
    Operand,
    Option,
    Question,
    offer_names,
)
from kafkaform.provider.contract import Session

from ..inspect.configs import ENTITIES, config_page, explain_config
from ..inspect.quotas import Client, explain_quotas, quota_page
from ..kinds.quota import resource_type as quotas
from ..protocol.broker_rules import plain_name_faults
from ..protocol.config_keys import broker_keys
from ..session import KafkaSession
from .completion import (
    KEYS,
    complete_entity,
    complete_objects,
    list_addresses,
    list_clients,
    list_users,
    merge_objects,
    read_objects,
)
from .describe import CLIENT_LISTINGS
from .explain_access import ask_access

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
