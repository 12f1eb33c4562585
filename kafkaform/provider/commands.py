"""The optional part of the contract: what a provider adds to `describe`, `explain`, `alter` and
`propose`.

A command is a plain function. Each parameter has an `Option` or an `Operand` in its annotation,
which says what a user can type; the docstring is the help. The function checks what was typed
before anything connects, raises UsageError, and returns a `Question` (`describe`, `explain`), an
`Alteration` (`alter`) or a `Proposal` (`propose`), which the engine carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from ..core.address import Address
from ..core.change import Change
from ..core.diagnostics import Diagnostics
from ..core.errors import KafkaformError
from ..core.resource import Declared, Identity, Reading
from ..core.text.display import Page
from ..core.value import FrozenMap
from .contract import Session

NameListing: TypeAlias = Callable[[Session], Iterable[str]]
"""Lists the names of objects that the system has now. Raises KafkaformError."""
Ask: TypeAlias = Callable[[NameListing], Iterable[str]]
"""The names that a listing finds; none without a connection."""
Complete: TypeAlias = Callable[[Sequence[str], Ask], Iterable[str]]
"""The typed words, from `describe`, `explain`, `alter` or `propose` on -> what the next word can
be. A word that ends with `=` is continued without a blank."""


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


class Question(Struct, frozen=True):
    """What a command of `describe` or `explain` asks the system."""

    read: Callable[[Session], Answer]
    """Reads the answer. Raises KafkaformError if there is nothing to show."""
    page: Callable[[FrozenMap], Page]
    """The document as a text for people."""
    warnings: Diagnostics = ()
    """Doubts about what was typed. They are shown before anything connects."""


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
    """One command of `describe`, `explain`, `alter` or `propose`."""

    name: str
    make: Callable[..., Question | Alteration | Proposal]


class CommandGroup(Struct, frozen=True):
    """The commands that a provider adds to `describe`, `explain`, `alter` or `propose`."""

    help: str
    commands: tuple[Command, ...]
