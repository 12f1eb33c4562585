"""Findings: the policies that a change breaks, with the waivers that allow it."""

from __future__ import annotations

from datetime import date

from msgspec import Struct

from .diagnostics import Range, Severity


class Finding(Struct, frozen=True):
    """One policy that a change breaks."""

    policy: str
    """The name of the policy."""
    severity: Severity
    """ERROR blocks the change, WARNING is only shown."""
    message: str
    """What is wrong, as the policy says it."""
    range: Range
    """Where the policy is declared."""
    waiver: str = ""
    """The reason of the waiver that covers the change, or covered it; empty without one."""
    until: date | None = None
    """The last day of the waiver, in UTC."""
    waived: bool = False
    """The waiver still counts."""

    @property
    def blocks(self) -> bool:
        """True if the change must not be made."""
        return self.severity is Severity.ERROR and not self.waived

    @property
    def waiver_text(self) -> str:
        """What people read about the waiver, empty without one."""
        if self.until is None:
            return ""
        if self.waived:
            return f"waived until {self.until}: {self.waiver}"
        return f"the waiver ended on {self.until}: {self.waiver}"
