"""What the cluster of a vendor refuses or does differently: one row for each rule of a profile.

The tables are in `vendors`. None of these rules was tried on the real service; each has the public
text from which it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kafkaform.core.change import Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import make_sentence
from kafkaform.core.value import Value

from ..protocol.cluster_facts import KafkaFacts
from ..vendors import profile
from ..vendors.profile import (
    APACHE,
    Sends,
    Switches,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
    find_breaches,
    load_profile,
)
from ..vendors.profiles import PROFILES

OVERRIDE = f'If this cluster is another one, set profile = "{APACHE}" in the provider block.'
Arguments = Mapping[str, Any]

_USUAL: Mapping[str, Arguments] = {
    profile.TOPIC: {"name": "orders", "partitions": 6},
    profile.TOPIC_CONFIG: {"topic": "orders", "config": {"retention.ms": "3600000"}},
    profile.ACL: {
        "acl_principal": "User:orders",
        "acl_host": "*",
        "acl_operation": "Read",
        "acl_permission_type": "Allow",
        "resource_type": "Topic",
        "resource_name": "orders",
    },
    profile.QUOTA: {"user": "orders", "config": {"producer_byte_rate": 1048576}},
    profile.USER: {"username": "orders", "scram_mechanism": "SCRAM-SHA-256"},
    profile.BROKER_CONFIG: {"broker": "1", "config": {"log.cleaner.threads": "2"}},
    profile.CLUSTER_CONFIG: {"config": {"log.cleaner.threads": "2"}},
    profile.GROUP_CONFIG: {"group": "orders", "config": {"consumer.session.timeout.ms": "50000"}},
    profile.METRICS: {"name": "orders", "config": {"interval.ms": "60000"}},
    profile.LEADERS: {"topic": "orders"},
}
"""Resource type -> the arguments of a usual block."""


# ── examples ────────────────────────────────────────────────────────────────────────────


def _exemplify_writes(condition: Writes) -> Arguments:
    if ("replica_assignment",) in condition.paths:
        return {"replica_assignment": [[1, 2]]}
    return {"config": {"cleanup.policy": "compact"}}


def _exemplify_key(condition: WritesKey) -> Arguments:
    key = min(condition.never) if condition.never else "flush.messages"
    if condition.attribute == "config":
        return {"config": {key: _VALUES.get(key, "1")}}
    return {"user": None, "ip": "192.0.2.7", "config": {"connection_creation_rate": 10}}


def _exemplify_value(condition: WritesValue) -> Arguments:
    name, *key = condition.path
    numbers = (
        condition.low - 1 if condition.low is not None else None,
        condition.high + 1 if condition.high is not None else None,
        2 if condition.odd or condition.only == ("3",) else None,
    )
    number = next((number for number in numbers if number is not None), None)
    value = _WRONG.get(name) if number is None else str(number) if key else number
    return {name: {key[0]: value} if key else value}


_WRONG: Mapping[str, Value] = {
    "acl_principal": "Group:orders",
    "acl_host": "192.0.2.7",
    "resource_type": "Topic",
    "scram_mechanism": "SCRAM-SHA-256",
}
"""Attribute -> a value that no vendor with a rule about it accepts."""
_VALUES: Mapping[str, Value] = {"compression.type": "gzip", "request_percentage": 10}
"""Config -> a usual value, where 1 is none."""
_EXEMPLIFIERS: Mapping[type, Callable[[Any], Arguments]] = {
    Sends: lambda _: {},
    Writes: _exemplify_writes,
    WritesKey: _exemplify_key,
    WritesValue: _exemplify_value,
    Switches: lambda when: {when.path[0]: {when.path[1]: when.word}},
}
"""Form of condition -> the arguments that fulfil it."""


def _render_example(rule: VendorRule) -> str:
    """A block that breaks the rule."""
    kind = rule.kinds[0]
    if kind == profile.LEADERS:
        return "# kafkaform alter topic orders --elect-preferred"
    arguments = {**_USUAL[kind], **_EXEMPLIFIERS[type(rule.condition)](rule.condition)}
    lines = [f"  {name} = {_render(value)}" for name, value in arguments.items() if value]
    return "\n".join((f'resource "{kind}" "orders" {{', *lines, "}"))


def _render(value: Any) -> str:
    if isinstance(value, Mapping):
        items = ", ".join(f'"{key}" = {_render(item)}' for key, item in value.items())
        return f"{{ {items} }}"
    return f'"{value}"' if isinstance(value, str) else str(value)


# ── rules ───────────────────────────────────────────────────────────────────────────────


def _make_row(rule: VendorRule) -> Rule:
    source = rule.source
    blocks = rule.level is Level.BLOCK
    return Rule(
        rule.id,
        rule.title,
        rule.level,
        Harm.NONE,
        rule.kinds,
        Needs.PLAN if rule.per_cluster else Needs.FACTS,
        f"{source.title} ({source.edition}) says so: {source.url}. It was read on {source.read}, "
        "and not tried on the service.",
        _render_example(rule),
        " ".join(filter(None, (make_sentence(rule.advice), OVERRIDE if blocks else ""))),
        Block.IMPOSSIBLE if blocks else None,
    )


_RULES = {rule.id: rule for profile in PROFILES.values() for rule in profile.judging}
ROWS = {name: _make_row(rule) for name, rule in _RULES.items()}
"""Id -> row of the rules of all vendors."""


def _find_breaches(change: Change, facts: Facts, *, per_cluster: bool) -> Iterator[Finding]:
    name = KafkaFacts.of(facts).profile
    for rule, breach in find_breaches(load_profile(name), change) if name else ():
        if rule.per_cluster is per_cluster:
            text = f"{rule.sentence.replace('{found}', breach)} ({rule.source.url})"
            yield ROWS[rule.id].find(text)


def _judge(change: Change, facts: Facts) -> Iterator[Finding]:
    return _find_breaches(change, facts, per_cluster=False)


def _survey(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """What is told once for the cluster."""
    findings = {
        finding.rule: finding
        for change in scene.changes
        if change.effective
        for finding in _find_breaches(change, scene.facts, per_cluster=True)
    }
    return ((None, finding) for finding in findings.values())


JUDGES = (
    Judge(
        tuple(row for row in ROWS.values() if row.needs is Needs.FACTS),
        tuple(
            sorted(
                {kind for rule in _RULES.values() if not rule.per_cluster for kind in rule.kinds}
            )
        ),
        Needs.FACTS,
        _judge,
    ),
)
SURVEYS = (Survey(tuple(row for row in ROWS.values() if row.needs is Needs.PLAN), _survey),)
