"""Each provider instance of a configuration is a cluster of its own, whoever opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.cli.options.provider_commands import ShellContext
from kafkaform.core.diagnostics import Range
from kafkaform.core.errors import ConfigurationError, OtherSystem, PlanRefused, exit_code
from kafkaform.core.resource import ProviderConfig
from kafkaform.core.value import FrozenMap
from kafkaform.provider.registry import Registry
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.configuration.instances import Systems
from kafkaform.workflow.connection import Connection, ConnectionInputs
from kafkaform.workflow.workspace import open_instance
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.resource_kinds import WORDS

from ...kit.commands.stocks import desk


def block(instance: str, line: int = 1) -> ProviderConfig:
    """A provider block with an address of its own."""
    config = FrozenMap(bootstrap_servers=(f"{instance}:9092",))
    return ProviderConfig("kafka", instance, config, Range("main.kf.hcl", line, 1, line, 1))


def opened(systems: Systems, instance: str, cluster: SimulatedCluster) -> Any:
    """A session of this instance that these systems know."""
    one = block(instance)
    session = MemoryProvider(cluster).open(instance, one.config, {})
    return systems.enter(one, session)


def test_one_cluster_under_two_names() -> None:
    """It is refused with both instances, their places and addresses, and the session is closed;
    the same instance may be opened again, and another cluster is fine."""
    one, other, systems = SimulatedCluster(cluster_id="one"), SimulatedCluster(), Systems()
    opened(systems, "kafka", one)
    opened(systems, "kafka", one)
    opened(systems, "kafka.us", other)
    session = MemoryProvider(one).open("kafka.eu", block("kafka.eu").config, {})
    with pytest.raises(ConfigurationError) as refused:
        systems.enter(block("kafka.eu", 7), session)
    assert refused.value.message == (
        'provider instances "kafka" (main.kf.hcl:1:1, kafka:9092) and "kafka.eu" '
        "(main.kf.hcl:7:1, kafka.eu:9092) are the same cluster, one"
    )
    assert session._closed
    assert exit_code(refused.value) == 1


def test_another_cluster_under_the_same_name() -> None:
    """What answered a data source and what is opened for the apply must be one cluster."""
    systems = Systems()
    opened(systems, "kafka", SimulatedCluster(cluster_id="one"))
    with pytest.raises(OtherSystem, match="cluster one at first.*cluster two now") as refused:
        opened(systems, "kafka", SimulatedCluster(cluster_id="two"))
    assert exit_code(refused.value) == 4 and isinstance(refused.value, PlanRefused)


def test_data_sources_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance that only a data source uses is opened when it is asked, and may not be the
    cluster of another one either: the fault names the data block."""
    cluster = SimulatedCluster()
    text = """\
provider "kafka" {
  bootstrap_servers = ["a:9092"]
}

provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["b:9092"]
}

data "kafka_topics" "here" {}

data "kafka_topics" "there" {
  provider = kafka.eu
}
"""
    (tmp_path / "main.kf.hcl").write_text(text, "utf-8")
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    found = read_configuration(tmp_path, Inputs()).evaluate().desired.diagnostics
    (fault,) = [one for one in found if one.severity.value == "error"]
    assert "are the same cluster, simulated" in fault.summary
    assert fault.range is not None and fault.range.line in (10, 12)


def test_a_data_source_and_a_resource(tmp_path: Path) -> None:
    """The instance that a data source was asked of, and another one that a resource uses."""
    space = desk(tmp_path, SimulatedCluster()).space()
    space.configuration.asking.systems.note(block("kafka.eu"), "simulated", WORDS)
    with pytest.raises(ConfigurationError, match="kafka.eu"):
        open_instance(space, "kafka")


def test_a_shell(tmp_path: Path) -> None:
    """Its commands share what they opened; a new connection begins anew, and a cluster that is
    named on the command line is nobody's instance."""
    kept, found = (
        ShellContext(ConnectionInputs()),
        desk(tmp_path, SimulatedCluster()).space().configuration,
    )
    one, other = (
        Connection(MemoryProvider(SimulatedCluster()), block(name), {}, found)
        for name in ("kafka", "kafka.eu")
    )
    kept.get_session(one)
    with pytest.raises(ConfigurationError):
        kept.get_session(other)
    kept.get_session(replace(other, configuration=None))
    kept.close()
    kept.get_session(other)
