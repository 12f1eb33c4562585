"""The JSON Schema of `*.kf.json`: right files fit, wrong ones do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.core.errors import KafkaformError
from kafkaform.editor.json_schema import make_json_schema, make_repository_schema
from kafkaform.editor.members import ARGUMENTS, BLOCKS
from kafkaform.editor.project import load_library
from kafkaform.language.declare.blocks import LIFECYCLE, SHAPES, WAIVER
from kafkaform.language.declare.json_bodies import TOP
from kafkaform.language.tests.suites import SHAPES as TEST_SHAPES
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.configuration.repository import PAGES
from kafkaform.workflow.configuration.repository_folders import find_repository_faults

from ...kit.commands.here import Here

jsonschema = pytest.importorskip(
    "jsonschema", reason="jsonschema is missing: pip install -e '.[test]'"
)

GOOD = [
    {},
    {"//": "why", "locals": {"a": [1, {"b": None}]}},
    {"variable": {"zone": {"type": "string", "default": "eu", "validation": [
        {"condition": "${true}", "error_message": "No."}]}}},
    {"provider": {"kafka": [{"bootstrap_servers": ["a:1"]}, {"alias": "eu"}]}},
    {"resource": {"kafka_topic": {"a": {
        "name": "a", "partitions": "${var.n}", "replication_factor": "3",
        "config": {"retention.ms": 1, "cleanup.policy": ["compact", "delete"]},
        "lifecycle": {"prevent_destroy": True, "ignore_changes": ["partitions"]},
        "owner": "team", "for_each": "${var.all}", "provider": "kafka.eu"}}}},
    {"resource": [{"kafka_topic": {"a": [{"name": "a", "managed_replication_factor": "true"}]}}]},
    {"module": {"team": {"source": "./team", "size": 1}}},
    {"output": {"a": {"value": "${1}"}}},
    {"moved": [{"from": "kafka_topic.a", "to": "kafka_topic.b"}]},
    {"kafkaform": {"required_version": ">= 0.1", "backend": {"local": {"path": "x"}}}},
    {"data": {"kafka_topics": {"all": {"name": "a*"}}}},
]  # fmt: skip
WRONG = [
    "text",
    {"resources": {}},
    {"resource": {"kafka_topics": {"a": {"name": "a"}}}},
    {"resource": {"kafka_topic": {"a": {"name": "a", "partition": 1}}}},
    {"resource": {"kafka_topic": {"a": {"partitions": 1}}}},
    {"resource": {"kafka_topic": {"a": {"name": "a", "partitions": "many"}}}},
    {"resource": {"kafka_topic": {"a": {"name": "a", "config": ["x"]}}}},
    {"resource": {"kafka_topic": {"a": {"name": "a", "config_mode": "some"}}}},
    {"resource": {"kafka_topic": {"a": {"name": "a", "topic_id": "x"}}}},
    {"resource": {"kafka_topic": {"a": {"name": "a", "lifecycle": {"keep": True}}}}},
    {"resource": {"kafka_topic": {"1a": {"name": "a"}}}},
    {"moved": {"from": "kafka_topic.a"}},
    {"variable": {"a": {"typ": "string"}}},
    {"provider": {"kafka": {"bootstrap": "a"}}},
    {"module": {"team": {}}},
]


@pytest.fixture(scope="module")
def validator() -> Any:
    """Checks documents; what it has is a schema itself."""
    schema = make_json_schema(load_library().schemas)
    kind = jsonschema.validators.validator_for(schema)
    assert kind is jsonschema.Draft202012Validator
    kind.check_schema(schema)
    return kind(schema)


def find_errors(folder: Path, document: Any) -> list[str]:
    """What `validate` says of a file with this text."""
    (folder / "main.kf.json").write_text(json.dumps(document))
    try:
        built = read_configuration(folder, Inputs.read(())).evaluate(offline=True)
        found = built.desired.diagnostics
    except KafkaformError as error:
        found = error.diagnostics
    return [one.summary for one in found if one.severity is Severity.ERROR]


def test_the_command_prints_the_schema(here: Here, validator: Any) -> None:
    """In one piece, for a file that an editor is told of."""
    assert here.json("providers", "json-schema") == json.loads(json.dumps(validator.schema))


@pytest.mark.parametrize("document", GOOD, ids=json.dumps)
def test_right_files_fit(validator: Any, document: Any) -> None:
    """Blocks alone and in lists, templates instead of values, texts instead of numbers."""
    validator.validate(document)


@pytest.mark.parametrize("document", WRONG, ids=json.dumps)
def test_wrong_files_do_not_fit(validator: Any, document: Any, tmp_path: Path) -> None:
    """A wrong name, a missing argument, a value that no type has: nothing is refused that
    kafkaform itself takes."""
    assert not validator.is_valid(document)
    assert find_errors(tmp_path, document)


def test_every_block_of_the_language_is_in_it(validator: Any) -> None:
    """Except those of Terraform's own files; with their documentation."""
    properties = validator.schema["$defs"]["file"]["properties"]
    assert set(properties) == {*TOP, "//"} - {"terraform", "ephemeral", "language"}
    assert all(one["description"] for one in properties.values())


