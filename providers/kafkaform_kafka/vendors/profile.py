"""The nouns of a profile: rules with conditions, levels and sources. All of it is data.

A condition finds what is wrong with one change. There is a struct for each form of condition, and
one function for each in `conditions`; a vendor's table combines them. `rules/vendors.py` judges
changes by them.
"""

from __future__ import annotations

import re

from msgspec import Struct

from kafkaform.core.change import Action
from kafkaform.core.finding import Level

SETS = (Action.CREATE, Action.UPDATE)
SENDS = (*SETS, Action.DELETE)
ONLY_CREATE = (Action.CREATE,)
ONLY_UPDATE = (Action.UPDATE,)


class Citation(Struct, frozen=True):
    """A public text in which a rule is stated."""

    title: str
    url: str
    edition: str
    """Which text was read: its commit, its own date, or its version."""
    read: str
    """The day on which it was read: YYYY-MM-DD."""


# ── conditions ──────────────────────────────────────────────────────────────────────────


class Sends(Struct, frozen=True):
    """The change sends a request, whatever it contains."""

    actions: tuple[Action, ...] = SENDS


class Writes(Struct, frozen=True):
    """The change sets or removes something at or below one of these paths."""

    paths: tuple[tuple[str, ...], ...]
    actions: tuple[Action, ...] = SETS


class WritesKey(Struct, frozen=True):
    """The change sets or removes a key of a map that `only` lacks, or that `never` has."""

    attribute: str
    only: frozenset[str] | None = None
    never: frozenset[str] = frozenset()
    actions: tuple[Action, ...] = SETS


class WritesValue(Struct, frozen=True):
    """The change sets a value that is not allowed at this path."""

    path: tuple[str, ...]
    only: tuple[str, ...] = ()
    """The allowed texts; empty: any text."""
    never: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression that the whole text must match."""
    low: int | None = None
    high: int | None = None
    odd: bool = False
    """The number must be odd."""


class Switches(Struct, frozen=True):
    """The change puts a word into a list of words, or takes it out, on an object that exists."""

    path: tuple[str, ...]
    word: str


Condition = Sends | Writes | WritesKey | WritesValue | Switches


# ── rules ───────────────────────────────────────────────────────────────────────────────


_FOUND = re.compile(r" \(\{found\}\)|, not \{found\}|: \{found\}$")
"""The parts of a sentence that only name what a condition found."""


class VendorRule(Struct, frozen=True):
    """One thing that the clusters of a vendor refuse, ignore or do differently."""

    id: str
    """Of the finding: `aiven-few-replicas`. It begins with the profile, or with that of a profile
    whose clusters have the same rule."""
    sentence: str
    """One sentence, the vendor as its subject; `{found}` is what the condition found."""
    source: Citation
    kinds: tuple[str, ...]
    """The resource types that it is about."""
    condition: Condition
    level: Level = Level.BLOCK
    """How much it matters that a change fulfils the condition."""
    advice: str = ""
    apis: tuple[str, ...] = ()
    """The requests whose refusal the rule explains."""
    per_cluster: bool = False
    """It is about the cluster, and told once for all changes."""

    @property
    def title(self) -> str:
        """What it says, whatever was found."""
        whatever = "some configs" if isinstance(self.condition, WritesKey) else "it"
        return _FOUND.sub("", self.sentence).replace("{found}", whatever)


class Refusal(Struct, frozen=True):
    """Why the clusters of a vendor refuse some requests. No change is judged by it, because the
    source does not say that they are always refused."""

    sentence: str
    """One sentence, the vendor as its subject."""
    source: Citation
    kinds: tuple[str, ...]
    """The resource types that it is about."""
    apis: tuple[str, ...]
    """The requests whose refusal it explains."""
    advice: str = ""


class VendorNote(Struct, frozen=True):
    """Something that a user of the vendor should know, for the documentation."""

    sentence: str
    source: Citation


class Profile(Struct, frozen=True):
    """The clusters of one vendor."""

    name: str
    title: str
    """The name of the product."""
    rules: tuple[VendorRule | Refusal, ...]
    notes: tuple[VendorNote, ...] = ()
    topic_configs: frozenset[str] | None = None
    """The configs that a topic can set after its creation. What is set beside them is the vendor's
    and stays. None: all configs."""
    # kafkaform reads many ACLs with one listing, and would not find the declared ones in it.
    acls_read_singly: bool = False
    """A listing of all ACLs names principals in another form than a read of one ACL."""
    connection: VendorNote | None = None
    """Why kafkaform may be unable to open a session at all, said if that fails."""

    @property
    def judging(self) -> tuple[VendorRule, ...]:
        """The rules by which changes are judged."""
        return tuple(rule for rule in self.rules if isinstance(rule, VendorRule))
