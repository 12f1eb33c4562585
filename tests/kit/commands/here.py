"""A folder without a cluster, in which commands that need none are typed."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafkaform.cli.app import run_command_line

from .folder import Said


@dataclass
class Here:
    """path: the folder; it is the current one."""

    path: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def write(self, name: str, text: str | bytes) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def run(self, *arguments: str, stdin: str | bytes = b"") -> Said:
        """Type a command; what it answered."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
        self.capsys.readouterr()
        code = run_command_line(arguments)
        captured = self.capsys.readouterr()
        said = Said(code, captured.out, captured.err)
        assert "Traceback" not in said.text, said.out + said.err
        assert "failed unexpectedly" not in said.text, said.text
        return said

    def done(self, *arguments: str, stdin: str | bytes = b"") -> Said:
        """Type a command that must succeed."""
        said = self.run(*arguments, stdin=stdin)
        assert said.code == 0, said.text
        return said

    def fails(self, *arguments: str, code: int = 1, stdin: str | bytes = b"") -> str:
        """Type a command that must end with this code; what it said."""
        said = self.run(*arguments, stdin=stdin)
        assert said.code == code, said.text
        return said.text

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The JSON that a command prints."""
        said = self.run(*arguments)
        assert said.code == code, said.text
        return json.loads(said.out)

    def files(self) -> dict[str, bytes]:
        """Every file of the folder, by its path."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file()
        }
