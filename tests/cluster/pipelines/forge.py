"""What a job of a pipeline finds outside of itself: a repository, the forge's API, a package index.

`gh`, `curl` and `pip` are programs on the PATH that answer from one folder and write down how they
were called; nothing else of a pipeline is replaced.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/pipelines"

PROGRAM = """\
#!{python} -I
import json, os, shutil, sys
from pathlib import Path
forge, name, said = Path({forge!r}), Path(sys.argv[0]).name, sys.argv[1:]
def after(flag):
    return said[said.index(flag) + 1]
def known(file):
    return json.loads((forge / file).read_text())
def ended(code=0, text=""):
    sys.stdout.write(text)
    with (forge / "calls").open("a") as calls:
        calls.write(json.dumps([name, said, {{"token": bool(os.environ.get("GH_TOKEN"))}}]) + "\\n")
    sys.exit(code)
"""

PIP = """
assert Path(after("-r")).read_text().count("--hash=sha256:") > 100
ended()
"""

GH = """
if "GH_TOKEN" not in os.environ:
    ended(4)
if said[:2] == ["pr", "comment"]:
    shutil.copy(after("--body-file"), forge / "comment.md")
elif said[0] == "api" and "select(.merge_commit_sha == env.GITHUB_SHA)" in after("--jq"):
    merged = {pull["merged"]: f"{pull['number']} {pull['head']}" for pull in known("pulls")}
    sha = said[1].split("/")[-2]
    ended(0, merged.get(sha, "") if sha == os.environ["GITHUB_SHA"] else "")
elif said[:2] == ["run", "list"]:
    queued = known("queued") if after("--event") == "merge_group" else known("runs")
    ended(0, str(queued.get(after("--commit"), "")))
elif said[:2] == ["run", "download"]:
    shutil.copytree(forge / "artifacts" / said[2] / after("--name"), after("--dir"))
else:
    ended(1)
ended()
"""

CURL = """
url = said[-1]
if not any(word.startswith("PRIVATE-TOKEN: ") and len(word) > 16 for word in said):
    ended(22)
if url.endswith("/notes"):
    shutil.copy(after("--data-urlencode").partition("@")[2], forge / "comment.md")
elif url.endswith("/merge_requests"):
    ended(0, json.dumps([
        {"iid": pull["number"], "state": "merged", "sha": pull["head"],
         "merge_commit_sha": pull["merged"], "squash_commit_sha": None}
        for pull in known("pulls")
    ]))
elif "/jobs/artifacts/" in url:
    iid = url.partition("refs%2Fmerge-requests%2F")[2].partition("%2F")[0]
    name = url.partition("/raw/out/")[2].removesuffix("?job=kafka-plan")
    assert name in ("approval.txt", "plan.kfplan"), url
    found = forge / "artifacts" / iid / "kafka-plan" / name
    ended(0, found.read_text()) if found.exists() else ended(22)
else:
    ended(22)
ended()
"""


@dataclass(frozen=True)
class Forge:
    """folder: of everything; origin: the repository that jobs clone."""

    folder: Path

    @property
    def origin(self) -> Path:
        return self.folder / "origin"

    @property
    def path(self) -> str:
        """PATH of a job: the forge's programs, kafkaform, and the system's."""
        return f"{self.folder / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin"

    # ── the repository ──────────────────────────────────────────────────────────────────

    def git(self, *words: str, folder: Path | None = None) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *who, *words],
            cwd=folder or self.origin,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout.strip()

    def change(self, before: str, after: str) -> str:
        """A branch on which a text of the configuration is another one; its commit."""
        self.git("switch", "--quiet", "--create", "change")
        main = self.origin / "kafka/main.kf.hcl"
        text = main.read_text()
        assert before in text
        main.write_text(text.replace(before, after))
        self.git("commit", "--quiet", "--all", "--message", "Change")
        return self.git("rev-parse", "HEAD")

    def merge(self, number: int) -> str:
        """The branch `change` becomes part of the default branch; the commit there."""
        head = self.git("rev-parse", "change")
        self.git("switch", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge", "change")
        self.git("branch", "--quiet", "--delete", "change")
        merged = self.git("rev-parse", "HEAD")
        pull = {"number": number, "head": head, "merged": merged}
        self.write("pulls", [*self.read("pulls"), pull])
        return merged

    def clone(self, commit: str, folder: Path) -> None:
        self.git("clone", "--quiet", str(self.origin), str(folder), folder=self.folder)
        self.git("checkout", "--quiet", "--detach", commit, folder=folder)

    # ── what the forge knows ────────────────────────────────────────────────────────────

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def write(self, name: str, what: Any) -> None:
        (self.folder / name).write_text(json.dumps(what))

    def keep(self, run: str, name: str, files: Path) -> None:
        """Keep an artifact of a run."""
        shutil.copytree(files, self.folder / "artifacts" / run / name, dirs_exist_ok=True)

    @property
    def comment(self) -> str:
        """The newest comment."""
        return (self.folder / "comment.md").read_text()

    @property
    def calls(self) -> list[list[str]]:
        """Every call of one of the programs: its name and its words."""
        lines = (self.folder / "calls").read_text().splitlines()
        return [[name, *words] for name, words, _ in map(json.loads, lines)]


def forge(folder: Path, form: str) -> Forge:
    """A forge with a repository that has the example in this form: `github` or `gitlab`."""
    made = Forge(folder)
    (folder / "bin").mkdir()
    for name, body in (("pip", PIP), ("gh", GH), ("curl", CURL)):
        program = folder / "bin" / name
        program.write_text(PROGRAM.format(python=sys.executable, forge=str(folder)) + body)
        program.chmod(0o755)
    made.write("pulls", [])
    made.write("runs", {})
    made.write("queued", {})
    shutil.copytree(EXAMPLE, made.origin, ignore=shutil.ignore_patterns("github", "gitlab"))
    shutil.copytree(EXAMPLE / form, made.origin, dirs_exist_ok=True)
    made.git("init", "--quiet", "--initial-branch", "main")
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "Begin")
    return made
