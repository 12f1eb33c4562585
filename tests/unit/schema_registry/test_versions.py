"""Subjects of which all versions are declared, through the commands."""

from __future__ import annotations

import pytest

from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform_schema_registry.formats.avro import normalize_avro

from ...kit.schema_registry.schemas import (
    ID,
    NOTE,
    ORDER,
    ORDER_WITH_AMOUNT,
    ORDER_WITH_NOTE,
    field,
    record,
)
from ...kit.schema_registry.systems import open_simulated
from .conftest import Folder

ORDER_WITH_CODE = record(ID, NOTE, field("code", default=""))
TEXTS = {"v1": ORDER, "v2": ORDER_WITH_NOTE, "v3": ORDER_WITH_CODE, "bad": ORDER_WITH_AMOUNT}
BLOCK = """
resource "schema_registry_schema" "order" {
  topic    = "orders"
  versions = [%s]
}
output "version" { value = schema_registry_schema.order.version }
"""


def declare(folder: Folder, *names: str, all_versions: bool = True, more: str = "") -> None:
    """A block with these versions."""
    for name, text in TEXTS.items():
        folder.write(text, f"{name}.avsc")
    setting = "  all_versions = true\n" if all_versions else ""
    provider = f'provider "schema_registry" {{\n  url = "{folder.served.url}"\n{setting}}}\n'
    texts = ", ".join(f'file("{name}.avsc")' for name in names)
    (folder.path / "main.kf.hcl").write_text(provider + BLOCK % texts + more)


def list_texts(folder: Folder) -> list[str]:
    """The versions of the subject."""
    return [stored.text for stored in folder.registry.subjects.list_versions("orders-value")]


def normalize(*names: str) -> list[str]:
    return [normalize_avro(TEXTS[name]) for name in names]


def test_a_history_is_registered_in_order(folder: Folder) -> None:
    """In a new environment all of it, later what is new at the end."""
    declare(folder, "v1", "v2")
    assert "version = 2" in folder.run("apply", "-auto-approve")
    assert list_texts(folder) == normalize("v1", "v2")
    assert "No changes" in folder.run("plan")
    declare(folder, "v1", "v2", "v3")
    assert "0 to add, 1 to change" in folder.run("plan", "--validate")
    assert "version = 3" in folder.run("apply", "-auto-approve")
    assert list_texts(folder) == normalize("v1", "v2", "v3")
    assert "No changes" in folder.run("plan")


def test_what_a_registry_has_already_is_the_beginning(folder: Folder) -> None:
    """Also if it was deleted softly before: places are counted in what there is."""
    door = open_simulated(folder.registry)
    for name in ("v3", "v1"):
        door.register("orders-value", TEXTS[name])
    folder.registry.subjects.delete("orders-value", [1])
    declare(folder, "v1", "v2", "v3")
    folder.run("apply", "-auto-approve", "--adopt=*")
    assert list_texts(folder) == normalize("v1", "v2", "v3")
    assert "No changes" in folder.run("plan")


@pytest.mark.parametrize(
    ("live", "names", "text"),
    [
        (("v2",), ("v1", "v2"), "version 1 of orders-value, counted from the oldest, is another"),
        (("v1", "v2", "v3"), ("v1", "v2"), "orders-value has 3 versions, and only 2 declared"),
        ((), ("v1", "v2", "v1"), "versions 1 and 3 of the list are the same schema"),
    ],
)
def test_another_history_is_refused(
    folder: Folder, live: tuple[str, ...], names: tuple[str, ...], text: str
) -> None:
    """With the place of the first difference; nothing is sent."""
    for name in live:
        open_simulated(folder.registry).register("orders-value", TEXTS[name])
    declare(folder, *names)
    assert text in folder.run("apply", "-auto-approve", "--adopt=*", code=8)
    assert list_texts(folder) == normalize(*live)


def test_the_provider_block_has_to_say_that_all_versions_are_read(folder: Folder) -> None:
    """The plan names the setting."""
    declare(folder, "v1", "v2", all_versions=False)
    text = folder.run("plan", code=8)
    assert "Set all_versions = true in the provider block" in text


def test_a_fault_is_named_with_its_version(folder: Folder) -> None:
    """Without a registry, too; and a block says what its schema is."""
    declare(folder, "v1", "v2")
    folder.write('{"type": "lng"}', "v1.avsc")
    text = folder.run("validate", code=1)
    assert "version 1 of the list: the text is not an Avro schema" in text, text
    assert "on v1.avsc:1:10, in schema_registry_schema." in text, text
    empty = BLOCK.replace("[%s]", "[]")
    folder.write(empty)
    assert "set schema, or versions" in folder.run("validate", code=1)
    folder.write(BLOCK.replace("versions", 'schema = "\\"int\\""\n  versions') % '"\\"int\\""')
    assert "schema" in folder.run("validate", code=1)


def test_a_run_that_ends_between_two_versions_goes_on(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was registered is recorded, and the next apply registers the rest."""
    answer = folder.registry.answer

    def answer_but(call: Call, user: str = "admin") -> HttpAnswer:
        body = call.body if isinstance(call.body, dict) else {}
        second = body.get("schema") == normalize("v2")[0]
        if second and call.path == "/subjects/orders-value/versions":
            return HttpAnswer(422, {"error_code": 42205, "message": "not now"})
        return answer(call, user)

    monkeypatch.setattr(folder.registry, "answer", answer_but)
    declare(folder, "v1", "v2", "v3")
    folder.run("apply", "-auto-approve", code=5)
    assert list_texts(folder) == normalize("v1")
    monkeypatch.setattr(folder.registry, "answer", answer)
    folder.run("apply", "-auto-approve")
    assert list_texts(folder) == normalize("v1", "v2", "v3")
    assert "No changes" in folder.run("plan")


def test_a_version_that_the_level_refuses_ends_the_run(folder: Folder) -> None:
    """Each is checked against the one before it."""
    declare(folder, "v1", "bad")
    text = folder.run("apply", "-auto-approve", code=5)
    assert "is not compatible" in text or "incompatible" in text
    assert list_texts(folder) == normalize("v1")


def test_parents_refer_to_the_last_of_several_versions(folder: Folder) -> None:
    """Which has the number that the plan shows."""
    cart = """
resource "schema_registry_schema" "cart" {
  subject    = "carts"
  schema     = jsonencode({ type = "array", items = "Order" })
  references = [{ name = "Order", subject = schema_registry_schema.order.subject }]
}
"""
    declare(folder, "v1", "v2", more=cart)
    folder.run("apply", "-auto-approve")
    (stored,) = folder.registry.subjects.list_versions("carts")
    assert [reference["version"] for reference in stored.references] == [2]
    assert "No changes" in folder.run("plan")


def test_a_history_is_imported(folder: Folder) -> None:
    """`import --all` writes a block with all versions, which changes nothing here and registers the
    same in another registry."""
    for name in ("v1", "v2"):
        open_simulated(folder.registry).register("orders-value", TEXTS[name])
    declare(folder, "v1")
    main = folder.path / "main.kf.hcl"
    main.write_text(main.read_text().partition("resource")[0])
    folder.run("import", "--all", "--out", "generated.kf.hcl")
    assert "versions" in (folder.path / "generated.kf.hcl").read_text()
    assert "0 added, 0 changed, 0 destroyed" in folder.run("apply", "-auto-approve")
    assert "No changes" in folder.run("plan")
