"""Rules of quotas: what is no limit, whom a limit slows down, and whom it stops."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap, freeze
from kafkaform.plan.diff import compare
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.user import resource_type as users
from kafkaform_kafka.provider import PROVIDER

from ....kit.kafka.changes import FACTS, facts
from ....kit.kafka.judgement import find_rule, judge, name_rules, survey

PRODUCE, CONSUME, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
CONNECT, MUTATE = "connection_creation_rate", "controller_mutation_rate"
MIB = 1_048_576
Entity = dict[str, str | None]
CI: Entity = {"user": "ci"}


def quota(entity: Entity, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Change:
    """A change of the limits of an entity, as a plan makes it."""
    sides = [
        None if side is None else FrozenMap({"entity": FrozenMap(entity), "config": freeze(side)})
        for side in (before, after)
    ]
    action = Action.CREATE if before is None else Action.DELETE if after is None else Action.UPDATE
    identity = Identity("kafka", quotas.KIND, quotas.entity_key(entity))
    paths = compare(*sides, schema=quotas.TYPE.schema)
    return Change(identity, "kafka_quota.x", action, *sides, paths)


def block(config: dict[str, Any], **names: str) -> Change:
    """A block as `validate` judges it: its arguments, from nothing."""
    arguments = FrozenMap({**names, "config": FrozenMap(config)})
    identity = Identity("kafka", quotas.KIND, quotas.TYPE.key(arguments))
    return Change(identity, "kafka_quota.x", Action.CREATE, None, arguments)


def user(name: str, action: Action = Action.CREATE) -> Change:
    """A credential that this plan creates, or leaves as it is."""
    identity = Identity("kafka", users.KIND, users.identity_key(name, "SCRAM-SHA-256"))
    attributes = users.make_attributes(name, "SCRAM-SHA-256", 4096)
    before = None if action is Action.CREATE else attributes
    return Change(identity, "kafka_user_scram_credential.x", action, before, attributes)


def list_users(*names: str) -> dict[str, Sweep]:
    """A listing of these users."""
    items = tuple(Observed(user(name).identity, FrozenMap()) for name in names)
    sweep = Sweep(users.KIND, Depth.NAMES, items, Coverage(CoverageKind.COMPLETE))
    return {users.KIND: sweep}


def find_new(*changes: Change, sweeps: dict[str, Sweep] | None = None) -> list[Finding]:
    """What is found about limits where there were none."""
    pairs = survey(changes, sweeps)
    return [finding for _, finding in pairs if finding.rule == "quota-limit-new"]


# ── what is no limit ────────────────────────────────────────────────────────────────────

REFUSED: tuple[tuple[str, dict[str, Any], Entity, str], ...] = (
    ("quota-limit-unknown", {"producer_rate": 1}, CI, "producer_rate is not a quota; Did you mean"),
    ("quota-limit-unknown", {"speed": 1}, CI, "Use one of producer_byte_rate, consumer_byte_rate"),
    ("quota-limit-unknown", {"speed": 1}, {"ip": None}, "for an ip connection_creation_rate"),
    ("quota-limit-misplaced", {CONNECT: 1}, CI, "is a limit for an ip"),
    ("quota-limit-misplaced", {PRODUCE: 1}, {"ip": "192.0.2.7"}, "for users and client ids"),
    ("quota-limit-invalid", {PRODUCE: 0}, CI, "above 0; To remove the limit, remove producer_byte"),
    ("quota-limit-invalid", {PERCENT: Decimal("-0.5")}, CI, "above 0"),
    ("quota-limit-invalid", {PRODUCE: Decimal("9999.5")}, CI, "whole bytes/s"),
    ("quota-limit-invalid", {CONNECT: Decimal("0.5")}, {"ip": None}, "whole connections/s"),
    ("quota-limit-invalid", {CONNECT: 2**31}, {"ip": None}, "at most 2147483647"),
    ("quota-limit-invalid", {CONSUME: 2**63}, CI, "at most 9223372036854775807"),
    ("quota-limit-invalid", {MUTATE: Decimal("NaN")}, CI, "a limit must be a number above 0"),
    ("quota-empty", {}, CI, "config is empty; Set at least one limit"),
    ("quota-address-invalid", {CONNECT: 1}, {"ip": "300.1.1.1"}, "'300.1.1.1' is not an IP"),
    ("quota-address-invalid", {CONNECT: 1}, {"ip": "192.0.2.0/24"}, "a quota is for one address"),
)


@pytest.mark.parametrize(("rule", "config", "entity", "says"), REFUSED)
def test_what_no_broker_should_get(
    rule: str, config: dict[str, Any], entity: Entity, says: str
) -> None:
    """Blocked in the plan and in `validate`, with what to write instead."""
    change = quota(entity, None, config)
    for only_block in (True, False):
        (finding,) = judge(change, only_block=only_block)
        assert (finding.rule, finding.level) == (rule, Level.BLOCK)
        assert says in f"{finding.text}; {finding.fix}"


def test_what_fits_is_not_refused() -> None:
    """Fractions where the key has them, and the largest numbers."""
    most = {PRODUCE: 2**63 - 1, CONSUME: 1024, PERCENT: Decimal("0.01"), MUTATE: Decimal("1e9")}
    assert judge(quota({"user": "a", "client-id": None}, None, most)) == []
    assert judge(quota({"ip": None}, None, {CONNECT: 2**31 - 1})) == []
    assert judge(quota({"ip": "2001:db8::1"}, None, {CONNECT: 5})) == []
    assert judge(quota(CI, {PRODUCE: 1}, None)) == []


def test_a_block_is_judged_by_its_arguments() -> None:
    """`validate` knows no entity but the arguments that name it; a null leaves a limit alone."""
    assert name_rules(judge(block({CONNECT: 5}, user="ci"), Facts(""), only_block=True)) == [
        "quota-limit-misplaced"
    ]
    assert name_rules(judge(block({PRODUCE: None}, user="ci"), Facts(""), only_block=True)) == [
        "quota-empty"
    ]
    assert judge(block({CONNECT: 5}, ip="192.0.2.7"), Facts(""), only_block=True) == []


def test_a_host_name_is_a_caution() -> None:
    """It is looked up once, by each broker for itself."""
    (finding,) = judge(quota({"ip": "db.example.org"}, None, {CONNECT: 1}), only_block=True)
    assert (finding.rule, finding.level) == ("quota-host-name", Level.CAUTION)


# ── whom a limit slows down ─────────────────────────────────────────────────────────────

CUTS: tuple[tuple[str, Entity, str, int, int, str], ...] = (
    (
        "quota-limit-lowered",
        CI,
        PRODUCE,
        10 * MIB,
        MIB,
        "producers of user ci are slowed down to 1 MiB/s on each broker (10 MiB/s before)",
    ),
    (
        "quota-limit-cut",
        CI,
        CONSUME,
        11 * MIB,
        MIB,
        "consumers of user ci are slowed down to 1 MiB/s on each broker (11 MiB/s before)",
    ),
    (
        "quota-limit-lowered",
        {"user": None},
        PERCENT,
        100,
        50,
        "clients of every user without a quota of its own are slowed down to 50 % of one thread on "
        "each broker (100 % of one thread before)",
    ),
    (
        "quota-limit-lowered",
        {"user": "ci", "client-id": None},
        MUTATE,
        10,
        5,
        "admin clients of user ci with any other client id are slowed down to 5 partitions/s "
        "(10 partitions/s before)",
    ),
    (
        "quota-limit-cut",
        {"ip": "192.0.2.7"},
        CONNECT,
        100,
        1,
        "connections from 192.0.2.7 are slowed down to 1 connection/s on each broker "
        "(100 connections/s before)",
    ),
    (
        "quota-stops-clients",
        {"user": "ci", "client-id": "app"},
        PRODUCE,
        10 * MIB,
        1,
        "producers of user ci with client id app can hardly write: at 1 B/s, one batch of 16 KiB "
        "takes 4.55 h",
    ),
)


@pytest.mark.parametrize(("rule", "entity", "key", "before", "after", "text"), CUTS)
def test_a_lower_limit(
    rule: str, entity: Entity, key: str, before: int, after: int, text: str
) -> None:
    """Lower is a caution; less than a tenth, or a byte rate at which nothing works, is a danger. A
    higher limit is neither."""
    (finding,) = judge(quota(entity, {key: before}, {key: after}))
    assert (finding.rule, finding.text, finding.path) == (rule, text, ("config", key))
    grave = rule != "quota-limit-lowered"
    assert finding.level is (Level.DANGER if grave else Level.CAUTION)
    assert finding.harm is (Harm.AVAILABILITY if grave else Harm.THROUGHPUT)
    assert judge(quota(entity, {key: after}, {key: before})) == []
    assert judge(quota(entity, {key: after}, {key: after})) == []


def test_a_tiny_limit_is_found_without_a_cluster() -> None:
    """The unit was forgotten: 1 instead of 1 MiB/s."""
    (finding,) = judge(block({PRODUCE: 1}, user="ci"), Facts(""), only_block=True)
    assert (finding.rule, finding.level) == ("quota-stops-clients", Level.DANGER)
    assert judge(block({PRODUCE: 1024}, user="ci"), Facts(""), only_block=True) == []
    assert judge(block({MUTATE: 1}, user="ci"), Facts(""), only_block=True) == []


def test_a_limit_that_never_limited_is_none_before() -> None:
    """Brokers can have stored `Infinity` and `NaN`."""
    change = quota(CI, {PRODUCE: "Infinity"}, {PRODUCE: MIB})
    assert judge(change) == []
    (finding,) = find_new(change)
    assert finding.text == (
        "producers of user ci are slowed down to 1 MiB/s on each broker (no limit of its own "
        "before)"
    )


def test_a_new_limit_slows_those_down_who_have_clients() -> None:
    """A user who gets the first credential in the same plan has none yet; one with an older
    credential has, live or declared."""
    new = quota(CI, None, {PRODUCE: MIB})
    for changes in ([new], [new, user("other")], [new, user("ci", Action.NOOP)]):
        (finding,) = find_new(*changes)
        assert finding.level is Level.CAUTION and finding.harm is Harm.THROUGHPUT
    assert find_new(new, user("ci")) == []
    assert len(find_new(new, user("ci"), sweeps=list_users("ci"))) == 1
    assert find_new(quota(CI, {PRODUCE: MIB}, {PRODUCE: MIB // 2})) == []
    needs = PROVIDER.review_needs([new, user("ci")])
    assert needs[users.KIND] is Depth.NAMES


def test_a_name_that_matches_nobody_slows_nobody_down() -> None:
    """The name is wrong, and that is what is told."""
    for name in ("*", "<default>", "User:ci", "ci "):
        change = quota({"user": name}, None, {PRODUCE: 1, CONSUME: MIB})
        assert "quota-stops-clients" not in name_rules(judge(change))
        assert find_new(change) == []


def test_a_callback_of_the_cluster_is_told_once() -> None:
    """It alone decides about quotas, so those of the plan may mean nothing."""
    changes = [quota({"user": name}, None, {PRODUCE: MIB}) for name in "ab"]
    own, other = facts(quota_callback=None), facts(quota_callback="org.example.Tiers")
    assert not [f for _, f in survey(changes, facts=own) if f.rule == "quota-callback"]
    ((identity, finding),) = (
        pair for pair in survey(changes, facts=other) if pair[1].rule == "quota-callback"
    )
    assert identity is None
    assert "client.quota.callback.class = org.example.Tiers" in finding.text
    assert not [f for _, f in survey([], facts=other) if f.rule == "quota-callback"]


def test_rows_that_validate_asks_need_no_more_than_the_block() -> None:
    """What is compared with the live quota is not claimed of a block alone."""
    assert find_rule("quota-limit-cut").needs == "object"
    assert judge(block({PRODUCE: MIB}, user="ci"), FACTS, only_block=True) == []
