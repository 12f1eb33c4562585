"""`fmt` as a user types it: which files it touches, what it prints, what it never does."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ...kit.commands.here import Here
from ...kit.commands.rights import nobody, place

MESSY = 'resource "kafka_topic" "a" {\nname="x" # why\npartitions=3\n}\n'
NEAT = 'resource "kafka_topic" "a" {\n  name       = "x" # why\n  partitions = 3\n}\n'


def test_a_folder_is_laid_out(here: Here) -> None:
    """Without a target the folder's own files change, each is named, and a second run is idle."""
    here.write("main.kf.hcl", MESSY)
    here.write("neat.kf.hcl", NEAT)
    here.write("sub/main.kf.hcl", MESSY)
    assert here.done("fmt").out == "main.kf.hcl\n"
    assert here.files()["main.kf.hcl"] == NEAT.encode()
    assert here.files()["sub/main.kf.hcl"] == MESSY.encode()
    assert here.done("fmt").out == ""


def test_recursive(here: Here) -> None:
    """Folders in folders are laid out when asked for; hidden ones never are."""
    for name in ("main.kf.hcl", "sub/deep/main.kf.hcl", ".hidden/main.kf.hcl"):
        here.write(name, MESSY)
    assert here.done("fmt", "-recursive").out == "main.kf.hcl\nsub/deep/main.kf.hcl\n"
    assert here.files()[".hidden/main.kf.hcl"] == MESSY.encode()


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("main.kf.hcl", True),
        ("prod.kfvars.hcl", True),
        ("fleet.hcl", True),
        ("main.tf", True),
        ("terraform.tfvars", True),
        ("main.hcl", False),
        ("main.kf.json", False),
        ("notes.txt", False),
        (".main.kf.hcl", False),
    ],
)
def test_only_configuration_files_are_touched(here: Here, name: str, taken: bool) -> None:
    """A file is taken by its name alone, and other files of the folder stay as they are."""
    here.write(name, "a=1\n")
    assert here.done("fmt").out == (f"{name}\n" if taken else "")
    assert here.files()[name] == (b"a = 1\n" if taken else b"a=1\n")


def test_a_named_file_must_be_configuration(here: Here) -> None:
    """Naming another file, or one that is not there, is an error; the others are done."""
    here.write("notes.txt", "a=1\n")
    here.write("main.kf.hcl", "a=1\n")
    said = here.fails("fmt", "notes.txt", "nope.kf.hcl", "main.kf.hcl")
    assert "notes.txt is not a configuration file" in said
    assert "*.kf.hcl" in said
    assert "nope.kf.hcl cannot be read: No such file" in said
    assert here.files() == {"main.kf.hcl": b"a = 1\n", "notes.txt": b"a=1\n"}


@pytest.mark.parametrize("flag", ["-check", "--no-write", "-write=false"])
def test_nothing_is_written_when_only_asked(here: Here, flag: str) -> None:
    """The name is printed and the file stays; only --check ends with 1."""
    here.write("main.kf.hcl", MESSY)
    said = here.run("fmt", flag)
    assert (said.code, said.out) == (int(flag == "-check"), "main.kf.hcl\n")
    assert here.files() == {"main.kf.hcl": MESSY.encode()}
    here.write("main.kf.hcl", NEAT)
    assert here.done("fmt", flag).out == ""


def test_diff(here: Here) -> None:
    """A unified diff of what changes, and the file is written all the same."""
    here.write("main.kf.hcl", "a=1\nb {}\n")
    assert here.done("fmt", "-diff", "-list=false").out == (
        "--- old/main.kf.hcl\n+++ new/main.kf.hcl\n@@ -1,2 +1,2 @@\n-a=1\n+a = 1\n b {}\n"
    )
    assert here.files() == {"main.kf.hcl": b"a = 1\nb {}\n"}


def test_diff_shows_hostile_text_harmlessly(here: Here) -> None:
    """A terminal sequence in a comment is made visible; tabs stay tabs."""
    here.write("main.kf.hcl", "a=1\t# \x1b[31m\n")
    said = here.run("fmt", "-diff", "-check")
    assert "\x1b" not in said.out
    assert "-a=1\t# \\x1b[31m\n" in said.out


