"""Worlds of every type on a real broker: many folders, one cluster, other people's edits, and
answers that never come.

Nothing of one world is cleaned up before the next: it is what others left there.
KAFKAFORM_WORLDS says how many.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, chdir, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkaform.audit.index import LogIndex
from kafkaform.core.resource import Depth, Identity
from kafkaform.plan.model import Plan
from kafkaform.sandbox import Sandbox
from kafkaform.state.model import State
from kafkaform.workflow import planning, workspace
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.wire.client import RequestNotSent, RequestUnanswered, Wire

from ..kit.kafka.clusters import HELD, own_sandbox
from ..kit.simulated.engine import Screen, apply_plainly
from ..model.worlds import COMPOSITES, MAKERS, OPTIONS, PASSWORD, Outsider, Writer, play

WORLDS = int(os.environ.get("KAFKAFORM_WORLDS", "8"))
SEED = int(os.environ.get("KAFKAFORM_SEED", "20261121"))
WRITES = ("Create", "Delete", "Alter", "IncrementalAlter")
"""How the names of requests begin that change something."""
MISHAPS = ("not sent", "swallowed", "lost reply")
"""What becomes of a request: it never leaves, never arrives, or is carried out unanswered."""
PAUSE, LOOKS = 0.1, 3
"""Seconds between two listings, and how many equal ones count as what the broker shows."""


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Sandbox]:
    """A broker of its own, because the worlds change what the whole cluster has."""
    with own_sandbox(f"worlds-{os.getpid()}", config=HELD) as sandbox:
        yield sandbox


@dataclass
class Real:
    """See `tests.model.worlds.Town`."""

    folder: Path
    kinds: Sequence[str]
    writer: Writer
    others: Outsider
    coming: list[str]

    def declare(self, text: str) -> None:
        self._settle()
        Path(self.folder, "main.kf.json").write_text(text, "utf-8")

    def plan(self) -> Plan:
        with chdir(self.folder):
            return planning.plan_changes(workspace.open_workspace(), OPTIONS)

    def apply(self) -> Sequence[Plan]:
        screen = Screen()
        with chdir(self.folder):
            space = workspace.open_workspace()
            apply_plainly(space, OPTIONS, screen)
        return screen.plans

    def rows(self) -> set[Identity]:
        with chdir(self.folder):
            space = workspace.open_workspace()
            return set((space.backend.load().state or State("")).objects)

    def hands(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def trouble(self, random: Random) -> bool:
        self.coming[:] = [""] * random.randint(0, 4) + [random.choice(MISHAPS)]
        return True

    def peace(self) -> None:
        """Reads lag behind writes, and what is compared next shall be what there is."""
        self.coming.clear()
        self._settle()

    def _settle(self) -> None:
        kinds = [kind for kind in self.kinds if kind not in COMPOSITES]
        session, deadline = self.others.session, time.monotonic() + 120
        looks: list[Any] = []
        while time.monotonic() < deadline:
            looks.append([session.sweep(kind, Depth.FULL).items for kind in kinds])
            if len(looks) >= LOOKS and all(look == looks[-1] for look in looks[-LOOKS:]):
                return
            time.sleep(PAUSE)
        raise AssertionError("the broker never shows the same twice")


def mishaps(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """What becomes of the next writing requests, "" for nothing unusual; and what happened."""
    coming: list[str] = []
    happened: list[str] = []
    whole = Wire.send

    def send(wire: Wire, request: Any, timeout: float, node: str | None = None) -> Any:
        writes = type(request).__name__.startswith(WRITES)
        mishap = coming.pop(0) if writes and coming else ""
        if mishap:
            happened.append(mishap)
        if mishap == "not sent":
            raise RequestNotSent(mishap)
        answer = None if mishap == "swallowed" else whole(wire, request, timeout, node)
        if mishap:
            raise RequestUnanswered(mishap, timed_out=False)
        return answer

    monkeypatch.setattr(Wire, "send", send)
    return coming, happened


@pytest.mark.timeout(3600)
def test_every_world_ends_at_no_changes(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """See `tests.model.worlds.play`; the log of each folder holds too."""
    monkeypatch.setenv("SANDBOX_PASSWORD", box.admin_password)
    monkeypatch.setenv(PASSWORD, "ours-secret")
    settings = {
        "bootstrap_servers": [box.bootstrap],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "admin",
        "sasl_password": '${secret_env("SANDBOX_PASSWORD")}',
        "operation_timeout": "2s",
    }
    connection, session = _session(tmp_path, settings)
    coming, happened = mishaps(monkeypatch)
    with connection:
        floor: dict[str, int] = {}
        for number in range(WORLDS):
            folder = tmp_path / f"world-{number}"
            folder.mkdir()
            writer = Writer(PROVIDER, settings, floor=floor)
            town = Real(folder, tuple(MAKERS), writer, Outsider(PROVIDER, session), coming)
            try:
                play(town, Random(SEED + number))
            except BaseException:
                print(f"world {number} of seed {SEED}: {folder}")
                raise
            with chdir(folder):
                space = workspace.open_workspace()
                workspace.read_log(space.sink, space.backend.load().state)
    assert WORLDS < 25 or set(happened) == set(MISHAPS), happened


def _session(folder: Path, settings: dict[str, Any]) -> tuple[AbstractContextManager[Any], Any]:
    """A session of somebody else, and what closes it."""
    import json
    from contextlib import ExitStack

    place = folder / "others"
    place.mkdir()
    topic = {"kafka_topic": {"x": {"name": "nothing-of-theirs"}}}
    document = {"provider": {"kafka": settings}, "resource": topic}
    (place / "main.kf.json").write_text(json.dumps(document), "utf-8")
    stack = ExitStack()
    with chdir(place):
        space = workspace.open_workspace()
        reached = stack.enter_context(workspace.open_sessions(space, State(""), LogIndex()))
    return stack, reached.sessions["kafka"]
