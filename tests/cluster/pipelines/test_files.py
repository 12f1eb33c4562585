"""What the pipeline files say, beyond what they do when they run."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafkaform.core.errors import EXIT_CODES
from kafkaform.syntax.parse import parse

from .forge import EXAMPLE
from .jobs import gitlab_file

WORKFLOWS = sorted((EXAMPLE / "github/.github/workflows").glob("*.yml"))
SCRIPTS = sorted((EXAMPLE / "ci").glob("*.sh"))
TRUSTED = re.compile(
    r"(secrets|vars|needs|inputs)\.[\w.]+|runner\.temp|github\.(token|event\.pull_request\.number)"
)
"""What `env:` may take: nothing whose text an author of a pull request chooses freely, except
where it is only ever a variable's value."""


def jobs(path: Path) -> Iterator[Any]:
    yield from yaml.safe_load(path.read_text())["jobs"].values()


def steps(path: Path) -> Iterator[Any]:
    for job in jobs(path):
        yield from job["steps"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_no_expression_stands_in_a_command(path: Path) -> None:
    """A branch called `$(…)` is never part of a script: values come in through variables, and only
    such as nobody can choose."""
    for step in steps(path):
        assert "${{" not in step.get("run", "")
        for value in step.get("env", {}).values():
            (name,) = re.fullmatch(r"\$\{\{ (\S+) \}\}[\w./]*", value).groups()  # type: ignore[union-attr]
            assert TRUSTED.fullmatch(name), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    """Each action by its commit, with the release beside it, and the same everywhere."""
    pins = [step["uses"] for step in steps(path) if "uses" in step]
    assert pins and all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", pin) for pin in pins)
    everywhere = "".join(one.read_text() for one in WORKFLOWS)
    readme = (EXAMPLE / "README.md").read_text()
    for pin in pins:
        releases = set(re.findall(rf"{pin} # (v\S+)", everywhere))
        assert len(releases) == 1 and f"`{pin.split('@')[0]}` {releases.pop()}" in readme
        assert len(set(re.findall(rf"{pin.split('@')[0]}@(\w+)", everywhere))) == 1


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_jobs_have_the_rights_that_they_need(path: Path) -> None:
    """None by default; only the plan may write, and comments only; no token stays in the clone; the
    tool is there before the branch is."""
    assert yaml.safe_load(path.read_text())["permissions"] == {}
    for job in jobs(path):
        writes = [name for name, right in job["permissions"].items() if right == "write"]
        assert writes == (["pull-requests"] if path.stem == "kafka-plan" else [])
        assert job["timeout-minutes"] <= 60
        order = [step.get("uses", step.get("run", "")).split("@")[0] for step in job["steps"]]
        install = [at for at, word in enumerate(order) if word.startswith("pip ")]
        for at in install:
            assert "--require-hashes --only-binary=:all:" in order[at]
            before = job["steps"][at - 1]
            assert (
                before["with"].get("path", "") == order[at].rpartition(" ")[2].split("ci/")[0][:-1]
            )
        if path.stem == "kafka-plan":  # what is installed comes from the target branch
            assert len(install) == 1 and order[install[0] + 1] == "actions/checkout"
            assert "ref" in job["steps"][install[0] - 1]["with"]
        text = json.dumps(job)
        assert ("WRITER" in text) == (job.get("environment") == "kafka-production")


def test_applies_are_never_cancelled_by_others() -> None:
    """One apply of each file at a time, on both forges; a newer one neither ends it nor takes the
    place of one that waits, and a copy for another folder waits for none of them."""
    apply = yaml.safe_load(WORKFLOWS[0].read_text())
    assert WORKFLOWS[0].stem == "kafka-apply"
    assert apply["concurrency"] == {"group": "${{ github.workflow_ref }}", "queue": "max"}
    job = gitlab_file()["kafka-apply"]
    assert (job["resource_group"], job["interruptible"]) == ("kafka", False)


def test_gitlab_commands_quote_what_they_are_given() -> None:
    """No command uses a title, a message or the name of a branch, and variables are in quotes."""
    for name, job in gitlab_file().items():
        if not name.startswith("kafka-"):
            continue
        for command in [*job["script"], *job.get("after_script", [])]:
            assert not re.search(r"TITLE|MESSAGE|DESCRIPTION|REF_NAME|REF_SLUG|BRANCH", command)
            bare = re.sub(r'"[^"]*"|\w+=\$\(', "", command)
            assert "$" not in bare, bare


def test_gitlab_installs_with_hashes() -> None:
    """As GitHub's jobs do: nothing is installed that is not in the lock file."""
    (install,) = gitlab_file()["default"]["before_script"]
    wanted = "pip install --require-hashes --only-binary=:all: -r ci/requirements.lock"
    assert install == wanted


def test_connections_stand_in_no_file() -> None:
    """The configuration names neither brokers nor a login."""
    (block,) = [
        block
        for path in (EXAMPLE / "kafka").glob("*.kf.hcl")
        for block in parse(path.read_bytes(), str(path))[0].body.blocks
        if block.type == "provider"
    ]
    assert not block.body.attributes
    assert [inner.type for inner in block.body.blocks] == ["authorizer"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_scripts_can_be_run(path: Path) -> None:
    """They are executable, and bash finds no fault in them."""
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", path], check=True, timeout=120)


def test_the_readme_tells_every_end() -> None:
    """Each exit code of an apply has a row."""
    rows = re.findall(r"^\| ([\d, ]+) \|", (EXAMPLE / "README.md").read_text(), re.M)
    told = {int(code) for row in rows for code in row.split(", ")}
    assert told == {0, 130, 143, *EXIT_CODES.values()} - {1, 2}
