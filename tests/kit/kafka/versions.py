"""Which Kafka the brokers of a test run are: `--kafka-version`, `--zookeeper`, `--brokers`."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafkaform.core.errors import KafkaformError
from kafkaform.sandbox import DEFAULT_VERSION, SandboxOptions, versions
from kafkaform.sandbox import versions as known
from kafkaform.sandbox.versions import parse_version


@dataclass(frozen=True)
class Choice:
    """brokers: of the clusters that tests share; those that a test starts for itself have as many
    as it wants."""

    kafka_version: str = DEFAULT_VERSION
    zookeeper: bool = False
    brokers: int = 1

    @property
    def title(self) -> str:
        """As the columns of docs/compatibility.md are called."""
        more = "ZooKeeper" if self.zookeeper else "3 brokers" if self.brokers == 3 else ""
        return f"{self.kafka_version}, {more}" if more else self.kafka_version

    @property
    def release(self) -> str:
        """As facts and tables have it: `3.6`."""
        return self.kafka_version.rpartition(".")[0]

    def lacks(self, since: str, *, zookeeper: bool) -> bool:
        """Whether this Kafka does not have what came with a version. zookeeper: it was there with
        ZooKeeper, too."""
        old = parse_version(self.kafka_version) < parse_version(since)
        return old or (self.zookeeper and not zookeeper)


_chosen = [Choice()]
_asked = [False]


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--kafka-version", help="of the tests' brokers")
    parser.addoption("--zookeeper", action="store_true", help="their metadata is in ZooKeeper")
    parser.addoption("--brokers", type=int, default=1, help="of the shared clusters: 1 or 3")


def choose(config: pytest.Config) -> None:
    names = ("--kafka-version", "--zookeeper", "--brokers")
    version, *more = map(config.getoption, names)
    _asked[0] = version is not None
    _chosen[0] = Choice(version or DEFAULT_VERSION, *more)
    # Also for tests that start a sandbox with other options than `make_options` has.
    known.DEFAULT_VERSION = _chosen[0].kafka_version


def get_choice() -> Choice:
    """What this run uses."""
    return _chosen[0]


def is_asked_for() -> bool:
    """Whether the command line names the version, also if it is the usual one."""
    return _asked[0]


def make_options(
    name: str,
    brokers: int = 1,
    config: tuple[tuple[str, str], ...] = (),
    choice: Choice | None = None,
) -> SandboxOptions:
    """The options of a sandbox of this run, or of another choice. Skips the test if there cannot be
    one."""
    wanted = choice or get_choice()
    if wanted.zookeeper and brokers != 1:
        pytest.skip("a sandbox with ZooKeeper has one broker")
    require_java(wanted.kafka_version)
    return SandboxOptions(
        name,
        brokers,
        config=config,
        ready_within=240.0,
        kafka_version=None if wanted == get_choice() else wanted.kafka_version,
        zookeeper=wanted.zookeeper,
    )


def require_java(kafka_version: str) -> None:
    """Skip the test without a Java on which this Kafka runs: Java does not come with the jars, and
    the one that pip brings is too new for Kafka 3."""
    if kafka_version == DEFAULT_VERSION:
        return
    try:
        versions.find_java(kafka_version)
    except KafkaformError as error:
        pytest.skip(f"{error.message}; {error.advice}")
