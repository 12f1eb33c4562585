"""How a plan looks on a terminal: its colours, and how much of each change it shows."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Detail: TypeAlias = Literal["concise", "grouped", "full"]
"""One line per change, everything with equal changes together, or everything for each change by
itself."""

# Names, so that the meaning of a colour is decided here alone. Codes 30 to 37 follow the colour
# scheme of the terminal; exact colours would be unreadable on some backgrounds.
SGR = {
    "create": "32",
    "update": "33",
    "delete": "31",
    "adopt": "36",
    "import": "36",
    "forget": "35",
    "refresh": "36",
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
    """Called with a style of `SGR` and a text, returns the text in that style."""

    colour: bool
    """False returns every text unchanged."""

    def __call__(self, style: str, text: str) -> str:
        code = SGR.get(style, "")
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text
