"""What this provider adds to `describe`, `explain` and `alter`: the subjects with their latest
schemas, and the versions of one of them, which can be deleted and restored. Every command line of
these groups loads this module, so it loads no session."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated

import kafkaform_schema_registry
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Depth, Observed, Reading
from kafkaform.core.text import Grid, Page, Prose, inline, render_count
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import (
    Alteration,
    Answer,
    Column,
    Command,
    CommandGroup,
    Draft,
    Operand,
    Option,
    Question,
    cell,
    make_grid,
    offer_names,
    offer_words,
    render_field,
)
from kafkaform.provider.contract import Session

from .kinds.version import DELETED, RESTORED, VERSION, name_version
from .requests import MAX_INT

PROVIDER = "schema_registry"
FORMAT_NAMES = ("avro", "json", "protobuf")


def list_names(session: Session) -> Iterable[str]:
    """The subjects that we can see."""
    return [
        item.identity.key for item in session.sweep("schema_registry_schema", Depth.NAMES).items
    ]


# ── describe subjects ───────────────────────────────────────────────────────────────────


def ask_subjects(
    names: Annotated[list[str] | None, Operand("SUBJECT…", offer_names(list_names))] = None,
    name: Annotated[
        str,
        Option(
            "--name", "Only matching names; * stands for any text.", "GLOB", offer_names(list_names)
        ),
    ] = "*",
    format: Annotated[
        str, Option("--format", "avro, json or protobuf.", "FORMAT", offer_words(FORMAT_NAMES))
    ] = "*",
    levels: Annotated[
        bool, Option("--levels", "Show levels and modes: two more requests for each subject.")
    ] = False,
) -> Question:
    """List subjects with their latest schemas."""
    if "" in (names or ()):
        raise UsageError("no subject has an empty name", "`kafkaform describe subjects` lists all.")
    if names and name != "*":
        raise UsageError("--name and names exclude each other", "Give one of them.")
    return Question(
        lambda session: kafkaform_schema_registry.documents.describe_subjects(
            session, names or (), name, format, levels=levels
        ),
        partial(_render_subjects, levels=levels),
    )


def _render_subjects(document: FrozenMap, *, levels: bool) -> Page:
    rows = document["subjects"]
    if rows:
        yield make_grid(rows, (*_SUBJECT, *_LEVELS) if levels else _SUBJECT, frozenset({2, 3}))
    yield f"{render_count(len(rows), 'subject')}."
    for row in rows:
        if row["error"]:
            yield f"{row['name']} cannot be read: {row['error']}"
    if document["hidden"]:
        yield f"Others may be hidden: {document['hidden']}."


_SUBJECT: tuple[Column, ...] = (
    ("Subject", render_field("name")),
    ("Format", render_field("format")),
    ("Version", render_field("version")),
    ("Id", render_field("schema_id")),
    ("Schema", render_field("summary")),
    ("References", lambda row: str(row["references"] or "")),
)


def _render_setting(row: FrozenMap, name: str) -> str:
    inherited = row[name] is not None and row[f"own_{name}"] is None
    return f"{cell(row[name])} (registry's)" if inherited else cell(row[name])


_LEVELS: tuple[Column, ...] = (
    ("Level", lambda row: _render_setting(row, "level")),
    ("Mode", lambda row: _render_setting(row, "mode")),
)


# ── explain schema ──────────────────────────────────────────────────────────────────────


def ask_schema(
    subject: Annotated[str, Operand("SUBJECT", offer_names(list_names))],
) -> Question:
    """Show the versions of a subject, and who refers to them.

    Says which level the next version is checked at, and which other subjects have the same
    contents.
    """
    if not subject:
        raise UsageError("no subject has an empty name", "`kafkaform describe subjects` lists all.")
    return Question(
        lambda session: Answer(
            kafkaform_schema_registry.documents.explain_schema(session, subject)
        ),
        _render_explanation,
    )


def _render_explanation(document: FrozenMap) -> Page:
    level = _render_setting(document, "level")
    order = f": {document['update_first']}" if document["update_first"] else ""
    yield Grid(
        (
            ("Subject", document["subject"]),
            ("Level", f"{level}{order}"),
            *((("Mode", _render_setting(document, "mode")),) if document["has_modes"] else ()),
        )
    )
    yield ""
    yield make_grid(document["versions"], _VERSION, frozenset({0, 1, 3}))
    for row in document["versions"]:
        yield from _render_relations(row)
    for gap in document["gaps"]:
        yield f"Version {gap['version']} cannot be read: {gap['reason']}"
    if document["deleted"]:
        yield Prose(
            f"Deleted softly: {', '.join(map(str, document['deleted']))}. `kafkaform alter schema "
            f"{document['subject']} --restore-version N` registers the schema of one again."
        )
    yield ""
    yield Prose(
        "Records carry the id of their schema. A registry does not see records, so it does not "
        "know which of these ids are in use."
    )


def _render_relations(row: FrozenMap) -> Page:
    title = f"Version {row['version']}"
    if row["contract"]:
        yield f"{title} has {', '.join(row['contract'])}."
    for reference in row["references"]:
        target = f"version {reference['version']} of {reference['subject']}"
        yield f"{title} refers to {target} as {reference['name']}."
    if row["referred_by"]:
        yield f"{title} is referred to by {', '.join(row['referred_by'])}."
    if row["referred_by"] is None:
        yield f"{title}: the registry does not say who refers to it."
    elif row["referred_by_unnamed"]:
        schemas = render_count(row["referred_by_unnamed"], "schema")
        yield f"{title} is referred to by {schemas} whose subjects the registry does not name."
    if row["shared_with"]:
        yield f"{title} has the same id in {', '.join(row['shared_with'])}."


_VERSION: tuple[Column, ...] = (
    ("Version", render_field("version")),
    ("Id", render_field("schema_id")),
    ("Schema", render_field("summary")),
    ("Differences", render_field("differences")),
)

# ── alter schema ────────────────────────────────────────────────────────────────────────


def alter_schema(
    subject: Annotated[str, Operand("SUBJECT", offer_names(list_names))],
    delete_version: Annotated[
        list[str] | None, Option("--delete-version", "Delete this version softly.", "N")
    ] = None,
    permanent: Annotated[
        bool, Option("--permanent", "Delete it permanently: records can become unreadable.")
    ] = False,
    restore_version: Annotated[
        str | None,
        Option(
            "--restore-version",
            "Register the schema of this deleted version again: it becomes the newest one.",
            "N",
        ),
    ] = None,
) -> Alteration:
    """Delete or restore single versions of a subject.

    Versions that others refer to are not deleted. A block that declares the schema of a deleted
    version registers it again with the next apply.
    """
    if not subject:
        raise UsageError("no subject has an empty name", "`kafkaform describe subjects` lists all.")
    if bool(delete_version) == bool(restore_version):
        raise UsageError(
            "alter schema needs --delete-version or --restore-version",
            f"`kafkaform explain schema {subject}` lists the versions.",
        )
    if permanent and not delete_version:
        raise UsageError("--permanent goes with --delete-version", "Leave it out.")
    edit = _restore if restore_version else _purge if permanent else _delete
    numbers = [_read_number(text) for text in delete_version or [restore_version or ""]]
    drafts = tuple(
        Draft(VERSION, name_version(subject, number), partial(edit, subject, number), managed=True)
        for number in dict.fromkeys(numbers)
    )
    return Alteration(drafts, (ask_schema(subject),))


def _read_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_INT:
        raise UsageError(f"{inline(text)!r} is no version", "Versions are numbers from 1 on.")
    return int(text)


def _require(subject: str, number: int, attributes: FrozenMap | None) -> FrozenMap:
    """The version. Raises UsageError if there is none."""
    if attributes is None:
        raise UsageError(
            f"there is no version {number} of {subject}",
            f"`kafkaform explain schema {subject}` lists the versions.",
        )
    return attributes


def _delete(
    subject: str, number: int, attributes: FrozenMap | None, _: Reading
) -> FrozenMap | None:
    version = _require(subject, number, attributes)
    return version if version["state"] == RESTORED else version.with_items({"state": DELETED})


def _purge(subject: str, number: int, attributes: FrozenMap | None, _: Reading) -> FrozenMap | None:
    _require(subject, number, attributes)
    return None


def _restore(
    subject: str, number: int, attributes: FrozenMap | None, reading: Reading
) -> FrozenMap | None:
    version = _require(subject, number, attributes)
    if version["state"] != DELETED:
        return version
    if isinstance(reading, Observed) and reading.details["has_contract"]:
        # The values of sensitive properties are not read, so the same contract cannot be sent.
        raise UsageError(
            f"version {number} of {subject} has metadata or rules, which would not come back",
            "Declare the schema with its metadata and rules in a block.",
        )
    return version.with_items({"state": RESTORED})


GROUPS = {
    "alter": CommandGroup(
        PROVIDER, "Delete and restore versions.", (Command("schema", alter_schema),)
    ),
    "describe": CommandGroup(PROVIDER, "Show subjects.", (Command("subjects", ask_subjects),)),
    "explain": CommandGroup(PROVIDER, "Explain schemas.", (Command("schema", ask_schema),)),
}
"""Group of commands -> what this provider adds to it."""
