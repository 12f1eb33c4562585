"""A Homebrew formula for a tap, from the lock file and the release's source archive.

Homebrew builds every package from source. uv asks the package index where the source archives are;
each must be one whose hash the lock file has.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from .build import DIST, build_archive
from .lock import LOCK, project, read_lock

TEMPLATE = Path(__file__).with_name("formula.rb.j2")
FILE = "kafkaform.rb"


class Source(NamedTuple):
    """The source archive of a package."""

    name: str
    version: str
    url: str
    sha256: str


class Archive(NamedTuple):
    """The source archive of kafkaform."""

    name: str
    sha256: str


def write_formula(address: str, folder: Path = DIST) -> str:
    """Write the formula. address: of the repository whose releases have the source archive."""
    path = build_archive(folder)
    archive = Archive(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    lock = LOCK.read_text()
    sources = match_sources(lock, find_sources(lock))
    (folder / FILE).write_text(render_formula(address, archive, sources))
    return f"{folder / FILE}: {len(sources)} resources"


def find_sources(lock: str) -> list[Source]:
    """Where the source archives of the locked packages are. Raises
    subprocess.CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder, "wanted.txt"), Path(folder, "pylock.toml")
        pins = (f"{name}=={version}" for name, (version, _) in read_lock(lock).items())
        wanted.write_text("\n".join(pins) + "\n")
        flags = ("--quiet", "--no-deps", "--universal", "--format", "pylock.toml")
        command = [sys.executable, "-m", "uv", "pip", "compile", *flags]
        subprocess.run([*command, "--output-file", str(found), str(wanted)], check=True)
        return list(read_sources(tomllib.loads(found.read_text())))


def read_sources(pylock: dict[str, Any]) -> Iterable[Source]:
    """The source archives of a lock file as PEP 751 defines it."""
    for package in pylock["packages"]:
        archive = package.get("sdist")
        if archive is not None:
            name, version = package["name"], package["version"]
            yield Source(name, version, archive["url"], archive["hashes"]["sha256"])


def match_sources(lock: str, sources: Iterable[Source]) -> list[Source]:
    """One source for each locked package, by name. Raises ValueError if one is missing, has
    another version or a hash that the lock file does not have."""
    found = {source.name: source for source in sources}
    wanted = read_lock(lock)
    for name, (version, hashes) in wanted.items():
        source = found.get(name)
        if source is None:
            raise ValueError(f"{name} {version} has no source archive, and Homebrew needs one")
        if source.version != version or source.sha256 not in hashes:
            raise ValueError(f"{source.url} is not what {LOCK.name} has of {name} {version}")
    return [found[name] for name in sorted(wanted)]


def render_formula(address: str, archive: Archive, packages: Iterable[Source]) -> str:
    """The formula as text."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(TEMPLATE.read_text()).render(
        address=address.rstrip("/"),
        archive=archive,
        license=project()["license"],
        packages=list(packages),
        version=project()["version"],
    )
