"""States and logs of many folders in a store: each state is loaded once, and what waits for the
store does so side by side. The store is a double on this computer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event

import pytest

import kafkaform
from kafkaform.workflow.repository.folders import OpenRepository

from ...kit.simulated.repository import (
    FILE,
    CountingProvider,
    simulate_kafka,
    write_repository,
    write_topics,
)
from ...kit.stores.s3 import ENVIRONMENT, Answer, Bucket, Request, refusal, serving

PATIENCE = 60.0
NAMES = ("ads", "pay", "shop", "web")


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> CountingProvider:
    return simulate_kafka(monkeypatch)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def top(tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository of four folders, whose states are in a store."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with serving(bucket) as address:
        query = f"endpoint={address}&region=us-east-1&use_path_style=true"
        state = f'  state = "s3://bucket/${{folder.path}}?{query}"\n'
        write_repository(tmp_path, *NAMES, file=FILE.replace("  owner", f"{state}  owner"))
        yield tmp_path


def apply_all(top: Path) -> None:
    """Record what the folders declare."""
    applied = kafkaform.apply_repository(kafkaform.open_repository(top), approve=lambda _: True)
    assert applied.code == 0


def watch(bucket: Bucket) -> Counter[str]:
    """Count the requests that come from now on, by object."""
    requests: Counter[str] = Counter()

    def count(_: Bucket, request: Request) -> None:
        requests[f"{request.method} {request.key}"] += 1

    bucket.always.append(count)
    return requests


class Gate:
    """Holds the first request of each folder for an object until all folders have asked."""

    def __init__(self, start: str) -> None:
        """start: how the names of the objects begin."""
        self.start, self.barrier = start, Barrier(len(NAMES))
        self.folders: set[str] = set()

    def hold(self, _: Bucket, request: Request) -> None:
        place = request.key or request.query.get("prefix", "")
        folder, __, name = place.removeprefix("teams/").partition("/")
        if name.startswith(self.start) and folder not in self.folders:
            self.folders.add(folder)
            with suppress(BrokenBarrierError):
                self.barrier.wait(PATIENCE)


def plan_all(top: Path) -> tuple[OpenRepository, kafkaform.RepositoryPlan]:
    repository = kafkaform.open_repository(top)
    return repository, kafkaform.plan_repository(repository)


def test_each_state_is_loaded_once(top: Path, bucket: Bucket, kafka: CountingProvider) -> None:
    """By its folder, and by the folders that read its outputs together; a second plan loads it
    again."""
    write_topics(top, "shop", "shop.a", more='}\noutput "name" {\n  value = "shop.x"')
    for name in ("ads", "web"):
        block = 'data "kafkaform_outputs" "shop" {\n  folder = "../shop"\n}\n'
        (top / f"teams/{name}/outputs.kf.hcl").write_text(block)
    apply_all(top)
    requests = watch(bucket)
    repository, plan = plan_all(top)
    assert plan.code == 0 and not plan.changed
    states = {f"GET teams/{name}/state.json": 1 for name in NAMES}
    assert {key: requests[key] for key in states} == states
    kafkaform.plan_repository(repository)
    assert {requests[key] for key in states} == {2}


def test_folders_wait_for_the_store_together(
    top: Path, bucket: Bucket, kafka: CountingProvider
) -> None:
    """The store answers nobody until all four have asked, for the state and for the log."""
    apply_all(top)
    for stage in ("state.json", "log/"):
        gate = Gate(stage)
        bucket.always[:] = [gate.hold]
        _, plan = plan_all(top)
        assert len(gate.folders) == len(NAMES) and not gate.barrier.broken
        assert plan.code == 0
    assert [item.folder.name for item in plan.folders] == list(NAMES)


def test_a_store_that_refuses_one_folder(
    top: Path, bucket: Bucket, kafka: CountingProvider
) -> None:
    """Only that folder fails, whether its state or its log cannot be read."""
    apply_all(top)
    for place in ("teams/pay/state.json", "teams/pay/log/"):

        def refuse(_: Bucket, request: Request, place: str = place) -> Answer | None:
            asked = request.key or request.query.get("prefix", "")
            return refusal(403, "AccessDenied") if asked.startswith(place) else None

        bucket.always[:] = [refuse]
        _, plan = plan_all(top)
        codes = {item.folder.name: item.code for item in plan.folders}
        assert codes == {"ads": 0, "pay": 9, "shop": 0, "web": 0}, place


def test_an_interrupt_does_not_wait_for_the_store(top: Path, bucket: Bucket) -> None:
    """The command ends at once, although the store does not answer."""
    asked = Event()

    def hang(_: Bucket, request: Request) -> Answer:
        asked.set()
        return Answer(404, wait=PATIENCE)

    bucket.always.append(hang)
    words = [sys.executable, "-m", "kafkaform", "plan", "--all"]
    with subprocess.Popen(
        words, cwd=top, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    ) as process:
        assert asked.wait(PATIENCE)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert time.monotonic() - begun < PATIENCE / 4
        assert process.returncode == 130
