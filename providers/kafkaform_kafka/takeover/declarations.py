"""Read the files of another tool from disk, within limits, and declare objects from their values.

Topics, ACLs, quotas and users; also connectors, schemas and configs of groups, whose resource types
other providers own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from kafkaform.core.errors import UsageError
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value

from ..kinds.quota.resource_type import DEFAULT
from ..kinds.quota.resource_type import KIND as QUOTA
from ..kinds.topic.resource_type import KIND as TOPIC
from ..kinds.user.resource_type import KIND as USER
from ..protocol.acl import (
    ALLOW,
    CLUSTER,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
)
from ..protocol.acl import KIND as ACL
from .fields import Fields, Findings, Unfit

MAX_FILE = 8_000_000
"""Bytes of one file."""
MAX_TOTAL = 64_000_000
"""Bytes of all files together."""
MAX_FILES = 20_000
"""Files in a folder."""
YAML = frozenset({".yaml", ".yml", ".json"})
"""Endings of files that a YAML parser reads; JSON is YAML."""


class UnreadableFile(UsageError):
    """A file that exists and cannot be read. reason: why, as the rest of a sentence about it."""

    def __init__(self, path: object, reason: str, advice: str = "") -> None:
        super().__init__(f"{path} {reason}", advice)
        self.path, self.reason = str(path), reason


Omit = Callable[[str, str], None]
"""Notes a file or folder that is not taken over, and why."""


def read_files(
    paths: Sequence[Path], endings: Collection[str], omit: Omit | None = None
) -> Iterator[tuple[str, bytes]]:
    """Path and content, each file once: of the files among the paths, and of all files below the
    folders that have one of these endings, sorted. Hidden files and folders are passed over.

    omit: gets each file and folder that cannot be read or is too large; without it, the first one
    raises UnreadableFile. Raises UsageError for what does not exist or is not a regular file.
    """
    names: dict[Path, Path] = {}
    for path in paths:
        listed = sorted(_list_files(path, endings, omit)) if path.is_dir() else [path]
        for name in listed:
            # A link to a file that is read anyway would add the same objects a second time.
            names.setdefault(name.resolve(), name)
    folders = ", ".join(map(str, paths))
    if len(names) > MAX_FILES:
        raise UsageError(f"{folders} has more than {MAX_FILES} files", "Name a smaller folder.")
    bytes_left = MAX_TOTAL
    for name in names.values():
        try:
            content = read_file(name)
        except UnreadableFile as fault:
            if omit is None:
                raise
            omit(fault.path, fault.reason)
            continue
        bytes_left -= len(content)
        if bytes_left < 0:
            raise UsageError(
                f"the files below {folders} have more than {MAX_TOTAL // 1_000_000} MB",
                "Name a smaller folder.",
            )
        yield str(name), content


def _list_files(path: Path, endings: Collection[str], omit: Omit | None) -> Iterator[Path]:
    def note_folder(error: OSError) -> None:
        fault = UnreadableFile(error.filename, f"cannot be read: {error.strerror}")
        if omit is None:
            raise fault
        omit(fault.path, fault.reason)

    # No link to a folder is followed, so a circle of links ends.
    for folder, folders, files in os.walk(path, onerror=note_folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for file in files:
            name = Path(folder, file)
            if not file.startswith(".") and name.suffix in endings and name.is_file():
                yield name


def read_file(path: Path) -> bytes:
    """The content of one file. Raises UsageError as `read_files` does."""
    try:
        # Before it is opened: a pipe would block, and a device could have no end.
        if not path.is_file():
            fault = "does not exist" if not path.exists() else "is not a regular file"
            raise UsageError(f"{path} {fault}", "Name a file or a folder.")
        with path.open("rb") as file:
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UnreadableFile(path, f"cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE:
        size = f"has more than {MAX_FILE // 1_000_000} MB"
        raise UnreadableFile(path, size, "Divide it into smaller files.")
    return content


FACTOR = "replication_factor"
"""The argument for the number of replicas, which other tools call differently."""
# `prefix` is what some tools call the pattern type.
_ALIASES = {"prefix": "Prefixed", "transactionalid": "TransactionalID"}


def _fold(word: str) -> str:
    """A word without case and separators, so that ALTER_CONFIGS is AlterConfigs."""
    return word.replace("_", "").replace("-", "").lower()


def _spell(words: Iterable[str]) -> Mapping[str, str]:
    return {**{_fold(word): word for word in words}, **_ALIASES}


_OPERATIONS = _spell(OPERATIONS)
_PERMISSIONS = _spell(PERMISSIONS)
_RESOURCES = _spell(RESOURCE_TYPES)
_PATTERNS = _spell(PATTERN_TYPES)


# ── objects ─────────────────────────────────────────────────────────────────────────────


def add_topic(
    findings: Findings,
    position: str,
    name: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    config: FrozenMap = EMPTY,
    positions: FrozenMap = EMPTY,
) -> None:
    """Add a topic. Numbers that are None or -1 are the broker's defaults. positions: as in
    `ForeignObject`."""
    numbers = {"partitions": partitions, FACTOR: replication_factor}
    arguments: dict[str, Value] = {n: v for n, v in numbers.items() if v is not None and v != -1}
    if config:
        arguments["config"] = config
    findings.add(TOPIC, FrozenMap(name=name, **arguments), position, positions)


def make_acl(
    position: str,
    principal: str,
    operation: str,
    resource_type: str,
    resource_name: str,
    *,
    pattern: str = "Literal",
    host: str = "*",
    permission: str = ALLOW,
) -> Acl:
    """An ACL whose words are in any case, with _ or without. Raises Unfit for other words."""
    kind = _choose(position, "resource type", resource_type, _RESOURCES)
    return Acl(
        principal,
        host,
        _choose(position, "operation", operation, _OPERATIONS),
        _choose(position, "permission", permission, _PERMISSIONS),
        kind,
        CLUSTER if kind == "Cluster" else resource_name,
        _choose(position, "pattern type", pattern, _PATTERNS),
    )


def _choose(position: str, noun: str, word: str, words: Mapping[str, str]) -> str:
    spelling = words.get(_fold(word))
    if spelling is None:
        raise Unfit(position, f"an ACL with the {noun} {word!r}, which kafkaform does not know")
    return spelling


def add_acl(findings: Findings, position: str, acl: Acl) -> None:
    findings.add(ACL, acl.attributes, position)


def add_acls(
    findings: Findings,
    position: str,
    principal: str,
    resource: tuple[str, str],
    operations: Iterable[str],
    *,
    pattern: str = "Literal",
    host: str = "*",
) -> None:
    """Allow a principal some operations on one resource: its type and name."""
    for operation in operations:
        acl = make_acl(position, principal, operation, *resource, pattern=pattern, host=host)
        add_acl(findings, position, acl)


def add_quota(
    findings: Findings,
    position: str,
    limits: FrozenMap,
    *,
    user: str | None = None,
    client_id: str | None = None,
    ip: str | None = None,
) -> None:
    """Add the limits of an entity; the name "" is the default entity. Raises Unfit for a name that
    a block cannot say."""
    names = {"user": user, "client_id": client_id, "ip": ip}
    if DEFAULT in names.values():
        raise Unfit(position, f"a quota of an entity with the name {DEFAULT!r}")
    entity = {component: name or DEFAULT for component, name in names.items() if name is not None}
    findings.add(QUOTA, FrozenMap(entity | {"config": limits}), position)


def add_user(
    findings: Findings, position: str, name: str, mechanism: str, iterations: int | None = None
) -> None:
    """Add a SCRAM user. mechanism: SCRAM-SHA-256 or SCRAM-SHA-512, also with _."""
    arguments: dict[str, Value] = {} if iterations is None else {"scram_iterations": iterations}
    spelled = mechanism.upper().replace("_", "-")
    findings.add(USER, FrozenMap(username=name, scram_mechanism=spelled, **arguments), position)


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
    contract: Mapping[str, Value] = EMPTY,
) -> None:
    """Add the schema of a subject. references: maps with name, subject and version; contract:
    metadata and rules, as attributes."""
    arguments: dict[str, Value] = {"subject": subject, "schema": text, "format": format.lower()}
    arguments |= contract
    if rows := tuple(_read_reference(reference) for reference in references):
        arguments["references"] = rows
    findings.add(SCHEMA, FrozenMap(arguments), position)


def _read_reference(fields: Fields) -> FrozenMap:
    subject = fields.text("subject_name") or fields.require_text("subject")
    values: dict[str, Value] = {"name": fields.require_text("name"), "subject": subject}
    values["version"] = fields.number("version")
    fields.close()
    return FrozenMap(values)


def add_registry_settings(
    findings: Findings,
    position: str,
    level: str | None,
    mode: str | None = None,
    *,
    subject: str | None = None,
    further: Mapping[str, Value] = EMPTY,
) -> None:
    """Add the compatibility level, the mode and further settings of a subject, or of the registry
    itself, unless all are left out."""
    values = {"compatibility": level, "mode": mode}
    settings: dict[str, Value] = {name: text.upper() for name, text in values.items() if text}
    settings |= {name: value for name, value in further.items() if value}
    if not settings:
        return
    kind, owner = (SUBJECT_CONFIG, {"subject": subject}) if subject else (REGISTRY_CONFIG, {})
    # Two resources of another tool can be one object here: the level and the mode.
    for index, item in enumerate(findings.objects):
        arguments = item.arguments
        if (
            (item.kind, item.system) == (kind, findings.system)
            and arguments.get("subject") == subject
            and not arguments.keys() & settings.keys()
        ):
            merged = replace(item, arguments=arguments.with_items(settings))
            findings.objects[index] = merged
            return
    findings.add(kind, FrozenMap({**owner, **settings}), position)


def add_group_config(
    findings: Findings, position: str, group: str, config: FrozenMap, positions: FrozenMap = EMPTY
) -> None:
    """Add the configs of a consumer group or share group, if there are any."""
    if config:
        findings.add(GROUP_CONFIG, FrozenMap(group=group, config=config), position, positions)


def read_named_file(
    findings: Findings, position: str, title: str, name: str, *, from_here: bool = False
) -> str:
    """The text of a file that another file names, relative to that one. from_here: relative to the
    working directory if it is there, as the tool reads it. No file outside of the folders that are
    read is opened. Raises Unfit."""
    folder = Path(position.rpartition(":")[0]).parent
    file = (folder / name).resolve()
    if from_here and Path(name).is_file():
        file = Path(name).resolve()
    roots = [(path if path.is_dir() else path.parent).resolve() for path in findings.paths]
    if not any(file.is_relative_to(root) for root in roots):
        outside = f"{name} is outside of the folders that are read: name its folder as well"
        raise Unfit(position, f"{title}: {outside}")
    try:
        text = read_file(file).decode()
    except UnicodeDecodeError:
        raise Unfit(position, f"{title}: {name} is not a text in UTF-8") from None
    except UsageError as fault:
        reason = fault.message.replace(str(file), name)
        raise Unfit(position, f"{title}: {reason}") from None
    findings.named.add(file)
    return text
