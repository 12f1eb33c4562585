"""What has failed of a connector, in words that can be shown.

A stack trace can contain what the connector was configured with: addresses with logins, and
statements. So only the first line and the last cause are taken, without known secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkaform.core.secret import mask_secrets

from .answers import Connector, TaskStatus

FAILED = "FAILED"
MAX_REASON = 300
"""Characters of a reason."""
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_LOGIN = re.compile(r"(://)[^/\s:@]*:[^/\s@]+@")
_PARAMETER = re.compile(
    r"\b(\w*(?:password|pwd|secret|token)\w*)\s*[=:]\s*[^\s,;&)]+", re.IGNORECASE
)


def list_failures(connector: Connector) -> Iterator[str]:
    """One sentence for each part that has failed."""
    status = connector.status
    if status is not None and status.state == FAILED:
        yield f"the connector failed on worker {status.worker}: {shorten_trace(status.trace)}"
    for task in connector.tasks:
        if task.state == FAILED:
            yield f"task {task.id} failed on worker {task.worker}: {shorten_trace(task.trace)}"


def find_failed(connector: Connector) -> tuple[str, ...]:
    """What has failed: `connector`, `tasks`."""
    parts: list[str] = []
    if connector.status is not None and connector.status.state == FAILED:
        parts.append("connector")
    if any(task.state == FAILED for task in connector.tasks):
        parts.append("tasks")
    return tuple(parts)


def shorten_trace(trace: str) -> str:
    """The first line of a stack trace and its last cause, without secrets."""
    masked = mask_secrets(trace)
    first = masked.strip().partition("\n")[0].strip()
    causes = _CAUSE.findall(masked)
    text = f"{first}; caused by {causes[-1].strip()}" if causes else first
    text = _PARAMETER.sub(r"\1=(secret)", _LOGIN.sub(r"\1(secret)@", text))
    text = " ".join(text.split()) or "it does not say why"
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"


def describe_progress(connector: Connector) -> str:
    """How far the startup of a connector is."""
    status, tasks = connector.status, connector.tasks
    if status is None or status.state != "RUNNING":
        return "no worker runs it yet"
    running = sum(_runs(task) for task in tasks)
    return f"{running} of {len(tasks)} tasks run" if tasks else "it has no tasks yet"


def _runs(task: TaskStatus) -> bool:
    return task.state == "RUNNING"
