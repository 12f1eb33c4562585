"""A job that applies is killed at each of its writes to the store, before and after the store has
done it, and run again on an empty disk."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

from ..cluster.pipelines.conftest import World, opened
from ..cluster.pipelines.jobs import Runner, wiped
from ..cluster.pipelines.test_killed import MORE, merged, shell, topic_ids
from ..kit.kafka.clusters import HELD, own_sandbox
from ..kit.stores import s3
from .figures import Figures

MOST = 60
"""Writes of one apply, at most; it ends by itself before."""


def run(scale: float) -> Figures:
    """scale: 1 is every write; a half is every second one."""
    began, counts, broken = time.monotonic(), Counter[str](), list[str]()
    step = max(1, round(1 / scale))
    with (
        own_sandbox(f"pipes-{os.getpid()}", config=HELD) as box,
        tempfile.TemporaryDirectory() as folder,
        opened(box, Path(folder)) as world,
    ):
        pids: list[int] = []
        runner = world.runner(world.forge("github"), began=pids.append, more=MORE)
        approval, commit = merged(world, runner)
        for done in (False, True):
            for number in range(0, MOST, step):
                world.clear()
                if not _killed(world, runner, pids, (commit, approval), number, done=done):
                    break
                counts["jobs killed"] += 1
                fault = _again(world, runner, commit, approval)
                if fault:
                    broken.append(f"write {number}, {done=}: {fault}")
                counts["records"] += len(world.records())
    return Figures("pipelines", counts, tuple(broken), time.monotonic() - began)


def _killed(
    world: World, runner: Runner, pids: list[int], what: tuple[str, str], number: int, *, done: bool
) -> bool:
    """Whether the job was killed at that write. done: after the store did it."""
    seen: list[str] = []

    def kill(bucket: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        if request.method not in ("PUT", "DELETE"):
            return None
        seen.append(request.key)
        if len(seen) != number + 1:
            return None
        if done:
            bucket.serve(request)
        os.killpg(pids[-1], signal.SIGKILL)
        return s3.Answer(0, breaks=True)

    world.bucket.always.append(kill)
    ended = shell(world, runner, *what)
    world.bucket.always.remove(kill)
    wiped(ended)
    return ended.code == -signal.SIGKILL


def _again(world: World, runner: Runner, commit: str, approval: str) -> str:
    """What is wrong after the same job in a new clone; empty if nothing is."""
    before = topic_ids(world)
    ended = shell(world, runner, commit, approval)
    wiped(ended)
    after = topic_ids(world)
    if ended.code:
        return f"the second run ended with {ended.code}: {ended.said[-300:]}"
    if len(after) != 2 or world.acls() != 1 or not before.items() <= after.items():
        return f"{before} became {after}, with {world.acls()} ACLs"
    try:
        applied = Counter(
            record.body["address"]
            for record in world.records()
            if record.kind in ("outcome", "recover") and record.body["outcome"] == "applied"
        )
    except AssertionError as fault:
        return f"the log is not sound: {fault}"
    twice = [address for address, times in applied.items() if times > 1]
    return f"applied more than once: {twice}" if twice or len(applied) != 3 else ""
