"""Advice on how to go on with a run that was refused or applied in part, by how it was begun."""

from __future__ import annotations

from msgspec import Struct


class Rerun(Struct, frozen=True):
    """How a run can be repeated, for the advice of its errors."""

    command: str = "apply"
    """The name of its command."""
    command_text: str = "`kafkaform apply`"
    """The command line that runs it once more, in words."""
    reviewed: bool = False
    """Its plan was reviewed before it began: it comes from a file, or its approval was given."""

    @property
    def repeat_advice(self) -> str:
        """What to do if this very plan can be applied later."""
        return f"Run {self.command_text} again."

    @property
    def new_plan_advice(self) -> str:
        """What to do if this plan must not be applied any more."""
        if self.reviewed:
            return "Plan again and have the new plan reviewed."
        return f"Run {self.command_text} again: it makes a new plan."

    @property
    def remainder_advice(self) -> str:
        """What to do if a part of the plan was applied."""
        if self.reviewed:
            return f"Run {self.command_text} again: it applies what is left of the plan."
        return (
            f"Run {self.command_text} again: what was applied is recorded, and the rest is "
            "planned again."
        )


PLAIN_APPLY = Rerun()
"""How an `apply` that plans and asks can be repeated."""
