"""GitHub on this computer: the REST API, and a runner of workflows and composite actions."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .repository import ROOT, Repository, clone
from .server import TOKEN, Answer, Asked, Web, page

NAME = "team/kafka"
BOT = {"login": "github-actions[bot]", "type": "Bot"}
QUEUE = "merge_group"
SECONDS = 120
_WORDS = re.compile(r"'(?:[^']|'')*'|[\w.-]+(?:\(\))?|&&|\|\||[=!]=|[!()]")
_SPELLED = {"&&": "and", "||": "or", "!": "not", "true": "True", "false": "False", "null": "''"}
_SPELLED["always()"] = "True"
_EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")


# ── the API ─────────────────────────────────────────────────────────────────────────────


@dataclass
class Api:
    """What GitHub knows of the repository."""

    web: Web = field(default_factory=Web)
    storage: Web = field(default_factory=Web)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    artifacts: dict[int, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = f"/repos/{NAME}"
        self.web.routes |= {
            f"GET {own}/commits/(.+)/pulls": lambda _, found: Answer(
                body=[one for one in self.pulls if one["merge_commit_sha"] == found[1]]
            ),
            f"GET {own}/actions/runs": self._list_runs,
            f"GET {own}/actions/runs/(\\d+)/artifacts": self._list_artifacts,
            f"GET {own}/actions/artifacts/(\\d+)/zip": lambda _, found: Answer(
                302, headers={"Location": f"{self.storage.address}/{found[1]}?signature=1"}
            ),
            f"GET {own}/issues/(\\d+)/comments": self._list_comments,
            f"POST {own}/issues/(\\d+)/comments": self._add_comment,
            f"PATCH {own}/issues/comments/(\\d+)": self._edit(self.comments),
            f"GET {own}/issues": self._list_issues,
            f"POST {own}/issues": self._add_issue,
            f"PATCH {own}/issues/(\\d+)": self._edit(self.issues),
        }
        self.storage.routes["GET /(\\d+)"] = lambda _, found: Answer(
            body=self.artifacts[int(found[1])]["zip"]
        )

    def _list_runs(self, asked: Asked, _: re.Match[str]) -> Answer:
        found = [
            one
            for one in self.runs.values()
            if (one["head_sha"], one["event"]) == (asked.query["head_sha"], asked.query["event"])
        ]
        return Answer(body={"total_count": len(found), "workflow_runs": found})

    def _list_artifacts(self, asked: Asked, found: re.Match[str]) -> Answer:
        kept = [
            {"id": number, "name": one["name"], "expired": False}
            for number, one in self.artifacts.items()
            if (one["run"], one["name"]) == (int(found[1]), asked.query["name"])
        ]
        return Answer(body={"total_count": len(kept), "artifacts": kept})

    def _list_comments(self, asked: Asked, found: re.Match[str]) -> Answer:
        mine = [one for one in self.comments.values() if one["pull"] == int(found[1])]
        return page(mine, asked)

    def _add_comment(self, asked: Asked, found: re.Match[str]) -> Answer:
        return self.add_comment(int(found[1]), asked.body["body"], BOT)

    def add_comment(self, pull: int, body: str, user: Mapping[str, str]) -> Answer:
        number = len(self.comments) + 1
        made = {"id": number, "pull": pull, "body": body, "user": dict(user)}
        self.comments[number] = made
        return Answer(201, made)

    def _list_issues(self, asked: Asked, _: re.Match[str]) -> Answer:
        assert asked.query["creator"] == BOT["login"]
        own = [one for one in self.issues.values() if one["state"] == asked.query["state"]]
        return page(own, asked)

    def _add_issue(self, asked: Asked, _: re.Match[str]) -> Answer:
        number = len(self.issues) + 1
        made = {"id": 900 + number, "number": number, "state": "open", "user": BOT, **asked.body}
        self.issues[number] = made
        return Answer(201, made)

    def _edit(self, known: dict[int, dict[str, Any]]) -> Callable[[Asked, re.Match[str]], Answer]:
        def edit(asked: Asked, found: re.Match[str]) -> Answer:
            known[int(found[1])] |= asked.body
            return Answer(body=known[int(found[1])])

        return edit


# ── the runner ──────────────────────────────────────────────────────────────────────────


def evaluate(text: Any, context: Mapping[str, Any]) -> Any:
    """The value of an expression, as far as these files use the language."""
    words = [
        word
        if word[0] in "'()=!" and word not in _SPELLED
        else _SPELLED.get(word) or repr(context.get(word, ""))
        for word in _WORDS.findall(text)
    ]
    return eval(" ".join(words), {"__builtins__": {}})


def fill(text: Any, context: Mapping[str, Any]) -> str:
    """A text whose expressions are replaced."""
    if isinstance(text, bool):
        return str(text).lower()
    return _EXPRESSION.sub(lambda found: str(evaluate(found[1], context) or ""), str(text))


@dataclass
class Ended:
    """How a job ended."""

    code: int = 0
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    environment: str = ""

    @property
    def commands(self) -> list[tuple[str, dict[str, str], str]]:
        return find_commands(self.log)


@dataclass
class Runner:
    """Runs the jobs of a workflow whose step uses our action.

    path: for PATH; ran: the text of each `run:`.
    """

    api: Api
    repository: Repository
    folder: Path
    path: str
    workflow: Path
    variables: Mapping[str, Mapping[str, str]]
    """The variables and secrets of each environment: `vars.X` and `secrets.X`."""
    more: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """More variables of the jobs of each environment."""
    ran: list[str] = field(default_factory=list)

    def run(self, event: str, commit: str, **given: Any) -> Ended | None:
        """The only job of the workflow, for an event; None if its condition does not hold.

        given: `pull` is the number of a pull request, `source` its repository, `head` its last
        commit, `approval` and `folders` the inputs of a run by hand, `ref` the branch, `before` the
        commit before a push.
        """
        file = yaml.safe_load(self.workflow.read_text())
        assert event in file[True], f"the workflow does not react to {event}"  # `on` is YAML's true
        (job,) = file["jobs"].values()
        number = len(self.api.runs) + 1
        context = {
            "github.event_name": event,
            "github.repository": NAME,
            "github.event.pull_request.head.repo.full_name": given.get("source", NAME),
            "github.event.pull_request.head.sha": given.get("head", ""),
            "github.event.pull_request.base.ref": "main" if "pull" in given else "",
            "github.event.merge_group.base_ref": "refs/heads/main" if event == QUEUE else "",
            "github.event.before": given.get("before", ""),
            "github.event.repository.default_branch": "main",
            "inputs.folders": given.get("folders", ""),
            "github.token": TOKEN,
            "inputs.approval": given.get("approval", ""),
        }
        if not evaluate(job.get("if", "'true'"), context):
            return None
        ended = Ended(environment=fill(job["environment"], context))
        context |= self.variables[ended.environment]
        run = {
            "id": number,
            "event": event,
            "head_sha": given.get("head", commit),
            "head_repository": {"full_name": given.get("source", NAME)},
            "path": ".github/workflows/kafka.yml",
            "conclusion": None,
        }
        self.api.runs[number] = run
        disk = self.folder / f"run-{number}"
        for name in ("workspace", "temp", "home"):
            (disk / name).mkdir(parents=True)
        ref = f"refs/pull/{given['pull']}/merge" if "pull" in given else "refs/heads/main"
        base = self._variables(disk, event, commit, number, given.get("ref", ref))
        (step,) = job["steps"]
        environment = {name: fill(text, context) for name, text in step.get("env", {}).items()}
        environment |= self.more.get(ended.environment, {})
        inputs = {name: fill(text, context) for name, text in step["with"].items()}
        _run_action(self, ended, base | environment, inputs, context, (disk, commit, number))
        run["conclusion"] = "failure" if ended.code else "success"
        left = [file for file in (disk / "home").rglob("*") if file.is_file()]
        assert not left, f"it left files at home: {left}"
        return ended

    def _variables(
        self, disk: Path, event: str, commit: str, number: int, ref: str
    ) -> dict[str, str]:
        return {
            "PATH": f"{self.path}:/usr/bin:/bin",
            "HOME": str(disk / "home"),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.api.web.address,
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_REPOSITORY": NAME,
            "GITHUB_SHA": commit,
            "GITHUB_REF": ref,
            "GITHUB_EVENT_NAME": event,
            "GITHUB_RUN_ID": str(number),
            "GITHUB_WORKFLOW_REF": f"{NAME}/.github/workflows/kafka.yml@{ref}",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(disk / "workspace"),
            "RUNNER_TEMP": str(disk / "temp"),
        }


def _run_action(
    runner: Runner,
    ended: Ended,
    base: Mapping[str, str],
    given: Mapping[str, str],
    outer: Mapping[str, Any],
    where: tuple[Path, str, int],
) -> None:
    """Run the steps of `action.yml` in order, as a composite action's are run."""
    disk, commit, number = where
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert given.keys() <= action["inputs"].keys()
    known = {name: item["default"] for name, item in action["inputs"].items()} | given
    context = {name: outer.get(name, "") for name in outer if name.startswith("github.")}
    context |= {"runner.temp": str(disk / "temp")}
    context |= {f"inputs.{name}": text for name, text in known.items()}
    for step in action["runs"]["steps"]:
        condition = step.get("if", "'true'")
        # After a failure, only steps run whose condition asks for the status.
        if (ended.code and "always()" not in condition) or not evaluate(condition, context):
            continue
        if "uses" in step:
            using = {name: fill(text, context) for name, text in step["with"].items()}
            _USES[step["uses"].partition("@")[0]](runner, using, where)
            continue
        assert "${{" not in step["run"]
        runner.ran.append(step["run"])
        files = {name: disk / f"{name}-{len(runner.ran)}" for name in ("output", "summary")}
        for file in files.values():
            file.touch()
        script = disk / f"script-{len(runner.ran)}.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            [step["shell"], "-e", str(script)],
            cwd=disk / "workspace",
            env={
                **base,
                "GITHUB_OUTPUT": str(files["output"]),
                "GITHUB_STEP_SUMMARY": str(files["summary"]),
                **{name: fill(text, context) for name, text in step.get("env", {}).items()},
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        ended.code, ended.log = ended.code or done.returncode, ended.log + done.stdout
        ended.summary += files["summary"].read_text()
        assert len(ended.summary.encode()) < 1024 * 1024
        for line in files["output"].read_text().splitlines():
            name, _, text = line.partition("=")
            context[f"steps.{step['id']}.outputs.{name}"] = text
    ended.outputs = {name: fill(item["value"], context) for name, item in action["outputs"].items()}


def _checkout(runner: Runner, using: Mapping[str, str], where: tuple[Path, str, int]) -> None:
    depth = int(using["fetch-depth"])
    assert using == {"persist-credentials": "false", "fetch-depth": str(depth)}
    workspace = where[0] / "workspace"
    shutil.rmtree(workspace)
    workspace.mkdir()
    clone(runner.repository.folder, where[1], workspace, depth)


def _upload(runner: Runner, using: Mapping[str, str], where: tuple[Path, str, int]) -> None:
    data, folder = io.BytesIO(), Path(using["path"])
    with zipfile.ZipFile(data, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    kept = {"run": where[2], "name": using["name"], "zip": data.getvalue()}
    runner.api.artifacts[len(runner.api.artifacts) + 1] = kept


_USES: Mapping[str, Callable[[Runner, Mapping[str, str], tuple[Path, str, int]], None]] = {
    "actions/checkout": _checkout,
    "actions/upload-artifact": _upload,
}


# ── workflow commands ───────────────────────────────────────────────────────────────────


def find_commands(log: str) -> list[tuple[str, dict[str, str], str]]:
    """The commands that GitHub's runner finds in a log: name, properties, data.

    As the runner does it: `::name a=b::data` at the start of a line after spaces, the older
    `##[name a=b]data` anywhere, and none of them between `::stop-commands::TOKEN` and `::TOKEN::`.
    """
    found: list[tuple[str, dict[str, str], str]] = []
    stopped = ""
    for line in re.split(r"\r\n|\r|\n", log):
        new = re.match(r"\s*::([\w-]+)(?: (.*?))?::(.*)", line)
        old = re.search(r"##\[([\w-]+)(?: (.*?))?\](.*)", line)
        command = new or old
        if stopped:
            if line.strip() == f"::{stopped}::":
                stopped = ""
        elif command is not None and command[1] == "stop-commands":
            stopped = command[3]
        elif command is not None:
            pairs = [item.partition("=") for item in (command[2] or "").split(",") if item]
            properties = {name.strip(): _unescape(text) for name, _, text in pairs}
            found.append((command[1], properties, _unescape(command[3])))
    assert not stopped, "commands were never switched on again"
    return found


def _unescape(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text
