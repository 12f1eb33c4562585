"""`validate` and `fmt` for many folders of a repository, and what its top says."""

from __future__ import annotations

import pytest

from ...kit.commands.here import Here

FILE = """repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:9093"]
}

folders "teams/*" {
  owner = folder.name
  uses  = { kafka = cluster.prod }

  boundary {
    topics = ["${folder.name}.*"]
  }
}
"""


def make_topic(name: str) -> str:
    return f'resource "kafka_topic" "a" {{\n  name = "{name}"\n}}\n'


@pytest.fixture
def top(here: Here) -> Here:
    """The top of a repository of three folders."""
    here.write("kafkaform.hcl", FILE)
    for name in ("pay", "shop", "web"):
        here.write(f"teams/{name}/main.kf.hcl", make_topic(f"{name}.a"))
    return here


def test_all_folders_are_valid(top: Here) -> None:
    """Without a word about each of them."""
    assert top.done("validate", "--all").out == "3 folders are valid: 3 objects declared.\n"
    assert top.done("validate", "--folder", "teams/p*", "--folder", "teams/w*").out == (
        "2 folders are valid: 2 objects declared.\n"
    )


def test_a_faulty_folder_fails_and_the_others_go_on(top: Here) -> None:
    """The summary begins with what failed; paths are seen from the top."""
    top.write("teams/pay/main.kf.hcl", 'resource "kafka_topic" "a" {\n  name = "pay\n}\n')
    top.write("teams/shop/main.kf.hcl", make_topic("billing.a"))
    said = top.run("validate", "--all")
    assert said.code == 1
    assert said.out.splitlines() == [
        "teams/pay: 1 error",
        "teams/shop: 1 error",
        "2 of 3 folders of the repository acme failed.",
        "1 folder is valid: 1 object declared.",
    ]
    assert "on teams/pay/main.kf.hcl:2:10" in said.err
    assert "on teams/shop/main.kf.hcl:2:10, in kafka_topic.a" in said.err
    assert "outside of the boundary of teams/shop (kafkaform.hcl:14)" in said.err


def test_the_words_are_those_of_the_folder_alone(top: Here) -> None:
    """`validate` in the folder finds the same."""
    top.write("teams/shop/main.kf.hcl", make_topic("billing.a"))
    both = top.json("validate", "--all", "--json", code=1)
    top.monkeypatch.chdir(top.path / "teams/shop")
    (alone,) = top.json("validate", "--json", code=1)["diagnostics"]
    (shop,) = [item for item in both["folders"] if item["folder"] == "teams/shop"]
    (found,) = shop["diagnostics"]
    assert (found["summary"], found["advice"]) == (alone["summary"], alone["advice"])
    assert found["range"]["filename"] == f"teams/shop/{alone['range']['filename']}"
    assert (shop["owner"], shop["valid"], shop["error_count"]) == ("shop", False, 1)
    assert [item["valid"] for item in both["folders"]] == [True, False, True]


def test_an_object_of_two_folders_is_an_error_of_both(top: Here) -> None:
    """Each with its line and the place of the other block; the third folder is sound."""
    top.write("kafkaform.hcl", FILE.replace('["${folder.name}.*"]', '["*"]'))
    top.write("teams/web/main.kf.hcl", make_topic("pay.a"))
    said = top.run("validate", "--all")
    assert said.code == 1
    assert said.out.splitlines() == [
        "teams/pay: 1 error",
        "teams/web: 1 error",
        "2 of 3 folders of the repository acme failed.",
        "1 folder is valid: 1 object declared.",
    ]
    assert "on teams/pay/main.kf.hcl:1:1, in kafka_topic.a" in said.err
    assert "another folder has it, too: teams/pay (teams/pay/main.kf.hcl:1)" in said.err
    folders = top.json("validate", "--all", "--json", code=1)["folders"]
    assert [item["error_count"] for item in folders] == [1, 0, 1]
    assert top.done("validate", "--folder", "teams/pay")
    rule = top.done("explain", "rule", "object-in-two-folders").out
    assert "Two folders of a repository have the same object" in rule


def test_a_folder_that_is_refused_fails_alone(top: Here) -> None:
    """Such as one with a name that no boundary can have."""
    top.write("teams/a b/main.kf.hcl", make_topic("a"))
    said = top.run("validate", "--all")
    assert said.code == 1
    assert "1 of 4 folders of the repository acme failed." in said.out
    assert "the folder 'teams/a b' is refused" in said.err
    assert "on kafkaform.hcl:10:1" in said.err


