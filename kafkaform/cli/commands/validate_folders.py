"""`kafkaform validate --all`, `--folder` and `--changed-since`: one report for many folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...render.diagnostics import make_diagnostic_data
from ...render.text import render_count, render_json
from ...workflow.configuration.evaluation import Inputs
from ...workflow.configuration.repository_check import CheckedFolder, check_folders
from ...workflow.configuration.repository_choice import Choice, choose_folders
from ..terminal.console import Console


def validate_folders(
    console: Console,
    inputs: Inputs,
    all: bool,
    globs: Sequence[str],
    since: str | None,
    *,
    json: bool,
) -> int:
    """Check the chosen folders; return the gravest exit code. Raises UsageError, and
    ConfigurationError for faults of the repository file."""
    choice = choose_folders(Path(), all, globs, since)
    checked = [*check_folders(choice, inputs)]
    if json:
        console.write(_render_report(checked))
    else:
        for item in checked:
            console.show_diagnostics(item.faults)
        console.write_lines(_render_summary(choice, checked))
    return max((item.code for item in checked), default=0)


def _render_summary(choice: Choice, checked: Sequence[CheckedFolder]) -> Iterator[str]:
    """What failed comes first."""
    failed = [item for item in checked if item.code]
    for item in failed:
        yield f"{item.folder.path}: {render_count(item.errors, 'error')}"
    sound = [item for item in checked if not item.code]
    name = choice.repository.name
    if not checked:
        folders = render_count(choice.count, "folder")
        yield f"None of the {folders} of the repository {name} has changed."
        return
    objects = render_count(sum(item.objects for item in sound), "object")
    if failed:
        folders = render_count(len(checked), "folder")
        yield f"{len(failed):,} of {folders} of the repository {name} failed."
    if sound:
        verb = "is" if len(sound) == 1 else "are"
        yield f"{render_count(len(sound), 'folder')} {verb} valid: {objects} declared."


def _render_report(checked: Sequence[CheckedFolder]) -> str:
    """A record for each folder, in the shape of `terraform validate -json`."""
    return render_json(
        {
            "format_version": "1.0",
            "valid": not any(item.code for item in checked),
            "error_count": sum(item.errors for item in checked),
            "warning_count": sum(len(item.faults) - item.errors for item in checked),
            "folders": [_make_record(item) for item in checked],
        }
    )


def _make_record(item: CheckedFolder) -> dict[str, object]:
    return {
        "folder": item.folder.path,
        "owner": item.folder.owner,
        "valid": not item.code,
        "error_count": item.errors,
        "warning_count": len(item.faults) - item.errors,
        "objects": item.objects,
        "diagnostics": [make_diagnostic_data(fault, None) for fault in item.faults],
    }
