"""An apply that dies at any moment leaves nothing that the next one does not put right."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from kafkaform.sandbox import Sandbox

from .cluster import client, make, own_sandbox, read
from .desire import Desire
from .folder import Folder, finish, pairs
from .lane import Lane, kill, strike_at_growth, strike_later
from .running import Running

ROUNDS, LANES = 50, 3
GROWTHS = 8
"""How often the log of one such apply grows: the run's head, then intents and outcomes."""
OPERATION_TIMEOUT = "3s"
SEED = int(os.environ.get("KAFKAFORM_PROOF_SEED", "20260101"))

Strike = Callable[[Running, Lane, float], bool]


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    """A broker of its own with topics that are nobody's business, names alike included."""
    with own_sandbox(f"kill-{os.getpid()}") as sandbox:
        foreign = {"bystander": (2, {"retention.ms": "1234567"}), "proof.kill-0s01": (1, {})}
        admin = client(sandbox)
        make(admin, foreign)
        before = {name: read(admin, name)[name] for name in foreign}
        yield sandbox
        assert {name: read(admin, name)[name] for name in foreign} == before


@pytest.fixture
def lane(box: Sandbox, tmp_path: Path) -> Lane:
    """A folder whose first round is applied."""
    return settled_lane(box, tmp_path, tmp_path.name)


def settled_lane(box: Sandbox, path: Path, name: str) -> Lane:
    path.mkdir(exist_ok=True)
    folder = Folder(path, box.bootstrap, box.admin_password, OPERATION_TIMEOUT)
    lane = Lane(folder, client(box), Random(f"{SEED}/{name}"), Desire(f"proof.kill-{name}-"))
    lane.prepare()
    lane.settle()
    lane.check()
    return lane


def strike(lane: Lane, length: float, number: int) -> bool:
    """Begin an apply and send it the signal at a moment drawn at random: somewhere on the clock,
    or right after the log grew. True if it was still running then."""
    random = lane.random
    clock, share = random.random() < 0.4, random.uniform(0.3, 1.1)
    growth, delay = random.randint(1, GROWTHS), random.choice((0.0, 0.005, 0.02, 0.05))
    process = lane.start()
    try:
        if clock:
            return strike_later(process, length * share, number)
        return strike_at_growth(process, lane.folder, growth, delay, number)
    finally:
        ended = finish(process)
        assert "Traceback" not in ended.out, ended.out


def where(lane: Lane) -> str:
    """What the apply that was struck left behind."""
    records = lane.folder.records(struck=True)
    intents, ends = pairs(records)
    if intents - ends:
        return "open intents"
    last = records[-1] if records else None
    state = lane.folder.state()
    head = state.audit_head if state else None
    if last is not None and last.kind in ("outcome", "recover"):
        return "state saved" if head and head.seq == last.seq else "outcome not in the state"
    return str(last.kind) if last is not None else "nothing"


def rounds(lane: Lane, numbers: range, length: float) -> Counter[str]:
    """These rounds one after the other; where the signals landed."""
    landed: Counter[str] = Counter()
    for number in numbers:
        lane.prepare()
        struck = strike(lane, length, signal.SIGKILL)
        landed[where(lane) if struck else "ended before"] += 1
        if number % 5 == 0 and strike(lane, length, signal.SIGKILL):
            landed["again, while recovering"] += 1
        lane.settle()
        lane.check()
    return landed


@pytest.mark.timeout(600)
def test_fifty_kills(box: Sandbox, tmp_path: Path) -> None:
    """SIGKILL at 50 random moments: running it again ends with every topic as declared, one
    outcome for each intent, a valid chain, a state equal to the cluster, and nothing to do."""
    print(f"KAFKAFORM_PROOF_SEED={SEED}")
    begun = time.monotonic()
    with ThreadPoolExecutor(LANES) as pool:
        folders = [tmp_path / str(number) for number in range(LANES)]
        lanes = list(pool.map(lambda path: settled_lane(box, path, path.name), folders))
        for each in lanes:
            each.prepare()
        measured = time.monotonic()
        list(pool.map(Lane.settle, lanes))
        length = time.monotonic() - measured
        shares = [range(n, ROUNDS, LANES) for n in range(LANES)]
        found = list(pool.map(lambda lane, share: rounds(lane, share, length), lanes, shares))
    landed = sum(found, Counter())
    print(f"{time.monotonic() - begun:.0f} s, a full run {length:.1f} s; {dict(landed)}")
    assert landed["open intents"] >= ROUNDS / 10
    assert landed["ended before"] <= ROUNDS / 3


@pytest.mark.timeout(200)
def test_sigterm(lane: Lane) -> None:
    """SIGTERM while batches are sent ends the apply with 143 and everything recorded."""
    lane.prepare()
    process = lane.start()
    try:
        assert strike_at_growth(process, lane.folder, 2, 0.0, signal.SIGTERM)
        ended = finish(process)
    finally:
        kill(process)
    assert ended.code == 143, ended.out
    intents, ends = pairs(lane.folder.records())
    assert intents == ends
    lane.settle()
    lane.check()


@pytest.mark.timeout(200)
def test_two_at_once(lane: Lane) -> None:
    """While one apply runs, another one on the same state gets 7, and harms nothing."""
    lane.prepare()
    first = lane.start()
    try:
        assert strike_at_growth(first, lane.folder, 1, 0.0, signal.SIGSTOP)
        second = lane.folder.apply()
        first.send_signal(signal.SIGCONT)
        ended = finish(first)
    finally:
        kill(first)
    assert second.code == 7, second.out
    assert ended.code == 0, ended.out
    lane.check()


@pytest.mark.timeout(200)
def test_started_together(lane: Lane) -> None:
    """Of applies that start in the same moment one does the work; the others get 7, or come
    after it and find nothing to do."""
    for _ in range(3):
        lane.prepare()
        racers = [lane.start() for _ in range(3)]
        ended = [finish(process) for process in racers]
        codes = sorted(each.code for each in ended)
        assert codes[0] == 0 and set(codes) <= {0, 7}, [each.out for each in ended]
        lane.check()


@pytest.mark.timeout(300)
def test_resume(lane: Lane) -> None:
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
def test_leftovers(lane: Lane) -> None:
    """Temporary files of a run that was killed while it wrote them are gone after the next one,
    and so is half a record at the end of the log, which is kept aside and told of."""
    for name in ("kafkaform.state.json", "kafkaform.audit.jsonl"):
        (lane.folder.path / f".{name}.0123456789ab.tmp").write_bytes(b"half")
    with lane.folder.log.open("ab") as log:
        log.write(b'{"actor":"somebo')
    lane.prepare()
    lane.settle()
    lane.check()
    aside = list((lane.folder.path / ".kafkaform").glob("torn-*"))
    assert [path.read_bytes() for path in aside] == [b'{"actor":"somebo']
