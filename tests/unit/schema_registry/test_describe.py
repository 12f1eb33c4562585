"""`describe subjects` and `explain schema`, for people and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkaform.provider.http.exchange import Call, HttpAnswer

from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_NOTE
from .conftest import Folder

SUBJECTS = """
resource "schema_registry_schema" "order" {
  subject = "orders-value"
  schema  = file("order.avsc")
}
resource "schema_registry_schema" "count" {
  subject = "counts-key"
  schema  = jsonencode("int")
}
resource "schema_registry_schema" "counter" {
  subject = "counters-key"
  schema  = jsonencode("int")
}
resource "schema_registry_schema" "basket" {
  subject    = "baskets-value"
  depends_on = [schema_registry_schema.order]
  references = [{ name = "Order", subject = "orders-value", version = 1 }]
  schema = jsonencode({
    type   = "record"
    name   = "Basket"
    fields = [{ name = "order", type = "Order" }]
  })
}
resource "schema_registry_subject_config" "order" {
  subject       = "orders-value"
  compatibility = "FULL"
}
"""


@pytest.fixture
def shop(folder: Folder) -> Folder:
    """Four subjects; one has two versions and a level, and another one refers to its first."""
    folder.write(ORDER, "order.avsc")
    folder.write(SUBJECTS)
    folder.run("apply", "-auto-approve")
    folder.write(ORDER_WITH_NOTE, "order.avsc")
    folder.run("apply", "-auto-approve")
    return folder


def ask(folder: Folder, *arguments: str) -> Any:
    """The document that a command prints."""
    return json.loads(folder.run(*arguments, "--json"))


def test_subjects_have_their_latest_schemas(shop: Folder) -> None:
    """Sorted, with what a schema is in few words, and no level that nobody asked for."""
    document = ask(shop, "describe", "subjects")
    assert (document["kind"], document["complete"], document["hidden"]) == ("subjects", True, None)
    names = [row["name"] for row in document["subjects"]]
    assert names == ["baskets-value", "counters-key", "counts-key", "orders-value"]
    assert document["subjects"][3] == {
        "name": "orders-value",
        "format": "avro",
        "version": 2,
        "schema_id": 4,
        "summary": document["subjects"][3]["summary"],
        "references": 0,
        "error": None,
    }
    assert document["subjects"][3]["summary"].startswith("record Order: ")
    page = shop.run("describe", "subjects")
    assert "Subject Format Version Id Schema" in page and "4 subjects." in page


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["orders-value"], ["orders-value"]),
        (["count*"], ["counters-key", "counts-key"]),
        (["--name", "*-value"], ["baskets-value", "orders-value"]),
        (["--format", "json"], []),
        (["--format", "avro", "--name", "o*"], ["orders-value"]),
    ],
)
def test_names_and_filters_choose(shop: Folder, words: list[str], names: list[str]) -> None:
    """As with the other commands of `describe`."""
    document = ask(shop, "describe", "subjects", *words)
    assert [row["name"] for row in document["subjects"]] == names


def test_levels_say_whose_they_are(shop: Folder) -> None:
    """The subject's own, or the registry's that takes effect without one."""
    rows = {
        row["name"]: (row["level"], row["own_level"], row["mode"], row["own_mode"])
        for row in ask(shop, "describe", "subjects", "--levels")["subjects"]
    }
    assert rows["orders-value"] == ("FULL", "FULL", "READWRITE", None)
    assert rows["counts-key"] == ("BACKWARD", None, "READWRITE", None)
    assert "BACKWARD (registry's)" in shop.run("describe", "subjects", "--levels")


def test_a_name_that_is_none_is_an_error_after_the_others(shop: Folder) -> None:
    """With the nearest name."""
    said = shop.run("describe", "subjects", "counts-key", "order-value", code=1)
    assert "1 subject." in said and "there is no subject order-value" in said
    said = shop.run("describe", "subjects", "order*", "order-value", code=1)
    assert 'Did you mean "orders-value"?' in said
    assert "exclude each other" in shop.run("describe", "subjects", "a", "--name", "b", code=1)


def test_a_schema_is_explained_with_its_relations(shop: Folder) -> None:
    """Who refers to which version, who has the same id, and what the next one is checked at."""
    document = ask(shop, "explain", "schema", "orders-value")
    first, second = document["versions"]
    assert (first["version"], first["referred_by"], first["differences"]) == (
        1,
        ["baskets-value"],
        None,
    )
    assert (second["version"], second["referred_by"], second["differences"]) == (2, [], 1)
    assert (document["level"], document["own_level"], document["mode"]) == (
        "FULL",
        "FULL",
        "READWRITE",
    )
    page = shop.run("explain", "schema", "orders-value")
    assert "Version 1 is referred to by baskets-value." in page
    assert "it does not know which of these ids are in use" in page
    page = shop.run("explain", "schema", "counts-key")
    assert "Version 1 has the same id in counters-key." in page
    assert "BACKWARD (registry's): update readers" in page
    page = shop.run("explain", "schema", "baskets-value")
    assert "Version 1 refers to version 1 of orders-value as Order." in page


def test_a_schema_that_is_missing_is_no_explanation(shop: Folder) -> None:
    """A misspelt name is answered with the nearest one."""
    said = shop.run("explain", "schema", "orders-valu", code=1)
    assert "there is no subject orders-valu" in said and 'Did you mean "orders-value"?' in said


def test_a_hidden_subject_is_no_missing_one(shop: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are shown, and the command fails."""
    answer = shop.registry.answer

    def refuse(call: Call, user: str) -> HttpAnswer:
        refusal = HttpAnswer(403, {"error_code": 40301, "message": "denied"})
        return refusal if "counts-key" in call.path else answer(call, user)

    monkeypatch.setattr(shop.registry, "answer", refuse)
    said = shop.run("describe", "subjects", code=1)
    assert "Read on subject counts-key is missing" in said and "orders-value" in said
    assert "Read on subject counts-key" in shop.run("explain", "schema", "counts-key", code=1)


def test_a_folder_without_a_registry_says_what_is_missing(
    shop: Folder,
) -> None:
    """Flags of Kafka's tools name no registry, and a provider block does."""
    (shop.path / "main.kf.hcl").write_text('provider "kafka" {\n  bootstrap_servers = ["a:1"]\n}\n')
    said = shop.run("describe", "subjects", code=1)
    assert "has the provider schema_registry" in said
    assert "Add a provider block for schema_registry." in said
    assert "--bootstrap-server" not in shop.run("describe", "subjects", "--help")
