"""A plan looks up the secrets that its apply needs, and shows and stores none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform_kafka.memory import SimulatedClock, SimulatedCluster

from ...kit.commands.fixtures import here
from ...kit.commands.here import Here
from ...reliability.hostile.edited import simulate

__all__ = ["here"]

SECRET = "a-password-that-nobody-may-see"
CONFIGURATION = """
provider "kafka" { bootstrap_servers = ["localhost:9092"] }
resource "kafka_topic" "a" {
  name       = "a"
  partitions = 1
}
resource "kafka_user_scram_credential" "ci" {
  username        = "ci"
  scram_mechanism = "SCRAM-SHA-256"
  password        = secret_env("CI_PASSWORD")
}
"""


@pytest.fixture(autouse=True)
def cluster(here: Here, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCluster]:
    made = SimulatedCluster(brokers=1, clock=SimulatedClock())
    simulate(monkeypatch, made)
    monkeypatch.delenv("CI_PASSWORD", raising=False)
    here.write("main.kf.hcl", CONFIGURATION)
    yield made


def test_a_missing_secret_fails_the_plan(here: Here) -> None:
    """The plan is shown, then the error names the secret, the block and what to do; no command
    comes next."""
    said = here.run("plan", "--out=plan.kfplan")
    assert said.code == 1
    assert "kafka_topic.a will be created" in said.out and "Next: " not in said.out
    assert "The secret env:CI_PASSWORD is missing or empty" in said.err
    assert "kafka_user_scram_credential.ci needs it" in said.err
    assert "main.kf.hcl:7:1" in said.err
    assert "Set the environment variable CI_PASSWORD." in said.err
    assert not Path("plan.kfplan").exists()


def test_an_empty_secret_is_missing(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that a pipeline does not pass on is often set, but empty."""
    monkeypatch.setenv("CI_PASSWORD", "")
    assert here.run("plan").code == 1


def test_a_secret_that_is_there_is_nowhere(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the output nor a file has it."""
    monkeypatch.setenv("CI_PASSWORD", SECRET)
    said = here.done("plan", "--out=plan.kfplan", "--comment=plan.md")
    assert SECRET not in said.text
    assert not any(SECRET.encode() in data for data in here.files().values())


def test_a_secret_in_plain_text_is_masked_and_refused(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that equals a secret of the apply is known as such before the plan is shown."""
    monkeypatch.setenv("CI_PASSWORD", SECRET)
    here.write("main.kf.hcl", CONFIGURATION.replace("= 1\n", f'= 1\n  owner = "{SECRET}"\n'))
    said = here.run("plan", "--out=plan.kfplan")
    assert said.code == 1 and "contains a secret in plain text" in said.err
    assert SECRET not in said.text
    assert not Path("plan.kfplan").exists()


def test_an_untrusted_plan_looks_up_none(
    here: Here, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It is the way of a job that has no secrets on purpose."""
    monkeypatch.setenv("KAFKAFORM_STATE", str(tmp_path_factory.mktemp("state") / "s.json"))
    monkeypatch.setenv("KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")
    assert "Plan: 2 to add" in here.done("plan", "--untrusted").out


def test_what_needs_no_secret_asks_for_none(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the changes of this plan count: not those that are left out, nor what is applied."""
    here.done("plan", "--target=kafka_topic.a")
    monkeypatch.setenv("CI_PASSWORD", SECRET)
    here.done("apply", "--auto-approve")
    monkeypatch.delenv("CI_PASSWORD")
    here.done("plan")
    here.done("plan", "--refresh-only")
    here.done("plan", "--destroy")
