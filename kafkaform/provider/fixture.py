"""Fixtures: what the author of a provider gives to the conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from ..core.clock import Clock
from ..core.resource import FaultClass
from ..core.schema import ObjectSchema
from ..core.value import EMPTY, FrozenMap
from .contract import Provider, ResourceType, Secrets, Session

INSTANCE = "conformance"
"""The provider instance that a fixture opens its sessions for."""


class Edit(Struct, frozen=True):
    """One change of a live object, and what has to come of it."""

    name: str
    """What messages call it."""
    start: FrozenMap = EMPTY
    """Declared attributes, in addition to those of a new object."""
    wish: FrozenMap = EMPTY
    """What is declared next, in addition to `start`."""
    meanwhile: FrozenMap = EMPTY
    """What somebody else makes of the object between plan and apply."""
    expect: FaultClass | None = None
    """The class of the fault; None if the edit is applied."""
    blocked: bool = False
    """A rule blocks it, so that it is never sent."""
    fallbacks: FrozenMap = EMPTY
    """Path -> what takes effect once it is removed, as the reading before has to say."""


class About(StrEnum):
    """What a data source answers about."""

    OBJECT = "object"
    """One object by name; the query is refused if there is none."""
    LIST = "list"
    """All visible objects."""
    SYSTEM = "system"
    """Something that is no object."""


class Question(Struct, frozen=True):
    """One query of a data source."""

    data: str
    """The name of the data source."""
    about: About
    """What it answers about."""
    ask: Callable[[FrozenMap], FrozenMap]
    """Attributes of an object -> arguments to whose answer the object belongs."""
    shows: Callable[[FrozenMap, FrozenMap], bool]
    """Answer, attributes of an object -> the answer shows that object as it is, or the system."""


class Fixture(Protocol):
    """How to reach one system, and what its objects look like."""

    @property
    def type(self) -> ResourceType:
        """The type whose promises are checked."""

    @property
    def provider(self) -> Provider:
        """The provider that has the type."""

    @property
    def clock(self) -> Clock:
        """Waits for a write to be visible."""

    @property
    def edits(self) -> Sequence[Edit]:
        """What can be done to an object."""

    @property
    def bad(self) -> FrozenMap:
        """Attributes that the system refuses, in addition to those of a new object."""

    @property
    def data(self) -> Mapping[str, ObjectSchema]:
        """The data sources of the provider."""

    @property
    def questions(self) -> Sequence[Question]:
        """At least one question for each data source."""

    @property
    def secrets(self) -> Secrets:
        """The secrets to which the attributes refer."""

    @property
    def incarnations(self) -> bool:
        """True if the system distinguishes an object from another one that takes its place. Where
        it does not, requests are absolute, and asking for what exists already is no fault."""

    @property
    def unfit(self) -> Mapping[str, str]:
        """Name of a check that cannot apply to this kind of object -> why."""

    def open(self, *, privileged: bool) -> Session:
        """A new session of INSTANCE, as an administrator, or as a user who can neither see nor do
        anything."""

    def fresh(self, given: FrozenMap) -> FrozenMap:
        """Declared attributes of an object that nothing else uses, overridden by these."""

    def make(self, attributes: FrozenMap) -> None:
        """Create this object behind the tool's back."""

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        """Set these attributes on the live object behind the tool's back."""

    def recreate(self, attributes: FrozenMap) -> None:
        """Delete the object and create it again behind the tool's back."""
