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
    place: str,
    name: str,
    config: Mapping[str, str],
    *,
    class_: str | None = None,
    state: str | None = None,
    secrets: Iterable[str] = (),
    places: FrozenMap = EMPTY,
) -> None:
    """Add a connector. config: with `connector.class` unless class_ is given; secrets: names of
    configs whose values were not read. Raises Unfit."""
    class_ = class_ or config.get(_CLASS)
    if not class_:
        raise Unfit(place, f"connector {name}: {_CLASS} is missing")
    plain = FrozenMap({k: v for k, v in config.items() if k not in _IN_ATTRIBUTES})
    given: dict[str, Value] = {"name": name, "class": class_, "config": plain}
    if hidden := [key for key in secrets if key not in _IN_ATTRIBUTES]:
        given["secret_config"] = FrozenMap(dict.fromkeys(hidden, SecretRef("env", "")))
    if state is not None:
        given["state"] = state.lower()
    findings.add(CONNECTOR, FrozenMap(given), place, places)


def add_schema(
    findings: Findings,
    place: str,
    subject: str,
    text: str,
    *,
    format: str = "avro",
    references: Iterable[Fields] = (),
) -> None:
    """Add the schema of a subject. references: maps with name, subject and version."""
    given: dict[str, Value] = {"subject": subject, "schema": text, "format": format.lower()}
    if others := tuple(_read_reference(reference) for reference in references):
        given["references"] = others
    findings.add(SCHEMA, FrozenMap(given), place)


def _read_reference(fields: Fields) -> FrozenMap:
    subject = fields.text("subject_name") or fields.require_text("subject")
    values: dict[str, Value] = {"name": fields.require_text("name"), "subject": subject}
    values["version"] = fields.number("version")
    fields.close()
    return FrozenMap(values)


def add_subject_config(
    findings: Findings, place: str, subject: str, level: str | None, mode: str | None = None
) -> None:
    """Add the compatibility level and the mode of a subject, unless both are left to the
    registry."""
    values = {"compatibility": level, "mode": mode}
    given = {name: text.upper() for name, text in values.items() if text}
    if not given:
        return
    # Two resources of another tool can be one object here: the level and the mode.
    for index, item in enumerate(findings.objects):
        arguments = item.arguments
        same = item.kind == SUBJECT_CONFIG and arguments["subject"] == subject
        if same and not arguments.keys() & given.keys():
            merged = replace(item, arguments=arguments.with_items(given))
            findings.objects[index] = merged
            return
    findings.add(SUBJECT_CONFIG, FrozenMap({"subject": subject, **given}), place)


def add_group_config(
    findings: Findings, place: str, group: str, config: FrozenMap, places: FrozenMap = EMPTY
) -> None:
    """Add the configs of a consumer group or share group, if there are any."""
    if config:
        findings.add(GROUP_CONFIG, FrozenMap(group=group, config=config), place, places)


def read_named_file(findings: Findings, place: str, what: str, name: str) -> str:
    """The text of a file that another file names, relative to that one. No file outside of the
    folders that are read is opened. Raises Unfit."""
    here = Path(place.rpartition(":")[0]).parent
    file = (here / name).resolve()
    roots = [(path if path.is_dir() else path.parent).resolve() for path in findings.paths]
    if not any(file.is_relative_to(root) for root in roots):
        raise Unfit(place, f"{what}: {name} is outside of the folders that are read")
    try:
        text = read_file(file).decode()
    except UnicodeDecodeError:
        raise Unfit(place, f"{what}: {name} is not a text in UTF-8") from None
    except UsageError as fault:
        reason = fault.message.replace(str(file), name)
        raise Unfit(place, f"{what}: {reason}") from None
    findings.named.add(file)
    return text
