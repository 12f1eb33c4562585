"""An apply that dies at any moment leaves nothing that the next one does not put right."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform.sandbox import Sandbox

from ...kit.kafka.clusters import HELD, own_sandbox
from ...kit.kafka.truth import observe
from ...kit.promises import pairs
from .kill_lane import KillLane, kill, strike_at_growth
from .kills import GROWTHS, SEED, killed, settled_lane

ROUNDS, LANES = 15, 3


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Sandbox]:
    """A broker of its own with topics that are nobody's business, names alike included."""
    with own_sandbox(f"kill-{os.getpid()}", config=HELD) as sandbox:
        foreign = {"bystander": (2, {"retention.ms": "1234567"}), "proof.kill-0s01": (1, {})}
        admin = observe(sandbox)
        admin.make(foreign)
        before = {name: admin.topics(name)[name] for name in foreign}
        yield sandbox
        assert {name: admin.topics(name)[name] for name in foreign} == before


@pytest.fixture
def lane(box: Sandbox, tmp_path: Path) -> KillLane:
    """A folder whose first round is applied."""
    return settled_lane(box, tmp_path, tmp_path.name)


@pytest.mark.timeout(600)
def test_kills(box: Sandbox, tmp_path: Path) -> None:
    """SIGKILL at random moments: running it again ends with every topic as declared, and the
    five promises of `tests.kit.promises` hold; `python -m tests.long kills` does more."""
    print(f"KAFKAFORM_PROOF_SEED={SEED}")
    begun = time.monotonic()
    found = killed(box, tmp_path, ROUNDS, LANES)
    seconds = time.monotonic() - begun
    print(f"{seconds:.0f} s, a full run {found.length:.1f} s; {dict(found.landed)}")
    assert not found.violations, "\n".join(found.violations)
    assert found.landed["open intents"] >= ROUNDS / 10
    assert found.landed.total() - found.landed["ended before"] >= ROUNDS * 2 / 3


@pytest.mark.timeout(200)
def test_sigterm(lane: KillLane) -> None:
    """SIGTERM while batches are sent ends the apply with 143 and everything recorded."""
    lane.prepare()
    process = lane.start()
    try:
        assert strike_at_growth(process, lane.folder, 2, 0.0, signal.SIGTERM)
        ended = process.finish()
    finally:
        kill(process)
    assert ended.code == 143, ended.out
    intents, ends = pairs(lane.folder.records())
    assert intents == ends
    lane.settle()
    lane.check()


@pytest.mark.timeout(200)
def test_two_at_once(lane: KillLane) -> None:
    """While one apply runs, another one on the same state gets 7, and harms nothing."""
    lane.prepare()
    first = lane.start()
    try:
        assert strike_at_growth(first, lane.folder, 1, 0.0, signal.SIGSTOP)
        second = lane.folder.apply()
        first.send_signal(signal.SIGCONT)
        ended = first.finish()
    finally:
        kill(first)
    assert second.code == 7, second.out
    assert ended.code == 0, ended.out
    lane.check()


@pytest.mark.timeout(200)
def test_started_together(lane: KillLane) -> None:
    """Of applies that start in the same moment one does the work; the others get 7, or come
    after it and find nothing to do."""
    for _ in range(3):
        lane.prepare()
        racers = [lane.start() for _ in range(3)]
        ended = [process.finish() for process in racers]
        codes = sorted(each.code for each in ended)
        assert codes[0] == 0 and set(codes) <= {0, 7}, [each.out for each in ended]
        lane.check()


@pytest.mark.timeout(300)
def test_resume(lane: KillLane) -> None:
    """A saved plan whose apply was killed is resumed by applying it again, wherever it stopped:
    it ends complete under its one approval, and a third time there is nothing left of it."""
    for growth in range(1, GROWTHS):
        lane.prepare()
        saved = lane.folder.run("plan", "-out=saved.plan")
        assert saved.code == 0, saved.out
        killed = lane.folder.start("apply", "saved.plan")
        try:
            strike_at_growth(killed, lane.folder, growth, 0.002, signal.SIGKILL)
        finally:
            kill(killed)
        for _ in range(2):
            ended = lane.folder.run("apply", "saved.plan")
            assert ended.code == 0, f"killed at growth {growth}:\n{ended.out}"
        (lane.folder.path / "saved.plan").unlink()
        lane.check()


@pytest.mark.timeout(200)
def test_leftovers(lane: KillLane) -> None:
    """Temporary files of a run that was killed while it wrote them are gone after the next one,
    and so is half a record at the end of the log, which is kept aside and told of."""
    for name in (".kafkaform.state.json", ".kafkaform.audit.jsonl", ".kafkaform/.torn-9"):
        (lane.folder.path / f"{name}.0123456789ab.tmp").write_bytes(b"half")
    with lane.folder.log.open("ab") as log:
        log.write(b'{"actor":"somebo')
    lane.prepare()
    lane.settle()
    lane.check()
    aside = list((lane.folder.path / ".kafkaform").glob("torn-*"))
    assert [path.read_bytes() for path in aside] == [b'{"actor":"somebo']
