"""A state that an earlier version bound to a Connect cluster without its id: every command works
with it again, and the next apply that has proven the system records the whole id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform_connect import session
from kafkaform_connect.memory.workers import SimulatedWorkers

from ...kit.commands.fixtures import here  # noqa: F401  # pytest finds it here
from ...kit.commands.here import Here
from ...kit.connect.folder import answer, connector, make_workers
from ...kit.entry_point import offer_provider
from ...kit.http.server import Served, serving

PROVIDER = 'provider "kafka_connect" {{\n  url = "{}"\n  operation_timeout = 1\n}}\n'
HALF = "connect:"


@pytest.fixture
def workers() -> SimulatedWorkers:
    """What is behind the address."""
    return make_workers()


@pytest.fixture
def served(
    workers: SimulatedWorkers,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Served]:
    """Simulated workers behind a real connection."""
    site: Path = tmp_path_factory.mktemp("site")
    offer_provider("kafka_connect", site, monkeypatch)
    monkeypatch.setattr(session, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(session, "WAIT_SECONDS", 1.0)
    with serving(lambda request: answer(workers, request)) as served:
        yield served


@pytest.fixture
def folder(
    here: Here,  # noqa: F811  # the fixture
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
) -> Here:
    """Two connectors, applied while the Connect cluster had no id."""
    with monkeypatch.context() as patch:
        patch.setattr(session, "make_scope", lambda cluster_id, group_id: HALF)
        declare(here, served, "a", "b")
        assert here.run("apply", "-auto-approve").code == 0
    assert read_state(here)["providers"] == {"kafka_connect": HALF}
    return here


def declare(here: Here, served: Served, *names: str) -> None:  # noqa: F811
    blocks = [PROVIDER.format(served.url), *(connector(name) for name in names)]
    here.write("main.kf.hcl", "\n".join(blocks))


def read_state(here: Here) -> Any:  # noqa: F811
    return json.loads((here.path / "kafkaform.state.json").read_text("utf-8"))


def get_scope(here: Here) -> str:  # noqa: F811
    return str(read_state(here)["providers"]["kafka_connect"])


def test_a_plan_says_which_system_it_is_and_changes_nothing(folder: Here) -> None:
    """The whole id is for this plan; the state is left to the apply."""
    before = (folder.path / "kafkaform.state.json").read_bytes()
    answered = folder.run("plan", "-detailed-exitcode")
    assert answered.code == 0
    assert f'"kafka_connect" only as {HALF}, and it has proven to be connect:' in answered.text
    assert "The next apply records that." in answered.text
    assert (folder.path / "kafkaform.state.json").read_bytes() == before


def test_the_next_apply_binds_it_for_good(folder: Here, served: Served) -> None:
    """Also if nothing changes. What was ours stays ours: a connector whose block is gone is deleted
    by a later run, and the log proves all of it."""
    answered = folder.run("apply", "-auto-approve")
    assert answered.code == 0 and "The state records that now." in answered.text
    scope = get_scope(folder)
    assert scope.startswith("connect:") and scope != HALF
    assert folder.run("audit", "verify").code == 0
    declare(folder, served, "a")
    answered = folder.run("apply", "-auto-approve")
    assert answered.code == 0 and "only as" not in answered.text
    assert "1 destroyed" in answered.text
    assert [row["owners"][0] for row in read_state(folder)["objects"]] == [
        "kafka_connect_connector.a"
    ]


def test_a_state_from_a_backup_gets_the_id_from_the_log(folder: Here) -> None:
    """The record is enough: a state that lacks the edit takes it over."""
    state = folder.path / "kafkaform.state.json"
    before = state.read_bytes()
    assert folder.run("apply", "-auto-approve").code == 0
    scope = get_scope(folder)
    state.write_bytes(before)
    answered = folder.run("apply", "-auto-approve")
    assert answered.code == 0 and "only as" not in answered.text
    assert get_scope(folder) == scope


def test_a_system_without_the_recorded_objects_is_refused(
    folder: Here, workers: SimulatedWorkers
) -> None:
    """It may be another Connect cluster: nothing is bound, and nothing is sent."""
    workers.connectors.clear()
    for command in (["plan"], ["apply", "-auto-approve"]):
        answered = folder.run(*command)
        assert answered.code == 4
        assert "it shows none of the 2 recorded objects" in answered.text
        assert "kafkaform state rm --provider kafka_connect" in answered.text
    assert get_scope(folder) == HALF
    assert not workers.connectors
