"""Events of a run, as data for the caller's callback, which draws or drops them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..apply.recovery import Recovered
from ..apply.report import Work
from ..core.change import Verdict
from ..core.progress import Event, Message
from ..core.secret import mask_secrets
from ..plan.model import Plan

IN_SPITE = "The run went on without this callback; what it did is recorded."


class Note(Struct, frozen=True):
    """A line for people that stays on the screen; a `Message` is about work in progress."""

    text: str


class PlanChosen(Struct, frozen=True):
    """The plan that was asked for, or that is going to be approved and applied."""

    plan: Plan
    run: str = ""
    """The earlier run that began or finished this plan, "" if there is none."""


class DryRun(Struct, frozen=True):
    """The result of a plan's dry run."""

    plan: Plan
    verdicts: Mapping[str, Verdict]
    """Step id -> verdict."""


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
        # Only these contain foreign text: error messages of systems can repeat a secret.
        if isinstance(event, Message | Note):
            event = replace(event, text=mask_secrets(event.text))
        try:
            self.listener(event)
        except Exception as error:
            if not self.sending:
                raise
            # A screen that fails must not leave a request without its outcome in the log.
            error.add_note(IN_SPITE)
            self.error = error
