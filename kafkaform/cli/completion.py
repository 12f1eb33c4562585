"""Completion in the shell: commands, flags, and names as the cluster has them now."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

from msgspec import Struct, field
from typer.core import TyperGroup

from kafkaform_kafka.inspect.config_explanation import ENTITIES
from kafkaform_kafka.inspect.configs import CONFIG_ENTITIES
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.kinds.acl.resource_type import OPERATIONS, PERMISSIONS, RESOURCE_TYPES
from kafkaform_kafka.kinds.quota.keys import QUOTA_KEYS
from kafkaform_kafka.kinds.user.resource_type import MECHANISMS
from kafkaform_kafka.protocol.broker_keys import UpdateMode, broker_keys
from kafkaform_kafka.protocol.config_keys import GROUP_KEYS, METRICS_KEYS, TOPIC_KEYS

from ..core.errors import KafkaformError
from ..core.value import FrozenMap
from .command_tree import get_commands
from .commands import COMMANDS
from .commands.describe import read_document
from .options.connection import ShellContext, Way
from .options.kafka_tools import ALTERED, DEFAULT, NAME, REDUNDANT, TYPE
from .terminal.console import Console

OFFERED = tuple(
    name for name in ("describe", "explain", "plan", "alter", "version") if name in COMMANDS
)
"""The commands of the shell."""
LEAVE = ("exit", "quit")

FRESH_SECONDS = 15.0
_EDITS = ("--add-config", "--delete-config")
_PLAIN = re.compile(r"[!%+,./:=@^\w-]+")
"""Names that a line can hold without quotes; others are not offered."""

_AT_ONCE = (UpdateMode.BROKER, UpdateMode.CLUSTER)

OPERANDS: Mapping[tuple[str, str], str] = {
    ("describe", "topics"): "topics",
    ("alter", "topic"): "topics",
    ("alter", "broker"): "brokers",
    ("alter", "user"): "users",
    ("alter", "client"): "clients",
    ("alter", "ip"): "addresses",
    ("alter", "group"): "groups",
    ("alter", "client-metrics"): "client-metrics",
}
"""Command -> what its operands name."""

VALUES: Mapping[str, str] = {
    "--principal": "principals",
    "--super-user": "principals",
    "--user-principal": "principals",
    "--user": "users",
    "--client-id": "clients",
    "--ip": "addresses",
    "--topic": "topics",
    "--group": "groups",
}
"""Flag -> what its value names; `--name` names what its command is about."""

WORDS: Mapping[str, Iterable[str]] = {
    "--entity-type": tuple(CONFIG_ENTITIES),
    "--operation": tuple(OPERATIONS),
    "--permission": tuple(PERMISSIONS),
    "--resource-type": tuple(RESOURCE_TYPES),
}
"""Flag -> the words that it takes."""

KEYS: Mapping[str, Callable[[], Iterable[str]]] = {
    "topic": lambda: TOPIC_KEYS,
    "broker": lambda: (n for n, key in broker_keys().items() if key.mode in _AT_ONCE),
    "group": lambda: GROUP_KEYS,
    "client-metrics": lambda: METRICS_KEYS,
    "user": lambda: (*(n for n, key in QUOTA_KEYS.items() if not key.ip), *MECHANISMS),
    "client": lambda: (n for n, key in QUOTA_KEYS.items() if not key.ip),
    "ip": lambda: (n for n, key in QUOTA_KEYS.items() if key.ip),
}
"""Entity of `alter` -> the configs that it takes."""


class Completer(Struct):
    """known: what names were asked for, when, and the answer."""

    kept: ShellContext
    known: dict[str, tuple[float, tuple[str, ...]]] = field(default_factory=dict)

    @contextmanager
    def install(self) -> Iterator[None]:
        """Inside, the tab key completes. Where there is no readline, it does not."""
        try:
            import readline  # noqa: PLC0415  # not every Python has it
        except ImportError:  # a Python without it
            yield
            return
        found: list[str] = []

        def complete(text: str, number: int) -> str | None:
            if number == 0:
                line = readline.get_line_buffer()[: readline.get_begidx()]
                with suppress(Exception):  # a fault here must not end the line
                    found[:] = self.list_candidates(line, text)
            return found[number] if number < len(found) else None

        readline.set_auto_history(False)  # lines with secrets are not kept
        readline.set_completer_delims(" \t\n")
        readline.set_completer(complete)
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
        try:
            yield
        finally:
            readline.set_completer(None)
            readline.set_auto_history(True)

    def list_candidates(self, before: str, text: str) -> list[str]:
        """What may stand in the place of `text`, each with the blank after it. before: the line
        up to there."""
        offered = (
            name for name in self._list_offers(_split_words(before), text) if name.startswith(text)
        )
        return [name if name.endswith("=") else f"{name} " for name in sorted(set(offered))]

    def _list_offers(self, words: list[str], text: str) -> Iterable[str]:
        if not words:
            return (*OFFERED, "help", *LEAVE)
        if words[0] == "help":
            return OFFERED
        if words[0] not in OFFERED:
            return ()
        group = get_commands().commands[words[0]]
        if isinstance(group, TyperGroup):
            if words[0] in REDUNDANT and (words[1:] or [text])[0].startswith("-"):
                return self._complete_kafka_options(words)
            if len(words) == 1:
                return tuple(group.commands)
            command, path = group.commands.get(words[1]), (words[0], words[1])
        else:
            command, path = group, (words[0], "")
        if command is None:
            return ()
        if text.startswith("-"):
            return _list_flags(command)
        if _has_value(command, words[-1]):
            return self._complete_values(path, words)
        if path == ("explain", "config"):
            found: Sequence[str] = self._complete_explain(words[2:])
        elif path == ("describe", "configs"):
            entity = CONFIG_ENTITIES.get(_choose_document("configs", words))
            found = tuple(entity.known()) if entity else ()
        else:
            found = self.list_names(OPERANDS.get(path, ""))
        return found or _list_flags(command)

    def _complete_kafka_options(self, words: Sequence[str]) -> Sequence[str]:
        """What may follow in a line with the options of Kafka's own tools."""
        kinds = [kind for flag, kind in pairwise(words) if flag == TYPE]
        if words[-1] == TYPE:
            return tuple(ALTERED)
        if words[-1] == NAME:
            kind = ALTERED.get(kinds[-1], "") if kinds else ""
            return self.list_names(OPERANDS.get(("alter", kind), ""))
        return (TYPE, NAME, DEFAULT, *(_EDITS if words[0] == "alter" else ()))

    def _complete_explain(self, words: Sequence[str]) -> Sequence[str]:
        """The words of `explain config`: an entity, its name if it has one, a key."""
        if not words:
            return tuple(ENTITIES)
        entity, rest = words[0], words[1:] if words[0] != "cluster" else ["", *words[1:]]
        if not rest:
            return self.list_names(OPERANDS.get(("alter", entity), ""))
        keys = broker_keys if entity in ("broker", "cluster") else KEYS.get(entity, tuple)
        return tuple(keys()) if len(rest) == 1 else ()

    def _complete_values(self, path: tuple[str, str], words: list[str]) -> Iterable[str]:
        """What a flag takes."""
        flag = words[-1]
        if flag in WORDS:
            return WORDS[flag]
        if flag == "--add-config":
            return (f"{key}=" for key in KEYS.get(path[1], tuple)())
        if flag == "--delete-config":
            return KEYS.get(path[1], tuple)()
        if flag in ("--entity-name", "--name"):
            return self.list_names(_choose_document(path[1], words))
        return self.list_names(VALUES.get(flag, ""))

    def list_names(self, of: str) -> tuple[str, ...]:
        """The names that the cluster has now, as far as they can be typed; asked for again after
        a while."""
        if of not in _NAMES:
            return ()
        since, names = self.known.get(of, (0.0, ()))
        now = time.monotonic()
        if of not in self.known or now - since > FRESH_SECONDS:
            with suppress(KafkaformError):
                names = tuple(
                    name for name in _NAMES[of](self._ask_cluster) if _PLAIN.fullmatch(name)
                )
            self.known[of] = (now, names)
        return names

    def _ask_cluster(self, kind: str, wanted: DescribeQuery) -> FrozenMap:
        way = Way(self.kept.flags, Console.make_standard(), self.kept)
        found: FrozenMap = read_document(
            self.kept.get_session(way.resolve_connection()), kind, wanted
        )
        return found


