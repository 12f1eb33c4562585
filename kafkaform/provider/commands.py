"""The optional part of the contract: what a provider adds to `describe`, `explain`, `alter` and
`propose`, and the looks at a live system that `serve --live` and `lsp --live` offer.

A command is a plain function. Each parameter has an `Option` or an `Operand` in its annotation,
which says what a user can type; the docstring is the help. The function checks what was typed
before anything connects, raises UsageError, and returns a `Question` (`describe`, `explain`), an
`Alteration` (`alter`) or a `Proposal` (`propose`), which the engine carries out.

Nobody types a command of the group `look`. It is called after a resource type, or "" for the system
as a whole, gets the keys of the objects and the `LookBounds`, and returns a `Question`; the first
line of its docstring says what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from msgspec import Struct

from ..core.address import Address
from ..core.canonical import render_number
from ..core.change import Change
from ..core.diagnostics import Diagnostics, suggest
from ..core.errors import KafkaformError
from ..core.resource import Declared, Identity, Reading, Use
from ..core.text import Grid, Page, inline
from ..core.value import EMPTY, FrozenMap
from .contract import MissingRight, Session

NameListing: TypeAlias = Callable[[Session], Iterable[str]]
"""Lists the names of objects that the system has now. Raises KafkaformError."""
Ask: TypeAlias = Callable[[NameListing], Iterable[str]]
"""The names that a listing finds; none without a connection."""
Complete: TypeAlias = Callable[[Sequence[str], Ask], Iterable[str]]
"""The typed words, from `describe`, `explain`, `alter` or `propose` on -> what the next word can
be. A word that ends with `=` is continued without a blank."""


_GLOB = re.compile(r"[*?\[]")


def offer_names(listing: NameListing) -> Complete:
    """Complete with the names that a listing finds."""
    return lambda _, ask: ask(listing)


def offer_words(words: Iterable[str]) -> Complete:
    """Complete with fixed words."""
    offered = tuple(words)
    return lambda *_: offered


def is_glob(text: str) -> bool:
    """Whether a text stands for several names."""
    return _GLOB.search(text) is not None


def select_names(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that some pattern fits, which can be a name itself; all without a pattern."""
    return [n for n in names if not patterns or any(fnmatchcase(n, item) for item in patterns)]


def refuse_missing(
    names: Iterable[str], patterns: Sequence[str], noun: str, plural: str
) -> KafkaformError | None:
    """The error for what was typed as a name and is none; None if all of it exists. noun: what the
    object is called; plural: what several are, after `describe`."""
    existing = set(names)
    missing = [item for item in patterns if not is_glob(item) and item not in existing]
    if not missing:
        return None
    return KafkaformError(
        f"there is no {noun} {', '.join(map(inline, missing))}",
        suggest(missing[0], existing) or f"`kafkaform describe {plural}` lists all.",
    )


# Data instead of typer's own classes: a provider must not depend on the library of the command
# line.
class Option(Struct, frozen=True):
    """A flag. A parameter of type bool takes no value; one of type list can be given several
    times."""

    flag: str
    """`--name`, or `--name/--no-name` for a choice of two."""
    help: str | None = None
    metavar: str | None = None
    complete: Complete | None = None
    hidden: bool = False
    """It works, and help does not list it: words without a flag say the same."""


class Operand(Struct, frozen=True):
    """Words without a flag."""

    metavar: str
    complete: Complete | None = None


class Answer(Struct, frozen=True):
    """What a system answered."""

    document: FrozenMap
    """What `--json` prints; its keys are documented for users."""
    fault: KafkaformError | None = None
    """What the document lacks. It is raised after the document is shown."""


class PartnerReply(Struct, frozen=True):
    """What another system said."""

    document: FrozenMap | None = None
    """Of the command of `describe`; None if it could not be asked, or was not to be."""
    missing: Sequence[MissingRight] | None = None
    """The rights that the principal does not have for the uses; None if that is not known."""
    reason: str = ""
    """Why something of this is not known; empty if all of it is."""


class PartnerQuestion(Struct, frozen=True):
    """What an answer lacks that only another system knows."""

    provider: str
    """The provider of that system, which `Facts.partners` names."""
    add: Callable[[FrozenMap, PartnerReply], FrozenMap]
    """The document, and the reply -> the whole document."""
    command: str = ""
    """Its command of `describe`; empty if none is asked."""
    arguments: FrozenMap = EMPTY
    """The arguments of the command."""
    principal: str | None = None
    """Whose rights are asked for; None if no rights are."""
    uses: Sequence[Use] = ()
    """What they are needed for."""


