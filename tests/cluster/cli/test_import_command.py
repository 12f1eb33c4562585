"""`kafkaform import --all` as it is typed, on a broker."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from ...conftest import Broker
from ...kit.commands.folder import LOG, STATE, Folder
from ...kit.kafka.logins import Login, admin_login
from ...kit.kafka.versions import get_choice
from .mongey_cluster import PASSWORDS, made_by_terraform

OUT = "imported.kf.hcl"


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """What Terraform made has a quota of an address, of which there is one."""
    return exclusive_broker


def test_a_live_cluster_becomes_configuration(folder: Folder) -> None:
    """The file that is written is formatted and valid; its apply only imports, then nothing is
    left to do, and no topic was touched."""
    for name, partitions in (("orders", 3), ("payments", 1), ("audit", 2)):
        folder.create(name, partitions)
    folder.alter("audit", "retention.ms", "86400000")
    before = {name: folder.config(name) for name in folder.topics()}
    said = folder.done("import", "--all", "--match", f"{folder.prefix}*", "--out", OUT)
    assert "3 objects to import" in said.text
    assert "can see; there can be more" in said.text
    text = (folder.path / OUT).read_text()
    assert text.count("for_each") == 2
    folder.done("fmt", "--check")
    folder.done("validate")
    assert "3 to import" in folder.done("apply", "--auto-approve").text
    assert "No changes." in folder.done("plan", "--detailed-exitcode").text
    assert {name: folder.config(name) for name in folder.topics()} == before


def test_losing_the_state_loses_nothing(folder: Folder) -> None:
    """State and log deleted: one import and one apply later there is nothing to do."""
    folder.declare("a", "b", partitions=2)
    folder.done("apply", "--auto-approve")
    for name in (STATE, LOG):
        (folder.path / name).unlink()
    folder.done("import", "--all", "--match", f"{folder.prefix}*", "--out", OUT)
    assert (folder.path / OUT).read_text().count("import {") == 2
    assert "2 to import" in folder.done("apply", "--auto-approve").text
    (folder.path / OUT).unlink()
    assert "No changes." in folder.done("plan", "--detailed-exitcode").text


def test_standard_output(folder: Folder) -> None:
    """Without --out the text alone goes to standard output; with nothing to write, nothing."""
    folder.create("one")
    said = folder.done("import", "--all", "--match", f"{folder.prefix}*")
    assert said.out.startswith("# Written by")
    assert "to import" in said.err
    said = folder.done("import", "--all", "--match", f"{folder.prefix}nothing")
    assert said.out == ""
    assert "Nothing to import" in said.err


def test_nothing_is_overwritten_or_hidden(folder: Folder) -> None:
    """A file that exists stays; one that would not be read beside the others is refused."""
    folder.write(OUT, "# mine\n")
    assert "not overwritten" in folder.fails(1, "import", "--all", "--out", OUT)
    assert (folder.path / OUT).read_text() == "# mine\n"
    assert "ends in .kf.hcl" in folder.fails(1, "import", "--all", "--out", "new.tf")


def test_what_does_not_go_together(folder: Folder) -> None:
    """Half a command is refused with what to type."""
    assert "--all" in folder.fails(1, "import")
    assert "--all" in folder.fails(1, "import", "kafka_topic.a")
    assert "goes with --all" in folder.fails(1, "import", "kafka_topic.a", "a", "--type", "x")
    assert "does not go with" in folder.fails(1, "import", "--all", "kafka_topic.a", "a")
    assert "Did you mean" in folder.fails(1, "import", "--all", "--type", "kafka_topc")


def test_an_unprivileged_user_is_told(folder: Folder, stranger: Login) -> None:
    """Whoever may see nothing is not told that there is nothing."""
    folder.create("hidden")
    folder.connect(stranger)
    said = folder.run("import", "--all", "--type", "kafka_topic", "--match", f"{folder.prefix}*")
    assert said.out == ""
    assert "there can be more" in said.err


def test_every_kind_of_object(folder: Folder) -> None:
    """Topics, ACLs, quotas and users that others made: the file declares all of them, needs no
    password, and after its apply, which sends nothing, there is nothing to do."""
    env = folder.prefix.rstrip(".")
    with made_by_terraform(folder.broker, folder.admin, env):
        said = folder.run("import", "--all", "--match", f"*{env}*", "--out", OUT)
        # Kafka 4.0 has configs of groups and cannot list them, so that there can be more.
        unlisted = get_choice().release == "4.0"
        assert said.code == (5 if unlisted else 0), said.text
        assert ("Not complete: kafka_group_config" in said.text) is unlisted
        assert "20 objects to import" in said.text
        text = (folder.path / OUT).read_text()
        assert "# The password cannot be read" in text
        assert f"User:{env}-checkout" in text
        folder.done("fmt", "--check")
        folder.done("validate")
        said = folder.done("apply", "--auto-approve")
        assert "20 to import, 0 to add, 0 to change, 0 to destroy." in said.text
        assert {r["body"]["action"] for r in folder.records("intent")} <= {"import"}
        assert "No changes." in folder.done("plan", "--detailed-exitcode").text
        assert all(password not in text for password in PASSWORDS.values())


def test_topics_of_applications_are_left_out(folder: Folder) -> None:
    """A changelog topic whose application is a group is listed with that group and not written; a
    topic that only has such a name is."""
    app = f"{folder.prefix}app"
    for name in ("app-totals-changelog", "audit-changelog"):
        folder.create(name)
        folder.alter(name, "cleanup.policy", "compact")
    login = admin_login(folder.broker)
    consumer = Consumer(
        {
            "bootstrap.servers": folder.broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": login.mechanism,
            "sasl.username": login.user,
            "sasl.password": login.password,
            "group.id": app,
        }
    )
    offset = TopicPartition(f"{app}-totals-changelog", 0, 0)
    consumer.commit(offsets=[offset], asynchronous=False)
    consumer.close()
    chosen = ("--all", "--type", "kafka_topic", "--match", f"{folder.prefix}*")
    said = folder.done("import", *chosen)
    assert f"made by Kafka Streams for the group {app}: {app}-totals-changelog" in said.text
    assert f"{folder.prefix}audit-changelog" in said.out
    assert f'name       = "{app}' not in said.out
    assert f"{app}-totals" in folder.done("import", *chosen, "--include-owned").out
    assert (
        "1 object to import"
        in folder.done("import", *chosen, "--exclude", "*audit*", "--include-owned").text
    )
