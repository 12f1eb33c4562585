"""The Homebrew formula has what the lock file has, and refuses anything else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from docs.release.build import build_archive, build_wheel
from docs.release.formula import (
    Archive,
    Source,
    find_sources,
    match_sources,
    read_sources,
    render_formula,
)
from docs.release.lock import LOCK, read_lock
from kafkaform.version import VERSION

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = "https://git.example.com/shop/kafkaform"
TEXT = LOCK.read_text()
LOCKED = read_lock(TEXT)
ARCHIVE = Archive(f"kafkaform-{VERSION}.tar.gz", "a" * 64)


def make_sources() -> list[Source]:
    """A source archive for each locked package, with a hash of it."""
    return [
        Source(name, version, f"https://files.example.com/{name}-{version}.tar.gz", hashes[0])
        for name, (version, hashes) in LOCKED.items()
    ]


def test_the_formula_is_in_step_with_the_lock_file() -> None:
    """A resource for each package that kafkaform needs, at the version of constraints.txt and with
    a hash of the lock file, and no other; kafkaform itself at the version of the code."""
    formula = render_formula(ADDRESS, ARCHIVE, match_sources(TEXT, make_sources()))
    found = re.findall(r'resource "(.+)" do\n    url "(.+)"\n    sha256 "(.+)"', formula)
    assert [name for name, _, _ in found] == sorted(LOCKED)
    pins = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    for name, url, digest in found:
        assert f"-{pins[name]}.tar.gz" in url and digest in LOCKED[name][1]
    assert f'url "{ADDRESS}/releases/download/v{VERSION}/kafkaform-{VERSION}.tar.gz"' in formula
    assert f'sha256 "{"a" * 64}"\n  license "Apache-2.0"' in formula
    assert "{{" not in formula and "{%" not in formula


def test_another_file_than_the_locked_one_is_refused() -> None:
    """A hash or a version that the lock file does not have, and a package without sources."""
    first, *rest = make_sources()
    with pytest.raises(ValueError, match=f"not what requirements.lock has of {first.name}"):
        match_sources(TEXT, [first._replace(sha256="0" * 64), *rest])
    with pytest.raises(ValueError, match="not what requirements.lock has"):
        match_sources(TEXT, [first._replace(version="0"), *rest])
    with pytest.raises(ValueError, match=f"{first.name} .* has no source archive"):
        match_sources(TEXT, rest)


def test_a_package_with_wheels_only_has_no_source() -> None:
    """As PEP 751 writes it: `sdist` is missing."""
    archive = {"url": "https://files.example.com/a-1.tar.gz", "hashes": {"sha256": "b"}}
    packages = [
        {"name": "a", "version": "1", "sdist": archive},
        {"name": "c", "version": "2", "wheels": []},
    ]
    assert [*read_sources({"packages": packages})] == [Source("a", "1", archive["url"], "b")]


def test_ruby_takes_the_formula(tmp_path: Path) -> None:
    """Its syntax, where there is Ruby."""
    if shutil.which("ruby") is None:
        pytest.skip("ruby is not on the path")
    file = tmp_path / "kafkaform.rb"
    file.write_text(render_formula(ADDRESS, ARCHIVE, make_sources()))
    done = subprocess.run(["ruby", "-wc", str(file)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == "Syntax OK" and not done.stderr


@pytest.mark.slow("asks the package index")
def test_the_index_has_the_locked_sources() -> None:
    """Where packages can be had: every locked package has a source archive, with a locked hash."""
    import_module("uv")
    try:
        sources = find_sources(TEXT)
    except subprocess.CalledProcessError:
        pytest.skip("no package index can be reached")
    assert len(match_sources(TEXT, sources)) == len(LOCKED)


@pytest.mark.slow("builds a wheel from the source archive")
def test_the_source_archive_makes_the_same_wheel(tmp_path: Path) -> None:
    """What Homebrew installs has the files of the wheel, byte for byte; also the licence and the
    notice are in the archive."""
    wheel = build_wheel(tmp_path / "dist")
    archive = build_archive(tmp_path / "dist")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    source = tmp_path / f"kafkaform-{VERSION}"
    assert (source / "LICENSE").exists() and (source / "NOTICE").exists()
    command = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    python = [sys.executable, "-m", *command]
    subprocess.run([*python, "--wheel-dir", str(tmp_path), str(source)], check=True)

    def read(path: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(path) as files:
            names = (name for name in files.namelist() if not name.endswith("RECORD"))
            return {name: files.read(name) for name in names}

    assert read(tmp_path / wheel.name) == read(wheel)
