"""Commands with a registry behind HTTP: from a configuration to subjects, and back."""

from __future__ import annotations

import json

from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_AMOUNT, ORDER_WITH_NOTE
from ...kit.schema_registry.systems import open_simulated
from .conftest import Folder

SCHEMA = """
resource "schema_registry_schema" "order" {
  topic  = "orders"
  schema = file("order.avsc")
}
"""
OTHER = """
resource "schema_registry_schema" "count" {
  subject = "counts-key"
  schema  = jsonencode("int")
}
"""
REMOVED = """
removed {
  from = schema_registry_schema.order
  lifecycle {
    destroy = true
  }
}
"""
LEVEL = """
resource "schema_registry_subject_config" "order" {
  topic         = "orders"
  compatibility = "%s"
}
"""


def start(folder: Folder, text: str = SCHEMA) -> None:
    """Apply a first schema."""
    folder.write(ORDER, "order.avsc")
    folder.write(text)
    folder.run("apply", "-auto-approve")


def test_a_schema_is_registered_and_stays(folder: Folder) -> None:
    """The subject has the name of its topic; another spelling of the file changes nothing, and the
    state has no more than the schema."""
    start(folder)
    assert folder.registry.subjects.list_names() == ["orders-value"]
    folder.write(json.dumps(json.loads(ORDER), indent=7), "order.avsc")
    assert "No changes" in folder.run("plan")
    state = json.loads((folder.path / "kafkaform.state.json").read_text())
    (row,) = state["objects"]
    assert row["attributes"].keys() == {"subject", "format", "schema", "references"}
    assert state["providers"] == {"schema_registry": "simulated/schema-registry"}


def test_a_new_version_is_explained_and_registered(folder: Folder) -> None:
    """The plan says what it means for readers and writers at the level of the subject."""
    start(folder, SCHEMA + LEVEL % "FULL")
    folder.write(ORDER_WITH_NOTE, "order.avsc")
    said = folder.run("plan", "--validate")
    assert "field note is added: null or string, default null" in said
    assert "old and new readers of orders-value can read what both schemas write" in said
    folder.run("apply", "-auto-approve")
    versions = folder.registry.subjects.list_versions("orders-value")
    assert [one.number for one in versions] == [1, 2]


def test_an_incompatible_schema_is_refused_in_the_plan(folder: Folder) -> None:
    """With the field, before the registry is asked, and nothing is sent."""
    start(folder)
    folder.write(ORDER_WITH_AMOUNT, "order.avsc")
    said = folder.run("plan", code=8)
    assert "level BACKWARD refuses the new version of orders-value: readers with the new" in said
    assert "cannot read records of the latest version: field amount is not written" in said
    folder.run("apply", "-auto-approve", code=8)
    assert len(folder.registry.subjects.list_versions("orders-value")) == 1


def test_a_lower_level_and_the_schema_that_needs_it_are_one_plan(folder: Folder) -> None:
    """The level is set first, and the dry run of the schema waits for it."""
    start(folder, SCHEMA + LEVEL % "BACKWARD")
    folder.write(ORDER_WITH_AMOUNT, "order.avsc")
    folder.write(SCHEMA + LEVEL % "NONE")
    said = folder.run("apply", "-auto-approve")
    assert "readers of orders-value with the new schema stop at older records: field amount" in said
    assert len(folder.registry.subjects.list_versions("orders-value")) == 2


def test_a_schema_is_deleted_softly_and_only_on_request(folder: Folder) -> None:
    """Without its block it stays; a removed block deletes it, and its versions can be read."""
    start(folder)
    folder.write(OTHER)
    assert "delete protection is on" in folder.run("plan")
    folder.write(OTHER + REMOVED)
    said = folder.run("apply", "-auto-approve")
    assert "Deletes 1 version." in said
    assert "writers that look up the schema of orders-value fail" in said
    subjects = folder.registry.subjects
    assert subjects.list_names() == ["counts-key"]
    assert subjects.list_names(deleted=True) == ["orders-value", "counts-key"]


