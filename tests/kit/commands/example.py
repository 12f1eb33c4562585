"""A folder of `examples/`, used as its README says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from kafkaform.sandbox import Sandbox

from .server import Job, get_server

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


class Copy:
    """An example in a folder of its own, with what its README tells to export."""

    def __init__(self, source: str, target: Path, env: Mapping[str, str]) -> None:
        self.folder = Path(shutil.copytree(EXAMPLES / source, target / source))
        self.env = {**os.environ, **env, "NO_COLOR": "1"}

    def run(self, *arguments: str, expect: int = 0) -> str:
        """What a command prints, both streams. It must end with this exit code."""
        ended = get_server().start(Job(arguments, str(self.folder), self.env)).finish()
        assert ended.code == expect, ended.out
        return ended.out

    def applied(self, *arguments: str) -> None:
        """Apply; the next plan has nothing to do."""
        self.run("apply", "--auto-approve", *arguments)
        assert "No changes." in self.run("plan", "--detailed-exitcode", *arguments)


def one(name: str, tmp_path: Path, box: Sandbox) -> Copy:
    env = {
        "KAFKAFORM_SANDBOX_PASSWORD": box.admin_password,
        "KF_VAR_bootstrap": box.bootstrap,
    }
    return Copy(name, tmp_path, env)
