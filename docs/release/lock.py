"""The lock file of the pipelines: exact versions, and the hashes of all of their files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "examples/pipelines/ci/requirements.lock"
HEAD = """\
# What the pipelines install, with the hashes of all files of each release: pip takes no other.
# Made by `make lock` from constraints.txt. The lock file of a release has one line more: kafkaform
# itself (`make release-files`).
"""
QUIET = (
    *("--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--strip-extras"),
    *("--no-emit-index-url", "--no-emit-trusted-host", "--no-emit-find-links"),
    "--no-emit-options",
)


def project() -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def write_lock() -> str:
    """Resolve what kafkaform needs without its extras, under the constraints, and keep it."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, made = Path(folder, "wanted.in"), Path(folder, "made.lock")
        wanted.write_text("\n".join(map(str, project()["dependencies"])) + "\n")  # type: ignore[call-overload]
        limits = ["--constraint", str(ROOT / "constraints.txt")]
        command = [sys.executable, "-m", "piptools", "compile", *QUIET, *limits]
        subprocess.run([*command, "--output-file", str(made), str(wanted)], check=True)
        LOCK.write_text(HEAD + made.read_text())
    return f"{LOCK.relative_to(ROOT)}: {len(read_lock(LOCK.read_text()))} packages"


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
