"""What a plan spends of the controller mutation quota, and when it says so."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, RateLimit
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Fault, FaultClass, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.protocol.cluster_facts import MutationWindow
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.rules.quotas import Spending, compute_spending

from ....kit.kafka.changes import change, facts, topic
from ....kit.kafka.judgement import survey

WINDOW = MutationWindow(samples=11, seconds=1, assumed=False)
MINE: dict[str, str | None] = {"user": "admin"}
Entities = tuple[tuple[dict[str, str | None], dict[str, Decimal]], ...]


def created(*partitions: int | None) -> list[Change]:
    """A create for each number of partitions."""
    return [
        change(Action.CREATE, None, topic(f"t{number}", partitions=count))
        for number, count in enumerate(partitions)
    ]


def grown(before: int, after: int) -> Change:
    """An update from so many partitions to so many."""
    return change(
        Action.UPDATE, topic("grown", partitions=before), topic("grown", partitions=after)
    )


def deleted(partitions: int | None) -> Change:
    """A delete of a topic."""
    return change(Action.DELETE, topic("gone", partitions=partitions), None)


def limit(rate: Any, entity: dict[str, str | None] | None = None) -> Entities:
    """One entity with this mutation rate."""
    return ((entity or MINE, {"controller_mutation_rate": Decimal(rate)}),)


def known(**values: Any) -> Facts:
    """Facts of our own session."""
    usual = {"client_id": "kafkaform", "mutation_window": WINDOW}
    return facts(**{**usual, **values})


PROTECTED = Finding(
    "protected", Level.BLOCK, Harm.NONE, "it stays", fix="unprotect it", block=Block.PROTECTED
)


def list_quotas(entities: Entities) -> dict[str, Sweep]:
    """The listings of a plan under these quotas."""
    sweep = quotas.make_quota_sweep("kafka", Depth.FULL, entities)
    names = Sweep("kafka_topic", Depth.NAMES, (), Coverage(CoverageKind.VISIBLE_ONLY))
    return {quotas.KIND: sweep, "kafka_topic": names}


def limit_of(changes: list[Change], entities: Entities) -> RateLimit | None:
    """How many of these changes the controller takes under these quotas."""
    return PROVIDER.find_limit(changes, list_quotas(entities), known())


def find(changes: list[Change], entities: Entities, of: Facts | None = None) -> list[Finding]:
    """What the rule finds about a plan under these quotas."""
    pairs = survey(changes, list_quotas(entities), of or known())
    return [finding for _, finding in pairs if finding.rule == "quota-mutations-spent"]


def warned(changes: list[Change], entities: Entities, of: Facts | None = None) -> str:
    """The sentence about a plan under these quotas, or nothing."""
    findings = find(changes, entities, of)
    assert len(findings) <= 1
    return "".join(finding.text for finding in findings)


# ── what is spent ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "spent"),
    [
        (created(7)[0], Spending(7, 7)),
        (created(None)[0], Spending(1, 1, is_exact=False)),
        (grown(3, 8), Spending(5, 5)),
        (grown(3, 3), None),
        (deleted(9), Spending(0, 9)),
        (deleted(None), Spending(0, 1, is_exact=False)),
        (change(Action.ADOPT, topic(), topic()), None),
        (change(Action.FORGET, topic(), None), None),
        (change(Action.DELETE, {"topic": "x"}, None, kind="kafka_topic_config"), None),
        (replace(deleted(9), findings=(PROTECTED,)), None),
    ],
)
def test_partitions_are_counted_as_the_controller_counts(
    given: Change, spent: Spending | None
) -> None:
    """Each partition created or added is spent twice, in the dry run too; deletes have none."""
    assert compute_spending(given) == spent


def test_only_plans_that_spend_ask_for_the_quotas() -> None:
    """Configs and bookkeeping are free, so they cost no request either."""
    config = change(Action.UPDATE, topic(config={}), topic(config={"retention.ms": "1"}))
    assert PROVIDER.review_needs([config]) == {}
    for spent in (created(1)[0], grown(1, 2), deleted(1)):
        assert PROVIDER.review_needs([config, spent])[quotas.KIND] is Depth.FULL


def test_the_limit_is_told_with_what_each_object_costs() -> None:
    """An apply sends as much as the controller will take. All three requests share one bucket."""
    changes = [*created(7), grown(3, 8), deleted(9)]
    assert limit_of(changes, limit(20)) == RateLimit(
        frozenset({"CreateTopics", "CreatePartitions", "DeleteTopics"}),
        20.0,
        220.0,
        {each.identity: cost for each, cost in zip(changes, (7, 5, 9), strict=True)},
    )
    assert limit_of(changes, ()) is None
    assert limit_of(changes, limit("Infinity")) is None
    config = change(Action.UPDATE, topic(config={}), topic(config={"retention.ms": "1"}))
    assert limit_of([config], limit(20)) is None


# ── when it is said ─────────────────────────────────────────────────────────────────────


def test_over_half_of_what_goes_through_at_once() -> None:
    """11 s of 100 a second are 1,100: up to 550 mutations nothing is said."""
    assert warned(created(275), limit(100)) == ""
    text = warned(created(276), limit(100))
    assert text == (
        "the dry run and the apply spend 552 controller mutations, and controller_mutation_rate = "
        "100 of user admin lets 1,100 through at once: mutations of any client of user admin in "
        "the last 11 s count too, so the cluster can delay the dry run and the apply"
    )
    (finding,) = find(created(276), limit(100))
    assert finding.figures == FrozenMap(mutations=552, burst=1100, seconds=0)
    assert "Ask for a higher controller_mutation_rate" in finding.fix


def test_the_window_of_the_cluster_counts() -> None:
    """A longer window lets more through; where it is not told, Kafka's default is named so."""
    longer = known(mutation_window=MutationWindow(11, 10, assumed=False))
    assert warned(created(2_000), limit(100), longer) == ""
    guessed = known(mutation_window=MutationWindow(assumed=True))
    assert "if the window is Kafka's default" in warned(created(500), limit(100), guessed)
    assert "default" not in warned(created(500), limit(100))


