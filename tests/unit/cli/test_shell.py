"""The shell: the commands of kafkaform, one after another, over one connection."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.cli.options.provider_commands import ShellContext
from kafkaform.cli.shell import _SECRET, Completer
from kafkaform.workflow.connection import ConnectionInputs
from kafkaform_kafka.commands import completion
from kafkaform_kafka.inspect.source import DescribeQuery

from ...kit.commands import forked
from ...kit.commands.bare import LOGIN, Bare
from ...kit.commands.folder import Folder, Said
from ...kit.commands.terminal import Terminal


def script(bare: Bare, text: str, *flags: str) -> Said:
    """Feed lines to a shell."""
    words = ("shell", "--command-config", bare.config, *flags)
    done = forked.run(words, bare.folder.path, os.environ, input=text)
    said = Said(done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in said.text
    assert "failed unexpectedly" not in said.text
    assert bare.folder.broker.admin_password not in said.text
    return said


def test_a_script(bare: Bare) -> None:
    """Commands without connection flags, comments, and `exit`, after which nothing is read."""
    said = script(
        bare, "# who is there?\n\ndescribe brokers\nkafkaform describe users\nexit\nnope\n"
    )
    assert said.code == 0, said.text
    assert "1 broker." in said.out
    assert "users with SCRAM credentials" in said.out
    assert f"Connected to cluster {bare.folder.broker.cluster_id} as User:admin" in said.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("nope", "'nope' is not a command of the shell"),
        ("decsribe", 'Did you mean "describe"?'),
        ("apply", "'apply' is not a command of the shell"),
        ("configs", "`kafkaform describe configs` shows configs"),
        ("describe --zookeeper x", "ZooKeeper is gone"),
        ("describe nope", "No such command 'nope'"),
        ("describe topics --nope", "No such option"),
        ('describe "x', "No closing quotation"),
        ("describe topics no-such-topic", "does not exist"),
        ("plan", "no configuration"),
    ],
)
def test_errors_do_not_end_it(bare: Bare, line: str, told: str) -> None:
    """The next line is carried out, and the exit code tells of the failure."""
    said = script(bare, f"{line}\ndescribe brokers\n")
    assert told.casefold() in said.text.casefold()
    assert "1 broker." in said.out
    assert said.code == 1


def test_it_only_reads_unless_told_otherwise(bare: Bare) -> None:
    """--allow-apply lets alter change things; without it the plan is shown, and nothing is sent or
    written."""
    bare.folder.create("a")
    line = f"alter topic {bare.folder.prefix}a --auto-approve --add-config retention.ms=6000\n"
    said = script(bare, line)
    assert "this shell only reads; nothing was sent" in said.err
    assert said.code == 1
    assert '"retention.ms" = 7 d (default) → 6 s' in said.out and "1 to change" in said.out
    said = script(bare, line.replace("\n", " --validate\n"))
    assert said.code == 0, said.text
    assert "checked by the broker" in said.out and "only reads" not in said.err
    assert not (bare.home / "kafkaform" / "clusters").exists()
    assert bare.folder.config("a")["retention.ms"] == "604800000"
    said = script(bare, line, "--allow-apply")
    assert said.code == 0, said.text
    assert bare.folder.config("a")["retention.ms"] == "6000"


def test_in_a_configuration_folder(folder: Folder) -> None:
    """The provider block connects, and `plan` shows what an apply would change."""
    folder.declare("a")
    done = subprocess.run(
        [sys.executable, "-m", "kafkaform", "shell"],
        cwd=folder.path,
        input="plan\ndescribe cluster\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in done.stdout
    assert folder.broker.cluster_id in done.stdout


def test_help(bare: Bare) -> None:
    """A list of the commands, and the help of each."""
    said = script(bare, "help\nhelp describe topics\n")
    assert "describe  Show topics, configs, ACLs, quotas, users, groups, brokers" in said.out
    assert "--partitions" in said.out


def test_a_wrong_connection_ends_it_at_once(bare: Bare) -> None:
    """There is nothing to type at."""
    said = script(bare, "describe brokers\n", "--client-property", "sasl.mechanism=GSSAPI")
    assert said.code == 1
    assert "Connected" not in said.err


# ── at the keyboard ─────────────────────────────────────────────────────────────────────


def at_the_keyboard(bare: Bare, *flags: str) -> Terminal:
    arguments = ["shell", "--no-color", "--command-config", str(bare.config), *flags]
    terminal = Terminal(bare.folder.path, arguments, columns=200)
    terminal.wait_for("kafkaform> ")
    return terminal


def test_a_conversation(bare: Bare) -> None:
    """Going on after an error and after Ctrl-C; Ctrl-D ends it; the history has what was typed,
    for its owner's eyes, and no line with a password."""
    terminal = at_the_keyboard(bare)
    terminal.type("nope\n")
    terminal.wait_for("is not a command of the shell")
    terminal.type("describe bro")
    terminal.wait_for("describe bro")
    terminal.interrupt()
    terminal.wait_for("describe bro\nkafkaform> ")
    terminal.type("describe users --client-property sasl.password=hunter2\n")
    terminal.wait_for("no broker is named")
    terminal.type("describe brokers\n")
    terminal.wait_for("1 broker.\nkafkaform> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    history = bare.home / "kafkaform" / "shell_history"
    assert history.read_text().splitlines()[-2:] == ["nope", "describe brokers"]
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_the_tab_key(bare: Bare) -> None:
    """It completes commands, flags and the names of topics that are there now."""
    bare.folder.create("orders")
    terminal = at_the_keyboard(bare)
    terminal.type("desc\ttop\t--part\t" + bare.folder.prefix[:-2] + "\t\n")
    terminal.wait_for(f"describe topics --partitions {bare.folder.prefix}orders")
    terminal.wait_for("1 topic.\nkafkaform> ")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_an_alter_asks_in_the_shell(bare: Bare) -> None:
    """The question of a plan is answered at the same keyboard."""
    bare.folder.create("a")
    terminal = at_the_keyboard(bare, "--allow-apply")
    terminal.type(f"alter topic {bare.folder.prefix}a --add-config retention.ms=6000\n")
    terminal.wait_for('Only "yes" is accepted: ')
    terminal.type("yes\n")
    terminal.wait_for("retention.ms  = 6 s (6000)")
    terminal.type("exit\n")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("before", "text", "offered"),
    [
        ("", "de", ["describe "]),
        ("", "ex", ["exit "]),
        ("describe ", "t", ["topics "]),
        ("describe configs ", "--entity-d", ["--entity-default "]),
        ("describe configs --entity-type ", "b", ["brokers "]),
        ("describe configs ", "retention.m", ["retention.ms "]),
        ("describe configs ", "to", ["topic "]),
        ("describe configs topic orders ", "retention.m", ["retention.ms "]),
        ("describe quotas ", "u", ["user "]),
        ("explain access ", "gr", ["group "]),
        ("explain quota ", "ip", ["ip "]),
        (
            "describe configs --entity-type groups ",
            "consumer.h",
            ["consumer.heartbeat.interval.ms "],
        ),
        ("describe configs --entity-type brokers ", "node", ["node.id "]),
        ("alter topic x ", "--val", ["--validate "]),
        ("alter topic x --accept ", "guard-", ["guard-data-loss ", "guard-deletions "]),
        ("plan --accept ", "guard-", ["guard-data-loss ", "guard-deletions "]),
        ("plan --fail-on ", "data", ["data-loss "]),
        ("plan --fail-on ", "object-prot", ["object-protected "]),
        ("plan --fail-on ", "drift,dan", ["drift,danger "]),
        ("explain rule ", "guard-del", ["guard-deletions "]),
        ("explain rule guard-deletions ", "", ["--json "]),
        ("describe ", "--entity-t", ["--entity-type "]),
        ("alter --entity-type topics ", "--add", ["--add-config "]),
        ("alter --entity-type ", "ip", ["ips "]),
        ("alter topic x --add-config ", "retention.m", ["retention.ms="]),
        ("alter user x --delete-config ", "SCRAM", ["SCRAM-SHA-256 ", "SCRAM-SHA-512 "]),
        ("help ", "des", ["describe "]),
        ('describe "', "t", []),
        ("nope ", "t", []),
    ],
)
def test_what_is_offered(before: str, text: str, offered: list[str]) -> None:
    """What is known without a cluster."""
    found = Completer(ShellContext(ConnectionInputs())).list_candidates(before, text)
    assert [name for name in found if name in offered] == offered
    assert all(name.startswith(text) for name in found)


