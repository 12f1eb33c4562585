"""Running without the rights of root, which is never refused a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def nobody() -> Iterator[None]:
    """As a user who owns nothing."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@contextmanager
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that nobody may reach too; the current one, removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="kafkaform-test-"))
    folder.chmod(0o755)
    monkeypatch.chdir(folder)
    try:
        yield folder
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
