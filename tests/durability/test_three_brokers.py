"""Brokers that die under an apply: it ends with a code and a line that say how things stand, and
with the brokers back the same command does the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.proof.cluster import client, make, read

from .brokers import Brokers, three_brokers
from .wide import Round, Wide, lane, struck

pytestmark = pytest.mark.timeout(300)
BYSTANDER = {"bystander": (2, {"retention.ms": "1234567"})}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    """Three, with a topic that is nobody's business."""
    with three_brokers(f"three-{os.getpid()}") as three:
        admin = client(three.box)
        make(admin, BYSTANDER)
        before = read(admin, "bystander")
        yield three
        assert read(admin, "bystander") == before


@pytest.fixture(scope="module")
def lanes(brokers: Brokers, tmp_path_factory: pytest.TempPathFactory) -> list[Wide]:
    """One folder names all brokers, the other one only the first of them."""
    home = tmp_path_factory.mktemp("three")
    return [
        lane(brokers, home / "all", "all", "all"),
        lane(brokers, home / "one", "one", "one", brokers.address(1)),
    ]


def holds(done: Round) -> None:
    assert not done.violations, "\n".join(done.violations)
    assert [ended.code for ended in done.last] == [0] * len(done.last)


def test_the_active_controller_is_killed(brokers: Brokers, lanes: list[Wide]) -> None:
    """In the middle of two applies: both end with a documented code, and the next ones with 0."""
    leads = brokers.controller()
    holds(struck(lanes, lambda: brokers.kill(leads), brokers.revive, 2))
    assert brokers.controller() != leads


def test_the_broker_that_is_named_is_killed(brokers: Brokers, lanes: list[Wide]) -> None:
    """The only one of `bootstrap_servers` dies once the run has begun: the others do the work."""
    done = struck(lanes[1:], lambda: brokers.kill(1), brokers.revive, 2)
    holds(done)


def test_all_are_restarted(brokers: Brokers, lanes: list[Wide]) -> None:
    """SIGKILL for all three at once; they come back while the applies still run."""

    def restart() -> None:
        brokers.kill(*brokers.ids)
        brokers.revive()

    holds(struck(lanes, restart, brokers.revive, 3))
