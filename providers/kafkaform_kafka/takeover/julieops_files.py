"""The schemas and connectors that JulieOps keeps in files beside its topologies.

Source: JulieOps 4.4.1: `TopicSchemas`, `Subject` (names), `SchemaRegistryManager`,
`KafkaConnectArtefactManager` (a file with the configs, or with `name` and `config`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .fields import Fields, Unfit
from .wider_objects import add_connector, add_schema, add_subject_config, read_named_file

TOPIC_STRATEGY = "TopicNameStrategy"
_RECORD_STRATEGY, _BOTH_STRATEGY = "RecordNameStrategy", "TopicRecordNameStrategy"
_PARTS = ("key", "value")


def read_topic_schemas(schemas: Fields, topic: str, strategy: str) -> None:
    """Add the schemas of the key and the value of a topic's records. Raises Unfit."""
    for side in _PARTS:
        file = schemas.text(f"{side}.schema.file")
        record = schemas.text(f"{side}.record.type")
        format = schemas.text(f"{side}.format") or "avro"
        level = schemas.text(f"{side}.compatibility")
        if file is None:
            continue
        title = f"{schemas.title}: {side}.schema.file"
        if strategy != TOPIC_STRATEGY and not record:
            raise Unfit(schemas.position, f"{schemas.title}: {side}.record.type is missing")
        subjects = {
            TOPIC_STRATEGY: f"{topic}-{side}",
            _RECORD_STRATEGY: record or "",
            _BOTH_STRATEGY: f"{topic}-{record}",
        }
        if strategy not in subjects:
            raise Unfit(
                schemas.position, f"{schemas.title}: the strategy {strategy!r} is not known"
            )
        position = schemas.locate(f"{side}.schema.file")
        text = read_named_file(schemas.findings, position, title, file)
        add_subject_config(schemas.findings, position, subjects[strategy], level)
        add_schema(schemas.findings, position, subjects[strategy], text, format=format)
    schemas.close()


def read_connector(artefact: Fields) -> None:
    """Add the connector whose configs are in a file. Raises Unfit."""
    path = artefact.require_text("path")
    name = artefact.text("name") or Path(path).stem
    artefact.title = f"connector {name}"
    text = read_named_file(artefact.findings, artefact.locate("path"), artefact.title, path)
    config = _parse_config(artefact, path, text)
    # Its value is the name of a Connect cluster in the settings of JulieOps.
    artefact.findings.system = artefact.text("server") or artefact.text("serverLabel") or ""
    add_connector(artefact.findings, artefact.position, name, config)
    artefact.findings.system = ""
    artefact.skip("hash", "metadata")
    artefact.close()


def _parse_config(artefact: Fields, path: str, text: str) -> Mapping[str, str]:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        # The parser's message can quote the file, and so a password.
        raise Unfit(artefact.position, f"{artefact.title}: {path} is not JSON") from None
    config = content.get("config", content) if isinstance(content, dict) else None
    if not isinstance(config, dict) or any(isinstance(v, dict | list) for v in config.values()):
        raise Unfit(artefact.position, f"{artefact.title}: {path} is no map of configs")
    words = {True: "true", False: "false"}
    return {
        key: words[value] if isinstance(value, bool) else str(value)
        for key, value in config.items()
        if value is not None
    }
