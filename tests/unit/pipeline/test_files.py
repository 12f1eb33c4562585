"""What the files of the one-file pipeline say, beyond what they do when they run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ...kit.pipelines.github import find_commands
from ...kit.pipelines.repository import ROOT
from .conftest import MANY_FOLDERS, ONE_FILE

WORKFLOWS = [folder / "github/.github/workflows/kafka.yml" for folder in (ONE_FILE, MANY_FOLDERS)]
GITLAB = [folder / "gitlab/.gitlab-ci.yml" for folder in (ONE_FILE, MANY_FOLDERS)]
ACTION, COMPONENT = ROOT / "action.yml", ROOT / "templates/kafkaform.yml"
OTHERS = ROOT / "examples/pipelines/github/.github/workflows"
DOCUMENT = ROOT / "docs/pipelines.md"


def component() -> tuple[Any, Any]:
    """The head and the jobs of the component."""
    spec, jobs = yaml.safe_load_all(COMPONENT.read_text())
    return spec["spec"], jobs


each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=["one folder", "many folders"])


@pytest.mark.parametrize(
    "path", [*WORKFLOWS, *GITLAB], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_a_team_needs_one_short_file(path: Path) -> None:
    """The file for each forge has 26 lines at most, and the document shows it whole."""
    text = path.read_text()
    assert len(text.splitlines()) <= 26
    assert f"```yaml\n{text}```\n" in DOCUMENT.read_text()


@each_workflow
def test_the_workflow_has_no_more_rights_than_it_uses(path: Path) -> None:
    """It can read the code and the artifacts, and write comments and issues; it never runs with
    the rights of the target branch on the code of a stranger."""
    file = yaml.safe_load(path.read_text())
    write = {"pull-requests": "write", "issues": "write"}
    assert file["permissions"] == {"contents": "read", "actions": "read", **write}
    (job,) = file["jobs"].values()
    assert job["timeout-minutes"] <= 60
    pulls = {"pull_request", "merge_group"}
    assert file[True].keys() == {*pulls, "push", "schedule", "workflow_dispatch"}


@each_workflow
def test_runs_wait_for_their_turn(path: Path) -> None:
    """The group has the path of the file, so that the pipelines of two folders never meet in one;
    of three quick merges none is cancelled, because all of them wait in a queue."""
    concurrency = yaml.safe_load(path.read_text())["concurrency"]
    assert concurrency == {
        "group": "kafka-${{ github.event_name }}-${{ github.workflow_ref }}",
        "queue": "max",
    }


def test_no_expression_stands_in_a_command() -> None:
    """Values come into a command through its environment only, on both forges, and no variable
    stands outside of quotes."""
    steps = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    _, jobs = component()
    (base,) = (job for name, job in jobs.items() if name.startswith("."))
    commands = [step["run"] for step in steps if "run" in step]
    for command in (*commands, *base["before_script"], *base["script"]):
        assert "${{" not in command and "$[[" not in command
        bare = re.sub(r"\"[^\"]*\"|'[^']*'|\w+=\$\(", "", command)
        assert "$" not in bare, bare
        assert not re.search(r"TITLE|MESSAGE|DESCRIPTION|REF_NAME|REF_SLUG|BRANCH", command)


def test_actions_are_pinned_by_commit() -> None:
    """The same commits as in the other examples, with their releases beside them."""
    text, others = ACTION.read_text(), "".join(one.read_text() for one in OTHERS.glob("*.yml"))
    pins = re.findall(r"uses: (\S+) # (v\S+)", text)
    assert len(pins) == text.count("uses:") == 2
    for pin, release in pins:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", pin)
        assert f"{pin} # {release}" in others


def test_a_job_of_a_repository_has_the_whole_history() -> None:
    """It finds out what changed, and reads the repository file of the default branch; a pull
    request for another branch, whose repository file anybody can have written, is not planned."""
    (github, gitlab) = (yaml.safe_load(files[1].read_text()) for files in (WORKFLOWS, GITLAB))
    (job,) = github["jobs"].values()
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    assert gitlab["variables"] == {"GIT_DEPTH": "0"}
    assert github[True]["pull_request"] == github[True]["push"] == {"branches": ["main"]}
    assert not any("KAFKAFORM_STATE" in files[1].read_text() for files in (WORKFLOWS, GITLAB))


def test_applies_are_not_cancelled_by_others() -> None:
    """One apply at a time, and a newer one does not end it."""
    _, jobs = component()
    (apply,) = (job for name, job in jobs.items() if name.endswith("-apply"))
    assert apply["resource_group"] and apply["interruptible"] is False
    assert apply["environment"] == "kafka-production"


def test_each_input_is_used_and_documented() -> None:
    """Every input of the action and of the component reaches a job and has a row in the
    document, as the outputs have."""
    spec, _ = component()
    document = DOCUMENT.read_text()
    action = yaml.safe_load(ACTION.read_text())
    for name in action["inputs"]:
        assert f"${{{{ inputs.{name} }}}}" in ACTION.read_text() and f"| `{name}` |" in document
    for name in spec["inputs"]:
        assert f"$[[ inputs.{name} ]]" in COMPONENT.read_text() and f"| `{name}` |" in document
    assert all(f"| `{name}` |" in document for name in action["outputs"])


def test_the_script_is_plain_shell(tmp_path: Path) -> None:
    """`sh` finds no fault in it, and it ends with an error where nothing can be installed."""
    script = ROOT / "ci/install.sh"
    subprocess.run(["sh", "-n", script], check=True, timeout=60)
    assert script.stat().st_mode & 0o111
    (tmp_path / "file").write_text("")
    done = subprocess.run(["sh", script, tmp_path / "file"], capture_output=True, timeout=60)
    assert done.returncode != 0


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ("::error file=a,line=1::x%0Ay\n", [("error", {"file": "a", "line": "1"}, "x\ny")]),
        ("  ::set-output name=a::b", [("set-output", {"name": "a"}, "b")]),
        ("text ##[group]x", [("group", {}, "x")]),
        ("text ::error::x", []),
        ("::stop-commands::t\n::error::x\n::t::\n::notice::y", [("notice", {}, "y")]),
    ],
)
def test_the_runner_of_the_tests_finds_commands(log: str, found: list[Any]) -> None:
    """The tests of injection rely on this: it finds every command that GitHub's runner would
    execute."""
    assert find_commands(log) == found


def test_the_hooks_of_pre_commit_run(tmp_path: Path) -> None:
    """Each hook is a command of kafkaform whose flags exist, for files that it can read."""
    hooks = {
        hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    }
    assert hooks.keys() == {"kafkaform-fmt", "kafkaform-validate"}
    (tmp_path / "main.kf.hcl").write_text("locals {\n  a    = 1\n}\n")
    for hook in hooks.values():
        assert re.search(hook["files"], "kafka/main.kf.hcl")
        names = ["main.kf.hcl"] if hook.get("pass_filenames", True) else []
        words = [*hook["entry"].split(), *hook.get("args", ()), *names]
        program = Path(sys.executable).with_name(words[0])
        subprocess.run([program, *words[1:]], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "main.kf.hcl").read_text() == "locals {\n  a = 1\n}\n"