class Question(Struct, frozen=True):
    """What a command of `describe` or `explain` asks the system."""

    read: Callable[[Session], Answer]
    """Reads the answer. Raises KafkaformError if there is nothing to show."""
    page: Callable[[FrozenMap], Page]
    """The document as a text for people."""
    warnings: Diagnostics = ()
    """Doubts about what was typed. They are shown before anything connects."""
    ask_partner: Callable[[FrozenMap], PartnerQuestion | None] = lambda _: None
    """Gets the document, and says what another system is asked."""


def _keep(change: Change, _: Reading) -> Change:
    return change


class Draft(Struct, frozen=True):
    """One object that `alter` changes."""

    kind: str
    key: str
    # A function and not the wanted attributes: what stays depends on what is live when it is
    # planned.
    edit: Callable[[FrozenMap | None, Reading], FrozenMap | None]
    """Attributes (None for a missing object) -> the wanted attributes (None to remove the object).
    If a task runs, the attributes are those of its target. Raises UsageError."""
    finish: Callable[[Change, Reading], Change] = _keep
    """Adds notes to the planned change."""
    address: str = ""
    """The address of the object in the plan; by default `TYPE.alter["KEY"]`."""
    secret: bool = False
    """The edit sends secrets, even if nothing else differs."""
    managed: bool = False
    """Allowed for objects that a configuration manages, because it changes nothing declared."""


class Alteration(Struct, frozen=True):
    """What a command of `alter` changes."""

    drafts: tuple[Draft, ...]
    documents: tuple[Question, ...]
    """Shown after it is applied."""
    needs: tuple[tuple[str, str], ...] = ()
    """Type and key of the objects that must exist."""
    refuse: Callable[[Mapping[Identity, Reading]], None] = lambda _: None
    """Gets the readings of `needs`. Raises UsageError if one of them makes this impossible."""


class Proposed(Struct, frozen=True):
    """What a command of `propose` has computed."""

    document: FrozenMap
    """What `--json` prints; its keys are documented for users."""
    arguments: Mapping[Address, FrozenMap]
    """Declared object -> the arguments that its block should have instead, None for null. The
    engine writes them as an override file of the folder, so that none of them is in a module."""


class Proposal(Struct, frozen=True):
    """What a command of `propose` computes from the system and the configuration."""

    compute: Callable[[Session, Sequence[Declared] | None], Proposed]
    """Gets what the configuration declares in this system, None without a configuration. Raises
    KafkaformError if there is nothing to propose."""
    page: Callable[[FrozenMap], Page]
    """The document as a text for people."""


class Command(Struct, frozen=True):
    """One command of `describe`, `explain`, `alter` or `propose`, or one look."""

    name: str
    make: Callable[..., Question | Alteration | Proposal]


class CommandGroup(Struct, frozen=True):
    """The commands that a provider adds to `describe`, `explain`, `alter` or `propose`, or its
    looks."""

    provider: str
    """The provider whose sessions the commands need."""
    help: str
    commands: tuple[Command, ...]


# ── pages ───────────────────────────────────────────────────────────────────────────────

NOTHING = "-"
"""What stands in a table for an unknown value."""
Column: TypeAlias = tuple[str, Callable[[FrozenMap], str]]
"""The head of a column, and its cell in the row of an object."""


def cell(value: Any) -> str:
    """One value of a document; a dash for an unknown one."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(cell, value)) or NOTHING
    return value if isinstance(value, str) else render_number(value)


def render_field(name: str) -> Callable[[FrozenMap], str]:
    """The cells of a column that has a field of the objects as it is."""
    return lambda row: cell(row[name])


def make_grid(
    rows: Iterable[FrozenMap],
    columns: Iterable[Column],
    right: frozenset[int] = frozenset(),
    caption: str = "",
) -> Grid:
    """The table of these objects. right, caption: see `Grid`."""
    columns = tuple(columns)
    head = tuple(name for name, _ in columns)
    return Grid((head, *(tuple(text(row) for _, text in columns) for row in rows)), right, caption)
