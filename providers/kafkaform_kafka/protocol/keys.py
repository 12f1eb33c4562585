"""Short, because all kinds share this one form: identity keys of several fields, joined by `|`,
readable, and always separable again."""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern

SEPARATOR = "|"
ESCAPE = "\\"


def join(fields: Iterable[str]) -> str:
    r"""One key for these fields; a `|` or `\` inside a field is written `\|`, `\\`."""
    fields = tuple(fields)
    plain = SEPARATOR.join(fields)
    if ESCAPE not in plain and plain.count(SEPARATOR) == len(fields) - 1:
        # Almost all keys are plain, and each occurs in state, log and cluster: one object serves.
        return intern(plain)
    return SEPARATOR.join(
        field.replace(ESCAPE, ESCAPE * 2).replace(SEPARATOR, ESCAPE + SEPARATOR) for field in fields
    )


def split(text: str) -> tuple[str, ...]:
    r"""The fields of a key: the reverse of `join`.

    A `\` before any other character than `|` and `\` is literal, so that a key that somebody typed
    without escapes (`User:CORP\ci|…`) is read as it is written.
    """
    if ESCAPE not in text:
        return tuple(text.split(SEPARATOR))
    fields = [""]
    characters = iter(text)
    for character in characters:
        if character == SEPARATOR:
            fields.append("")
            continue
        if character == ESCAPE:
            escaped = next(characters, "")
            character = escaped if escaped in (SEPARATOR, ESCAPE) and escaped else ESCAPE + escaped
        fields[-1] += character
    return tuple(fields)
