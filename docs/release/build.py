"""The files of a release, in `dist/`."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .lock import LOCK, ROOT, project
from .sbom import text

DIST = ROOT / "dist"
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "kafkaform", "providers", "docs/man")
"""What the wheel is made of: the Dockerfile copies the same."""


def build(folder: Path = DIST) -> str:
    """The wheel, the source archive, the lock file that also has the wheel's hash, and the bill of
    materials."""
    wheel, archive = build_wheel(folder), build_archive(folder)
    lock = release_lock(wheel)
    (folder / LOCK.name).write_text(lock)
    (folder / "sbom.cdx.json").write_text(text(lock))
    return f"{folder}: {wheel.name}, {archive.name}, {LOCK.name}, sbom.cdx.json"


def build_wheel(folder: Path) -> Path:
    """Build the wheel with the setuptools of this environment, which `constraints.txt` pins, so
    that no package index is asked. Raises subprocess.CalledProcessError."""
    folder.mkdir(exist_ok=True)
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")
    with tempfile.TemporaryDirectory() as copy:
        copy_sources(Path(copy))
        command = [sys.executable, "-m", "pip", "wheel", *quiet, "--wheel-dir", str(folder), copy]
        subprocess.run(command, check=True)
    return folder / f"kafkaform-{project()['version']}-py3-none-any.whl"


def build_archive(folder: Path) -> Path:
    """Build the source archive, from which Homebrew installs. Raises
    subprocess.CalledProcessError."""
    folder.mkdir(exist_ok=True)
    program = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    with tempfile.TemporaryDirectory() as copy:
        copy_sources(Path(copy))
        command = [sys.executable, "-c", program, str(folder.absolute())]
        subprocess.run(command, check=True, cwd=copy, stdout=subprocess.DEVNULL)
    return folder / f"kafkaform-{project()['version']}.tar.gz"


def copy_sources(folder: Path) -> None:
    """Copy what the wheel is made of."""
    # Built in the checkout, setuptools would add modules that were removed since an earlier build:
    # its folder `build` still has them.
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=leave)
        else:
            shutil.copy(source, folder)


def release_lock(wheel: Path) -> str:
    """The lock file with one entry more: this wheel and no other."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    pin = f"kafkaform=={project()['version']} \\\n    --hash=sha256:{digest}\n"
    return LOCK.read_text() + pin
