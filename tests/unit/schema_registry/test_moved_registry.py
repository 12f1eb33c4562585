"""A registry without an id that moves to another address: what a plan advises, and the command that
binds the state to it after it has proven to be the same one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaform_schema_registry.kinds.subject_settings import SUBJECT_CONFIG
from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.http.server import Served
from ...kit.schema_registry.products import ProductRegistry
from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_NOTE
from ...kit.schema_registry.server import serve_registry
from ...kit.schema_registry.systems import open_simulated
from .conftest import Folder

PROVIDER = 'provider "schema_registry" {{\n  url = "{}"\n{}}}\n'
BLOCKS = """
resource "schema_registry_schema" "order" {
  subject = "orders-value"
  schema  = file("order.avsc")
}

resource "schema_registry_subject_config" "order" {
  subject       = "orders-value"
  compatibility = "FULL"
}
"""

REMOVED = f"""
removed {{
  from = {SUBJECT_CONFIG}.order
  lifecycle {{
    destroy = true
  }}
}}
"""


@pytest.fixture
def registry() -> SimulatedRegistry:
    """It does not say who it is."""
    return ProductRegistry("karapace")


@pytest.fixture
def moved(registry: SimulatedRegistry) -> Iterator[Served]:
    """The same registry at another address."""
    with serve_registry(registry) as served:
        yield served


@pytest.fixture
def applied(folder: Folder) -> Folder:
    """A schema and a level, applied at the old address."""
    folder.write(ORDER, "order.avsc")
    write(folder, folder.served.url)
    folder.run("apply", "-auto-approve")
    return folder


def write(folder: Folder, url: str, more: str = "") -> None:
    (folder.path / "main.kf.hcl").write_text(PROVIDER.format(url, more) + BLOCKS)


def place(served: Served) -> str:
    return f"127.0.0.1:{served.port}"


def read_state(folder: Folder) -> Any:
    return json.loads(folder.run("show", "--json"))


def read_records(folder: Folder) -> list[Any]:
    lines = (folder.path / "kafkaform.audit.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def rebind(folder: Folder, address: str, code: int = 0) -> str:
    return folder.run("state", "rebind", "schema_registry", "--from", address, code=code)


def test_a_plan_says_how_to_go_on(applied: Folder, moved: Served) -> None:
    """The name that the state knows, as registry_id, works at once."""
    write(applied, moved.url)
    old = place(applied.served)
    said = applied.run("plan", code=4)
    assert f'write registry_id = "{old}" into its provider block' in said
    assert "kafkaform state rebind schema_registry --from OLD_URL" in said
    write(applied, moved.url, f'  registry_id = "{old}"\n')
    assert "No changes" in applied.run("plan")


def test_the_state_is_bound_to_the_new_address(applied: Folder, moved: Served) -> None:
    """After both addresses have shown the same objects. The log has it, ownership goes on, and
    nothing was written there."""
    write(applied, moved.url)
    writes = len(applied.served.writes)
    said = rebind(applied, applied.served.url)
    assert f"belongs to {place(moved)} now, and no longer to {place(applied.served)}" in said
    assert "2 objects" in said
    assert read_state(applied)["providers"] == {"schema_registry": place(moved)}
    record = read_records(applied)[-1]
    assert record["body"]["reason"] == "state rebind"
    assert record["body"]["scopes"] == {"schema_registry": place(moved)}
    assert len(applied.served.writes) == writes
    assert not [request for request in moved.writes if request.method != "POST"]
    assert "No changes" in applied.run("plan")
    applied.run("audit", "verify")
    applied.write(ORDER_WITH_NOTE, "order.avsc")
    applied.run("apply", "-auto-approve")
    assert len(applied.registry.subjects.list_versions("orders-value")) == 2
    # What was proven to be ours at the old address can be deleted at the new one.
    (applied.path / "main.kf.hcl").write_text(
        PROVIDER.format(moved.url, "")
        + REMOVED
        + BLOCKS.partition('resource "schema_registry_subject_config"')[0]
    )
    applied.run("apply", "-auto-approve")
    assert not applied.registry.levels


def test_an_edit_that_the_state_lost_is_taken_from_the_log(applied: Folder, moved: Served) -> None:
    """A crash between log and state leaves a state that an apply brings up to date."""
    before = (applied.path / "kafkaform.state.json").read_bytes()
    write(applied, moved.url)
    rebind(applied, applied.served.url)
    (applied.path / "kafkaform.state.json").write_bytes(before)
    applied.run("apply", "-auto-approve")
    assert read_state(applied)["providers"] == {"schema_registry": place(moved)}


@pytest.mark.parametrize("difference", ["no subject", "another id", "another level"])
def test_another_registry_is_refused(applied: Folder, difference: str) -> None:
    """Each recorded object has to be there with the same values, version and id of its schema."""
    other = ProductRegistry("karapace")
    door = open_simulated(other)
    if difference == "another id":
        door.register("first", ORDER_WITH_NOTE)
    if difference != "no subject":
        door.register(
            "orders-value", applied.registry.subjects.list_versions("orders-value")[0].text
        )
        other.levels["orders-value"] = "FULL" if difference == "another id" else "BACKWARD"
    with serve_registry(other) as served:
        write(applied, served.url)
        said = rebind(applied, applied.served.url, code=4)
    texts = {
        "no subject": "orders-value is not shown at the new address",
        "another id": "schema_id of orders-value",
        "another level": "compatibility of orders-value",
    }
    assert texts[difference] in said and "recorded objects" in said
    assert read_state(applied)["providers"] == {"schema_registry": place(applied.served)}
    assert read_records(applied)[-1]["body"].get("reason") != "state rebind"


def test_what_proves_nothing_is_refused(applied: Folder, moved: Served) -> None:
    """The same address, a former address that is none, one that does not answer, and an instance of
    which nothing is recorded."""
    assert "already" in rebind(applied, applied.served.url, code=1)
    write(applied, moved.url)
    assert "Name the address that the last apply used" in rebind(applied, moved.url, code=4)
    rebind(applied, "http://127.0.0.1:1", code=1)
    said = applied.run("state", "rebind", "schema_registri", "--from", moved.url, code=1)
    assert "nothing of a provider instance 'schema_registri'" in said
    assert 'Did you mean "schema_registry"?' in said
    assert read_state(applied)["providers"] == {"schema_registry": place(applied.served)}


def test_a_registry_with_an_id_has_no_address_to_leave(folder: Folder) -> None:
    """It says who it is, so no advice leads there."""
    folder.registry.__class__ = SimulatedRegistry
    folder.write(ORDER, "order.avsc")
    write(folder, folder.served.url)
    folder.run("apply", "-auto-approve")
    folder.registry.id = "another"
    said = folder.run("plan", code=4)
    assert "belongs to" in said or "went to" in said
    assert "rebind" not in said
