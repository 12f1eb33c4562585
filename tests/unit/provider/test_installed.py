"""Entry points are found as `importlib.metadata` finds them."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kafkaform.provider.installed import installed

GROUP = "kafkaform.providers"


def package(place: Path, folder: str, points: str, name: str = "acme-pack") -> None:
    """The metadata of an installed package."""
    (place / folder).mkdir(parents=True)
    (place / folder / "entry_points.txt").write_text(points)
    (place / folder / "METADATA").write_text(f"Name: {name}\nVersion: 1.2\n")
    (place / folder / "PKG-INFO").write_text(f"Name: {name}\nVersion: 1.2\n")


@pytest.mark.parametrize("group", [GROUP, "console_scripts", "pytest11", "nobody.has.this"])
def test_the_same_as_the_standard_library(group: str) -> None:
    """In this environment, name by name and value by value."""
    ours = {(point.name, point.value, point.dist.version) for point in installed(group)}
    theirs = {(p.name, p.value, p.dist.version) for p in entry_points(group=group) if p.dist}
    assert ours == theirs


def test_of_two_the_first_on_the_path_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that is there twice, in whatever form, is taken once; comments, other groups and
    what is no folder are passed over."""
    text = f"# c\n[other]\nx = a:b\n\n[{GROUP}]\n; no = 1\nacme = acme.first:PROVIDER [extra]\n"
    package(tmp_path / "one", "acme_pack-1.2.dist-info", text)
    package(tmp_path / "two", "Acme_Pack.egg-info", f"[{GROUP}]\nacme = acme.second:PROVIDER\n")
    places = [tmp_path / "one", tmp_path / "two", tmp_path / "nothing", tmp_path / "zip"]
    (tmp_path / "zip").write_bytes(b"PK")
    monkeypatch.setattr(sys, "path", list(map(str, places)))
    (point,) = installed(GROUP)
    assert (point.name, point.module) == ("acme", "acme.first")
    assert (point.dist.name, point.dist.version) == ("acme-pack", "1.2")


def test_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value leads to an object inside a module; extras in brackets do not matter."""
    (tmp_path / "acme_of_installed_test.py").write_text("class Outer:\n    inner = 7\n")
    target = "acme_of_installed_test:Outer.inner [extra]"
    package(tmp_path, "acme-1.dist-info", f"[{GROUP}]\nacme = {target}\n")
    monkeypatch.syspath_prepend(tmp_path)
    (point,) = [point for point in installed(GROUP) if point.name == "acme"]
    assert point.load() == 7
