"""kafkaform at another commit, for ratios against it: a worktree in a temporary folder, with the
packages of this environment."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .launcher import ROOT


def describe_commit(root: Path = ROOT) -> str:
    """The commit of a checkout, short, and whether files differ from it; `unknown` without git."""
    try:
        commit = _git(root, "rev-parse", "--short=8", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "kafkaform", "providers")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit} with changes" if changed else commit


@contextmanager
def check_out(commit: str, folder: Path) -> Iterator[Path]:
    """The checkout of a commit, until the block ends. folder: where it is made. Raises SystemExit
    if there is no such commit."""
    path = folder / "baseline"
    try:
        _git(ROOT, "worktree", "add", "--detach", "--quiet", str(path), commit)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        advice = "name another commit, or --peers without baseline"
        raise SystemExit(f"--against {commit}: {said.strip()}\n{advice}") from None
    try:
        _install(path)
        yield path
    finally:
        _git(ROOT, "worktree", "remove", "--force", str(path))


def list_import_folders(root: Path) -> Sequence[Path]:
    """Where the packages of a checkout lie."""
    packages = _read_settings(root)["tool"]["setuptools"].get("packages")
    # Early commits list their packages, and have the providers under another name than on disk.
    where = packages["find"]["where"] if isinstance(packages, dict) else ["."]
    return [root / folder for folder in where]


def _read_settings(root: Path) -> Any:
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def _install(path: Path) -> None:
    """Let Python find the packages and providers of this checkout, and not those of the installed
    package: it takes the first one of that name on its path."""
    settings = _read_settings(path)
    for name, folder in settings["tool"]["setuptools"].get("package-dir", {}).items():
        if not (path / name).exists():
            (path / name).symlink_to(folder)
    groups = settings["project"].get("entry-points", {})
    made = path / "kafkaform-0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: kafkaform\nVersion: 0\n", "utf-8")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in points.items())
        for group, points in groups.items()
    ]
    (made / "entry_points.txt").write_text("\n".join(lines), "utf-8")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
