"""A pull request brings modules, packages and plug-ins along: none of them is ever imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.workflow.configuration.untrusted import refuse_own_code

EVIL = 'open({canary!r}, "a").write(__file__ + "\\n")\n'
BLOCK = 'provider "kafka" {\n  bootstrap_servers = ["127.0.0.1:1"]\n}\n'
SCRIPT = Path(sys.executable).with_name("kafkaform")
MODULE = (sys.executable, "-m", "kafkaform")
SAFE_MODULE = (sys.executable, "-P", "-m", "kafkaform")

SHADOWS = (
    *("sitecustomize.py", "usercustomize.py", "conftest.py", "setup.py", "typer.py", "lark.py"),
    *("json.py", "typing.py", "re.py", "socket.py", "regex.py", "yaml.py", "jinja2/__init__.py"),
    *("kafka/__init__.py", "confluent_kafka/__init__.py", "rich/__init__.py"),
    *("kafkaform_kafka/__init__.py", "kafkaform_kafka/provider.py"),
    *("providers/__init__.py", "providers/evil.py", "evil.py", "dataclasses.py", "decimal.py"),
)
PACKAGE = ("kafkaform/__init__.py", "kafkaform/__main__.py", "kafkaform/cli/app.py")
"""With `python -m` Python itself takes these before a line of ours runs."""
METADATA = {
    "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
    "evil-1.0.dist-info/entry_points.txt": "[kafkaform.providers]\nkafka = evil:provider\n",
    "evil2.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: evil2\nVersion: 1.0\n",
    "evil2.egg-info/entry_points.txt": "[kafkaform.providers]\nother = evil:provider\n",
    "evil.pth": "import evil\n",
    "pyvenv.cfg": "home = .\n",
}
COMMANDS = (
    ("validate", "--untrusted"),
    ("plan", "--untrusted", "--state=s.json"),
    ("plan",),
    ("providers",),
)


def hostile_folder(folder: Path, canary: Path, names: Sequence[str]) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(EVIL.format(canary=str(canary)))
    for name, text in METADATA.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "main.kf.hcl").write_text(BLOCK)


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_command_imports_nothing_from_the_folder(tmp_path: Path, words: Sequence[str]) -> None:
    """With modules of every name that Python or kafkaform could want, not one is run, and no
    provider comes from metadata that lies there."""
    folder, canary = tmp_path / "pr", tmp_path / "canary"
    hostile_folder(folder, canary, (*SHADOWS, *PACKAGE))
    said = run(folder, str(SCRIPT), *words)
    assert not canary.exists(), canary.read_text()
    assert "evil" not in said


@pytest.mark.parametrize("words", COMMANDS[1:3], ids=" ".join)
@pytest.mark.parametrize("command", [SAFE_MODULE, MODULE], ids=["-P -m", "-m"])
def test_as_a_module(tmp_path: Path, command: Sequence[str], words: Sequence[str]) -> None:
    """`python -P -m kafkaform` is as safe as the command. Plain `-m` is, unless the folder has a
    `kafkaform` of its own."""
    folder, canary = tmp_path / "pr", tmp_path / "canary"
    safe = command is SAFE_MODULE
    hostile_folder(folder, canary, (*SHADOWS, *(PACKAGE if safe else ())))
    said = run(folder, *command, *words)
    assert not canary.exists(), canary.read_text()
    assert ("Python imports modules" in said) == (not safe and "--untrusted" in words)


def test_the_traps_do_snap(tmp_path: Path) -> None:
    """Imported from there, the modules do leave their mark; and so does `kafkaform/` with plain
    `-m`, which is why --untrusted refuses to be run so."""
    folder, canary = tmp_path / "pr", tmp_path / "canary"
    hostile_folder(folder, canary, ("evil.py",))
    run(folder, sys.executable, "-c", "import evil")
    assert "evil.py" in canary.read_text()
    canary.unlink()
    hostile_folder(folder, canary, PACKAGE)
    run(folder, *MODULE, "version")
    assert "kafkaform/__init__.py" in canary.read_text()


@pytest.mark.parametrize("entry", [".", "..", "", "{here}"])
def test_a_path_of_imports_that_leads_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    """PYTHONPATH=. or an empty part of it, which means the same, stop --untrusted at once."""
    folder = tmp_path / "root" / "conf"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    refuse_own_code(folder, tmp_path / "root")
    monkeypatch.setattr(sys, "path", [*sys.path, entry.format(here=folder)])
    with pytest.raises(UsageError, match="imports modules from this folder"):
        refuse_own_code(folder, tmp_path / "root")
