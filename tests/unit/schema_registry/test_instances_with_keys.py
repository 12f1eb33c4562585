"""A provider block with for_each, from the file to the state: each key is a system of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.schema_registry.schemas import ORDER
from ...kit.schema_registry.server import serve_registry
from .conftest import Folder

BLOCKS = """
variable "urls" {
  type = map(string)
}
provider "schema_registry" {
  alias    = "by_region"
  for_each = var.urls
  url      = each.value
}
resource "schema_registry_schema" "order" {
  provider = schema_registry.by_region[each.key]
  for_each = var.urls
  topic    = "orders"
  schema   = file("order.avsc")
}
"""
EU, US = 'schema_registry.by_region["eu"]', 'schema_registry.by_region["us"]'


@pytest.fixture
def other(folder: Folder) -> Iterator[SimulatedRegistry]:
    """The registry of the second region. Both have an id, so that each is known again."""
    registry = SimulatedRegistry("other")
    with serve_registry(registry) as served:
        (folder.path / "main.kf.hcl").write_text(BLOCKS)
        folder.write(ORDER, "order.avsc")
        urls = {"eu": folder.served.url, "us": served.url}
        folder.write(json.dumps({"urls": urls}), "all.auto.kfvars.json")
        yield registry


def keep_eu(folder: Folder) -> None:
    folder.write(json.dumps({"urls": {"eu": folder.served.url}}), "all.auto.kfvars.json")


def test_each_instance_is_a_system(folder: Folder, other: SimulatedRegistry) -> None:
    """Its objects, its rows and its scope have the name with the key."""
    folder.run("validate")
    assert EU in folder.run("providers")
    folder.run("apply", "-auto-approve")
    for registry in (folder.registry, other):
        assert registry.subjects.list_names() == ["orders-value"]
    state = json.loads((folder.path / "kafkaform.state.json").read_text())
    assert sorted(row["instance"] for row in state["objects"]) == [EU, US]
    assert sorted(state["providers"]) == [EU, US]
    assert "No changes" in folder.run("plan")
    folder.run("audit", "verify")
    assert "to destroy" in folder.run("plan", "-destroy")


def test_an_instance_whose_key_is_gone_is_one_whose_block_is_gone(
    folder: Folder, other: SimulatedRegistry
) -> None:
    """Its rows stay and are named, with the command that forgets them."""
    folder.run("apply", "-auto-approve")
    keep_eu(folder)
    said = folder.run("plan", code=8)
    assert f'the state has objects of provider instance "{US}", which is not configured' in said
    assert f"`kafkaform state rm --provider '{US}'`" in said
    folder.run("state", "rm", "--provider", US)
    assert "No changes" in folder.run("plan")
    assert other.subjects.list_names() == ["orders-value"]


def test_the_environment_sets_what_the_block_leaves_out(
    folder: Folder, other: SimulatedRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is a word of the variable's name."""
    urls = json.loads((folder.path / "all.auto.kfvars.json").read_text())["urls"]
    (folder.path / "main.kf.hcl").write_text(BLOCKS.replace("  url      = each.value\n", ""))
    for key, url in urls.items():
        monkeypatch.setenv(f"KAFKAFORM_SCHEMA_REGISTRY_BY_REGION_{key.upper()}_URL", url)
    folder.run("apply", "-auto-approve")
    assert other.subjects.list_names() == ["orders-value"]
