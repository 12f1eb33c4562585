"""The faults that a plan names, for the places where forges show them: at the line of a file."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkaform.core import diagnostics as core
from kafkaform.core.text import inline
from kafkaform.render.diagnostics import join_alike
from kafkaform.render.review.comment_rows import render_code

COMMENT_LIMIT = 60_000
"""Characters; GitHub refuses comments of more than 65,536."""
NAMED = 5
"""Folders of a fault that are named."""
_GITLAB_SEVERITIES = {"error": "major", "warning": "minor"}


@dataclass(frozen=True)
class Diagnostic:
    """A fault. Its texts are foreign: a name in the configuration can be anything."""

    severity: str
    """`error` or `warning`."""
    summary: str
    detail: str
    """Why, and what to do next."""
    file: str = ""
    """Relative to the top of the repository; empty if the fault has no place."""
    line: int = 0

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file else ""


def read_diagnostics(events: Iterable[Mapping[str, Any]], folder: str) -> tuple[Diagnostic, ...]:
    """The diagnostics among the events of `kafkaform plan --json`, errors first. Those that many
    objects or folders have for one cause are one.

    folder: of the configuration, relative to the top of the repository.
    """
    found = []
    for data in _join_events(events):
        place = data.get("range")
        texts = [text for text in (data.get("detail"), data.get("advice")) if text]
        line = place["start"]["line"] if place else 0
        if place and place["filename"].startswith("git::"):
            # A file of another repository, which no forge can show here.
            texts.insert(0, f"On {place['filename']}:{line}.")
            place, line = None, 0
        file = posixpath.normpath(posixpath.join(folder, place["filename"])) if place else ""
        found.append(Diagnostic(data["severity"], data["summary"], "\n".join(texts), file, line))
    return tuple(sorted(dict.fromkeys(found), key=lambda one: one.severity != "error"))


def _join_events(events: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The content of the diagnostics. Of those without a place, equal ones are joined, and the
    detail names their objects; the summary names the folders of a repository."""
    folders: dict[core.Diagnostic, list[str]] = {}
    for event in events:
        if event.get("type") != "diagnostic":
            continue
        if event["diagnostic"].get("range"):
            yield event["diagnostic"]
        else:
            own = folders.setdefault(_read_diagnostic(event["diagnostic"]), [])
            own += [event["folder"]] if "folder" in event else []
    for item in join_alike(folders):
        where = f"in {item.address}" if item.address and item.address not in item.summary else ""
        named = name_folders(folders.get(item, ()))
        yield {
            "severity": item.severity.value,
            "summary": f"{named}: {item.summary}" if named else item.summary,
            "detail": "\n".join(filter(None, (where, item.detail))),
            "advice": item.advice,
        }


def name_folders(folders: Sequence[str]) -> str:
    """`teams/shop, teams/web and 58 more`."""
    more = f" and {len(folders) - NAMED:,} more" if len(folders) > NAMED else ""
    return f"{', '.join(folders[:NAMED])}{more}"


def _read_diagnostic(data: Mapping[str, Any]) -> core.Diagnostic:
    return core.Diagnostic(
        core.Severity(data["severity"]),
        data["summary"],
        data.get("detail") or "",
        advice=data.get("advice") or "",
        address=data.get("address"),
    )


def render_text(diagnostic: Diagnostic) -> str:
    """For a log that executes no commands."""
    head = f"{diagnostic.severity.capitalize()}: {inline(diagnostic.summary)}"
    lines = [inline(text) for text in (diagnostic.place, *diagnostic.detail.split("\n")) if text]
    return "\n".join([head, *(f"  {line}" for line in lines)])


def render_command(diagnostic: Diagnostic, title: str) -> str:
    """A workflow command of GitHub Actions, which annotates the line of the file.

    Foreign text is one line of printable characters before it is escaped for the command: data by
    `%25 %0D %0A`, properties by these and `%3A %2C`.
    """
    properties = {"title": inline(title)}
    if diagnostic.file:
        properties |= {"file": inline(diagnostic.file), "line": str(diagnostic.line)}
    joined = ",".join(f"{name}={_escape_property(text)}" for name, text in properties.items())
    texts = [inline(text) for text in (diagnostic.summary, *diagnostic.detail.split("\n")) if text]
    command = "error" if diagnostic.severity == "error" else "warning"
    return f"::{command} {joined}::{_escape_data(chr(10).join(texts))}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


def render_code_quality(diagnostics: Sequence[Diagnostic], title: str) -> str:
    """GitLab's code quality report, which shows the faults in the changes of a merge request."""
    report = []
    for one in diagnostics:
        if not one.file:
            continue
        # Two pipelines of one project can find the same fault in a module that both use.
        identity = "\0".join((title, one.severity, one.summary, one.file, str(one.line)))
        report.append(
            {
                "description": f"{inline(title)}: {inline(one.summary)}",
                "check_name": f"kafkaform {one.severity}",
                "fingerprint": hashlib.sha256(identity.encode()).hexdigest(),
                "severity": _GITLAB_SEVERITIES.get(one.severity, "info"),
                "location": {"path": one.file, "lines": {"begin": one.line}},
            }
        )
    return json.dumps(report)


def render_heading(label: str, text: str) -> str:
    """The heading of a comment or a summary: "## kafkaform `teams/orders`: no plan"."""
    return f"## kafkaform {render_code(label)}: {text}" if label else f"## kafkaform: {text}"


def render_failure(diagnostics: Sequence[Diagnostic], label: str) -> str:
    """The comment where there is no plan, in Markdown. label: of the pipeline (`Job.label`)."""
    heading = render_heading(label, "no plan")
    if not diagnostics:
        return f"{heading}\n\nThe log of the job says why.\n"
    return f"{heading}\n\n{render_faults(diagnostics, COMMENT_LIMIT)}"


def render_faults(diagnostics: Sequence[Diagnostic], room: int) -> str:
    """The faults in Markdown, as a block that they cannot close, because each line is indented.
    room: characters that they can take."""
    lines = ["These faults have to be corrected first:", ""]
    for number, one in enumerate(diagnostics):
        text = "\n".join(f"    {line}" for line in render_text(one).split("\n"))
        room -= len(text) + 1
        if room < 0:
            lines += ["", f"… and {len(diagnostics) - number} more."]
            break
        lines.append(text)
    return "\n".join([*lines, ""])
