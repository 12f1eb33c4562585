"""What surveys ask a registry about the changes of a plan, as names of listings.

A provider says which listings its surveys need, and a session lists what a name stands for. The
names of these listings contain the questions, such as a schema that could become the next version;
the listing has an item with the answer for each subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kafkaform.core.resource import Sweep
from kafkaform.core.value import FrozenMap

VERSIONS = "schema_registry_next_versions"
"""At what level new versions are checked, and what the registry says about them."""
USERS = "schema_registry_users"
"""Which schemas refer to subjects."""
NUMBERS = "schema_registry_numbers"
"""Which versions subjects have."""


class NextVersion(Struct, frozen=True):
    """A schema that a plan registers for a subject that exists."""

    subject: str
    format: str
    schema: str
    references: tuple[Mapping[str, Any], ...]
    level: str | None
    """The level that the plan gives to the subject; INHERITED if it takes away its own. None if the
    plan does not change it."""
    registry_level: str | None
    """The level that the plan gives to the registry, None if it does not change it."""


def name_listing(kind: str, questions: Sequence[Any]) -> str:
    """The name of the listing that answers these questions: next versions, or names of subjects."""
    return f"{kind} {msgspec.json.encode(questions).decode()}"


def parse_listing(name: str) -> tuple[str, str]:
    """The kind of a listing, and its questions as JSON; no questions for an ordinary kind."""
    kind, _, questions = name.partition(" ")
    return kind, questions


def read_versions(questions: str) -> list[NextVersion]:
    """The questions of a listing of VERSIONS."""
    return msgspec.json.decode(questions, type=list[NextVersion])


def read_subjects(questions: str) -> list[str]:
    """The questions of other listings."""
    return msgspec.json.decode(questions, type=list[str])


def collect_answers(sweeps: Mapping[str, Sweep], kind: str) -> Mapping[str, FrozenMap]:
    """Subject -> the answer; none for what the registry did not say."""
    return {
        item.identity.key: item.attributes
        for name, sweep in sweeps.items()
        if parse_listing(name)[0] == kind
        for item in sweep.items
    }
