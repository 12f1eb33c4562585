"""Another cluster that begins to answer in the middle of a run gets nothing and is believed
nothing; `python -m tests.long swaps` lets it come with every request."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kafkaform_kafka.connection.settings import ClusterProof
from kafkaform_kafka.kinds.simulation import Lost, Unreachable
from kafkaform_kafka.memory import MemorySession

from ..crash import scenes
from . import swaps
from .swaps import WRITES

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.slow("plays an apply again for every request that it sends"),
]
SPARSE = 5
"""Of so many points one is tried; each fate comes, because there are not so many."""


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(scenes.PASSWORD, "secret-of-the-users")


@pytest.fixture(scope="module")
def begin(tmp_path_factory: pytest.TempPathFactory) -> swaps.Begin:
    """Makes lanes in which an apply comes that has everything to do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(scenes.PASSWORD, "secret-of-the-users")
        return swaps.keep(swaps.begin(tmp_path_factory.mktemp("swaps") / "begun"))


@pytest.fixture
def names(begin: swaps.Begin, tmp_path: Path) -> list[str]:
    """All requests of such an apply."""
    return swaps.requests(begin(tmp_path / "calm"))


def test_a_swap_at_a_request(names: list[str], begin: swaps.Begin, tmp_path: Path) -> None:
    """Whichever request of an apply another cluster comes with, whatever becomes of that request
    and whatever the other one has: it is sent nothing, the apply ends with 4, with 5 if something
    was applied or with 6 if something was on its way, a second one is refused, and with the right
    cluster back the five promises hold."""
    assert set(names) >= WRITES
    tally = swaps.strike_all(swaps.every(names)[1::SPARSE], tmp_path / "lanes", begin)
    print(dict(tally.codes), dict(tally.points))
    assert not tally.violations, "\n".join(tally.violations)
    ends = [tally.codes[code] for code in (swaps.REFUSED, swaps.PARTIAL, swaps.UNKNOWN)]
    assert all(ends) and sum(ends) > 50


@pytest.mark.parametrize("api", sorted(WRITES))
def test_a_swap_around_a_write(
    names: list[str], begin: swaps.Begin, tmp_path: Path, api: str
) -> None:
    """The same with each request that writes, and with the one before and after it, where the
    other cluster looks as if the plan had been applied to it, and as if it had not."""
    number = names.index(api)
    points = swaps.around((number - 1, number, number + 1))
    tally = swaps.strike_all(points, tmp_path / "lanes", begin)
    assert not tally.violations, "\n".join(tally.violations)


@pytest.mark.parametrize("deaf", [(ClusterProof, "refuse"), (MemorySession, "prove")])
def test_a_session_that_asks_and_does_not_listen_would_be_seen(
    names: list[str],
    begin: swaps.Begin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deaf: tuple[type, str],
) -> None:
    """Without the refusal, or without that of what was read, the same swaps show what breaks."""
    points = [p for p in swaps.every(names) if names[p.number] in ("CreateAcls", "DeleteAcls")]
    monkeypatch.setattr(*deaf, _asks_only)
    tally = swaps.strike_all(points, tmp_path / "lanes", begin)
    print("\n".join(tally.violations))
    assert tally.violations


def _asks_only(it: Any) -> None:
    if isinstance(it, MemorySession):
        with suppress(Lost, Unreachable):
            it._cluster.identify()
