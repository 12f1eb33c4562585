"""What the computer lacks is no bug in kafkaform: rights, memory, packages; and files that users
name and that are none."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import metadata

import pytest

from kafkaform.cli.terminal.bug_report import explain_error
from kafkaform.version import VERSION

from ...kit.commands.here import Here
from ...kit.commands.rights import nobody, place
from ...reliability.hostile import edited
from ...test_cases import cluster_of

MAIN = 'provider "kafka" {\n  bootstrap_servers = ["127.0.0.1:1"]\n}\n'


@pytest.mark.parametrize("command", ["init", "state list", "validate", "plan", "fmt", "test"])
def test_a_folder_that_cannot_be_listed(
    here: Here, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder and the missing right are named."""
    with place(monkeypatch) as folder:
        (folder / "main.kf.hcl").write_text(MAIN)
        folder.chmod(0o711)
        with nobody():
            said = here.run(*command.split())
        folder.chmod(0o755)
    assert said.code == 1
    assert "permission denied" in said.text.lower() and "bug in kafkaform" not in said.text


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(13, "Permission denied", "/etc/x"),
        OSError(28, "No space left on device", "/tmp/x"),
        MemoryError(),
    ],
)
def test_what_the_system_refuses_is_no_bug(error: Exception) -> None:
    """The message says what is missing, and what to do."""
    shown = explain_error(error)
    assert "bug" not in f"{shown.summary} {shown.detail}" and shown.advice


@pytest.mark.parametrize("package", ["typer", "kafka-python", "pygls"])
def test_a_package_of_another_version(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both versions are named, and the command that installs the right one."""
    installed: Callable[[str], str] = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "0.0.1" if name == package else installed(name)
    )
    shown = explain_error(AttributeError("gone"))
    assert f"{package} 0.0.1 is installed, and kafkaform needs {package}" in shown.detail
    assert VERSION in shown.summary and "bug" not in shown.summary + shown.detail
    assert "install" in shown.advice


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What every command needs is named; packages of extras may be missing."""
    installed: Callable[[str], str] = metadata.version

    def find(name: str) -> str:
        if name in ("rich", "pygls"):
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", find)
    shown = explain_error(ModuleNotFoundError("rich"))
    assert "rich is not installed" in shown.detail and "pygls" not in shown.detail


def test_a_fault_of_ours_is_still_a_bug() -> None:
    """With the right packages, an unexpected error is reported as ours."""
    assert "This is a bug in kafkaform" in explain_error(KeyError("x")).detail


FILES = {
    "ca_cert": MAIN.replace("\n}", '\n  tls_enabled = true\n  ca_cert = "trap"\n}'),
    "truststore": MAIN.replace(
        "\n}", '\n  tls_enabled = true\n  ssl_truststore_location = "trap"\n}'
    ),
    "client_cert": MAIN.replace(
        "\n}",
        '\n  tls_enabled = true\n  client_cert = "trap"\n  client_key = "trap"\n}',
    ),
    "token": MAIN.replace(
        "\n}",
        '\n  tls_enabled = true\n  sasl_mechanism = "oauthbearer"\n  sasl_token_file = "trap"\n}',
    ),
    "password": MAIN.replace(
        "\n}",
        '\n  sasl_mechanism = "plain"\n  sasl_username = "u"\n'
        '  sasl_password = secret_file("trap")\n  tls_enabled = false\n}',
    ),
}
TOPIC = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'


@pytest.mark.timeout(60)
@pytest.mark.parametrize("trap", ["pipe", "folder", "device"])
@pytest.mark.parametrize("place", FILES)
def test_certificates_and_keys_that_are_no_files(here: Here, place: str, trap: str) -> None:
    """The connection is refused with the reason; nothing waits for a writer or reads without
    end."""
    path = here.path / "trap"
    if trap == "pipe":
        os.mkfifo(path)
    elif trap == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    here.write("main.kf.hcl", FILES[place] + TOPIC)
    text = " ".join(here.fails("plan").replace("│", "").split())
    words = {"pipe": "named pipe", "folder": "folder", "device": "device"}
    assert words[trap] in text.lower() or "not a regular file" in text, text


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "command",
    [
        "describe topics --command-config=trap",
        "plan --var-file=trap",
        "test trap.kftest.hcl",
        "apply trap",
        "show trap",
        "fleet status --file=trap",
        "fmt trap.kf.hcl",
        "import --from=strimzi trap",
        "export terraform --state=trap",
    ],
)
def test_files_of_flags_that_have_no_end(here: Here, command: str) -> None:
    """A device in the place of a file is an error of that file."""
    here.write("main.kf.hcl", MAIN)
    for name in ("trap", "trap.kftest.hcl", "trap.kf.hcl"):
        (here.path / name).symlink_to("/dev/zero")
    said = here.run(*command.split())
    assert said.code != 0


