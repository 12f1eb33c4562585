"""Runs `kafkaform` as its own process, which gets every signal that the job gets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from kafkaform.workflow.configuration.files import BASE_VARIABLE

from .job import Job

# -I: neither the checkout nor PYTHONPATH is a place to import from.
KAFKAFORM = (sys.executable, "-I", "-m", "kafkaform")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Ended:
    """How a command ended. out: its standard output, if it was kept."""

    code: int
    out: str = ""

    def list_events(self) -> list[dict[str, Any]]:
        """The events of `--json`. What is not an event is left out."""
        found = []
        for line in self.out.splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                found.append(event)
        return found


def run_kafkaform(
    job: Job,
    *words: str,
    folder: str = ".",
    keep: bool = False,
    pull_request: int | None = None,
) -> Ended:
    """Run a command in the folder of the configuration.

    folder: of a repository, seen from its top; keep: keep its standard output instead of printing
    it; pull_request: the one that is applied, for the audit log. A signal to this process goes to
    the command: the first one lets it finish what it has started and save, the second one only
    save.
    """
    environ = {name: text for name, text in os.environ.items() if not name.startswith("PIPELINE_")}
    if job.state:
        environ["KAFKAFORM_STATE"] = job.state
    environ.setdefault(BASE_VARIABLE, job.references.trusted)
    if pull_request is not None:
        environ["KAFKAFORM_PULL_REQUEST"] = str(pull_request)
    sys.stdout.flush()
    waiting: list[int] = []
    process: subprocess.Popen[str] | None = None

    def forward(number: int, _: FrameType | None) -> None:
        if process is None:
            waiting.append(number)
        else:
            process.send_signal(signal.SIGTERM)

    before = {number: signal.signal(number, forward) for number in SIGNALS}
    try:
        process = subprocess.Popen(
            [*KAFKAFORM, "--chdir", str(Path(job.folder, folder)), *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if keep else None,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        for _ in waiting:
            process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    code = process.returncode
    return Ended(code if code >= 0 else 128 - code, out or "")
