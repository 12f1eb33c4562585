"""A repository of many folders on a real broker: requests counted on the wire, and folders that
fail alone."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..kit.commands.process_folder import PROVIDER, Folder
from ..kit.kafka.clusters import own_sandbox
from ..kit.proxy.proxy import Proxy, proxying
from ..kit.simulated.repository import FILE, write_topics

FOLDERS, TOPICS = 64, 3
LOGIN = """security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("PROOF_PASSWORD")
"""


class Repository:
    """A repository, and the folder `alone` beside it that declares all of its topics."""

    def __init__(self, top: Path, proxy: Proxy, password: str) -> None:
        self.path, self.proxy = top / "repository", proxy
        self.all = Folder(self.path, proxy.bootstrap, password)
        self.alone = Folder(top / "alone", proxy.bootstrap, password)
        self.teams = [f"team{number:02}" for number in range(FOLDERS)]
        self.path.mkdir()
        file = FILE.replace('["prod:9093"]', f'["{proxy.bootstrap}"]\n  {LOGIN}')
        (self.path / "kafkaform.hcl").write_text(file)
        self.alone.path.mkdir()
        provider = PROVIDER.format(bootstrap=proxy.bootstrap, timeout="30s")
        (self.alone.path / "provider.kf.hcl").write_text(provider)
        for team in self.teams:
            names = [f"{team}.t{number}" for number in range(TOPICS)]
            text = (write_topics(self.path, team, *names) / "main.kf.hcl").read_text()
            unique = text.replace('"kafka_topic" "', f'"kafka_topic" "{team}_')
            (self.alone.path / f"{team}.kf.hcl").write_text(unique)

    def plan(self, folder: Folder, *words: str, code: int = 0) -> tuple[Counter[str], str]:
        """A plan; its requests, and what it printed."""
        self.proxy.take()
        said = folder.run("plan", "--no-color", *words)
        assert said.code == code, said.out
        return self.proxy.take(), said.out


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, own_brokers: None) -> Iterator[Repository]:
    top = tmp_path_factory.mktemp("folders")
    with (
        own_sandbox(f"folders-{os.getpid()}") as box,
        proxying(box.brokers[0].ports.client) as proxy,
    ):
        yield Repository(top, proxy, box.admin_password)


def assert_as_few(shared: Counter[str], one: Counter[str]) -> None:
    assert one["SaslAuthenticate"] == shared["SaslAuthenticate"] == 1, (one, shared)
    assert sum(shared.values()) <= 1.2 * sum(one.values()), (one, shared)


def test_many_folders_ask_what_one_folder_asks(repository: Repository) -> None:
    """One login, and at most 1.2 times the requests of one folder with the same topics: for new
    topics and for topics that are there."""
    one, text = repository.plan(repository.alone)
    assert f"Plan: {FOLDERS * TOPICS} to add" in text
    shared, text = repository.plan(repository.all, "--all")
    assert f"Plan of {FOLDERS} folders: {FOLDERS * TOPICS} to add" in text
    assert_as_few(shared, one)
    assert repository.alone.apply().code == 0
    (repository.alone.path / "kafkaform.state.json").unlink()
    (repository.alone.path / "kafkaform.audit.jsonl").unlink()
    one, text = repository.plan(repository.alone, "--adopt=*")
    assert f"{FOLDERS * TOPICS} to adopt" in text
    shared, text = repository.plan(repository.all, "--all", "--adopt=*")
    assert text.count(f", {TOPICS} to adopt.") == FOLDERS
    assert_as_few(shared, one)


def read_summary(text: str) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(text.splitlines()[-1])["repository"]
    return summary


def test_folders_fail_alone(repository: Repository) -> None:
    """One that does not parse, one whose state cannot be read, and one whose cluster does not
    answer: all others are planned, and the exit code is the gravest."""
    teams = repository.path / "teams"
    (teams / "team00/main.kf.hcl").write_text('resource "kafka_topic" "a" {\n  name = "a\n}\n')
    (teams / "team01/kafkaform.state.json").write_text("no state")
    own = PROVIDER.format(bootstrap="127.0.0.1:9", timeout="2s")
    (teams / "team02/provider.kf.hcl").write_text(own)
    _, text = repository.plan(repository.all, "--all", "--json", "--adopt=*", code=9)
    summary = read_summary(text)
    failed = {item["folder"]: item["exit_code"] for item in summary["folders"] if item["error"]}
    assert failed == {"teams/team00": 1, "teams/team01": 9, "teams/team02": 1}
    assert summary["failed"] == 3
    planned = [item for item in summary["folders"] if item["planned"]]
    assert len(planned) == FOLDERS - 3 and all(item["applicable"] for item in planned)
