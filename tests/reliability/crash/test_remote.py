"""Commands of two computers that share a remote state: the real command on a real broker."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kafkaform.audit.records import decode, read_line, verify_log
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects

from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Running
from ...kit.kafka.truth import observe
from ...kit.stores import s3
from ...kit.stores.runner import is_stopped

RUNNERS = int(os.environ.get("KAFKAFORM_REMOTE_RUNNERS", "4"))
"""How many apply at once; 20 in the long form."""
OPERATION_TIMEOUT = "1s"
LEASE = "2s"
BACKEND = """\
kafkaform {{
  backend "s3" {{
    bucket         = "bucket"
    key            = "prod"
    region         = "us-east-1"
    endpoint       = "{endpoint}"
    use_path_style = true
    lease          = "{lease}"
    timeout        = "300s"
  }}
}}
"""


@dataclass(frozen=True)
class Computer(Folder):
    """A folder whose state is in a store."""

    store: str = ""

    def declare(self, *topics: str) -> None:
        blocks = (
            f'resource "kafka_topic" "{name}" {{\n  name = "{name}"\n  partitions = 1\n'
            "  replication_factor = 1\n}\n"
            for name in topics
        )
        self.write(BACKEND.format(endpoint=self.store, lease=LEASE), *blocks)


@pytest.fixture
def bucket() -> s3.Bucket:
    return s3.Bucket()


@pytest.fixture
def computers(
    broker: Any, bucket: s3.Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Computer]]:
    for variable, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    with s3.serving(bucket) as address:
        made = []
        for number in range(RUNNERS):
            path = tmp_path / str(number)
            path.mkdir()
            known = (broker.bootstrap, broker.admin_password, OPERATION_TIMEOUT, s3.ENVIRONMENT)
            made.append(Computer(path, *known, store=address))
        yield made


def start(computer: Computer, patience: str = "60s") -> Running:
    given = ("-auto-approve", "--concise", "--no-color", f"-lock-timeout={patience}")
    return computer.start("apply", *given)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(24_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never became true")


def test_a_paused_apply_sends_nothing_after_another_took_over(
    computers: list[Computer], bucket: s3.Bucket, broker: Any
) -> None:
    """An apply that is stopped right after its intent is durable, for longer than its lease, is
    followed by another one on the same state, which recovers and applies; when it goes on it
    sends nothing and exits 7."""
    one, two = computers[:2]
    prefix = f"remote{uuid4().hex[:8]}-"
    one.declare(f"{prefix}paused")
    two.declare(f"{prefix}next")
    running: list[Running] = []

    def stop(_: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        if b'"kind":"intent"' not in request.body or "stopped" in place:
            return None
        place.add("stopped")
        answer = bucket.serve(request)
        running[0].send_signal(signal.SIGSTOP)
        return answer

    place: set[str] = set()
    bucket.always.append(stop)
    running.append(start(one))
    until(lambda: running[0].poll() is not None or is_stopped(running[0].pid))
    assert running[0].poll() is None, running[0].finish().out
    second = start(two).finish()
    assert second.code == 0, second.out
    running[0].send_signal(signal.SIGCONT)
    first = running[0].finish()
    assert first.code == 7, first.out
    assert re.search(r"taken over|another run|given back", first.out), first.out
    assert set(observe(broker).topics(prefix)) == {f"{prefix}next"}
    _sound(one)
    one.declare(f"{prefix}next", f"{prefix}paused")
    after = one.apply()
    assert after.code == 0, after.out
    assert set(observe(broker).topics(prefix)) == {f"{prefix}next", f"{prefix}paused"}


@pytest.mark.timeout(600)
def test_many_apply_at_once_and_one_writes(
    computers: list[Computer], bucket: s3.Bucket, broker: Any
) -> None:
    """Of many computers that apply at once on one state, one writes; all others exit 7 and name
    it, and nothing is sent twice."""
    prefix = f"remote{uuid4().hex[:8]}-"
    others_ended = threading.Event()

    def hold(_: s3.Bucket, request: s3.Request) -> None:
        """The one that got in stays in until all others have tried."""
        if b'"kind":"intent"' in request.body:
            others_ended.wait(280)

    bucket.always.append(hold)
    for computer in computers:
        computer.declare(f"{prefix}topic")
    crew = [start(computer, "0s") for computer in computers]
    until(lambda: sum(process.poll() is None for process in crew) == 1)
    others_ended.set()
    ended = [process.finish() for process in crew]
    assert sorted(each.code for each in ended) == [0] + [7] * (RUNNERS - 1), ended
    assert all("is locked by" in each.out for each in ended if each.code == 7)
    assert set(observe(broker).topics(prefix)) == {f"{prefix}topic"}
    assert _sound(computers[0]).count("intent") == 1
    for computer in computers[:2]:
        assert computer.plan().code == 0


def _sound(computer: Computer) -> list[str]:
    """The kinds of all records. The log verifies and reaches the state's anchor, each intent has
    ended, and nobody holds the lock."""
    objects = open_objects("s3://bucket/prod", s3.options(computer.store))
    sink, backend = ObjectSink(objects), ObjectBackend(objects)
    state = backend.load().state
    assert state is not None
    verdict = verify_log(sink.lines(), state.audit_head)
    assert verdict.ok, verdict.problem
    kinds = [decode(read_line(line)).kind for line in sink.lines()]
    assert kinds.count("intent") == kinds.count("outcome") + kinds.count("recover")
    assert backend.holder() is None
    return kinds
