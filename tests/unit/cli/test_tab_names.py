"""Names at the tab key: what is offered, what bash takes apart, and that nothing hangs."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer._completion_shared import get_completion_script

from kafkaform.cli.options import flags
from kafkaform.cli.options.flags import COMPLETE, PREFIX, mend_bash_words, offer_within_limit

CONFIGURATION = """\
policy "no_loss" {
  condition = !contains(change.harms, "data-loss")
  message   = "no"
}

provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
}

resource "kafka_topic" "orders" {
  name = "orders"
}

resource "kafka_topic" "events" {
  for_each = toset(["a", "b"])
  name     = each.key
}
"""

RULES = 'policy_set "kafka" {\n  enable = ["no_wildcard_principals"]\n}\n'

PROGRAM = """\
from kafkaform.cli.app import main
from kafkaform.cli.options import flags

flags.SECONDS = 60.0
main()
"""
"""A loaded computer can take longer than somebody at a keyboard would wait."""


@pytest.mark.parametrize("gap", [" ", "\n"])
@pytest.mark.parametrize(
    ("typed", "mended", "prefix"),
    [
        ("kafkaform describe acls --principal Us", "kafkaform describe acls --principal Us", ""),
        ("kafkaform describe acls --principal User : c", "… --principal c", "User:"),
        ("kafkaform describe acls --principal User :", "… --principal ", "User:"),
        ("kafkaform plan --target = kafka_t", "kafkaform plan --target kafka_t", ""),
        ("kafkaform plan --target =", "kafkaform plan --target ", ""),
        ("kafkaform plan --accept a = b", "kafkaform plan --accept b", "a="),
        ("kafkaform plan --accept = a =", "kafkaform plan --accept ", "a="),
        ("kafkaform plan ", "kafkaform plan ", ""),
    ],
)
def test_what_bash_takes_apart_is_joined(typed: str, mended: str, prefix: str, gap: str) -> None:
    """A principal has a colon, and a flag an equals sign; the last word is the one to complete."""
    words = typed.split(" ")
    typed, mended = (text.replace(" ", gap) for text in (typed, mended))
    given = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    environment = {**given, "_KAFKAFORM_COMPLETE": "complete_bash"}
    mend_bash_words(environment)
    start = gap.join(("kafkaform", "describe", "acls"))
    assert environment["COMP_WORDS"] == mended.replace("…", start)
    assert environment["COMP_CWORD"] == str(len(mended.split(gap)) - 1 + 2 * ("…" in mended))
    assert environment[PREFIX] == prefix
    other = {**given, "_KAFKAFORM_COMPLETE": "complete_zsh"}
    mend_bash_words(other)
    assert other == {**given, "_KAFKAFORM_COMPLETE": "complete_zsh"}


def test_names_that_begin_with_what_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted, once each, without those that a shell would take apart; a prefix is not repeated."""
    names = ["User:ci", "User:app", "User:ci", "User:a b", "Group:x"]
    assert offer_within_limit(lambda: names, "User:") == ["User:app", "User:ci"]
    monkeypatch.setenv(PREFIX, "User:")
    assert offer_within_limit(lambda: names, "c") == ["ci"]


def test_a_key_press_neither_hangs_nor_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that does not answer in time, and an error, offer nothing."""
    monkeypatch.setattr(flags, "SECONDS", 0.01)
    never = threading.Event()

    def wait() -> Iterator[str]:
        never.wait(10)
        yield "late"

    def fail() -> Iterator[str]:
        yield "early"
        raise RuntimeError

    assert offer_within_limit(wait, "") == []
    never.set()
    monkeypatch.setattr(flags, "SECONDS", 10.0)
    assert offer_within_limit(fail, "") == []


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("kafkaform plan --target kafka_topic.o", ["kafka_topic.orders"]),
        ("kafkaform apply --exclude kafka_topic.", ["kafka_topic.events", "kafka_topic.orders"]),
        ("kafkaform state show kafka_topic.e", ["kafka_topic.events"]),
        ("kafkaform import kafka_topic.o", ["kafka_topic.orders"]),
        ("kafkaform --chdir . state mv kafka_topic.o", ["kafka_topic.orders"]),
        ("kafkaform alter topic x --delete-config retention.m", ["retention.ms"]),
        ("kafkaform describe configs --entity-type bro", ["brokers"]),
        ("kafkaform explain config to", ["topic"]),
        ("kafkaform plan --fail-on dat", ["data-loss"]),
        ("kafkaform plan --fail-on object-prot", ["object-protected"]),
        ("kafkaform apply --fail-on drift,dang", ["drift,danger"]),
        ("kafkaform plan --fail-on pol", ["policy/no_loss"]),
        (
            "kafkaform plan --policy rules --fail-on drift,pol",
            [
                *("drift,policy/no_loss", "drift,policy/no_wildcard_principals"),
            ],
        ),
        ("kafkaform plan --accept guard-", ["guard-data-loss", "guard-deletions"]),
        ("kafkaform plan --accept object-prot", []),
        ("kafkaform plan --accept guard-deletions = kafka_topic.o", ["kafka_topic.orders"]),
        ("kafkaform plan --accept = guard-deletions = kafka_topic.o", ["kafka_topic.orders"]),
        ("kafkaform explain rule guard-del", ["guard-deletions"]),
        ("kafkaform explain config cluster log.retention.h", ["log.retention.hours"]),
    ],
)
def test_the_tab_key_in_bash(tmp_path: Path, script: str, typed: str, offered: list[str]) -> None:
    """Addresses of the configuration, and the fixed words of commands, without a connection."""
    (tmp_path / "main.kf.hcl").write_text(CONFIGURATION)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "all.kfpolicy.hcl").write_text(RULES)
    program = tmp_path / "kafkaform"
    program.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(PROGRAM)}\n")
    program.chmod(0o755)
    words = typed.split(" ")
    # What bash does at the tab key: it sets these two and calls the function.
    press = (
        f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}\n"
        f"_kafkaform_completion {shlex.quote(str(program))}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", f"{script}\n{press}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    assert done.stdout.split() == offered


@pytest.fixture(scope="module")
def script() -> str:
    """The function that `--install-completion` puts into the user's shell."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not on the path")
    # The flag itself looks for the shell among its parent processes, where a test has none.
    return get_completion_script(prog_name="kafkaform", complete_var=COMPLETE, shell="bash")
