"""`--changed-since`: which folders changed since a commit, in real repositories of git."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.workflow.configuration.repository_choice import choose_folders

from ...kit.git_origin import Origin

FILE = """
repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:9093"]
}

cluster "dr" {
  provider          = "kafka"
  bootstrap_servers = ["dr:9093"]
}

folders "teams/*" {
  uses     = { kafka = cluster.prod }
  policies = ["policies/teams"]

  boundary {
    topics = ["${folder.name}.*"]
  }
}

folders "platform" {
  uses = { kafka = cluster.dr }
}
"""
FILES = {
    "kafkaform.hcl": FILE,
    "README.md": "hello",
    "teams/shop/main.kf.hcl": 'module "a" {\n  source = "../../modules/outer"\n}\n',
    "teams/pay/main.kf.hcl": 'locals {\n  a = file("${path.module}/../../texts/pay.json")\n}\n',
    "teams/web/main.kf.hcl": 'data "kafkaform_outputs" "p" {\n  folder = "../../platform"\n}\n',
    "teams/old/main.kf.hcl": 'resource "kafka_topic" "a" {\n  name = "old.a"\n}\n',
    "platform/main.kf.hcl": 'module "a" {\n  source = "../modules/platform"\n}\n',
    "modules/outer/main.kf.hcl": 'module "inner" {\n  source = "../inner"\n}\n',
    "modules/inner/main.kf.hcl": "",
    "modules/platform/main.kf.hcl": "",
    "texts/pay.json": "{}",
    "policies/teams/p.kfpolicy.hcl": "",
}
TEAMS = ["teams/old", "teams/pay", "teams/shop", "teams/web"]


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """A checkout at a branch that has left main."""
    made = Origin.make(tmp_path / "repository")
    made.commit(FILES)
    made.git("checkout", "--quiet", "-b", "change")
    return made


def find(origin: Origin, ref: str = "main", *globs: str) -> dict[str, str]:
    choice = choose_folders(origin.path, not globs, globs, ref)
    assert [folder.path for folder in choice.folders] == list(choice.reasons)
    return dict(choice.reasons)


def edit(origin: Origin, name: str, old: str, new: str) -> None:
    text = (origin.path / name).read_text()
    assert old in text
    (origin.path / name).write_text(text.replace(old, new))


def test_nothing_changed(origin: Origin) -> None:
    """Also if files changed that no folder reads."""
    origin.commit({"README.md": "bye", "docs/a.md": "x"})
    assert find(origin) == {}


@pytest.mark.parametrize("how", ["committed", "staged", "edited", "new", "deleted", "renamed"])
def test_own_files(origin: Origin, how: str) -> None:
    """Of the branch and of the working tree."""
    file = origin.path / "teams/old/main.kf.hcl"
    if how == "new":
        (origin.path / "teams/old/texts").mkdir()
        (origin.path / "teams/old/texts/new.json").write_text("{}")
    elif how == "deleted":
        (origin.path / "teams/old/extra.kf.hcl").write_text("")
        origin.git("add", ".")
        origin.git("commit", "--quiet", "-m", "more")
        origin.git("branch", "--force", "main")
        (origin.path / "teams/old/extra.kf.hcl").unlink()
    elif how == "renamed":
        origin.git("mv", "teams/old/main.kf.hcl", "teams/old/other.kf.hcl")
    else:
        file.write_text("")
        if how != "edited":
            origin.git("add", ".")
        if how == "committed":
            origin.git("commit", "--quiet", "-m", "more")
    assert find(origin) == {"teams/old": "its own files"}


def test_what_came_to_the_branch_later_is_no_change(origin: Origin) -> None:
    """Another team's merge must not outdate this pull request."""
    origin.commit({"teams/old/main.kf.hcl": ""})
    origin.git("checkout", "--quiet", "main")
    origin.commit({"teams/pay/main.kf.hcl": ""})
    origin.git("checkout", "--quiet", "change")
    assert find(origin) == {"teams/old": "its own files"}


@pytest.mark.parametrize("module", ["outer", "inner"])
def test_modules_also_deeper(origin: Origin, module: str) -> None:
    """A module that only a module calls counts as well."""
    origin.commit({f"modules/{module}/main.kf.hcl": "# changed\n"})
    assert find(origin) == {"teams/shop": f"{module}, which it reads"}


def test_a_text_that_a_function_reads(origin: Origin) -> None:
    """`file`, also behind ${path.module}."""
    origin.commit({"texts/pay.json": "[]"})
    assert find(origin) == {"teams/pay": "pay.json, which it reads"}


