"""One real broker for the whole run, shared by all of its processes."""

from __future__ import annotations

import gc
import os
import re
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import probe
from kafkaform.core.errors import Locked

from .conformance.summary import pytest_terminal_summary  # noqa: F401  # pytest finds it here
from .proof.cluster import HELD

WAIT_SECONDS = 120.0

# How long an example takes says more about the machine than about the code; and a run says the
# same as the one before, unless somebody sets out to find more (KAFKAFORM_RANDOM=1).
settings.register_profile(
    "kafkaform", deadline=None, derandomize="KAFKAFORM_RANDOM" not in os.environ
)
settings.load_profile("kafkaform")


@dataclass(frozen=True)
class Broker:
    """A running sandbox: `admin` is a super user, `ci` has no rights at all."""

    bootstrap: str
    cluster_id: str
    admin_password: str = field(repr=False)
    ci_password: str = field(repr=False)
    admin_user: str = "admin"
    ci_user: str = "ci"


def sandbox_name(config: pytest.Config) -> str:
    """The same in every worker of one run, another in every run."""
    worker = getattr(config, "workerinput", {})
    return f"tests-{worker.get('testrunuid', os.getpid())}"[:40]


@pytest.fixture(scope="session")
def broker(pytestconfig: pytest.Config) -> Broker:
    """Kafka 4.3.1, started by whoever needs it first and ended when the run ends."""
    options = sandbox.Options(sandbox_name(pytestconfig), config=HELD)
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            box = sandbox.up(options, probe)
            return Broker(box.bootstrap, box.cluster_id, box.admin_password, box.ci_password)
        except Locked:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


TESTS = Path(__file__).parent
SESSION = "one Spark session"
WITH_SESSION = frozenset(
    path.relative_to(TESTS.parent).as_posix()
    for path in TESTS.glob("fleet/test_*.py")
    if re.search(r"\bspark: (SparkSession|Any)\b", path.read_text("utf-8"))
)
"""Files that use the fixture `spark`."""
LONGEST = (
    SESSION,
    "cli/test_examples.py",
    "proof/test_kill.py",
    "kafka/test_placement_broker.py",
    "fleet/test_clusterjob.py",
    "sandbox/test_real.py",
    "durability/",
    "proxy/",
    "pipelines/",
    "proof/",
    "power/",
    "hostile/",
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
    """Thousands of tests stay until the end; each search for garbage would look at all of them."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; else as they were found."""

    def rank(item: pytest.Item) -> int:
        file = item.path.relative_to(TESTS.parent).as_posix()
        name = SESSION if file in WITH_SESSION else file.removeprefix("tests/")
        return next((n for n, start in enumerate(LONGEST) if name.startswith(start)), len(LONGEST))

    items.sort(key=rank)


def pytest_configure() -> None:
    """Signals do here what they do at a terminal: who is started in the background inherits that
    they are ignored, and would hand it on to the commands under test."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The process that started the run ends its broker."""
    if not hasattr(config, "workerinput"):
        session = config.pluginmanager.get_plugin("dsession")
        uid = getattr(getattr(session, "nodemanager", None), "testrunuid", None)
        sandbox.down(f"tests-{uid or os.getpid()}"[:40])
