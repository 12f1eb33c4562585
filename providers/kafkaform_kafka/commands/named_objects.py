"""Objects on a command line: the kind and then the name, as in `topic orders` or `user ci`.

`describe`, `explain` and `alter` all name objects in this way. Flags for the same are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import UsageError
from kafkaform.core.text.display import inline
from kafkaform.provider.commands import Ask, Complete, NameListing

NAMELESS = "cluster"
"""The one kind of which there is one object only, so that no name follows."""


def read_objects(words: Sequence[str], kinds: Iterable[str]) -> Mapping[str, str | None]:
    """Kind -> name, of words such as `user ci client app`; None if the last kind has no name.
    Raises UsageError."""
    kind_names = tuple(kinds)
    named: dict[str, str | None] = {}
    remaining = list(words)
    while remaining:
        kind = remaining.pop(0)
        if kind not in kind_names:
            raise make_kind_error(kind, kind_names)
        if kind in named:
            raise UsageError(f"{kind} is named twice", "Name each kind only once.")
        named[kind] = NAMELESS if kind == NAMELESS else remaining.pop(0) if remaining else None
    return named


def merge_objects(
    named: Mapping[str, str | None], flags: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    """The objects of the words and those of the flags, without those that neither names. Raises
    UsageError if both name one kind, and for a kind without a name."""
    flag_values = {kind: name for kind, name in flags.items() if name is not None}
    for kind, name in named.items():
        if name is None:
            raise UsageError(f"{kind} has no name", f"Write {kind} NAME.")
        if kind in flag_values:
            raise UsageError(
                f"{kind} {inline(name)} and --{FLAGS.get(kind, kind)} exclude each other",
                "Give one of them.",
            )
    return {**flag_values, **{kind: name for kind, name in named.items() if name is not None}}


FLAGS: Mapping[str, str] = {"client": "client-id"}
"""Kind -> its flag, if that is called otherwise."""


def make_kind_error(word: str, kinds: Sequence[str]) -> UsageError:
    """The error for a word where a kind is expected."""
    listed = ", ".join(kinds)
    return UsageError(
        f"{inline(repr(word))} is not a kind of object here",
        suggest(word, kinds) or f"Write the kind and the name; the kinds are {listed}.",
    )


def complete_objects(listings: Mapping[str, NameListing | None]) -> Complete:
    """Complete kinds and names in turn. listings: kind -> what lists its names, if anything
    does."""

    def complete(words: Sequence[str], ask: Ask) -> Iterable[str]:
        operands = [word for word in words[2:] if not word.startswith("-")]
        while operands and operands[0] in listings:
            kind = operands.pop(0)
            if kind == NAMELESS:
                continue
            if not operands:
                listing = listings[kind]
                return ask(listing) if listing is not None else ()
            operands.pop(0)
        return () if operands else [kind for kind in listings if kind not in words[2:]]

    return complete
