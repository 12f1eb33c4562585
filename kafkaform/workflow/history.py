"""Answer what happened to an object, to a principal, or lately, from the log and the state alone.

Objects that are gone and addresses that were moved are found as well: the log knows every name that
an object ever had.

Editors ask for the last changes of an object again and again. For them, only the end of a log in a
local file is read, and once as long as it stays the same. A log in a store is not asked: looking at
a word must not wait for a network, or use a login.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from kafkaform_kafka.kinds.quota.resource_type import KIND as QUOTA
from kafkaform_kafka.kinds.quota.resource_type import parse_entity_key
from kafkaform_kafka.kinds.user.resource_type import KIND as USER
from kafkaform_kafka.protocol import keys
from kafkaform_kafka.protocol.acl import KIND as ACL
from kafkaform_kafka.protocol.acl import parse_acl_key

from ..audit.history import (
    RECORDED,
    LoggedChange,
    RunFacts,
    ToldChanges,
    list_names,
    read_tail,
    tell_changes,
)
from ..audit.records import Record, RecordKind
from ..audit.sink import ArchivedRecords, Sink, Tail, read_archived, read_present
from ..audit.sinks.local import LocalSink
from ..core.address import Address, parse_address
from ..core.diagnostics import suggest
from ..core.errors import KafkaformError, UsageError
from ..core.resource import Identity
from ..core.words import Vocabulary, Words
from ..provider.registry import Registry
from ..render.history import list_change_rows
from ..state.model import State
from .outside_changes import find_fleet_root, list_later_changes, name_writers
from .stores import Store, find_anchor, open_folder_store

PRINCIPAL = "principal"
_KINDS: Mapping[str, tuple[str, ...]] = {
    "topic": ("kafka_topic", "kafka_topic_config", "kafka_topic_leaders"),
    "acl": (ACL,),
    "quota": (QUOTA,),
    "user": (USER,),
    "config": (
        *("kafka_topic_config", "kafka_cluster_config", "kafka_broker_config"),
        "kafka_group_config",
    ),
    "broker": ("kafka_broker_config",),
    "group": ("kafka_group_config",),
    "token": ("kafka_delegation_token",),
    "feature": ("kafka_feature",),
    "connector": ("kafka_connect_connector",),
    "schema": ("schema_registry_schema", "schema_registry_subject_config"),
    "subject": ("schema_registry_schema", "schema_registry_subject_config"),
}
"""The word for objects, as `describe` has it -> their types. The name of a type is one, too."""
WORDS = (*_KINDS, PRINCIPAL)
FORMAT_VERSION = "1.0"
_WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
"""How many records from the end are read, until what is asked for is among them."""
_SPAN = re.compile(r"(\d{1,5})([mhdw])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
NAMES = "Name an address (kafka_topic.orders), or a kind and a name: topic/orders, principal/ci."


class ObjectHistory(Struct, frozen=True):
    """One object and what happened to it."""

    identity: Identity
    addresses: tuple[str, ...]
    """Every address that it ever had."""
    recorded: bool
    """The state has it today."""
    changes: tuple[LoggedChange, ...]
    """In the order in which they were seen."""


class History(Struct, frozen=True):
    """What happened to the objects of a name."""

    name: str
    objects: tuple[ObjectHistory, ...]
    """The objects that have, or had, this name."""
    runs: Mapping[str, RunFacts]
    """Run id -> what it said about itself."""
    unread: ArchivedRecords = ArchivedRecords()
    """What could tell more about this time, and is archived."""


class Period(Struct, frozen=True):
    """A time, half-open; empty texts leave it open."""

    since: str = ""
    """The first moment, RFC 3339, UTC."""
    until: str = ""
    """The moment after the last one."""

    def covers(self, time: str) -> bool:
        """True for a moment in it."""
        return (not self.since or time >= self.since) and (not self.until or time < self.until)


ALWAYS = Period()


def read_history(store: Store, name: str, period: Period = ALWAYS, path: str = "") -> History:
    """What happened to the objects that are, or were, called so.

    name: an address, or a kind and a name (`topic/orders`, `principal/ci`); path: only values at
    this path, or below it. Raises UsageError for a name that nobody had, StorageError for a log
    that cannot be trusted.
    """
    history = find_history(store, name, period, path)
    if not history.objects:
        raise UsageError(
            f"neither the state nor the audit log has an object {name}",
            f"{suggest_name(store, name) or NAMES} {history.unread.sentence}".strip(),
        )
    return history


def find_history(store: Store, name: str, period: Period = ALWAYS, path: str = "") -> History:
    """The same, without objects if nobody had the name."""
    state = store.backend.load().state
    anchor = find_anchor(store.sink, state)
    names, archived = _collect_names(store, state), read_archived(store.sink.sealed)
    calls = make_selection(name)
    identities = frozenset(i for i, addresses in names.items() if calls(i, addresses))
    reading = tell_changes(read_present(store.sink, anchor), identities.__contains__)
    changes: dict[Identity, list[LoggedChange]] = {identity: [] for identity in identities}
    scopes, root = state.providers if state is not None else {}, find_fleet_root()
    later = list_later_changes(reading, identities, scopes, root)
    for change in (*name_writers(reading, scopes, root), *later):
        chosen_change = _select_values(change, path)
        if chosen_change is not None and period.covers(change.time):
            changes[change.identity].append(chosen_change)
    objects = tuple(
        ObjectHistory(
            identity,
            tuple(sorted(names[identity])),
            state is not None and identity in state.objects,
            tuple(changes[identity]),
        )
        for identity in sorted(identities)
    )
    begins = bool(period.since) and bool(reading.first) and reading.first <= period.since
    return History(name, objects, reading.runs, ArchivedRecords() if begins else archived)


def _select_values(change: LoggedChange, path: str) -> LoggedChange | None:
    """The change with its values at this path; None if it has none there."""
    if not path:
        return change
    values = tuple(v for v in change.values if not v.path or is_at(v.path, path))
    return replace(change, values=values) if values else None


def is_at(path: str, query: str) -> bool:
    """True for this path, for one below it, and for a key of a map without the map's name."""
    attribute, dot, key = path.partition(".")
    return query in (path, attribute) or (bool(dot) and query == key)


