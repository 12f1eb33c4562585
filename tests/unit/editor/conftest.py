"""An editor with a folder of its own for each test, in front of one server for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ...kit.commands.fixtures import here
from ...kit.editor import Editor

__all__ = ["editor", "here", "shared_editor"]


@pytest.fixture(scope="session")
def shared_editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """A server that ends as it should, and that has written nothing but answers."""
    opened = Editor(tmp_path_factory.mktemp("editor"))
    yield opened
    opened.close()
    assert opened.code == 0
    assert opened.errors == ""


@pytest.fixture
def editor(shared_editor: Editor, tmp_path: Path) -> Iterator[Editor]:
    """An editor with an empty folder, in which no file is open; it gets no message at the end."""
    shared_editor.enter(tmp_path)
    yield shared_editor
    assert shared_editor.shown == []
