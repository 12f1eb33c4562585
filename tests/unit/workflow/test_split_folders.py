"""`import --all --split folders` on simulated clusters: objects go to the folders that they fit."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

import kafkaform
from kafkaform.core.change import Action
from kafkaform.core.errors import ConfigurationError, ConnectError, KafkaformError, UsageError
from kafkaform.core.value import FrozenMap
from kafkaform.provider.registry import Registry
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import StateOutline
from kafkaform.workflow.adoption.split import SplitImport, import_into_folders
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...test_cases import cluster_of
from .test_repository_file import make_files

REPOSITORY = """
repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["prod:9092"]
}

cluster "dev" {
  provider          = "kafka"
  bootstrap_servers = ["dev:9092"]
}

folders "teams/*" {
  uses = { kafka = cluster.prod }

  boundary {
    topics     = ["${folder.name}.*"]
    groups     = ["${folder.name}.*"]
    principals = ["User:${folder.name}-*"]
  }
}

folders "platform" {
  uses = { kafka = cluster.prod }
}

folders "dev/*" {
  uses = { "kafka.dev" = cluster.dev }

  boundary {
    topics = ["${folder.name}.*"]
    deny   = ["kafka_acl"]
  }
}
"""
EMPTY = "# nothing yet\n"


def make_topic(name: str) -> str:
    return f'resource "kafka_topic" "a" {{\n  name = "{name}"\n  partitions = 3\n}}\n'


def topics(*names: str) -> dict[str, dict[str, Any]]:
    return {name: {"partitions": 3} for name in names}


class Clusters(MemoryProvider, frozen=True):
    """Opens the simulated cluster whose address a provider block has."""

    by_address: Any = None
    opened: Any = None

    def open(self, instance: str, config: FrozenMap, secrets: Any) -> Any:
        address = config["bootstrap_servers"][0]
        self.opened.append((instance, address))
        if address not in self.by_address:
            raise ConnectError(f"{address} does not answer", "Start it.")
        return MemoryProvider(self.by_address[address]).open(instance, config, secrets)


class Land(Struct):
    """A repository with two clusters."""

    path: Path
    prod: SimulatedCluster
    dev: SimulatedCluster
    opened: list[tuple[str, str]]

    def split(self, **filters: Any) -> SplitImport:
        return import_into_folders(self.path, **filters)

    def write(self, made: SplitImport) -> None:
        for item in made.folders:
            (self.path / item.folder.path / "imported.kf.hcl").write_text(item.generated.text)


def list_counts(made: SplitImport) -> dict[str, int]:
    return {item.folder.path: item.generated.count for item in made.folders}


@pytest.fixture
def land(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Land:
    """Teams pay and shop and the platform on one cluster, shop's own on another one."""
    folders = ("teams/pay", "teams/shop", "platform", "dev/shop")
    files = {f"{folder}/main.kf.hcl": EMPTY for folder in folders}
    make_files(tmp_path, {"kafkaform.hcl": REPOSITORY, **files})
    prod = cluster_of(topics=topics("pay.a", "shop.a", "shop.b", "web.a"))
    dev = cluster_of(topics=topics("shop.x", "pay.x"), cluster_id="dev")
    made = Land(tmp_path, prod, dev, [])
    provider = Clusters(prod, "admin", {"prod:9092": prod, "dev:9092": dev}, made.opened)
    monkeypatch.setattr(Registry, "load", lambda self, name: provider)
    return made


def test_objects_go_to_the_folder_whose_boundary_they_fit(land: Land) -> None:
    """In its own words for the cluster. Each cluster is asked once; what fits none is listed."""
    made = land.split()
    assert list_counts(made) == {"dev/shop": 1, "teams/pay": 1, "teams/shop": 2}
    texts = {item.folder.path: item.generated.text for item in made.folders}
    assert "= kafka.dev\n" in texts["dev/shop"] and '"shop.x"' in texts["dev/shop"]
    assert '"pay.a"' in texts["teams/pay"] and "provider" not in texts["teams/pay"]
    assert made.left_out == ("Left out: 2 of kafka_topic: no boundary covers them: pay.x, web.a.",)
    assert sorted(land.opened) == [("kafka", "prod:9092"), ("kafka.dev", "dev:9092")]


def test_the_next_apply_takes_them_over_and_changes_nothing(land: Land) -> None:
    """As after `import --all`; a second time there is nothing left."""
    land.write(land.split())
    for folder in ("teams/pay", "teams/shop", "dev/shop"):
        plan = kafkaform.plan_changes(kafkaform.open_workspace(land.path / folder))
        assert {change.action for change in plan.changes} == {Action.IMPORT}
        kafkaform.apply_changes(
            kafkaform.open_workspace(land.path / folder), approve=lambda _: True
        )
    assert land.split().folders == ()
    for folder in ("teams/pay", "teams/shop", "dev/shop"):
        (land.path / folder / "imported.kf.hcl").unlink()  # recorded objects are left out, too
    assert land.split().folders == ()


def test_what_another_folder_declares_or_records_is_left_out(land: Land) -> None:
    """Whether that folder has a boundary or not."""
    make_files(land.path, {"platform/main.kf.hcl": make_topic("shop.a")})
    made = land.split()
    assert list_counts(made)["teams/shop"] == 1
    (shop,) = (item for item in made.folders if item.folder.path == "teams/shop")
    assert '"shop.b"' in shop.generated.text and '"shop.a"' not in shop.generated.text


