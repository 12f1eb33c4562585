"""A plan looks up the secrets that its apply needs, and shows and stores none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkaform.core import canonical
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.model import seal_plan
from kafkaform_kafka.kinds.user.simulation import credential_key
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


# ── commands ────────────────────────────────────────────────────────────────────────────

ASKS = 'secret_command(["./get", "kafka/ci"])'


def write_command(here: Here, script: str, asks: str = ASKS) -> None:
    """The configuration gets its password from a script, which notes that it was run."""
    here.write("main.kf.hcl", CONFIGURATION.replace('secret_env("CI_PASSWORD")', asks))
    here.write("get", f"#!/bin/sh\necho ran >>ran\n{script}\n").chmod(0o700)


def count_runs(here: Here) -> int:
    log = here.path / "ran"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_command_gives_the_password(here: Here, cluster: SimulatedCluster) -> None:
    """A plan and an apply ask it once each; its words are shown, and its answer is nowhere."""
    write_command(here, f"echo {SECRET}")
    said = here.done("plan", "--out=plan.kfplan", "--comment=plan.md")
    assert count_runs(here) == 1 and SECRET not in said.text
    assert 'secret_command(["./get", "kafka/ci"])' in said.out
    said = here.done("apply", "plan.kfplan", "--auto-approve")
    assert count_runs(here) == 2 and SECRET not in said.text
    credential = cluster.world.get(credential_key("ci", "SCRAM-SHA-256"))
    assert credential.password == SECRET
    (here.path / "get").unlink()
    assert not any(SECRET.encode() in data for data in here.files().values())


def test_a_command_that_fails_fails_the_plan(here: Here) -> None:
    """Its exit code, the block, and the command to run by hand; nothing that it printed."""
    write_command(here, f"echo {SECRET}; echo {SECRET} >&2; exit 7")
    said = here.run("plan")
    assert said.code == 1 and count_runs(here) == 1
    assert "kafka_user_scram_credential.ci needs it" in said.err
    assert "The command ended with exit code 7." in said.err and "main.kf.hcl:7:1" in said.err
    assert "`./get kafka/ci`" in said.err
    assert SECRET not in said.text


def test_a_command_for_the_connection(here: Here) -> None:
    """The provider block is named, with its line, and no other object."""
    write_command(here, "exit 7")
    here.write(
        "main.kf.hcl",
        'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n  sasl_username = "ci"\n'
        f"  sasl_password = {ASKS}\n}}\n"
        'resource "kafka_topic" "a" {\n  name = "a"\n  partitions = 1\n}\n',
    )
    for words in (["plan"], ["apply", "--auto-approve"], ["describe", "cluster"]):
        said = here.fails(*words)
        assert 'provider "kafka" needs it' in said and "main.kf.hcl:1:1" in said
        assert "exit code 7" in said


def test_the_time_limit_comes_from_the_environment(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In seconds; what is no number is an error of its own."""
    write_command(here, "exec sleep 1000")
    monkeypatch.setenv("KAFKAFORM_SECRET_COMMAND_TIMEOUT", "0.2")
    assert "took more than 0.2 s" in here.fails("plan")
    monkeypatch.setenv("KAFKAFORM_SECRET_COMMAND_TIMEOUT", "soon")
    assert "is not a number of seconds" in here.fails("plan")


@pytest.mark.parametrize("words", [["validate"], ["graph"], ["console"]])
def test_what_sends_nothing_runs_no_command(here: Here, words: list[str]) -> None:
    """Only what connects or applies needs the secret."""
    write_command(here, f"echo {SECRET}")
    here.done(*words, stdin="kafka_user_scram_credential.ci.username\n")
    assert count_runs(here) == 0


def test_an_untrusted_plan_runs_no_command(
    here: Here, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Anybody can have written it."""
    write_command(here, f"echo {SECRET}")
    monkeypatch.setenv("KAFKAFORM_STATE", str(tmp_path_factory.mktemp("state") / "s.json"))
    monkeypatch.setenv("KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")
    assert 'secret_command(["./get", "kafka/ci"])' in here.done("plan", "--untrusted").out
    assert count_runs(here) == 0


def test_a_forged_plan_runs_no_command(here: Here) -> None:
    """A saved plan is data: what runs on this computer is what the configuration says."""
    write_command(here, f"echo {SECRET}")
    file = here.path / "plan.kfplan"
    here.done("plan", "--out=plan.kfplan")
    before = count_runs(here)
    forged = file.read_bytes().replace(b"kafka/ci", b"kafka/of-another")
    body = {name: item for name, item in json.loads(forged).items() if name != "checksum"}
    body["checksum"] = canonical.digest(body)
    file.write_bytes(encode(seal_plan(decode(canonical.dumps(body).encode() + b"\n", "it"))))
    said = here.fails("apply", "plan.kfplan", "--auto-approve")
    assert "The configuration does not have this command." in said
    assert count_runs(here) == before


# ── files ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604, 0o644, 0o400])
def test_a_file_that_others_can_read_is_a_warning(here: Here, mode: int) -> None:
    """With the place of the block and the command that takes the right away; nothing fails."""
    asks = CONFIGURATION.replace('secret_env("CI_PASSWORD")', 'secret_file("pw of ci")')
    here.write("main.kf.hcl", asks)
    file = here.write("pw of ci", SECRET)
    file.chmod(mode)
    for words in (["validate"], ["plan"]):
        said = here.done(*words)
        warned = "other users of this computer can read pw of ci" in said.text
        assert warned == bool(mode & 0o077)
        assert ("chmod 600 'pw of ci'" in said.text) == warned
        assert str(here.path) not in said.text
        assert ("main.kf.hcl:7:1" in said.text) == warned and SECRET not in said.text


def test_no_warning_for_what_is_not_ours(
    here: Here, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A container gets its secrets from another user, readable for all of its own; and untrusted
    files must not find out what there is on this computer."""
    here.write(
        "main.kf.hcl", CONFIGURATION.replace('secret_env("CI_PASSWORD")', 'secret_file("pw")')
    )
    here.write("pw", SECRET).chmod(0o644)
    assert "can read" in here.done("validate").text
    assert "can read" not in here.done("validate", "--untrusted").text
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert "can read" not in here.done("validate").text


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.mkdir(), "It is not a regular file."),
        (lambda path: path.write_bytes(b"\xff"), "not UTF-8 text"),
        (lambda path: path.write_bytes(b"x" * 65_537), "more than 65,536 bytes"),
        (lambda path: path.write_bytes(b""), "missing or empty"),
        (lambda path: None, "missing or empty"),
    ],
)
def test_a_file_without_a_secret(here: Here, make: Callable[[Path], object], why: str) -> None:
    """The plan says why."""
    here.write(
        "main.kf.hcl", CONFIGURATION.replace('secret_env("CI_PASSWORD")', 'secret_file("pw")')
    )
    make(here.path / "pw")
    assert why in here.fails("plan")
