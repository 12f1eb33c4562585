"""A pull request may try everything: each folder ends soon, with a diagnostic or a sound result."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .arena import FAT, SLOW, Arena, Outcome, busy
from .attacks import COUNTING, DOUBLING, NESTING, Attack, Files, local, main
from .floods import CALLS, CHAINS, FLOODS, TEXTS

VALIDATE = (("validate", "--json"), "")
OUTPUT_BYTES = 2_000_000
ATTACKS: Mapping[str, Attack] = {
    f"{kind}: {name}": attack
    for kind, table in {
        "nesting": NESTING,
        "doubling": DOUBLING,
        "counting": COUNTING,
        "references": CHAINS,
        "texts": TEXTS,
    }.items()
    for name, attack in table.items()
}


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    arena = Arena()
    yield arena
    arena.close()


def written(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    folder.mkdir(exist_ok=True)
    return folder


def survived(outcome: Outcome) -> Outcome:
    """It ended by itself, soon, with little memory and few words, and not by a fault of ours."""
    assert outcome.signal == 0, f"ended by signal {outcome.signal} after {outcome.cpu:.1f} s"
    assert outcome.cpu < SLOW or outcome.cpu < SLOW * busy()
    assert outcome.memory < FAT
    assert "Traceback" not in outcome.text
    assert "failed unexpectedly" not in outcome.text, outcome.text
    assert len(outcome.text) < OUTPUT_BYTES
    return outcome


def validated(arena: Arena, folder: Path) -> list[dict[str, Any]]:
    """What `validate --json` says of a folder."""
    found = json.loads(survived(arena.run(folder, VALIDATE)).out)
    return list(found["diagnostics"])


@pytest.mark.slow("evaluates each folder up to the limits")
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name: str, arena: Arena, tmp_path: Path) -> None:
    """Whatever a folder wants, it is refused with the line that wants it, or it is understood."""
    files, words = ATTACKS[name]
    errors = [
        item
        for item in validated(arena, written(tmp_path / "in", files))
        if item["severity"] == "error"
    ]
    summaries = [item["summary"] for item in errors]
    assert bool(errors) == bool(words), summaries
    assert words in " ".join(summaries)
    assert all("range" in item for item in errors if words in item["summary"])


@pytest.mark.slow("reads ten thousand blocks in each folder")
@pytest.mark.parametrize("name", FLOODS)
def test_floods(name: str, arena: Arena, tmp_path: Path) -> None:
    """Of thousands of faults the first ones are shown, and how many more there are."""
    files, most = FLOODS[name]
    found = validated(arena, written(tmp_path / "in", files))
    told = [item for item in found if "range" in item]
    assert 1 <= len(told) <= most
    rest = [item for item in found if "range" not in item]
    assert len(rest) <= 1
    if most == 1_000:
        assert re.fullmatch(
            r"(More than )?[\d,]+ more (errors|warnings) are not shown", rest[0]["summary"]
        )
    for item in found:
        assert len(item["summary"]) <= 501 and len(item["detail"]) < 2_100
        assert all(len(line) <= 501 for line in item.get("context", []))


def test_functions(arena: Arena, tmp_path: Path) -> None:
    """Functions that are asked for the impossible, all in one folder: each is told at its line."""
    lines = "".join(f"  a{n} = {call}\n" for n, (call, _) in enumerate(CALLS))
    found = validated(arena, written(tmp_path / "in", main(f"locals {{\n{lines}}}\n")))
    told = {item["range"]["start"]["line"]: item["summary"] for item in found}
    for line, (call, words) in enumerate(CALLS, start=2):
        assert words in told.get(line, ""), call
        assert bool(words) == (line in told), call


# ── paths ───────────────────────────────────────────────────────────────────────────────


def _linked(target: str, name: str = "x") -> Callable[[Path], None]:
    return lambda folder: (folder / name).symlink_to(target)


def _tree(folder: Path) -> None:
    """A deep tree with links that lead back into it."""
    place = folder
    for _ in range(60):
        place = place / "d"
        place.mkdir()
        (place / "up").symlink_to("..")
        (place / "top").symlink_to(folder)


def _named(name: str, source: str) -> Files:
    return main(f'module "m" {{\n  source = "{source}"\n}}\n') | {name: "locals {\n  a = 1\n}\n"}


_MODULE = 'module "m" {\n  source = "./x"\n}\n'
PLACES: Mapping[str, tuple[Files, Callable[[Path], None], str]] = {
    "a module behind a link that leads out": (main(_MODULE), _linked("/etc"), "cannot be read"),
    "a module behind a link to itself": (main(_MODULE), _linked("x"), "cannot be read"),
    "a module that is a pipe": (main(_MODULE), lambda f: os.mkfifo(f / "x"), "cannot be read"),
    "a module that is a file": (main(_MODULE) | {"x": "a"}, lambda f: None, "cannot be read"),
    "a module with a pipe": (
        main(_MODULE) | {"x/a.kf.hcl": ""},
        lambda f: os.mkfifo(f / "x/main.kf.hcl"),
        "cannot be read",
    ),
    "a module that links to itself": (
        main(_MODULE) | {"x/main.kf.hcl": 'module "m" {\n  source = "./again"\n}\n'},
        _linked(".", "x/again"),
        "calls the module that contains it",
    ),
    "a module that links to its caller": (
        main(_MODULE) | {"x/main.kf.hcl": 'module "m" {\n  source = "./up/x"\n}\n'},
        _linked("..", "x/up"),
        "calls the module that contains it",
    ),
    "the folder itself as a module": (
        main('module "m" {\n  source = "../in"\n}\n'),
        lambda f: None,
        "calls the module that contains it",
    ),
    "a module beyond the root": (
        main(_MODULE.replace("./x", "../../../etc")),
        lambda f: None,
        "cannot",
    ),
    "a module in the files of git": (
        _named(".git/main.kf.hcl", "./.git"),
        lambda f: None,
        "cannot",
    ),
    "a module whose path has a zero byte": (
        _named("x", "./a\\u0000"),
        lambda f: None,
        "cannot be read",
    ),
    "a module with a long path": (_named("x", "./" + "a/" * 100_000), lambda f: None, "cannot"),
    "a module from elsewhere": (
        _named("x", "git::https://x/y"),
        lambda f: None,
        "does not say which version",
    ),
    "files that lead out": (local('file("x")'), _linked("/etc/passwd"), "cannot be computed"),
    "files that never end": (local('file("x")'), _linked("/dev/zero"), "cannot be computed"),
    "files that link to themselves": (local('file("x")'), _linked("x"), "cannot be computed"),
    "pipes": (local('file("x")'), lambda f: os.mkfifo(f / "x"), "cannot be computed"),
    "folders": (local('file("x")') | {"x/y": ""}, lambda f: None, "cannot be computed"),
    "large files": (local('file("x")') | {"x": b"a" * 9_000_000}, lambda f: None, "cannot be"),
    "many files": (
        local('[for i in range(20) : filemd5("f${i}")]')
        | {f"f{n}": b"a" * 8_000_000 for n in range(10)},
        lambda f: None,
        "exceeds a limit",
    ),
    "deep trees with links that lead back": (
        local('length(fileset(".", "**/*.kf.hcl"))'),
        _tree,
        "",
    ),
    "templates behind links": (
        local('templatefile("x", {})'),
        _linked("/etc/passwd"),
        "cannot be computed",
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_places(name: str, arena: Arena, tmp_path: Path) -> None:
    """Paths that lead out, back, to themselves or to no file are refused where they are written."""
    files, prepare, words = PLACES[name]
    folder = written(tmp_path / "in", files)
    (folder / ".git").mkdir(exist_ok=True)
    prepare(folder)
    found = validated(arena, folder)
    assert bool(found) == bool(words), found
    for item in found:
        assert words in item["summary"] and "range" in item
        assert "root:" not in json.dumps(item)  # what /etc/passwd begins with


MANY = pytest.param("many files", marks=pytest.mark.slow("makes ten thousand files"))


@pytest.mark.parametrize("what", ["a pipe", "a link out", "a device", "a large file", MANY])
def test_configuration_files(what: str, arena: Arena, tmp_path: Path) -> None:
    """What is no file of the folder is not read as its configuration."""
    folder = tmp_path / "in"
    folder.mkdir()
    place = folder / "main.kf.hcl"
    if what == "a pipe":
        os.mkfifo(place)
    elif what == "a large file":
        place.write_bytes(b"#" * 9_000_000)
    elif what == "many files":
        for number in range(10_001):
            (folder / f"{number}.kf.hcl").touch()
    else:
        place.symlink_to("/etc/passwd" if what == "a link out" else "/dev/zero")
    outcome = survived(arena.run(folder, (("validate",), "")))
    assert outcome.codes == (1,)
    assert "regular file" in outcome.err or "root" in outcome.err or "larger" in outcome.err
