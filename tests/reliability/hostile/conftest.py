"""Folders to be hostile in: one with the shared broker, one with a listener that counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ...kit.commands.fixtures import admin, folder  # noqa: F401  # pytest finds them here
from ...kit.commands.here import Here
from ...kit.listener import Listener


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    """A checkout without a cluster."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path, capsys, monkeypatch)


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A host that collects what is sent to it."""
    made = Listener()
    yield made
    made.close()