def test_a_level_goes_before_its_subject(folder: Folder) -> None:
    """A registry forgets the level of a subject with the subject, so one apply deletes both only in
    this order, whatever the order was in which they were made."""
    start(folder, OTHER + SCHEMA + LEVEL % "FULL")
    folder.write(OTHER + REMOVED + REMOVED.replace("_schema.order", "_subject_config.order"))
    assert "2 destroyed" in folder.run("apply", "-auto-approve")
    assert "No changes" in folder.run("plan")
    assert folder.registry.subjects.list_names() == ["counts-key"]
    assert not folder.registry.levels


def test_a_level_that_went_with_its_subject_comes_back(folder: Folder) -> None:
    """The plan of the deletion says so, and the next one sets it again."""
    start(folder, OTHER + SCHEMA + LEVEL % "FULL")
    folder.write(OTHER + LEVEL % "FULL" + REMOVED)
    said = folder.run("apply", "-auto-approve")
    assert "schema_registry_subject_config.order declares it" in said
    assert not folder.registry.levels
    assert "schema_registry_subject_config.order (orders-value) will be created" in folder.run(
        "plan"
    )


def test_a_plan_reads_what_is_declared_and_no_other_subject(folder: Folder) -> None:
    """200 others make no more requests: the list of names, and the declared subject."""
    start(folder)
    door = open_simulated(folder.registry)
    for number in range(200):
        door.register(f"other-{number}", ORDER)
    folder.served.asked.clear()
    assert "No changes" in folder.run("plan")
    paths = [request.path for request in folder.served.asked if "/subjects" in request.path]
    assert paths == ["/subjects", "/subjects/orders-value/versions/latest"]


def test_a_level_stands_beside_the_one_in_effect_without_it(folder: Folder) -> None:
    """When it is set for the first time, instead of the registry's word, and when it goes."""
    start(folder, OTHER + SCHEMA)
    folder.write(OTHER + SCHEMA + LEVEL % "FULL")
    assert 'compatibility = "BACKWARD" (default) → "FULL"' in folder.run("plan")
    folder.run("apply", "-auto-approve")
    folder.write(OTHER + SCHEMA + (LEVEL % "INHERITED").replace("}", '  mode = "READONLY"\n}'))
    text = folder.run("plan")
    assert 'compatibility = "FULL" → "BACKWARD" (default)' in text, text
    assert 'mode = "READWRITE" (default) → "READONLY"' in text, text
    folder.write(OTHER + SCHEMA + REMOVED.replace("_schema.order", "_subject_config.order"))
    assert 'compatibility = "FULL" → "BACKWARD" (default)' in folder.run("plan")


def test_a_level_that_somebody_removed_can_be_given_up(folder: Folder) -> None:
    """A block that wants it deleted is not asked what it sets."""
    start(folder, SCHEMA + LEVEL % "FULL")
    folder.registry.levels.clear()
    folder.write(SCHEMA + REMOVED.replace("_schema.order", "_subject_config.order"))
    assert "1 forgotten" in folder.run("apply", "-auto-approve")


def test_a_schema_is_deleted_permanently_if_the_provider_says_so(folder: Folder) -> None:
    """The plan says that records cannot be read any more."""
    start(folder)
    block = (
        f'provider "schema_registry" {{\n  url = "{folder.served.url}"\n  hard_delete = true\n}}\n'
    )
    (folder.path / "main.kf.hcl").write_text(block + SCHEMA)
    said = folder.run("destroy", "--confirm", "simulated/schema-registry")
    assert "data loss" in said and "all versions of orders-value are deleted permanently" in said
    assert folder.registry.subjects.list_names(deleted=True) == []


def test_the_global_level_is_taken_over(folder: Folder) -> None:
    """It exists always, so it has to be adopted; without its block it stays as it is."""
    block = 'resource "schema_registry_config" "all" {\n  compatibility = "FULL"\n%s}\n'
    folder.write(block % "")
    assert "kafkaform does not manage it" in folder.run("plan", code=8)
    folder.write(block % "  lifecycle {\n    adopt = true\n  }\n")
    assert '"BACKWARD" → "FULL"' in folder.run("apply", "-auto-approve")
    assert folder.registry.level == "FULL"
    assert "No changes" in folder.run("plan")
    folder.write(
        'resource "schema_registry_schema" "x" {\n  subject = "x"\n  schema = "\\"int\\""\n}\n'
    )
    folder.run("apply", "-auto-approve")
    assert folder.registry.level == "FULL"


