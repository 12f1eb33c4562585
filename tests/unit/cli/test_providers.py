"""`providers` and `providers schema`: what a folder uses, and what it may write."""

from __future__ import annotations

from ...kit.commands.here import Here


def test_the_list(here: Here) -> None:
    """Each instance with its package and where it connects to; no broker is asked."""
    here.write(
        "main.kf.hcl",
        'provider "kafka" {\n  bootstrap_servers = ["a:1", "b:2"]\n}\n'
        'provider "kafka" {\n  alias = "eu"\n  bootstrap_servers = [var.eu]\n}\n'
        'variable "eu" {}\n',
    )
    head, *lines = here.done("providers").out.splitlines()
    assert head.split() == ["instance", "provider", "connects", "to"]
    assert [line.split()[0] for line in lines] == ["kafka", "kafka.eu"]
    assert "kafka (kafkaform " in lines[0] and lines[0].endswith("a:1, b:2")
    assert lines[1].endswith("(needs variables that have no value)")
    (_, _, line) = here.done("providers", "-var", "eu=c:3").out.splitlines()
    assert line.endswith("c:3")


def test_faults_and_nothing(here: Here) -> None:
    """A faulty configuration is told as such; one without providers says so."""
    here.write("main.kf.hcl", "locals { a = 1 }\n")
    assert here.done("providers").out == "The configuration uses no provider.\n"
    here.write("main.kf.hcl", "locals { a = nope() }\n")
    assert "nope" in here.fails("providers")


OUTPUTS = """
data "kafkaform_outputs"
  folder     string        required
  outputs    any           computed
  sensitive  list(string)  computed"""


def test_schemas_have_terraforms_shape(here: Here) -> None:
    """Tools that read `terraform providers schema -json` find types, flags and texts."""
    report = here.json("providers", "schema", "-json")
    assert report["format_version"] == "1.0"
    kafka = report["provider_schemas"]["kafka"]
    assert kafka.keys() == {"provider", "resource_schemas", "data_source_schemas"}
    topic = kafka["resource_schemas"]["kafka_topic"]
    assert topic["version"] == 0
    attributes = topic["block"]["attributes"]
    assert attributes["name"]["type"] == "string" and attributes["name"]["required"] is True
    assert attributes["config"]["type"] == ["map", "string"]
    assert attributes["config"]["optional"] is True
    assert attributes["topic_id"]["computed"] is True
    settings = kafka["provider"]["block"]
    assert settings["attributes"]["bootstrap_servers"]["type"] == ["list", "string"]
    assert settings["attributes"]["sasl_password"]["sensitive"] is True
    authorizer = settings["block_types"]["authorizer"]
    assert authorizer["nesting_mode"] == "list" and authorizer["max_items"] == 1
    assert authorizer["block"]["attributes"]["super_users"]["type"] == ["list", "string"]
    for name, item in {**attributes, **settings["attributes"]}.items():
        assert item["description"], name
        assert item.get("required", False) + item.get("optional", False) < 2, name
        assert item.get("required") or item.get("optional") or item.get("computed"), name


def test_schemas_for_people(here: Here) -> None:
    """Every block with its attributes, their types, and what must be given."""
    text = here.done("providers", "schema").out
    assert 'provider "kafka"\n' in text and 'resource "kafka_topic"\n' in text
    (line,) = [line for line in text.splitlines() if line.startswith("  bootstrap_servers")]
    assert line.split() == ["bootstrap_servers", "list(string)", "required"]
    assert text.rstrip().endswith(OUTPUTS)


def test_the_data_source_that_no_provider_answers(here: Here) -> None:
    """It has an entry of its own."""
    own = here.json("providers", "schema", "-json")["provider_schemas"]["kafkaform"]
    attributes = own["data_source_schemas"]["kafkaform_outputs"]["block"]["attributes"]
    assert attributes["folder"]["required"] is True and attributes["outputs"]["computed"] is True
    assert own["resource_schemas"] == {} and own["provider"]["block"].get("attributes") is None
