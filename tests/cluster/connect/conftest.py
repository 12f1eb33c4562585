"""A folder with both providers: the broker of the run, and the worker beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ...kit.commands.fixtures import admin, folder  # noqa: F401  # pytest finds them here
from ...kit.commands.folder import Folder
from ...kit.entry_point import offer_provider
from ...kit.servers import Worker, wait_until

PROVIDER = """
provider "kafka_connect" {{
  url               = "{url}"
  username          = "{user}"
  password          = secret_env("CONNECT_PASSWORD")
  operation_timeout = 20
}}
"""


REBALANCING = 409


@dataclass
class Stream:
    """folder: with provider blocks for both; prefix: of all names."""

    folder: Folder
    worker: Worker

    @property
    def prefix(self) -> str:
        return self.folder.prefix

    def declare(self, *blocks: str) -> None:
        """Write the configuration."""
        self.folder.write("main.kf.hcl", "\n".join(blocks).replace("PREFIX-", self.prefix))

    def ask(self, method: str, path: str, body: object = None) -> object:
        """What the worker answers to another client; None if it is an error. A rebalance, which
        refuses everything for a moment, is waited for."""
        answers: list[tuple[int, object]] = []

        def is_answered() -> bool:
            answers[:] = [self.worker.open_client().ask(method, path, body)]
            return answers[0][0] != REBALANCING

        wait_until(is_answered)
        status, document = answers[0]
        return document if status < 400 else None

    def has_state(self, name: str, state: str, tasks: int | None = None) -> bool:
        """True if the connector and its tasks are in this state. name: without the prefix."""
        found = self.ask("GET", f"/connectors/{self.prefix}{name}/status")
        if not isinstance(found, dict):
            return False
        states = [one["state"] for one in found["tasks"]]
        many = len(states) if tasks is None else tasks
        return found["connector"]["state"] == state and states == [state] * many

    def clean(self) -> None:
        """Delete what is left of the connectors, and wait until they are gone."""
        names = self.ask("GET", "/connectors")
        assert isinstance(names, list)
        left = [name for name in names if name.startswith(self.prefix)]
        for name in left:
            wait_until(lambda name=name: self._delete(name))

    def _delete(self, name: str) -> bool:
        # A rebalance refuses it for a moment.
        status, _ = self.worker.open_client().ask("DELETE", f"/connectors/{name}")
        return status in (204, 404)


@pytest.fixture
def stream(
    folder: Folder,  # noqa: F811  # the fixture
    connect: Worker,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stream]:
    """Nothing is declared yet."""
    site: Path = tmp_path_factory.mktemp("site")
    offer_provider("kafka_connect", site, monkeypatch)
    monkeypatch.setenv("CONNECT_PASSWORD", connect.password)
    folder.write("connect.kf.hcl", PROVIDER.format(url=connect.url, user=connect.username))
    made = Stream(folder, connect)
    yield made
    made.clean()
