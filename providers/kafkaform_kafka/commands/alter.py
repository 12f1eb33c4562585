"""The commands of `kafkaform alter`: change what no block manages (KIP-248), elect preferred
leaders, and cancel moves.

Elections and cancelled moves are allowed for managed topics, too. An election changes what no block
declares and no state records. Stopping a move is a move to where the replicas are, so it is
planned, shown, approved, logged and recovered like any other change: the declaration stays, and the
next plan shows the difference again.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from msgspec.structs import replace

from kafkaform.core.change import Change, add_findings
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Identity, Observed, Reading
from kafkaform.core.text import inline
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.commands import (
    Alteration,
    Command,
    CommandGroup,
    Draft,
    Operand,
    Option,
    Question,
    offer_names,
)

from ..inspect.cells import count
from ..inspect.source import DescribeQuery
from ..kinds.commanded.resource_types import LEADERS as LEADERS
from ..kinds.topic.resource_type import KIND as TOPIC
from ..rules.commanded import LEADERS_ELECTED, MOVE_STOPPED
from .commanded import alter_delegation_token, alter_features
from .completion import (
    complete_altered_keys,
    complete_altered_pairs,
    complete_entity,
    list_clients,
    list_topics,
)
from .describe import ask_document, ask_own_configs
from .drafts import ConfigEdit, make_drafts, read_edit, read_entity_names, refuse_missing
from .group_offsets import GroupFlags, alter_offsets


def elect_preferred(
    names: Sequence[str], documents: tuple[Question, ...] = (), *, other_changes: bool = False
) -> Alteration:
    """The alteration that elects the first replicas of these topics as leaders. others: other
    options are given beside it. Raises UsageError."""
    if other_changes:
        raise UsageError(
            "--elect-preferred cannot be combined with other options", "Use separate commands."
        )
    if not names:
        raise UsageError("no topic is named", "Name the topics whose leaders to elect.")
    drafts = tuple(
        Draft(LEADERS, name, _elect_ready, _note_election, managed=True)
        for name in dict.fromkeys(names)
    )
    needs = tuple((draft.kind, draft.key) for draft in drafts)
    return Alteration(drafts, documents, needs, refuse_missing)


def _elect_ready(attributes: FrozenMap | None, reading: Reading) -> FrozenMap | None:
    """The leaders after the election."""
    # A first replica that is not in sync cannot lead: the controller answers with error 80
    # (PREFERRED_LEADER_NOT_AVAILABLE) for its partition.
    if attributes is None:
        return None
    first, ready = _read_candidates(reading)
    leaders = {n: first[n] if n in ready else led for n, led in attributes["leaders"].items()}
    return attributes.with_items({"leaders": FrozenMap(leaders)})


def _read_candidates(reading: Reading) -> tuple[FrozenMap, Sequence[str]]:
    """The first replica of each partition, and the partitions where it can lead."""
    details = reading.details if isinstance(reading, Observed) else EMPTY
    return details.get("preferred") or EMPTY, details.get("ready") or ()


def _note_election(change: Change, reading: Reading) -> Change:
    noted = replace(
        change,
        before=_select_changing(change.before, change),
        after=_select_changing(change.after, change),
    )
    notes = _list_notes(change, *_read_candidates(reading))
    return add_findings(noted, *map(LEADERS_ELECTED.find, notes))


def _select_changing(attributes: FrozenMap | None, change: Change) -> FrozenMap | None:
    """The attributes with the leaders that change."""
    # Other leaders can change until the plan is applied, without making it stale.
    if attributes is None:
        return None
    numbers = [item.path[1] for item in change.paths]
    leaders = FrozenMap({number: attributes["leaders"][number] for number in numbers})
    return attributes.with_items({"leaders": leaders})


def _list_notes(change: Change, first: FrozenMap, ready: Sequence[str]) -> tuple[str, ...]:
    if change.before is None:
        return ()
    notes = (
        [f"preferred leaders of {count(len(change.paths), 'partition')}"] if change.paths else []
    )
    unable = [f"{number} (broker {first[number]})" for number in first if number not in ready]
    if unable:
        notes.append(
            f"left out, because the first replica is not in sync and cannot lead: partition "
            f"{', '.join(unable)}"
        )
    return tuple(notes)


STOPPED = "the move that runs is stopped; its replicas stay where they are"


def cancel_moves(
    names: Sequence[str], documents: tuple[Question, ...], *, other_changes: bool
) -> Alteration:
    """The alteration that stops the moves of these topics. others: other options are given beside
    it. Raises UsageError."""
    if other_changes:
        raise UsageError(
            "--cancel-move cannot be combined with other options", "Use separate commands."
        )
    if not names:
        raise UsageError("no topic is named", "Name the topics whose moves to stop.")
    drafts = tuple(
        Draft(TOPIC, name, _stay, _note_stop, address=f"{TOPIC}.{name}", managed=True)
        for name in dict.fromkeys(names)
    )
    needs = tuple((draft.kind, draft.key) for draft in drafts)
    return Alteration(drafts, documents, needs, _refuse_still)


def _refuse_still(readings: Mapping[Identity, Reading]) -> None:
    """Raise UsageError for a topic that is not there, or of which no move runs."""
    refuse_missing(readings)
    # The controller has no dry run for this (KIP-455): it would answer with error 85 for each
    # partition that does not move, after the approval.
    for identity, reading in readings.items():
        if isinstance(reading, Observed) and reading.moving is None:
            raise UsageError(
                f'no move of the topic "{inline(identity.key)}" runs',
                "`kafkaform plan` shows the moves that run.",
            )


def _stay(attributes: FrozenMap | None, reading: Reading) -> FrozenMap | None:
    """The attributes with the replicas where they are, instead of where they move."""
    if attributes is None or not isinstance(reading, Observed):
        return attributes
    names = (reading.moving or {}).keys()
    return attributes.with_items({name: reading.attributes[name] for name in names})


def _note_stop(change: Change, _: Reading) -> Change:
    return add_findings(change, MOVE_STOPPED.find(STOPPED))


Names = Annotated[list[str], Operand("NAME…", complete_entity)]
NamesOrDefault = Annotated[list[str] | None, Operand("NAME…", complete_entity)]
Ids = Annotated[list[str] | None, Operand("ID…", complete_entity)]
Addresses = Annotated[list[str] | None, Operand("ADDRESS…", complete_entity)]
Add = Annotated[
    list[str] | None,
    Option("--add-config", "Set these; keep the others.", "K=V,K2=[A,B]", complete_altered_pairs),
]
Delete = Annotated[
    list[str] | None,
    Option("--delete-config", "Remove these.", "K,K2", complete_altered_keys),
]
Default = Annotated[bool, Option("--entity-default", "Use the default entity.")]


def alter_topic(
    names: Names,
    add_config: Add = None,
    delete_config: Delete = None,
    cancel_move: Annotated[bool, Option("--cancel-move", "Stop the running replica move.")] = False,
    elect: Annotated[
        bool, Option("--elect-preferred", "Elect the first replicas as leaders.")
    ] = False,
) -> Alteration:
    """Change topic configs, stop a move, or elect leaders.

    This command never creates or deletes topics.
    """
    # Both are changes of a topic as a whole, with plans of their own: beside configs it would be
    # open which of them failed.
    topics = tuple(name for name in read_entity_names("topic", names) if name is not None)
    configs = bool(add_config or delete_config)
    documents = tuple(ask_document("topics", DescribeQuery(escape_glob(name))) for name in topics)
    if elect:
        return elect_preferred(topics, documents, other_changes=configs or cancel_move)
    if cancel_move:
        return cancel_moves(topics, documents, other_changes=configs)
    return _alter_configs(read_edit("topic", names, add_config or (), delete_config or ()))


def alter_broker(
    names: Ids = None,
    add_config: Add = None,
    delete_config: Delete = None,
    entity_default: Default = False,
) -> Alteration:
    """Change dynamic broker configs.

    With --entity-default, change those that all brokers share.
    """
    return _alter_entity("broker", names, add_config, delete_config, entity_default)


def alter_user(
    names: NamesOrDefault = None,
    add_config: Add = None,
    delete_config: Delete = None,
    entity_default: Default = False,
    client_id: Annotated[
        str | None,
        Option("--client-id", "Limit this client of the user.", "ID", offer_names(list_clients)),
    ] = None,
    client_default: Annotated[
        bool, Option("--client-default", "Set the default for the user's clients.")
    ] = False,
) -> Alteration:
    """Change user quotas and SCRAM credentials.

    Write a credential as SCRAM-SHA-256=[iterations=8192,password=env:NAME].
    """
    if client_default and client_id is not None:
        raise UsageError("--client-default and --client-id exclude each other", "Give one of them.")
    client = (client_default or client_id is not None, client_id or None)
    return _alter_entity("user", names, add_config, delete_config, entity_default, client)


def alter_client(
    names: Ids = None,
    add_config: Add = None,
    delete_config: Delete = None,
    entity_default: Default = False,
) -> Alteration:
    """Change client ID quotas."""
    return _alter_entity("client", names, add_config, delete_config, entity_default)


def alter_ip(
    names: Addresses = None,
    add_config: Add = None,
    delete_config: Delete = None,
    entity_default: Default = False,
) -> Alteration:
    """Change IP address limits."""
    return _alter_entity("ip", names, add_config, delete_config, entity_default)


def alter_group(
    names: Names,
    add_config: Add = None,
    delete_config: Delete = None,
    reset: Annotated[bool, Option("--reset-offsets", "Set its offsets.")] = False,
    earliest: Annotated[bool, Option("--to-earliest", "To the first record.")] = False,
    latest: Annotated[bool, Option("--to-latest", "To the end.")] = False,
    moment: Annotated[
        str | None, Option("--to-datetime", "To the first record from then on.", "TIME")
    ] = None,
    duration: Annotated[
        str | None, Option("--by-duration", "To the first record since then.", "2h")
    ] = None,
    offset: Annotated[str | None, Option("--to-offset", "To this offset.", "N")] = None,
    shift: Annotated[
        str | None, Option("--shift-by", "By so many records; back with -N.", "N")
    ] = None,
    current: Annotated[
        bool, Option("--to-current", "Give partitions without an offset the end.")
    ] = False,
    file: Annotated[
        str | None, Option("--from-file", "To these: lines of topic,partition,offset.", "CSV")
    ] = None,
    topic: Annotated[
        list[str] | None,
        Option("--topic", "Of this topic.", "NAME[:0,1]", offer_names(list_topics)),
    ] = None,
    all_topics: Annotated[
        bool, Option("--all-topics", "Of all topics of which it has offsets.")
    ] = False,
    forget: Annotated[bool, Option("--delete-offsets", "Delete its offsets.")] = False,
    delete: Annotated[bool, Option("--delete", "Delete the group.")] = False,
) -> Alteration:
    """Change group configs and offsets, or delete groups.

    Offsets are reset or deleted only while the group has no members.
    """
    flags = GroupFlags(
        reset=reset,
        forget=forget,
        delete=delete,
        earliest=earliest,
        latest=latest,
        current=current,
        datetime=moment,
        offset=offset,
        shift=shift,
        duration=duration,
        file=file,
        topics=tuple(topic or ()),
        all_topics=all_topics,
    )
    if flags == GroupFlags():
        return _alter_entity("group", names, add_config, delete_config)
    if add_config or delete_config:
        raise UsageError("configs and offsets exclude each other", "Use separate commands.")
    return alter_offsets(names, flags)


def alter_client_metrics(
    names: Names, add_config: Add = None, delete_config: Delete = None
) -> Alteration:
    """Change client metrics subscriptions."""
    return _alter_entity("client-metrics", names, add_config, delete_config)


def _alter_entity(
    entity: str,
    names: Sequence[str] | None,
    add: Sequence[str] | None,
    delete: Sequence[str] | None,
    default: bool = False,
    client: tuple[bool, str | None] = (False, None),
) -> Alteration:
    """The alteration of entities of one type. Raises UsageError."""
    # An empty name means the default entity, too (KIP-248); the flag is the readable way.
    if default and names:
        raise UsageError("--entity-default and names exclude each other", "Give one of them.")
    named: Sequence[str | None] = (None,) if default else names or ()
    return _alter_configs(read_edit(entity, named, add or (), delete or (), client))


def _alter_configs(edit: ConfigEdit) -> Alteration:
    names = edit.names if edit.entity == "topic" else ()
    needs = tuple((TOPIC, name) for name in names if name is not None)
    documents = tuple(_list_documents(edit))
    return Alteration(make_drafts(edit), documents, needs, refuse_missing)


def _list_documents(edit: ConfigEdit) -> Iterator[Question]:
    """The questions for the documents to show afterwards."""
    # KIP-248 prints the fresh state after an alter. Names are globs in a query, so their special
    # characters are escaped.
    if edit.entity in ("user", "client", "ip"):
        entity = "client-id" if edit.entity == "client" else edit.entity
        for name in edit.names:
            fields = FrozenMap({entity: escape_glob(name)})
            yield ask_document("quotas", DescribeQuery(fields=fields))
            if edit.entity == "user" and name is not None:
                yield ask_document("users", DescribeQuery(escape_glob(name)))
        return
    types = {"topic": "topics", "broker": "brokers", "group": "groups"}
    kind = types.get(edit.entity, edit.entity)
    yield ask_own_configs(
        DescribeQuery(exact=tuple(name or "" for name in edit.names), entity_type=kind)
    )


def escape_glob(name: str | None) -> str:
    """A glob that matches only this name; empty for the default entity."""
    return "" if name is None else glob.escape(name)


GROUP = CommandGroup(
    "kafka",
    "Change settings that no block manages.",
    (
        Command("topic", alter_topic),
        Command("broker", alter_broker),
        Command("user", alter_user),
        Command("client", alter_client),
        Command("ip", alter_ip),
        Command("group", alter_group),
        Command("client-metrics", alter_client_metrics),
        Command("delegation-token", alter_delegation_token),
        Command("features", alter_features),
    ),
)
