"""`import --from`: the connectors, schemas and group configs that other tools declare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.generate.files import GeneratedConfiguration
from kafkaform.workflow.transfer.take_over import ForeignSource, take_over

CANARY = "canary-password"
SCHEMA = '{"type": "record", "name": "Order", "fields": []}'
PROVIDERS = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
}
provider "kafka_connect" {
  url = "http://localhost:8083"
}
provider "schema_registry" {
  url = "http://localhost:8081"
}
"""
CONNECTOR = """
resource "kafka_connect_connector" "sink" {
  name  = "sink"
  class = "org.example.Sink"
  config = {
    "connection.url" = "jdbc:x"
    "tasks.max"      = "2"
  }
  secret_config = {
    "connection.password" = secret_env("SINK_SECRET_CONFIG_CONNECTION_PASSWORD")
  }
  state = "paused"
}
"""
IMPORT = 'import {\n  to = kafka_connect_connector.sink\n  id = "sink"\n}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.kf.hcl").write_text(PROVIDERS)
    (tmp_path / "source").mkdir()
    return tmp_path


def run(
    folder: Path, tool: str, only: str = "", *, documents: bool = True
) -> GeneratedConfiguration:
    files = list((folder / "source").iterdir())
    paths = tuple(files) if tool == "tfstate" else (folder / "source",)
    source = ForeignSource(tool, paths, only)
    made = take_over(read_configuration(folder, Inputs()), source, documents=documents)
    assert CANARY not in made.text + "".join((*made.gaps, *made.documents.values()))
    return made


def squeeze(text: str) -> str:
    return " ".join(text.split())


STRIMZI = """apiVersion: kafka.strimzi.io/v1
kind: KafkaConnector
metadata: {name: sink, labels: {strimzi.io/cluster: one}}
spec:
  class: org.example.Sink
  tasksMax: 2
  state: paused
  autoRestart: {enabled: true}
  config: {connection.url: "jdbc:x", connection.password: canary-password}
"""


def test_a_connector_of_strimzi(folder: Path) -> None:
    """Its secret becomes a reference, and the comment names the variable that the block uses."""
    (folder / "source/c.yaml").write_text(STRIMZI)
    made = run(folder, "strimzi")
    assert squeeze(CONNECTOR) in squeeze(made.text)
    assert IMPORT in made.text
    assert "put it into SINK_SECRET_CONFIG_CONNECTION_PASSWORD" in made.text
    assert [gap for gap in made.gaps if "c.yaml:8: KafkaConnector sink: autoRestart" in gap]


def test_configs_with_placeholders_of_the_connector(folder: Path) -> None:
    """`${topic}` is filled in by the connector, and stays text; a template of Helm is left out."""
    named = STRIMZI.replace('"jdbc:x"', "'jdbc:${topic}'")
    helm = STRIMZI.replace('"jdbc:x"', "'{{ .Values.url }}'").replace("name: sink", "name: other")
    (folder / "source/c.yaml").write_text(f"{named}---\n{helm}")
    made = run(folder, "strimzi")
    assert made.count == 1
    assert '"jdbc:$${topic}"' in made.text
    assert [gap for gap in made.gaps if "c.yaml:19: " in gap and "helm template" in gap]


def test_connectors_of_several_connect_clusters(folder: Path) -> None:
    """They are never mixed."""
    other = STRIMZI.replace("cluster: one", "cluster: two").replace("name: sink", "name: other")
    (folder / "source/c.yaml").write_text(f"{STRIMZI}---\n{other}")
    with pytest.raises(UsageError, match="2 systems: one, two"):
        run(folder, "strimzi")
    made = run(folder, "strimzi", only="one")
    assert made.count == 1
    assert "it is in two, not in one" in "".join(made.gaps)


def test_a_folder_without_the_other_provider(folder: Path) -> None:
    """What cannot be declared is listed; what can is taken over."""
    (folder / "main.kf.hcl").write_text('provider "kafka" {\n  bootstrap_servers = ["x:9092"]\n}\n')
    topic = STRIMZI.split("spec:")[0].replace("KafkaConnector", "KafkaTopic")
    (folder / "source/c.yaml").write_text(f"{STRIMZI}---\n{topic}")
    made = run(folder, "strimzi")
    assert made.count == 1
    assert "c.yaml:1: a kafka_connect_connector, and this folder has no provider" in made.gaps[1]


