"""Modules from Git in an editor: locked ones are read, and nothing is fetched or changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ...kit.editor import Editor
from ...kit.git_origin import TOPIC, Origin, call

FILE = "main.kf.hcl"
PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'


def write_caller(text: str, path: Path) -> str:
    """A configuration that calls a module of a repository with this text."""
    origin = Origin.make(path / "origin")
    origin.commit({"topic/main.kf.hcl": text}, tag="v1")
    source = f"{origin.source}//topic?ref=v1"
    return PROVIDER + call("orders", source, name='"orders"')


def fetch(editor: Editor) -> None:
    words = (sys.executable, "-m", "kafkaform", "init", "--modules-only")
    subprocess.run(words, cwd=editor.folder, check=True, capture_output=True)


def test_a_module_that_is_not_locked_is_not_fetched(editor: Editor, tmp_path: Path) -> None:
    text = write_caller(TOPIC, tmp_path / "elsewhere")
    editor.open(FILE, text)
    (fault,) = editor.wait_for_faults(FILE, bool)
    assert "kafkaform init" in fault.message
    assert not (editor.folder / "kafkaform.modules.json").exists()


def test_a_locked_module_is_checked_and_not_edited(editor: Editor, tmp_path: Path) -> None:
    """Its arguments are known, and what it declares is no place that an editor could open."""
    text = write_caller(TOPIC, tmp_path / "elsewhere")
    editor.write(FILE, text)
    fetch(editor)
    editor.open(FILE, text)
    assert editor.wait_for_faults(FILE, lambda found: True) == []
    editor.type(FILE, text.replace("  name =", "  nmae ="))
    (fault, *_) = editor.wait_for_faults(FILE, bool)
    assert "nmae" in fault.message or "name" in fault.message
    assert editor.define(FILE, text.replace("git::", "g|it::")) == []
    assert editor.define(FILE, text.replace("  name =", "  n|ame =")) == []


def test_a_fault_in_a_module_is_shown_in_the_open_file(editor: Editor, tmp_path: Path) -> None:
    text = write_caller(TOPIC.replace("var.name", '"${var.name}x"'), tmp_path / "elsewhere")
    editor.write(FILE, text)
    fetch(editor)
    editor.open(FILE, text.replace('"orders"\n', '"or ders"\n'))
    (fault,) = editor.wait_for_faults(FILE, bool)
    assert "?ref=v1//topic/main.kf.hcl:4:" in fault.message.partition("\n")[0]
