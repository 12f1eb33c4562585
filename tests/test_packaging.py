"""What is installed is what is here: nothing that a checkout has is missing from a wheel."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_package_is_listed() -> None:
    """The explicit package list names every folder that holds modules, and no other."""
    found = set()
    for folder, name in (("kafkaform", "kafkaform"), ("providers", "kafkaform_providers")):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.parent.relative_to(ROOT / folder).parts
            found.add(".".join((name, *parts)))
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == found


def test_every_data_file_is_listed() -> None:
    """Templates and the jar list travel with the package."""
    listed = PROJECT["tool"]["setuptools"]["package-data"]
    for folder, name in (("kafkaform", "kafkaform"), ("providers", "kafkaform_providers")):
        for path in (ROOT / folder).rglob("*"):
            if path.is_dir() or path.suffix in (".py", ".pyc"):
                continue
            owners = [
                (".".join((name, *parent.relative_to(ROOT / folder).parts)), parent)
                for parent in path.parents
                if parent.is_relative_to(ROOT / folder)
            ]
            assert any(
                path.relative_to(parent).match(glob)
                for package, parent in owners
                for glob in listed.get(package, ())
            ), f"{path.relative_to(ROOT)} is in no package-data"


def test_constraints_hold_an_exact_version_of_every_dependency() -> None:
    """Whatever the project asks for is pinned exactly for its own tests and demo."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0].lower() for line in lines if not line.startswith("#")}
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *extras["sandbox"], *extras["dev"]]
    names = {re.split(r"[\[<>=]", item)[0].lower() for item in wanted} - {"kafkaform"}
    assert names <= pinned, names - pinned
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines if not line.startswith("#"))
