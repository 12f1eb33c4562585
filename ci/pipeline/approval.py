"""What a plan's job has approved: the plan of one folder, or those of a repository's folders."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kafkaform.core.errors import UsageError
from kafkaform.workflow.repository.documents import parse_approval

from .job import APPROVAL, JobError

_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*", re.ASCII)
"""A folder of a repository, whose names have no other characters."""


@dataclass(frozen=True)
class Approval:
    """What is applied, and nothing else."""

    text: str
    """The token of a plan; of a repository, the digest of all plans. It fits on a line."""
    folders: tuple[str, ...] = ()
    """Of a repository: the paths of the folders that have changes."""


NO_APPROVAL = Approval("")


def read_approval(data: bytes, *, is_repository: bool) -> Approval:
    """The approval in a file of the plan's job, which anybody can have written who can push. Raises
    JobError."""
    text = data.decode("ascii", "replace")
    if not is_repository and APPROVAL.fullmatch(text.removesuffix("\n")):
        return Approval(text.strip())
    try:
        approval = parse_approval(text if is_repository else "", "approval")
    except UsageError:
        raise JobError("What the plan's job left is not an approval.", 4) from None
    paths = tuple(approval.tokens)
    if not all(_PATH.fullmatch(path) and ".." not in path.split("/") for path in paths):
        raise JobError("What the plan's job left is about folders outside of the repository.", 4)
    return Approval(approval.digest, paths)
