"""`plan --validate`: the dry run at plan time, with evidence for each change, sending nothing."""

from __future__ import annotations

from typing import Any

from ...kit.commands.folder import LOG, STATE, Folder
from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import grant

ACL = """
resource "kafka_acl" "read" {{
  acl_principal       = "User:{prefix}app"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "{prefix}a"
}}
"""

USER = """
resource "kafka_user_scram_credential" "new" {{
  username            = "{prefix}new"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("NEW_PASSWORD")
  password_wo_version = 1
}}
"""


def test_each_change_shows_how_it_was_checked(folder: Folder) -> None:
    """A topic by the broker, an ACL here, and what depends on them later; nothing is written."""
    folder.declare("a")
    folder.write("acl.kf.hcl", ACL.format(prefix=folder.prefix))
    after = "depends_on = [kafka_topic.a]"
    folder.write("later.kf.hcl", folder.topic("later", more=after))
    with folder.untouched():
        said = folder.done("plan", "--validate")
    assert "Dry run:\n" in said.out
    assert f"  kafka_topic.a ({folder.prefix}a): checked by the broker\n" in said.out
    assert "(kafka_acl.read): checked locally\n" in said.out
    assert f"  kafka_topic.later ({folder.prefix}later): depends on other changes" in said.out
    assert not (folder.path / STATE).exists() and not (folder.path / LOG).exists()
    assert "Dry run:" not in folder.done("plan").out


def test_a_refusal_is_shown_and_ends_the_plan_with_1(folder: Folder) -> None:
    """What an apply would meet is known at review time; the other changes keep their evidence."""
    bad = 'config = { "remote.storage.enable" = "true" }'  # the sandbox has no remote storage
    folder.declare("a")
    folder.write("bad.kf.hcl", folder.topic("b", more=bad))
    with folder.untouched():
        said = folder.run("plan", "--validate")
    assert said.code == 1
    assert f"kafka_topic.a ({folder.prefix}a): checked by the broker" in said.text
    assert f"kafka_topic.b ({folder.prefix}b): refused: " in said.text
    assert "CreateTopics was refused in the dry run" in said.text


def test_programs_read_the_evidence_as_events(folder: Folder) -> None:
    """One event a change, in the stream of the plan."""
    folder.declare("a")
    lines = folder.done("plan", "--validate", "--json").lines
    (found,) = [line for line in lines if line["type"] == "validation"]
    body: dict[str, Any] = found["validation"]
    assert body["resource"]["addr"] == "kafka_topic.a"
    assert (body["evidence"], body["refused"]) == ("remote", None)


def test_all_missing_rights_are_told_before_anything_is_sent(
    folder: Folder, stranger: Login
) -> None:
    """A user who may look but not change learns of every step, also of those that come later."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    more = 'config = { "retention.ms" = "1000000" }'
    folder.declare("a", partitions=2, more=more)
    topic = f"{folder.prefix}a"
    take_back = grant(folder.broker, stranger, "Topic", topic, "DESCRIBE", "DESCRIBE_CONFIGS")
    try:
        folder.connect(stranger)
        for command in (("plan", "--validate"), ("apply", "-auto-approve")):
            said = folder.fails(1, *command)
            assert f"{stranger.principal} lacks Alter on Topic {topic}" in said
            assert f"grant AlterConfigs on Topic {topic}" in said
    finally:
        take_back()
        folder.connect()


def test_a_secret_that_is_not_there_is_told_as_an_apply_tells_it(folder: Folder) -> None:
    """The plan and its evidence are shown, and both commands end with 1 and the same advice."""
    folder.write("user.kf.hcl", USER.format(prefix=folder.prefix))
    folder.monkeypatch.delenv("NEW_PASSWORD", raising=False)
    for command in (("plan", "--validate"), ("apply", "-auto-approve")):
        said = folder.fails(1, *command)
        assert "1 to add" in said
        assert "The secret env:NEW_PASSWORD is missing or empty" in said
        assert "Set the environment variable NEW_PASSWORD." in said
    folder.monkeypatch.setenv("NEW_PASSWORD", "hush-hush")
    assert "hush-hush" not in folder.done("plan", "--validate").text


def test_an_empty_plan_has_nothing_to_check(folder: Folder) -> None:
    """Said in so many words."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    assert "Dry run: nothing would be sent." in folder.done("plan", "--validate").out
