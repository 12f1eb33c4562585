"""Rules of single versions, which `alter schema` deletes and restores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Depth, Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import render_count
from kafkaform.core.value import EMPTY, FrozenMap

from ..kinds.registry import VERSION_USERS, collect_answers, name_listing
from ..kinds.version import DELETED, REGISTERED, VERSION, read_key
from .schemas import MAX_NAMES, PROOFS

TYPES = (VERSION,)

VERSION_DELETED = Rule(
    "schema-version-deleted",
    "A version of a subject is deleted softly",
    Level.CAUTION,
    Harm.REFUSED_WRITES,
    TYPES,
    Needs.OBJECT,
    "Serializers with auto.register.schemas=false look up the schema that they write with, which "
    "the subject then does not have (error 40403); without it, they register it again. Those with "
    "use.latest.version=true write with the version before. Records can still be read by the id.",
    "kafkaform alter schema orders-value --delete-version 3",
    "Stop the writers that use the version first.",
    proof=f"{PROOFS}test_a_version_is_deleted_and_restored",
)
VERSION_PURGED = Rule(
    "schema-version-purged",
    "A version of a subject is deleted permanently",
    Level.DANGER,
    Harm.DATA_LOSS,
    TYPES,
    Needs.SYSTEM,
    "Records contain the id of their schema. If no other version of any subject has the same id, "
    "the registry does not know it any more (error 40403), so that readers which have not cached "
    "the schema cannot decode them.",
    "kafkaform alter schema orders-value --delete-version 3 --permanent",
    "Delete softly (without --permanent) as long as a topic has records with the id.",
    proof=f"{PROOFS}test_a_version_is_deleted_permanently",
)
VERSION_REFERRED = Rule(
    "schema-version-referred",
    "Schemas of other subjects refer to a version that is deleted",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "Registries refuse to delete what others refer to (error 42206), because those could not be "
    "parsed without it.",
    'kafkaform alter schema money-value --delete-version 1   # and "orders-value" refers to it',
    "Give the subjects that refer to it a version that refers to another one, and delete their "
    "old versions first.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_a_version_that_others_refer_to_is_not_deleted",
)
VERSION_RESTORED = Rule(
    "schema-version-restored",
    "The schema of a deleted version becomes the newest one",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "No request brings back a version that was deleted softly. Its schema is registered again: "
    "with the next number and the same id, if it is compatible with the versions that there are.",
    "kafkaform alter schema orders-value --restore-version 3",
    proof=f"{PROOFS}test_a_version_is_deleted_and_restored",
)


def _deletes(change: Change) -> bool:
    after = change.after or EMPTY
    softly = change.action is Action.UPDATE and after.get("state") == DELETED
    return change.identity.kind == VERSION and (softly or change.action is Action.DELETE)


def _restores(change: Change) -> bool:
    is_update = change.identity.kind == VERSION and change.action is Action.UPDATE
    return is_update and (change.after or EMPTY).get("state") != DELETED


def _judge_version(change: Change, _: Facts) -> Iterator[Finding]:
    before = change.before or EMPTY
    if _deletes(change) and before.get("state") == REGISTERED:
        subject, number = read_key(change.identity.key)
        yield VERSION_DELETED.find(
            f"writers that look up the schema of version {number} do not find it in {subject} "
            "any more"
        )


def _survey_versions(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    answers = collect_answers(scene.sweeps, VERSION_USERS)
    for change in scene.changes:
        if (answer := answers.get(change.identity.key)) is None:
            continue
        subject, number = read_key(change.identity.key)
        if _restores(change) and answer["next"] is not None:
            text = f"the schema of version {number} becomes version {answer['next']} of {subject}"
            yield change.identity, VERSION_RESTORED.find(text, ("state",))
        if not _deletes(change):
            continue
        if finding := _find_users(f"version {number} of {subject}", answer):
            yield change.identity, finding
        if change.action is Action.DELETE:
            yield change.identity, _find_loss(f"version {number} of {subject}", answer)


def _find_users(title: str, answer: FrozenMap) -> Finding | None:
    """answer: see `VERSION_USERS`."""
    users, unnamed = answer["subjects"], answer["unnamed"]
    if users:
        surplus = len(users) - MAX_NAMES
        names = ", ".join(users[:MAX_NAMES]) + (f" and {surplus} more" if surplus > 0 else "")
        text = f"{names} {'refers' if len(users) == 1 else 'refer'} to {title}"
        return VERSION_REFERRED.find(text, figures=FrozenMap(subjects=users))
    if unnamed:
        verb = "refers" if unnamed == 1 else "refer"
        text = f"{render_count(unnamed, 'schema')} of other subjects {verb} to {title}"
        # They can be deleted themselves: then Apicurio names no subject, and lets the version go.
        return VERSION_REFERRED.find(text, figures=FrozenMap(schemas=unnamed), level=Level.CAUTION)
    return None


def _find_loss(title: str, answer: FrozenMap) -> Finding:
    id, versions = answer["schema_id"], answer["shared_with"]
    if versions:
        text = f"{title} is deleted permanently; {', '.join(versions)} still has its id {id}"
        return VERSION_PURGED.find(text, level=Level.NOTE)
    return VERSION_PURGED.find(
        f"{title} is deleted permanently: records with the id {id} cannot be read by clients that "
        "have not cached the schema",
        figures=FrozenMap(schema_id=id),
    )


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """Who else uses versions that are changed, and which number comes next."""
    keys = sorted(
        change.identity.key for change in changes if _deletes(change) or _restores(change)
    )
    return {name_listing(VERSION_USERS, keys): Depth.FULL} if keys else {}


JUDGES = (Judge((VERSION_DELETED,), TYPES, Needs.OBJECT, _judge_version),)
SURVEYS = (Survey((VERSION_PURGED, VERSION_REFERRED, VERSION_RESTORED), _survey_versions),)