def test_outputs_of_a_changed_folder(origin: Origin) -> None:
    """Whose outputs are read, whether its own files changed or its module."""
    origin.commit({"modules/platform/main.kf.hcl": "# changed\n"})
    assert find(origin) == {
        "platform": "platform, which it reads",
        "teams/web": "platform, which it reads",
    }


def test_the_blocks_of_the_repository_file(origin: Origin) -> None:
    """A change counts for the folders that it is about, and comments and order for none."""
    edit(origin, "kafkaform.hcl", "dr:9093", "dr-2:9093")
    assert find(origin) == {"platform": "what kafkaform.hcl says about it"}
    (origin.path / "kafkaform.hcl").write_text("# A comment\n" + FILE)
    assert find(origin) == {}
    edit(origin, "kafkaform.hcl", ".*", ".x.*")
    assert list(find(origin)) == TEAMS
    (origin.path / "kafkaform.hcl").write_text(
        FILE + 'folders "teams/shop" {\n  owner = "shop"\n}\n'
    )
    assert list(find(origin)) == ["teams/shop"]


def test_a_new_or_broken_file_before(origin: Origin) -> None:
    """Nobody knows what counted before, so all folders changed."""
    origin.git("checkout", "--quiet", "main")
    origin.commit({"kafkaform.hcl": "repository {\n"})
    origin.git("checkout", "--quiet", "-b", "other")
    origin.commit({"kafkaform.hcl": FILE})
    assert list(find(origin)) == ["platform", *TEAMS]


def test_policies_of_the_group(origin: Origin) -> None:
    """They judge the plans of its folders."""
    origin.commit({"policies/teams/p.kfpolicy.hcl": "# changed\n"})
    assert find(origin) == dict.fromkeys(TEAMS, "the policies of policies/teams")


def test_globs_and_changes_together(origin: Origin) -> None:
    """Only chosen folders that changed."""
    origin.commit({"teams/old/main.kf.hcl": "", "platform/more.kf.hcl": ""})
    assert list(find(origin, "main", "teams/o*", "teams/s*")) == ["teams/old"]


def test_a_ref_that_git_does_not_know(origin: Origin) -> None:
    """And a shallow checkout, which lacks the common commit: the fault says what to fetch."""
    with pytest.raises(UsageError, match="no commit that origin/main and this checkout") as error:
        find(origin, "origin/main")
    assert "git fetch origin main" in error.value.advice
    with pytest.raises(UsageError, match="--output=x"):
        find(origin, "--output=x")
    assert not (origin.path / "x").exists()


def test_a_folder_without_git(tmp_path: Path) -> None:
    """There is nothing to compare with."""
    (tmp_path / "kafkaform.hcl").write_text(FILE)
    with pytest.raises(UsageError, match="is not in a checkout of git"):
        choose_folders(tmp_path, True, (), "main")


def test_the_repository_file_can_be_below_the_top(origin: Origin, tmp_path: Path) -> None:
    """Other code can be in the same repository of git, and modules above the file."""
    outer = Origin.make(tmp_path / "outer")
    outer.commit({f"kafka/{name}": text for name, text in FILES.items()})
    outer.commit(
        {"kafka/teams/more/main.kf.hcl": 'module "a" {\n  source = "../../../shared"\n}\n'}
    )
    outer.git("checkout", "--quiet", "-b", "change")
    outer.commit({"shared/main.kf.hcl": "", "code/a.py": ""})
    choice = choose_folders(outer.path / "kafka", True, (), "main")
    assert dict(choice.reasons) == {"teams/more": "shared, which it reads"}


def test_a_path_that_json_hides_counts_as_changed(origin: Origin) -> None:
    """Nobody writes `..` with escapes by chance."""
    text = '{"module": {"a": {"source": "\\u002e./x/modules/none"}}}'
    origin.git("checkout", "--quiet", "main")
    origin.commit({"teams/odd/main.kf.json": text})
    origin.git("checkout", "--quiet", "-b", "other")
    origin.commit({"teams/old/main.kf.hcl": ""})
    assert set(find(origin)) == {"teams/odd", "teams/old"}


def test_variables_of_git_do_not_lead_elsewhere(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook of git sets them for another repository."""
    monkeypatch.setenv("GIT_DIR", os.devnull)
    monkeypatch.setenv("GIT_INDEX_FILE", os.devnull)
    assert choose_folders(origin.path, True, (), "main").folders == ()
