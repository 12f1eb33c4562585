"""What a new version of an Avro schema means: field by field, for readers and writers, at the level
of its subject.

The registry's own check decides (it comes in the dry run). This is what it will be about, so that
somebody who reads the plan sees who has to be updated first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Review, Risk, RiskKind
from kafkaform.core.resource import Depth, Facts, Identity, Sweep
from kafkaform.core.value import EMPTY

from .formats.avro import NotAvro, parse_avro
from .formats.avro_changes import describe_changes
from .formats.avro_resolution import Unreadable, find_unreadable
from .formats.avro_types import AvroType, open_schema
from .kinds import global_config, schema, subject_config
from .kinds.levels import INHERITED, PROMISES
from .reads import LEVEL

MAX_NOTES = 20
"""Differences of one schema that are shown one by one."""
_PATH = ("schema",)


def review_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The levels of the subjects that get a new version."""
    return {LEVEL: Depth.FULL} if any(map(_is_new_version, changes)) else {}


def review(changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts) -> Review:
    """The notes and risks of new versions."""
    levels = _find_levels(changes, sweeps)
    notes: dict[Identity, tuple[str, ...]] = {}
    risks: dict[Identity, tuple[Risk, ...]] = {}
    for change in filter(_is_new_version, changes):
        pair = _open_versions(change)
        if pair is None:
            continue
        level = levels.get(change.identity.key)
        notes[change.identity] = tuple(_list_notes(*pair, level))
        found = tuple(_list_risks(*pair, level))
        if found:
            risks[change.identity] = found
    return Review(notes=notes, risks=risks)


def _is_new_version(change: Change) -> bool:
    return (
        change.effective
        and change.action is Action.UPDATE
        and change.identity.kind == schema.KIND
        and any(item.path == _PATH for item in change.paths)
    )


def _find_levels(changes: Sequence[Change], sweeps: Mapping[str, Sweep]) -> Mapping[str, str]:
    """Subject -> the level that its new version is checked at. Levels of this plan are set before
    schemas are registered."""
    seen = sweeps[LEVEL].items if LEVEL in sweeps else ()
    levels = {item.identity.key: str(item.attributes["compatibility"]) for item in seen}
    whole = None
    for change in changes:
        if not change.effective:
            continue
        after = (change.after or EMPTY).get("compatibility")
        if change.identity.kind == global_config.KIND:
            whole = after or whole
        elif change.identity.kind == subject_config.KIND and after not in (None, INHERITED):
            levels[change.identity.key] = after
    # Which subjects inherit a level that changes is not known, so nothing is said about them.
    own = {c.identity.key for c in changes if c.identity.kind == subject_config.KIND}
    return {key: level for key, level in levels.items() if whole is None or key in own}


def _open_versions(change: Change) -> tuple[AvroType, AvroType] | None:
    """The old and the new schema; None if one of them is no Avro schema."""
    before, after = change.before or EMPTY, change.after or EMPTY
    if {before.get("format"), after.get("format")} != {"avro"}:
        return None
    try:
        return tuple(open_schema(parse_avro(str(one["schema"]))) for one in (before, after))  # type: ignore[return-value]  # two of them
    except NotAvro:
        return None


def _list_notes(before: AvroType, after: AvroType, level: str | None) -> Iterator[str]:
    found = describe_changes(before, after)
    yield from found[:MAX_NOTES]
    if len(found) > MAX_NOTES:
        yield f"and {len(found) - MAX_NOTES} more differences"
    backward, forward = find_unreadable(after, before), find_unreadable(before, after)
    if not backward and not forward:
        yield "old and new readers can read what both schemas write"
    if backward:
        yield f"readers with the new schema cannot read older records: {_name_cause(backward)}"
    if forward:
        yield f"readers with the old schema cannot read new records: {_name_cause(forward)}"
    promise = PROMISES.get(level or "")
    if promise is None or level is None:
        return
    if (backward and promise.backward) or (forward and promise.forward):
        yield f"level {level} does not allow that: the registry will refuse it"
    else:
        yield f"level {level}: {promise.advice}"


def _list_risks(before: AvroType, after: AvroType, level: str | None) -> Iterator[Risk]:
    """Readers that stop at a record, if nothing but their operators prevents it."""
    if level != "NONE":
        return
    if backward := find_unreadable(after, before):
        text = f"readers with the new schema stop at older records: {_name_cause(backward)}"
        yield Risk(RiskKind.AVAILABILITY, text, _PATH)
    if forward := find_unreadable(before, after):
        text = f"readers with the old schema stop at new records: {_name_cause(forward)}"
        yield Risk(RiskKind.AVAILABILITY, text, _PATH)


def _name_cause(found: Sequence[Unreadable]) -> str:
    first = found[0]
    cause = f"field {first.path} {first.text}" if first.path else f"it {first.text}"
    return cause if len(found) == 1 else f"{cause}, and {len(found) - 1} more"
