"""A team's repository, and a Python in which `pip` installs nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TOOL = ("action.yml", "ci", "templates", "kafkaform", "providers", "examples/pipelines/ci")
"""What pipelines need of this repository."""

PYTHON = """\
#!{real} -I
import json, os, pathlib, subprocess, sys, sysconfig
said = sys.argv[1:]
if said[:3] != ["-I", "-m", "venv"]:
    os.execv({real!r}, [{real!r}, *said])
# Without pip, which would ask a package index. The packages of this environment stand in for those
# of the lock file, and a module called pip writes down what it is asked for.
subprocess.run([{real!r}, "-I", "-m", "venv", "--without-pip", said[3]], check=True)
(site,) = pathlib.Path(said[3]).glob("lib/python*/site-packages")
(site / "test.pth").write_text({places!r})
(site / "pip.py").write_text({pip!r})
"""
PIP = """\
import json, sys
with open({calls!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
"""


@dataclass(frozen=True)
class Repository:
    """folder: the checkout of a person who works on it; the jobs clone it."""

    folder: Path

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *who, *words],
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout.strip()

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, file: str, text: str) -> str:
        """A branch on which a file has this text; its commit."""
        self.git("switch", "--quiet", "--create", name)
        place = self.folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--message", "Change")
        return self.head

    def merge(self, name: str, *, squash: bool) -> str:
        """The branch becomes part of the default branch; the commit there."""
        self.git("switch", "--quiet", "main")
        if squash:
            self.git("merge", "--quiet", "--squash", name)
            self.git("commit", "--quiet", "--message", "Squash")
        else:
            self.git("merge", "--quiet", "--no-ff", "--message", "Merge", name)
        return self.head


def make_repository(folder: Path) -> Repository:
    """A repository with one empty commit, on `main`."""
    folder.mkdir(parents=True)
    made = Repository(folder)
    made.git("init", "--quiet", "--initial-branch", "main")
    made.git("commit", "--quiet", "--allow-empty", "--message", "Begin")
    return made


def clone(source: Path, commit: str, folder: Path) -> None:
    """What `actions/checkout` and GitLab's runner do."""
    made = Repository(folder)
    made.git("init", "--quiet")
    made.git("fetch", "--quiet", str(source), commit)
    made.git("checkout", "--quiet", "--detach", "FETCH_HEAD")


def copy_tool(folder: Path) -> Repository:
    """This repository as a component's project has it, as far as pipelines need it."""
    made = make_repository(folder)
    for name in TOOL:
        source = ROOT / name
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        # A link, so that no clone of it compiles the modules again.
        (folder / name).symlink_to(source)
    made.git("add", "--all", "--force")
    made.git("commit", "--quiet", "--message", "Tool")
    return made


def install_python(folder: Path, *places: Path) -> Path:
    """A folder for the PATH with a `python3` whose environments have the packages of this one, and
    these places. It writes down the calls of pip: `list_installs`."""
    folder.mkdir(parents=True)
    own = [entry for entry in sys.path if Path(entry).name == "site-packages"]
    program = folder / "python3"
    program.write_text(
        PYTHON.format(
            real=os.path.realpath(sys.executable),
            places="".join(f"{place}\n" for place in (*own, *places)),
            pip=PIP.format(calls=str(folder / "calls")),
        )
    )
    program.chmod(0o755)
    return folder


def list_installs(folder: Path) -> list[str]:
    """Every call of pip."""
    return (folder / "calls").read_text().splitlines()
