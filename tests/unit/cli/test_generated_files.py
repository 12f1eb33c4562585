"""What `import --all` and `export` write for connectors and schemas, as files in a folder."""

from __future__ import annotations

import pytest

from ...kit.commands.fixtures import here  # noqa: F401  # pytest finds it here
from .test_unreachable_systems import Systems, schema, systems  # noqa: F401  # likewise

SECRET = "canary-of-the-connector"
CONNECTOR = """
resource "kafka_connect_connector" "sink" {
  name  = "sink"
  class = "FileStreamSink"
  config = {
    file   = "/tmp/sink"
    topics = "orders"
  }
  secret_config = {
    "db.password" = secret_env("LIVE_SECRET")
  }
}
"""


@pytest.fixture
def live(systems: Systems, monkeypatch: pytest.MonkeyPatch) -> Systems:  # noqa: F811  # the fixture
    """A connector with a secret and two schemas, which the state has."""
    monkeypatch.setenv("LIVE_SECRET", SECRET)
    systems.declare(CONNECTOR, schema("a"), schema("b", "long"))
    applied = systems.apply()
    assert applied.code == 0, applied.text
    return systems


def test_schemas_are_files(live: Systems, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks read them; the comment above a connector names the variable that its block uses;
    the next plan imports everything and changes nothing."""
    for address in live.rows():
        live.here.done("state", "rm", address)
    live.declare()
    live.here.done("import", "--all", "--exclude", "b-*", "--out", "all.kf.hcl")
    text = (live.here.path / "all.kf.hcl").read_text()
    assert 'file("schemas/a-key.avsc")' in text
    assert "b-key" not in text
    assert (live.here.path / "schemas/a-key.avsc").read_text() == '"int"'
    assert SECRET not in text
    variable = "SINK_SECRET_CONFIG_DB_PASSWORD"
    assert f"put it into {variable}." in text
    assert f'secret_env("{variable}")' in text
    monkeypatch.setenv(variable, SECRET)
    live.here.done("fmt", "--check", "all.kf.hcl")
    planned = live.here.done("plan").text
    assert "3 to import" in planned and "0 to change" in planned, planned
    # A schema that is there already is the same file; another text is not overwritten.
    (live.here.path / "all.kf.hcl").rename(live.here.path / "all.txt")
    live.here.done("import", "--all", "--out", "again.kf.hcl")
    (live.here.path / "again.kf.hcl").unlink()
    (live.here.path / "schemas/a-key.avsc").write_text("mine")
    refused = live.here.run("import", "--all", "--out", "more.kf.hcl")
    assert refused.code == 1
    assert "schemas/a-key.avsc exists" in refused.text
    assert not (live.here.path / "more.kf.hcl").exists()


def test_without_a_file_the_schema_is_in_the_block(live: Systems) -> None:
    """Standard output is one text."""
    live.here.done("state", "rm", "schema_registry_schema.a")
    live.declare(CONNECTOR, schema("b", "long"))
    said = live.here.done("import", "--all")
    assert "file(" not in said.out
    assert '= "\\"int\\""' in said.out


def test_the_way_back_to_terraform(live: Systems) -> None:
    """Each provider there has its own resource; a secret is a variable without a value."""
    said = live.here.done("export", "terraform", "--out", "back.txt")
    text = (live.here.path / "back.txt").read_text()
    assert SECRET not in text + said.text
    squeezed = " ".join(text.split())
    assert 'source = "Mongey/kafka-connect"' in squeezed
    assert 'source = "cultureamp/schemaregistry"' in squeezed
    assert 'resource "kafka-connect_connector" "sink"' in text
    assert "to = kafka-connect_connector.sink" in text
    assert '"connector.class" = "FileStreamSink"' in squeezed
    assert '"db.password" = var.sink_db_password' in squeezed
    assert 'variable "sink_db_password" { type = string sensitive = true }' in squeezed
    assert 'schema_type = "AVRO"' in squeezed
    assert 'to = schemaregistry_schema.a_key id = "a-key"' in squeezed
    # Schemas are files beside it, which the module reads wherever it is called from.
    assert 'schema = file("${path.module}/schemas/a-key.avsc")' in squeezed
    assert (live.here.path / "schemas/a-key.avsc").read_text() == '"int"'
    assert (live.here.path / "schemas/b-key.avsc").read_text() == '"long"'
    printed = live.here.done("export", "terraform")
    assert "file(" not in printed.out
    assert '= "\\"int\\""' in printed.out
