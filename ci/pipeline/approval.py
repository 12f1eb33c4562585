"""What a plan's job has approved: the plan of one folder, or those of a repository's folders."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .job import APPROVAL, DIGEST, JobError

_LINE = re.compile(rf"({APPROVAL.pattern}) ([\w.-]+(?:/[\w.-]+)*)", re.ASCII)


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
    first, *lines = data.decode("ascii", "replace").rstrip("\n").split("\n")
    if not is_repository and APPROVAL.fullmatch(first) and not lines:
        return Approval(first)
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    paths = tuple(match[2] for match in matches)
    sound = len(matches) == len(lines) and not any(".." in path.split("/") for path in paths)
    if not is_repository or not DIGEST.fullmatch(first) or not sound:
        raise JobError("What the plan's job left is not an approval.", 4)
    return Approval(first, paths)
