"""What strangers need to take part: pages, templates, pipelines, and a release that can be made."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.release import changelog
from docs.release.build import build
from docs.release.trial import install_wheel, try_commands
from kafkaform.sandbox import Sandbox

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
EXAMPLES = ROOT / "examples/pipelines/github/.github/workflows"


def jobs(path: Path) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in jobs(path):
        yield from job.get("steps", ())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_call_only_targets_that_exist(path: Path) -> None:
    """Each `make X` of a workflow is a target of the Makefile; another workflow that it uses is
    there."""
    called = [re.match(r"make ([\w-]+)", step.get("run", "")) for step in steps(path)]
    assert {found[1] for found in called if found} <= TARGETS
    used = [job["uses"] for job in jobs(path) if "uses" in job]
    assert all((ROOT / one).exists() for one in used)
    assert used or any(called)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_have_no_rights_by_default(path: Path) -> None:
    """Each job asks for its rights and has a time limit, no expression stands in a command, and
    actions are pinned by commit, as in the example pipelines."""
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {}
    for job in jobs(path):
        assert "permissions" in job
        assert "uses" in job or "timeout-minutes" in job
    reviewed = "".join(one.read_text(encoding="utf-8") for one in EXAMPLES.glob("*.yml"))
    for step in steps(path):
        assert "${{" not in step.get("run", "")
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
            assert step["uses"] in reviewed


def test_the_quick_check_runs_on_every_python() -> None:
    """The matrix has each minor version from the lowest that pyproject.toml allows on."""
    (job,) = jobs(ROOT / ".github/workflows/check.yml")
    versions = job["strategy"]["matrix"]["python"]
    assert versions == [f"3.{minor}" for minor in range(11, 15)]
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=str)
def test_issue_forms_are_complete(path: Path) -> None:
    """Each form has a name, a description and fields with ids of their own."""
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert form["name"] and form["description"] and len(ids) == len(set(ids)) > 0


def test_hooks_run_tools_of_the_project() -> None:
    """pre-commit runs what `make` installs, and nothing else."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    for repo in hooks["repos"]:
        assert repo["repo"] == "local"
        assert all(hook["entry"].startswith(".venv/bin/") for hook in repo["hooks"])


def test_fragments_are_named_by_kind() -> None:
    """Every fragment of the change log can be read, and has a text."""
    for _, path in changelog.list_fragments():
        assert path.read_text(encoding="utf-8").strip()


def test_fragments_become_a_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release puts the fragments on top of its section, in the order of the kinds, removes
    their files, and its notes are that section; a wrong name is refused."""
    shutil.copytree(changelog.FRAGMENTS, tmp_path / "changes")
    (tmp_path / "changes" / "one.fixed.md").write_text("A fault\nis gone.\n")
    (tmp_path / "changes" / "two.added.md").write_text("It can fly.\n")
    before = "# Changes\n\n## [Unreleased] 0.1.0\n\n### Added\n\n- Old.\n"
    (tmp_path / "CHANGELOG.md").write_text(before)
    monkeypatch.setattr(changelog, "FRAGMENTS", tmp_path / "changes")
    monkeypatch.setattr(changelog, "CHANGELOG", tmp_path / "CHANGELOG.md")
    fragments = changelog.list_fragments(tmp_path / "changes")
    assert {path.name for _, path in fragments} >= {"one.fixed.md", "two.added.md"}
    monkeypatch.setattr(changelog, "list_fragments", lambda: fragments)
    changelog.release_changes(date(2026, 12, 1))
    text = (tmp_path / "CHANGELOG.md").read_text()
    assert text.startswith("# Changes\n\n## [Unreleased]\n\n## [0.1.0] 2026-12-01\n\n### Added\n")
    assert text.index("- It can fly.") < text.index("- A fault is gone.") < text.index("- Old.")
    assert [path.name for path in (tmp_path / "changes").iterdir()] == ["README.md"]
    assert "- A fault is gone." in changelog.read_notes()


def test_a_fragment_without_a_kind_is_refused(tmp_path: Path) -> None:
    """Its file is named, and the kinds that there are."""
    (tmp_path / "three.md").write_text("?")
    with pytest.raises(ValueError, match=r"three\.md.*'added'"):
        changelog.list_fragments(tmp_path)


@pytest.mark.timeout(600)
def test_a_wheel_works_in_an_empty_environment(broker: Sandbox, tmp_path: Path) -> None:
    """The wheel of a release, installed with its lock file into an empty environment, tells its
    version and plans the first example."""
    dist, folder = tmp_path / "dist", tmp_path / "folder"
    folder.mkdir()
    build(dist)
    try:
        commands = install_wheel(tmp_path / "home", dist)
    except subprocess.CalledProcessError:
        pytest.skip("no package index can be reached")
    connection = {
        "KF_VAR_bootstrap": broker.bootstrap,
        "KAFKAFORM_SANDBOX_PASSWORD": broker.admin_password,
    }
    assert "Plan: 3 to add" in try_commands(commands, folder, connection)
