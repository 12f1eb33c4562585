"""What installs an extra: the command depends on how kafkaform was installed."""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafkaform.core import installation
from kafkaform.core.installation import render_extra_command

CHECKOUT = json.dumps({"url": "file:///src/kafka%20form", "dir_info": {"editable": True}})
FOLDER = json.dumps({"url": "file:///src/kafkaform", "dir_info": {}})
WHEEL = json.dumps({"url": "https://files.example/kafkaform-1.whl", "archive_info": {}})


@pytest.mark.parametrize(
    ("record", "marker", "command"),
    [
        (CHECKOUT, "", "/p/bin/python -m pip install -e '/src/kafka form[lsp]'"),
        (FOLDER, "", "/p/bin/python -m pip install '/src/kafkaform[lsp]'"),
        (None, "", "/p/bin/python -m pip install 'kafkaform[lsp]'"),
        (FOLDER, "pipx_metadata.json", "pipx install --force '/src/kafkaform[lsp]'"),
        (WHEEL, "pipx_metadata.json", f"pipx install --force '{json.loads(WHEEL)['url']}[lsp]'"),
        (None, "uv-receipt.toml", "uv tool install --force 'kafkaform[lsp]'"),
    ],
)
def test_the_command_is_that_of_this_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, record: str | None, marker: str, command: str
) -> None:
    """pipx, uv, pip, a checkout: the extra gets into the environment that runs now, from the place
    that this kafkaform came from."""
    prefix = tmp_path / "venvs/kafkaform"
    prefix.mkdir(parents=True)
    if marker:
        (prefix / marker).touch()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "executable", "/p/bin/python")
    package = SimpleNamespace(read_text=lambda _: record)
    monkeypatch.setattr(Distribution, "from_name", lambda _: package)
    assert render_extra_command("lsp") == command


def test_a_folder_on_the_search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that was never installed names its checkout."""

    def refuse(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(Distribution, "from_name", refuse)
    root = Path(installation.__file__).parents[2]
    assert render_extra_command("fleet").endswith(f" -m pip install '{root}[fleet]'")
