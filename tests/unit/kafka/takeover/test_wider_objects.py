"""`import --from`: the connectors, schemas and group configs that other tools declare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.generate.files import GeneratedConfiguration
from kafkaform.workflow.transfer.other_tools import ForeignSource, take_over

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


def run(folder: Path, tool: str, *only: str, documents: bool = True) -> GeneratedConfiguration:
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
    made = run(folder, "strimzi", "one")
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


def test_subjects_of_jikkou_with_their_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is relative to the working directory, or to the file that names it; with Jinja for the
    folder, too. Aiven's subjects have the same form. An address is not opened."""
    for name in ("source/here.avsc", "source/resources/beside.avsc", "source/resources/own.avsc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(SCHEMA)
    monkeypatch.chdir(folder)
    subject = """---
apiVersion: {group}/v1
kind: SchemaRegistrySubject
metadata:
  name: {name}
  annotations: {{schemaregistry.jikkou.io/normalize-schema: true{note}}}
spec:
  schemaType: AVRO
  schema:
    $ref: {path}
"""
    schemas = "schemaregistry.jikkou.io"
    rows = (
        (schemas, "here", "source/here.avsc", ""),
        ("kafka.aiven.io", "beside", "./beside.avsc", ""),
        (schemas, "own", "{{ resource.directoryPath }}/own.avsc", ""),
        (schemas, "far", "https://example.com/far.avsc", ""),
        (schemas, "gone", "gone.avsc", ""),
        (schemas, "numbered", "own.avsc", ", schemaregistry.jikkou.io/schema-id: 7"),
    )
    (folder / "source/resources/all.yaml").write_text(
        "".join(
            subject.format(group=group, name=name, path=path, note=note)
            for group, name, path, note in rows
        )
    )
    made = run(folder, "jikkou")
    assert set(made.documents) == {
        f"schemas/{name}.avsc" for name in ("here", "beside", "own", "numbered")
    }
    gaps = "\n".join(made.gaps)
    assert "https://example.com/far.avsc is an address" in gaps
    assert "gone.avsc does not exist" in gaps
    assert "schema-id: the schema keeps the id that it has" in gaps
    assert len(made.gaps) == 3


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


def make_resource(type: str, name: str = "x", **attributes: object) -> dict[str, object]:
    """A resource of a state, with the marks that a provider sets for its secrets."""
    secrets = [
        [{"type": "get_attr", "value": "config_sensitive"}],
        [{"type": "get_attr", "value": "credentials"}, {"type": "index", "value": {"value": 0}}],
    ]
    return {
        "mode": "managed",
        "type": type,
        "name": name,
        "instances": [{"attributes": attributes, "sensitive_attributes": secrets}],
    }


def write_state(folder: Path, *resources: dict[str, object]) -> None:
    text = json.dumps({"version": 4, "resources": resources})
    (folder / "source/x.tfstate").write_text(text)


def test_tfstate(folder: Path) -> None:
    """Of Confluent's provider, and of those of the community for Connect and registries."""
    config = {"name": "sink", "connector.class": "org.example.Sink", "tasks.max": "2"}
    config["connection.url"] = "jdbc:x"
    secrets = {"connection.password": CANARY}
    reference = {"name": "a", "subject_name": "b", "version": 1}
    write_state(
        folder,
        make_resource(
            "kafka-connect_connector", name="sink", config=config, config_sensitive=secrets
        ),
        make_resource("schemaregistry_schema", subject="a", schema=SCHEMA, schema_type="avro"),
        make_resource(
            "confluent_schema",
            subject_name="b",
            format="AVRO",
            schema=SCHEMA,
            schema_reference=[reference],
            credentials=[{"key": "k", "secret": CANARY}],
            ruleset=[],
            metadata=[],
        ),
        make_resource("confluent_subject_config", subject_name="b", compatibility_level="FULL"),
        make_resource("confluent_subject_mode", subject_name="b", mode="READONLY", force=False),
        make_resource(
            "confluent_schema_registry_cluster_config",
            compatibility_level="NONE",
            compatibility_group="",
            normalize=False,
        ),
        make_resource("confluent_schema_registry_cluster_mode", mode="READWRITE"),
    )
    made = run(folder, "tfstate")
    text = squeeze(made.text)
    assert not made.gaps
    assert made.count == 5
    assert squeeze(CONNECTOR).replace(' state = "paused"', "") in text
    assert 'compatibility = "FULL" mode = "READONLY"' in text
    assert 'compatibility = "NONE" mode = "READWRITE"' in text
    assert made.documents == {"schemas/a.avsc": SCHEMA, "schemas/b.avsc": SCHEMA}


def test_a_data_contract_of_confluents_provider(folder: Path) -> None:
    """Metadata and rules as the block has them, in order; a sensitive property is a reference, and
    the settings of the subject are one block."""
    rule = {
        "name": "checkPrice",
        "doc": "",
        "kind": "CONDITION",
        "mode": "WRITEREAD",
        "type": "CEL",
        "expr": "message.price > 0",
        "on_success": "NONE,NONE",
        "on_failure": "ERROR,DLQ",
        "tags": ["PII"],
        "params": {"dlq.topic": "bad"},
        "disabled": False,
    }
    write_state(
        folder,
        make_resource(
            "confluent_schema",
            subject_name="b",
            format="AVRO",
            schema=SCHEMA,
            version=2,
            metadata=[
                {
                    "properties": {"owner": "shop", "key": CANARY, "confluent:version": "2"},
                    "tags": [{"key": "Order.price", "value": ["PII", "MONEY"]}],
                    "sensitive": ["key"],
                }
            ],
            ruleset=[{"domain_rules": [rule], "migration_rules": [], "encoding_rules": []}],
        ),
        make_resource(
            "confluent_subject_config",
            subject_name="b",
            compatibility_level="FULL",
            compatibility_group="owner",
            alias="c",
            normalize=True,
        ),
    )
    made = run(folder, "tfstate")
    assert not made.gaps
    text = squeeze(made.text)
    assert 'properties = { owner = "shop" }' in text
    assert '"Order.price" = ["PII", "MONEY"]' in text
    assert 'sensitive_properties = { key = secret_env("' in text
    assert "domain_rules = [ {" in text and 'on_failure = "ERROR,DLQ"' in text
    (folder / "taken.kf.hcl").write_text(made.text)
    for name, content in made.documents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    desired = read_configuration(folder, Inputs()).evaluate(offline=True).desired
    assert not desired.diagnostics, desired.diagnostics
    attributes = {item.identity.kind: item.attributes for item in desired.declared}
    (taken,) = attributes["schema_registry_schema"]["rule_set"]["domain_rules"]
    said = {name: value for name, value in rule.items() if value} | {"tags": ("PII",)}
    assert {name: value for name, value in taken.items() if value} == said
    assert 'compatibility_group = "owner"' in text and "normalize = true" in text, text
    assert 'alias = "c"' in text


def test_versions_that_are_resources_of_their_own(folder: Path) -> None:
    """With `recreate_on_update`, the newest version becomes the block, whatever the order."""

    def make_version(number: int, name: str) -> dict[str, object]:
        schema = SCHEMA.replace("Order", f"Order{number}")
        return make_resource(
            "confluent_schema",
            name,
            subject_name="b",
            format="AVRO",
            schema=schema,
            version=number,
            schema_identifier=100000 + number,
            recreate_on_update=True,
        )

    write_state(
        folder, make_version(2, "second"), make_version(3, "third"), make_version(1, "first")
    )
    made = run(folder, "tfstate")
    assert made.documents == {"schemas/b.avsc": SCHEMA.replace("Order", "Order3")}
    assert [gap.partition(": an older")[0].rpartition(".")[2] for gap in made.gaps] == [
        "first",
        "second",
    ]


def test_registries_and_clusters_of_one_state(folder: Path) -> None:
    """Each kind of system is chosen by a name of its own, and versions of two registries are never
    taken for versions of one subject."""
    write_state(
        folder,
        *(
            make_resource(
                "confluent_schema",
                environment,
                subject_name="b",
                format="AVRO",
                schema=SCHEMA.replace("Order", environment),
                version=version,
                schema_registry_cluster=[{"id": f"lsrc-{environment}"}],
            )
            for version, environment in ((1, "prod"), (2, "dev"))
        ),
        *(
            make_resource(
                "confluent_kafka_topic",
                environment,
                topic_name=f"{environment}.a",
                kafka_cluster=[{"id": f"lkc-{environment}"}],
            )
            for environment in ("prod", "dev")
        ),
    )
    with pytest.raises(UsageError, match="2 systems: lkc-dev, lkc-prod"):
        run(folder, "tfstate", "lsrc-prod")
    with pytest.raises(UsageError, match="2 systems: lsrc-dev, lsrc-prod"):
        run(folder, "tfstate", "lkc-prod")
    made = run(folder, "tfstate", "lkc-prod", "lsrc-prod")
    assert made.documents == {"schemas/b.avsc": SCHEMA.replace("Order", "prod")}
    assert 'name = "prod.a"' in squeeze(made.text)
    assert made.count == 2


def test_what_only_confluent_cloud_has(folder: Path) -> None:
    """It is counted by its type, with the reason, and without a value of it."""
    write_state(
        folder,
        make_resource(
            "confluent_connector",
            config_nonsensitive={"name": "cloud", "connector.class": "PostgresSink"},
            config_sensitive={"connection.password": CANARY},
            status="RUNNING",
        ),
        make_resource("confluent_role_binding", "a", principal="User:sa-1"),
        make_resource("confluent_role_binding", "b", principal="User:sa-2"),
        make_resource("confluent_tag", display_name="PII"),
        make_resource(
            "confluent_subject_config",
            subject_name="b",
            compatibility_level="FULL",
        ),
    )
    gaps = "\n".join(run(folder, "tfstate").gaps)
    assert "1 of confluent_connector: Confluent Cloud runs it, behind an API" in gaps
    assert "2 of confluent_role_binding: a role of Confluent Cloud is no ACL" in gaps
    assert "1 of confluent_tag: it is an object of Confluent Cloud" in gaps
