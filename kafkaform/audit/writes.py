"""Find what a log says about writes to objects: the paths that were written from here, and when, by
whom and in which run each was last set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from ..core.change import Action, Path
from ..core.resource import Identity
from .event import Glance, RecordKind
from .index import ENDING, MAKING, SUCCEEDED, Seen, get_identity, get_run

_PATH_KINDS = frozenset({RecordKind.INTENT, RecordKind.OUTCOME, RecordKind.RECOVER})


def written_paths(
    records: Iterable[Seen], identities: Collection[Identity]
) -> Mapping[Identity, frozenset[Path]]:
    """Wanted identity -> the paths of it that are ours after all these records.

    records: trusted, in order. An intent says what its change leads to (`target`) and what of that
    is kept for others (`theirs`, which older logs do not have). It counts once an outcome says that
    the step succeeded.
    """
    intents: dict[tuple[str, str, int], Mapping[str, Any]] = {}
    written: dict[Identity, frozenset[Path]] = {}
    for record in records:
        if record.kind not in _PATH_KINDS:
            continue
        body = record.body
        if isinstance(record, Glance):
            record.forget()
        if "step" not in body or _get_identity(body) not in identities:
            continue
        key = (body.get("of_run", record.run), body["step"], body["attempt"])
        if record.kind == RecordKind.INTENT:
            intents[key] = body
        elif body["outcome"] in SUCCEEDED:
            identity = _get_identity(body)
            before = written.get(identity, frozenset())
            written[identity] = _compute_after(before, body, intents.get(key, {}))
    return written


def _compute_after(
    before: frozenset[Path], outcome: Mapping[str, Any], intent: Mapping[str, Any]
) -> frozenset[Path]:
    """What is ours after a step that succeeded."""
    if outcome["action"] in ENDING:
        return frozenset()
    if outcome["action"] == Action.REFRESH.value:
        return before  # the state took in what is live: nothing was written
    created = outcome["action"] in MAKING or outcome["adopts"]
    listed = [(_parse_path(item["path"]), item) for item in outcome["paths"]]
    removed = {p for p, item in listed if item["after"] is None and not item["sensitive"]}
    put = {p for p, _ in listed} - removed
    foreign_paths = {_parse_path(text) for text in intent.get("theirs", ())}
    target_paths = set(_walk_leaves(intent.get("target") or {}))
    return frozenset(
        ((set() if created else before) | target_paths | put) - removed - foreign_paths
    )


def _get_identity(body: Mapping[str, Any]) -> Identity:
    return Identity(body["instance"], body["kind"], body["key"])


def _parse_path(text: str) -> Path:
    # The first dot ends the name of the attribute; the key of a map may contain more.
    name, dot, key = text.partition(".")
    return (name, key) if dot else (name,)


def _walk_leaves(attributes: Mapping[str, Any]) -> Iterator[Path]:
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            yield from ((name, key) for key, item in value.items() if item is not None)
        elif value is not None:
            yield (name,)


_WRITE_KINDS = frozenset({RecordKind.OUTCOME, RecordKind.RECOVER})
_SETS_NOTHING = frozenset({Action.REFRESH.value, Action.FORGET.value, Action.NOOP.value})


class LastWrite(Struct, frozen=True):
    """A successful step, as the last one that wrote something."""

    time: str
    """When its outcome was recorded, RFC 3339, UTC."""
    actor: str
    """Who ran it."""
    run: str
    """The id of the run that sent it."""


Writes = Mapping[str, LastWrite]
"""Path, joined by dots -> its last write. The empty path is the object as a whole: its creation,
adoption, import or deletion, the last write of every path that no later step wrote."""


def find_last_writes(
    records: Iterable[Seen], identities: Collection[Identity]
) -> Mapping[Identity, Writes]:
    """Wanted identity -> its last writes. records: trusted, in order.

    An adoption and an import count: from then on the value was known here. A refresh does not,
    because it sets nothing.
    """
    last_writes: dict[Identity, dict[str, LastWrite]] = {}
    for record in records:
        if record.kind not in _WRITE_KINDS:
            continue
        body = record.body
        if body.get("outcome") in SUCCEEDED and body["action"] not in _SETS_NOTHING:
            identity = get_identity(record)
            if identity in identities:
                full_record = record.read_whole()
                write = LastWrite(full_record.time, full_record.actor, get_run(record))
                if body["action"] in MAKING or body["action"] in ENDING or body["adopts"]:
                    last_writes[identity] = {"": write}
                paths = (item["path"] for item in body["paths"])
                last_writes.setdefault(identity, {}).update(dict.fromkeys(paths, write))
        if isinstance(record, Glance):
            record.forget()
    return last_writes


def get_write(writes: Writes, path: str) -> LastWrite | None:
    """The last write of a path, None if the log does not show it."""
    return writes.get(path) or writes.get("")


def get_newest(writes: Writes) -> LastWrite | None:
    """The last write of an object, None if the log does not show one."""
    return max(writes.values(), key=lambda write: write.time, default=None)
