"""Changes of config objects, made the way the planner makes them."""

from __future__ import annotations

from typing import Any

from kafkaform.core.change import Action, Change, Ownership
from kafkaform.core.finding import Level
from kafkaform.core.resource import Facts, Identity, Observed
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, freeze
from kafkaform.plan.diff import compare
from kafkaform_kafka.provider import TYPES

from .changes import FACTS
from .judgement import judge

PASSWORD = SecretRef("env", "PASSWORD")


def declared(kind: str, **given: Any) -> FrozenMap:
    """A block's attributes, None for what was left out."""
    names = (a.name for a in TYPES[kind].schema.attributes.values() if not a.computed)
    return FrozenMap({**dict.fromkeys(names), "config_mode": "authoritative", **_frozen(given)})


def planned(
    kind: str,
    wish: FrozenMap | None,
    live: dict[str, Any] | None = None,
    *,
    facts: Facts = FACTS,
    version: tuple[str | None, str | None] = (None, None),
    adopts: bool = False,
    fallbacks: FrozenMap = EMPTY,
) -> Change:
    """The change from what is live to what is wished; version: of secrets, before and after."""
    known = TYPES[kind]
    before = None if live is None else known.canonical(FrozenMap(_frozen(live)), facts)
    key = known.key(wish if wish is not None else before or EMPTY)
    identity = Identity("kafka", kind, key)
    seen = None if before is None else Observed(identity, before)
    after = None if wish is None else known.target(wish, seen, facts, adopts)
    action = Action.CREATE if before is None else Action.UPDATE if wish else Action.DELETE
    return Change(
        identity,
        f"{kind}.x",
        action,
        before,
        after,
        compare(before, after, schema=known.schema, fallbacks=fallbacks),
        adopts=adopts,
        row_before=Ownership(secret_version=version[0]),
        row_after=Ownership(secret_version=version[1]),
    )


def payloads(change: Change, facts: Facts = FACTS) -> list[dict[str, Any]]:
    """What the change sends."""
    return [dict(step.payload) for step in TYPES[change.identity.kind].steps(change, facts)]


def faults(change: Change, facts: Facts = FACTS) -> list[tuple[str, str]]:
    """What stops the change: sentence and advice."""
    return _list_findings(change, facts, Level.BLOCK)


def warnings(change: Change, facts: Facts = FACTS) -> list[tuple[str, str]]:
    """What should be read before the change is approved."""
    return _list_findings(change, facts, Level.CAUTION)


def _list_findings(change: Change, facts: Facts, level: Level) -> list[tuple[str, str]]:
    findings = judge(change, facts)
    return [(finding.text, finding.fix) for finding in findings if finding.level is level]


def _frozen(given: dict[str, Any]) -> dict[str, Any]:
    return {name: freeze(value) for name, value in given.items()}