def test_results_are_printed_when_nothing_else_is_wanted(here: Here) -> None:
    """Without list, write and diff the texts themselves come, changed or not."""
    here.write("a.kf.hcl", "a=1\n")
    here.write("b.kf.hcl", "b = 2\n")
    assert here.done("fmt", "--no-list", "--no-write").out == "a = 1\nb = 2\n"


def test_standard_input(here: Here) -> None:
    """`-` reads a text and prints it laid out, to the byte; it stands alone."""
    assert here.done("fmt", "-", stdin="a=1 # no newline").out == "a = 1 # no newline"
    assert here.done("fmt", "-", stdin="a=1\r\nbb=2\r\n").out == "a  = 1\r\nbb = 2\r\n"
    assert here.run("fmt", "-check", "-", stdin="a=1\n").code == 1
    assert here.done("fmt", "-check", "-", stdin="a = 1\n").out == ""
    assert "+a = 1\n" in here.done("fmt", "-diff", "-", stdin="a=1\n").out
    assert "stands alone" in here.fails("fmt", "-", "main.kf.hcl")


def test_errors_are_told_and_the_file_is_left_alone(here: Here) -> None:
    """A text with a syntax error, or not in UTF-8, stays byte for byte; the others are done."""
    here.write("bad.kf.hcl", 'a = "x\nb=1\n')
    here.write("latin.kf.hcl", b"a=1 # \xe9\n")
    here.write("good.kf.hcl", "b=1\n")
    before = here.files()
    said = here.fails("fmt")
    assert "Unclosed string" in said and "bad.kf.hcl:1:5" in said
    assert "Not UTF-8" in said
    assert here.files() == {**before, "good.kf.hcl": b"b = 1\n"}
    assert "Unclosed string" in here.fails("fmt", "-", stdin='a = "x\n')


def test_rights_are_kept(here: Here) -> None:
    """The new text has the rights of the old one, and nothing is left beside it."""
    file = here.write("main.kf.hcl", MESSY)
    file.chmod(0o640)
    here.done("fmt")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(here.files()) == ["main.kf.hcl"]


def test_a_file_that_may_not_be_written(here: Here) -> None:
    """A read-only file in a writable folder is not replaced behind its owner's back."""
    with place(here.monkeypatch) as open_to_all:
        inside = Here(open_to_all, here.capsys, here.monkeypatch)
        inside.write("clean.kf.hcl", "a = 1\n")
        inside.done("fmt")  # what the command imports is imported before
        inside.write("main.kf.hcl", MESSY).chmod(0o444)
        open_to_all.chmod(0o777)
        with nobody():
            assert "permission denied" in inside.fails("fmt", code=9)
        assert (open_to_all / "main.kf.hcl").read_text() == MESSY


def test_a_write_that_fails_leaves_the_old_text(here: Here) -> None:
    """If the new text cannot be put in place, the old one is whole and no rest stays behind."""
    here.write("main.kf.hcl", MESSY)

    def refuse(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    here.monkeypatch.setattr(Path, "replace", refuse)
    assert "the disk is full" in here.fails("fmt", code=9)
    assert here.files() == {"main.kf.hcl": MESSY.encode()}


def test_links_do_not_lead_out(here: Here) -> None:
    """A link to a file elsewhere is left alone and told; one inside the folder is followed, and
    stays a link; a link to a folder is not entered."""
    outside = here.path / "outside"
    outside.mkdir()
    (outside / "far.kf.hcl").write_text(MESSY)
    folder = here.path / "inside"
    folder.mkdir()
    here.monkeypatch.chdir(folder)
    (folder / "far.kf.hcl").symlink_to("../outside/far.kf.hcl")
    (folder / "others").symlink_to("../outside")
    (folder / "shared").write_text(MESSY)
    (folder / "near.kf.hcl").symlink_to("shared")
    said = here.done("fmt", "-recursive")
    assert said.out == "near.kf.hcl\n"
    assert "far.kf.hcl is a link that leads out" in said.text
    assert (outside / "far.kf.hcl").read_text() == MESSY
    assert (folder / "shared").read_text() == NEAT
    assert (folder / "near.kf.hcl").is_symlink()
    assert "leads out" in here.fails("fmt", "far.kf.hcl")


def test_a_file_that_is_reached_twice_is_done_once(here: Here) -> None:
    """A file named beside its folder is listed once."""
    here.write("main.kf.hcl", MESSY)
    assert here.done("fmt", "main.kf.hcl", ".").out == ("main.kf.hcl\n")
