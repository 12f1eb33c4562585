"""Folders in which commands are typed: connected to the shared broker, or without a cluster."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ...conftest import Broker
from ..kafka.logins import admin_login, open_client
from .folder import Folder
from .here import Here


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    """Another client with all rights, for what happens behind kafkaform's back."""
    return open_client(broker, admin_login(broker))


@pytest.fixture
def folder(
    broker: Broker,
    admin: AdminClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Folder]:
    """An empty folder with a connection; topics made in it have names of their own."""
    for name in ("NO_COLOR", "GITHUB_ACTOR", "GITLAB_USER_LOGIN", "KAFKAFORM_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ADMIN_PASSWORD", broker.admin_password)
    monkeypatch.chdir(tmp_path)
    made = Folder(tmp_path, f"cli-{uuid.uuid4().hex[:10]}.", broker, admin, capsys, monkeypatch)
    made.connect()
    yield made
    made.clean()


@pytest.fixture
def planned(folder: Folder) -> Folder:
    """One topic is applied, and `plan.kfplan` would change its config and add another."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    folder.declare("a", "b", more='config = { "retention.ms" = "1000000" }')
    folder.done("plan", "-out=plan.kfplan")
    return folder


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    """An empty folder without a cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return Here(tmp_path, capsys, monkeypatch)
