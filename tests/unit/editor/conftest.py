"""An editor for each test, with a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ...kit.commands.fixtures import here
from ...kit.editor import Editor

__all__ = ["editor", "here"]


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    """An editor with an empty folder, and a server that ends as it should."""
    opened = Editor(tmp_path)
    yield opened
    opened.close()
    assert opened.code == 0
    assert opened.shown == []
    assert opened.errors == ""
