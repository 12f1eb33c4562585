"""Parse lists of configs as KIP-248 defines them: `k1=v1,k2=[v1,v2],k3=v3`.

Commas separate configs; a value in square brackets can contain commas. Errors repeat nothing of a
value, which can be a password. They say its position instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkaform.core.errors import UsageError

FORM = "Write it as k1=v1,k2=[v1,v2]."


class Pair(NamedTuple):
    """One config of a list."""

    key: str
    value: str
    at: int
    """The position of the key in the text, from 1."""


def parse_pairs(text: str, flag: str) -> tuple[Pair, ...]:
    """The configs in the text of a flag. Raises UsageError with the position of the fault."""
    pairs: dict[str, Pair] = {}
    for start, item in _split_parts(text, flag):
        key, sign, value = item.partition("=")
        at = start + len(key) - len(key.lstrip())
        if not sign:
            raise _make_usage_error(flag, at, "a config without `=`")
        pair = Pair(key.strip(), _drop_brackets(value.strip(), flag, start + len(key) + 1), at + 1)
        if not pair.key:
            raise _make_usage_error(flag, at, "a value without a name")
        if pair.key in pairs:
            raise _make_usage_error(
                flag, at, f"{pair.key} again, which is at {pairs[pair.key].at}, too"
            )
        pairs[pair.key] = pair
    return tuple(pairs.values())


def parse_keys(text: str, flag: str) -> tuple[str, ...]:
    """The names in the text of a flag, each of them once. Raises UsageError."""
    keys = []
    for start, item in _split_parts(text, flag):
        if not item.strip() or "=" in item:
            raise _make_usage_error(
                flag, start, "only a name is allowed here", "Write it as k1,k2."
            )
        keys.append(item.strip())
    return tuple(dict.fromkeys(keys))


def _split_parts(text: str, flag: str) -> Iterator[tuple[int, str]]:
    """Position and text of each part between commas outside of brackets."""
    # A bracket counts only right after `=`: values such as PLAINTEXT://[::1]:9092 contain some.
    depth, start, opened = 0, 0, 0
    for at, char in enumerate(text):
        if char == "[" and (depth or text[start:at].rstrip().endswith("=")):
            opened = at if not depth else opened
            depth += 1
        elif char == "]" and depth:
            depth -= 1
        elif char == "," and not depth:
            yield start, text[start:at]
            start = at + 1
    if depth:
        raise _make_usage_error(flag, opened, "a [ that is never closed")
    if text[start:].strip() or start:
        yield start, text[start:]


def _drop_brackets(value: str, flag: str, at: int) -> str:
    """A value without the brackets around it."""
    if not value.startswith("["):
        return value
    if not value.endswith("]"):
        raise _make_usage_error(flag, at, "text after the ] of a value")
    return value[1:-1]


def _make_usage_error(flag: str, at: int, fault: str, advice: str = FORM) -> UsageError:
    return UsageError(f"{flag}, character {at + 1}: {fault}", advice)