def test_a_reference_to_the_subject_has_its_name(folder: Folder) -> None:
    """Whether the block gives it, or topic and strategy do: it is known before anything exists."""
    folder.write(ORDER, "order.avsc")
    level = LEVEL.replace(
        'topic         = "orders"', "subject = schema_registry_schema.order.subject"
    )
    shown = (
        'output "names" {\n  value = [schema_registry_schema.order.subject, '
        "schema_registry_schema.count.subject, schema_registry_schema.whole.subject]\n}\n"
    )
    whole = SCHEMA.replace('"order"', '"whole"', 1).replace(
        "schema =", 'strategy = "topic-record"\n  schema ='
    )
    folder.write(SCHEMA + OTHER + whole + level % "FULL" + shown)
    said = folder.run("apply", "-auto-approve")
    assert 'names = ["orders-value", "counts-key", "orders-Order"]' in said, said
    assert folder.registry.levels == {"orders-value": "FULL"}
    assert "No changes" in folder.run("plan")


def test_references_name_versions_of_other_subjects(folder: Folder) -> None:
    """They are sent, read and compared; what others refer to cannot be deleted."""
    start(folder)
    text = """
resource "schema_registry_schema" "cart" {
  subject    = "carts-value"
  schema     = jsonencode({ type = "array", items = "Order" })
  references = [{ name = "Order", subject = "orders-value", version = 1 }]
  depends_on = [schema_registry_schema.order]
}
"""
    folder.write(SCHEMA + text)
    folder.run("apply", "-auto-approve")
    (cart,) = folder.registry.subjects.list_versions("carts-value")
    assert [dict(one) for one in cart.references] == [
        {"name": "Order", "subject": "orders-value", "version": 1}
    ]
    assert "No changes" in folder.run("plan")


def test_everything_can_be_imported(folder: Folder) -> None:
    """`import --all` writes blocks that change nothing."""
    start(folder, SCHEMA + LEVEL % "FULL")
    (folder.path / "kafkaform.state.json").unlink()
    (folder.path / "kafkaform.audit.jsonl").unlink()
    folder.write("")
    text = folder.run("import", "--all")
    assert 'resource "schema_registry_schema"' in text
    assert 'resource "schema_registry_subject_config"' in text
    folder.run("import", "--all", "--out", "generated.kf.hcl")
    said = folder.run("apply", "-auto-approve")
    assert "0 added, 0 changed, 0 destroyed" in said
    assert "No changes" in folder.run("plan")


def test_data_sources_answer(folder: Folder) -> None:
    """A schema by its version, and the names of all subjects."""
    start(folder)
    folder.write(
        SCHEMA
        + """
data "schema_registry_schema" "order" {
  subject = "orders-value"
}
data "schema_registry_schemas" "all" {}
output "order" {
  value = [data.schema_registry_schema.order.format, data.schema_registry_schema.order.latest]
}
output "all" { value = data.schema_registry_schemas.all.subjects }
"""
    )
    said = folder.run("apply", "-auto-approve")
    assert 'order = ["avro", 1]' in said
    assert "orders-value" in said


def test_a_wrong_address_is_explained(folder: Folder) -> None:
    """Nobody there, and somebody who is no registry."""
    folder.write(SCHEMA)
    folder.write(ORDER, "order.avsc")
    text = (folder.path / "main.kf.hcl").read_text()
    (folder.path / "main.kf.hcl").write_text(text.replace(folder.served.url, "http://127.0.0.1:1"))
    assert "http://127.0.0.1:1" in folder.run("plan", code=1)
    away = f"{folder.served.url}/no/registry"
    (folder.path / "main.kf.hcl").write_text(text.replace(folder.served.url, away))
    said = folder.run("plan", code=1)
    assert away in said and "check url" in said


def test_a_schema_file_with_a_fault_is_refused(folder: Folder) -> None:
    """In the plan, without a request to the registry."""
    folder.write("{", "order.avsc")
    folder.write(SCHEMA)
    said = folder.run("plan", code=8)
    assert "the text is not an Avro schema: it is not JSON: it ends too early" in said
    assert not folder.served.writes
