"""The second line of defence: what is written passes `mask_secrets`, which knows the secrets in
use.

The first is `Secret`, which shows nothing; so nothing should ever reach this. But a server may
repeat a password in an error text, and a library may put one into an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from .diagnostics import Diagnostics

MASK = "(secret)"
SHORTEST = 6
"""Characters. A shorter secret cannot be filtered: `on`, `1234` or `orders` without its last
letter stand in every second line by chance, so that masking them would make the output useless,
and would tell what the secret is to whoever sees what is missing."""

FEW = 128
"""Up to so many beginnings one regular expression is faster than a look at every position."""

_CLIPPED = ("…", '"…', '\\"…', "\\u2026", '\\"\\u2026')
"""What follows where we cut a long text, so that only the beginning of a secret is there."""


class KnownSecrets:
    """The secrets that a run has in hand, in all spellings in which they might be written."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._secrets: set[str] = set()
        self._spelled: dict[str, list[str]] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, secret: str) -> None:
        """From now on this text is masked. Any thread may call it."""
        with self._lock:
            if secret in self._secrets:
                return
            from .spellings import list_spellings  # noqa: PLC0415  # only a run with secrets needs it

            self._secrets.add(secret)
            for form in list_spellings(secret):
                if len(form) >= SHORTEST:
                    self._spelled.setdefault(form[:SHORTEST], []).append(form)
            self._pattern = None

    def mask_secrets(self, text: str) -> str:
        """The text with a mask in the place of every secret."""
        if not self._spelled:
            return text
        parts, end = [], 0
        for start, stop in self._find_secrets(text):
            parts += [text[end:start], MASK]
            end = stop
        return "".join((*parts, text[end:])) if parts else text

    def has_secret(self, text: str) -> bool:
        """Whether a secret stands in the text."""
        return bool(self._spelled) and next(self._find_secrets(text), None) is not None

    def _find_secrets(self, text: str) -> Iterator[tuple[int, int]]:
        """Where secrets begin and end, from left to right."""
        position = 0
        while (start := self._find_candidate(text, position)) >= 0:
            length = max(
                _measure_match(form, text, start) for form in self._spelled[_cut_seed(text, start)]
            )
            if length:
                yield start, start + length
            position = start + (length or 1)

    def _find_candidate(self, text: str, position: int) -> int:
        """The next place where a secret may begin, or -1."""
        if len(self._spelled) <= FEW:
            pattern = self._pattern or _compile_alternatives(self._spelled)
            self._pattern = pattern
            match = pattern.search(text, position)
            return match.start() if match else -1
        last = len(text) - SHORTEST
        places = range(position, last + 1)
        return next((place for place in places if _cut_seed(text, place) in self._spelled), -1)


def _cut_seed(text: str, start: int) -> str:
    return text[start : start + SHORTEST]


def _compile_alternatives(seeds: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, tuple(seeds))))


def _measure_match(form: str, text: str, start: int) -> int:
    """How much of the text from here on is this form: all of it, or what a cut has left; else
    0."""
    if text.startswith(form, start):
        return len(form)
    if "…" not in text and "\\u2026" not in text:
        return 0
    same = SHORTEST
    while same < len(form) and text[start + same : start + same + 1] == form[same]:
        same += 1
    return same if text.startswith(_CLIPPED, start + same) else 0


_CURRENT: ContextVar[KnownSecrets | None] = ContextVar("the secrets of this run", default=None)


@contextmanager
def watch_secrets(known: KnownSecrets | None = None) -> Iterator[KnownSecrets]:
    """Inside, every `Secret` that is made is known to `mask_secrets`. known: what to go on with."""
    known = KnownSecrets() if known is None else known
    token = _CURRENT.set(known)
    try:
        yield known
    finally:
        _CURRENT.reset(token)


def watched() -> KnownSecrets:
    """The secrets that are watched here, or none yet."""
    known = _CURRENT.get()
    return KnownSecrets() if known is None else known


def remember_secret(secret: str) -> None:
    """Tell whoever watches of a secret."""
    known = _CURRENT.get()
    if known is not None:
        known.add(secret)


def mask_secrets(text: str) -> str:
    """The text with a mask in the place of every secret that this run has in hand."""
    known = _CURRENT.get()
    return text if known is None else known.mask_secrets(text)


def holds_secret(text: str) -> bool:
    """Whether a secret that this run has in hand stands in the text."""
    known = _CURRENT.get()
    return known is not None and known.has_secret(text)


def clean_diagnostics(diagnostics: Diagnostics) -> Diagnostics:
    """The same without secrets. Before they are wrapped into lines, which tears words apart."""
    return tuple(item.rewrite(mask_secrets) for item in diagnostics)
