"""fleet.hcl with `repository = ".."`: clusters, states and owners come from kafkaform.hcl."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.audit.records import decode
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.errors import ConfigurationError
from kafkaform.core.head import Head
from kafkaform.fleet.landed.register import Owner, RegisteredCluster, RegisteredState
from kafkaform.state.codec import encode
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.fleet.register_file import Fleet, read_fleet
from kafkaform.workflow.fleet.snapshot import take_snapshot
from kafkaform.workflow.stores import AUDIT_FILE, STATE_FILE

from ...kit.audit_story import ORDERS, Ticking, begin, conclude, end, intend, journal
from ...kit.states import SMALL

REPOSITORY = """repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:1"]
}

cluster "registry" {
  provider = "schema_registry"
}

folders "teams/*" {
  owner = folder.name
  uses  = { kafka = cluster.prod }

  boundary {
    topics     = ["${folder.name}.*"]
    principals = ["User:${folder.name}", "User:${folder.name}-*"]
  }
}

folders "platform" {
  state = "states/platform/state.json"
  owner = "shop"
  uses  = { kafka = cluster.prod }
}
"""
FLEET = 'fleet {\n  root       = "data"\n  repository = ".."\n}\n'
ENVIRONMENT = {"KAFKAFORM_SCHEMA_REGISTRY_URL": "http://registry:8081"}
BLOCK = 'resource "kafka_topic" "a" {\n  name = "shop.a"\n}\n'


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with a folder of the fleet's file."""
    (tmp_path / "kafkaform.hcl").write_text(REPOSITORY)
    for name in ("teams/shop", "teams/billing", "platform", "fleet"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "main.kf.hcl").write_text(BLOCK.replace("shop", name.rpartition("/")[2]))
    return tmp_path


def read(top: Path, text: str = FLEET, environment: dict[str, str] = ENVIRONMENT) -> Fleet:
    (top / "fleet/fleet.hcl").write_text(text)
    return read_fleet(top / "fleet/fleet.hcl", Inputs.read((), environment=environment))


def find_faults(top: Path, text: str = FLEET, environment: dict[str, str] = ENVIRONMENT) -> str:
    """Place, message and advice of each fault, one a line."""
    with pytest.raises(ConfigurationError) as caught:
        read(top, text, environment)
    faults = caught.value.diagnostics
    return "\n".join(f"{fault.range}: {fault.summary} ({fault.advice})" for fault in faults)


def test_clusters_states_and_owners_are_taken(top: Path) -> None:
    """Each folder is a state of its path; owners are those of the boundaries."""
    fleet = read(top)
    assert [(entry.name, entry.provider.name) for entry in fleet.clusters] == [
        ("prod", "kafka"),
        ("registry", "schema_registry"),
    ]
    assert fleet.clusters[1].settings.config["url"] == "http://registry:8081"
    assert [entry.name for entry in fleet.states] == ["platform", "teams/billing", "teams/shop"]
    assert fleet.register.clusters == (RegisteredCluster("prod"), RegisteredCluster("registry"))
    assert fleet.register.states == (
        RegisteredState("platform", folder="../platform", owner="shop"),
        RegisteredState("teams/billing", folder="../teams/billing", owner="billing"),
        RegisteredState("teams/shop", folder="../teams/shop", owner="shop"),
    )
    assert fleet.register.owners == (
        Owner("billing", ("billing.*",), ("User:billing",)),
        Owner("shop", ("shop.*",), ("User:shop",)),
    )


def test_blocks_of_the_fleet_complete_it(top: Path) -> None:
    """What no repository says of a cluster, further clusters, states and owners."""
    more = """
cluster "prod" {
  env         = "prod"
  super_users = ["User:root"]
}
cluster "registry" {
  provider = "schema_registry"
  connection {
    url = "http://other:8081"
  }
}
cluster "far" {
  connection {
    bootstrap_servers = ["far:1"]
  }
}
state "legacy" {
  location = "legacy.json"
}
owner "shop" {
  topics = ["old-shop-*"]
}
"""
    fleet = read(top, FLEET + more, {})
    assert {entry.name for entry in fleet.clusters} == {"prod", "registry", "far"}
    urls = [e.settings.config["url"] for e in fleet.clusters if e.name == "registry"]
    assert urls == ["http://other:8081"]
    assert fleet.register.clusters == (
        RegisteredCluster("prod", env="prod", super_users=("User:root",)),
        RegisteredCluster("registry"),
        RegisteredCluster("far"),
    )
    assert [state.name for state in fleet.register.states] == [
        *("legacy", "platform", "teams/billing", "teams/shop")
    ]
    assert fleet.register.owners[0] == Owner("shop", ("old-shop-*",))
    assert [owner.name for owner in fleet.register.owners] == ["shop", "billing"]


