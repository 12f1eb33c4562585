"""Commands on simulated workers behind a real HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kafkaform_connect import session

from ...kit.commands.fixtures import here  # noqa: F401  # pytest finds it here
from ...kit.commands.here import Here
from ...kit.connect.folder import SECRET, ConnectFolder, answer, make_workers
from ...kit.entry_point import offer_provider
from ...kit.http.server import serving


@pytest.fixture
def folder(
    here: Here,  # noqa: F811  # the fixture
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ConnectFolder]:
    """Nothing is declared yet, and the workers run nothing."""
    site: Path = tmp_path_factory.mktemp("site")
    offer_provider("kafka_connect", site, monkeypatch)
    monkeypatch.setenv("CONNECT_SECRET", SECRET)
    monkeypatch.setattr(session, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(session, "WAIT_SECONDS", 1.0)
    workers = make_workers()
    with serving(partial(answer, workers)) as served:
        yield ConnectFolder(here, served, workers)
