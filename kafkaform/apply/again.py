"""Advice on how to go on with a run that was refused or applied in part, by how it was begun."""

from __future__ import annotations

from msgspec import Struct


class Again(Struct, frozen=True):
    """How a run was begun."""

    command: str = "apply"
    """The name of its command."""
    same: str = "`kafkaform apply`"
    """How to run it once more, in words."""
    reviewed: bool = False
    """Its plan was reviewed before it began: it comes from a file, or its approval was given."""

    @property
    def repeat(self) -> str:
        """What to do if this very plan can be applied later."""
        return f"Run {self.same} again."

    @property
    def anew(self) -> str:
        """What to do if this plan must not be applied any more."""
        if self.reviewed:
            return "Plan again and have the new plan reviewed."
        return f"Run {self.same} again: it makes a new plan."

    @property
    def rest(self) -> str:
        """What to do if a part of the plan was applied."""
        if self.reviewed:
            return f"Run {self.same} again: it applies what is left of the plan."
        return f"Run {self.same} again: what was applied is recorded, the rest is planned anew."


APPLY = Again()
"""A plain `apply`, which plans and asks."""
