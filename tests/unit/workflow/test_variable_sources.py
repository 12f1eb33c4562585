"""What the command line and the folder give: order of --var and --var-file, links, pipes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ...kit.commands.here import Here

MAIN = (
    'provider "kafka" {\n  bootstrap_servers = ["localhost:1"]\n}\n'
    'variable "x" {\n  default = "default"\n  validation {\n    condition     = var.x == "want"\n'
    '    error_message = "x is ${var.x}"\n  }\n}\n'
)
"""What x is shows in the error of its rule."""


def _x(here: Here, *typed: str) -> str:
    """The value of x after `validate` with these flags."""
    said = here.run("validate", *typed)
    assert said.code == 1
    return said.text.partition("x is ")[2].split()[0]


ORDERS = [
    (["-var", "x=one", "-var-file=two.hcl"], "two"),
    (["-var-file=two.hcl", "-var", "x=one"], "one"),
    (["--var-file", "two.hcl", "--var=x=one", "--var-file=three.json"], "three"),
    (["--var=x=one", "--var-file", "two.hcl", "--var", "x=four"], "four"),
    (["-var-file", "three.json", "-var-file", "two.hcl"], "two"),
]


@pytest.mark.parametrize(("typed", "expected"), ORDERS)
@pytest.mark.parametrize("more", [[], ["--no-color"]])
def test_the_last_flag_wins(here: Here, typed: list[str], expected: str, more: list[str]) -> None:
    """As in Terraform, --var and --var-file count in the order in which they are typed."""
    here.write("main.kf.hcl", MAIN)
    here.write("two.hcl", 'x = "two"\n')
    here.write("three.json", '{"x": "three"}')
    assert _x(here, *typed, *more) == expected
    assert _typed_in_full(here, typed) == expected


def _typed_in_full(here: Here, typed: list[str]) -> str:
    """The same of `plan`, which goes through another parser than `validate`."""
    said = here.run("plan", *typed)
    assert said.code == 1
    return said.text.partition("x is ")[2].split()[0]


def test_values_from_a_pipe(here: Here) -> None:
    """`--var-file=<(…)` works with either form, whatever the pipe is called."""
    here.write("main.kf.hcl", MAIN)
    for text, expected in ((b'x = "pipe"\n', "pipe"), (b'{"x": "json"}', "json")):
        pipe = here.path / expected
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(text,))
        writer.start()
        assert _x(here, f"--var-file={pipe}") == expected
        writer.join(60)
        assert not writer.is_alive()


def _linked(here: Here, target: Path, name: str = "main.kf.hcl") -> str:
    (here.path / name).symlink_to(target)
    said = here.run("validate")
    assert said.code == 1
    return said.text


def test_links_inside_the_root_are_followed(here: Here) -> None:
    """A shared file may stand elsewhere in the repository; it has the link's name."""
    (here.path / ".git").mkdir()
    here.write("shared/x.hcl", MAIN)
    team = here.path / "team"
    team.mkdir()
    (team / "main.kf.hcl").symlink_to("../shared/x.hcl")
    here.monkeypatch.chdir(team)
    text = here.run("validate").text
    assert "x is default" in text
    assert "main.kf.hcl:4:1" in text


def test_links_out_of_the_root_are_refused(
    here: Here, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A hostile change must not show another folder's files in an error."""
    outside = tmp_path_factory.mktemp("outside") / "secrets.txt"
    outside.write_text("password hunter2\n")
    said = _linked(here, outside)
    assert '"main.kf.hcl" leads out of the root of the configuration' in said
    assert "hunter2" not in said
    assert str(outside) not in said
    assert "the nearest folder upwards that holds .git" in said


def test_links_to_what_is_no_file(here: Here) -> None:
    """A link to nothing, to itself or to a device ends with a sentence."""
    assert '"main.kf.hcl" is a link that leads nowhere' in _linked(here, here.path / "nothing")
    (here.path / "main.kf.hcl").unlink()
    assert '"main.kf.hcl" is a link that leads to itself' in _linked(here, Path("main.kf.hcl"))
    (here.path / "main.kf.hcl").unlink()
    os.mkfifo(here.path / "main.kf.hcl")
    assert '"main.kf.hcl" is not a regular file' in here.run("validate").text


def test_closed_folders_are_not_read(here: Here) -> None:
    """What git keeps, such as a token in its settings, is no configuration."""
    here.write(".git/config", "token = hunter2\n")
    said = _linked(here, here.path / ".git" / "config")
    assert "is in a folder that configuration must not read" in said
    assert "hunter2" not in said


def test_folders_with_such_names_are_passed_over(here: Here) -> None:
    """A folder called old.tf is no file of the configuration."""
    here.write("main.kf.hcl", MAIN)
    (here.path / "old.kf.hcl").mkdir()
    assert _x(here) == "default"
