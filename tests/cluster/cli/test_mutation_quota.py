"""A mutation quota of a real broker: an apply finishes in one run, however often it is refused, and
what ends it in between loses nothing and does nothing twice."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ...conftest import Broker
from ...kit.commands.folder import Folder
from ...kit.kafka.logins import Login
from ...kit.kafka.quota_user import account, limits

PASSWORD = "slow-and-steady"
RATE = 40
TOPICS, SIZE = 150, 3


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """The broker's metadata are busy meanwhile."""
    return exclusive_broker


@pytest.fixture
def slow(broker: Any, folder: Folder) -> Iterator[Folder]:
    """A folder whose login may create, add and delete so many partitions in a second."""
    user = folder.prefix.rstrip(".")
    with account(broker, user, password=PASSWORD), limits(broker) as quota:
        quota.set(({"user": user}, {"controller_mutation_rate": float(RATE)}))
        folder.connect(Login(user, PASSWORD))
        yield folder


def declare_many(folder: Folder, size: int = SIZE) -> None:
    folder.declare(*(f"t{number:03}" for number in range(TOPICS)), partitions=size)


def declare_gone(folder: Folder) -> None:
    """All of them are deleted."""
    blocks = [
        f"removed {{\n  from = kafka_topic.t{number:03}\n"
        "  lifecycle {\n    destroy = true\n  }\n}\n"
        for number in range(TOPICS)
    ]
    folder.write("topics.kf.hcl", "\n".join([folder.topic("stay"), *blocks]))


def count_intents(folder: Folder, since: int) -> Counter[str]:
    return Counter(r["body"]["key"] for r in folder.records("intent")[since:])


def applied(folder: Folder) -> Counter[str]:
    """How often the log has each object as applied."""
    closing = [*folder.records("outcome"), *folder.records("recover")]
    return Counter(r["body"]["key"] for r in closing if r["body"]["outcome"] == "applied")


def test_a_plan_of_twice_the_quota_takes_one_run(slow: Folder) -> None:
    """Created, grown and deleted: each in one run, with one intent and one outcome for each step. A
    burst is 440 here, and a dry run spends as much as the request."""
    for change in (declare_many, lambda folder: declare_many(folder, 6), declare_gone):
        change(slow)
        before, ended = len(slow.records("intent")), len(slow.records("outcome"))
        said = slow.done("apply", "-auto-approve", "-max-deletes=150")
        tried = count_intents(slow, before)
        steps = TOPICS + (change is declare_gone)
        assert len(tried) == steps and set(tried.values()) == {1}
        ends = [record["body"]["outcome"] for record in slow.records("outcome")[ended:]]
        assert ends == ["applied"] * steps
        assert "as fast as it allows" in said.err
    assert set(slow.topics()) == {"stay"}
    slow.done("audit", "verify")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_ends_while_it_waits_goes_on_in_the_next_run(slow: Folder, number: int) -> None:
    """Exit code 130 without an open intent after Ctrl-C; after a kill, the next run first finds out
    what became of what was in flight. Every topic is made once."""
    declare_many(slow)
    process = slow.process(
        "apply", "-auto-approve", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    # The first part of what the broker lets through is done, and it waits for the next one.
    slow.until(lambda: process.poll() is not None or len(slow.records("outcome")) > 20)
    assert process.poll() is None
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    made = slow.topics()
    assert 20 < len(made) < TOPICS
    if number == signal.SIGINT:
        assert process.returncode == 130, said
        assert f"{len(made)} applied" in said
        ends = len(slow.records("outcome"))
        assert ends == len(slow.records("intent"))
    slow.done("audit", "verify")
    slow.done("audit", "show")
    slow.done("apply", "-auto-approve")
    assert len(slow.topics()) == TOPICS
    assert applied(slow) == Counter(f"{slow.prefix}{name}" for name in slow.topics())
    assert "No changes" in slow.done("plan").out
    slow.done("audit", "verify")