def test_a_missing_file_is_a_fault(top: Path) -> None:
    """At the argument."""
    (top / "kafkaform.hcl").unlink()
    faults = find_faults(top)
    assert faults.startswith("fleet.hcl:3:16: there is no kafkaform.hcl in ..")
    assert 'such as ".."' in faults


def test_faults_of_the_repository_have_their_places(top: Path) -> None:
    """Together with those of fleet.hcl."""
    (top / "kafkaform.hcl").write_text(REPOSITORY.replace("owner = folder.name", "ownr = 1"))
    faults = find_faults(top, FLEET + 'naming {\n  kind = "kafka_topics"\n  pattern = "a"\n}\n')
    assert '../kafkaform.hcl:15:3: folders has no argument "ownr"' in faults.replace(
        'folders "teams/*"', "folders"
    )
    assert "fleet.hcl:6:" in faults and 'No object has the kind "kafka_topics"' in faults


def test_what_contradicts_the_repository_is_a_fault(top: Path) -> None:
    """With both places."""
    more = """
cluster "registry" {
  provider = "kafka_connect"
}
cluster "far" {
}
state "platform" {
  location = "legacy.json"
}
"""
    faults = find_faults(top, FLEET + more)
    assert (
        'fleet.hcl:7:14: cluster "registry" has the provider schema_registry at '
        "../kafkaform.hcl:10:1 (Leave provider out.)"
    ) in faults
    assert 'cluster "far" needs a connection' in faults
    assert "The clusters of the repository need none: prod, registry." in faults
    assert (
        'fleet.hcl:11:1: state "platform" is also the folder platform of the repository acme '
        "(../kafkaform.hcl:24:1)"
    ) in faults


def test_what_the_environment_lacks_is_a_fault(top: Path) -> None:
    """At the block of the repository."""
    faults = find_faults(top, environment={})
    assert faults.startswith('../kafkaform.hcl:10:1: provider "schema_registry" needs "url"')


def save_state(folder: Path, name: str = STATE_FILE) -> None:
    """A state with its log."""
    folder.mkdir(parents=True, exist_ok=True)
    sink = LocalSink(folder / (AUDIT_FILE if name == STATE_FILE else f"{name[:-5]}.audit.jsonl"))
    log = journal(sink, "run-1", Ticking())
    begin(log)
    intend(log, ORDERS)
    conclude(log, ORDERS)
    end(log)
    last = sink.last()
    assert last is not None
    record = decode(last)
    lineage = f"lineage-{folder.name}"
    state = replace(SMALL, lineage=lineage, audit_head=Head(record.seq, record.hash))
    (folder / name).write_bytes(encode(state))


def test_states_land_from_where_the_repository_has_them(top: Path) -> None:
    """Those beside the folders and those at the place that the file says; a folder that cannot be
    used and a state that cannot be read are named, and the others land. No folder is made."""
    save_state(top / "teams/shop")
    save_state(top / "states/platform", "state.json")
    (top / "teams/billing" / STATE_FILE).write_text("{}")
    (top / "teams/odd name").mkdir()
    (top / "teams/odd name/main.kf.hcl").write_text(BLOCK)
    summary = take_snapshot(read(top), only=["teams/*", "platform"])
    results = {state.name: state for state in summary.states}
    assert (results["teams/shop"].lineage, results["teams/shop"].recorded) == ("lineage-shop", 2)
    assert (results["platform"].lineage, results["platform"].recorded) == ("lineage-platform", 2)
    assert "it is not a kafkaform state" in results["teams/billing"].errors[0]
    (error,) = results["teams/odd name"].errors
    assert error.startswith("../kafkaform.hcl:14:1: the folder") and "is refused" in error
    assert summary.exit_code == 5


def test_no_folder_is_made_for_a_state(top: Path) -> None:
    """The fleet only reads."""
    summary = take_snapshot(read(top), only=["platform"])
    assert summary.exit_code == 0 and not (top / "states").exists()
