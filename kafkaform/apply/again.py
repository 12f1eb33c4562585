"""How a user goes on with a run that was refused or ended in part: by how it was begun."""

from __future__ import annotations

from msgspec import Struct


class Again(Struct, frozen=True):
    """command: the name of the one that runs; same: how to run it once more, in words; reviewed:
    it applies a plan that was reviewed before it began, from a file or by its approval."""

    command: str = "apply"
    same: str = "`kafkaform apply`"
    reviewed: bool = False

    @property
    def repeat(self) -> str:
        """What to do when this very plan may be applied later."""
        return f"Run {self.same} again."

    @property
    def anew(self) -> str:
        """What to do when this plan must not be applied any more."""
        if self.reviewed:
            return "Plan again and have the new plan reviewed."
        return f"Run {self.same} again: it makes a new plan."

    @property
    def rest(self) -> str:
        """What to do when a part of the plan was applied."""
        if self.reviewed:
            return f"Run {self.same} again: it applies what is left of the plan."
        return f"Run {self.same} again: what was applied is recorded, the rest is planned anew."


APPLY = Again()
"""A plain `apply`, which plans and asks."""
