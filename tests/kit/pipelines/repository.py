"""A team's repository, and a Python in which `pip` installs nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..commands.server import get_server

ROOT = Path(__file__).resolve().parents[3]
TOOL = ("action.yml", "ci", "templates", "kafkaform", "providers", "examples/pipelines/ci")
"""What pipelines need of this repository."""

BRANCHES = "+refs/heads/*:refs/remotes/origin/*"
PYTHON = """\
#!{real} -IS
import os, shutil, sys
said = sys.argv[1:]
if said[:3] != ["-I", "-m", "venv"]:
    os.execv({real!r}, [{real!r}, *said])
# Without pip, which would ask a package index. The packages of this environment stand in for those
# of the lock file, and a module called pip writes down what it is asked for.
shutil.copytree({made!r}, said[3], symlinks=True, dirs_exist_ok=True)
"""
FORKING = """\
#!{real} -IS
import os, sys
said = sys.argv[1:]
if said[:3] != ["-I", "-m", "kafkaform"]:
    os.execv({real!r}, [sys.argv[0], *said])
sys.path.insert(0, {root!r})
from tests.kit.commands.asking import ask
ask({address!r}, said[3:], {places!r})
"""
"""A Python whose kafkaform is forked from the server of the tests."""
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
        """A branch of the current one on which a file has this text; its commit."""
        return self.write(name, {file: text}, "HEAD")

    def write(self, name: str, files: Mapping[str, str], start: str = "main") -> str:
        """A new branch on which these files have these texts; its commit."""
        self.git("switch", "--quiet", "--create", name, start)
        for path, text in files.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--message", "Change")
        return self.head

    def preview(self, name: str) -> str:
        """The commit that a merge of the branch would make now, which is on no branch."""
        self.git("switch", "--quiet", "--detach", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", "Preview", name)
        commit = self.head
        self.git("switch", "--quiet", "main")
        return commit

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


def clone(source: Path, commit: str, folder: Path, depth: int = 1) -> None:
    """What `actions/checkout` and GitLab's runner do. depth: how many commits; 0 for all of them,
    and all branches and tags."""
    made = Repository(folder)
    made.git("init", "--quiet")
    made.git("remote", "add", "origin", source.as_uri())
    if depth:
        made.git("fetch", "--quiet", "--no-tags", f"--depth={depth}", "origin", commit)
    else:
        made.git("fetch", "--quiet", "--tags", "origin", commit, BRANCHES)
    made.git("checkout", "--quiet", "--detach", commit)


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


def install_python(folder: Path, *places: Path, forking: bool = False) -> Path:
    """A folder for the PATH with a `python3` whose environments have the packages of this one, and
    these places. It writes down the calls of pip: `list_installs`. forking: the environments fork
    kafkaform instead of starting it."""
    folder.mkdir(parents=True)
    real, made = os.path.realpath(sys.executable), folder.with_name(f"{folder.name}-made")
    subprocess.run([real, "-I", "-m", "venv", "--without-pip", str(made)], check=True)
    own = [entry for entry in sys.path if Path(entry).name == "site-packages"]
    (site,) = made.glob("lib/python*/site-packages")
    (site / "test.pth").write_text("".join(f"{place}\n" for place in (*own, *places)))
    (site / "pip.py").write_text(PIP.format(calls=str(folder / "calls")))
    if forking:
        # Its other names are links to this one, or to the same program.
        (made / "bin/python").unlink()
        address, added = get_server().address, [str(place) for place in places]
        text = FORKING.format(real=real, root=str(ROOT), address=address, places=added)
        _write_program(made / "bin/python", text)
    _write_program(folder / "python3", PYTHON.format(real=real, made=str(made)))
    return folder


def _write_program(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


def list_installs(folder: Path) -> list[str]:
    """Every call of pip."""
    return (folder / "calls").read_text().splitlines()
