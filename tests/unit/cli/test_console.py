"""`console` on a configuration: from a pipe, and with a person at the keyboard."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ...kit.commands.here import Here
from ...kit.commands.terminal import Terminal

CONFIGURATION = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
}
variable "prefix" { default = "shop." }
variable "token" {
  default   = "hunter2"
  sensitive = true
}
variable "unset" {}
locals { names = ["a", "b"] }
resource "kafka_topic" "a" {
  name       = "${var.prefix}a"
  partitions = 3
}
"""

LEFT_OUT = """
resource "kafka_topic" "a" {
  name = "a"
}
locals { x = kafka_topic.a.partitions }
"""


@pytest.fixture
def folder(here: Here) -> Here:
    here.write("main.kf.hcl", CONFIGURATION)
    return here


def test_a_pipe(folder: Here) -> None:
    """Variables, locals, functions and resources have values, one after the other."""
    lines = ["var.prefix", "local.names[1]", 'upper("x")', "kafka_topic.a.partitions + 1"]
    lines += ["[for n in local.names :", "n]", ""]
    assert folder.done("console", stdin="\n".join(lines)).out == (
        '"shop."\n"b"\n"X"\n4\n[\n  "a",\n  "b",\n]\n'
    )
    said = folder.done("console", "-var", "prefix=x.", stdin="kafka_topic.a.name\n")
    assert said.out == '"x.a"\n'


def test_values_are_written_as_terraform_does(here: Here) -> None:
    """Numbers without idle zeros, keys of maps in quotes, texts of several lines as they are, and
    the names of types. What a heredoc cannot say stays a quoted text."""
    told = {
        "1.10": "1.1",
        '{ a = 1, "b c" = 2.50 }': '{\n  "a"   = 1\n  "b c" = 2.5\n}',
        'tomap({ a = "x" })': 'tomap({\n  "a" = "x"\n})',
        '"a\\nb\\n"': "<<EOT\na\nb\nEOT",
        '"EOT\\n$${x}\\n"': "<<EOT_\nEOT\n$${x}\nEOT_",
        '"a\\nb"': '"a\\nb"',
        '"\\u001b\\n"': '"\\u001b\\n"',
        '["a\\nb\\n"]': '[\n  "a\\nb\\n",\n]',
        "type(1)": "number",
        'type({ a = ["x"] })': "object({a = tuple([string])})",
        "type(tolist([true]))": "list(bool)",
    }
    said = here.done("console", stdin="\n".join(told) + "\n")
    assert said.out == "".join(f"{text}\n" for text in told.values())
    assert 'Nothing is named "nope"' in here.fails("console", stdin="type(nope)\n")


def test_what_has_no_value(folder: Here) -> None:
    """Sensitive values are hidden, and what only a cluster or a user can say is told as such."""
    said = folder.done("console", stdin='var.token\n"x${var.token}"\nkafka_topic.a.topic_id\n')
    assert "hunter2" not in said.out
    assert said.out.splitlines()[:2] == ["(sensitive value)"] * 2
    assert "known after apply" in said.out
    # What a block leaves out is null only until the cluster has said what it is.
    folder.write("main.kf.hcl", LEFT_OUT)
    lines = ["kafka_topic.a.partitions", "local.x", '"${kafka_topic.a.partitions} x"']
    said = folder.done("console", stdin="\n".join((*lines, "kafka_topic.a.name", "")))
    assert said.out == "(known after apply)\n" * len(lines) + '"a"\n'
    said = folder.done("console", stdin="kafka_topic.a\n")
    assert '"partitions"                 = (known after apply)' in said.out
    assert '"name"                       = "a"' in said.out


def test_faults_in_a_pipe(folder: Here) -> None:
    """Each fault is told with its place; the rest is answered; the exit code is 1."""
    said = folder.run("console", stdin="1 +\nkafka_topic.nope\n2\n")
    assert (said.code, said.out) == (1, "2\n")
    assert said.err.count("on console:1:") == 2


def test_without_configuration(here: Here) -> None:
    """Functions work in any folder."""
    said = here.done("console", stdin='upper("a")\n')
    assert (said.out, said.err) == ('"A"\n', "")


def at_the_keyboard(folder: Here, state: Path) -> Terminal:
    folder.monkeypatch.setenv("XDG_STATE_HOME", str(state))
    terminal = Terminal(folder.path, ["console", "--no-color"])
    terminal.wait_for("> ")
    return terminal


def test_a_conversation(folder: Here, tmp_path: Path) -> None:
    """Expressions over lines, going on after an error and after Ctrl-C, and `exit`; what was
    typed is kept for the next time, closed to others."""
    state = tmp_path / "state"
    terminal = at_the_keyboard(folder, state)
    terminal.type("[local.names[0],\n")
    terminal.wait_for("… ")
    terminal.type("7]\n")
    terminal.wait_for('"a",\n  7,\n]\n> ')
    terminal.type("nope\n")
    terminal.wait_for('Nothing is named "nope"')
    terminal.wait_for("is a string.\n> ")
    terminal.type("[1,\n")
    terminal.wait_for("[1,\n… ")
    terminal.interrupt()
    terminal.wait_for("[1,\n… \n> ")
    terminal.type('"still ${1 + 1}"\n')
    terminal.wait_for('"still 2"\n> ')
    terminal.type("exit\n")
    assert terminal.end() == 0
    history = state / "kafkaform" / "console_history"
    assert "nope" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600

    again = at_the_keyboard(folder, state)
    again.type("\x1b[A\x1b[A\n")  # arrow up twice: the line before `exit`
    again.wait_for('"still 2"\n> ')
    again.type("\x04")
    assert again.end() == 0
