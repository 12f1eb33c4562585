"""What a job is asked to do: read from the variables that `action.yml` and the component set."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kafkaform.workflow.configuration.repository import FILES

UNTRUSTED = "--untrusted"
APPROVAL = re.compile(r"[0-9a-z]+\.[0-9a-z]+")
"""An approval token: of the plan of one folder."""
DIGEST = re.compile(r"[0-9a-f]{64}")
"""The approval of the plans of a repository's folders."""


class JobError(Exception):
    """A job that cannot do its work. code: its exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Mode(StrEnum):
    PLAN = "plan"
    APPLY = "apply"
    DRIFT = "drift"


@dataclass(frozen=True)
class References:
    """Commits of the checkout, by names that no branch and no tag can take."""

    base: str = ""
    """What the files of the job are compared with: the branch that a pull request is for, or the
    commit before a push. Empty for other jobs."""
    trusted: str = "HEAD"
    """Where the repository file is read for files that nobody has reviewed."""


NO_REFERENCES = References()


@dataclass(frozen=True)
class Job:
    """What a job is asked to do."""

    mode: Mode
    folder: str
    """The folder of the configuration, relative to the top of the repository."""
    name: str
    """Tells several pipelines of one repository apart."""
    args: tuple[str, ...]
    """More words for `plan` and `apply`, such as `--var region=eu`."""
    untrusted: bool
    """Plan a branch with `--untrusted`."""
    validate: bool
    """Plan a branch with `--validate`, if it is trusted."""
    state: str
    """The address of the state; empty if the environment or the configuration names it."""
    approval: str
    """The approval that somebody typed in; empty for that of the merged pull request."""
    out: Path
    """Where the job leaves its files: a folder that no branch can prepare."""
    globs: tuple[str, ...] = ()
    """Of a repository: patterns of folders that somebody typed in; none for all folders."""
    references: References = NO_REFERENCES
    is_repository: bool = False
    """Whether the folder is the top of a repository with many folders."""

    @property
    def branch_flags(self) -> tuple[str, ...]:
        """The flags for a plan of files that are not merged yet."""
        # A dry run needs the secrets of the objects and a login that may write: a plan of files
        # that nobody has reviewed gets neither.
        if self.untrusted:
            return (UNTRUSTED,)
        return ("--validate",) if self.validate else ()

    @property
    def key(self) -> str:
        """The name as a part of hidden markers and of the artifact's name."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """What annotations are called: `kafkaform: teams/orders`."""
        return f"kafkaform: {self.label}" if self.label else "kafkaform"

    @property
    def label(self) -> str:
        """The name in headings; empty for the only configuration of a repository, at its top."""
        return "" if self.name == "." else self.name

    @property
    def artifact(self) -> str:
        return f"kafkaform-plan-{self.key}"

    def mark(self, what: str) -> str:
        """The hidden first line of what the pipeline writes: `plan` or `drift`."""
        return f"<!-- kafkaform:{what}:{self.key} -->"


def read_job(environ: Mapping[str, str], mode: str, references: References = NO_REFERENCES) -> Job:
    """The job that `PIPELINE_…` describe. mode: if PIPELINE_MODE is empty. Raises JobError."""
    chosen = environ.get("PIPELINE_MODE") or mode
    if chosen not in list(Mode):
        raise JobError(f"The mode {chosen!r} does not exist: use plan, apply or drift.")
    folder = environ.get("PIPELINE_FOLDER") or "."
    switches = {}
    for name in ("untrusted", "validate"):
        switches[name] = environ.get(f"PIPELINE_{name.upper()}") or "true"
        if switches[name] not in ("true", "false"):
            raise JobError(f"{name} is true or false, not {switches[name]!r}.")
    approval = environ.get("PIPELINE_APPROVAL", "").strip()
    is_repository = any(os.path.lexists(Path(folder, name)) for name in FILES)
    if approval and not (DIGEST if is_repository else APPROVAL).fullmatch(approval):
        raise JobError("That is not an approval: it is the last but one line of a plan.", 4)
    try:
        args = tuple(shlex.split(environ.get("PIPELINE_ARGS", "")))
    except ValueError as error:
        raise JobError(f"args cannot be split into words: {error}.") from None
    return Job(
        mode=Mode(chosen),
        folder=folder,
        name=environ.get("PIPELINE_NAME") or folder,
        args=args,
        untrusted=switches["untrusted"] == "true",
        validate=switches["validate"] == "true",
        state=environ.get("PIPELINE_STATE", ""),
        approval=approval,
        out=Path(environ["PIPELINE_OUT"]).absolute(),
        globs=tuple(environ.get("PIPELINE_FOLDERS", "").split()),
        references=references,
        is_repository=is_repository,
    )