def test_an_output_without_a_name(here: Here) -> None:
    """`--out=` with an empty variable is an error of the flag."""

    edited.simulate(here.monkeypatch, cluster_of())
    here.write("main.kf.hcl", MAIN + TOPIC)
    for flag in ("--out=", "--comment=", "--html="):
        assert "it is a folder" in here.fails("plan", flag, code=9)


@pytest.mark.parametrize(
    "words",
    [
        "propose placement --drain={} --bootstrap-server=127.0.0.1:1",
        "alter configs --broker={} --set a=b --bootstrap-server=127.0.0.1:1",
        "plan --lock-timeout={}s",
        "audit verify --anchor={}:" + "0" * 64,
        "describe topics --bootstrap-server=127.0.0.1:{}",
        "import kafka_broker_config.a {}",
    ],
)
def test_numbers_that_no_system_has(here: Here, words: str) -> None:
    """Python refuses to read thousands of digits; the flag is what is wrong."""
    here.write("main.kf.hcl", MAIN + 'resource "kafka_broker_config" "a" {\n  broker_id = 1\n}\n')
    said = here.run(*words.format("9" * 5000).split())
    assert said.code == 1


LONG = "9" * 5000
STRIMZI = (
    "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaTopic\nmetadata:\n  name: a\nspec:\n"
    f"  partitions: {LONG}\n  replicas: 1\n"
)
TOPICCTL = (
    "meta:\n  name: a\n  cluster: c\n  environment: e\n  region: r\nspec:\n  partitions: 1\n"
    "  replicationFactor: 1\n  placement:\n    strategy: any\n  settings:\n"
    "    min.cleanable.dirty.ratio: 1.5e999999999\n"
)
TFSTATE = (
    '{"version": 4, "serial": %s, "resources": [{"mode": "managed", "type": "kafka_topic",'
    ' "name": "a", "instances": [{"attributes": {"name": "a", "partitions": %s}}]}]}'
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("words", "name", "content"),
    [
        ("import --from=strimzi topic.yaml", "topic.yaml", STRIMZI),
        ("import --from=topicctl topic.yaml", "topic.yaml", TOPICCTL),
        ("import --from=tfstate a.tfstate", "a.tfstate", TFSTATE % (LONG, LONG)),
        ("plan --var-file=a.json", "a.json", f'{{"n": {LONG}}}'),
        ("state list", "kafkaform.state.json", f'{{"format_version": {LONG}}}'),
        ("audit verify", "kafkaform.audit.jsonl", f'{{"seq":{LONG},"kind":"intent"}}\n'),
        ("validate", "a.kf.json", f'{{"locals": {{"a": {LONG}, "b": 1e999999999}}}}'),
        ("validate", "a.kf.hcl", f"locals {{\n  a = {LONG}\n}}\n"),
    ],
)
def test_numbers_of_files_that_no_system_has(
    here: Here, words: str, name: str, content: str
) -> None:
    """Whatever file has them: an error of it, or a number like others; never a bug of ours."""
    here.write("main.kf.hcl", MAIN)
    here.write(name, content)
    assert "bug in kafkaform" not in here.run(*words.split()).text


def test_a_root_of_a_fleet_that_is_no_text(here: Here) -> None:
    """A name on a disk can be any bytes, and Spark takes texts only."""
    for command in ("status", "report", "snapshot"):
        text = here.fails("fleet", command, "--root", os.fsdecode(b"a\xffb"))
        assert "its name is not UTF-8 text" in " ".join(text.split())


def test_a_word_with_a_nul(here: Here) -> None:
    """A shell can hand one over; no file and no object has such a name."""
    assert "NUL" in here.fails("plan", "--out=a\0b")


@pytest.mark.parametrize("mode", [0o000, 0o500, 0o300])
def test_backups_without_rights(here: Here, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier state that cannot be kept would stop a save after its requests were sent."""
    edited.simulate(monkeypatch, cluster_of())
    with place(monkeypatch) as folder:
        folder.chmod(0o777)
        (folder / "main.kf.hcl").write_text(MAIN + TOPIC)
        with nobody():
            assert here.run("apply", "--auto-approve").code == 0
        backups = folder / ".kafkaform" / "backups"
        log, before = (
            folder / "kafkaform.audit.jsonl",
            (folder / "kafkaform.state.json").read_bytes(),
        )
        intents = log.read_bytes().count(b'"kind":"intent"')
        (folder / "main.kf.hcl").write_text(MAIN + TOPIC + TOPIC.replace('"a"', '"b"'))
        backups.chmod(mode)
        with nobody():
            said = here.run("apply", "--auto-approve")
        backups.chmod(0o700)
        assert said.code == 9, said.text
        assert "the state could not be saved, so nothing is sent" in said.text
        assert "permission denied" in said.text and "backups" in said.text
        assert (folder / "kafkaform.state.json").read_bytes() == before
        assert log.read_bytes().count(b'"kind":"intent"') == intents > 0
