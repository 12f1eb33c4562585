"""Where a hash chain ends: what the state keeps of the audit log, and what an anchor names."""

from __future__ import annotations

from msgspec import Struct


class Head(Struct, frozen=True):
    """seq: number of the last record, 0 before the first; hash: its SHA-256, 64 hex digits."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


GENESIS = Head(0, "0" * 64)


def parse_head(text: str) -> Head:
    """The head that `str` wrote, `SEQ:HASH`. Raises ValueError."""
    seq, _, digest = text.strip().partition(":")
    hexadecimal = len(digest) == 64 and not digest.strip("0123456789abcdef")
    if not (seq.isascii() and seq.isdigit() and hexadecimal):
        raise ValueError(f"{text!r} is not a head; expected SEQ:HASH as `audit head` prints it")
    return Head(int(seq), digest)
