"""What users manage lives and ends on another version of Kafka than the one of all other tests: the
newest of the previous major, or the one that `--kafka-version` chooses."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import NewTopic

from kafkaform import sandbox
from kafkaform.sandbox import Format
from kafkaform.sandbox.versions import NO_ZOOKEEPER, find_newest

from ...kit.commands.fixtures import here
from ...kit.commands.here import Here
from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.logins import admin_login, open_client
from ...kit.kafka.subjects import SUBJECTS, Subject
from ...kit.kafka.versions import Choice, get_choice, is_asked_for

__all__ = ["here"]
pytestmark = pytest.mark.timeout(600)  # the first run on a computer downloads 49 MB
REFUSAL = re.compile(
    r"the cluster runs Kafka [\d.]+\d( with ZooKeeper)?; "
    r"[^;│]+? exist (since Kafka [\d.]+\d|only with KRaft)"
)


def choose_cluster() -> Choice:
    return get_choice() if is_asked_for() else Choice(find_newest(NO_ZOOKEEPER))


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[sandbox.Sandbox]:
    """A cluster of the other version."""
    wanted = choose_cluster()
    with own_sandbox(f"version-{os.getpid()}", wanted.brokers, choice=wanted) as made:
        yield made


@pytest.fixture
def folder(here: Here, box: sandbox.Sandbox) -> Here:
    """A folder connected to it."""
    here.monkeypatch.setenv("KAFKAFORM_SANDBOX_PASSWORD", box.admin_password)
    here.monkeypatch.setenv("SUBJECT_PASSWORD", uuid.uuid4().hex)
    here.write("provider.kf.hcl", sandbox.render(box, Format.PROVIDER))
    return here


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.title)
def test_an_object_of_each_kind_lives_and_ends(
    folder: Here,
    box: sandbox.Sandbox,
    subject: Subject,
    record_property: Callable[[str, object], None],
) -> None:
    """Made, changed and destroyed, and after each apply the next plan has nothing to do. What this
    Kafka does not have is refused before anything is sent, and the message says which version has
    it."""
    name = f"subject-{uuid.uuid4().hex[:10]}"
    if subject.kind == "kafka_topic_config":
        _create_topic(box, name)
    folder.write("main.kf.hcl", subject.first.format(p=name))
    if not subject.is_in(choose_cluster()):
        said = folder.run("apply", "-auto-approve")
        refusal = REFUSAL.search(said.text)
        assert said.code != 0 and refusal is not None, said.text
        assert "kafkaform.state.json" not in folder.files()
        record_property("refused", refusal[0])
        return
    for text in (subject.first, subject.second):
        folder.write("main.kf.hcl", text.format(p=name))
        folder.done("apply", "-auto-approve")
        assert "No changes" in folder.done("plan").text
    folder.done("destroy", "--confirm", box.cluster_id)
    folder.write("main.kf.hcl", "")
    assert "No changes" in folder.done("plan").text


def test_the_sandbox_says_which_kafka_it_is(folder: Here, box: sandbox.Sandbox) -> None:
    """`status` and the provider block name the version, and ZooKeeper where it is."""
    wanted = choose_cluster()
    folder.monkeypatch.setenv("XDG_STATE_HOME", str(box.folder.parents[2]))
    shown = folder.done("sandbox", "status", "--name", box.name).text
    assert f"kafka {wanted.kafka_version}" in shown
    assert ("with ZooKeeper" in shown) is wanted.zookeeper
    assert f"Kafka {wanted.kafka_version}" in sandbox.render(box, Format.PROVIDER)


def _create_topic(box: sandbox.Sandbox, name: str) -> None:
    """A topic that somebody else made."""
    admin = open_client(box, admin_login(box))
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)