def test_jikkou(folder: Path) -> None:
    """A connector, subjects with the schema inside or in a file, and configs of groups."""
    (folder / "source/order.avsc").write_text(SCHEMA)
    (folder / "source/all.yaml").write_text(f"""apiVersion: kafka.jikkou.io/v1
kind: KafkaConnector
metadata: {{name: sink, labels: {{kafka.jikkou.io/connect-cluster: one}}}}
spec:
  connectorClass: org.example.Sink
  tasksMax: 2
  state: PAUSED
  config: {{connection.url: "jdbc:x", connection.password: {CANARY}}}
---
apiVersion: schemaregistry.jikkou.io/v1
kind: SchemaRegistrySubject
metadata: {{name: orders-value}}
spec: {{schemaType: AVRO, compatibilityLevel: FULL, schema: {{$ref: order.avsc}}}}
---
apiVersion: schemaregistry.jikkou.io/v1
kind: SchemaRegistrySubject
metadata: {{name: person}}
spec:
  schemaType: PROTOBUF
  schema: |
    syntax = "proto3";
    message Person {{}}
---
apiVersion: schemaregistry.jikkou.io/v1
kind: SchemaRegistrySubject
metadata: {{name: outside}}
spec: {{schemaType: AVRO, schema: {{$ref: ../main.kf.hcl}}}}
---
apiVersion: kafka.jikkou.io/v1
kind: KafkaConsumerGroup
metadata: {{name: billing}}
spec: {{configs: {{consumer.session.timeout.ms: 50000}}}}
""")
    made = run(folder, "jikkou")
    text = squeeze(made.text)
    assert squeeze(CONNECTOR) in text
    assert made.documents["schemas/orders-value.avsc"] == SCHEMA
    assert made.documents["schemas/person.proto"].startswith('syntax = "proto3";')
    assert 'file("schemas/orders-value.avsc")' in text
    assert 'compatibility = "FULL"' in text
    assert 'group = "billing"' in text
    assert "outside of the folders that are read" in "".join(made.gaps)
    assert made.count == 5
    # Without files, the text is in the block.
    assert SCHEMA.replace('"', '\\"') in run(folder, "jikkou", documents=False).text


def test_julieops(folder: Path) -> None:
    """Schemas and connectors are files beside the topologies."""
    (folder / "source/t.yaml").write_text(
        "context: acme\nprojects:\n- name: shop\n"
        "  connectors: {artefacts: [{path: c.json, name: sink, server: one}]}\n"
        "  topics:\n  - name: orders\n"
        "    schemas: [{value.schema.file: o.avsc, key.schema.file: gone.avsc}]\n"
        "  - name: bills\n"
        "    subject.name.strategy: RecordNameStrategy\n"
        "    schemas: {value.schema.file: o.avsc, value.record.type: acme.Bill}\n"
    )
    (folder / "source/o.avsc").write_text(SCHEMA)
    config = {"connector.class": "org.example.Sink", "connection.password": CANARY, "tasks.max": 2}
    (folder / "source/c.json").write_text(json.dumps({"name": "sink", "config": config}))
    made = run(folder, "julieops")
    assert "schemas/acme.Bill.avsc" in made.documents
    assert "secret_env(" in made.text
    assert "gone.avsc does not exist" in "".join(made.gaps)
    assert not [gap for gap in made.gaps if "c.json:" in gap]
    # A topic's schemas are taken over together or not at all.
    assert made.count == 4


def test_tfstate(folder: Path) -> None:
    """Of Confluent's provider, and of those of the community for Connect and registries."""

    def resource(type: str, **attributes: object) -> dict[str, object]:
        sensitive = [[{"type": "get_attr", "value": "config_sensitive"}]]
        return {
            "mode": "managed",
            "type": type,
            "name": "x",
            "instances": [{"attributes": attributes, "sensitive_attributes": sensitive}],
        }

    config = {"name": "sink", "connector.class": "org.example.Sink", "tasks.max": "2"}
    config["connection.url"] = "jdbc:x"
    secrets = {"connection.password": CANARY}
    reference = {"name": "a", "subject_name": "b", "version": 1}
    resources = [
        resource("kafka-connect_connector", name="sink", config=config, config_sensitive=secrets),
        resource(
            "confluent_connector",
            config_nonsensitive={**config, "name": "cloud"},
            config_sensitive=secrets,
            status="PAUSED",
        ),
        resource("schemaregistry_schema", subject="a", schema=SCHEMA, schema_type="avro"),
        resource(
            "confluent_schema",
            subject_name="b",
            format="AVRO",
            schema=SCHEMA,
            schema_reference=[reference],
        ),
        resource("confluent_subject_config", subject_name="b", compatibility_level="FULL"),
        resource("confluent_subject_mode", subject_name="b", mode="READONLY"),
        resource("confluent_schema_registry_cluster_config", compatibility_level="NONE"),
    ]
    (folder / "source/x.tfstate").write_text(json.dumps({"version": 4, "resources": resources}))
    made = run(folder, "tfstate")
    text = squeeze(made.text)
    assert not made.gaps
    assert made.count == 6
    assert squeeze(CONNECTOR).replace(' state = "paused"', "") in text
    assert 'compatibility = "FULL" mode = "READONLY"' in text
    assert made.documents == {"schemas/a.avsc": SCHEMA, "schemas/b.avsc": SCHEMA}
