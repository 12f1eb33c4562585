"""The files that JulieOps reads next to its topologies: settings, schemas, connector configs.

Source: JulieOps 4.4.1: `TopicSchemas`, `Subject` (names), `SchemaRegistryManager`,
`KafkaConnectArtefactManager` (a file with the configs, or with `name` and `config`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kafkaform.core.errors import UsageError

from .declarations import add_connector, add_schema, add_subject_config, read_named_file
from .fields import Fields, Findings, Unfit
from .files import read_files

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


SETTINGS: Mapping[str, str] = {
    "topology.topic.prefix.format": "default",
    "topology.topic.prefix.separator": ".",
    "topology.project.prefix.format": "default",
    "topology.acls.optimized": "false",
    "topology.connector.allow.topic.create": "true",
    "topology.dlq.topics.generate": "false",
}
"""The settings that decide what is in the cluster, with their defaults."""
SETTINGS_ENDING = ".properties"
_DEAD_LETTERS = "topology.dlq.topics.generate"
_PAIR = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*?)\s*")
# Other lines of such a file have passwords, so only these are looked at.


class SettingsFile(Struct, frozen=True):
    """A properties file that has at least one of the settings."""

    name: str
    lines: Mapping[str, tuple[int, str]]
    """Setting -> its line and value."""

    def locate(self, key: str) -> str:
        return f"{self.name}:{self.lines[key][0]}" if key in self.lines else self.name

    def get(self, key: str) -> str:
        return self.lines[key][1] if key in self.lines else SETTINGS[key]


def choose_settings(paths: Sequence[Path], findings: Findings) -> Mapping[str, str]:
    """The settings of the properties file among the paths, or of the one in their folders. Notes
    which file they are from.

    Raises UsageError if there are several files that differ.
    """
    settings_paths = [path for path in paths if path.suffix == SETTINGS_ENDING]
    files = list(_read_settings(settings_paths or _list_files(paths)))
    if not files:
        findings.notes.append(
            "The settings of JulieOps are its defaults: no file that was read has one of "
            f"{', '.join(SETTINGS)}. If JulieOps runs with a --clientConfig file, name that file, "
            "too."
        )
        return SETTINGS
    first, *copies = files
    for file in copies:
        _refuse_difference(first, file)
    settings = {key: first.get(key) for key in SETTINGS}
    pairs = ", ".join(f"{key}={first.get(key)}" for key in SETTINGS if key in first.lines)
    suffix = f" (and, with the same values, {', '.join(o.name for o in copies)})" if copies else ""
    findings.notes.append(f"The settings of JulieOps are those of {first.name}{suffix}: {pairs}.")
    if settings[_DEAD_LETTERS] == "true":
        reason = f"{_DEAD_LETTERS}: dead letter topics are not declared"
        findings.omit(first.locate(_DEAD_LETTERS), reason)
    return settings


def _list_files(paths: Sequence[Path]) -> list[Path]:
    """The properties files in the folders, and in those of files; not in folders below."""
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in paths)
    return [file for folder in folders for file in sorted(folder.glob(f"*{SETTINGS_ENDING}"))]


def _read_settings(files: Sequence[Path]) -> Iterator[SettingsFile]:
    for name, content in read_files(files, ()):
        lines: dict[str, tuple[int, str]] = {}
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            match = _PAIR.fullmatch(line)
            if match is not None and match[1] in SETTINGS:
                lines[match[1]] = (number, match[2].strip('"'))
        if lines:
            yield SettingsFile(name, lines)


def _refuse_difference(first: SettingsFile, second: SettingsFile) -> None:
    """Raises UsageError if the files mean different settings."""
    for key in SETTINGS:
        if first.get(key) != second.get(key):
            values = [
                f"{file.locate(key)} {'says' if key in file.lines else 'leaves the default'} "
                f"{file.get(key)!r}"
                for file in (first, second)
            ]
            raise UsageError(
                f"the settings of JulieOps differ: {key}: {values[0]}, but {values[1]}",
                "Name the file that JulieOps runs with (--clientConfig) after the topologies: "
                f"kafkaform import --from julieops TOPOLOGIES {first.name}",
            )