# ── names ───────────────────────────────────────────────────────────────────────────────


def _collect_names(store: Store, state: State | None) -> Mapping[Identity, frozenset[str]]:
    """Each object of log and state -> every address that it ever had."""
    anchor = find_anchor(store.sink, state)
    names = dict(list_names(read_present(store.sink, anchor)))
    for identity, row in (state.objects if state else {}).items():
        names[identity] = names.get(identity, frozenset()) | frozenset(row.owners)
    return names


def make_selection(name: str) -> Callable[[Identity, Collection[str]], bool]:
    """Whether an object with these addresses is called so. Raises UsageError for a text that is
    neither an address nor a kind and a name."""
    word, slash, own_name = name.partition("/")
    if slash and "." not in word and "[" not in word:
        if word == PRINCIPAL:
            return lambda identity, _: own_name in list_principals(identity)
        kinds = _KINDS.get(word, (word,))
        return lambda identity, _: identity.kind in kinds and own_name in list_own_names(identity)
    try:
        address = parse_address(name)
    except ValueError:
        raise UsageError(f"{name!r} is neither an address nor a kind and a name", NAMES) from None
    return lambda _, addresses: any(_contains(address, item) for item in addresses)


def _contains(address: Address, text: str) -> bool:
    try:
        return address.contains(parse_address(text))
    except ValueError:
        return False  # `alter` without a configuration has addresses of its own


def list_own_names(identity: Identity) -> frozenset[str]:
    """What people call an object besides its key: the user of a credential, the resource or the
    principal of an ACL, the user, client or address of a quota."""
    names = {identity.key}
    try:
        if identity.kind == ACL:
            acl = parse_acl_key(identity.key)
            names |= {acl.principal, acl.resource_name}
        elif identity.kind == QUOTA:
            names |= {value or "default" for value in parse_entity_key(identity.key).values()}
        elif identity.kind == USER:
            names.add(keys.split(identity.key)[0])
    except ValueError:
        pass  # a newer version can have written the key, or somebody by hand
    return frozenset(names)