@pytest.mark.parametrize(
    ("before", "text", "offered"),
    [
        ("describe topics ", "o", ["orders"]),
        ("describe topics --name ", "", ["orders"]),
        ("describe users ", "", ["app", "limited"]),
        ("describe configs topic ", "", ["orders"]),
        ("describe configs group ", "", ["billing"]),
        ("describe acls topic ", "", ["orders"]),
        ("describe quotas user ", "", ["app", "limited"]),
        ("explain access topic ", "", ["orders"]),
        ("explain quota user app ", "cl", ["client"]),
        ("describe users --name ", "", ["app", "limited"]),
        ("describe brokers --name ", "", ["1", "2"]),
        ("describe configs --entity-type groups --entity-name ", "", ["billing"]),
        ("describe configs --entity-type groups --name ", "", ["billing"]),
        ("describe acls --principal ", "User:a", ["User:app"]),
        ("describe acls --operation ", "Del", ["Delete"]),
        ("describe acls --client-property ", "", []),
        ("describe quotas --client-id ", "", ["loader"]),
        ("alter broker ", "", ["1", "2"]),
        ("alter user ", "", ["app", "limited"]),
        ("alter user app --client-id ", "", ["loader"]),
        ("alter client ", "", ["loader"]),
        ("alter ip ", "", ["10.0.0.1"]),
        ("alter group ", "", ["billing"]),
        ("alter client-metrics ", "", ["latency"]),
        ("alter --entity-type groups --entity-name ", "", ["billing"]),
        ("describe --entity-type clients --entity-name ", "", ["loader"]),
        ("explain access --principal ", "", ["User:app", "User:limited", "User:reader"]),
        ("explain access --group ", "", ["billing"]),
        ("explain access --topic ", "", ["orders"]),
        ("explain quota --user ", "l", ["limited"]),
        ("explain quota --ip ", "", ["10.0.0.1"]),
        ("explain config ", "", ["broker", "client-metrics", "cluster", "group", "topic"]),
        ("explain config broker ", "", ["1", "2"]),
        ("explain config broker 1 ", "log.retention.h", ["log.retention.hours"]),
        ("explain config cluster ", "log.cleaner.th", ["log.cleaner.threads"]),
        ("explain config topic orders ", "retention.m", ["retention.ms"]),
    ],
)
def test_live_names(
    monkeypatch: pytest.MonkeyPatch, before: str, text: str, offered: list[str]
) -> None:
    """Wherever a name may stand, those that the cluster has now; no default entity, no name that
    would need quotes, and nothing where nobody can know."""
    monkeypatch.setattr(Completer, "_get_session", lambda *_: None)
    monkeypatch.setattr(completion, "read_document", described)
    found = [
        name.rstrip()
        for name in Completer(ShellContext(ConnectionInputs())).list_candidates(before, text)
    ]
    if offered and offered[0].startswith("--"):
        found = [name for name in found if name in offered]
    assert found == offered


