"""The optional part of the contract for `import --from`: files of other tools, read as objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from ..core.value import EMPTY, FrozenMap


class ForeignObject(Struct, frozen=True):
    """An object that files of another tool declare."""

    kind: str
    """Its resource type."""
    arguments: FrozenMap
    """The arguments of its block, without secrets. Arguments that equal a default may be left in.
    A required secret is not among them: the engine writes a reference for it."""
    place: str
    """Where it stands: `teams/orders.yaml:12`."""
    system: str = ""
    """The system that it is in, as the files name it; empty if they do not say."""
    places: FrozenMap = EMPTY
    """The places of single arguments, where the files have them: by NAME, and for an entry of a map
    by NAME.KEY."""


class Omission(Struct, frozen=True):
    """Something in files of another tool that is not taken over."""

    place: str
    """Where it stands: `teams/orders.yaml:12`."""
    reason: str
    """What it is and why it is left out, one line, without values that could be secrets."""


class ForeignFiles(Struct, frozen=True):
    """What files of another tool say."""

    objects: tuple[ForeignObject, ...] = ()
    """In the order of the files. One object can stand there several times."""
    omissions: tuple[Omission, ...] = ()
    """Everything else in the files that could mean something."""
    notes: tuple[str, ...] = ()
    """What was assumed about all of them, such as which file the settings are from; sentences."""


Reader: TypeAlias = Callable[[Sequence[Path]], ForeignFiles]
"""Reads files and folders, and connects to nothing. Raises UsageError if one of them is not
something of this tool."""


class ForeignResource(Struct, frozen=True):
    """A live object as Terraform's provider for the same system declares it."""

    type: str
    """The resource type there."""
    arguments: FrozenMap
    """The arguments of the block; a secret is a SecretRef, for which a variable is written."""
    id: str | None
    """The id for its import block; None if that provider cannot import it."""


class Exporter(Struct, frozen=True):
    """How objects are declared in the files of another tool."""

    requirements: FrozenMap
    """Name of a provider there -> its source and version."""
    write: Callable[[str, FrozenMap], ForeignResource | str]
    """Resource type and live attributes -> the resource there, or why there is none."""
