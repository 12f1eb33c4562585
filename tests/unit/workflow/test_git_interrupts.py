"""An interrupt while git works."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kafkaform.core.errors import Ended
from kafkaform.language.declare.modules import Package
from kafkaform.workflow.modules.installation import find_commit

from ...kit.interrupts import LatePopen, interrupt_once, is_closed


@pytest.mark.parametrize("when", ["it runs", "it runs, elsewhere", "it is being started"])
def test_an_interrupt_ends_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Also if the signal wakes another thread, and if git has begun before the system has told
    so."""
    held, begun, program = tmp_path / "alive", tmp_path / "begun", tmp_path / "bin" / "git"
    os.mkfifo(held)
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec 9>{held}; touch {begun}; sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    if when == "it is being started":
        monkeypatch.setattr(subprocess, "Popen", LatePopen)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with (
            interrupt_once(begun.exists, elsewhere=when == "it runs, elsewhere"),
            pytest.raises(Ended),
        ):
            find_commit(Package("git::https://git.example/modules.git", "v1"))
        assert is_closed(reader), "git is alive"
    finally:
        os.close(reader)
