"""The built wheel, tried as a stranger gets it: in an empty environment, with the lock file."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

from .build import DIST
from .fleet_trial import try_extras
from .lock import LOCK, ROOT, project

EXAMPLE = ROOT / "examples" / "01-topics" / "main.kf.hcl"
SANDBOX = "release-trial"


def install_wheel(home: Path, dist: Path = DIST) -> Path:
    """A new environment with the wheel and what its lock file names, and nothing else; its folder
    of commands. Raises subprocess.CalledProcessError."""
    venv.create(home, with_pip=True)
    commands = home / ("Scripts" if os.name == "nt" else "bin")
    pip = [
        str(commands / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    strict = ["--require-hashes", "--only-binary", ":all:", "--find-links", str(dist)]
    subprocess.run([*pip, *strict, "-r", str(dist / LOCK.name)], check=True)
    return commands


def run_command(command: Path, folder: Path, *words: str, **environment: str) -> str:
    """What a command of the new environment prints. Raises subprocess.CalledProcessError."""
    ended = subprocess.run(
        [str(command), *words],
        cwd=folder,
        env={"HOME": str(folder), "PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
    )
    if ended.returncode != 0:
        sys.stderr.write(ended.stdout + ended.stderr)
    ended.check_returncode()
    return ended.stdout


def try_commands(commands: Path, folder: Path, environment: Mapping[str, str]) -> str:
    """Ask the installed command for its version and for a plan of the first example, whose cluster
    the environment names; the plan. Raises ValueError if it has another version."""
    command = commands / "kafkaform"
    version = str(project()["version"])
    if version not in (told := run_command(command, folder, "version")):
        raise ValueError(f"the wheel says {told.strip()!r}, kafkaform/version.py {version}")
    shutil.copy(EXAMPLE, folder)
    return run_command(command, folder, "plan", "--no-color", **environment)


def try_wheel() -> str:
    """Try what `build` has made, with a sandbox of its own; and the fleet's small extras. Raises
    SystemExit if there is nothing to try."""
    if not (DIST / LOCK.name).exists():
        raise SystemExit(f"{DIST} has no wheel and lock file: run `make release-files` first.")
    kafkaform = [sys.executable, "-m", "kafkaform", "sandbox"]
    subprocess.run([*kafkaform, "up", "--name", SANDBOX], check=True, stdout=subprocess.DEVNULL)
    try:
        shown = subprocess.run(
            [*kafkaform, "env", "--name", SANDBOX, "--format", "shell"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        words = (word for word in shlex.split(shown, comments=True) if "=" in word)
        environment = dict(word.split("=", 1) for word in words)
        environment["KF_VAR_bootstrap"] = environment["KAFKAFORM_SANDBOX_BOOTSTRAP"]
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
            plan = try_commands(install_wheel(Path(home)), Path(folder), environment)
        return f"{plan}\n{try_extras(environment)}"
    finally:
        subprocess.run([*kafkaform, "down", "--name", SANDBOX], check=True)
