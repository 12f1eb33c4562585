"""kafkaform.hcl: what it says about each folder, and every fault in it at once."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from kafkaform.core.errors import ConfigurationError, UsageError
from kafkaform.workflow.configuration.repository import Repository, RepositoryFolder
from kafkaform.workflow.configuration.repository_file import read_repository
from kafkaform.workflow.configuration.repository_folders import (
    find_folder,
    list_folders,
    match_folders,
)
from kafkaform.workflow.configuration.repository_place import find_repository

ACME = """
repository {
  name  = "acme-kafka"
  owner = "platform team"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["kafka-1:9093"]
}

folders "teams/*" {
  state    = "s3://acme-kafka/${folder.path}"
  owner    = folder.name
  labels   = { team = folder.name }
  uses     = { kafka = cluster.prod }
  policies = ["policies/teams"]

  boundary {
    topics     = ["${folder.name}.*"]
    principals = ["User:${folder.name}-*"]
    deny       = ["kafka_cluster_config", "cluster ACLs"]
  }
}
"""
HEAD = 'repository {\n  name = "acme"\n}\n'


def make_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder; return the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def read(folder: Path, text: str = ACME) -> Repository:
    make_files(folder, {"kafkaform.hcl": text})
    return read_repository(folder / "kafkaform.hcl")


def list_faults(folder: Path, text: str) -> list[tuple[int, str]]:
    """Line and summary of each fault of a file."""
    with pytest.raises(ConfigurationError) as error:
        read(folder, text)
    return [(f.range.line if f.range else 0, f.summary) for f in error.value.diagnostics]


def get_folder(folders: tuple[RepositoryFolder, ...], path: str) -> RepositoryFolder:
    return next(folder for folder in folders if folder.path == path)


def test_a_folder_gets_what_its_block_says(tmp_path: Path) -> None:
    """Expressions see the path and the name of each folder."""
    make_files(
        tmp_path, {"teams/shop/main.kf.hcl": "", "teams/pay/main.tf": "", "teams/docs/a": ""}
    )
    repository = read(tmp_path)
    folders = list_folders(repository)
    assert [folder.path for folder in folders] == ["teams/pay", "teams/shop"]
    shop = folders[1]
    assert (shop.name, shop.owner, shop.labels) == ("shop", "shop", {"team": "shop"})
    assert shop.state == "s3://acme-kafka/teams/shop"
    assert shop.uses["kafka"].arguments["bootstrap_servers"] == ("kafka-1:9093",)
    assert shop.policies == (tmp_path / "policies/teams",)
    assert shop.boundary is not None
    assert shop.boundary.topics == ("shop.*",)
    assert shop.boundary.principals == ("User:shop-*",)
    assert shop.boundary.groups == ()
    assert str(shop.boundary.location) == "kafkaform.hcl:19:3"
    assert repository.owner == "platform team"


def test_json_says_the_same(tmp_path: Path) -> None:
    """The file can be written in JSON, as kafkaform.json."""
    data = {
        "repository": {"name": "acme-kafka"},
        "cluster": {"prod": {"provider": "kafka", "bootstrap_servers": ["kafka-1:9093"]}},
        "folders": {
            "teams/*": {
                "owner": "${folder.name}",
                "uses": {"kafka": "${cluster.prod}"},
                "boundary": {"topics": ["${folder.name}.*"]},
            }
        },
    }
    make_files(tmp_path, {"kafkaform.json": json.dumps(data), "teams/shop/main.kf.json": "{}"})
    repository = read_repository(tmp_path / "kafkaform.json")
    (shop,) = list_folders(repository)
    assert shop.owner == "shop"
    assert shop.uses["kafka"].name == "prod"
    assert shop.boundary is not None
    assert shop.boundary.topics == ("shop.*",)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    """Each with its line: of blocks, of clusters, of folders and of boundaries."""
    text = """repositori {}
