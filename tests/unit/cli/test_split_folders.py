"""`import --all --split folders`: the files that it writes, and what it says."""

from __future__ import annotations

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider

from ...kit.commands.here import Here
from ...test_cases import cluster_of

FILE = """repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:9092"]
}

folders "teams/*" {
  uses = { kafka = cluster.prod }

  boundary {
    topics = ["${folder.name}.*"]
  }
}
"""
COMMAND = ("import", "--all", "--split", "folders", "--out", "imported.kf.hcl")


@pytest.fixture
def top(here: Here) -> Here:
    """The top of a repository of two folders, and a cluster with topics of three teams."""
    cluster = cluster_of(topics={name: {} for name in ("pay.a", "shop.a", "shop.b", "web.a")})
    here.monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    here.write("kafkaform.hcl", FILE)
    for name in ("pay", "shop"):
        here.write(f"teams/{name}/main.kf.hcl", "")
    return here


def test_each_folder_gets_a_file(top: Here) -> None:
    """And what fits none is listed on standard error."""
    said = top.done(*COMMAND)
    assert said.out.splitlines() == [
        "teams/pay/imported.kf.hcl   1 object",
        "teams/shop/imported.kf.hcl  2 objects",
    ]
    assert "Left out: 1 of kafka_topic: no boundary covers them: web.a." in said.err
    assert "3 objects to import into 2 folders" in said.err
    files = top.files()
    assert b"to = kafka_topic.pay_a" in files["teams/pay/imported.kf.hcl"]
    assert len(files) == 5
    assert top.done("validate", "--all").out == "2 folders are valid: 3 objects declared.\n"
    again = top.done("import", "--all", "--split", "folders", "--out", "again.kf.hcl")
    assert again.out == "" and "Nothing to import" in again.err
    assert top.files() == files


def test_nothing_is_overwritten(top: Here) -> None:
    """If one of the files exists, none is written."""
    top.write("teams/shop/imported.kf.hcl", "# mine\n")
    before = top.files()
    assert "imported.kf.hcl exists, and is not overwritten" in top.fails(*COMMAND)
    assert top.files() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("import --all --split folders", "--split needs --out"),
        ("import --all --split folders --out a/b.kf.hcl", "--out is a file's name in each folder"),
        ("import --all --split folders --out imported", "--out is a file's name in each folder"),
        ("import --all --split folders --out a.kf.hcl --state s.json", "--state"),
        ("import --all --split folders --out a.kf.hcl --json", "--json"),
        ("import --all --split teams --out a.kf.hcl", "--all does not go with ADDRESS"),
        ("import --all folders --out a.kf.hcl", "--all does not go with ADDRESS"),
    ],
)
def test_wrong_command_lines(top: Here, words: str, message: str) -> None:
    """Nothing is written."""
    before = top.files()
    assert message in top.fails(*words.split())
    assert top.files() == before


def test_the_equals_sign_may_stand_there(top: Here) -> None:
    """As with other flags that have a value."""
    top.done("import", "--all", "--split=folders", "--out=imported.kf.hcl")
    assert "teams/pay/imported.kf.hcl" in top.files()


def test_a_folder_of_terraform_gets_a_file_of_terraform(top: Here) -> None:
    """A .kf.hcl file would replace those that are there."""
    (top.path / "teams/pay/main.kf.hcl").rename(top.path / "teams/pay/main.tf")
    said = top.done(*COMMAND)
    assert said.out.split() == [
        *("teams/pay/imported.tf", "1", "object"),
        *("teams/shop/imported.kf.hcl", "2", "objects"),
    ]
    assert top.done("validate", "--all").out == "2 folders are valid: 3 objects declared.\n"


def test_outside_of_a_repository(here: Here) -> None:
    """It says what is missing."""
    assert "there is no kafkaform.hcl here" in here.fails(*COMMAND)
