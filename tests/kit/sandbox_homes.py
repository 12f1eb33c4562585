"""Run folders go to a temporary home; downloaded jars stay in the user's cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform.sandbox import record
from kafkaform.sandbox.record import Broker, Phase, Ports, Sandbox

_USERS_CACHE = record.get_cache_folder()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """An empty home folder in which the jars are at hand."""
    with pytest.MonkeyPatch.context() as patch:
        move_home(patch, tmp_path)
        yield tmp_path


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same for a sandbox that the tests of a module share."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        move_home(patch, folder)
        yield folder


def move_home(patch: pytest.MonkeyPatch, folder: Path) -> None:
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "KAFKA_HOME"):
        patch.delenv(variable, raising=False)
    patch.setenv("HOME", str(folder))
    patch.setenv(record.CACHE_VARIABLE, str(_USERS_CACHE))


@pytest.fixture
def box(home: Path) -> Sandbox:
    """A sandbox on paper: nothing runs, nothing is on disk."""
    return Sandbox(
        name="paper",
        phase=Phase.RUNNING,
        cluster_id="AAAAAAAAAAAAAAAAAAAAAA",
        brokers=(Broker(1, Ports(20001, 20002, 20003)),),
        admin_password="admin-password",
        ci_password="ci-password",
        broker_password="broker-password",
        usable=True,
    )
