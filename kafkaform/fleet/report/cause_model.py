"""One cause of what the report shows: something that somebody can mend."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from ...core.text import inline
from .figures import clip_text, join_words, render_age, render_bytes, render_count

SEVERITIES = ("low", "medium", "high", "critical")
"""Of causes, from bad to worst. `critical` is everybody's right on everything."""
NAMED = 3
"""How many clusters, owners or actors a cause names."""
NAME_CHARACTERS, CLIPPED = 60, 160
"""Of a name, and of a sentence of others."""


class Reach(Struct, frozen=True):
    """How far a cause reaches. None: it has no such reach, or it was not measured."""

    principals: int | None = None
    topics: int | None = None
    bytes: int | None = None
    """Of all replicas of these topics."""
    groups: int | None = None
    """Consumer groups that read these topics."""
    objects: int | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """What reaches further has a greater one."""
        return tuple(value or 0 for value in (self.principals, self.topics, self.objects))

    @property
    def text(self) -> str:
        """`14 principals, 300 topics, 2.0 TiB, 3 groups`."""
        counts = (
            (self.principals, "principal"),
            (0 if self.topics else self.objects, "object"),
            (self.topics, "topic"),
            (self.groups, "consumer group"),
        )
        texts = [render_count(int(value), noun) for value, noun in counts if value]
        return ", ".join((*texts, *([render_bytes(self.bytes)] if self.bytes else ())))


class Cause(Struct, frozen=True):
    """Something that somebody can mend."""

    severity: str
    """One of SEVERITIES."""
    title: str
    mend: str
    """What to do, in a sentence or two."""
    command: str
    """What to type."""
    section: str
    """The one with the rows."""
    rule: str = ""
    """The rule of plans that finds the same; `kafkaform explain rule ID` says why."""
    env: str = ""
    rank: int = 1
    """Of the environment: 0 is production."""
    clusters: tuple[str, ...] = ()
    reach: Reach = Reach()
    since: datetime | None = None
    """The first snapshot that shows it."""
    owners: tuple[str, ...] = ()
    actor: str = ""
    """`by mia (run 3f2a)`, or `not by kafkaform`. Empty: nobody did it, or nothing says who."""
    waiting: str = ""
    """What follows from it, or must wait until it is mended."""
    waits: tuple[str, ...] = ()
    """The same by name: keys of ACLs and quotas, rules, objects with the path that differs. At most
    `cause_questions.MAX_WAITS`."""

    @property
    def where(self) -> str:
        """`prod: payments-eu and payments-us`."""
        names = name_some(self.clusters)
        return f"{self.env}: {names}" if self.env and names != self.env else names

    @property
    def owner(self) -> str:
        return name_some(self.owners) or "none"


def describe_cause(cause: Cause, as_of: datetime) -> str:
    """Where, how far, whose, since when, by whom: on one line."""
    since = (
        f"since {cause.since:%Y-%m-%d} ({render_age(cause.since, as_of)})" if cause.since else ""
    )
    texts = [cause.where, cause.reach.text, f"owner {cause.owner}", since, cause.actor]
    return " · ".join(filter(None, texts))


def name_some(names: Iterable[str]) -> str:
    """`a, b, c and 4 more`."""
    texts = [clip_text(inline(name), NAME_CHARACTERS) for name in names]
    excess = len(texts) - NAMED
    words = (*texts[:NAMED], f"{excess:,} more") if excess > 0 else texts
    return join_words(words) if texts else ""
