"""What blocks mean: names of subjects, faults of schemas, the provider block, test files."""

from __future__ import annotations

import pytest

from kafkaform.core.value import FrozenMap
from kafkaform_schema_registry.kinds.subject_settings import check_subject, find_topic, name_subject
from kafkaform_schema_registry.session import name_place

from ...kit.schema_registry.schemas import record
from .conftest import Folder

FULL_NAME = '{"type":"record","name":"Order","namespace":"shop","fields":[]}'


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ({"subject": "any name"}, "any name"),
        ({"topic": "orders"}, "orders-value"),
        ({"topic": "orders", "part": "key"}, "orders-key"),
        ({"strategy": "record"}, "shop.Order"),
        ({"topic": "orders", "strategy": "topic-record"}, "orders-shop.Order"),
    ],
)
def test_a_subject_is_named_as_clients_name_it(given: dict[str, str], subject: str) -> None:
    """By the three strategies of serializers."""
    block = FrozenMap({"format": "avro", "schema": FULL_NAME, **given})
    assert name_subject(block) == subject


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "set subject, or topic"),
        ({"strategy": "topic-record"}, "set subject, or topic"),
        ({"strategy": "record", "schema": '"int"'}, "has no name"),
        ({"subject": ""}, "needs a name"),
        ({"subject": ".."}, "is no name"),
        ({"subject": "a\nb"}, "control character"),
        ({"subject": "a" * 1001}, "at most 1,000"),
    ],
)
def test_what_names_no_subject_is_refused(given: dict[str, str], why: str) -> None:
    """With what is missing or wrong."""
    with pytest.raises(ValueError, match=why):
        name_subject(FrozenMap({"format": "avro", "schema": FULL_NAME, **given}))


def test_a_subject_is_an_import_id_of_itself() -> None:
    """Also with blanks, slashes and a context."""
    for name in ("a b", "a/b", ":.team:orders-value", "é?#"):
        assert check_subject(name) == name


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-value", "orders"),
        ("my-orders-key", "my-orders"),
        ("orders-shop.Order", "orders"),
        ("shop.Order", None),
        ("-value", None),
        ("value", None),
        ("orders", None),
    ],
)
def test_the_topic_of_a_subject(subject: str, topic: str | None) -> None:
    """As far as its name tells, whatever block it came from."""
    assert find_topic({"subject": subject, "format": "avro", "schema": FULL_NAME}) == topic
    assert find_topic({"subject": "orders", "format": "avro", "schema": "{"}) is None


def test_references_are_told_apart(folder: Folder) -> None:
    """A name can be used once, and versions begin at 1."""
    reference = '{ name = "A", subject = "a", version = %s }'
    folder.write(
        'resource "schema_registry_schema" "x" {\n  subject = "x"\n  schema = jsonencode("int")\n'
        f"  references = [{reference % 1}, {reference % 0}]\n}}\n"
    )
    said = folder.run("validate", code=1)
    assert "two references are called 'A'" in said
    assert "version 0 of a is no version" in said


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://Registry:8081", "registry:8081"),
        ("https://registry/", "registry:443"),
        ("http://r:8080/apis/ccompat/v7", "r:8080/apis/ccompat/v7"),
    ],
)
def test_a_registry_without_an_id_is_its_address(url: str, place: str) -> None:
    """Host, port and path, whatever the protocol."""
    assert name_place(url) == place


def test_the_provider_block_is_checked(folder: Folder) -> None:
    """A login in the clear, and what excludes each other."""
    (folder.path / "main.kf.hcl").write_text(
        'provider "schema_registry" {\n  url = "http://registry:8081"\n  username = "ci"\n'
        '  password = secret_env("X")\n}\n'
    )
    assert "would get the login in the clear" in folder.run("validate", code=1)


TEST_FILE = """
simulate "schema_registry" {
  compatibility = "FULL"
}

given "schema_registry_schema" "old" {
  subject = "orders-value"
  schema  = jsonencode({ type = "record", name = "Order", fields = [] })
}

run "apply" {
  command = apply

  assert {
    condition     = plan.counts.adopt == 1 && plan.counts.change == 1
    error_message = "The schema that is there becomes ours, and gets a new version."
  }
}
"""


def test_a_configuration_can_be_tested_without_a_registry(folder: Folder) -> None:
    """`kafkaform test` plans and applies on a simulated registry."""
    note = {"name": "note", "type": "string", "default": ""}
    folder.write(record(note), "order.avsc")
    folder.write(
        'resource "schema_registry_schema" "order" {\n  topic  = "orders"\n'
        '  schema = file("order.avsc")\n  lifecycle {\n    adopt = true\n  }\n}\n'
    )
    (folder.path / "first.kftest.hcl").write_text(TEST_FILE)
    assert "1 passed" in folder.run("test")
    assert not folder.registry.calls
