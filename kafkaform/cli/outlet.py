"""The one way out for text: what a command writes passes the filter of secrets.

While a command runs, standard output and error are `Fenced`, whoever writes to them: we, typer,
rich, a log handler or a library. Files of text that a command leaves pass `cleaned`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO

from ..core.dataclass import replace
from ..core.diagnostics import Diagnostic, Diagnostics
from ..core.redaction import Known, clean, watching

_KEPT = "surrogateescape"


class FencedBytes:
    """The bytes below a text stream; those of text pass the filter too."""

    def __init__(self, stream: BinaryIO, known: Known) -> None:
        self._stream, self._known = stream, known

    def write(self, data: Any) -> int:
        text = bytes(data).decode("utf-8", _KEPT)
        self._stream.write(self._known.clean(text).encode("utf-8", _KEPT))
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Fenced:
    """A text stream on which no secret can be written. It is told in whole pieces: nobody here
    writes half a word, and each line of a secret with several is known by itself."""

    def __init__(self, stream: TextIO, known: Known) -> None:
        self._stream, self._known = stream, known

    def write(self, text: str) -> int:
        self._stream.write(self._known.clean(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> FencedBytes:
        return FencedBytes(self._stream.buffer, self._known)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def fenced() -> Iterator[None]:
    """Inside, secrets are known from the moment that they are read, and both streams fenced."""
    with watching() as known:
        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (stream and Fenced(stream, known) for stream in before)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def cleaned(diagnostics: Diagnostics) -> Diagnostics:
    """The same without secrets, before they are wrapped into lines, which tears words apart."""
    return tuple(map(_cleaned, diagnostics))


def _cleaned(item: Diagnostic) -> Diagnostic:
    return replace(
        item,
        summary=clean(item.summary),
        detail=clean(item.detail),
        advice=clean(item.advice),
        excerpt=None if item.excerpt is None else clean(item.excerpt),
        context=tuple(map(clean, item.context)),
    )
