"""The words of a provider, with which messages for its users are made.

The engine knows systems, nodes, tasks and settings; its users have other names for them. A provider
hands over these names. Nothing that is recorded, compared or approved contains one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from .value import EMPTY, FrozenMap


class KindWords(Struct, frozen=True):
    """The words for the objects of one resource type."""

    plural: str
    """What several objects are called."""
    names: tuple[str, ...]
    """The attributes whose values people call an object by. Equal objects differ in them."""
    unit: Callable[[tuple[str, ...]], str] | None = None
    """The unit of the value at a path (`core/text.py`), empty for none. It is for objects
    that are shown whole; changed paths have theirs."""
    sentence: Callable[[str], str] | None = None
    """The object with this key in one sentence, empty for a key that is none. For kinds whose
    objects are no more than their keys, such as a right: the sentence stands for all fields."""
    texts: tuple[str, ...] = ()
    """The attributes whose values are whole documents. Nobody reads them as one escaped line."""
    details: Callable[[FrozenMap | None, FrozenMap | None], tuple[str, ...]] | None = None
    """The object before and after -> lines that say what its `texts` are or how they change; None
    for an object that does not exist. They are shown in place of these values."""


class Words(Struct, frozen=True):
    """Nouns and phrases of one provider: English, in lower case. The plural of a noun adds an s."""

    system: str = "system"
    """What one provider instance connects to."""
    node: str = "server"
    """One of the servers of a system, which has an id."""
    address: str = ""
    """The attribute of the provider block that says where the system is."""
    task: str = "task"
    """Long work on an object, which a step starts and whose end no run awaits."""
    task_on_it: str = "task on it"
    """The same work in a sentence about the object."""
    working: str = "in progress"
    """How an object is while its task runs: "… since run R"."""
    setting: str = "setting"
    """What a step sets for the time of a task and what must be removed after it."""
    held: str = "held"
    """How an object is while the setting exists: "still … by run R"."""
    moved: Callable[[str, str], str] | None = None
    """Provider instance, the id in the state -> what to do if the system is the same at another
    address, a sentence; empty if its id does not depend on that. None: it never does."""

    kinds: FrozenMap = EMPTY
    """Resource type -> `KindWords`, in the order in which people read about the types: what
    contains data first."""

    def name_objects(self, number: int, kind: str) -> str:
        """`70 boxes`; objects of an unknown type are called by its name."""
        return f"{number:,} {self.kinds[kind].plural if kind in self.kinds else f'{kind} objects'}"

    def describe_object(self, kind: str, key: str) -> str:
        """The object in one sentence, empty for kinds that have none."""
        sentence = self.kinds[kind].sentence if kind in self.kinds else None
        return "" if sentence is None else str(sentence(key))

    def describe_texts(
        self, kind: str, before: FrozenMap | None, after: FrozenMap | None
    ) -> tuple[str, ...]:
        """What the documents of an object are or how they change; empty for kinds without any."""
        describe = self.kinds[kind].details if kind in self.kinds else None
        return () if describe is None else tuple(describe(before, after))

    def name_object(self, kind: str, key: str) -> str:
        """What people call the object: its sentence, else its key."""
        return self.describe_object(kind, key) or key

    @property
    def system_field(self) -> str:
        """`system` as the name of an attribute: `message_store`."""
        return self.system.replace(" ", "_")

    @property
    def check_address(self) -> str:
        """The advice for a user who reached another system than expected."""
        return f"Check {self.address or 'the provider block'}."

    def advise_move(self, instance: str, recorded: str) -> str:
        """A blank and the sentence of `moved`, or nothing."""
        advice = "" if self.moved is None else self.moved(instance, recorded)
        return advice and f" {advice}"


NEUTRAL = Words()

Vocabulary: TypeAlias = Mapping[str, Words]
"""Provider instance -> the words of its provider."""
NO_WORDS: Vocabulary = {}


def shared(words: Iterable[Words]) -> Words:
    """The words that all these have in common: their own if they are equal, else neutral ones."""
    vocabularies = set(words)
    return vocabularies.pop() if len(vocabularies) == 1 else NEUTRAL
