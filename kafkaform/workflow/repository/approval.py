"""The approval of the plans of many folders: a token for each folder with changes, and a digest of
all of them. As text, the digest is the first line, and each further one is `TOKEN PATH`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from ...core.canonical import digest
from ...core.errors import UsageError
from ..plan_documents import save_file
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
