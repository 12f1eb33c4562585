"""Completion in the shell: commands, flags, and names as the cluster has them now."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from typer.core import TyperGroup

from kafkaform_providers.kafka.broker_keys import Mode, broker_keys
from kafkaform_providers.kafka.config_keys import GROUP_KEYS, METRICS_KEYS, TOPIC_KEYS
from kafkaform_providers.kafka.describe_configs import ENTITY_TYPES
from kafkaform_providers.kafka.describe_source import Wanted
from kafkaform_providers.kafka.quotas import QUOTA_KEYS
from kafkaform_providers.kafka.scram import MECHANISMS

from ..core.dataclass import dataclass, field
from ..core.errors import KafkaformError
from ..core.value import FrozenMap
from .commands import COMMANDS
from .connection import Kept, Way
from .console import Console
from .tree import commands

OFFERED = tuple(
    name for name in ("describe", "explain", "plan", "alter", "version") if name in COMMANDS
)
"""The commands of the shell."""
LEAVE = ("exit", "quit")

FRESH_SECONDS = 15.0
_PLAIN = re.compile(r"[!%+,./:=@^\w-]+")
"""Names that a line can hold without quotes; others are not offered."""

_AT_ONCE = (Mode.BROKER, Mode.CLUSTER)

OPERANDS: Mapping[tuple[str, str], str] = {
    ("describe", "topics"): "topics",
    ("alter", "topic"): "topics",
    ("alter", "broker"): "brokers",
    ("alter", "user"): "users",
    ("alter", "group"): "groups",
    ("alter", "client-metrics"): "client-metrics",
}
"""Command -> what its operands name."""

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


@dataclass(slots=True)
class Completer:
    """known: what names were asked for, when, and the answer."""

    kept: Kept
    known: dict[str, tuple[float, tuple[str, ...]]] = field(default_factory=dict)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Inside, the tab key completes. Where there is no readline, it does not."""
        try:
            import readline
        except ImportError:  # a Python without it
            yield
            return
        found: list[str] = []

        def complete(text: str, number: int) -> str | None:
            if number == 0:
                line = readline.get_line_buffer()[: readline.get_begidx()]
                with suppress(Exception):  # a fault here must not end the line
                    found[:] = self.candidates(line, text)
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

    def candidates(self, before: str, text: str) -> list[str]:
        """What may stand in the place of `text`, each with the blank after it. before: the line
        up to there."""
        offered = (name for name in self._offered(_split(before), text) if name.startswith(text))
        return [name if name.endswith("=") else f"{name} " for name in sorted(set(offered))]

    def _offered(self, words: list[str], text: str) -> Iterable[str]:
        if not words:
            return (*OFFERED, "help", *LEAVE)
        if words[0] == "help":
            return OFFERED
        if words[0] not in OFFERED:
            return ()
        group = commands().commands[words[0]]
        if isinstance(group, TyperGroup):
            if len(words) == 1:
                return tuple(group.commands)
            command, path = group.commands.get(words[1]), (words[0], words[1])
        else:
            command, path = group, (words[0], "")
        if command is None:
            return ()
        if text.startswith("-"):
            return _flags(command)
        return self._values(path, words)

    def _values(self, path: tuple[str, str], words: list[str]) -> Iterable[str]:
        """What a flag takes, or an operand names."""
        last = words[-1]
        if last == "--entity-type":
            return tuple(ENTITY_TYPES)
        if last == "--add-config":
            return (f"{key}=" for key in KEYS.get(path[1], tuple)())
        if last == "--delete-config":
            return KEYS.get(path[1], tuple)()
        if last == "--entity-name":
            at = words.index("--entity-type") + 1 if "--entity-type" in words else len(words)
            return self.names(words[at] if at < len(words) else "topics")
        if last == "--user":
            return self.names("users")
        return self.names(OPERANDS.get(path, ""))

    def names(self, of: str) -> tuple[str, ...]:
        """The names that the cluster has now, as far as they can be typed; asked for again after
        a while."""
        if of not in _NAMES:
            return ()
        since, names = self.known.get(of, (0.0, ()))
        now = time.monotonic()
        if of not in self.known or now - since > FRESH_SECONDS:
            with suppress(KafkaformError):
                names = tuple(name for name in _NAMES[of](self._ask) if _PLAIN.fullmatch(name))
            self.known[of] = (now, names)
        return names

    def _ask(self, kind: str, wanted: Wanted) -> FrozenMap:
        from .commands.describe import described

        way = Way(self.kept.flags, Console.standard(), self.kept)
        found: FrozenMap = described(self.kept.session(way.connection()), kind, wanted)
        return found


_Ask = Callable[[str, Wanted], FrozenMap]


def _entities(entity_type: str) -> Callable[[_Ask], Iterable[str]]:
    def names(ask: _Ask) -> Iterable[str]:
        found = ask("configs", Wanted(entity_type=entity_type))
        return [entity["name"] for entity in found["entities"]]

    return names


_NAMES: Mapping[str, Callable[[_Ask], Iterable[str]]] = {
    "topics": lambda ask: (row["name"] for row in ask("topics", Wanted())["topics"]),
    "brokers": lambda ask: (str(row["id"]) for row in ask("brokers", Wanted())["brokers"]),
    "users": lambda ask: (row["name"] for row in ask("users", Wanted())["users"]),
    "groups": _entities("groups"),
    "client-metrics": _entities("client-metrics"),
}


def _split(text: str) -> list[str]:
    """The words before the one that is typed; open quotes mean nothing can be offered."""
    try:
        words = shlex.split(text)
    except ValueError:
        return ["exit"]
    return words[1:] if words[:1] == ["kafkaform"] else words


def _flags(command: Any) -> tuple[str, ...]:
    return tuple(
        flag
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag.startswith("--")
    )
