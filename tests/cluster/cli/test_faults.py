"""What goes wrong in a user's hands: each fault has its own message, its exit code, and has sent
nothing."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core import canonical
from kafkaform.core.value import FrozenMap
from kafkaform.state import codec
from kafkaform_kafka.session import KafkaSession

from ...kit.commands.folder import STATE, Folder
from ...kit.kafka.logins import Login
from ...kit.proxy import rewrite
from ...kit.proxy.frames import Asked
from ...kit.proxy.proxy import proxying

# ── configuration ───────────────────────────────────────────────────────────────────────


def test_every_fault_of_a_file_is_told_at_once(folder: Folder) -> None:
    """Place, the line itself with a caret, the reason and what to do, for each of them."""
    folder.write(
        "topics.kf.hcl",
        'resource "kafka_topic" "a" {\n'
        f'  name      = "{folder.prefix}a"\n'
        "  partition = 3\n"
        "}\n"
        'resource "kafka_topc" "b" {\n'
        "}\n"
        'resource "kafka_topic" "c" {\n'
        f'  name       = "{folder.prefix}c"\n'
        '  partitions = "many"\n'
        "  config     = { x = local.nowhere }\n"
        "}\n",
    )
    for command in (["validate"], ["plan"], ["apply", "-auto-approve"]):
        with folder.untouched():
            said = folder.run(*command)
        assert said.code == 1
        assert "on topics.kf.hcl:3:3" in said.err
        assert "│   3:   partition = 3\n│        ^^^^^^^^^\n" in said.err
        assert 'Did you mean "partitions"?' in said.text
        assert "topics.kf.hcl:5:10" in said.text
        assert 'There is no resource type "kafka_topc"' in said.text
        assert 'Did you mean "kafka_topic"?' in said.text
        assert '"partitions" must be a number' in said.text
        assert 'There is no local value "nowhere"' in said.text


def test_a_file_that_cannot_be_parsed(folder: Folder) -> None:
    """The open bracket is named, not the end of the file."""
    folder.write("topics.kf.hcl", 'resource "kafka_topic" "a" {\n  config = { x = "y"\n}\n')
    said = folder.fails(1, "plan")
    assert 'Unclosed "{"' in said
    assert "topics.kf.hcl:1:28" in said
    assert "Fix: Add the missing" in said


def test_a_literal_secret_is_refused_and_not_shown(folder: Folder) -> None:
    """A password in a file is told what to write instead, without being repeated."""
    provider = (folder.path / "provider.kf.hcl").read_text()
    folder.write("provider.kf.hcl", provider.replace('secret_env("ADMIN_PASSWORD")', '"hunter2"'))
    folder.declare("a")
    said = folder.fails(1, "apply", "-auto-approve")
    assert "needs a reference to a secret" in said
    assert 'secret_env("NAME")' in said
    assert "hunter2" not in said


def test_a_missing_secret(folder: Folder) -> None:
    """The variable that has to be set is named."""
    folder.connect(secret="NOT_SET_ANYWHERE")
    folder.declare("a")
    said = folder.fails(1, "apply", "-auto-approve")
    assert "Set the environment variable NOT_SET_ANYWHERE" in said


def test_a_folder_without_configuration(folder: Folder) -> None:
    """An empty folder is no configuration that wants nothing."""
    (folder.path / "provider.kf.hcl").unlink()
    for command in ("validate", "plan"):
        assert "no configuration here" in folder.fails(1, command)


def test_a_configuration_that_declares_nothing(folder: Folder) -> None:
    """All blocks gone at once is taken for a mistake."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    folder.declare()
    for command in (["plan"], ["apply", "-auto-approve"]):
        said = folder.fails(8, *command)
        assert "the configuration declares nothing" in said
        assert "kafkaform destroy" in said


# ── connection and rights ───────────────────────────────────────────────────────────────


def test_an_unreachable_broker(folder: Folder) -> None:
    """The address that does not answer is named, with what to check."""
    folder.connect(bootstrap="127.0.0.1:1")
    folder.declare("a")
    said = folder.fails(1, "apply", "-auto-approve")
    assert "127.0.0.1:1" in said
    assert "bootstrap_servers" in said


