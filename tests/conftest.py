"""Two real brokers for the whole run, shared by all of its processes: one that many tests use at
the same time, each with names and users of its own, and one that a test has to itself."""

from __future__ import annotations

import fcntl
import gc
import os
import random
import re
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.errors import Locked

from .conformance.summary import pytest_terminal_summary  # noqa: F401  # pytest finds it here
from .kit import extras, guard, needs, quick, servers
from .kit.fleet.session import spark  # noqa: F401  # pytest finds it here
from .kit.kafka import versions
from .kit.kafka.clusters import HELD, TOKENS
from .kit.kafka.logins import Login, new_login
from .kit.needs import own_brokers, own_spark  # noqa: F401  # pytest finds them here

WAIT_SECONDS = 240.0
"""Who starts a server beside the broker holds its lock meanwhile."""
SPARK_SECONDS = 900
"""Of a test with Spark: its first session waits for jars and for a Java process."""


@dataclass(frozen=True)
class Broker:
    """A running sandbox and its super user, `admin`. Who needs a user without rights takes
    `stranger`: nobody else may grant that one anything."""

    bootstrap: str
    cluster_id: str
    admin_password: str = field(repr=False)


def sandbox_name(config: pytest.Config) -> str:
    """The same in every process of one run, another in every run."""
    worker = getattr(config, "workerinput", {})
    session = config.pluginmanager.get_plugin("dsession")
    uid = worker.get("testrunuid") or getattr(
        getattr(session, "nodemanager", None), "testrunuid", None
    )
    return f"tests-{uid or os.getpid()}"[:40]


def second_name(config: pytest.Config) -> str:
    return f"{sandbox_name(config)[:36]}-one"


def lock_file(config: pytest.Config) -> Path:
    """Locked by the test that has the second broker to itself."""
    return Path(tempfile.gettempdir()) / f"kafkaform-{second_name(config)}.lock"


@pytest.fixture(scope="session")
def broker(pytestconfig: pytest.Config) -> Broker:
    """The Kafka of this run, started by whoever needs it first and ended when the run ends.

    Other tests use it at the same time. A test changes, limits and lists on it only what has a
    name of its own; what a cluster has once is for `exclusive_broker`."""
    return _running(sandbox_name(pytestconfig), TOKENS)


@pytest.fixture
def stranger(broker: Broker) -> Iterator[Login]:
    """A user of this test alone, without rights."""
    with new_login(broker) as login:
        yield login


@pytest.fixture(scope="session")
def other_broker(pytestconfig: pytest.Config) -> Broker:
    """Take `exclusive_broker`, which gives it to one test at a time."""
    return _running(second_name(pytestconfig))


@pytest.fixture
def exclusive_broker(pytestconfig: pytest.Config, other_broker: Broker) -> Iterator[Broker]:
    """Another broker, which one test at a time has to itself: for what a cluster has once, such
    as its default quotas and configs, and for listings of all that there is. In a file of such
    tests a fixture `broker` returns this one."""
    with lock_file(pytestconfig).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield other_broker


@pytest.fixture(scope="session")
def registry(pytestconfig: pytest.Config, broker: Broker) -> servers.Registry:
    """The schema registry of this run, beside `broker`. Other tests use it at the same time: a test
    uses subjects with names of its own, and changes nothing that the registry has once."""
    name = sandbox_name(pytestconfig)
    return servers.find_registry(servers.start(name, sandbox.ServerKind.SCHEMA_REGISTRY))


@pytest.fixture(scope="session")
def connect(pytestconfig: pytest.Config, broker: Broker) -> servers.Worker:
    """The worker of Kafka Connect of this run, beside `broker`. Other tests use it at the same
    time: a test uses connectors and topics with names of its own."""
    servers.require_connect()
    name = sandbox_name(pytestconfig)
    return servers.find_worker(servers.start(name, sandbox.ServerKind.CONNECT))


def _running(name: str, more: tuple[tuple[str, str], ...] = ()) -> Broker:
    """The sandbox of this name, which some process of the run may have started. more: broker
    properties."""
    options = versions.make_options(name, versions.get_choice().brokers, (*HELD, *more))
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            box = sandbox.up(options, count_brokers)
            # One address is enough for a client, and stands in one pair of quotes.
            first = box.bootstrap.partition(",")[0]
            return Broker(first, box.cluster_id, box.admin_password)
        except Locked:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


TESTS = Path(__file__).parent
SESSION = "one Spark session"
WITH_SESSION = frozenset(
    path.relative_to(TESTS.parent).as_posix()
    for path in (*TESTS.glob("spark/test_*.py"), *TESTS.glob("unit/fleet/test_*.py"))
    if re.search(r"\bspark: (SparkSession|Any)\b", path.read_text("utf-8"))
)
"""Files that use the fixture `spark`."""
LONGEST = (
    SESSION,
    "cluster/cli/test_examples.py",
    "reliability/crash/test_kills.py",
    "cluster/kafka/test_placement.py",
    "spark/test_cluster_job.py",
    "cluster/sandbox/test_sandbox.py",
    "cluster/sandbox/test_servers.py",
    "reliability/crash/",
    "reliability/network/",
    "cluster/pipelines/",
    "cluster/test_",
    "reliability/",
)
"""Files below tests/ that take long, or wait for brokers more than they compute: they begin first,
so that at the end of a run no process waits for the last of them alone."""


class _Scheduling(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """A file is run by one process; and one process has the only Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return SESSION if file in WITH_SESSION else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Scheduling:
    return _Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end; each search for garbage would look at all of them.
    And there are fewer searches than a program with little memory needs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    quick.add_options(parser)
    versions.add_options(parser)
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in this random order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Markers, and the part that is asked for; long files first, or a random order."""
    strict = pytest.mark.filterwarnings("error", *config.getini("filterwarnings"))
    for item in items:
        needs.mark(item)
        if needs.is_pure(item):
            item.add_marker(strict)
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.timeout(SPARK_SECONDS))
    quick.select(config, items)
    if seed := config.getoption("--shuffle"):
        random.Random(seed).shuffle(items)
        return

    def rank(item: pytest.Item) -> int:
        file = item.path.relative_to(TESTS.parent).as_posix()
        name = SESSION if file in WITH_SESSION else file.removeprefix("tests/")
        return next((n for n, start in enumerate(LONGEST) if name.startswith(start)), len(LONGEST))

    items.sort(key=rank)


def pytest_configure(config: pytest.Config) -> None:
    """Signals do here what they do at a terminal: who is started in the background inherits that
    they are ignored, and would hand it on to the commands under test."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    versions.choose(config)
    if config.getoption("--quick"):
        quick.hurry()
    for plugin in (guard, extras):
        config.pluginmanager.register(plugin)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The process that started the run ends its brokers."""
    if not hasattr(config, "workerinput"):
        sandbox.down(sandbox_name(config))
        sandbox.down(second_name(config))
        lock_file(config).unlink(missing_ok=True)
