"""Messages of a run that waits."""

from __future__ import annotations

from collections.abc import Collection

from ..core.progress import Message, Reporter


def say_silent(report: Reporter, nodes: Collection[str], seconds: float, noun: str) -> None:
    """Report that these nodes do not answer, and how long the run waits for them at most. noun:
    what the users of the system call a node."""
    many = len(nodes) > 1
    which = f"{noun}{'s' if many else ''} {', '.join(sorted(nodes))}"
    silent = f"{which}, which {'do' if many else 'does'} not answer"
    report(Message(f"Waiting up to {max(1.0, seconds):.0f} s for {silent}"))


def say_unclear(report: Reporter, steps: int, seconds: float) -> None:
    """Report that answers are missing, and how long the objects are read to find out what
    happened."""
    if seconds < 1:
        return
    what = "1 step" if steps == 1 else f"{steps:,} steps"
    report(Message(f"No answer came: reading for up to {seconds:.0f} s what became of {what}"))
