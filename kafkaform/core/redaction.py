"""Mask secrets in everything that is written: the second line of defence.

The first is `Secret`, which shows nothing, so that no secret should ever get here. But a server may
repeat a password in an error message, and a library may put one into an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from .diagnostics import Diagnostics
from .errors import KafkaformError

MASK = "(secret)"
# A shorter text such as `on` or `1234` occurs in every second line by chance. Masking it would make
# the output useless, and would reveal the secret to everybody who sees what is missing.
SHORTEST = 6
"""Characters of the shortest secret that can be masked."""

FEW = 128
"""Up to so many different beginnings, one regular expression is faster than a look at each
position."""

_CLIPPED = ("…", '"…', '\\"…', "\\u2026", '\\"\\u2026')
"""What follows where a long text was cut, so that only the beginning of a secret is left."""


class KnownSecrets:
    """The secrets of a run, in all spellings in which they might be written."""

    # A plain class: the repr of a Struct would show its fields.
    def __init__(self) -> None:
        self._lock = Lock()
        self._secrets: set[str] = set()
        self._spelled: dict[str, list[str]] = {}
        """The first SHORTEST characters -> the spellings that begin with them."""
        self._pattern: re.Pattern[str] | None = None
        """Matches the beginnings; None if it has to be made anew."""

    def add(self, secret: str) -> None:
        """Mask this text from now on. Any thread may call it."""
        with self._lock:
            if secret in self._secrets:
                return
            from .text.spellings import list_spellings  # noqa: PLC0415  # only a run with secrets needs it

            self._secrets.add(secret)
            for form in list_spellings(secret):
                if len(form) >= SHORTEST:
                    self._spelled.setdefault(form[:SHORTEST], []).append(form)
            self._pattern = None

    def mask_secrets(self, text: str) -> str:
        """The text with a mask in place of every secret."""
        pieces, end = [], 0
        for start, stop in self.find_secrets(text):
            pieces += [text[end:start], MASK]
            end = stop
        return "".join((*pieces, text[end:])) if pieces else text

    def find_secrets(self, text: str) -> Iterator[tuple[int, int]]:
        """Begin and end of each secret in the text, from left to right."""
        position = 0
        while self._spelled and (start := self._find_beginning(text, position)) >= 0:
            forms = self._spelled[text[start : start + SHORTEST]]
            length = max(_measure_match(form, text, start) for form in forms)
            if length:
                yield start, start + length
            position = start + (length or 1)

    def _find_beginning(self, text: str, position: int) -> int:
        """The next place where a secret may begin, or -1."""
        if len(self._spelled) > FEW:
            starts = range(position, len(text) - SHORTEST + 1)
            return next((p for p in starts if text[p : p + SHORTEST] in self._spelled), -1)
        pattern = self._pattern
        if pattern is None:
            # `tuple` first: another thread may add a secret while this one reads.
            pattern = re.compile("|".join(map(re.escape, tuple(self._spelled))))
            self._pattern = pattern
        match = pattern.search(text, position)
        return match.start() if match else -1


def _measure_match(form: str, text: str, start: int) -> int:
    """How many characters from here on are this form: all of it, what a cut left of it, or 0."""
    if text.startswith(form, start):
        return len(form)
    if "…" not in text and "\\u2026" not in text:
        return 0
    length = SHORTEST
    while length < len(form) and text[start + length : start + length + 1] == form[length]:
        length += 1
    return length if text.startswith(_CLIPPED, start + length) else 0


_CURRENT: ContextVar[KnownSecrets | None] = ContextVar("the secrets of this run", default=None)


@contextmanager
def watch_secrets(secrets: KnownSecrets | None = None) -> Iterator[KnownSecrets]:
    """Within the context, `mask_secrets` knows every `Secret` that is made. known: secrets of
    before."""
    secrets = KnownSecrets() if secrets is None else secrets
    token = _CURRENT.set(secrets)
    try:
        yield secrets
    finally:
        _CURRENT.reset(token)


def watched() -> KnownSecrets:
    """The secrets of the current context, or an empty set."""
    secrets = _CURRENT.get()
    return KnownSecrets() if secrets is None else secrets


def remember_secret(secret: str) -> None:
    """Add a secret to those of the current context."""
    secrets = _CURRENT.get()
    if secrets is not None:
        secrets.add(secret)


def mask_secrets(text: str) -> str:
    """The text with a mask in place of every secret of this run."""
    secrets = _CURRENT.get()
    return text if secrets is None else secrets.mask_secrets(text)


def holds_secret(text: str) -> bool:
    """True if the text contains a secret of this run."""
    secrets = _CURRENT.get()
    return secrets is not None and any(secrets.find_secrets(text))


def clean_diagnostics(diagnostics: Diagnostics) -> Diagnostics:
    """The diagnostics without secrets."""
    # Before they are laid out: a secret that a line break tears apart is not found any more.
    return tuple(item.rewrite(mask_secrets) for item in diagnostics)


@contextmanager
def keep_secrets(secrets: KnownSecrets) -> Iterator[None]:
    """Note every secret that is read inside the block, and mask them in errors that leave it."""
    with watch_secrets(secrets):
        try:
            yield
        except KafkaformError as error:
            error.rewrite(mask_secrets)
            # The errors of clients in its chain are not ours to rewrite, so they are cut off.
            raise error from None