def test_a_wait_is_told_with_its_length() -> None:
    """The last item passes whatever it spends; the rest must be filled in again first."""
    text = warned([*created(50, 50), deleted(2_000)], limit(10))
    assert "spend 2,200 controller mutations" in text
    assert "delays the apply by up to about 4 min, even if nobody else spends any" in text


def test_one_large_item_does_not_wait_for_itself() -> None:
    """A single create over the whole burst passes its dry run and waits for what that spent."""
    assert "by up to about 9 s" in warned(created(2_000), limit(100))


def test_a_dry_run_that_has_to_wait_is_told() -> None:
    """A dry run spends too: what it spends over the burst is waited for before anything is
    sent."""
    text = warned(created(*[100] * 20), limit(100))
    assert "delays the dry run and the apply by up to about 28 s" in text
    assert "delays the apply" in warned(created(*[100] * 12), limit(100))


def test_unknown_partitions_are_said_to_be_unknown() -> None:
    """Without the broker's default the number is a lower bound."""
    assert "spend at least 6 controller" in warned(created(2, None), limit("0.1"))


def test_what_is_blocked_spends_nothing() -> None:
    """What is not sent is not counted."""
    stays = replace(deleted(900), findings=(PROTECTED,))
    assert warned([stays], limit(100)) == ""
    assert warned([deleted(900)], limit(100))


# ── whose quota it is ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("entity", "whose", "sharers"),
    [
        (
            {"user": "admin", "client-id": "kafkaform"},
            "user admin, client-id kafkaform",
            "user admin with client-id kafkaform",
        ),
        ({"user": None}, "default user", "any client of user admin"),
        ({"client-id": None}, "default client-id", "anybody with client-id kafkaform"),
    ],
)
def test_the_entity_and_who_shares_it_are_named(
    entity: dict[str, str | None], whose: str, sharers: str
) -> None:
    """A user's limit is shared by its clients, a client id's by all users."""
    text = warned(created(500), limit(100, entity))
    assert f"= 100 of {whose} lets" in text
    assert f"mutations of {sharers} in" in text


@pytest.mark.parametrize("entity", [{"user": "ci"}, {"client-id": "other"}, {"ip": None}])
def test_quotas_of_others_are_not_ours(entity: dict[str, str | None]) -> None:
    """The principal and the client id of our own requests decide."""
    assert warned(created(9_000), limit(1, entity)) == ""


@pytest.mark.parametrize("rate", ["NaN", "Infinity"])
def test_limits_that_never_bite_are_none(rate: str) -> None:
    """The cluster stores such values and never throttles by them."""
    assert warned(created(9_000), limit(rate)) == ""


def test_a_callback_decides_instead_of_the_levels() -> None:
    """With client.quota.callback.class nobody here knows what applies."""
    assert warned(created(9_000), limit(1), known(quota_callback="com.example.Callback")) == ""


def test_an_unknown_principal_has_no_known_quota() -> None:
    """A certificate's name is the broker's to know; without a login everybody is ANONYMOUS."""
    tls = replace(known(security_protocol="SSL"), principal=None)
    plain = replace(known(security_protocol="PLAINTEXT"), principal=None)
    assert warned(created(9_000), limit(1, {"user": None}), tls) == ""
    assert warned(created(9_000), limit(1, {"user": "ANONYMOUS"}), plain)


def test_quotas_that_cannot_be_seen_are_no_fault() -> None:
    """A refused listing is neither a warning nor a failure."""
    fault = Fault("CLUSTER_AUTHORIZATION_FAILED", "missing", FaultClass.PERMISSION)
    sweep = Sweep(quotas.KIND, Depth.FULL, (), Coverage(CoverageKind.FAILED, fault))
    grows = grown(1, 9_000)
    assert PROVIDER.find_limit([grows], {quotas.KIND: sweep}, known()) is None
    assert survey([grows], {quotas.KIND: sweep}, known()) == []
