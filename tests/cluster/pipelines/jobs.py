"""Runs the jobs of a pipeline as its file says them: each `run:` and `script:` for real, in a new
clone, with an empty home and with the variables of the job and no others."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .forge import EXAMPLE, Forge

SECONDS = 120
TARGET = (
    "${{ github.event.pull_request.base.sha || github.event.merge_group.base_sha || github.sha }}"
)
_EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")
_WORDS = re.compile(r"'[^']*'|[\w.-]+(?:\(\))?|&&|\|\||[!=]=")
_SPELLED = {"&&": "and", "||": "or", "==": "==", "!=": "!=", "always()": "True"}
_SHELL = "set -eo pipefail\n"


@dataclass(frozen=True)
class Ended:
    """What a job left. folder: the clone, which is still there."""

    code: int
    said: str
    folder: Path
    outputs: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""

    @property
    def approval(self) -> str:
        return (self.folder / "out/approval.txt").read_text().strip()


@dataclass
class Runner:
    """began: told the process id of each command; more: variables that every job has; ran: the
    texts of all commands that ran."""

    forge: Forge
    folder: Path
    began: Callable[[int], None] = lambda pid: None
    more: Mapping[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    def command(
        self, text: str, folder: Path, env: Mapping[str, str], shell: str
    ) -> tuple[int, str]:
        """Run one command text; its exit code and both streams."""
        self.ran.append(text.strip())
        script = Path(tempfile.mkstemp(dir=self.folder, suffix=".sh")[1])
        script.write_text(shell + text)
        process = subprocess.Popen(
            ["bash", *(() if shell else ("-e",)), str(script)],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.began(process.pid)
        said, _ = process.communicate(timeout=SECONDS)
        return process.returncode, said

    @contextmanager
    def disk(self) -> Iterator[tuple[Path, dict[str, str]]]:
        """An empty disk: a folder for the clone, and what is in the environment of every job."""
        here = Path(tempfile.mkdtemp(dir=self.folder))
        home = here / "home"
        home.mkdir()
        env = {"PATH": self.forge.path, "HOME": str(home), "CI": "true", **self.more}
        yield here / "clone", env
        assert not [file for file in home.rglob("*") if file.is_file()], "it left files at home"


# ── GitHub Actions ──────────────────────────────────────────────────────────────────────


def workflow(name: str) -> Any:
    return yaml.safe_load((EXAMPLE / f"github/.github/workflows/{name}.yml").read_text())


def evaluated(text: Any, context: Mapping[str, Any]) -> str:
    """A value of `env:` or `outputs:`."""
    return _EXPRESSION.sub(lambda found: str(context.get(found[1], "")), str(text))


def holds(condition: str | None, context: Mapping[str, Any], default: bool) -> bool:
    """What an `if:` says."""
    if condition is None:
        return default
    words = [
        word if word.startswith("'") else _SPELLED.get(word) or repr(context.get(word))
        for word in _WORDS.findall(condition)
    ]
    return bool(eval(" ".join(words), {"__builtins__": {}}))


def github(
    runner: Runner, name: str, job: str, context: Mapping[str, Any], commit: str, run: str
) -> Ended | None:
    """Run a job; None if its condition does not hold. run: id that its artifacts are kept under."""
    said = workflow(name)["jobs"][job]
    if not holds(said.get("if"), context, True):
        return None
    code, text, outputs = 0, "", dict[str, str]()
    with runner.disk() as (clone, base):
        clone.mkdir()
        noted, summary = clone.parent / "output", clone.parent / "summary"
        noted.touch()
        summary.touch()
        github_variables = {
            "GITHUB_REPOSITORY": "team/kafka",
            "GITHUB_SHA": commit,
            "GITHUB_EVENT_NAME": context["github.event_name"],
            "GITHUB_ACTOR": "somebody",
            "GITHUB_OUTPUT": str(noted),
            "RUNNER_TEMP": str(clone.parent),
            "GITHUB_STEP_SUMMARY": str(summary),
        }
        for step in said["steps"]:
            if not holds(step.get("if"), context, code == 0):
                continue
            if "uses" in step:
                _ACTIONS[step["uses"].partition("@")[0]](runner.forge, step, clone, commit, run)
                continue
            places = {**context, "runner.temp": str(clone.parent)}
            given = {key: evaluated(item, places) for key, item in step.get("env", {}).items()}
            env = {**base, **github_variables, **given}
            ended, more = runner.command(step["run"], clone, env, "")
            code, text = code or ended, text + more
        written = dict(line.split("=", 1) for line in noted.read_text().splitlines())
        inside = {f"steps.find.outputs.{key}": item for key, item in written.items()}
        outputs = {key: evaluated(item, inside) for key, item in said.get("outputs", {}).items()}
        return Ended(code, text, clone, outputs, summary.read_text())


def _checkout(forge: Forge, step: Any, clone: Path, commit: str, run: str) -> None:
    """With a path: the target branch, beside; else what is looked at, in place of all else."""
    assert step["with"]["persist-credentials"] is False
    if "path" in step["with"]:
        assert step["with"]["ref"] == TARGET
        forge.clone("origin/main", clone / step["with"]["path"])
        return
    shutil.rmtree(clone)
    forge.clone(commit, clone)


def _upload(forge: Forge, step: Any, clone: Path, commit: str, run: str) -> None:
    if not (clone / step["with"]["path"]).exists():
        return
    forge.keep(run, step["with"]["name"], clone / step["with"]["path"])


_ACTIONS: Mapping[str, Callable[[Forge, Any, Path, str, str], None]] = {
    "actions/setup-python": lambda *_: None,
    "actions/checkout": _checkout,
    "actions/upload-artifact": _upload,
}


# ── GitLab CI ───────────────────────────────────────────────────────────────────────────


def gitlab_file() -> Any:
    return yaml.safe_load((EXAMPLE / "gitlab/.gitlab-ci.yml").read_text())


def gitlab(
    runner: Runner, job: str, variables: Mapping[str, str], commit: str, run: str = ""
) -> Ended | None:
    """Run a job; None if no rule of it holds. run: what its artifacts are kept under."""
    file = gitlab_file()
    said = file[job]
    if not any(_rule(rule["if"], variables) for rule in said["rules"]):
        return None
    with runner.disk() as (clone, base):
        runner.forge.clone(commit, clone)
        env = {**base, **variables, "CI_COMMIT_SHA": commit}
        script = [*file["default"]["before_script"], *said["script"]]
        code, text = runner.command(joined(script), clone, env, _SHELL)
        if "after_script" in said:
            after, more = runner.command(joined(said["after_script"]), clone, env, _SHELL)
            assert after == 0, more
        if run and code == 0:
            runner.forge.keep(run, job, clone / said["artifacts"]["paths"][0])
        return Ended(code, text, clone)


def joined(commands: Sequence[str]) -> str:
    return "\n".join(commands)


def _rule(condition: str, variables: Mapping[str, str]) -> bool:
    """`$A == $B && $C == "text" && $D == null && $E`."""

    def value(word: str) -> str | None:
        if word == "null":
            return None
        return variables.get(word[1:]) if word.startswith("$") else word.strip('"')

    def part(text: str) -> bool:
        one, equal, other = text.partition(" == ")
        return value(one) == value(other) if equal else bool(value(one))

    return all(map(part, condition.split(" && ")))


def wiped(ended: Ended) -> None:
    """The disk of a job is gone."""
    shutil.rmtree(ended.folder.parent)
