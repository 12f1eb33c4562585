"""A folder without configuration beside a real cluster that the command line names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..kafka.logins import Login, admin_login
from .folder import Folder, Said

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Bare:
    """home: what XDG_STATE_HOME names; config: a file of properties for the user `admin`. Commands
    run as `admin`, or as a user of the test."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.home = folder.path / "home"
        self.config = self.properties(admin_login(folder.broker))
        (folder.path / "provider.kf.hcl").unlink()
        folder.monkeypatch.setenv("XDG_STATE_HOME", str(self.home))

    def properties(self, who: Login) -> Path:
        """A --command-config for this user."""
        module = LOGIN if who.mechanism == "PLAIN" else SCRAM
        return self.folder.write(
            f"{who.user}.properties",
            f"bootstrap.servers={self.folder.broker.bootstrap}\n"
            "security.protocol=SASL_PLAINTEXT\n"
            f"sasl.mechanism={who.mechanism}\nrequest.timeout.ms=10000\n"
            f"sasl.jaas.config={module} required \\\n"
            f'  username="{who.user}" password="{who.password}";\n',
        )

    def run(self, *arguments: str, user: Login | None = None) -> Said:
        config = self.properties(user) if user else self.config
        return self.folder.run(*arguments, "--command-config", str(config))

    def done(self, *arguments: str, user: Login | None = None) -> Said:
        said = self.run(*arguments, user=user)
        assert said.code == 0, said.text
        return said

    def fails(self, code: int, *arguments: str, user: Login | None = None) -> str:
        said = self.run(*arguments, user=user)
        assert said.code == code, said.text
        return said.text

    def document(self, *arguments: str, user: Login | None = None) -> Any:
        """The document that `describe … --json` prints."""
        return json.loads(self.done("describe", *arguments, "--json", user=user).out)

    @property
    def cluster(self) -> Path:
        """Where the cluster's state and log are."""
        return self.home / "kafkaform" / "clusters" / self.folder.broker.cluster_id

    def records(self, kind: str = "") -> list[dict[str, Any]]:
        lines = (self.cluster / "kafkaform.audit.jsonl").read_bytes().splitlines()
        return [r for r in map(json.loads, lines) if kind in ("", r["kind"])]


@pytest.fixture
def bare(folder: Folder) -> Bare:
    """See `Bare`."""
    return Bare(folder)
