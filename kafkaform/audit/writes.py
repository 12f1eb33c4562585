"""Find what a log says about writes to objects: the paths that were written from here, and when, by
whom and in which run each of them was last set."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import Any

from msgspec import Struct, field

from ..core.change import Action, OutcomeStatus, Path
from ..core.resource import Identity
from .records import Seen

MAKING = frozenset({Action.CREATE.value, Action.ADOPT.value, Action.IMPORT.value})
ENDING = frozenset({Action.DELETE.value, Action.FORGET.value})
SUCCEEDED = (OutcomeStatus.APPLIED.value, OutcomeStatus.STARTED.value)
_SETS_NOTHING = frozenset({Action.REFRESH.value, Action.FORGET.value, Action.NOOP.value})


class LastWrite(Struct, frozen=True):
    """A successful step."""

    time: str
    """When its outcome was recorded, RFC 3339, UTC."""
    actor: str
    """Who ran it."""
    run: str
    """The id of the run that sent it."""


class ObjectWrites(Struct, frozen=True):
    """What was written to one object from here."""

    own_paths: frozenset[Path] = frozenset()
    """The paths that are ours."""
    paths: Mapping[Path, LastWrite] = field(default_factory=dict)
    """Path -> the step that set it last, or removed it. An adoption and an import count: from then
    on the value was known here. A refresh does not, because it sets nothing."""
    last: LastWrite | None = None
    """The last step that set anything, or deleted the object."""


class WrittenTarget(Struct, frozen=True):
    """What the change of an intent leads to."""

    paths: frozenset[Path] = frozenset()
    """All that is set after it."""
    foreign_paths: frozenset[Path] = frozenset()
    """Those of them that are kept for others; older logs do not have them."""


def read_target(intent: Mapping[str, Any]) -> WrittenTarget:
    """What the change of an intent leads to. intent: its body."""
    foreign_paths = frozenset(parse_path(text) for text in intent.get("theirs", ()))
    return WrittenTarget(frozenset(_walk_leaves(intent.get("target") or {})), foreign_paths)


class WrittenPaths(Struct):
    """What was written to objects so far, while a log is read."""

    _own: dict[Identity, frozenset[Path]] = field(default_factory=dict)
    _paths: dict[Identity, dict[Path, LastWrite]] = field(default_factory=dict)
    _last: dict[Identity, LastWrite] = field(default_factory=dict)
    # Thousands of objects have the same few sets, too.
    _sets: dict[frozenset[Path], frozenset[Path]] = field(default_factory=dict)

    def restore(self, writes: Mapping[Identity, ObjectWrites]) -> None:
        """Take over what was written before."""
        for identity, item in writes.items():
            self._own[identity] = self._sets.setdefault(item.own_paths, item.own_paths)
            self._paths[identity] = dict(item.paths)
            if item.last is not None:
                self._last[identity] = item.last

    def note_step(self, record: Seen, identity: Identity, run: str, target: WrittenTarget) -> None:
        """A step has succeeded. run: the one that sent it."""
        body = record.body
        action = body["action"]
        # A sensitive path has no value in the log, so None there does not mean that it was removed.
        listed = {
            parse_path(item["path"]): item["after"] is None and not item["sensitive"]
            for item in body["paths"]
        }
        if action in ENDING:
            self._own.pop(identity, None)
            self._paths.pop(identity, None)
        elif action != Action.REFRESH.value:
            is_new = action in MAKING or body["adopts"]
            self._note_own(identity, listed, target, is_new=is_new)
        if action in _SETS_NOTHING:
            return
        write = LastWrite(record.time, intern(record.actor), intern(run))
        self._last[identity] = write
        if action not in ENDING:
            is_new = action in MAKING or body["adopts"]
            paths = self._paths.setdefault(identity, {})
            paths |= dict.fromkeys((*listed, *(target.paths if is_new else ())), write)

    def _note_own(
        self,
        identity: Identity,
        listed: Mapping[Path, bool],
        target: WrittenTarget,
        *,
        is_new: bool,
    ) -> None:
        removed = {path for path, gone in listed.items() if gone}
        before = frozenset[Path]() if is_new else self._own.get(identity, frozenset())
        after = before | target.paths | (listed.keys() - removed)
        own_paths = frozenset(after - removed - target.foreign_paths)
        self._own[identity] = self._sets.setdefault(own_paths, own_paths)

    def collect(self, runs: Container[str]) -> Mapping[Identity, ObjectWrites]:
        """Object -> what was written to it. runs: objects that are gone are left out, unless one of
        these ended them."""
        return {
            identity: ObjectWrites(
                self._own.get(identity, frozenset()), dict(self._paths.get(identity, {})), last
            )
            for identity in {**self._last, **self._own}
            if (last := self._last.get(identity)) is None
            or last.run in runs
            or self._own.get(identity)
            or self._paths.get(identity)
        }


# Thousands of objects have the same few paths, and each is kept once.
@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """The path that a record names."""
    # The first dot ends the name of the attribute; the key of a map may contain more.
    name, dot, key = text.partition(".")
    return (name, key) if dot else (name,)


def _walk_leaves(attributes: Mapping[str, Any]) -> Iterator[Path]:
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            yield from (
                parse_path(f"{name}.{key}") for key, item in value.items() if item is not None
            )
        elif value is not None:
            yield parse_path(name)
