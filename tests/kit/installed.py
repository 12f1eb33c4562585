"""The wheel of this checkout in an environment that has nothing but what the wheel asks for.

The packages are links to those of the environment that the tests run in, so that no package index
is asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.release.lock import list_requirements

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300


def install_wheel(wheel: Path, home: Path, extra: str = "") -> Path:
    """Install the wheel into a new environment in `home`; the folder of its commands. extra: one of
    the wheel's that is wanted, too."""
    venv.create(home, symlinks=True)
    commands = home / "bin"
    (place,) = home.glob("lib/python3.*/site-packages")
    link_packages([*list_requirements(), *list_extra(extra)], place)
    pip = (sys.executable, "-m", "pip", "--python", str(commands / "python"), "install")
    flags = (
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        f"{wheel}[{extra}]" if extra else str(wheel),
    )
    # With its dependencies: pip finds every one of them, or fails.
    subprocess.run([*pip, *flags], check=True, timeout=SECONDS, env=make_environment(home))
    return commands


def list_extra(name: str) -> Sequence[str]:
    """The requirements of an extra; none for an empty name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found: Sequence[str] = project["optional-dependencies"][name] if name else ()
    return found


def link_packages(wanted: Sequence[str], place: Path) -> None:
    """Link the installed packages that these requirements need into this folder, and no others."""
    for package in find_packages(wanted):
        tops = {path.parts[0] for path in package.files or () if path.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            link, target = place / top, Path(str(package.locate_file(top)))
            if not link.exists():
                link.symlink_to(target, target_is_directory=target.is_dir())


def find_packages(wanted: Sequence[str]) -> Iterator[metadata.Distribution]:
    """What is installed of these requirements, and of what they need."""
    seen: set[str] = set()
    waiting = [Requirement(each) for each in wanted]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in seen or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        package = metadata.distribution(name)
        yield package
        waiting += map(Requirement, package.requires or ())


def make_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment in which Python finds neither this checkout nor what a user installed."""
    return {"HOME": str(home), "PATH": os.defpath, "PYTHONNOUSERSITE": "1", **more}
