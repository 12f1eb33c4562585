"""A folder whose configuration uses the example of the guide, and a store for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform_textstore.server import Item, Server, Store, User

from ...kit.http.store import install

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "provider"
ADMIN, READER = User("admin"), User("reader", "public/")


class Faulty(Server):
    """A server whose store may break down while it works: the connection ends without an answer."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the tests read what commands print."""


@dataclass
class Answered:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything, without the line breaks and bars that only the width of a screen needs."""
        return " ".join((self.out + self.err).replace("│", " ").split())


@dataclass
class Folder:
    """path: the current folder; server: the store that its provider block names."""

    path: Path
    server: Server
    capsys: pytest.CaptureFixture[str]

    @property
    def store(self) -> Store:
        return self.server.store

    def write(self, text: str, name: str = "main.kf.hcl") -> None:
        (self.path / name).write_text(text)

    def connect(self, alias: str = "", url: str = "") -> str:
        """A provider block."""
        also = f'alias = "{alias}"' if alias else ""
        return (
            f'provider "textstore" {{\n  {also}\n  url = "{url or self.server.url}"\n'
            '  token = secret_env("TEXTSTORE_TOKEN")\n  timeout = 1\n}\n'
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """Type a command that must end with this code; what it said."""
        self.capsys.readouterr()
        ended = run_command_line(arguments)
        answered = Answered(ended, *self.capsys.readouterr())
        assert "Traceback" not in answered.text
        assert answered.code == code, answered.text
        return answered.text

    def destroy(self) -> str:
        """Destroy everything, as a pipeline does."""
        return self.run("destroy", "--confirm", self.store.id)

    def put(self, do: str, kind: str, name: str, **given: Any) -> None:
        """Change the store behind kafkaform's back."""
        operation: Item = {"do": do, "kind": kind, "name": name, **given}
        assert self.store.write(ADMIN, [operation])[0]["code"] == "ok"


@pytest.fixture
def server() -> Iterator[Server]:
    """A store on this computer."""
    users = {"admin-token": ADMIN, "reader-token": READER}
    with Faulty(Store(users)) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def folder(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Folder:
    """An empty folder; the example's package is installed as far as kafkaform can see."""
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("TEXTSTORE_TOKEN", "admin-token")
    monkeypatch.setenv("NO_COLOR", "1")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return Folder(here, server, capsys)
