"""Colours for terminals: a table of styles and one function that applies them."""

from __future__ import annotations

from msgspec import Struct

SGR = {
    "create": "32",
    "update": "33",
    "delete": "31",
    "adopt": "36",
    "import": "36",
    "forget": "35",
    "noop": "",
    "blocked": "1;31",
    "kept": "35",
    "title": "1",
    "dim": "2",
    "error": "1;31",
    "warning": "1;33",
    "applied": "32",
    "failed": "1;31",
    "unknown": "1;33",
    "started": "36",
    "skipped": "33",
}


class Paint(Struct, frozen=True):
    """Calls return text in a style of `SGR`, or the text alone without colour."""

    colour: bool

    def __call__(self, style: str, text: str) -> str:
        code = SGR.get(style, "")
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text
