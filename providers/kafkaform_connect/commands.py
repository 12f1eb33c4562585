"""What this provider adds to `describe`, `explain` and `alter`: the connectors with their tasks and
offsets, what one of them needs, and where a stopped one goes on. Every command line of these groups
loads this module, so it loads no session."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import kafkaform_connect
from kafkaform.core.canonical import dumps
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Depth, Reading
from kafkaform.core.text import Grid, Page, Prose, inline, render_count
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.commands import (
    Alteration,
    Answer,
    Column,
    Command,
    CommandGroup,
    Draft,
    Operand,
    Option,
    PartnerQuestion,
    Question,
    cell,
    make_grid,
    offer_names,
    offer_words,
    render_field,
)
from kafkaform.provider.contract import Session

from .connector_offsets import OFFSETS, OFFSETS_KIND, narrow, render_json

PROVIDER = "kafka_connect"
STATES = ("RUNNING", "PAUSED", "STOPPED", "FAILED", "UNASSIGNED", "RESTARTING")
"""The states of connectors and tasks (AbstractStatus.State of Kafka 4.3)."""


def list_names(session: Session) -> Iterable[str]:
    """The connectors that we can see."""
    return [
        item.identity.key for item in session.sweep("kafka_connect_connector", Depth.NAMES).items
    ]


# ── describe connectors ─────────────────────────────────────────────────────────────────


def ask_connectors(
    names: Annotated[list[str] | None, Operand("CONNECTOR…", offer_names(list_names))] = None,
    name: Annotated[
        str,
        Option(
            "--name", "Only matching names; * stands for any text.", "GLOB", offer_names(list_names)
        ),
    ] = "*",
    state: Annotated[
        str, Option("--state", "RUNNING, FAILED, …", "STATE", offer_words(STATES))
    ] = "*",
    class_: Annotated[
        str,
        Option(
            "--class", "Only connectors of such a class, in full or without its package.", "GLOB"
        ),
    ] = "*",
    tasks: Annotated[bool, Option("--tasks", "Show each task with its worker.")] = False,
    offsets: Annotated[bool, Option("--offsets", "Show how far each connector is.")] = False,
) -> Question:
    """List connectors with class, state and tasks."""
    if "" in (names or ()):
        raise UsageError(
            "no connector has an empty name", "`kafkaform describe connectors` lists all."
        )
    if names and name != "*":
        raise UsageError("--name and names exclude each other", "Give one of them.")
    return Question(
        lambda session: kafkaform_connect.documents.describe_connectors(
            session, names or (), name, state, class_, offsets=offsets
        ),
        lambda document: _render_connectors(document, tasks=tasks),
    )


def _render_connectors(document: FrozenMap, *, tasks: bool) -> Page:
    rows = document["connectors"]
    if rows:
        yield make_grid(rows, _CONNECTOR)
    for row in rows if tasks else ():
        if row["tasks"]:
            yield ""
            yield f"Tasks of {row['name']}"
            yield make_grid(row["tasks"], _TASK)
    for row in rows:
        if row.get("offsets"):
            yield ""
            yield f"Offsets of {row['name']}"
            yield make_grid(row["offsets"], _OFFSET)
    yield f"{render_count(len(rows), 'connector')}."
    for row in rows:
        yield from _render_causes(row)
        if row["error"]:
            yield f"{row['name']} cannot be read: {row['error']['message']}"
    if document["hidden"]:
        yield f"Others may be hidden: {document['hidden']}."


def _render_tasks(row: FrozenMap) -> str:
    """`2 of 3 run`, with those that have failed."""
    running = sum(task["state"] == "RUNNING" for task in row["tasks"])
    failed = sum(task["state"] == "FAILED" for task in row["tasks"])
    text = f"{running} of {len(row['tasks'])} run" if row["tasks"] else cell(None)
    return f"{text}, {failed} failed" if failed else text


def _render_causes(row: FrozenMap) -> Page:
    if row["cause"]:
        yield Prose(f"{row['name']} failed on worker {cell(row['worker'])}: {row['cause']}")
    for task in row["tasks"]:
        if task["cause"]:
            place = f"task {task['id']} of {row['name']} failed on worker {cell(task['worker'])}"
            yield Prose(f"{place}: {task['cause']}")


_OFFSET: tuple[Column, ...] = (
    ("Partition", lambda row: dumps(row["partition"])),
    ("Offset", lambda row: dumps(row["offset"])),
)
_CONNECTOR: tuple[Column, ...] = (
    ("Connector", render_field("name")),
    ("Type", render_field("type")),
    ("Class", lambda row: cell(row["class"]).rpartition(".")[2]),
    ("State", render_field("state")),
    ("Tasks", _render_tasks),
    ("Worker", render_field("worker")),
)
_TASK: tuple[Column, ...] = (
    ("Task", render_field("id")),
    ("State", render_field("state")),
    ("Worker", render_field("worker")),
)


# ── explain connector ───────────────────────────────────────────────────────────────────


def ask_connector(
    name: Annotated[str, Operand("CONNECTOR", offer_names(list_names))],
) -> Question:
    """Show what a connector works with, and how it is.

    Lists its topics, the rights that the login of its workers needs for them, and its tasks. If a
    provider block leads to the Kafka cluster of the workers, also the lag of its group, and which
    of the rights worker_principal lacks.
    """
    if not name:
        raise UsageError(
            "no connector has an empty name", "`kafkaform describe connectors` lists all."
        )
    return Question(
        lambda session: Answer(kafkaform_connect.documents.explain_connector(session, name)),
        _render_explanation,
        ask_partner=_ask_kafka,
    )


def _ask_kafka(document: FrozenMap) -> PartnerQuestion | None:
    """The lag of the group, and which rights the login of the workers lacks."""
    group, uses = document["group"], kafkaform_connect.documents.read_uses(document)
    principal = document["principal"] if uses else None
    if group is None and principal is None:
        return None
    return PartnerQuestion(
        "kafka",
        kafkaform_connect.documents.add_reply,
        "groups" if group else "",
        FrozenMap(names=(group,), members=True) if group else EMPTY,
        principal,
        uses,
    )


def _render_explanation(document: FrozenMap) -> Page:
    yield Grid(
        (
            ("Connector", document["name"]),
            ("Class", cell(document["class"])),
            ("Type", cell(document["type"])),
            ("State", cell(document["state"])),
            ("Worker", cell(document["worker"])),
            ("Kafka cluster", cell(document["kafka_id"])),
            *((("Group", document["group"]),) if document["group"] else ()),
            *((("Lag", _render_lag(document["lag"])),) if document["lag"] else ()),
        )
    )
    yield ""
    if document["tasks"]:
        yield make_grid(document["tasks"], _TASK)
    else:
        yield "It has no tasks."
    yield from _render_causes(document)
    yield ""
    yield from _render_rights(document)


def _render_lag(lag: FrozenMap) -> str:
    if lag["unknown"]:
        return f"unknown: {lag['unknown']}"
    if lag["records"] is None:
        return "unknown: no offset of the group can be seen"
    amount = f"{'' if lag['complete'] else 'at least '}{render_count(lag['records'], 'record')}"
    return f"{amount}; the group is {lag['state']} with {render_count(lag['members'], 'member')}"


def _render_rights(document: FrozenMap) -> Page:
    principal = document["principal"]
    login = f"{principal}, the login of the workers," if principal else "The login of the workers"
    if document["uses"]:
        yield f"{login} needs these rights for it:"
        yield make_grid(document["uses"], _USE)
    else:
        yield "No config of it names a topic of this Kafka cluster."
    if document["further"]:
        yield "It can also work with:"
        yield from (f"  {text}" for text in document["further"])
    if not document["uses"]:
        return
    if not principal:
        yield Prose(
            "worker_principal in the provider block names that login, and then the answer says "
            "which of them it lacks."
        )
    elif document["missing_rights"] is None:
        yield Prose(f"Which of them it lacks is unknown: {document['rights_unknown']}.")
    elif document["missing_rights"]:
        yield "It lacks:"
        yield from map(_render_gap, document["missing_rights"])
    else:
        yield "It has all of them."


def _render_gap(gap: FrozenMap) -> str:
    return f"  {gap['right']}" + (f", unless {gap['doubt']}" if gap["doubt"] else "")


_USE: tuple[Column, ...] = (
    ("Resource", render_field("resource_type")),
    ("Name", lambda row: f"{row['name']} (pattern)" if row["pattern"] else row["name"]),
    ("It", render_field("verb")),
    ("Rights", lambda row: cell(row["rights"]) if row["rights"] else "of the login in its configs"),
)

# ── alter connector ─────────────────────────────────────────────────────────────────────

RESET, SET = "--reset-offsets", "--set-offsets"


def alter_connector(
    name: Annotated[str, Operand("CONNECTOR", offer_names(list_names))],
    reset: Annotated[bool, Option(RESET, "Delete its offsets, so that it starts over.")] = False,
    file: Annotated[
        str | None,
        Option(SET, "Set these offsets: JSON as the workers and `describe` show it.", "FILE"),
    ] = None,
) -> Alteration:
    """Reset or set the offsets of a stopped connector."""
    if reset == (file is not None):
        raise UsageError(
            f"{RESET} and {SET} exclude each other" if reset else "nothing is to be changed",
            f"Give {RESET} or {SET} FILE.",
        )
    if not name:
        raise UsageError("no connector is named", "`kafkaform describe connectors` lists all.")
    targets = EMPTY if file is None else read_offset_file(Path(file))

    def edit(attributes: FrozenMap | None, _: Reading) -> FrozenMap | None:
        if attributes is None:
            raise UsageError(
                f"there is no connector {inline(name)}",
                "`kafkaform describe connectors` lists all.",
            )
        offsets = EMPTY if reset else attributes[OFFSETS]
        return attributes.with_items({OFFSETS: offsets.with_items(targets)})

    draft = Draft(OFFSETS_KIND, name, edit, lambda change, _: narrow(change), managed=True)
    return Alteration((draft,), (ask_connectors([name], offsets=True),))


def read_offset_file(path: Path) -> FrozenMap:
    """Partition -> offset, both as JSON, of a file with `{"offsets": [{"partition": …, "offset":
    …}]}`. Raises UsageError."""
    flag = f"{SET} {inline(str(path))}"
    try:
        items = json.loads(path.read_text("utf-8"))["offsets"]
        pairs = {
            render_json(item["partition"]): render_json(item["offset"])
            for item in items
            if isinstance(item["partition"], dict) and isinstance(item["offset"], dict)
        }
    except OSError as error:
        raise UsageError(f"{flag} cannot be read: {error.strerror}", "Name another file.") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        items, pairs = (), {}
    if not pairs or len(pairs) != len(items):
        raise UsageError(
            f"{flag} has no offsets as workers show them",
            'Write {"offsets": [{"partition": {…}, "offset": {…}}]}, each partition once; '
            "`kafkaform describe connectors NAME --offsets --json` has those there are.",
        )
    return FrozenMap(pairs)


GROUPS = {
    "describe": CommandGroup(
        PROVIDER, "Show connectors.", (Command("connectors", ask_connectors),)
    ),
    "explain": CommandGroup(
        PROVIDER, "Explain connectors.", (Command("connector", ask_connector),)
    ),
    "alter": CommandGroup(
        PROVIDER, "Change offsets of connectors.", (Command("connector", alter_connector),)
    ),
}
"""Group of commands -> what this provider adds to it."""
