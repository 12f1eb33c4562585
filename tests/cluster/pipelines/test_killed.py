"""Jobs that are killed or cancelled half-way, and run again on an empty disk."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ...kit.kafka.truth import observe
from ...kit.stores import s3
from ...kit.stores.runner import is_stopped
from .conftest import TIMEOUT, World
from .jobs import Ended, Runner, wiped
from .test_github import applied, planned

SECONDS = 60
MORE = {"KAFKAFORM_KAFKA_OPERATION_TIMEOUT": TIMEOUT}


def topic_ids(world: World) -> dict[str, str]:
    """Name -> id of the topics that there are."""
    found = observe(world.broker).topics("checkout.")
    return {name: topic.topic_id for name, topic in found.items()}


def merged(world: World, runner: Runner) -> tuple[str, str]:
    """A pull request that was planned and merged: its approval, and the commit."""
    head = runner.forge.change("partitions = 1", "partitions = 2")
    plan = planned(world, runner, head, 1)
    assert plan.code == 0, plan.said
    return plan.approval, runner.forge.merge(1)


def shell(world: World, runner: Runner, commit: str, approval: str) -> Ended:
    """The apply of a plain shell, in a new clone."""
    with runner.disk() as (clone, base):
        runner.forge.clone(commit, clone)
        env = {**base, **world.settings("writer"), "KAFKAFORM_EXPECT": approval}
        code, said = runner.command("exec ci/apply.sh", clone, env, "")
        return Ended(code, said, clone)


@pytest.mark.timeout(600)
def test_a_killed_job_is_run_again_on_an_empty_disk(world: World) -> None:
    """SIGKILL to everything, after the broker made the topics and before the log has it: the same
    job in a new clone waits until the dead run's lock ends, finds the topics, makes the rest, and
    makes nothing twice."""
    pids: list[int] = []
    runner = world.runner(world.forge("github"), began=pids.append, more=MORE)
    _, commit = merged(world, runner)

    def kill(_: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        if b'"kind":"outcome"' not in request.body or killed:
            return None
        killed.append(pids[-1])
        os.killpg(pids[-1], signal.SIGKILL)
        return s3.Answer(0, breaks=True)

    killed: list[int] = []
    world.bucket.always.append(kill)
    dead = applied(world, runner, commit)
    assert dead.code == -signal.SIGKILL and killed
    made = topic_ids(world)
    assert len(made) == 2 and world.acls() == 0
    wiped(dead)

    alive = applied(world, runner, commit)
    assert alive.code == 0, alive.said
    assert "Resuming run" in alive.said and "audit log is sound" in alive.said
    after = topic_ids(world)
    assert (after, world.acls()) == (made, 1)
    assert _ends(world) == {"outcome": 1, "recover": 2}


@pytest.mark.timeout(600)
def test_a_cancelled_job_is_run_again_on_an_empty_disk(world: World) -> None:
    """SIGTERM to the one process that a runner knows, while the first batch is under way: it is
    finished and saved, the lock is given back, and the same approval in a new clone does the
    rest."""
    pids: list[int] = []
    runner = world.runner(world.forge("github"), began=pids.append, more=MORE)
    approval, commit = merged(world, runner)

    def cancel(bucket: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        if b'"kind":"intent"' not in request.body or cancelled:
            return None
        cancelled.append(pids[-1])
        answer = bucket.serve(request)
        _forwarded(pids[-1], signal.SIGTERM)
        arrived.append(True)
        return answer

    cancelled: list[int] = []
    arrived: list[bool] = []
    world.bucket.always.append(cancel)
    stopped = shell(world, runner, commit, approval)
    assert arrived, "the signal was not passed on"
    assert stopped.code == 128 + signal.SIGTERM and "Cancelled" in stopped.said, stopped.said
    assert (len(world.topics()), world.acls()) == (2, 0)
    assert _ends(world) == {"outcome": 2}
    wiped(stopped)

    done = shell(world, runner, commit, approval)
    assert done.code == 0 and "Resuming run" in done.said, done.said
    assert world.acls() == 1
    assert _ends(world) == {"outcome": 3}


def _ends(world: World) -> Counter[str]:
    """How many intents ended in which way; each object was tried once."""
    records = world.records()
    tried = Counter(record.body["address"] for record in records if record.kind == "intent")
    assert set(tried.values()) <= {1}, tried
    return Counter(r.kind for r in records if r.kind in ("outcome", "recover"))


def _forwarded(entry: int, number: int) -> None:
    """Send a signal to the entry process of a job, and wait until its child has been sent it. The
    child stands still meanwhile, so that it goes no further before that."""
    child = int(Path(f"/proc/{entry}/task/{entry}/children").read_text().split()[0])
    os.kill(child, signal.SIGSTOP)
    try:
        _until(lambda: is_stopped(child))
        os.kill(entry, number)
        _until(lambda: bool(_pending(child) & 1 << number - 1))
    finally:
        os.kill(child, signal.SIGCONT)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "the signal was not passed on"
        time.sleep(0.01)


def _pending(pid: int) -> int:
    """The signals that wait for a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (mask,) = [line.split()[1] for line in lines if line.startswith("ShdPnd:")]
    return int(mask, 16)
