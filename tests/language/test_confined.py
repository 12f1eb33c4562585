"""Files: functions read below the root and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkaform.language.confined import confined

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
    found = sound(text, read=confined(folder.parent, folder))
    assert [item.attributes["partitions"] for item in found.declared] == [1, 2]
    assert found.outputs[0].value == "- a\n- b\n"
    assert found.outputs[1].value == (True, False)
    (folder / "topics.csv").write_text("name,n\na,1\nb,3\n")
    assert sound(text, read=confined(folder.parent, folder)).digest != found.digest


REFUSED = {
    "../../secret.txt": "leads out of the root",
    "link": "leads out of the root",
    "/etc/hosts": "leads out of the root",
    "../.git/config": "may not read",
    "pipe": "is not a regular file",
    "nope.txt": "there is no file",
}


@pytest.mark.parametrize("path", REFUSED)
def test_refused_paths(folder: Path, path: str) -> None:
    """A path that leads out, a device, and a missing file are refused with the reason."""
    text = f'locals {{ a = file("{path}") }}\n'
    (fault,) = desired(text, read=confined(folder.parent, folder)).diagnostics
    assert fault.summary == "file() cannot be computed"
    assert REFUSED[path] in fault.detail
    assert "secret\n" not in fault.detail


def test_turned_off() -> None:
    """Without a reader the functions say that they are turned off."""
    (fault,) = desired('locals { a = file("x") }\n').diagnostics
    assert "turned off" in fault.detail
