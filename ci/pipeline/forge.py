"""What a pipeline needs of a forge; `github.py` and `gitlab.py` are the two that there are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from .diagnostics import Diagnostic
from .job import APPROVAL, JobError, Mode


@dataclass(frozen=True)
class ReviewedPlan:
    """What the plan's job of a merged pull request has left."""

    approval: str
    plan: bytes
    """The saved plan, with which a refusal says what differs."""
    pull_request: int | None = None
    """The number of the pull request, for the audit log; None if a group of several was planned."""


@dataclass(frozen=True)
class Note:
    """A comment or an issue that the pipeline wrote."""

    id: int
    body: str


class Forge(Protocol):
    """GitHub or GitLab, seen by one job."""

    def choose_mode(self) -> Mode:
        """The mode for the event that started the job. Raises JobError."""

    def find_reviewed_plan(self) -> ReviewedPlan:
        """The plan of the pull request that became the commit of this job. Raises JobError."""

    def comment(self, mark: str, body: str) -> None:
        """Write the comment that begins with this mark, or replace it. Only a comment of the
        pipeline itself counts. Raises JobError."""

    def open_issue(self, mark: str, title: str, body: str) -> None:
        """Open the issue that begins with this mark, or update it. Raises JobError."""

    def close_issue(self, mark: str) -> None:
        """Close the issue that begins with this mark, if it is open. Raises JobError."""

    def annotate(self, diagnostics: Sequence[Diagnostic], title: str) -> None:
        """Show faults at their lines. title: says which pipeline has found them."""

    def summarize(self, text: str) -> None:
        """Add Markdown to the summary of the run, where there is one."""

    def set_outputs(self, outputs: dict[str, str]) -> None:
        """Hand values on to other steps, where there are such."""

    def mute_commands(self) -> AbstractContextManager[None]:
        """In this block, nothing that is printed is a command to the forge."""

    def describe_run(self) -> str:
        """The commit and the run, as a line of Markdown."""


def check_approval(text: str) -> str:
    """The approval in a file of the plan's job. Raises JobError."""
    approval = text.strip()
    if not APPROVAL.fullmatch(approval):
        raise JobError("What the plan's job left is not an approval.", 4)
    return approval


def find_note(notes: Sequence[Note], mark: str) -> Note | None:
    """The one that begins with this mark."""
    return next((one for one in notes if one.body.startswith(mark)), None)


UNPLANNED = (
    "No plan of what was merged. Run the pipeline by hand on this branch, read its plan, then run "
    "it again with the approval of that plan."
)
