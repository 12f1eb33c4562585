"""A Git repository on this computer that modules come from."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TOPIC = """\
variable "name" { type = string }

resource "kafka_topic" "this" {
  name = var.name
}
"""


@dataclass
class Origin:
    """path: the folder of the repository, with its files."""

    path: Path

    @classmethod
    def make(cls, path: Path) -> Origin:
        path.mkdir(parents=True)
        origin = cls(path)
        origin.git("init", "--quiet", "--initial-branch=main", ".")
        return origin

    @property
    def source(self) -> str:
        """The source of its package."""
        return f"git::file://{self.path}"

    def git(self, *words: str) -> str:
        """Run git in it; what it prints."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.path,
            check=True,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                **{f"GIT_{who}_NAME": "somebody" for who in ("AUTHOR", "COMMITTER")},
                **{f"GIT_{who}_EMAIL": "some@body.example" for who in ("AUTHOR", "COMMITTER")},
                "GIT_CONFIG_GLOBAL": os.devnull,
            },
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | bytes], tag: str | None = None) -> str:
        """Commit these files, and tag the commit, also if the tag is at another one; the commit."""
        for name, content in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        if tag:
            self.git("tag", "--force", tag)
        return self.git("rev-parse", "HEAD")


def call(label: str, source: str, **arguments: str) -> str:
    """A module block."""
    lines = [f'  source = "{source}"', *(f"  {key} = {text}" for key, text in arguments.items())]
    return f'module "{label}" {{\n' + "\n".join(lines) + "\n}\n"