def list_principals(identity: Identity) -> frozenset[str]:
    """The principals that an object is about, with and without `User:`."""
    names: set[str] = set()
    try:
        if identity.kind == ACL:
            names.add(parse_acl_key(identity.key).principal)
        elif identity.kind == QUOTA:
            user = parse_entity_key(identity.key).get("user")
            names |= {f"User:{user}"} if user else set()
        elif identity.kind == USER:
            names.add(f"User:{keys.split(identity.key)[0]}")
    except ValueError:
        return frozenset()
    return frozenset(names | {name.removeprefix("User:") for name in names})


def list_spellings(identity: Identity, addresses: Collection[str]) -> Iterator[str]:
    """Every text that `history` takes for an object, for completion and for typing errors."""
    yield from addresses
    word = next((word for word, kinds in _KINDS.items() if identity.kind in kinds), identity.kind)
    yield from (f"{word}/{name}" for name in list_own_names(identity))
    yield from (f"{PRINCIPAL}/{name}" for name in list_principals(identity))


def suggest_name(store: Store, name: str) -> str:
    """A hint at the name of an object that is spelled almost so; empty if there is none."""
    names = _collect_names(store, store.backend.load().state)
    spellings = (list_spellings(identity, addresses) for identity, addresses in names.items())
    return suggest(name, chain.from_iterable(spellings))


# ── the newest changes ──────────────────────────────────────────────────────────────────


class ChangeFilter(Struct, frozen=True):
    """Which changes are shown; what is empty selects all."""

    name: str = ""
    """An address, or a kind and a name."""
    actor: str = ""
    action: str = ""
    outcome: str = ""
    run: str = ""
    period: Period = field(default_factory=Period)

    @property
    def needs_changes(self) -> bool:
        """True if it asks for more than records have."""
        return any((self.name, self.actor, self.action, self.outcome))

    def make_check(self) -> Callable[[LoggedChange], bool]:
        """Whether a change is shown. Raises UsageError."""
        calls = make_selection(self.name) if self.name else None

        def check(change: LoggedChange) -> bool:
            return (
                (not self.actor or change.actor == self.actor)
                and (not self.action or change.action == self.action)
                and (not self.outcome or change.outcome == self.outcome)
                and (not self.run or change.run == self.run)
                and self.period.covers(change.time)
                and (calls is None or calls(change.identity, (change.address, *change.owners)))
            )

        return check


def read_newest(store: Store, selection: ChangeFilter, last: int) -> ToldChanges:
    """The newest changes that fit, oldest first. Only the end of the log is read, as much as they
    need. Raises UsageError, StorageError."""
    check, chosen = selection.make_check(), []
    reading = ToldChanges()
    for reading in _read_windows(store.sink):
        chosen = [change for change in reading.changes if check(change)][-last:]
        # A run that began before the window has told who it is there.
        complete = all(
            change.run in reading.runs for change in chosen if change.outcome != RECORDED
        )
        began = selection.run and selection.run in reading.runs
        old = reading.first and selection.period.since and reading.first < selection.period.since
        if (len(chosen) == last and complete) or began or old:
            return replace(reading, changes=chosen, unread=ArchivedRecords())
    return replace(reading, changes=chosen)


def _read_windows(sink: Sink) -> Iterator[ToldChanges]:
    """What the end of a log tells, each time of more records, at last of all of them; then with
    what is archived."""
    for tail in _list_tails(sink):
        changes = tell_changes(read_tail(tail.lines, sink.location, tail.after), outside=False)
        yield replace(changes, unread=tail.archived) if tail.whole else changes


