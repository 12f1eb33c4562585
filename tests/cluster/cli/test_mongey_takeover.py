"""A configuration of Terraform's Mongey provider, and the cluster that Terraform made of it, taken
over as they are (`tests/cluster/cli/mongey`)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

from kafkaform_kafka.connection.settings import make_client_config
from kafkaform_kafka.wire.client import RequestNotSent, Wire

from ...conftest import Broker
from ...kit.commands.folder import Folder
from ...kit.kafka.sessions import login
from .mongey_cluster import PASSWORDS, SOURCE, acls, made_by_terraform, topics

OBJECTS = {"topics": 5, "acls": 9, "quotas": 4, "users": 2}
TOTAL = sum(OBJECTS.values())


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """What Terraform made has a quota of an address, of which there is one."""
    return exclusive_broker


@pytest.fixture
def inherited(folder: Folder) -> Iterator[Folder]:
    """The folder as Terraform's users have it; `folder.prefix` is their environment."""
    env = folder.prefix.rstrip(".")
    (folder.path / "provider.kf.hcl").unlink()
    shutil.copytree(SOURCE, folder.path, dirs_exist_ok=True)
    given = {
        "brokers": [folder.broker.bootstrap],
        "checkout_password": PASSWORDS["checkout"],
        "service_passwords": {
            "reporting": PASSWORDS["reporting"],
            "kafka": folder.broker.admin_password,
        },
        "environment": env,
    }
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value)
        folder.monkeypatch.setenv(f"KF_VAR_{name}", text)
    with made_by_terraform(folder.broker, folder.admin, env):
        yield folder


def test_without_a_word_nothing_is_taken(inherited: Folder) -> None:
    """A first plan sees everything, and would neither change nor take any of it."""
    said = inherited.fails(8, "plan")
    assert "0 to change, 0 to destroy" in said
    assert "it already exists, but kafkaform does not manage it" in said


def test_everything_is_adopted_without_a_change(inherited: Folder) -> None:
    """One plan and one apply with --adopt: everything is recorded, no request is sent, and the
    next plan has nothing to do; so has one with nothing but the import blocks gone."""
    before = inherited.topics()
    said = inherited.done("plan", "--adopt", "*", "--json")
    changes = [line for line in said.lines if line.get("type") == "planned_change"]
    assert len(changes) == TOTAL, [c["change"] for c in changes]
    said = inherited.done("plan", "--adopt", "*")
    summary = f"1 to import, 0 to add, 0 to change, 0 to destroy, {TOTAL - 1} to adopt."
    assert summary in said.text
    said = inherited.done("apply", "--auto-approve", "--adopt", "*")
    assert inherited.topics() == before
    for password in PASSWORDS.values():
        assert password not in said.text
        assert password not in (inherited.path / "kafkaform.state.json").read_text()
    intents = [r["body"] for r in inherited.records("intent")]
    assert {i["action"] for i in intents} <= {"adopt", "import"}
    assert "No changes." in inherited.done("plan", "--detailed-exitcode").text
    outputs = json.loads(inherited.done("output", "--json").out)
    assert outputs["facts_partitions"]["value"] == 2


def test_a_lost_state_comes_back_by_import_blocks(inherited: Folder) -> None:
    """Without state and log: a file of import blocks, for modules and instances too, beside the
    one that is there; its apply takes everything over without --adopt."""
    assert "ends in .tf" in inherited.fails(1, "import", "--all", "--out", "back.kf.hcl")
    env = inherited.prefix.rstrip(".")
    said = inherited.done("import", "--all", "--match", f"*{env}*", "--out", "back.tf")
    text = (inherited.path / "back.tf").read_text()
    assert 'to = module.stream["orders"].kafka_topic.this' in text
    assert "no_writes_elsewhere" not in text
    assert f'id = "{env}.warehouse.facts"' in text  # another team's, which no block declares
    said = inherited.done("plan", "--adopt", "kafka_quota.laptop")
    assert f"{TOTAL} to import" in said.text
    assert "0 to add, 0 to change, 0 to destroy, 1 to adopt." in said.text
    inherited.done("apply", "--auto-approve", "--adopt", "kafka_quota.laptop")
    assert "No changes." in inherited.done("plan", "--detailed-exitcode").text


def test_what_the_owner_changes_is_planned(inherited: Folder) -> None:
    """After the take-over a change of the configuration is the plan, and nothing else is."""
    inherited.done("apply", "--auto-approve", "--adopt", "*")
    values = inherited.path / "terraform.tfvars"
    values.write_text(values.read_text().replace("partitions = 6", "partitions = 7"))
    said = inherited.done("apply", "--auto-approve")
    assert "1 changed" in said.text
    assert inherited.topics()["shop.orders"] == 7


def enters(folder: Folder, user: str, password: str) -> bool:
    """Whether one can log in with this password."""
    as_user = {"username": user, "mechanism": "SCRAM-SHA-512", "password": password}
    try:
        Wire(make_client_config(login(folder.broker, "admin", **as_user)), 1.5).close()
    except RequestNotSent:
        return False
    return True


def test_an_element_of_a_map_of_passwords_is_sent(inherited: Folder) -> None:
    """`var.service_passwords["reporting"]` opens the door once its version is raised, and is
    nowhere to be read."""
    inherited.done("apply", "--auto-approve", "--adopt", "*")
    service = inherited.path / "modules" / "service" / "main.tf"
    password = "password         = var.password\n"
    version = password + "  password_wo_version = 2\n"
    service.write_text(service.read_text().replace(password, version))
    changed = {"reporting": "another-of-reporting", "kafka": inherited.broker.admin_password}
    inherited.monkeypatch.setenv("KF_VAR_service_passwords", json.dumps(changed))
    planned = inherited.done("plan", "--out", "plan.json")
    said = inherited.done("apply", "plan.json", "--auto-approve")
    sent = r"variable:service_passwords[\"reporting\"]"  # as JSON spells it
    assert sent in (inherited.path / "plan.json").read_text()
    user = f"{inherited.prefix.rstrip('.')}-reporting"
    assert enters(inherited, user, changed["reporting"])
    assert not enters(inherited, user, PASSWORDS["reporting"])
    kept = [file.read_text("utf-8", "replace") for file in inherited.path.glob("*.json*")]
    for text in (planned.text, said.text, *kept):
        assert changed["reporting"] not in text
    assert len(kept) >= 3  # plan, state and log


def test_a_literal_password(inherited: Folder) -> None:
    """The error for a password that is written out says what to write, and not the password."""
    text = 'resource "kafka_user_scram_credential" "old" {\n  username = "old"\n' \
        '  scram_mechanism = "SCRAM-SHA-256"\n  password = "s3cret-text"\n}\n'  # fmt: skip
    inherited.write("old.tf", text)
    said = inherited.run("validate")
    assert said.code == 1
    assert 'Write secret_env("NAME")' in said.text
    assert "sensitive = true" in said.text
    assert "s3cret-text" not in said.text


def test_the_objects_are_those_that_the_text_declares(inherited: Folder) -> None:
    """What stands in for Terraform makes as many objects as the configuration declares."""
    env = inherited.prefix.rstrip(".")
    assert OBJECTS["acls"] == len(acls(env))
    assert OBJECTS["topics"] == len(topics(env)) - 1  # one is another team's
