"""Rules that need only a block judge it offline, at the argument that causes the finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from kafkaform.core.finding import Finding
from kafkaform.core.resource import Declared
from kafkaform.core.value import FrozenMap
from kafkaform.plan.rules import RULE_FAILED
from kafkaform.workflow.configuration import judgement

from ...kit.commands.here import Here

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
TOPIC = PROVIDER + (
    'resource "kafka_topic" "a" {\n  name = "a"\n  replication_factor = 2\n  config = {\n'
    '    "retention.ms" = 1000\n    "min.insync.replicas" = 3\n  }\n}\n'
)
SCHEMA = """\
provider "schema_registry" {
  url = "http://localhost:8081"
}
resource "schema_registry_schema" "a" {
  subject     = "a-value"
  format      = "avro"
  schema      = TEXT
}
"""
AVRO = '{\n  "type": "record",\n  "name": "Order",\n  "fields": []\n}\n'


def test_a_caution_is_a_warning_at_the_key(here: Here) -> None:
    """With the words and the rule of the plan, the place of the key, and what to do."""
    here.write("main.kf.hcl", TOPIC)
    said = here.done("validate").text
    assert "on main.kf.hcl:9:5, in kafka_topic.a" in said, said
    assert "min.insync.replicas is 3, but the topic has only 2 replicas" in said
    assert "[topic-min-insync-above-replicas]" in said
    assert "Fix: Lower min.insync.replicas" in said


def test_a_sound_block_has_no_findings(here: Here) -> None:
    """Nothing is said of a topic that no rule minds."""
    here.write("main.kf.hcl", TOPIC.replace("= 3\n", "= 1\n"))
    assert "Warning" not in here.done("validate").text


def test_a_block_is_an_error(here: Here) -> None:
    """What no system takes fails `validate`, with the code of other faults."""
    text = TOPIC.replace('"min.insync.replicas" = 3', '"cleanup.policy" = "none"')
    here.write("main.kf.hcl", text)
    said = here.fails("validate")
    assert "Error: cleanup.policy = 'none'" in said and "on main.kf.hcl:9:5" in said, said


def test_instances_of_modules_are_judged_in_their_folder(here: Here) -> None:
    """The place is that of the block in the folder of the module."""
    topic = TOPIC.removeprefix(PROVIDER).replace('name = "a"', "name = var.name")
    here.write("m/main.kf.hcl", topic + 'variable "name" { type = string }\n')
    call = 'module "m" {\n  source = "./m"\n  for_each = toset(["x", "y"])\n  name = each.key\n}\n'
    here.write("main.kf.hcl", PROVIDER + call)
    report = here.json("validate", "-json")
    places = [(item["range"]["filename"], item["address"]) for item in report["diagnostics"]]
    assert places == [
        ("m/main.kf.hcl", 'module.m["x"].kafka_topic.a'),
        ("m/main.kf.hcl", 'module.m["y"].kafka_topic.a'),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('file("order.avsc")', "order.avsc:3:5"),
        ('file("./order.avsc")', "order.avsc:3:5"),
        ('file("${path.module}/order.avsc")', "order.avsc:3:5"),
        ('file("${path.root}/order.avsc")', "order.avsc:3:5"),
        ("<<EOT\n" + AVRO + "EOT", "main.kf.hcl:10:5"),
        ("<<-EOT\n    " + AVRO.replace("\n", "\n    ") + "EOT", "main.kf.hcl:10:9"),
        ('trimspace(file("order.avsc"))', "main.kf.hcl:7:17"),
        (f"jsonencode({AVRO})", "main.kf.hcl:7:17"),
    ],
)
def test_a_line_of_a_schema_is_found_in_its_file(
    here: Here, monkeypatch: pytest.MonkeyPatch, text: str, place: str
) -> None:
    """A finding that names a line of a text is shown in the file or heredoc that has it, and at the
    argument if the text is computed."""

    def judge(
        declared: Iterable[Declared], providers: object
    ) -> Iterator[tuple[Declared, Finding]]:
        for item in declared:
            figures = FrozenMap({"line": 3, "column": 5})
            yield item, RULE_FAILED.find("the name is wrong", ("schema",), figures=figures)

    monkeypatch.setattr(judgement, "judge_blocks", judge)
    here.write("order.avsc", AVRO)
    here.write("main.kf.hcl", SCHEMA.replace("TEXT", text))
    said = here.fails("validate")
    assert f"on {place}, in schema_registry_schema.a" in said, said


def test_the_rules_that_judge_the_blocks_are_listed(here: Here) -> None:
    """Those of the declared types that need nothing else, as text and as JSON."""
    here.write("main.kf.hcl", TOPIC)
    lines = here.done("validate", "--rules").out.split("\n")
    ids = [line.split()[0] for line in lines if line.startswith("  ")]
    assert "topic-min-insync-above-replicas" in ids and "topic:" in lines
    assert not [id for id in ids if id.startswith(("quota-", "acl-", "object-"))]
    rows = here.json("validate", "--rules", "--json")
    assert [row["id"] for row in rows] == ids
    assert {row["needs"] for row in rows} == {"block"}


def test_rules_of_nothing(here: Here) -> None:
    """An empty configuration is judged by none."""
    here.write("main.kf.hcl", PROVIDER)
    assert here.json("validate", "--rules", "--json") == []


ROLES = (
    PROVIDER
    + """\