def _list_tails(sink: Sink) -> Iterator[Tail]:
    """The end of a log, each time more of it, at last all that is not archived."""
    for size in (*_WINDOWS, sys.maxsize):
        tail = sink.tail(size)
        yield tail
        if tail.whole:
            return


def read_newest_records(
    store: Store, selection: ChangeFilter, last: int
) -> tuple[list[Record], ArchivedRecords]:
    """The newest records of a run or a time, oldest first, and what was asked for too and is
    archived. Only the end of the log is read, as much as they need. Raises StorageError."""
    chosen: list[Record] = []
    unread = ArchivedRecords()
    for tail in _list_tails(store.sink):
        newest: deque[Record] = deque(maxlen=last)
        began, first = False, ""
        for glance in read_tail(tail.lines, store.sink.location, tail.after):
            if selection.run not in ("", glance.run):
                continue
            record = glance.read_whole()
            first = first or record.time
            began = began or bool(selection.run) and record.kind == RecordKind.RUN_BEGIN
            if selection.period.covers(record.time):
                newest.append(record)
        chosen, unread = list(newest), tail.archived
        if len(chosen) == last or began or (first and first < selection.period.since):
            return chosen, ArchivedRecords()
    return chosen, unread


class RunSummary(Struct, frozen=True):
    """One run, and what it changed."""

    facts: RunFacts
    complete: bool | None
    """Every step was applied or started; None for a run that has no end in the log."""
    changes: tuple[LoggedChange, ...]
    """In the order of the log, also what failed."""


def list_recent_runs(
    store: Store, last: int = 10
) -> tuple[tuple[RunSummary, ...], ArchivedRecords]:
    """The newest runs that sent something, the newest one first, and what is archived if these are
    fewer than asked for. Raises StorageError."""
    reading = ToldChanges()
    for reading in _read_windows(store.sink):
        if len(reading.runs) >= last:
            break
    unread = reading.unread if len(reading.runs) < last else ArchivedRecords()
    changes: dict[str, list[LoggedChange]] = {run: [] for run in reading.runs}
    for change in reading.changes:
        changes.get(change.run or "", []).append(change)
    newest = list(reading.runs.values())[::-1][:last]
    summaries = tuple(
        RunSummary(facts, reading.ends.get(facts.run), tuple(changes[facts.run]))
        for facts in newest
    )
    return summaries, unread


def find_run(store: Store, run: str) -> ToldChanges:
    """What the end of the log tells, back to this run; all of it if it has no such run."""
    reading = ToldChanges()
    for reading in _read_windows(store.sink):
        if run in reading.runs:
            break
    return reading


def read_recent(store: Store) -> ToldChanges:
    """What the newest records tell. Raises StorageError."""
    return next(_read_windows(store.sink), ToldChanges())


def list_recent_names(store: Store) -> Mapping[Identity, Collection[str]]:
    """The recorded objects, and those of the newest records -> their addresses."""
    rows = (store.backend.load().state or State("")).objects
    names = {identity: set(row.owners) for identity, row in rows.items()}
    for change in read_recent(store).changes:
        addresses = {change.address, *change.owners} - {""}
        names.setdefault(change.identity, set()).update(addresses)
    return names


def list_words(registry: Registry, identities: Iterable[Identity]) -> Vocabulary:
    """Provider instance -> the words of its provider, without providers that are not installed."""
    words: dict[str, Words] = {}
    for identity in identities:
        if identity.instance not in words:
            with suppress(KafkaformError):  # a log stays readable without the provider
                words[identity.instance] = registry.load(identity.provider).words
    return words


# ── documents ───────────────────────────────────────────────────────────────────────────


def make_history_document(history: History) -> Mapping[str, Any]:
    """What `history --json` prints."""
    return {
        "format_version": FORMAT_VERSION,
        "name": history.name,
        "archived_records": history.unread.head.seq,
        "objects": [
            {
                **_make_identity(item.identity),
                "addresses": list(item.addresses),
                "recorded": item.recorded,
                "changes": [make_change_document(c, history.runs) for c in item.changes],
            }
            for item in history.objects
        ],
    }