def test_a_wrong_password(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused login is not told as a broker that is down, and the password is not repeated."""
    monkeypatch.setenv("ADMIN_PASSWORD", "guessed-wrong")
    folder.declare("a")
    said = folder.fails(1, "apply", "-auto-approve")
    assert "wrong username or password" in said
    assert "sasl_password" in said
    assert "guessed-wrong" not in said


def test_without_rights_nothing_looks_absent(folder: Folder, stranger: Login) -> None:
    """A cluster full of topics looks empty to a user without rights: no topic of the state or
    of the configuration is planned as gone or new, each is blocked for want of a right."""
    folder.declare("kept", "gone")
    folder.done("apply", "-auto-approve")
    folder.declare("kept", "new")
    folder.connect(stranger)
    for command in (["plan"], ["apply", "-auto-approve"]):
        said = folder.fails(8, *command)
        assert "Plan: 0 to add, 0 to change, 0 to destroy." in said
        assert f"the right Describe on Topic {folder.prefix}gone is missing" in said
        for name in ("kept", "gone", "new"):
            assert f"({folder.prefix}{name})" in said
        assert "will be" not in said


def test_a_broker_that_lags_behind_blocks_no_plan(folder: Folder) -> None:
    """DescribeConfigs twice does not know a topic that Metadata has shown, as right after its
    creation: it is read again, and the plan is that of the whole topic."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    topic, late = f"{folder.prefix}a".encode(), list[Asked]()

    def lag(request: Asked, data: bytes) -> bytes:
        if request.api != "DescribeConfigs" or topic not in request.data or len(late) == 2:
            return data
        late.append(request)
        return rewrite.said(request, data, code=3)

    with proxying(int(folder.broker.bootstrap.rpartition(":")[2])) as proxy:
        folder.connect(bootstrap=proxy.bootstrap)
        proxy.tamper = lag
        assert "No changes" in folder.done("plan").text
    assert len(late) == 2
    folder.connect()


# ── plans ───────────────────────────────────────────────────────────────────────────────


def test_a_stale_plan(planned: Folder) -> None:
    """What was changed after the review is named, and nothing of the plan is sent."""
    planned.alter("a", "segment.ms", "9000000")
    said = planned.fails(4, "apply", "plan.kfplan")
    assert "kafka_topic.a" in said
    assert "segment.ms" in said
    assert "Plan again" in said


def test_a_plan_file_that_was_edited(planned: Folder) -> None:
    """An accident shows in the checksum."""
    file = planned.path / "plan.kfplan"
    file.write_text(file.read_text().replace("1000000", "2000000"))
    said = planned.fails(4, "apply", "plan.kfplan")
    assert "plan.kfplan was altered" in said


def test_a_plan_file_that_was_forged(planned: Folder) -> None:
    """Whoever mends the checksum meets the approval, which follows from the changes."""
    file = planned.path / "plan.kfplan"
    body = json.loads(file.read_text())
    text = json.dumps(body["plan"]).replace("1000000", "2000000")
    forged = {"format": body["format"], "plan": json.loads(text)}
    forged["checksum"] = canonical.digest(forged)
    file.write_text(canonical.dumps(forged) + "\n")
    said = planned.fails(4, "apply", "plan.kfplan")
    assert "the plan was altered" in said


def test_a_forged_step(planned: Folder) -> None:
    """A request that does more than its change shows is refused, approval or not."""
    file = planned.path / "plan.kfplan"
    body = json.loads(file.read_text())
    for change in body["plan"]["changes"]:
        for step in change["steps"]:
            if step["request"]["name"] == "CreateTopics":
                step["payload"]["partitions"] = 50
    forged = {"format": body["format"], "plan": body["plan"]}
    forged["checksum"] = canonical.digest(forged)
    file.write_text(canonical.dumps(forged) + "\n")
    said = planned.fails(4, "apply", "plan.kfplan")
    assert "the plan was altered" in said


def test_another_plan_than_the_approved_one(planned: Folder) -> None:
    """--expect binds both forms of apply to the reviewed plan, and says which part differs."""
    token = planned.approval()
    other = f"{'0' * 64}.{token.partition('.')[2]}"
    for command in (["apply", "plan.kfplan"], ["apply"]):
        said = planned.fails(4, *command, "--expect", other)
        assert "not the plan that was approved" in said
        assert "what would be done differs" in said
    edited = f"{token.partition('.')[0]}.{'0' * 64}"
    assert "the configuration differs" in planned.fails(4, "apply", "--expect", edited)


def test_a_plan_of_another_folder(planned: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan belongs to the state that it was made for."""
    other = planned.path / "other"
    other.mkdir()
    shutil.copy(planned.path / "provider.kf.hcl", other)
    monkeypatch.chdir(other)
    said = planned.fails(4, "apply", "../plan.kfplan")
    assert "made for another state" in said


@pytest.mark.parametrize("content", ["garbage", "", "{}", '{"format":1}', "\x00\xff"])
def test_a_file_that_is_no_plan(folder: Folder, content: str) -> None:
    """It is refused by name before anything is read from a broker."""
    folder.declare("a")
    folder.write("x.kfplan", content)
    for command in ("apply", "show"):
        assert "x.kfplan is not a kafkaform plan" in folder.fails(4, command, "x.kfplan")


def test_a_plan_file_that_is_not_there(folder: Folder) -> None:
    """The message says how to get one."""
    folder.declare("a")
    for command in ("apply", "show"):
        said = folder.fails(1, command, "nowhere.kfplan")
        assert "nowhere.kfplan cannot be read" in said
        assert "plan -out=FILE" in said


def test_another_cluster_behind_the_same_settings(planned: Folder) -> None:
    """The state knows its cluster's id; an address that leads elsewhere is refused."""
    file = planned.path / STATE
    state = codec.decode(file.read_bytes(), STATE)
    moved = replace(state, providers=FrozenMap(kafka="AAAAAAAAAAAAAAAAAAAAAA"))
    file.write_bytes(codec.encode(moved))
    for command in (["plan"], ["apply", "-auto-approve"], ["apply", "plan.kfplan"]):
        said = planned.fails(4, *command)
        assert planned.broker.cluster_id in said
        assert "AAAAAAAAAAAAAAAAAAAAAA" in said


def test_what_somebody_else_made_meanwhile_is_not_taken_over(planned: Folder) -> None:
    """A topic that comes into being between the last look and the request is a failure of that
    step alone: the rest is applied, and the table says what to do."""
    with pytest.MonkeyPatch.context() as patch:
        send = KafkaSession.apply

        def late(self: KafkaSession, *arguments: Any) -> object:
            if "b" not in planned.topics():
                planned.create("b", 7)
            return send(self, *arguments)

        patch.setattr(KafkaSession, "apply", late)
        said = planned.run("apply", "plan.kfplan")
    assert said.code == 5
    assert f"failed   + kafka_topic.b ({planned.prefix}b)  TOPIC_ALREADY_EXISTS" in said.out
    assert "applied  ~ kafka_topic.a" in said.out
    assert "Applied in part: 1 applied, 1 failed." in said.out
    assert "1 step failed" in said.err
    assert planned.topics() == {"a": 1, "b": 7}
    assert planned.done("state", "list").out == "kafka_topic.a\n"
    assert "does not manage it" in planned.fails(8, "plan")


# ── deletions ───────────────────────────────────────────────────────────────────────────


def test_more_deletions_than_allowed(folder: Folder) -> None:
    """--max-deletes is a limit for a destroy too."""
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    confirm = ["destroy", "--confirm", folder.broker.cluster_id]
    said = folder.fails(8, *confirm, "--max-deletes", "1")
    assert "deletes 2 objects, but --max-deletes allows 1" in said
    assert set(folder.topics()) == {"a", "b"}


def test_many_deletions_need_a_number(folder: Folder) -> None:
    """Ten deletions that are most of the state are blocked until somebody counts them."""
    names = [f"t{n}" for n in range(10)]
    folder.declare(*names)
    folder.done("apply", "-auto-approve", "-no-wait")
    folder.until(lambda: set(folder.topics()) == set(names))
    removed = "removed {{\n  from = kafka_topic.{}\n  lifecycle {{ destroy = true }}\n}}\n"
    folder.declare("other")
    folder.write("removed.kf.hcl", "".join(map(removed.format, names)))
    said = folder.fails(8, "apply", "-auto-approve")
    assert "the plan deletes 10 of 10 kafka_topic objects" in said
    assert "--max-deletes" in said
    folder.done("apply", "-auto-approve", "-max-deletes=10", "-concise")
    assert set(folder.topics()) == {"other"}
