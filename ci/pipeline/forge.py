"""What a pipeline needs of a forge; `github.py` and `gitlab.py` are the two that there are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from .diagnostics import Diagnostic
from .job import Mode, References


@dataclass(frozen=True)
class ReviewedFiles:
    """What the plan's job of a merged pull request has left."""

    contents: Mapping[str, bytes]
    """By name."""
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

    def find_references(self) -> References:
        """What this job compares the files of its commit with."""

    def find_reviewed_files(self, names: Sequence[str]) -> ReviewedFiles:
        """The files with these names that the plan's job of the pull request left which became the
        commit of this job. Raises JobError, also if one is missing."""

    def comment(self, mark: str, body: str, *, is_new: bool = True) -> None:
        """Write the comment that begins with this mark, or replace it. Only a comment of the
        pipeline itself counts. is_new: write one if there is none. Raises JobError."""

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


def find_note(notes: Sequence[Note], mark: str) -> Note | None:
    """The one that begins with this mark."""
    return next((one for one in notes if one.body.startswith(mark)), None)


def make_branch_reference(branch: str) -> str:
    """The full name of a branch in the checkout: a tag can be called `origin/main`, too."""
    return f"refs/remotes/origin/{branch.removeprefix('refs/heads/')}"


def check_before(commit: str) -> str:
    """The commit before a push; empty for a push that created the branch."""
    return commit if re.fullmatch(r"[0-9a-f]{40,64}", commit) and commit.strip("0") else ""


UNPLANNED = (
    "No plan of what was merged. Run the pipeline by hand on this branch, read its plan, then run "
    "it again with the approval of that plan."
)
