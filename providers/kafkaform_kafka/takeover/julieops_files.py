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
    for part in _PARTS:
        file = schemas.text(f"{part}.schema.file")
        record = schemas.text(f"{part}.record.type")
        format = schemas.text(f"{part}.format") or "avro"
        level = schemas.text(f"{part}.compatibility")
        if file is None:
            continue
        what = f"{schemas.what}: {part}.schema.file"
        if strategy != TOPIC_STRATEGY and not record:
            raise Unfit(schemas.place, f"{schemas.what}: {part}.record.type is missing")
        subjects = {
            TOPIC_STRATEGY: f"{topic}-{part}",
            _RECORD_STRATEGY: record or "",
            _BOTH_STRATEGY: f"{topic}-{record}",
        }
        if strategy not in subjects:
            raise Unfit(schemas.place, f"{schemas.what}: the strategy {strategy!r} is not known")
        place = schemas.locate(f"{part}.schema.file")
        text = read_named_file(schemas.findings, place, what, file)
        add_subject_config(schemas.findings, place, subjects[strategy], level)
        add_schema(schemas.findings, place, subjects[strategy], text, format=format)
    schemas.close()


def read_connector(artefact: Fields) -> None:
    """Add the connector whose configs are in a file. Raises Unfit."""
    path = artefact.require_text("path")
    name = artefact.text("name") or Path(path).stem
    artefact.what = f"connector {name}"
    text = read_named_file(artefact.findings, artefact.locate("path"), artefact.what, path)
    config = _parse_config(artefact, path, text)
    # Its value is the name of a Connect cluster in the settings of JulieOps.
    artefact.findings.system = artefact.text("server") or artefact.text("serverLabel") or ""
    add_connector(artefact.findings, artefact.place, name, config)
    artefact.findings.system = ""
    artefact.skip("hash", "metadata")
    artefact.close()


def _parse_config(artefact: Fields, path: str, text: str) -> Mapping[str, str]:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        # The parser's message can quote the file, and so a password.
        raise Unfit(artefact.place, f"{artefact.what}: {path} is not JSON") from None
    config = content.get("config", content) if isinstance(content, dict) else None
    if not isinstance(config, dict) or any(isinstance(v, dict | list) for v in config.values()):
        raise Unfit(artefact.place, f"{artefact.what}: {path} is no map of configs")
    words = {True: "true", False: "false"}
    return {
        key: words[value] if isinstance(value, bool) else str(value)
        for key, value in config.items()
        if value is not None
    }