def test_a_fault_of_the_file_stops_everything(top: Here) -> None:
    """All of its faults are told at once, in a folder as well as at the top."""
    top.write(
        "kafkaform.hcl", FILE.replace("cluster.prod", "cluster.pord").replace("owner", "ower")
    )
    text = top.fails("validate", "--all")
    assert 'There is no cluster "pord"' in text and '"ower"' in text
    assert "valid" not in text.replace("invalid", "")
    top.monkeypatch.chdir(top.path / "teams/shop")
    text = top.fails("validate")
    assert 'There is no cluster "pord"' in text and "on ../../kafkaform.hcl:12:21" in text


@pytest.mark.parametrize("command", ["validate", "plan", "apply"])
def test_the_top_says_which_flags_to_use(top: Here, command: str) -> None:
    """It has no configuration of its own."""
    text = " ".join(top.fails(command).split())
    assert "the top of the repository acme, which has 3 folders with a configuration" in text
    assert "--all" in text and "--folder GLOB" in text and "such as teams/pay" in text


def test_flags_that_cannot_be_used(top: Here) -> None:
    """Each fault says what to do."""
    assert "exclude each other" in top.fails("validate", "--all", "--folder", "teams/*")
    assert "The folders are teams/pay" in top.fails("validate", "--folder", "teams/x*")
    assert "TARGET cannot be combined" in top.fails("fmt", "--all", "teams")
    (top.path / "kafkaform.hcl").unlink()
    assert "there is no kafkaform.hcl" in top.fails("validate", "--all")


def test_fmt_formats_the_file_and_the_folders(top: Here) -> None:
    """`kafkaform.hcl` is a file of the language."""
    top.write("kafkaform.hcl", FILE.replace("  owner = folder", "  owner    = folder"))
    top.write("teams/shop/main.kf.hcl", make_topic("shop.a").replace("name =", "name   ="))
    top.write("teams/web/main.kf.hcl", make_topic("web.a").replace("name =", "name   ="))
    assert top.run("fmt", "--all", "--check").out.split() == [
        "kafkaform.hcl",
        "teams/shop/main.kf.hcl",
        "teams/web/main.kf.hcl",
    ]
    assert top.done("fmt", "--folder", "teams/s*").out.split() == [
        "kafkaform.hcl",
        "teams/shop/main.kf.hcl",
    ]
    assert (top.path / "kafkaform.hcl").read_text() == FILE


def test_the_state_is_where_the_group_says(top: Here) -> None:
    """Unless the folder has a backend block; a path is seen from the repository."""
    text = FILE.replace("  owner =", '  state = "states/${folder.path}.json"\n  owner =')
    top.write("kafkaform.hcl", text)
    top.monkeypatch.chdir(top.path / "teams/web")
    top.done("state", "list")
    assert (top.path / "states/teams").is_dir()
    top.write("states/teams/shop.json", "no state")
    top.write("own.json", "no state either")
    top.monkeypatch.chdir(top.path / "teams/shop")
    assert "states/teams/shop.json" in top.fails("state", "list", code=9)
    top.write(
        "teams/shop/b.kf.hcl",
        'kafkaform {\n  backend "local" {\n    path = "../../own.json"\n  }\n}\n',
    )
    assert "own.json" in top.fails("state", "list", code=9)


def test_the_rights_of_a_login_are_written(top: Here) -> None:
    """As roles that the platform's folder can declare; what no ACL can say is named."""
    text = FILE.replace(
        '    topics = ["${folder.name}.*"]',
        '    topics     = ["${folder.name}.*", "${folder.name}", "*.${folder.name}"]\n'
        '    groups     = ["*"]\n'
        '    principals = ["User:${folder.name}-*"]',
    )
    top.write("kafkaform.hcl", text)
    said = top.done("export", "acls", "--for", "folders", "teams/p*")
    assert 'topics         = ["pay"]\n  topic_prefixes = ["pay."]' in said.out
    assert 'groups     = ["*"]' in said.out
    assert 'no ACL can say the pattern "*.pay" of topics' in said.err
    assert "which no ACL limits to some principals" in said.err
    top.write("platform/logins.kf.hcl", said.out)
    top.write("platform/a.auto.kfvars.hcl", 'logins = { "teams/pay" = "User:pay-pipeline" }\n')
    top.monkeypatch.chdir(top.path / "platform")
    assert "14 objects declared" in top.done("validate").out
    assert "--for folders" in top.fails("export", "acls")
    assert "--for folders" in top.fails("export", "terraform", "--for", "folders", "teams/*")
    assert "--for folders" in top.fails("export", "acls", "--for", "topics", "teams/*")
