"""A system that speaks HTTP, and what a folder declares of it from round to round, so that each
apply makes, changes and deletes something of every sort."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ..commands.process_folder import Folder
from ..promises import STATE, Name, Reached, World, read_lines
from .proxy import Passed

STEADY = 2
"""The first round in which something goes that an earlier one has made."""
TIMEOUT = 2
"""Seconds that a request may take; a recovery waits for 5 more."""


@dataclass
class Arrivals:
    """What happened to a system while a folder was applied. folder: of the configuration; first:
    how many records its log had before; reached: the writes that came, with the intents that the
    log had then; strays: deletions of what the state did not have."""

    folder: Path
    first: int = 0
    reached: list[Reached] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """A new round."""
        self.first = len(self._list_records())
        self.reached.clear()
        self.strays.clear()

    def note(self, request: str, name: Name) -> None:
        """A write has come, and is not answered yet."""
        intents = sum(
            record["kind"] == "intent"
            and (record["body"]["kind"], record["body"]["key"]) == name
            and str(record["body"]["phase"]).partition(" ")[2] == request
            for record in self._list_records()[self.first :]
        )
        self.reached.append(Reached(request, name, intents))
        if request.startswith("Delete") and name not in self._list_owned():
            self.strays.append(f"{request} of {name}, which the state did not have")

    def _list_records(self) -> list[dict[str, Any]]:
        """The records that are whole."""
        return [json.loads(line) for line in read_lines(self.folder)]

    def _list_owned(self) -> set[Name]:
        state = self.folder / STATE
        objects = json.loads(state.read_bytes())["objects"] if state.exists() else []
        return {(row["kind"], row["identity"]) for row in objects}


def name_request(requests: Mapping[str, str], method: str, target: str) -> str | None:
    """Which of these requests it is, None for one that changes nothing."""
    line = f"{method} {target}"
    return next((name for name, fits in requests.items() if re.fullmatch(fits, line)), None)


def write_removed(kind: str, name: str) -> str:
    """A block that deletes what a former round has made."""
    block = "  lifecycle {\n    destroy = true\n  }\n"
    return f"removed {{\n  from = {kind}.{name}\n{block}}}\n"


@dataclass
class HttpSystem:
    """One system and its folder. port: where it listens; requests: each request of a step that
    every round has -> a regular expression for its method and target."""

    folder: Folder
    port: int
    requests: ClassVar[Mapping[str, str]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write_round(self, url: str, number: int) -> str:
        """The configuration of a round. url: of the system, or of a proxy in front of it."""
        raise NotImplementedError

    def list_wanted(self, number: int) -> World:
        """What there is after it."""
        raise NotImplementedError

    def read_world(self) -> World:
        """What there is."""
        raise NotImplementedError

    def begin(self, number: int) -> None:
        """A round begins: what happens to the system without us."""

    def list_reached(self) -> Sequence[Reached] | None:
        """The writes that came in this round; None if the system does not tell."""
        return None

    def read_passed(self, passed: Sequence[Passed]) -> Sequence[Reached] | None:
        """The writes among these requests, which a proxy has passed."""
        return self.list_reached()

    def find_faults(self) -> Iterator[str]:
        """What of this round must not be, beyond the promises."""
        yield from ()
