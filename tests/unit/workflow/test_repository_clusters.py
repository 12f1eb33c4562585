"""Clusters of a repository file that are used without a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.core.errors import ConfigurationError, UsageError
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.connection import (
    ConnectionInputs,
    resolve_configured,
    resolve_every,
    resolve_partners,
)

FILE = """repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:1"]
  sasl_username     = "ci"
  sasl_password     = secret_env("PASSWORD")
}

cluster "dr" {
  provider = "kafka"
}

cluster "registry" {
  provider = "schema_registry"
  url      = "http://registry:8081"
}

folders "teams/*" {
  uses = { kafka = cluster.prod }
}
"""
ENVIRONMENT = {"PASSWORD": "zebra-7", "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS": "dr:1"}


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, whose top is the current folder."""
    (tmp_path / "kafkaform.hcl").write_text(FILE)
    (tmp_path / "teams/shop").mkdir(parents=True)
    block = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
    (tmp_path / "teams/shop/main.kf.hcl").write_text(block)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(name: str | None, environment: dict[str, str] | None = None) -> ConnectionInputs:
    inputs = Inputs.read((), environment=ENVIRONMENT if environment is None else environment)
    return ConnectionInputs(provider=name, inputs=inputs)


@pytest.mark.parametrize("folder", [".", "teams", "teams/shop"])
def test_a_cluster_is_used_from_anywhere(
    top: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its secrets, and without any configuration."""
    monkeypatch.chdir(top / folder)
    connection = resolve_configured(ask("cluster.prod"))
    assert connection.settings.config["bootstrap_servers"] == ("prod:1",)
    assert connection.configuration is None and connection.provider.name == "kafka"
    assert list(connection.secrets) == ["env:PASSWORD"] and "zebra-7" not in repr(connection)


def test_the_environment_completes_a_block(top: Path) -> None:
    """As for a folder that uses it; what is missing is a fault with the place of the block."""
    connection = resolve_configured(ask("cluster.dr"))
    assert connection.settings.config["bootstrap_servers"] == ("dr:1",)
    with pytest.raises(ConfigurationError, match="needs") as caught:
        resolve_configured(ask("cluster.dr", {}))
    (fault,) = caught.value.diagnostics
    assert str(fault.range).startswith("kafkaform.hcl:12:")
    with pytest.raises(ConfigurationError, match="PASSWORD"):
        resolve_configured(ask("cluster.prod", {}))


def test_the_only_cluster_needs_no_name(top: Path) -> None:
    """At the top, as the only provider block of a folder needs none."""
    with pytest.raises(UsageError, match="has 2 clusters of the provider kafka") as caught:
        resolve_configured(ask(None))
    assert caught.value.advice == "Choose one with --provider: cluster.dr, cluster.prod."
    begin, _, end = FILE.partition('cluster "dr" {\n  provider = "kafka"\n}\n')
    (top / "kafkaform.hcl").write_text(begin + end)
    assert resolve_configured(ask(None)).settings.config["bootstrap_servers"] == ("prod:1",)


def test_a_folder_keeps_its_own_configuration(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name of a cluster nothing changes there, and neither does it at the top if that
    has a configuration itself."""
    monkeypatch.chdir(top / "teams/shop")
    connection = resolve_configured(ask(None))
    assert connection.configuration is not None and connection.instance == "kafka"
    own = 'provider "kafka" {\n  bootstrap_servers = ["own:1"]\n}\n'
    (top / "main.kf.hcl").write_text(own)
    monkeypatch.chdir(top)
    assert resolve_configured(ask(None)).settings.config["bootstrap_servers"] == ("own:1",)
    assert resolve_configured(ask("cluster.prod")).configuration is None


@pytest.mark.parametrize(
    ("name", "message", "advice"),
    [
        ("cluster.prd", "kafkaform.hcl has no cluster.prd", 'Did you mean "cluster.prod"?'),
        ("cluster.x", "kafkaform.hcl has no cluster.x", "There are: cluster.dr, cluster.prod."),
        ("prod", "kafkaform.hcl has no prod", "There are: cluster.dr, cluster.prod."),
        ("cluster.registry", "cluster.registry has the provider schema_registry", "cluster.prod."),
    ],
)
def test_wrong_names_are_refused_with_the_right_ones(
    top: Path, name: str, message: str, advice: str
) -> None:
    """Those that the command can use."""
    with pytest.raises(UsageError, match=message) as caught:
        resolve_configured(ask(name))
    assert advice in caught.value.advice


def test_a_system_finds_its_partners(top: Path) -> None:
    """The clusters of the same file that another provider has."""
    registry = resolve_configured(ask("cluster.registry"), "schema_registry")
    partners = resolve_partners(registry, ask("cluster.registry"), "kafka")
    servers = [partner.settings.config["bootstrap_servers"] for partner in partners]
    assert servers == [("prod:1",), ("dr:1",)]


def test_any_system_can_be_checked(top: Path) -> None:
    """`check` is for all providers."""
    (connection,) = resolve_every(ask("cluster.registry"))
    assert connection.provider.name == "schema_registry"


def test_a_name_outside_of_a_repository_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what a cluster is."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"there is no kafkaform.hcl here or in a folder above"):
        resolve_configured(ask("cluster.prod"))


def test_faults_of_the_file_come_first(top: Path) -> None:
    """All of them."""
    (top / "kafkaform.hcl").write_text(FILE.replace("uses =", "use =").replace("url ", "urls "))
    with pytest.raises(ConfigurationError) as caught:
        resolve_configured(ask("cluster.prod"))
    assert len(caught.value.diagnostics) >= 2
