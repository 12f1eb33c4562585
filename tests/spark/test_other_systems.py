"""Connectors and subjects in the tables of the fleet: from what commands and snapshots leave of
them, beside a cluster that has neither."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.core.objects import Folder
from kafkaform.fleet.build.driver import DATASETS, BuildOptions, run_build
from kafkaform.fleet.tables.reader import Gold, read_current
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.fleet.register_file import read_fleet
from kafkaform.workflow.fleet.snapshot import take_snapshot
from kafkaform_schema_registry.memory import SimulatedRegistry

from ..kit.commands.fixtures import here  # noqa: F401  # pytest finds it here
from ..kit.commands.here import Here
from ..kit.connect.folder import answer, connector, make_workers
from ..kit.entry_point import offer_provider
from ..kit.fleet.landings import HOUR, START, Landing, row
from ..kit.http.server import serving
from ..kit.schema_registry.schemas import ORDER, ORDER_WITH_NOTE
from ..kit.schema_registry.server import serve_registry
from ..kit.schema_registry.systems import open_simulated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTOR, SCHEMA = "kafka_connect_connector", "schema_registry_schema"
TABLES = ("live", "recorded", "desired", "drift", "policy_findings")
PROVIDERS = """
provider "kafka_connect" {{
  url = "{workers}"
}}
provider "schema_registry" {{
  url = "{registry}"
}}
"""
BLOCKS = """
resource "schema_registry_schema" "orders" {
  topic  = "orders"
  schema = file("order.avsc")
}
resource "schema_registry_schema" "returns" {
  topic  = "returns"
  schema = file("order.avsc")
}
"""
FLEET = """
fleet {{
  root = "data"
}}
cluster "workers" {{
  provider = "kafka_connect"
  connection {{
    url = "{workers}"
  }}
}}
cluster "registry" {{
  provider = "schema_registry"
  connection {{
    url = "{registry}"
  }}
}}
state "here" {{
  folder = "."
}}
rule "halted" {{
  severity = "low"
  kind     = "kafka_connect_connector"
  where    = "attrs['state'] = 'stopped'"
  message  = "it copies nothing"
}}
rule "avro" {{
  severity = "low"
  kind     = "schema_registry_schema"
  where    = "key = 'theirs'"
  message  = "nobody declares it"
}}
rule "wide" {{
  severity = "low"
  kind     = "kafka_topic"
  where    = "cast(attrs['partitions'] as int) > 2"
  message  = "too many partitions"
}}
"""


@pytest.fixture
def root(
    here: Here,  # noqa: F811  # the fixture
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """Landing files of workers and of a registry on which something has changed since the apply, of
    the folder that was applied, and of a Kafka cluster with a state of its own."""
    site: Path = tmp_path_factory.mktemp("site")
    for name in ("kafka_connect", "schema_registry"):
        offer_provider(name, site, monkeypatch)
    workers, registry = make_workers(), SimulatedRegistry()
    with serving(partial(answer, workers)) as first, serve_registry(registry) as second:
        urls = {"workers": first.url, "registry": second.url}
        stopped = connector("b", state='"stopped"')
        here.write("order.avsc", ORDER)
        here.write("main.kf.hcl", PROVIDERS.format(**urls) + connector("a") + stopped + BLOCKS)
        here.done("apply", "-auto-approve")
        workers.connectors["a"].config["file"] = "/elsewhere"
        door = open_simulated(registry)
        door.register("orders-value", ORDER_WITH_NOTE)
        door.register("theirs", ORDER)
        registry.subjects.delete("returns-value", [1])
        path = here.write("fleet.hcl", FLEET.format(**urls))
        summary = take_snapshot(read_fleet(path, Inputs()))
        assert not [error for state in summary.states for error in state.errors]
    land_kafka(here.path / "data")
    return here.path / "data"


def land_kafka(root: Path) -> None:
    """A topic that has more partitions than its state says."""
    landing, hours = Landing(root / "landing"), (time.time() - START) / HOUR
    live = row("kafka_topic", "orders", {"partitions": "3"})
    covered: dict[str, Any] = {"scope_id": "scope-k", "coverage": {"kafka_topic": "complete"}}
    landing.snapshot("live", "kafka", hours, [live], **covered)
    about = {"instance": "kafka", "scope_id": "scope-k", "address": "kafka_topic.orders"}
    own = row("kafka_topic", "orders", {"partitions": "2"}, **about)
    landing.snapshot("state", "k", hours, [own], scopes={"kafka": "scope-k"})


def build(spark: SparkSession, root: Path) -> Gold:
    options = BuildOptions("1", only=TABLES)
    run_build(lambda _: spark, Folder(root), str(root), DATASETS, options)
    return Gold(read_current(str(root)))


def ask(gold: Gold, sql: str) -> set[tuple[Any, ...]]:
    return {tuple(found.values()) for found in gold.read_rows(sql)}


def test_connectors_and_subjects_come_through(spark: SparkSession, root: Path) -> None:
    """Declared, recorded and live, under the names of their systems; what differs is drift, and
    rules of their kinds find them."""
    gold = build(spark, root)
    ours = {
        ("workers", CONNECTOR, "a"),
        ("workers", CONNECTOR, "b"),
        ("registry", SCHEMA, "orders-value"),
    }
    gone, theirs = ("registry", SCHEMA, "returns-value"), ("registry", SCHEMA, "theirs")
    of_them = "where cluster in ('workers', 'registry')"
    for table, rows in (
        ("live", {*ours, theirs}),
        ("recorded", {*ours, gone}),
        ("desired", {*ours, gone}),
    ):
        found = ask(gold, f"select cluster, kind, key from {table} {of_them}")
        assert {one for one in found if one[1] in (CONNECTOR, SCHEMA)} == rows, table
    assert ask(
        gold,
        "select cluster, key, path, drift_class from drift where cluster in ('workers', "
        "'registry') and drift_class <> 'in_sync'",
    ) == {
        ("workers", "a", "", "drifted"),
        ("workers", "a", "config.file", "drifted"),
        ("registry", "orders-value", "", "drifted"),
        ("registry", "orders-value", "schema", "drifted"),
        ("registry", "global", "", "unmanaged"),
        ("registry", "returns-value", "", "deleted_out_of_band"),
        ("registry", "theirs", "", "unmanaged"),
    }
    found = ask(gold, f"select rule, cluster, kind, key from policy_findings {of_them}")
    assert found == {("halted", "workers", CONNECTOR, "b"), ("avro", *theirs)}


def test_a_cluster_without_them_has_the_same_rows(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    """Whether other systems have landed beside it or not."""
    alone = tmp_path / "alone"
    for part in ("live/kafka", "state/k", "register"):
        shutil.copytree(root / "landing" / part, alone / "landing" / part)
    asked = {
        "live": "kind, key, attrs",
        "recorded": "kind, key, attrs, lineage, address",
        "drift": "kind, key, path, desired, state, live, drift_class, lineage, address",
        "policy_findings": "rule, severity, kind, key, path, message",
    }
    both, one = (
        {
            table: sorted(map(str, gold.read_rows(f"select {columns} from {table} where {KAFKA}")))
            for table, columns in asked.items()
        }
        for gold in (build(spark, root), build(spark, alone))
    )
    assert all(one.values())
    assert both == one


KAFKA = "cluster = 'kafka'"
