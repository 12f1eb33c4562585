"""Declare connectors, schemas and group configs from the values that other tools' files give them.

The first two are objects of other providers, which need blocks of their own in the folder. A
connector's configs are handed on with their secrets; `kafkaform.workflow.transfer.take_over` keeps
only the names of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from kafkaform.core.errors import UsageError
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value

from .fields import Fields, Findings, Unfit
from .files import read_file

GROUP_CONFIG = "kafka_group_config"
CONNECTOR = "kafka_connect_connector"
SCHEMA, SUBJECT_CONFIG = "schema_registry_schema", "schema_registry_subject_config"
REGISTRY_CONFIG = "schema_registry_config"
_CLASS = "connector.class"
_IN_ATTRIBUTES = ("name", _CLASS)
"""Configs that are attributes of the block."""


def add_connector(
    findings: Findings,
    position: str,
    name: str,
    config: Mapping[str, str],
    *,
    class_: str | None = None,
    state: str | None = None,
    secrets: Iterable[str] = (),
    positions: FrozenMap = EMPTY,
) -> None:
    """Add a connector. config: with `connector.class` unless class_ is given; secrets: names of
    configs whose values were not read. Raises Unfit."""
    class_ = class_ or config.get(_CLASS)
    if not class_:
        raise Unfit(position, f"connector {name}: {_CLASS} is missing")
    plain = FrozenMap({k: v for k, v in config.items() if k not in _IN_ATTRIBUTES})
    arguments: dict[str, Value] = {"name": name, "class": class_, "config": plain}
    if hidden := [key for key in secrets if key not in _IN_ATTRIBUTES]:
        arguments["secret_config"] = FrozenMap(dict.fromkeys(hidden, SecretRef("env", "")))
    if state is not None:
        arguments["state"] = state.lower()
    findings.add(CONNECTOR, FrozenMap(arguments), position, positions)


def add_schema(
    findings: Findings,
    position: str,
    subject: str,
    text: str,
    *,
    format: str = "avro",
    references: Iterable[Fields] = (),
) -> None:
    """Add the schema of a subject. references: maps with name, subject and version."""
    arguments: dict[str, Value] = {"subject": subject, "schema": text, "format": format.lower()}
    if rows := tuple(_read_reference(reference) for reference in references):
        arguments["references"] = rows
    findings.add(SCHEMA, FrozenMap(arguments), position)


def _read_reference(fields: Fields) -> FrozenMap:
    subject = fields.text("subject_name") or fields.require_text("subject")
    values: dict[str, Value] = {"name": fields.require_text("name"), "subject": subject}
    values["version"] = fields.number("version")
    fields.close()
    return FrozenMap(values)


def add_subject_config(
    findings: Findings, position: str, subject: str, level: str | None, mode: str | None = None
) -> None:
    """Add the compatibility level and the mode of a subject, unless both are left to the
    registry."""
    values = {"compatibility": level, "mode": mode}
    settings = {name: text.upper() for name, text in values.items() if text}
    if not settings:
        return
    # Two resources of another tool can be one object here: the level and the mode.
    for index, item in enumerate(findings.objects):
        arguments = item.arguments
        is_subject = item.kind == SUBJECT_CONFIG and arguments["subject"] == subject
        if is_subject and not arguments.keys() & settings.keys():
            merged = replace(item, arguments=arguments.with_items(settings))
            findings.objects[index] = merged
            return
    findings.add(SUBJECT_CONFIG, FrozenMap({"subject": subject, **settings}), position)


def add_group_config(
    findings: Findings, position: str, group: str, config: FrozenMap, positions: FrozenMap = EMPTY
) -> None:
    """Add the configs of a consumer group or share group, if there are any."""
    if config:
        findings.add(GROUP_CONFIG, FrozenMap(group=group, config=config), position, positions)


def read_named_file(findings: Findings, position: str, title: str, name: str) -> str:
    """The text of a file that another file names, relative to that one. No file outside of the
    folders that are read is opened. Raises Unfit."""
    folder = Path(position.rpartition(":")[0]).parent
    file = (folder / name).resolve()
    roots = [(path if path.is_dir() else path.parent).resolve() for path in findings.paths]
    if not any(file.is_relative_to(root) for root in roots):
        raise Unfit(position, f"{title}: {name} is outside of the folders that are read")
    try:
        text = read_file(file).decode()
    except UnicodeDecodeError:
        raise Unfit(position, f"{title}: {name} is not a text in UTF-8") from None
    except UsageError as fault:
        reason = fault.message.replace(str(file), name)
        raise Unfit(position, f"{title}: {reason}") from None
    findings.named.add(file)
    return text