def make_change_document(change: LoggedChange, runs: Mapping[str, RunFacts]) -> dict[str, Any]:
    """One change, as `history --json` and `audit show --json` print it."""
    facts = runs.get(change.run or "")
    return {
        "record": change.seq or None,
        "time": change.time,
        "since": change.since,
        "actor": change.actor,
        "run": change.run,
        "command": facts.command if facts else None,
        "commit": facts.commit if facts else None,
        "pull_request": facts.pull_request if facts else None,
        "undoes": facts.undoes if facts else None,
        **_make_identity(change.identity),
        "address": change.address,
        "action": change.action,
        "outcome": change.outcome,
        "error": change.error,
        "values": [
            {"path": v.path, "before": v.before, "after": v.after, "sensitive": v.sensitive}
            for v in change.values
        ],
    }


def make_run_document(summary: RunSummary) -> dict[str, Any]:
    """One run, as `undo --json` lists it."""
    facts = summary.facts
    return {
        "run": facts.run,
        "time": facts.time,
        "actor": facts.actor,
        "command": facts.command,
        "commit": facts.commit,
        "pull_request": facts.pull_request,
        "undoes": facts.undoes,
        "complete": summary.complete,
        "changes": [make_change_document(c, {facts.run: facts}) for c in summary.changes],
    }


def _make_identity(identity: Identity) -> dict[str, str]:
    return {"instance": identity.instance, "kind": identity.kind, "key": identity.key}


# ── times ───────────────────────────────────────────────────────────────────────────────


def parse_moment(text: str, flag: str, now: float) -> str:
    """A moment as records write it. text: `2026-01-31`, RFC 3339, or how long ago: `90m`, `12h`,
    `7d`, `2w`. Raises UsageError."""
    span = _SPAN.fullmatch(text.strip())
    try:
        if span is not None:
            moment = datetime.fromtimestamp(now, UTC) - timedelta(**{_UNITS[span[2]]: int(span[1])})
        else:
            moment = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise UsageError(
            f"{flag} {text!r} is not a time",
            "Write a date (2026-01-31), a time (2026-01-31T22:00:00Z), or how long ago: 12h, 7d.",
        ) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def make_period(since: str | None, until: str | None, now: float) -> Period:
    """The time between two flags. Raises UsageError."""
    return Period(
        parse_moment(since, "--since", now) if since else "",
        parse_moment(until, "--until", now) if until else "",
    )


SHOWN = 3
"""How many changes of one object are shown."""


class _LogEnd(NamedTuple):
    """The end of a log, as it was read."""

    line: bytes
    reading: ToldChanges


class RecentChanges:
    """What the ends of logs say."""

    def __init__(self) -> None:
        self._ends: dict[Path, _LogEnd] = {}
        self._registry = Registry()

    def list_lines(self, folder: Path, address: str) -> Sequence[str]:
        """The last changes of a block in this folder, the newest first, one line for each; none if
        the log cannot be read."""
        with suppress(KafkaformError, OSError):
            return self._list_lines(folder, address)
        return ()

    def _list_lines(self, folder: Path, address: str) -> Sequence[str]:
        store = open_folder_store(folder, None, None)
        line = store.sink.last() if isinstance(store.sink, LocalSink) else None
        if line is None:
            return ()
        end = self._ends.get(folder)
        if end is None or end.line != line:
            end = self._ends[folder] = _LogEnd(line, read_recent(store))
        calls = make_selection(address)
        reading = end.reading
        changes = [c for c in reading.changes if calls(c.identity, (c.address, *c.owners))]
        newest = changes[: -SHOWN - 1 : -1]
        words = list_words(self._registry, (change.identity for change in newest))
        documents: list[Mapping[str, Any]] = [
            make_change_document(change, reading.runs) for change in newest
        ]
        return [
            f"{time} UTC, {actor}, run {run}: {action} {values} ({outcome})"
            for time, actor, run, outcome, action, _, values in list_change_rows(documents, words)
        ]
