"""Each exit code means what docs/exit-codes.md promises, command by command."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafkaform.cli.terminal.signals import SIGNALS, end_on_signals
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import EXIT_CODES
from kafkaform.provider.registry import Registry
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import LockInfo
from kafkaform.workflow import sealing
from kafkaform_kafka.kinds.simulation import led_elsewhere, lost_request
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster, refused_items

from ...kit.commands.here import Here

ROOT = Path(__file__).parents[3]
HEAD = (
    'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n  operation_timeout = "1s"\n}\n'
)
YES = ("apply", "--auto-approve")
Send = Callable[[], object]


class Shop:
    """A folder, and the simulated cluster that every command finds."""

    def __init__(self, here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here, self.monkeypatch = here, monkeypatch
        self.cluster = SimulatedCluster()
        monkeypatch.setattr(Registry, "load", lambda _, name: MemoryProvider(self.cluster))

    def declare(self, more: str = "", **partitions: int) -> None:
        blocks = (
            f'resource "kafka_topic" "{name}" {{\n  name = "{name}"\n  partitions = {number}\n}}\n'
            for name, number in partitions.items()
        )
        self.here.write("main.kf.hcl", HEAD + "".join(blocks) + more)

    def run(self, *words: str) -> int:
        return self.here.run(*words).code

    def meet(self, wanted: str, act: Callable[[Send], object]) -> None:
        """Let `act` carry out each request of this API that is no dry run."""
        real = self.cluster.write

        def write(api: str, items: Any, who: Any, *, validate: bool) -> object:
            send = partial(real, api, items, who, validate=validate)
            return act(send) if api == wanted and not validate else send()

        self.monkeypatch.setattr(self.cluster, "write", write)

    def save(self) -> str:
        """Save a plan as `saved` and return its approval."""
        out = self.here.done("plan", "--out", "saved").out
        found = re.search(r"^Approval: (\S+)$", out, re.MULTILINE)
        assert found is not None
        return found[1]

    def applied(self, **partitions: int) -> None:
        """Bring these topics into being."""
        self.declare(**partitions)
        self.here.done(*YES)


@pytest.fixture
def shop(here: Here, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Nothing is declared yet."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield Shop(here, monkeypatch)
    for number, handler in handlers.items():
        signal.signal(number, handler)


# ── one function for each promise: it brings about the situation and returns the code ───


def done(shop: Shop) -> int:
    shop.declare(a=1)
    return shop.run(*YES)


def no_changes(shop: Shop) -> int:
    shop.applied(a=1)
    return shop.run("plan", "--detailed-exitcode")


def usage(shop: Shop) -> int:
    return shop.run("plan", "--no-such-flag")


def configuration(shop: Shop) -> int:
    shop.here.write("main.kf.hcl", "resource {")
    return shop.run("plan")


def connection(shop: Shop) -> int:
    shop.monkeypatch.undo()
    shop.monkeypatch.chdir(shop.here.path)
    shop.declare(a=1)
    text = (shop.here.path / "main.kf.hcl").read_text()
    shop.here.write("main.kf.hcl", text.replace("localhost:9092", "localhost:1"))
    return shop.run("plan")


def refused_dry_run(shop: Shop) -> int:
    shop.declare(a=1)
    shop.cluster.faults.schedule(refused_items(44), "CreateTopics:validate")
    code = shop.run(*YES)
    assert not shop.cluster.topics
    return code


def busy_port(shop: Shop) -> int:
    shop.declare(a=1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return shop.run("serve", "--port", str(taken.getsockname()[1]))


def changes(shop: Shop) -> int:
    shop.declare(a=1)
    return shop.run("plan", "--detailed-exitcode")


def stale_saved(shop: Shop) -> int:
    shop.applied(a=1)
    shop.declare(a=2)
    shop.save()
    shop.cluster.outside.alter("a", {"retention.ms": "1000"})
    return shop.run("apply", "saved")


def stale_approval(shop: Shop) -> int:
    shop.applied(a=1)
    shop.declare(a=2)
    approval = shop.save()
    shop.cluster.outside.alter("a", {"retention.ms": "1000"})
    return shop.run("apply", "--expect", approval)


def foreign(shop: Shop) -> int:
    shop.declare(a=1)
    shop.save()
    shop.cluster = SimulatedCluster(cluster_id="another")
    return shop.run("apply", "saved")


def altered(shop: Shop) -> int:
    shop.declare(a=1)
    shop.save()
    text = (shop.here.path / "saved").read_text()
    shop.here.write("saved", text.replace('"partitions":1', '"partitions":9'))
    return shop.run("apply", "saved")


def not_approved(shop: Shop) -> int:
    shop.declare(a=1)
    return shop.run("apply", "--expect", f"{'0' * 64}.{'0' * 64}")


def another_cluster(shop: Shop) -> int:
    shop.applied(a=1)
    shop.cluster = SimulatedCluster(cluster_id="another")
    return shop.run("plan")


def another_cluster_before_sending(shop: Shop) -> int:
    shop.declare(a=1)
    other = SimulatedCluster(cluster_id="another")
    shop.cluster.swaps.schedule(led_elsewhere(other), "CreateTopics:validate")
    return shop.run(*YES)


def a_step_failed(shop: Shop) -> int:
    shop.declare(a=1, b=1)
    shop.cluster.faults.schedule(refused_items(44, names="b"), "CreateTopics")
    code = shop.run(*YES)
    assert set(shop.cluster.topics) == {"a"}
    return code


def a_later_wave_was_refused(shop: Shop) -> int:
    shop.applied(a=1)
    shop.declare(a=2, b=1)

    def write(send: Send) -> object:
        answer = send()
        shop.cluster.outside.grow("a", 5)
        return answer

    shop.meet("CreateTopics", write)
    code = shop.run(*YES)
    assert set(shop.cluster.topics) == {"a", "b"} and shop.cluster.topics["a"].partitions == 5
    return code


def unknown(shop: Shop) -> int:
    shop.declare(a=1)
    shop.cluster.faults.schedule(lost_request(), "CreateTopics")
    shop.cluster.faults.schedule(refused_items(5), "DescribeTopics", times=10_000, skip=3)
    return shop.run(*YES)


def applied_and_another_cluster(shop: Shop) -> int:
    shop.declare(a=1)
    other = SimulatedCluster(cluster_id="another")
    shop.meet("CreateTopics", lambda send: (send(), shop.cluster.lead_to(other, beneath=True))[0])
    return shop.run(*YES)


def locked(shop: Shop) -> int:
    shop.applied(a=1)
    shop.declare(a=2)
    backend = LocalBackend(shop.here.path / "kafkaform.state.json")
    info = LockInfo("r1", "somebody", "elsewhere", 1, "2026-01-01T00:00:00Z", "apply")
    with backend.lock(info, 0.0, SystemClock()):
        return shop.run(*YES)


def state_changed_meanwhile(shop: Shop) -> int:
    shop.applied(a=1)
    shop.declare(a=2)
    state = shop.here.path / "kafkaform.state.json"

    def write(send: Send) -> object:
        shop.here.write(state.name, re.sub(rb'("serial": ?)', rb"\g<1>9", state.read_bytes()))
        return send()

    shop.meet("CreatePartitions", write)
    return shop.run(*YES)


def impossible(shop: Shop) -> int:
    shop.applied(a=3)
    shop.declare(a=1)
    return shop.run(*YES)


def a_guard(shop: Shop) -> int:
    shop.applied(a=1)
    shop.declare()
    code = shop.run(*YES)
    assert set(shop.cluster.topics) == {"a"}
    return code


def fail_on(shop: Shop) -> int:
    shop.applied(a=1)
    shop.cluster.outside.alter("a", {"retention.ms": "1000"})
    return shop.run("plan", "--fail-on", "drift")


def left_out(shop: Shop) -> int:
    shop.cluster.outside.create("b")
    shop.declare(a=1, b=1)
    code = shop.run(*YES)
    assert set(shop.cluster.topics) == {"a", "b"}
    return code


def damaged_state(shop: Shop) -> int:
    shop.applied(a=1)
    shop.here.write("kafkaform.state.json", "{")
    return shop.run("plan")


def edited_log(shop: Shop) -> int:
    shop.applied(a=1)
    log = shop.here.path / "kafkaform.audit.jsonl"
    shop.here.write(log.name, log.read_bytes().replace(b'"kafka_topic.a"', b'"kafka_topic.b"'))
    return shop.run("audit", "verify")


def unwritable_file(shop: Shop) -> int:
    shop.declare(a=1)
    return shop.run("plan", "--out", "no-such-folder/saved")


def interrupted(shop: Shop) -> int:
    shop.applied(a=1)
    shop.declare(a=2, b=1)

    def write(send: Send) -> object:
        signal.raise_signal(signal.SIGINT)
        return send()

    shop.meet("CreateTopics", write)
    code = shop.run(*YES)
    assert set(shop.cluster.topics) == {"a", "b"} and shop.cluster.topics["a"].partitions == 1
    return code


def ended(shop: Shop) -> int:
    shop.applied(a=1)
    end_on_signals()
    act = lambda *_, **__: signal.raise_signal(signal.SIGTERM)  # noqa: E731  # one line
    shop.monkeypatch.setattr(sealing, "check_checkpoints", act)
    return shop.run("audit", "verify")


PROMISES: Mapping[int, tuple[Callable[[Shop], int], ...]] = {
    0: (done, no_changes),
    1: (usage, configuration, connection, refused_dry_run, busy_port),
    2: (changes,),
    4: (
        *(stale_saved, stale_approval, foreign, altered, not_approved),
        *(another_cluster, another_cluster_before_sending),
    ),
    5: (a_step_failed, a_later_wave_was_refused),
    6: (unknown, applied_and_another_cluster),
    7: (locked, state_changed_meanwhile),
    8: (impossible, a_guard, fail_on, left_out),
    9: (damaged_state, edited_log, unwritable_file),
    130: (interrupted,),
    143: (ended,),
}


@pytest.mark.parametrize(
    ("code", "bring_about"),
    [(code, one) for code, situations in PROMISES.items() for one in situations],
    ids=lambda item: getattr(item, "__name__", str(item)),
)
def test_each_situation_has_the_code_of_the_table(
    shop: Shop, code: int, bring_about: Callable[[Shop], int]
) -> None:
    """Programs decide by the code alone what to do next."""
    assert bring_about(shop) == code


def test_the_table_has_every_code_and_no_other() -> None:
    """That of the architecture, and the errors of the program."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d[\d, ]*) \| ", text.partition("code | meaning |")[2], re.MULTILINE)
    assert {int(code) for row in rows for code in row.split(", ")} == PROMISES.keys()
    assert {*EXIT_CODES.values()} | {0, 2, 130, 143} == PROMISES.keys()
