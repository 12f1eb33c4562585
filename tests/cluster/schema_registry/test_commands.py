"""Commands with a real registry: a stream's schema from its first version to its end."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from ...kit.commands.here import Here
from ...kit.entry_point import offer_provider
from ...kit.schema_registry.schemas import (
    ORDER,
    ORDER_WITH_AMOUNT,
    ORDER_WITH_NOTE,
    field,
    record,
)
from ...kit.servers import Client, Registry

BLOCKS = """
provider "schema_registry" {
  url = "%s"
}

resource "schema_registry_schema" "order" {
  topic  = "%s"
  schema = file("order.avsc")
}

resource "schema_registry_subject_config" "order" {
  topic         = "%s"
  compatibility = "FULL"
  depends_on    = [schema_registry_schema.order]
}
"""


@pytest.fixture
def here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Here:
    """An empty folder."""
    offer_provider("schema_registry", tmp_path / "site", monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Here(folder, capsys, monkeypatch)


def test_a_schema_lives_and_ends(here: Here, registry: Registry) -> None:
    """It is registered, grows compatibly, refuses what is not compatible with the field's name,
    and is deleted with its level."""
    topic = f"orders-{uuid4().hex[:8]}"
    here.write("main.kf.hcl", BLOCKS % (registry.url, topic, topic))
    here.write("order.avsc", ORDER)
    here.done("apply", "-auto-approve")
    assert "No changes" in here.done("plan").out
    here.write("order.avsc", json.dumps(json.loads(ORDER), indent=3))
    assert "No changes" in here.done("plan").out
    here.write("order.avsc", ORDER_WITH_NOTE)
    said = " ".join(here.done("apply", "-auto-approve").out.split())
    assert f"old and new readers of {topic}-value can read what both schemas write" in said
    here.write("order.avsc", ORDER_WITH_AMOUNT)
    refused = " ".join(here.fails("plan", code=8).split())
    assert "field amount is added: int, no default" in refused
    assert f"level FULL refuses the new version of {topic}-value" in refused
    here.fails("apply", "-auto-approve", code=8)
    state = json.loads((here.path / "kafkaform.state.json").read_text())
    here.done("destroy", "--confirm", state["providers"]["schema_registry"])
    assert json.loads((here.path / "kafkaform.state.json").read_text())["objects"] == []


def test_what_there_is_can_be_imported(here: Here, registry: Registry) -> None:
    """`import --all` finds the subjects and says that others can be missing only if that is so."""
    topic = f"imported-{uuid4().hex[:8]}"
    here.write("main.kf.hcl", BLOCKS % (registry.url, topic, topic))
    here.write("order.avsc", ORDER)
    here.done("apply", "-auto-approve")
    for name in ("kafkaform.state.json", "kafkaform.audit.jsonl", "main.kf.hcl"):
        (here.path / name).unlink()
    here.write("main.kf.hcl", BLOCKS.partition("resource")[0] % registry.url)
    text = here.done("import", "--all", "--match", f"{topic}*").out
    assert f'"{topic}-value"' in text
    here.write("generated.kf.hcl", text)
    assert "0 to add, 0 to change, 0 to destroy" in here.done("plan").out


FAMILY = """
resource "schema_registry_schema" "cart" {
  subject    = "%(name)s-carts"
  schema     = jsonencode({ type = "array", items = "Order" })
  references = [{ name = "Order", subject = schema_registry_schema.order.subject }]
}

resource "schema_registry_schema" "order" {
  subject    = "%(name)s-orders"
  schema     = file("order.avsc")
  references = [{ name = "Money", subject = schema_registry_schema.money.subject }]
}

resource "schema_registry_schema" "money" {
  subject = "%(name)s-money"
  schema  = file("money.avsc")
}

resource "schema_registry_subject_config" "order" {
  subject       = schema_registry_schema.order.subject
  compatibility = "BACKWARD"
}

output "version" {
  value = schema_registry_schema.money.version
}
"""


def test_a_history_is_registered_in_order(here: Here, registry: Registry) -> None:
    """In an empty subject, and behind what there is after a soft deletion; another one is
    refused."""
    subject, client = f"{uuid4().hex[:8]}-value", Client(registry.url)
    block = BLOCKS.partition("resource")[0].replace("}", "  all_versions = true\n}") % registry.url
    history = (
        'resource "schema_registry_schema" "order" {\n  subject = "%s"\n  versions = [%s]\n}\n'
    )
    for name, text in (("v1", ORDER), ("v2", ORDER_WITH_NOTE), ("v3", ORDER_WITH_AMOUNT)):
        here.write(f"{name}.avsc", text)

    def declare(*names: str) -> None:
        texts = ", ".join(f'file("{name}.avsc")' for name in names)
        here.write("main.kf.hcl", block + history % (subject, texts))

    declare("v1", "v2")
    here.done("apply", "-auto-approve")
    declare("v1", "v2", "v3")
    here.done("apply", "-auto-approve")
    assert client.ask("GET", f"/subjects/{subject}/versions")[1] == [1, 2, 3]
    assert "No changes" in here.done("plan").out
    declare("v1", "v3")
    text = " ".join(here.fails("plan", code=8).split())
    assert f"version 2 of {subject}, counted from the oldest, is another schema" in text
    assert client.ask("DELETE", f"/subjects/{subject}/versions/2")[0] == 200
    assert "No changes" in here.done("plan").out
    assert client.ask("DELETE", f"/subjects/{subject}")[0] == 200
    here.done("apply", "-auto-approve")
    assert client.ask("GET", f"/subjects/{subject}/versions")[1] == [4, 5]


def test_parents_follow_their_child(here: Here, registry: Registry) -> None:
    """Each version refers to the newest one of the subject below it, in one plan."""
    name, client = uuid4().hex[:8], Client(registry.url)
    here.write(
        "main.kf.hcl", BLOCKS.partition("resource")[0] % registry.url + FAMILY % {"name": name}
    )
    here.write("money.avsc", record(field("cents", "long"), name="Money"))
    here.write("order.avsc", record(field("price", "Money"), name="Order"))
    here.done("apply", "-auto-approve")
    assert "No changes" in here.done("plan").out
    here.write(
        "money.avsc", record(field("cents", "long"), field("code", default=""), name="Money")
    )
    assert "0 to add, 3 to change" in here.done("plan").out
    assert "version = 2" in here.done("apply", "-auto-approve").out
    for subject in ("orders", "carts"):
        _, latest = client.ask("GET", f"/subjects/{name}-{subject}/versions/latest")
        assert [latest["version"], latest["references"][0]["version"]] == [2, 2]
    assert "No changes" in here.done("plan").out
    state = json.loads((here.path / "kafkaform.state.json").read_text())
    confirmation = "--confirm", state["providers"]["schema_registry"]
    assert "set hard_delete = true" in " ".join(
        here.fails("destroy", *confirmation, code=8).split()
    )
    text = (here.path / "main.kf.hcl").read_text()
    here.write("main.kf.hcl", text.replace("}", "  hard_delete = true\n}", 1))
    assert "4 destroyed" in here.done("destroy", *confirmation).out
    for subject in ("money", "orders", "carts"):
        deleted = f"/subjects/{name}-{subject}/versions?deleted=true"
        assert client.ask("GET", deleted)[0] == 404
