"""The plans of many folders as documents: text, a review comment, a page, and their approval.

The approval is a token for each folder with changes, and a digest of all of them. As text, the
digest is the first line, and each further one is `TOKEN PATH`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ...core.canonical import digest
from ...core.errors import KafkaformError, UsageError
from ...core.secret import mask_secrets
from ...render import review
from ...render.folders import (
    FolderEnd,
    FolderReview,
    FoldersSummary,
    render_folder_ends,
    render_folder_plans,
    summarise_folders,
)
from ...render.text import Detail
from ..configuration.repository_choice import FolderChoice
from ..plan_documents import read_words, save_file
from .planning import FolderOutcome

_LINE = re.compile(r"([0-9a-f]{64}\.[0-9a-f]{64}) (\S+)")


class FoldersApproval(Struct, frozen=True):
    """What a reviewer of the plans of many folders approves."""

    tokens: Mapping[str, str]
    """Path of a folder with changes -> the token of its plan, in the order of the paths."""

    @property
    def digest(self) -> str:
        """SHA-256 over the paths and tokens in their order, hexadecimal."""
        return digest([[path, token] for path, token in sorted(self.tokens.items())])


def make_approval(outcomes: Iterable[FolderOutcome]) -> FoldersApproval:
    """The approval of all plans that can be applied and change something."""
    plans = {item.folder.path: item.plan for item in outcomes if item.applicable}
    return FoldersApproval({path: plan.token for path, plan in sorted(plans.items()) if plan})


def render_approval(approval: FoldersApproval) -> str:
    """The approval as the text of a file."""
    lines = (f"{token} {path}\n" for path, token in approval.tokens.items())
    return "".join((f"{approval.digest}\n", *lines))


def save_folders_approval(approval: FoldersApproval, path: Path) -> None:
    """Save the approval, which is not a secret. Raises StorageError."""
    save_file(path, render_approval(approval).encode(), private=False)


def parse_approval(text: str, source: str) -> FoldersApproval:
    """The approval that a file has. source: the name of the file, for errors. Raises UsageError for
    another text, and for one of which a line was changed, added or taken away."""
    matches = map(_LINE.fullmatch, text.splitlines()[1:])
    approval = FoldersApproval({match[2]: match[1] for match in matches if match})
    if render_approval(approval).splitlines() != text.splitlines():
        raise UsageError(
            f"{source} is not an approval of folders as it was written",
            "Plan again with `kafkaform plan --all --approval-out FILE`.",
        )
    return approval


_FEW = 3
"""How many faults of a folder are named."""


def make_review(outcome: FolderOutcome) -> FolderReview:
    """The folder as its reviewers read it."""
    plan, error = outcome.plan, outcome.error
    return FolderReview(
        outcome.folder.path,
        outcome.folder.owner or "",
        plan,
        read_words(plan) if plan is not None else {},
        "" if error is None else _describe_error(error),
        outcome.skipped,
        outcome.code,
        withheld=outcome.changed and not outcome.applicable,
        verdicts=outcome.verdicts,
    )


def _describe_error(error: KafkaformError) -> str:
    """The message, and the first faults that the error carries, with their places in the folder."""
    faults = [item for item in error.diagnostics if item.summary != error.message]
    named = [f"{f.range}: {f.summary}" if f.range else f.summary for f in faults[:_FEW]]
    more = [f"and {len(faults) - _FEW:,} more"] if len(faults) > _FEW else []
    return f"{error.message}: {'; '.join((*named, *more))}" if faults else error.message


def summarise_outcomes(choice: FolderChoice, outcomes: Iterable[FolderOutcome]) -> FoldersSummary:
    """Count the plans of these folders of a repository, with the approval of all of them."""
    outcomes = tuple(outcomes)
    approval = make_approval(outcomes)
    digest = approval.digest if approval.tokens else ""
    reviews = map(make_review, outcomes)
    return summarise_folders(choice.repository.name, choice.count, reviews, digest)


def render_folders_text(
    summary: FoldersSummary,
    *,
    colour: bool = False,
    width: int = 100,
    detail: Detail = "grouped",
    approval: bool = True,
) -> str:
    """The plans as text, as in `render_plan`."""
    return mask_secrets(
        render_folder_plans(summary, colour=colour, width=width, detail=detail, approval=approval)
    )


def render_ends_text(ends: Sequence[FolderEnd], *, colour: bool = False, width: int = 100) -> str:
    """What became of folders after an apply, as text."""
    return mask_secrets(render_folder_ends(ends, colour=colour, width=width))


def render_folders_comment(
    summary: FoldersSummary, *, command: str, whole: Path | None = None
) -> str:
    """The plans as one review comment. command: applies exactly these plans; whole: a file that has
    all of them."""
    name = whole.name if whole is not None else ""
    return mask_secrets(
        review.folders_comment.render_folders_markdown(summary, command=command, whole=name)
    )


def render_folders_page(summary: FoldersSummary, command: str) -> str:
    """The plans as one HTML page. command: applies exactly these plans."""
    # Secrets are masked before the page escapes them.
    return review.html_page.render_folders_html(summary, command=command)
