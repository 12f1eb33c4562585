"""Lock files: exact versions, and the hashes of all of their files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from kafkaform.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "examples/pipelines/ci/requirements.lock"
EXTRAS_LOCK = ROOT / "docs/release/extras.lock"
"""What `EXTRAS` install beyond `LOCK`, for the bill of materials."""
EXTRAS = ("sandbox", "fleet", "fleet-small", "aws", "keystores", "codecs", "lsp")
"""The extras that users install. `kerberos` is left out, because nobody can resolve it without the
headers of MIT Kerberos. The others are for the project's own tests."""
HEAD = """\
# What the pipelines install, with the hashes of all files of each release: pip takes no other.
# Made by `make lock` from constraints.txt. The lock file of a release has one line more: kafkaform
# itself (`make release-files`).
"""
EXTRAS_HEAD = """\
# What the extras for users install beyond the pipelines' lock file, with the hashes of all files.
# Made by `make lock` from constraints.txt, for the bill of materials.
"""
QUIET = (
    *("--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--strip-extras"),
    *("--no-emit-index-url", "--no-emit-trusted-host", "--no-emit-find-links"),
    "--no-emit-options",
)


def project() -> dict[str, Any]:
    """The project's table of `pyproject.toml`, with the version, which it takes from the code."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {**found, "version": VERSION}


def list_requirements(extras: Sequence[str] = ()) -> list[str]:
    """What kafkaform needs with these extras, as `pyproject.toml` says it."""
    about = project()
    lists = [about["dependencies"], *(about["optional-dependencies"][one] for one in extras)]
    return [line for lines in lists for line in lines]


def write_lock() -> str:
    """Resolve what kafkaform and its extras need, under the constraints, and keep it."""
    base = _resolve_packages()
    LOCK.write_text(HEAD + base)
    extras = _render_rest(_resolve_packages(EXTRAS), read_lock(base))
    EXTRAS_LOCK.write_text(EXTRAS_HEAD + extras)
    return "\n".join(
        f"{path.relative_to(ROOT)}: {len(read_lock(path.read_text()))} packages"
        for path in (LOCK, EXTRAS_LOCK)
    )


def _resolve_packages(extras: Sequence[str] = ()) -> str:
    """A lock file of what kafkaform needs with these extras."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, made = Path(folder, "wanted.in"), Path(folder, "made.lock")
        wanted.write_text("\n".join(list_requirements(extras)) + "\n")
        limits = ["--constraint", str(ROOT / "constraints.txt")]
        command = [sys.executable, "-m", "piptools", "compile", *QUIET, *limits]
        subprocess.run([*command, "--output-file", str(made), str(wanted)], check=True)
        return made.read_text()


def _render_rest(lock: str, base: Container[str]) -> str:
    """The entries of a lock file that a smaller one does not have."""
    return "".join(
        f"{name}=={version}" + "".join(f" \\\n    --hash=sha256:{one}" for one in hashes) + "\n"
        for name, (version, hashes) in read_lock(lock).items()
        if name not in base
    )


def read_lock(text: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """name -> version and SHA-256 hashes."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for entry in bare.replace("\\\n", " ").splitlines():
        if entry.strip():
            pin, *hashes = entry.split()
            name, _, version = pin.partition("==")
            found[name] = (version, tuple(one.removeprefix("--hash=sha256:") for one in hashes))
    return found
