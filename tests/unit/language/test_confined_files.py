"""Files: functions read below the root and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkaform.language.functions.files import make_confined_reader

from .example import desired, sound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A root with a configuration folder in it, and a secret beside the root."""
    (tmp_path / "secret.txt").write_text("secret")
    inner = tmp_path / "root" / "conf"
    inner.mkdir(parents=True)
    (inner / "topics.csv").write_text("name,n\na,1\nb,2\n")
    (inner.parent / "shared.txt").write_text("shared")
    (inner.parent / ".git").mkdir()
    (inner.parent / ".git" / "config").write_text("token")
    (inner / "link").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(inner / "pipe")
    (inner / "note.tmpl").write_text("%{ for n in names ~}\n- ${n}\n%{ endfor ~}\n")
    return inner


def test_functions_read_files(folder: Path) -> None:
    """An inventory file declares topics, and its content is part of the digest."""
    text = """
resource "kafka_topic" "t" {
  for_each   = { for row in csvdecode(file("topics.csv")) : row.name => row.n }
  name       = each.key
  partitions = each.value
}
output "note" { value = templatefile("note.tmpl", { names = ["a", "b"] }) }
output "there" { value = [fileexists("../shared.txt"), fileexists("nope")] }
"""
    found = sound(text, read=make_confined_reader(folder.parent, folder))
    assert [item.attributes["partitions"] for item in found.declared] == [1, 2]
    assert found.outputs[0].value == "- a\n- b\n"
    assert found.outputs[1].value == (True, False)
    (folder / "topics.csv").write_text("name,n\na,1\nb,3\n")
    assert sound(text, read=make_confined_reader(folder.parent, folder)).digest != found.digest


REFUSED = {
    "../../secret.txt": "leads out of the root",
    "link": "leads out of the root",
    "/etc/hosts": "leads out of the root",
    "../.git/config": "must not read",
    "pipe": "is not a regular file",
    "nope.txt": "There is no file",
}


@pytest.mark.parametrize("path", REFUSED)
def test_refused_paths(folder: Path, path: str) -> None:
    """A path that leads out, a device, and a missing file are refused with the reason."""
    text = f'locals {{ a = file("{path}") }}\n'
    (fault,) = desired(text, read=make_confined_reader(folder.parent, folder)).diagnostics
    assert fault.summary == "file() cannot be computed"
    assert REFUSED[path] in fault.detail
    assert "secret\n" not in fault.detail


def test_turned_off() -> None:
    """Without a reader the functions say that they are turned off."""
    (fault,) = desired('locals { a = file("x") }\n').diagnostics
    assert "turned off" in fault.detail


@pytest.fixture
def teams(folder: Path) -> Path:
    """A tree of inventory files below the configuration folder."""
    for path in ("billing/a.yaml", "billing/b.yml", "shop/eu/c.yaml", "shop/d.yaml", "e.yaml"):
        file = folder / "teams" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("n: 1\n")
    (folder / "teams" / ".kafkaform").mkdir()
    (folder / "teams" / ".kafkaform" / "cache.yaml").write_text("secret")
    (folder / "teams" / "again").symlink_to(folder / "teams")
    (folder / "teams" / "f.yaml").symlink_to("e.yaml")
    return folder


PATTERNS = {
    "*.yaml": ("e.yaml", "f.yaml"),
    "*/*.yaml": ("billing/a.yaml", "shop/d.yaml"),
    "**/*.yaml": ("billing/a.yaml", "e.yaml", "f.yaml", "shop/d.yaml", "shop/eu/c.yaml"),
    "shop/**": ("shop/d.yaml", "shop/eu/c.yaml"),
    "{billing,shop}/[a-c].y*ml": ("billing/a.yaml", "billing/b.yml"),
    "./?.yaml": ("e.yaml", "f.yaml"),
    "[!e].yaml": ("f.yaml",),
    "**/\\\\*.yaml": (),
    "e.yaml": ("e.yaml",),
    "E.yaml": (),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_file_sets(teams: Path, pattern: str) -> None:
    """Patterns name regular files; neither folders behind links nor closed ones are entered."""
    text = f'output "o" {{ value = fileset("teams", "{pattern}") }}\n'
    found = sound(text, read=make_confined_reader(teams.parent, teams))
    assert found.outputs[0].value == PATTERNS[pattern]


def test_only_folders_below_the_root_are_closed(tmp_path: Path) -> None:
    """A checkout can lie in a folder with the name of a closed one."""
    root = tmp_path / ".kafkaform" / "checkout"
    root.mkdir(parents=True)
    (root / "a.yaml").write_text("a: 1")
    found = sound('output "o" { value = fileset(".", "*") }', read=make_confined_reader(root, root))
    assert found.outputs[0].value == ("a.yaml",)


def test_a_file_set_is_part_of_the_digest(teams: Path) -> None:
    """Another file that matches is another configuration; one that does not match is none."""
    text = 'output "o" { value = fileset("teams", "**/*.yaml") }\n'
    digests = []
    for name in ("note.txt", "g.yaml"):
        digests.append(sound(text, read=make_confined_reader(teams.parent, teams)).digest)
        (teams / "teams" / name).write_text("")
    digests.append(sound(text, read=make_confined_reader(teams.parent, teams)).digest)
    assert digests[0] == digests[1] != digests[2]


BAD_SETS = {
    ("..", "../*"): "A pattern must stay below the folder",
    ("../..", "*"): "leads out of the root",
    (".", "/etc/*"): "A pattern must stay below the folder",
    (".", "li*"): '"link" leads out of the root',
    ("../.git", "*"): "must not read",
    ("nope", "*"): 'There is no folder "nope"',
    ("note.tmpl", "*"): "cannot be read: not a directory",
    (".", "{a,b"): "A brace of the pattern is not closed",
    (".", ""): "A pattern must stay below the folder",
}


@pytest.mark.parametrize(("path", "pattern"), BAD_SETS)
def test_refused_sets(folder: Path, path: str, pattern: str) -> None:
    """What leads out, and what is no pattern, is refused with the reason."""
    text = f'locals {{ a = fileset("{path}", "{pattern}") }}\n'
    (fault,) = desired(text, read=make_confined_reader(folder.parent, folder)).diagnostics
    assert BAD_SETS[path, pattern] in fault.detail
    assert str(folder) not in fault.detail


def test_a_link_that_leads_to_itself(folder: Path) -> None:
    """Such a link is a fault like any other."""
    (folder / "loop").symlink_to("loop")
    (fault,) = desired(
        'locals { a = file("loop") }', read=make_confined_reader(folder, folder)
    ).diagnostics
    assert "loop" in fault.detail