cluster "prod" {
  provider = "kafak"
}
cluster "dr" {
  provider          = "kafka"
  bootstrap_servers = [var.address]
}
folders "../x" {}
folders "teams/*" {
  state = "states/all.json"
  uses  = { kafka = cluster.pord }
  owner = folder.nam
}
folders "apps/*" {
  state = "states/all.json"
  uses  = { schema_registry = "dr2" }
  boundary {
    topic = ["x"]
    deny  = ["kafka_topics"]
  }
}
folders "more/*" {
  boundary {
    topics = [""]
  }
}
folders "deny/*" {
  boundary {
    deny = ["kafka_topics"]
  }
}
"""
    assert list_faults(tmp_path, text) == [
        (1, 'There are no "repositori" blocks in this file'),
        (1, "The file has no repository block"),
        (3, 'there is no provider "kafak"; installed: kafka, kafka_connect, schema_registry'),
        (7, 'Nothing is named "var" here'),
        (9, '"../x" names no folders: `..` would lead out of the repository'),
        (12, 'There is no cluster "pord"'),
        (13, 'There is no attribute "nam"'),
        (17, 'There is no cluster "dr2"'),
        (19, 'boundary has no argument "topic"'),
        (25, "An empty pattern covers nothing"),
        (30, 'There is no resource type "kafka_topics"'),
    ]


def test_folders_must_not_share_a_state(tmp_path: Path) -> None:
    """A place without the path of the folder would be the same for all of them."""
    text = HEAD + 'folders "teams/*" {\n  state = "s3://b/all"\n}\n'
    assert list_faults(tmp_path, text) == [
        (5, "All folders of the block would have the same state")
    ]
    read(tmp_path, HEAD + 'folders "teams/shop" {\n  state = "s3://b/shop"\n}\n')


def test_two_folders_with_one_state_are_refused(tmp_path: Path) -> None:
    """The second one would plan to delete what the first one declares."""
    make_files(tmp_path, {"a/shop/main.kf.hcl": "", "b/shop/main.kf.hcl": ""})
    text = HEAD + 'folders "*/*" {\n  state = "s3://b/${folder.name}"\n}\n'
    first, second = list_folders(read(tmp_path, text))
    assert first.faults == ()
    assert second.faults[0].summary == (
        "the folder b/shop has the same state as a/shop: s3://b/shop"
    )


@pytest.mark.parametrize(
    ("patterns", "winner"),
    [
        (("teams/*", "teams/shop"), "teams/shop"),
        (("**", "teams/*"), "teams/*"),
        (("teams/**", "teams/*"), "teams/*"),
        (("teams/*", "teams/s*"), "teams/s*"),
        (("**/shop", "teams/shop"), "teams/shop"),
        (("**/shop", "**"), "**/shop"),
        (("*/shop", "**/shop"), "*/shop"),
        (("teams/*", "*/shop"), None),
        (("teams/s*", "teams/*p"), None),
        (("**/shop", "teams/*"), None),
    ],
)
def test_the_most_specific_block_wins(
    tmp_path: Path, patterns: tuple[str, str], winner: str | None
) -> None:
    """That is the one whose folders all other blocks match as well; without such a block, the
    folder is refused, and the order of the blocks changes nothing."""
    make_files(tmp_path, {"teams/shop/main.kf.hcl": ""})
    for ordered in (patterns, patterns[::-1]):
        blocks = "".join(f'folders "{pattern}" {{}}\n' for pattern in ordered)
        (shop,) = list_folders(read(tmp_path, HEAD + blocks))
        if winner is None:
            assert "none of them is more specific" in shop.faults[0].summary
            assert all(f'"{pattern}"' in shop.faults[0].summary for pattern in patterns)
        else:
            assert (shop.group.pattern, shop.faults) == (winner, ())


@pytest.mark.parametrize("name", ["*", "a b", "$x", "-x", "é", "a\nb", "sh*p"])
def test_a_folder_with_an_odd_name_is_refused(tmp_path: Path, name: str) -> None:
    """Its name stands in the patterns of its boundary: `*` would cover everything."""
    make_files(tmp_path, {f"teams/{name}/main.kf.hcl": "", "teams/shop/main.kf.hcl": ""})
    folders = list_folders(read(tmp_path))
    refused, shop = (get_folder(folders, f"teams/{part}") for part in (name, "shop"))
    assert "is refused: the name of a folder consists of" in refused.faults[0].summary
    assert refused.boundary is None
    assert shop.faults == ()
    with pytest.raises(ConfigurationError):
        find_folder(read(tmp_path), tmp_path / "teams" / name)


def test_a_folder_behind_a_link_is_refused(tmp_path: Path) -> None:
    """A link could give the files of one team the boundary of another one."""
    make_files(tmp_path, {"teams/shop/main.kf.hcl": "", "free/x/main.kf.hcl": ""})
    (tmp_path / "teams/billing").symlink_to("../free/x")
    repository = read(tmp_path)
    billing = get_folder(list_folders(repository), "teams/billing")
    assert "teams/billing is a link" in billing.faults[0].summary
    with pytest.raises(ConfigurationError):
        find_folder(repository, tmp_path / "teams/billing")


def test_a_link_that_leads_to_itself_hides_no_folder(tmp_path: Path) -> None:
    """A pull request could add one, and nobody would plan the folders beside it."""
    repository = read(tmp_path)
    make_files(tmp_path, {"teams/shop/main.kf.hcl": ""})
    (tmp_path / "teams/loop").symlink_to("loop")
    assert [folder.path for folder in list_folders(repository)] == ["teams/shop"]


@pytest.mark.parametrize("pattern", ["teams/*", "teams/shop", "**"])
def test_a_folder_that_cannot_be_read_hides_no_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """What is in it is unknown, so it is not taken for empty."""
    make_files(tmp_path, {"teams/shop/main.kf.hcl": ""})
    repository = read(tmp_path, f'{HEAD}folders "{pattern}" {{}}\n')

    def refuse(path: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    scandir, is_dir, closed = os.scandir, Path.is_dir, tmp_path / "teams"
    monkeypatch.setattr(os, "scandir", lambda p: refuse(p) if p == closed else scandir(p))
    monkeypatch.setattr(Path, "is_dir", lambda p: refuse(p) if p.parent == closed else is_dir(p))
    with pytest.raises(UsageError, match="folders in it would be left out: Permission denied"):
        list_folders(repository)


def test_a_link_to_a_folder_with_a_boundary_keeps_that_boundary(tmp_path: Path) -> None:
    """The place without links counts if no block matches the name of the link."""
    make_files(tmp_path, {"teams/shop/main.kf.hcl": ""})
    (tmp_path / "elsewhere").symlink_to("teams/shop")
    folder = find_folder(read(tmp_path), tmp_path / "elsewhere")
    assert folder is not None
    assert folder.path == "teams/shop"


def test_a_second_file_further_down_is_refused(tmp_path: Path) -> None:
    """The uppermost file counts, and a folder with one of its own cannot be used."""
    wide = 'repository {\n  name = "x"\n}\nfolders "." {}\n'
    make_files(tmp_path, {"teams/shop/main.kf.hcl": "", "teams/shop/kafkaform.hcl": wide})
    repository = read(tmp_path)
    assert find_repository(tmp_path / "teams/shop") == tmp_path / "kafkaform.hcl"
    (shop,) = list_folders(repository)
    assert "teams/shop/kafkaform.hcl is below this file" in shop.faults[0].summary
    (tmp_path / "teams/shop/kafkaform.hcl").rename(tmp_path / "teams/kafkaform.json")
    assert (
        "teams/kafkaform.json is below this file" in list_folders(repository)[0].faults[0].summary
    )


def test_a_git_folder_does_not_end_the_search(tmp_path: Path) -> None:
    """A submodule has a .git of its own, and must not leave the boundary by it."""
    make_files(tmp_path, {"teams/shop/.git/HEAD": "", "kafkaform.hcl": ACME})
    assert find_repository(tmp_path / "teams/shop") == tmp_path / "kafkaform.hcl"


def test_the_search_ends_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is above the user's own folder belongs to somebody else."""
    make_files(tmp_path, {"kafkaform.hcl": ACME, "home/work/x": ""})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert find_repository(tmp_path / "home/work") is None


