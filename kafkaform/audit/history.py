"""What a log says about the past: which run changed which value of which object, what was there
before, and what changed between two runs without one.

Pure functions over records. An intent repeats what it found (`before`). If that is not what the
last step left, somebody else changed it in between: nobody knows who, only between which two looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from msgspec import Struct, field

from ..core.change import BOOKKEEPING, Action, OutcomeStatus
from ..core.head import GENESIS, Head
from ..core.resource import Identity
from ..core.value import Value
from .index import get_identity, get_run
from .records import Glance, Line, RecordKind, Seen, match_last_members, read_glances
from .sink import ArchivedRecords
from .writes import ENDING, MAKING, SUCCEEDED

OUTSIDE = "outside"
"""The action of a change that no run of this log made."""
UNDO = "undo"
"""The command that brings back what a run changed, as a record names it."""
RECORDED = "recorded"
"""The outcome of a change of the state alone."""
UNKNOWN = OutcomeStatus.UNKNOWN.value
_STEPS = frozenset({RecordKind.INTENT, RecordKind.OUTCOME, RecordKind.RECOVER})
_NAMED = frozenset({"instance", "kind", "key"})
Key = tuple[str, str, int]
"""Run, step, attempt."""


class RunFacts(Struct, frozen=True):
    """What a run said about itself when it began."""

    run: str
    """Its id."""
    actor: str
    """Who ran it."""
    time: str
    """When it began, RFC 3339, UTC."""
    command: str = ""
    """`apply`, `alter`, `undo`, ..."""
    commit: str | None = None
    """The git commit of the configuration."""
    pull_request: str | None = None
    """The pull request that the commit came with, as the pipeline names it."""
    undoes: str | None = None
    """Of an `undo`: the run that it undoes."""


class LoggedValue(Struct, frozen=True):
    """One path of a change."""

    path: str
    """Joined by dots; empty for the object as a whole."""
    before: Value
    """None if it was not set; of a sensitive path always None."""
    after: Value
    """None if it is not set; of a sensitive path always None."""
    sensitive: bool = False
    """The log has no values of it."""


class LoggedChange(Struct, frozen=True):
    """One change of one object."""

    seq: int
    """Number of the record that shows it, 0 if none does."""
    time: str
    """When its outcome was recorded; of a change from outside, when it was seen first."""
    identity: Identity
    """Which object."""
    address: str
    """What the object was called then."""
    action: str
    """An Action, OUTSIDE, or the command that edited the state."""
    outcome: str
    """How it ended: an OutcomeStatus, or RECORDED."""
    values: tuple[LoggedValue, ...] = ()
    """What changed; none if only the state did."""
    actor: str | None = None
    """Who did it, None if nobody knows."""
    run: str | None = None
    """The run that did it, None if none of this log did."""
    since: str | None = None
    """Of a change from outside: the last look that did not show it."""
    error: str | None = None
    """Why it failed."""
    owners: tuple[str, ...] = ()
    """The addresses that own the object afterwards."""


class ToldChanges(Struct):
    """What was read of a log so far."""

    changes: list[LoggedChange] = field(default_factory=list)
    """In the order of the records that show them."""
    runs: dict[str, RunFacts] = field(default_factory=dict)
    """Run id -> what it said about itself."""
    ends: dict[str, bool] = field(default_factory=dict)
    """Run that came to its end -> every step of it was applied or started."""
    first: str = ""
    """When the first record was written."""
    unread: ArchivedRecords = ArchivedRecords()
    """What was asked for too, and is archived."""


def read_tail(lines: Iterator[Line], source: str, after: int) -> Iterator[Glance]:
    """The records of a log after this number, each checked. lines: those of `Sink.lines(after)`.

    Where the chain comes from is not checked. So this is for what is only shown, and decides
    nothing. Raises StorageError.
    """
    first = next(lines, None)
    if first is None:
        return
    members = match_last_members(first)
    start = Head(after, members["prev"].decode()) if members is not None and after else GENESIS
    yield from read_glances(chain((first,), lines), source, start=start)


def list_names(records: Iterable[Seen]) -> Mapping[Identity, frozenset[str]]:
    """Each object of a log -> every address that it ever had here. Names of objects that are gone,
    and addresses that were moved, are among them."""
    names: dict[Identity, set[str]] = {}
    for record in records:
        for identity, addresses in _list_named(record):
            names.setdefault(identity, set()).update(addresses)
        if isinstance(record, Glance):
            record.forget()
    return {identity: frozenset(addresses - {""}) for identity, addresses in names.items()}


def _list_named(record: Seen) -> Iterator[tuple[Identity, Iterable[str]]]:
    if record.kind in _STEPS and record.body.keys() >= _NAMED:
        yield get_identity(record), (record.body.get("address", ""), *record.body.get("owners", ()))
    elif record.kind == RecordKind.STATE:
        for item in record.body.get("objects", ()):
            row = item.get("row") or {}
            yield _read_identity(item), row.get("owners", ())


def tell_changes(
    records: Iterable[Seen],
    chosen: Callable[[Identity], bool] = lambda identity: True,
    *,
    outside: bool = True,
) -> ToldChanges:
    """Every change of the chosen objects.

    records: trusted, in order, from any record on. outside: also what others changed, as far as the
    records show it; that needs all of them.
    """
    teller = _ChangeTeller(chosen, outside)
    for record in records:
        teller.read(record)
        if isinstance(record, Glance):
            record.forget()
    return teller.finish()


class _LiveObject(Struct):
    """What the records say of one object, after those that were read so far."""

    values: dict[str, Value] | None
    """Path -> value; None if the object is gone."""
    looked: str
    """When that was known last."""
    maps: frozenset[str] = frozenset()
    """Attributes that are maps: a key that `values` lacks was not set."""
    doubted: set[str] = field(default_factory=set)
    """Paths of steps whose end nobody saw."""

    def has(self, path: str) -> bool:
        """Whether it is known what this path was like."""
        if path in self.doubted:
            return False
        return path in (self.values or {}) or path.partition(".")[0] in self.maps


class _ChangeTeller(Struct):
    """The mutable half of `tell_changes`."""

    chosen: Callable[[Identity], bool]
    outside: bool
    told: ToldChanges = field(default_factory=ToldChanges)
    live: dict[Identity, _LiveObject] = field(default_factory=dict)
    """Objects of which it is known what they were like."""
    open: dict[Key, Any] = field(default_factory=dict)
    """Intents without an outcome."""
    verdicts: dict[Identity, bool] = field(default_factory=dict)
    """What `chosen` said."""

    def read(self, record: Seen) -> None:
        self.told.first = self.told.first or record.time
        if record.kind == RecordKind.RUN_BEGIN:
            self._read_begin(record)
        elif record.kind == RecordKind.RUN_END:
            self.told.ends[record.run] = bool(record.body["complete"])
        elif record.kind == RecordKind.STATE:
            self._read_edit(record)
        elif record.kind in _STEPS and record.body.keys() >= _NAMED:
            identity = get_identity(record)
            if self._is_chosen(identity):
                whole = record.read_whole()
                if record.kind == RecordKind.INTENT:
                    self._read_intent(identity, whole)
                else:
                    self._read_outcome(identity, whole)

    def finish(self) -> ToldChanges:
        for intent in self.open.values():
            identity = get_identity(intent)
            self._add(identity, intent, intent.run, UNKNOWN, _list_values(intent.body))
        self.told.changes.sort(key=lambda change: change.seq)
        return self.told

    def _is_chosen(self, identity: Identity) -> bool:
        if identity not in self.verdicts:
            self.verdicts[identity] = self.chosen(identity)
        return self.verdicts[identity]

    def _read_begin(self, record: Seen) -> None:
        whole = record.read_whole()
        body = whole.body
        self.told.runs[whole.run] = RunFacts(
            whole.run,
            whole.actor,
            whole.time,
            body.get("command", ""),
            body.get("commit"),
            body.get("pull_request"),
            body.get("undoes"),
        )

    def _read_edit(self, record: Seen) -> None:
        for item in record.body.get("objects", ()):
            identity = _read_identity(item)
            if not self._is_chosen(identity):
                continue
            whole = record.read_whole()
            # Records of earlier versions do not say what was left.
            row = item.get("row", {})
            owners = tuple(row.get("owners", ())) if row else ()
            self.told.changes.append(
                LoggedChange(
                    whole.seq,
                    whole.time,
                    identity,
                    ", ".join(owners),
                    str(whole.body.get("reason", "state")),
                    RECORDED,
                    actor=whole.actor,
                    run=whole.run,
                    owners=owners,
                )
            )

    def _read_intent(self, identity: Identity, record: Any) -> None:
        body = record.body
        self.open[record.run, body["step"], body["attempt"]] = record
        if self.outside and body["action"] != Action.REFRESH:
            self._compare(identity, record)

    def _compare(self, identity: Identity, record: Any) -> None:
        """Note what an intent found and no step left so."""
        body, live = record.body, self.live.get(identity)
        if live is None:
            return
        values = [value for value in _list_values(body) if not _is_private(value)]
        # An object that is there after its deletion, or gone before it: between the two looks,
        # somebody else made or deleted it.
        creates = body["action"] == Action.CREATE and not body["adopts"]
        if creates != (live.values is None) and body["action"] not in ENDING:
            before, after = ("present", None) if creates else (None, "present")
            self._add_outside(identity, record, live, (LoggedValue("", before, after),))
            self.live.pop(identity)
            return
        if live.values is not None:
            different = tuple(
                LoggedValue(value.path, live.values.get(value.path), value.before)
                for value in values
                if live.has(value.path) and live.values.get(value.path) != value.before
            )
            if different:
                self._add_outside(identity, record, live, different)
            live.values.update((value.path, value.before) for value in values)
            live.doubted.difference_update(value.path for value in values)
        live.looked = record.time

    def _add_outside(
        self, identity: Identity, record: Any, live: _LiveObject, values: tuple[LoggedValue, ...]
    ) -> None:
        self.told.changes.append(
            LoggedChange(
                record.seq,
                record.time,
                identity,
                record.body.get("address", ""),
                OUTSIDE,
                OutcomeStatus.APPLIED.value,
                values,
                since=live.looked,
            )
        )

    def _read_outcome(self, identity: Identity, record: Any) -> None:
        body, run = record.body, get_run(record)
        intent = self.open.pop((run, body["step"], body["attempt"]), None)
        values = _list_values(body)
        if body["action"] == Action.REFRESH:
            self._read_refresh(identity, record, intent)
            return
        self._add(identity, record, run, body["outcome"], values)
        if body["outcome"] in SUCCEEDED:
            self._note_success(identity, record, intent, values)
        elif record.kind == RecordKind.RECOVER and identity in self.live:
            # A superseded step may have been carried out all the same.
            self.live[identity].doubted.update(value.path for value in values)

    def _read_refresh(self, identity: Identity, record: Any, intent: Any) -> None:
        """A refresh takes in what others changed: it is the look that shows it. Its step has no
        paths; its intent says what the object is like."""
        if intent is None:
            return
        seen, live = _make_live(intent.body), self.live.get(identity)
        assert seen.values is not None
        if live is None or live.values is None:
            live = self.live[identity] = seen
        else:
            theirs = frozenset(intent.body.get("theirs", ()))
            different = _list_differences(live, seen, theirs)
            if different and self.outside:
                self._add_outside(identity, record, live, different)
            live.values.update((value.path, value.after) for value in different)
        live.looked = record.time

    def _note_success(
        self, identity: Identity, record: Any, intent: Any, values: tuple[LoggedValue, ...]
    ) -> None:
        body = record.body
        if body["action"] == Action.FORGET:
            self.live.pop(identity, None)  # from now on nobody looks at it
            return
        if body["action"] == Action.DELETE:
            self.live[identity] = _LiveObject(None, record.time)
            return
        live = self.live.get(identity)
        if live is None or live.values is None or body["action"] in MAKING or body["adopts"]:
            if intent is None:
                return  # nobody knows what the rest of the object is like
            live = self.live[identity] = _make_live(intent.body)
        assert live.values is not None
        live.values.update((v.path, v.after) for v in values if not _is_private(v))
        live.doubted.difference_update(value.path for value in values)
        live.looked = record.time

    def _add(
        self,
        identity: Identity,
        record: Any,
        run: str,
        outcome: str,
        values: tuple[LoggedValue, ...],
    ) -> None:
        body, facts = record.body, self.told.runs.get(run)
        # A `recover` record belongs to the run that closed the intent, and the change to the run
        # that sent it.
        actor = facts.actor if facts is not None and run != record.run else record.actor
        error = body.get("error")
        self.told.changes.append(
            LoggedChange(
                record.seq,
                record.time,
                identity,
                body.get("address", ""),
                body["action"],
                outcome,
                values,
                actor,
                run,
                error=error["message"] if error else None,
                owners=tuple(body.get("owners", ())),
            )
        )


def _read_identity(item: Mapping[str, Any]) -> Identity:
    return Identity(item["instance"], item["kind"], item["key"])


def _list_values(body: Mapping[str, Any]) -> tuple[LoggedValue, ...]:
    return tuple(
        LoggedValue(item["path"], item["before"], item["after"], item["sensitive"])
        for item in body["paths"]
    )


def _list_differences(
    live: _LiveObject, seen: _LiveObject, theirs: frozenset[str]
) -> tuple[LoggedValue, ...]:
    """What is known to be not as it was. seen: the object later; theirs: paths that it does not
    tell."""
    before, after = live.values or {}, seen.values or {}
    gone = (path for path in before.keys() - after.keys() if path.partition(".")[0] in seen.maps)
    paths = sorted({*after, *gone} - theirs)
    return tuple(
        LoggedValue(path, before.get(path), after.get(path))
        for path in paths
        if live.has(path) and before.get(path) != after.get(path)
    )


def _make_live(intent: Mapping[str, Any]) -> _LiveObject:
    """The object that a step leads to, without what it keeps for others."""
    values: dict[str, Value] = {}
    target = intent["target"] or {}
    for name, value in target.items():
        if isinstance(value, Mapping):
            values |= {f"{name}.{key}": item for key, item in value.items()}
        elif value is not None:
            values[name] = value
    maps = frozenset(name for name, value in target.items() if isinstance(value, Mapping))
    theirs = set(intent.get("theirs", ()))
    # What is kept for others is not told here, so nobody knows what it was like.
    own = {path: item for path, item in values.items() if path not in theirs}
    return _LiveObject(own, "", maps, theirs)


def _is_private(value: LoggedValue) -> bool:
    """True for what nobody can see from outside: a sensitive value, and the state's own labels."""
    return value.sensitive or value.path.partition(".")[0] in BOOKKEEPING
