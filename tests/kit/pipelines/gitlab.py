"""GitLab on this computer: the REST API, and a runner of our component's jobs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .repository import Repository, clone
from .server import TOKEN, Answer, Asked, Web, page

ME, STRANGER = {"id": 7, "username": "project_1_bot"}, {"id": 8, "username": "stranger"}
SECONDS = 120
_SHELL = "set -eo pipefail\n"


@dataclass
class Api:
    """What GitLab knows of the project, whose id is 1."""

    web: Web = field(default_factory=Web)
    notes: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    merged: list[dict[str, Any]] = field(default_factory=list)
    jobs: dict[int, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = "/projects/1"
        self.web.routes |= {
            "GET /user": lambda _, __: Answer(body=ME),
            f"GET {own}/repository/commits/(.+)/merge_requests": lambda _, found: Answer(
                body=[one for one in self.merged if found[1] in one.values()]
            ),
            f"GET {own}/merge_requests/(\\d+)/pipelines": self._list_pipelines,
            f"GET {own}/pipelines/(\\d+)/jobs": self._list_jobs,
            f"GET {own}/jobs/(\\d+)/artifacts/(.+)": self._read_artifact,
            f"GET {own}/merge_requests/(\\d+)/notes": lambda asked, found: page(
                [one for one in self.notes.values() if one["request"] == int(found[1])], asked
            ),
            f"POST {own}/merge_requests/(\\d+)/notes": lambda asked, found: self.add_note(
                asked.body["body"], ME, int(found[1])
            ),
            f"PUT {own}/merge_requests/\\d+/notes/(\\d+)": self._edit(self.notes),
            f"GET {own}/issues": self._list_issues,
            f"POST {own}/issues": self._add_issue,
            f"PUT {own}/issues/(\\d+)": self._edit(self.issues),
        }

    def _list_pipelines(self, asked: Asked, found: re.Match[str]) -> Answer:
        own = [one for one in self.jobs.values() if one["request"] == found[1]]
        made = [{"id": one["pipeline"], "ref": one["ref"]} for one in own]
        return page([{"id": 9999, "ref": "branch"}, *made], asked)

    def _list_jobs(self, asked: Asked, found: re.Match[str]) -> Answer:
        assert asked.query["scope"] == "success"
        mine = [
            {"id": number, "name": one["name"]}
            for number, one in self.jobs.items()
            if (one["pipeline"], one["code"]) == (int(found[1]), 0)
        ]
        return page(mine, asked)

    def _read_artifact(self, _: Asked, found: re.Match[str]) -> Answer:
        file = self.jobs[int(found[1])]["files"] / found[2]
        return Answer(body=file.read_bytes()) if file.exists() else Answer(404)

    def add_note(self, body: str, author: Mapping[str, Any], request: int = 1) -> Answer:
        number = len(self.notes) + 1
        note = {"id": number, "body": body, "author": dict(author), "request": request}
        self.notes[number] = note
        return Answer(201, self.notes[number])

    def _list_issues(self, asked: Asked, _: re.Match[str]) -> Answer:
        assert asked.query["scope"] == "created_by_me"
        return page([one for one in self.issues.values() if one["state"] == "opened"], asked)

    def _add_issue(self, asked: Asked, _: re.Match[str]) -> Answer:
        number = len(self.issues) + 1
        made = {"id": 900 + number, "iid": number, "state": "opened", "author": ME, **asked.body}
        self.issues[number] = made
        return Answer(201, made)

    def _edit(self, known: dict[int, dict[str, Any]]) -> Callable[[Asked, re.Match[str]], Answer]:
        def edit(asked: Asked, found: re.Match[str]) -> Answer:
            one = known[int(found[1])]
            one |= asked.body
            if one.pop("state_event", None) == "close":
                one["state"] = "closed"
            return Answer(body=one)

        return edit


@dataclass
class Ended:
    """How a job ended."""

    code: int
    log: str
    folder: Path
    environment: str


@dataclass
class Runner:
    """Runs the jobs of a `.gitlab-ci.yml` that includes our component.

    tool: the component's project; its address on the server is `tools/kafkaform`.
    """

    api: Api
    repository: Repository
    tool: Repository
    folder: Path
    path: str
    file: Path
    variables: Mapping[str, Mapping[str, str]]
    """The variables of each environment."""
    more: Mapping[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    def read_jobs(self) -> dict[str, Any]:
        """The jobs as GitLab sees them: inputs filled in, `extends` merged."""
        (included,) = yaml.safe_load(self.file.read_text())["include"]
        host, _, rest = included["component"].partition("/")
        assert host == "$CI_SERVER_FQDN" and rest == "OWNER/kafkaform/kafkaform@COMMIT"
        spec, _, text = (
            (self.tool.folder / "templates/kafkaform.yml").read_text().partition("\n---\n")
        )
        inputs = yaml.safe_load(spec)["spec"]["inputs"]
        given = included["inputs"] | {"project": "tools/kafkaform"}
        assert given.keys() <= inputs.keys()
        values = {name: one.get("default") for name, one in inputs.items()} | given
        assert None not in values.values()

        def fill(item: Any) -> Any:
            if isinstance(item, dict):
                return {fill(name): fill(value) for name, value in item.items()}
            if isinstance(item, list):
                return [fill(value) for value in item]
            if not isinstance(item, str):
                return item
            item = item.replace("$[[ component.sha ]]", self.tool.head)
            return re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda one: values[one[1]], item)

        jobs = fill(yaml.safe_load(text))
        return {name: jobs[job["extends"]] | job for name, job in jobs.items() if "extends" in job}

    def run(self, job: str, commit: str, **given: str) -> Ended | None:
        """A job of the pipeline that these predefined variables describe; None if no rule of it
        holds."""
        said = self.read_jobs()[job]
        number = len(self.api.jobs) + 1
        predefined = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self.api.web.address,
            "CI_SERVER_URL": f"file://{self.tool.folder.parent.parent}",
            "CI_PROJECT_ID": "1",
            "CI_DEFAULT_BRANCH": "main",
            "CI_COMMIT_SHA": commit,
            "CI_JOB_ID": str(number),
            "CI_JOB_URL": f"https://gitlab.example/jobs/{number}",
            "CI_JOB_TOKEN": "pw-of-the-job",
            "KAFKA_REVIEW_TOKEN": TOKEN,
            **given,
        }
        if not any(_rule(rule["if"], predefined) for rule in said["rules"]):
            return None
        where = said["environment"]
        environment = where if isinstance(where, str) else where["name"]
        disk = self.folder / f"job-{number}"
        for name in ("home", "tmp", "project"):
            (disk / name).mkdir(parents=True)
        depth = yaml.safe_load(self.file.read_text()).get("variables", {}).get("GIT_DEPTH", "20")
        clone(self.repository.folder, commit, disk / "project", int(depth))
        script = disk / "script.sh"
        commands = [*said["before_script"], *said["script"]]
        self.ran += commands
        script.write_text(_SHELL + "\n".join(commands))
        done = subprocess.run(
            ["bash", str(script)],
            cwd=disk / "project",
            env={
                "PATH": f"{self.path}:/usr/bin:/bin",
                "HOME": str(disk / "home"),
                "TMPDIR": str(disk / "tmp"),
                **said["variables"],
                **predefined,
                **self.variables[environment],
                **self.more,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        own = given.get("CI_MERGE_REQUEST_IID", "")
        self.api.jobs[number] = {
            "name": job,
            "pipeline": 100 + number,
            "request": own,
            "ref": given.get("CI_COMMIT_REF_PATH", f"refs/merge-requests/{own}/head"),
            "code": done.returncode,
            "files": disk / "project",
        }
        return Ended(done.returncode, done.stdout, disk / "project", environment)


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
