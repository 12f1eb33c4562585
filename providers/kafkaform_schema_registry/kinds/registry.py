"""What all kinds share: the facts of a registry, the names of listings that answer questions, the
requests in their order, and what all steps have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.resource import ProviderFacts, Sweep
from kafkaform.core.value import FrozenMap, Value


class RegistryFacts(ProviderFacts, frozen=True, kw_only=True):
    """What a registry can do, and what the provider block says about it."""

    modes: bool = True
    """It has modes that can be set and read, of its own and of subjects."""
    subject_none: bool = True
    """A subject can have the level NONE. False: the registry says NONE also for a subject without a
    level of its own."""
    listing_limit: int | None = None
    """A listing of subjects ends after so many, without a word; None if it has all."""
    login: bool = False
    """The session logs in, so that a listing can lack what its user must not see."""
    hard_delete: bool = False
    """Deleted schemas are also removed for good (`hard_delete` of the provider block)."""
    deleted_refer: bool = False
    """What is deleted softly still refers to others, so that those cannot be deleted."""
    checks_references: bool = True
    """It can be asked whether a schema with references is compatible. False: it says of each that
    it is no schema, and judges it only when it is registered."""
    all_versions: bool = False
    """Subjects are read with all their versions (`all_versions` of the provider block)."""
    contracts: bool = True
    """It keeps metadata and rules of schemas, and has the settings about them."""
    properties: bool = True
    """It keeps properties of metadata, also if it has no more of data contracts."""


NUMBERS = "schema_registry_numbers"
"""Subject -> `versions`, the numbers that it has, sorted, and `next`, the number that its next
version gets; None if the registry does not say which ones were deleted."""

VERSION_USERS = "schema_registry_version_users"
"""Key of a version -> its `schema_id`; `next`, see `NUMBERS`; other `subjects` that refer to it,
and how many schemas more do (`unnamed`); and `shared_with`, the versions with the same id that are
not deleted, as text: `version 2 of orders-value`."""


def name_listing(kind: str, questions: Sequence[Any]) -> str:
    """The name of the listing that answers these questions: next versions, or names of subjects."""
    return f"{kind} {msgspec.json.encode(questions).decode()}"


def parse_listing(name: str) -> tuple[str, str]:
    """The kind of a listing, and its questions as JSON; no questions for an ordinary kind."""
    kind, _, questions = name.partition(" ")
    return kind, questions


def read_subjects(questions: str) -> list[str]:
    """The questions of a listing about subjects."""
    return msgspec.json.decode(questions, type=list[str])


def collect_answers(sweeps: Mapping[str, Sweep], kind: str) -> Mapping[str, FrozenMap]:
    """Subject -> the answer; none for what the registry did not say."""
    return {
        item.identity.key: item.attributes
        for name, sweep in sweeps.items()
        if parse_listing(name)[0] == kind
        for item in sweep.items
    }


MAX_ITEMS = 100
"""Steps of a batch. Each is a request of its own; a batch is what is journalled at once."""
MAX_KILOBYTES = 4096

# Levels and modes that let more in come before the schemas, modes that let less in after them; a
# level cannot be set in a mode that refuses writes. Schemas that bring their ids need mode IMPORT,
# and others need another mode. What a subject has of both is removed before the subject, with which
# it would be gone.
OPEN_MODE = Request("SetMode", 1, 8, MAX_ITEMS, MAX_ITEMS)
END_CLOSED_MODE = Request("DeleteMode", 1, 9, MAX_ITEMS, MAX_ITEMS)
SET_LEVEL = Request("SetCompatibility", 1, 10, MAX_ITEMS, MAX_ITEMS)
IMPORT = Request("ImportSchema", 1, 13, MAX_ITEMS, MAX_KILOBYTES)
LEAVE_IMPORT = Request("SetMode", 1, 16, MAX_ITEMS, MAX_ITEMS)
END_IMPORT = Request("DeleteMode", 1, 17, MAX_ITEMS, MAX_ITEMS)
REGISTER = Request("RegisterSchema", 1, 20, MAX_ITEMS, MAX_KILOBYTES)
CLOSE_MODE = Request("SetMode", 1, 40, MAX_ITEMS, MAX_ITEMS)
REMOVE_MODE = Request("DeleteMode", 2, 10, MAX_ITEMS, MAX_ITEMS)
REMOVE_LEVEL = Request("DeleteCompatibility", 2, 15, MAX_ITEMS, MAX_ITEMS)
DELETE = Request("DeleteSubject", 2, 20, MAX_ITEMS, MAX_ITEMS)
PURGE = Request("DeleteSubjectPermanently", 2, 25, MAX_ITEMS, MAX_ITEMS)
DELETE_VERSION = Request("DeleteVersion", 2, 30, MAX_ITEMS, MAX_ITEMS)
PURGE_VERSION = Request("DeleteVersionPermanently", 2, 35, MAX_ITEMS, MAX_ITEMS)

SILENT = frozenset({Action.ADOPT, Action.IMPORT, Action.FORGET, Action.NOOP, Action.REFRESH})
"""Actions that only change the state."""


def make_step(
    change: Change,
    number: int,
    request: Request,
    payload: Mapping[str, Value],
    paths: tuple[Path, ...],
    *,
    weight: int = 1,
    evidence: Evidence = Evidence.LOCAL,
    after: tuple[str, ...] = (),
    repeat: Repeat = Repeat.SAFE,
) -> Step:
    """One request of a change. number: its position among them, from 1; weight: kilobytes of a
    schema; evidence: what a dry run can prove; after: ids of steps that come first."""
    identity = change.identity
    return Step(
        id=f"{identity.instance}/{identity.kind}/{identity.key}#{number}",
        identity=identity,
        address=change.address,
        request=request,
        payload=FrozenMap(payload),
        weight=weight,
        after=after,
        # As a rule it says what shall be: sent twice, it changes nothing more.
        repeat=repeat,
        evidence=evidence,
        paths=paths,
    )


def list_paths(change: Change, *names: str) -> tuple[Path, ...]:
    """All paths of the change, or those of these attributes."""
    return tuple(item.path for item in change.paths if not names or item.path[0] in names)