def described(_: object, kind: str, wanted: DescribeQuery) -> Any:
    """What a cluster tells."""
    entities = {"groups": ["billing"], "client-metrics": ["latency"]}
    return {
        "topics": {"topics": [{"name": "orders"}]},
        "brokers": {"brokers": [{"id": 1}, {"id": 2}]},
        "users": {"users": [{"name": "app"}, {"name": "needs quotes"}]},
        "acls": {"acls": [{"acl_principal": "User:reader"}, {"acl_principal": "User:app"}]},
        "quotas": {
            "quotas": [
                {"entity": {"user": "limited", "client-id": "loader"}},
                {"entity": {"user": None}},
                {"entity": {"ip": "10.0.0.1"}},
            ]
        },
        "configs": {"entities": [{"name": name} for name in entities.get(wanted.entity_type, [])]},
    }[kind]


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("describe topics", False),
        ("alter topic a --add-config retention.ms=1", False),
        ("alter user a --add-config SCRAM-SHA-256=[iterations=8192,password=env:X]", False),
        ("describe cluster --client-property sasl.jaas.config=env:JAAS", False),
        ("alter user a --add-config SCRAM-SHA-256=[password=x]", True),
        ("describe cluster --client-property sasl.jaas.config=a", True),
        ("describe cluster --client-property ssl.key.password=x", True),
        ("describe cluster --client-property ssl.keystore.key=x", True),
        ("describe topics --var token = x", True),
        ("describe topics --var url=https://me:pw@host/", True),
    ],
)
def test_which_lines_are_not_kept(line: str, secret: bool) -> None:
    """Whatever may be followed by a secret; a reference to the environment is none."""
    assert bool(_SECRET.search(line)) is secret


# ── a broker that restarts ──────────────────────────────────────────────────────────────


@pytest.fixture
def own_broker(own_brokers: None) -> Iterator[sandbox.SandboxOptions]:
    """A broker that may be stopped."""
    options = sandbox.SandboxOptions(f"shell-{os.getpid()}", keep_data=True)
    sandbox.up(options, count_brokers)
    yield options
    sandbox.down(options.name, keep_data=False)


def test_it_survives_a_restart(own_broker: sandbox.SandboxOptions, tmp_path: Path) -> None:
    """One shell talks to the broker before and after."""
    box = sandbox.up(own_broker, count_brokers)
    config = tmp_path / "client.properties"
    config.write_text(
        f"bootstrap.servers={box.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=PLAIN\nrequest.timeout.ms=20000\n"
        f'sasl.jaas.config={LOGIN} required username="admin" password="{box.admin_password}";\n'
    )
    terminal = Terminal(tmp_path, ["shell", "--no-color", "--command-config", str(config)], 120)
    terminal.wait_for("kafkaform> ")
    terminal.type("describe brokers\n")
    terminal.wait_for("1 broker.\nkafkaform> ")
    sandbox.down(own_broker.name, keep_data=True)
    assert sandbox.up(own_broker, count_brokers).bootstrap == box.bootstrap
    terminal.type("describe cluster\n")
    terminal.wait_for("declare it in the provider block\nkafkaform> ")
    terminal.type("\x04")
    assert terminal.end() == 0