resource "kafka_access" "a" {
  principal = "User:app "
  role      = "consumer"
  topics    = ["a", "b", "c"]
  group     = "a"
}
resource "kafka_access" "b" {
  principal = "User:app "
  role      = "producer"
  topics    = ["a"]
}
"""
)


def test_a_fault_of_many_rights_of_a_role_is_shown_once(here: Here) -> None:
    """Once for each block, with the number of rights and the first ones: as text and as JSON, which
    editors show, too."""
    here.write("main.kf.hcl", ROLES)
    assert here.done("validate").text.count("[name-blank-at-end]") == 2
    found = here.json("validate", "-json")["diagnostics"]
    assert [item["address"] for item in found] == ["kafka_access.a", "kafka_access.b"]
    first, second = (item["detail"] for item in found)
    assert first.startswith('7 ACLs: Allow "User:app " Describe on topic "a" from any host, ')
    assert first.endswith(", … and 2 more.") and second.startswith("2 ACLs: ")


def test_a_fault_of_one_right_of_a_role_names_it(here: Here) -> None:
    """The address says which one."""
    here.write("main.kf.hcl", ROLES.replace("User:app ", "User:app").replace('= "a"', '= "a "'))
    (found,) = here.json("validate", "-json")["diagnostics"]
    assert found["address"] == 'kafka_access.a/acl["Read|Group|a |Literal"]'
    assert found["detail"] == "" and found["advice"] == "Remove the blank."


CONTRADICTING = (
    PROVIDER
    + """\
resource "kafka_topic" "dotted" {
  name = "orders.eu"
}
resource "kafka_topic" "underscored" {
  name = "orders_eu"
}
resource "kafka_topic_config" "dotted" {
  topic  = "orders.eu"
  config = { "retention.ms" = 86400000 }
}
"""
)


def test_blocks_that_contradict_each_other_are_found_without_a_cluster(here: Here) -> None:
    """Names that collide, and two blocks for the configs of one topic: what a plan would refuse."""
    here.write("main.kf.hcl", CONTRADICTING)
    found = here.json("validate", "-json", code=1)["diagnostics"]
    assert [(item["address"], item["summary"].rpartition("[")[2]) for item in found] == [
        ("kafka_topic.dotted", "topic-name-collides]"),
        ("kafka_topic.underscored", "topic-name-collides]"),
        ("kafka_topic_config.dotted", "topic-configs-declared-twice]"),
    ]
    assert all(item["range"]["filename"] == "main.kf.hcl" for item in found)
    assert "topic-name-collides" in here.done("validate", "--rules").text