def test_the_file_is_no_link_and_has_one_form(tmp_path: Path) -> None:
    """A link would let another place change the boundaries."""
    make_files(tmp_path, {"real": ACME, "both/kafkaform.hcl": ACME, "both/kafkaform.json": "{}"})
    (tmp_path / "kafkaform.hcl").symlink_to("real")
    with pytest.raises(UsageError, match=r"kafkaform.hcl is a link"):
        read_repository(tmp_path / "kafkaform.hcl")
    with pytest.raises(UsageError, match=r"contains kafkaform.hcl and kafkaform.json"):
        find_repository(tmp_path / "both")


def test_folders_are_chosen_by_globs(tmp_path: Path) -> None:
    """A glob that matches nothing is a fault that names some folders."""
    names = ("teams/shop", "teams/pay", "deep/a/b")
    make_files(tmp_path, {f"{name}/main.kf.hcl": "" for name in names})
    repository = read(tmp_path, HEAD + 'folders "teams/*" {}\nfolders "deep/**" {}\n')
    folders = list_folders(repository)
    assert [f.path for f in folders] == ["deep/a/b", "teams/pay", "teams/shop"]
    chosen = match_folders(repository, folders, ["teams/s*", "deep/**"])
    assert [folder.path for folder in chosen] == ["deep/a/b", "teams/shop"]
    with pytest.raises(UsageError, match="no folder of the repository acme matches teams/x"):
        match_folders(repository, folders, ["teams/*", "teams/x*"])
