"""Rules of compatibility levels and modes, of one subject and of the whole registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import render_count
from kafkaform.core.value import EMPTY, FrozenMap

from ..kinds import schema
from ..kinds.registry import RegistryFacts
from ..kinds.subject_settings import (
    INHERITED,
    PROMISES,
    REGISTRY_CONFIG,
    SETTINGS,
    SUBJECT_CONFIG,
    TRANSITIVE,
    UNSET,
)
from .schemas import PROOFS

TYPES = (SUBJECT_CONFIG, REGISTRY_CONFIG)
LEVEL_PATH = ("compatibility",)

NOTHING_SET = Rule(
    "schema-config-empty",
    "A block of levels and modes sets nothing",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "The object exists only as far as the subject or the registry has a level or a mode of its "
    "own, so such a block declares nothing.",
    'schema_registry_subject_config "orders" { subject = "orders-value" }',
    "Set compatibility or mode, or remove the block.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_a_level_of_a_subject_can_end",
)
NO_MODES = Rule(
    "schema-mode-unsupported",
    "The registry has no modes that can be set",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.FACTS,
    "Apicurio 2 answers requests about modes with `Operation not supported` (404). Apicurio 3 and "
    "Karapace show the registry's mode for each subject (getSubjectMode of `ModeResourceImpl` and "
    "get_subject_mode of `controller.py`), and Karapace has no request that sets one.",
    'mode = "READONLY"   # with Apicurio or Karapace',
    "Remove mode from the block.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_apicurio_has_no_modes_and_no_level_none_of_a_subject",
)
NO_SUBJECT_NONE = Rule(
    "schema-level-none-unsupported",
    "A subject cannot have the level NONE",
    Level.BLOCK,
    Harm.NONE,
    (SUBJECT_CONFIG,),
    Needs.FACTS,
    "Apicurio 2 takes NONE for a subject as the removal of its level, so that the registry's own "
    "takes effect. Both 2 and 3 say NONE for a subject without a level, so that nobody can see "
    "which of the two it is.",
    'compatibility = "NONE"   # of one subject, with Apicurio',
    "Set another level, or NONE for the whole registry.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_apicurio_has_no_modes_and_no_level_none_of_a_subject",
)
LOWERED = Rule(
    "schema-level-lowered",
    "A compatibility level promises less than before",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.PLAN,
    "What the level does not promise any more, the registry takes without a word, and readers find "
    "out at the first record that they cannot read.",
    'compatibility = "NONE"   # was "FULL"',
    "Change the level for one version only, and set it back afterwards.",
    proof=f"{PROOFS}test_a_lowered_level_takes_what_the_old_one_refuses",
)

LOST = Rule(
    "schema-level-lost",
    "A subject is deleted, and its level stays declared",
    Level.CAUTION,
    Harm.NONE,
    (schema.KIND,),
    Needs.PLAN,
    "Registries forget the level and the mode of a subject with the subject. After a soft deletion "
    "Apicurio keeps them, and Confluent's does since its pull request 3810 of 2025. Where they are "
    "gone, a schema that is registered under the name is checked at the registry's own level.",
    "removed { from = schema_registry_schema.order … }   # and its subject_config stays",
    "Remove the block of the level as well, or apply once more after the schema is back.",
    proof=f"{PROOFS}test_a_level_goes_with_its_subject",
)


# ── what a block or a registry lacks ────────────────────────────────────────────────────


def _judge_block(change: Change, _: Facts) -> Iterator[Finding]:
    after = change.after
    if after is None or change.action in (Action.DELETE, Action.FORGET):
        return
    further = any(after.get(name) for name in UNSET)
    if not further and all(after.get(name) in (None, INHERITED) for name in SETTINGS):
        whole = change.identity.kind == REGISTRY_CONFIG
        scope = "the registry" if whole else f"the subject {change.identity.key}"
        yield NOTHING_SET.find(f"no level and no mode is set for {scope}")


def _judge_facts(change: Change, facts: Facts) -> Iterator[Finding]:
    after = change.after
    if after is None or change.action in (Action.DELETE, Action.FORGET):
        return
    if after.get("mode") not in (None, INHERITED) and not RegistryFacts.of(facts).modes:
        yield NO_MODES.find("this registry has no modes that can be set", ("mode",))
    is_none = change.identity.kind == SUBJECT_CONFIG and after.get("compatibility") == "NONE"
    if is_none and not RegistryFacts.of(facts).subject_none:
        yield NO_SUBJECT_NONE.find(
            "Apicurio does not tell compatibility NONE of one subject from no level at all",
            LEVEL_PATH,
        )


# ── what a level does not promise any more ──────────────────────────────────────────────


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """How many subjects a level of the registry is about."""
    whole = any(change.identity.kind == REGISTRY_CONFIG for change in _list_changed(changes))
    return {schema.KIND: Depth.NAMES} if whole else {}


def _list_changed(changes: Sequence[Change]) -> list[Change]:
    """The changes of levels."""
    return [
        change
        for change in changes
        if change.identity.kind in TYPES
        and change.effective
        and any(item.path == LEVEL_PATH for item in change.paths)
        and change.action in (Action.CREATE, Action.UPDATE, Action.DELETE)
    ]


def _survey_levels(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    for change in _list_changed(scene.changes):
        before, after = change.before or EMPTY, change.after or EMPTY
        old, new = (str(side.get("compatibility") or INHERITED) for side in (before, after))
        losses = _list_losses(old, new)
        if not losses:
            continue
        whole = change.identity.kind == REGISTRY_CONFIG
        figures, scope = _count_subjects(scene) if whole else (EMPTY, "")
        name = "the registry" if whole else change.identity.key
        sides = " → ".join(
            ("the registry's own level" if level == INHERITED else level) for level in (old, new)
        )
        text = f"the level of {name} changes, {sides}{scope}: {'; '.join(losses)}"
        yield change.identity, LOWERED.find(text, LEVEL_PATH, figures=figures)


def _survey_lost_levels(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    gone = (Action.DELETE, Action.FORGET)
    owners = {
        change.identity.key: change
        for change in scene.changes
        if change.identity.kind == SUBJECT_CONFIG and change.action not in gone
    }
    for change in scene.changes:
        owner = owners.get(change.identity.key)
        deletes = change.identity.kind == schema.KIND and change.action is Action.DELETE
        if owner is not None and deletes and change.effective:
            purges = RegistryFacts.of(scene.facts).hard_delete
            verb, level = ("goes", None) if purges else ("can go", Level.NOTE)
            subject = change.identity.key
            text = f"the level of {subject} {verb} with it, and {owner.address} declares it"
            yield change.identity, LOST.find(text, level=level)


def _list_losses(old: str, new: str) -> list[str]:
    """What was promised at the old level and is not at the new one. A level that a subject inherits
    is not known here: only NONE takes something away from it for certain."""
    if new == INHERITED:
        return [] if old in (INHERITED, "NONE") else ["that level decides from now on"]
    if old == INHERITED:
        return ["the registry checks nothing any more"] if new == "NONE" else []
    if old not in PROMISES or new not in PROMISES:
        return []
    if new == "NONE" and old != "NONE":
        return ["the registry checks nothing any more"]
    losses = []
    if PROMISES[old].backward and not PROMISES[new].backward:
        losses.append("readers with a new schema may fail at older records")
    if PROMISES[old].forward and not PROMISES[new].forward:
        losses.append("readers with an older schema may fail at new records")
    if old in TRANSITIVE and new not in TRANSITIVE and not losses:
        losses.append("only the latest version is compared with a new one")
    return losses


def _count_subjects(scene: Scene) -> tuple[FrozenMap, str]:
    """How many subjects the registry has, as figures and as a part of a sentence."""
    sweep = scene.sweeps.get(schema.KIND)
    if sweep is None or sweep.coverage.kind is CoverageKind.FAILED:
        return EMPTY, " for every subject without its own"
    number = len(sweep.items)
    subjects = render_count(number, "subject")
    return FrozenMap(subjects=number), f" for those of {subjects} that have no level of their own"


JUDGES = (
    Judge((NOTHING_SET,), TYPES, Needs.BLOCK, _judge_block),
    Judge((NO_MODES, NO_SUBJECT_NONE), TYPES, Needs.FACTS, _judge_facts),
)
SURVEYS = (Survey((LOWERED,), _survey_levels), Survey((LOST,), _survey_lost_levels))
