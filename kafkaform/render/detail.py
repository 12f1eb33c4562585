"""How much of each change the text of a plan shows."""

from __future__ import annotations

from typing import Literal, TypeAlias

Detail: TypeAlias = Literal["concise", "grouped", "full"]
"""One line per change, everything with equal changes together, or everything for each change by
itself."""