def test_a_declared_object_that_the_state_lacks_gets_an_import_block(land: Land) -> None:
    """In the folder that declares it, also without a boundary."""
    make_files(land.path, {"platform/main.kf.hcl": make_topic("web.a")})
    made = land.split()
    (platform,) = (item for item in made.folders if item.folder.path == "platform")
    assert "to = kafka_topic.a" in platform.generated.text
    assert 'resource "' not in platform.generated.text


def test_what_fits_several_folders_is_listed(land: Land) -> None:
    """And not written anywhere."""
    text = REPOSITORY + (
        'folders "shared" {\n  uses = { kafka = cluster.prod }\n'
        '  boundary {\n    topics = ["shop.*"]\n  }\n}\n'
    )
    make_files(land.path, {"kafkaform.hcl": text, "shared/main.kf.hcl": EMPTY})
    made = land.split()
    assert list_counts(made) == {"dev/shop": 1, "teams/pay": 1}
    assert (
        "Left out: 2 of kafka_topic: they fit shared and teams/shop: shop.a, shop.b."
        in made.left_out
    )


def test_why_an_object_fits_none(land: Land) -> None:
    """What lies half inside says which half is not; what no boundary covers says so."""
    land.prod = cluster_of(
        topics=topics("shop.a"),
        acls=[
            "User:shop-app|*|Read|Allow|Topic|web.|Prefixed",
            "User:shop-app|*|Read|Allow|Topic|shop.|Prefixed",
            "User:shop-app|*|Alter|Allow|Cluster|kafka-cluster|Literal",
        ],
        quotas={name: {"producer_byte_rate": 1} for name in ("user=shop-app", "client-id=x")},
    )
    provider = Clusters(land.prod, "admin", {"prod:9092": land.prod, "dev:9092": land.dev}, [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Registry, "load", lambda self, name: provider)
        made = land.split()
    assert list_counts(made) == {"dev/shop": 1, "teams/shop": 3}
    told = "\n".join(made.left_out)
    assert "is outside of the boundary of teams/shop (kafkaform.hcl:" in told
    assert "1 of kafka_acl: no boundary can cover them:" in told
    assert "1 of kafka_quota: no boundary can cover them:" in told


def test_filters_choose_the_objects(land: Land) -> None:
    """As for `import --all`."""
    assert list_counts(land.split(match=("*.a",))) == {"teams/pay": 1, "teams/shop": 1}
    assert list_counts(land.split(exclude=("shop.*",))) == {"teams/pay": 1}
    assert list_counts(land.split(types=("kafka_acl",))) == {}
    with pytest.raises(UsageError, match="--type 'nope'"):
        land.split(types=("nope",))


def test_one_folder_that_cannot_be_read_is_an_error(land: Land) -> None:
    """Nobody knows what it declares; all such folders are named at once."""
    make_files(land.path, {"teams/pay/main.kf.hcl": "resource", "platform/main.kf.hcl": "a ="})
    with pytest.raises(ConfigurationError) as caught:
        land.split()
    *faults, reason = caught.value.diagnostics
    assert reason.summary.endswith("nobody knows what platform, teams/pay declare")
    places = {str(fault.range).partition(":")[0] for fault in faults}
    assert places == {"teams/pay/main.kf.hcl", "platform/main.kf.hcl"}
    make_files(land.path, {"teams/pay/main.kf.hcl": EMPTY, "platform/main.kf.hcl": EMPTY})
    (land.path / "platform/kafkaform.state.json").write_text("{}")
    with pytest.raises(KafkaformError, match=r"kafkaform\.state\.json"):
        land.split()


def test_states_are_read_side_by_side(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits here until all are being read."""
    meeting, outline = threading.Barrier(4), LocalBackend.outline

    def wait_and_outline(backend: LocalBackend) -> StateOutline | None:
        meeting.wait(5)
        return outline(backend)

    monkeypatch.setattr(LocalBackend, "outline", wait_and_outline)
    assert len(land.split().folders) == 3


def test_a_system_that_does_not_answer_is_an_error(land: Land) -> None:
    """It could be one of the others, at another address."""
    text = REPOSITORY.replace("dev:9092", "gone:9092")
    make_files(land.path, {"kafkaform.hcl": text})
    with pytest.raises(ConnectError, match="kafka.dev of dev/shop was not reached: gone:9092"):
        land.split()


def test_a_folder_without_configuration_is_named(land: Land) -> None:
    """It could get something, if it had a file."""
    (land.path / "teams/web").mkdir()
    (gap,) = (gap for gap in land.split().gaps if "teams/web" in gap)
    assert gap.startswith("teams/web has no configuration, so it gets nothing.")
    make_files(land.path, {"teams/web/main.kf.hcl": ""})
    assert list_counts(land.split())["teams/web"] == 1


def test_two_logins_to_one_cluster_find_each_object_once(land: Land) -> None:
    """Folders with provider blocks of their own take part, whatever they call the cluster."""
    own = 'provider "kafka" {\n  bootstrap_servers = ["prod:9092"]\n  sasl_username = "x"\n}\n'
    make_files(land.path, {"teams/pay/main.kf.hcl": own})
    assert list_counts(land.split()) == {"dev/shop": 1, "teams/pay": 1, "teams/shop": 2}
    assert len(land.opened) == 3


def test_a_repository_without_boundaries(land: Land) -> None:
    """Says what is missing."""
    make_files(land.path, {"kafkaform.hcl": REPOSITORY.split("  boundary")[0] + "}\n"})
    with pytest.raises(UsageError, match="has a boundary"):
        land.split()


def test_one_state_for_all_is_refused(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment would give every folder the same one."""
    monkeypatch.setenv("KAFKAFORM_STATE", "one.json")
    with pytest.raises(UsageError, match="KAFKAFORM_STATE is set"):
        land.split()