def test_words_of_the_language_are_explained() -> None:
    """Each block and each of its arguments has a sentence."""
    shapes = {**SHAPES, **TEST_SHAPES, "lifecycle": LIFECYCLE, "waiver": WAIVER}
    for kind, shape in shapes.items():
        assert BLOCKS[kind], kind
        for name in (*shape.required, *shape.optional):
            assert ARGUMENTS[kind][name], (kind, name)
        assert all(BLOCKS[name] for name in shape.blocks), kind


# ── kafkaform.json ──────────────────────────────────────────────────────────────────────

BEGIN = {"repository": {"name": "acme"}}
CLUSTER = {"provider": "kafka", "bootstrap_servers": ["a:1"]}
GOOD_REPOSITORIES = [
    BEGIN,
    {"//": "why", "repository": [{"name": "acme", "owner": "the platform team"}]},
    {**BEGIN, "cluster": {"prod": {**CLUSTER, "sasl_password": '${secret_env("PASSWORD")}'}}},
    {**BEGIN, "cluster": {"a": [CLUSTER], "b": {"provider": "kafka_connect", "url": "http://c"}}},
    {**BEGIN, "cluster": {"prod": CLUSTER}, "folders": {
        "teams/*": {
            "state": "s3://acme/${folder.path}", "owner": "${folder.name}",
            "labels": {"team": "${folder.name}"}, "uses": {"kafka": "${cluster.prod}"},
            "policies": ["policies/teams"],
            "boundary": {"topics": ["${folder.name}.*"], "deny": ["kafka_topic_config"]}},
        "**": [{"boundary": [{"groups": []}]}]}},
]  # fmt: skip
WRONG_REPOSITORIES = [
    {},
    {"repository": {}},
    {"repository": {"nam": "acme"}},
    {**BEGIN, "clusters": {}},
    {**BEGIN, "cluster": {"prod": {"bootstrap_servers": ["a:1"]}}},
    {**BEGIN, "cluster": {"prod": {**CLUSTER, "url": "http://a"}}},
    {**BEGIN, "cluster": {"prod": {"provider": "kafkas"}}},
    {**BEGIN, "cluster": {"1prod": CLUSTER}},
    {**BEGIN, "folders": {"teams/*": {"status": "s"}}},
    {**BEGIN, "folders": {"teams/*": {"labels": ["a"]}}},
    {**BEGIN, "folders": {"teams/*": {"boundary": {"topic": ["a"]}}}},
]


@pytest.fixture(scope="module")
def repository_validator() -> Any:
    """Checks documents; what it has is a schema itself."""
    schema = make_repository_schema(load_library().schemas)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def find_repository_errors(folder: Path, document: Any) -> list[str]:
    """What the commands say of a file with this text."""
    content = json.dumps(document).encode()
    faults = find_repository_faults(folder / "kafkaform.json", content)
    return [fault.summary for fault in faults if fault.severity is Severity.ERROR]


def test_the_command_prints_the_schema_of_a_repository(
    here: Here, repository_validator: Any
) -> None:
    """With --repository."""
    printed = here.json("providers", "json-schema", "--repository")
    assert printed == json.loads(json.dumps(repository_validator.schema))


@pytest.mark.parametrize("document", GOOD_REPOSITORIES, ids=json.dumps)
def test_right_repositories_fit(repository_validator: Any, document: Any, tmp_path: Path) -> None:
    """The schema takes them, and so does kafkaform."""
    repository_validator.validate(document)
    assert find_repository_errors(tmp_path, document) == []


@pytest.mark.parametrize("document", WRONG_REPOSITORIES, ids=json.dumps)
def test_wrong_repositories_do_not_fit(
    repository_validator: Any, document: Any, tmp_path: Path
) -> None:
    """Nothing is refused that kafkaform itself takes."""
    assert not repository_validator.is_valid(document)
    assert find_repository_errors(tmp_path, document)


def test_every_argument_of_a_repository_is_in_it(repository_validator: Any) -> None:
    """With its documentation."""
    properties = repository_validator.schema["$defs"]["file"]["properties"]
    assert set(properties) == {*PAGES, "//"}
    assert all(one["description"] for one in properties.values())
