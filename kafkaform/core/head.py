"""The end of a hash chain: what the state keeps of the audit log, and what an anchor names. Alone,
because state and log share nothing else."""

from __future__ import annotations

from msgspec import Struct

from .text import parse_whole


class Head(Struct, frozen=True):
    """The end of a hash chain."""

    seq: int
    """The number of the last record, 0 before the first."""
    hash: str
    """Its SHA-256, as 64 hexadecimal digits."""

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


GENESIS = Head(0, "0" * 64)
"""The end of an empty chain."""


def parse_head(text: str) -> Head:
    """The head in this text, `SEQ:HASH` as `str` writes it. Raises ValueError."""
    seq, _, digest = text.strip().partition(":")
    hexadecimal = len(digest) == 64 and not digest.strip("0123456789abcdef")
    number = parse_whole(seq)
    if number is None or not hexadecimal:
        raise ValueError(f"{text!r} is not a head; expected SEQ:HASH as `audit head` prints it")
    return Head(number, digest)
