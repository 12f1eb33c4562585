"""What a run tells while it goes on, as data: the caller's callback draws it or drops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..apply.recover import Recovered
from ..apply.report import Work
from ..core.change import Verdict
from ..core.progress import Event, Message
from ..core.redaction import mask_secrets
from ..plan.model import Plan

IN_SPITE = "The run went on without this callback; what it did is recorded."


class Note(Struct, frozen=True):
    """A line for people that stays, unlike a `Message` about what is under way."""

    text: str


class PlanChosen(Struct, frozen=True):
    """The plan that was asked for, or that is going to be approved and applied. run: the earlier
    run that began or finished this very plan, "" if there is none."""

    plan: Plan
    run: str = ""


class DryRun(Struct, frozen=True):
    """What the dry run of a plan says: step id -> verdict."""

    plan: Plan
    verdicts: Mapping[str, Verdict]


RunEvent = Event | Note | PlanChosen | DryRun | Recovered | Work
Listener = Callable[[RunEvent], None]


class Announcer(Struct):
    """Hands events to the caller's callback, without secrets.

    Before anything is sent, what the callback raises ends the run. After that it cannot: the run
    goes on without the callback to its recorded end.
    """

    listener: Listener
    sending: bool = False
    """From now on an error of the callback does not end the run."""
    error: Exception | None = None
    """What the callback raised while the run was sending."""

    def __call__(self, event: RunEvent) -> None:
        if self.error is not None:
            return
        if isinstance(event, Message | Note):
            event = replace(event, text=mask_secrets(event.text))
        try:
            self.listener(event)
        except Exception as error:
            if not self.sending:
                raise
            error.add_note(IN_SPITE)
            self.error = error
