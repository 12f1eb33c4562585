"""A repository of many folders: which of them a job is about, and what it says about them."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafkaform.core.errors import UsageError
from kafkaform.core.text import inline
from kafkaform.workflow.configuration.files import find_base, find_top, list_changed_files
from kafkaform.workflow.configuration.repository import FILES
from kafkaform.workflow.stores import STATE_VARIABLE

from .command import run_kafkaform
from .job import Job, JobError, Mode

_LOGGED = frozenset(
    {"planned_change", "resource_drift", "change_summary", "log", "repository_summary"}
)
"""The events of a plan that its log shows; faults are annotated."""


def choose_folders(job: Job) -> tuple[str, ...]:
    """The flags that choose what the job is about; none for one folder. Raises JobError.

    A pull request is planned, and what it became applied, where it changed something: so that it
    needs no right, no time and no repair of other folders.
    """
    if not job.is_repository:
        return ()
    if job.state or os.environ.get(STATE_VARIABLE):
        raise JobError(
            f"`state` and {STATE_VARIABLE} name one state, and each folder of a repository has its "
            "own: remove them."
        )
    if job.mode is Mode.DRIFT:
        return ("--all",)
    if job.globs:
        return tuple(f"--folder={glob}" for glob in job.globs)
    base = job.references.base
    return ("--all", "--changed-since", base) if base else ("--all",)


def render_notice(job: Job) -> str:
    """What a reviewer has to know of a plan that was not made with the repository file of the pull
    request; empty if it has the same file."""
    base, folder = job.references.base, Path(job.folder).resolve()
    if not (job.is_repository and job.untrusted and base):
        return ""
    try:
        top = find_top(folder)
        files = list_changed_files(top, find_base(top, base))
    except UsageError:  # the plan names this fault
        return ""
    name = next((name for name in FILES if folder / name in files), "")
    return name and (
        f"**This branch changes `{name}`**, which counts only after the merge: these plans were "
        "made with that of the default branch. The apply refuses each folder whose plan is another "
        "one then.\n\n"
    )


def list_folders(job: Job) -> tuple[str, ...]:
    """The paths of the folders that the job is about. Raises JobError."""
    return tuple(item["folder"] for item in _check_folders(job))


def locate_blocks(
    job: Job,
    events: Iterable[Mapping[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    *flags: str,
) -> list[Mapping[str, Any]]:
    """The events of a plan, in which the faults of blocked changes have their lines, as far as
    `validate` finds them. rows: of the folders.

    A folder keeps the fault without a place that counts its blocked changes, unless each of these
    has a fault of its own.
    """
    blocked = {row["folder"]: row["blocked"] for row in rows if row["blocked"]}
    checked: list[Mapping[str, Any]] = []
    if blocked:
        with contextlib.suppress(JobError):
            checked = _check_folders(job, *flags)
    located = [
        {"type": "diagnostic", "folder": item["folder"], "diagnostic": diagnostic}
        for item in checked
        for diagnostic in item["diagnostics"]
        if item["folder"] in blocked and diagnostic["severity"] == "error"
    ]
    addresses = {(event["folder"], event["diagnostic"].get("address")) for event in located}
    counts = Counter(folder for folder, _ in addresses)
    explained = {folder for folder, count in blocked.items() if counts[folder] >= count}
    return [*(event for event in events if not _is_count(event, explained)), *located]


def _is_count(event: Mapping[str, Any], folders: Collection[str]) -> bool:
    """Whether it is the fault without a place of one of these folders, each of which has a plan."""
    if event.get("type") != "diagnostic" or event.get("folder") not in folders:
        return False
    diagnostic = event["diagnostic"]
    return diagnostic["severity"] == "error" and not diagnostic.get("range")


def _check_folders(job: Job, *flags: str) -> list[Mapping[str, Any]]:
    """What `validate` says about each folder. Raises JobError."""
    checked = run_kafkaform(job, "validate", *choose_folders(job), "--json", *flags, keep=True)
    try:
        return [*json.loads(checked.out)["folders"]]
    except (ValueError, KeyError):
        raise JobError("The folders of the repository cannot be listed.") from None


def list_locked_folders(job: Job, name: str) -> Iterator[str]:
    """The folders that have a lock file for modules, seen from the configuration's folder."""
    if not job.is_repository:
        if Path(job.folder, name).exists():
            yield "."
        return
    for file in sorted(Path(job.folder).glob(f"**/{name}")):
        yield file.parent.relative_to(job.folder).as_posix()


def list_folder_rows(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """What `plan` says about each folder of a repository; None if it is about one folder, or could
    not begin."""
    summaries = (event for event in events if event.get("type") == "repository_summary")
    return next(([*event["repository"]["folders"]] for event in summaries), None)


def list_log_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each thing that a plan of many folders has found."""
    for event in events:
        if event.get("type") in _LOGGED:
            folder = event.get("folder")
            yield inline(f"{folder}: {event['@message']}" if folder else event["@message"])
