"""The files of a release, in `dist/`."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from .lock import LOCK, ROOT, project
from .sbom import text

DIST = ROOT / "dist"


def build(folder: Path = DIST) -> str:
    """The wheel, the lock file that also has the wheel's hash, and the bill of materials."""
    folder.mkdir(exist_ok=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps"]
    command = [sys.executable, "-m", "pip", "wheel", *quiet, "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob(f"kafkaform-{project()['version']}-*.whl")
    lock = release_lock(wheel)
    (folder / LOCK.name).write_text(lock)
    (folder / "sbom.cdx.json").write_text(text(lock))
    return f"{folder}: {wheel.name}, {LOCK.name}, sbom.cdx.json"


def release_lock(wheel: Path) -> str:
    """The lock file with one entry more: this wheel and no other."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    pin = f"kafkaform=={project()['version']} \\\n    --hash=sha256:{digest}\n"
    return LOCK.read_text() + pin