def _has_value(command: Any, flag: str) -> bool:
    return any(flag in parameter.opts and not parameter.is_flag for parameter in command.params)


def _choose_document(what: str, words: Sequence[str]) -> str:
    """What `describe` is to tell of: for `configs` the --entity-type, topics if there is none."""
    if what != "configs":
        return what
    kinds = [kind for flag, kind in pairwise(words) if flag == "--entity-type"]
    return kinds[-1] if kinds else "topics"


_Ask = Callable[[str, DescribeQuery], FrozenMap]


def _make_entity_lister(entity_type: str) -> Callable[[_Ask], Iterable[str]]:
    def names(ask: _Ask) -> Iterable[str]:
        found = ask("configs", DescribeQuery(entity_type=entity_type))
        return [entity["name"] for entity in found["entities"]]

    return names


def _make_quota_lister(part: str) -> Callable[[_Ask], Iterable[str]]:
    """Names in the entities of quotas; the default has none."""

    def names(ask: _Ask) -> Iterable[str]:
        found = (row["entity"].get(part) for row in ask("quotas", DescribeQuery())["quotas"])
        return [name for name in found if name is not None]

    return names


def _list_users(ask: _Ask) -> Iterable[str]:
    """Those with a password and those with a limit."""
    with_password = (row["name"] for row in ask("users", DescribeQuery())["users"])
    return {*with_password, *_make_quota_lister("user")(ask)}


def _list_principals(ask: _Ask) -> Iterable[str]:
    """Those of ACLs, and the users."""
    ruled = (row["acl_principal"] for row in ask("acls", DescribeQuery())["acls"])
    return {*ruled, *(f"User:{name}" for name in _list_users(ask))}


_NAMES: Mapping[str, Callable[[_Ask], Iterable[str]]] = {
    "topics": lambda ask: (row["name"] for row in ask("topics", DescribeQuery())["topics"]),
    "brokers": lambda ask: (str(row["id"]) for row in ask("brokers", DescribeQuery())["brokers"]),
    "users": _list_users,
    "principals": _list_principals,
    "clients": _make_quota_lister("client-id"),
    "addresses": _make_quota_lister("ip"),
    "groups": _make_entity_lister("groups"),
    "client-metrics": _make_entity_lister("client-metrics"),
}


def _split_words(text: str) -> list[str]:
    """The words before the one that is typed; open quotes mean nothing can be offered."""
    try:
        words = shlex.split(text)
    except ValueError:
        return ["exit"]
    return words[1:] if words[:1] == ["kafkaform"] else words


def _list_flags(command: Any) -> tuple[str, ...]:
    return tuple(
        flag
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag.startswith("--")
    )
