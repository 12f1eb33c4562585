"""Quotas: which entity a block names, what is refused, what is sent, what a broker makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from kafkaform.core.change import Action, Batch, Change, OutcomeStatus
from kafkaform.core.resource import Absent, CoverageKind, Depth, Hidden, Identity, Observed, Reading
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import EMPTY, FrozenMap, freeze
from kafkaform.plan.diff import compare
from kafkaform_kafka.kinds.quota import resource_type as quota_filter
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.session import KafkaSession

from ....kit.kafka.changes import FACTS
from ....kit.kafka.judgement import judge
from ....kit.kafka.sessions import eventually

PRODUCE, CONSUME, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
CONNECT, MUTATE = "connection_creation_rate", "controller_mutation_rate"
Entity = dict[str, str | None]


def declared(config: dict[str, Any] | None = None, **names: str) -> FrozenMap:
    """What a block says, with None for what it leaves out."""
    left_out = dict.fromkeys(("entity_type", "entity_name", "user", "client_id", "ip"))
    given = {**left_out, **names, "config": config}
    return FrozenMap({key: freeze(value) for key, value in given.items()})


def seen(entity: Entity, config: dict[str, Any]) -> Observed:
    values = {key: Decimal(str(value)) for key, value in config.items()}
    return quotas.observe_quota("kafka", entity, values)


def changed(block: FrozenMap, live: Observed | None, *, keep: bool = False) -> Change:
    """The change that a plan makes of this block."""
    after = quotas.TYPE.target(block, live, FACTS, keep)
    before = live.attributes if live else None
    paths = compare(before, after, schema=quotas.TYPE.schema)
    action = Action.UPDATE if live else Action.CREATE
    identity = Identity("kafka", quotas.KIND, quotas.TYPE.key(block))
    return Change(identity, "kafka_quota.x", action, before, after, paths)


def gone(live: Observed) -> Change:
    paths = compare(live.attributes, None, schema=quotas.TYPE.schema)
    return Change(live.identity, "kafka_quota.x", Action.DELETE, live.attributes, None, paths)


# ── entities ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("block", "key"),
    [
        (declared(entity_type="user"), "user"),
        (declared(entity_type="user", entity_name="ci"), "user=ci"),
        (declared(entity_type="user", entity_name="default"), "user=default"),
        (declared(entity_type="client-id", entity_name="a=b"), "client-id=a=b"),
        (declared(user="default"), "user"),
        (declared(user="ci", client_id="app|1"), r"user=ci|client-id=app\|1"),
        (declared(user="ci", client_id="default"), "user=ci|client-id"),
        (declared(user="default", client_id="default"), "user|client-id"),
        (declared(client_id="user"), "client-id=user"),
        (declared(ip="2001:db8::1"), "ip=2001:db8::1"),
        (declared(ip="default"), "ip"),
    ],
)
def test_every_entity_has_a_key_of_its_own(block: FrozenMap, key: str) -> None:
    """All eight levels and addresses; a key leads back to its entity, also as an import id."""
    assert quotas.TYPE.key(block) == key
    assert quotas.entity_key(quotas.parse_entity_key(key)) == key
    assert quotas.TYPE.import_key(key) == key


@pytest.mark.parametrize("block", [declared(), declared(entity_name="ci"), declared(user="")])
def test_a_block_that_names_no_entity_is_refused(block: FrozenMap) -> None:
    """An empty name is no way to say default."""
    with pytest.raises(ValueError, match=r"entity|user"):
        quotas.TYPE.key(block)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ci|user", "user=ci"),
        ("a|b|client-id", r"client-id=a\|b"),
        ("entity-default|user", "user"),
        ("entity-default|ip", "ip"),
        ("192.0.2.7|ip", "ip=192.0.2.7"),
    ],
)
def test_import_ids_of_the_other_provider(text: str, key: str) -> None:
    """NAME|TYPE, and entity-default|TYPE."""
    assert quotas.TYPE.import_key(text) == key


@pytest.mark.parametrize("text", ["", "ci", "ci|group", "|user", "user=", "ip=1.2.3.4|user=ci"])
def test_import_ids_that_name_nothing(text: str) -> None:
    """The message tells both forms."""
    with pytest.raises(ValueError, match=r"user=NAME.*entity-default\|TYPE"):
        quotas.TYPE.import_key(text)


# ── what is refused ─────────────────────────────────────────────────────────────────────


def test_the_schema_refuses_with_the_sentences_of_the_rules() -> None:
    """A limit that no entity can have, and an address that is none, with file and line."""
    refuses = quotas.TYPE.schema.attributes["config"].refuses
    assert refuses is not None
    assert [text for text, _ in refuses(FrozenMap({"speed": 1, PRODUCE: 0, CONNECT: 5}))] == [
        "speed is not a quota",
        "producer_byte_rate = 0: a limit must be a number above 0",
    ]
    address = quotas.TYPE.schema.attributes["ip"].refuses
    assert address is not None
    assert [text for text, _ in address("300.1.1.1")] == ["'300.1.1.1' is not an IP address"]
    assert not [*address("192.0.2.7"), *address("db.example.org"), *address("2001:db8::1")]


# ── what is planned and sent ────────────────────────────────────────────────────────────


def test_config_is_the_whole_truth() -> None:
    """A live key that is not declared goes, a null leaves its key alone."""
    live = seen({"user": "a"}, {PRODUCE: 5, CONSUME: 6, PERCENT: 7})
    change = changed(declared({PRODUCE: 9, CONSUME: None}, user="a"), live)
    assert {(p.path[1], p.before, p.after) for p in change.paths} == {
        (PRODUCE, 5, 9),
        (PERCENT, 7, None),
    }
    (step,) = quotas.TYPE.steps(change, FACTS)
    assert step.payload == FrozenMap(
        entity=FrozenMap(user="a"), set=FrozenMap({PRODUCE: 9}), remove=(PERCENT,)
    )
    assert (step.request.part, step.request.phase) == (1, 40)
    kept = changed(declared({PRODUCE: 9}, user="a"), live, keep=True)
    assert [p.path[1] for p in kept.paths] == [PRODUCE]


def test_what_comes_back_almost_as_it_was_sent_is_no_difference() -> None:
    """A value travels as a binary fraction."""
    block = declared({PERCENT: Decimal("33.3"), PRODUCE: 10**18}, user="a")
    near = {PERCENT: Decimal("33.30000000000000071"), PRODUCE: Decimal(10**18 + 100)}
    assert changed(block, seen({"user": "a"}, near)).paths == ()
    far = {**near, PERCENT: Decimal("33.3001")}
    assert len(changed(block, seen({"user": "a"}, far)).paths) == 1


def test_a_limit_that_is_no_number_can_be_planned_away() -> None:
    """Somebody stored NaN: it is shown as text, and removed like any other key."""
    live = quotas.observe_quota("kafka", {"user": "a"}, {MUTATE: float("nan"), PRODUCE: 5.0})
    change = changed(declared({PRODUCE: 5}, user="a"), live)
    assert [(p.path[1], p.before) for p in change.paths] == [(MUTATE, "NaN")]
    (step,) = quotas.TYPE.steps(change, FACTS)
    assert step.payload["remove"] == (MUTATE,)


def test_a_delete_names_every_key() -> None:
    """In part 2, by removal and never by a value."""
    change = gone(seen({"ip": None}, {CONNECT: 3}))
    (step,) = quotas.TYPE.steps(change, FACTS)
    assert step.payload == FrozenMap(entity=FrozenMap({"ip": None}), set=EMPTY, remove=(CONNECT,))
    assert (step.request.part, step.request.phase) == (2, 20)


# ── the data source ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ({}, ["client-id=app", "ip=192.0.2.7", "user", "user=ci", "user=ci|client-id=app"]),
        ({"user": "ci"}, ["user=ci", "user=ci|client-id=app"]),
        ({"user": "default"}, ["user"]),
        ({"client_id": "app"}, ["client-id=app", "user=ci|client-id=app"]),
        ({"user": "ci", "client_id": "app"}, ["user=ci|client-id=app"]),
        ({"entity_type": "user"}, ["user", "user=ci", "user=ci|client-id=app"]),
        ({"entity_type": "ip", "entity_name": "192.0.2.7"}, ["ip=192.0.2.7"]),
        ({"entity_type": "user", "entity_name": "default"}, []),
    ],
)
def test_a_data_source_answers_with_what_fits(arguments: dict[str, str], ids: list[str]) -> None:
    """Every argument that is given must fit; entity_name is taken as it is."""
    entities: tuple[Entity, ...] = (
        {"client-id": "app"},
        {"ip": "192.0.2.7"},
        {"user": None},
        {"user": "ci"},
        {"user": "ci", "client-id": "app"},
    )
    found = [
        quotas.entity_key(e)
        for e in entities
        if quota_filter.fits_arguments(e, FrozenMap(arguments))
    ]
    assert found == ids


def test_the_schema_has_one_form_of_entity_at_a_time() -> None:
    """The other forms exclude each other in pairs."""
    schema: ObjectSchema = quotas.TYPE.schema
    assert ("ip", "user") in schema.conflicts and ("entity_type", "client_id") in schema.conflicts


# ── a real broker ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def lifted(admin: KafkaSession, prefix: str) -> Iterator[str]:
    """A name whose quotas are gone afterwards."""
    yield prefix
    sweep = admin.sweep(quotas.KIND, Depth.FULL)
    send(admin, *(gone(item) for item in sweep.items if prefix in item.identity.key))


def send(session: KafkaSession, *changes: Change, dry: bool = False) -> list[str]:
    """Send the changes in one request a part; per step what came of it: "" or a fault's code."""
    steps = [step for item in changes for step in quotas.TYPE.steps(item, session.facts)]
    if not steps:
        return []
    batch = Batch("b", "kafka", steps[0].request, tuple(steps))
    if dry:
        verdicts = session.preflight(batch)
        assert {verdict.evidence for verdict in verdicts} == {"remote"}
        return [v.fault.code if v.fault else "" for v in verdicts]
    outcomes = session.apply(batch, {})
    assert all((o.fault is None) == (o.status is OutcomeStatus.APPLIED) for o in outcomes)
    return [o.fault.code if o.fault else "" for o in outcomes]


def read(session: KafkaSession, key: str, node: str | None = None) -> Reading:
    identity = Identity("kafka", quotas.KIND, key)
    return session.read([identity], at=node)[identity]


def test_quotas_of_all_levels_are_set_and_read_back(admin: KafkaSession, lifted: str) -> None:
    """What was declared is what is there afterwards, at every broker, to the last digit."""
    blocks = [
        declared({PRODUCE: 2**40, PERCENT: Decimal("12.5")}, user=lifted, client_id="app"),
        declared({CONSUME: 2**52}, user=lifted, client_id="default"),
        declared({MUTATE: Decimal("0.1"), PRODUCE: 1}, user=lifted),
        declared({PERCENT: 300}, user="default", client_id=lifted),
        declared({CONSUME: 7}, entity_type="client-id", entity_name=f"{lifted}|x=y"),
    ]
    changes = [changed(block, None) for block in blocks]
    assert send(admin, *changes, dry=True) == [""] * 5
    assert all(isinstance(read(admin, c.identity.key), Absent) for c in changes)
    assert send(admin, *changes) == [""] * 5
    for change, block in zip(changes, blocks, strict=True):
        for node in (None, *admin.facts.nodes):
            live = eventually(
                lambda key=change.identity.key, at=node: read(admin, key, at),
                lambda reading: isinstance(reading, Observed),
            )
            assert isinstance(live, Observed) and live.attributes == change.after
            assert changed(block, live).paths == ()


def test_removals_are_explicit(admin: KafkaSession, lifted: str) -> None:
    """A key goes, the entity stays; with its last key it is gone."""
    key = f"user={lifted}"
    send(admin, changed(declared({PRODUCE: 5, CONSUME: 6}, user=lifted), None))
    live = eventually(lambda: read(admin, key), lambda reading: isinstance(reading, Observed))
    assert isinstance(live, Observed)
    send(admin, changed(declared({CONSUME: 6}, user=lifted), live))
    left = eventually(lambda: read(admin, key), lambda reading: reading != live)
    assert isinstance(left, Observed) and left.attributes["config"] == FrozenMap({CONSUME: 6})
    assert send(admin, gone(left)) == [""]
    eventually(lambda: read(admin, key), lambda reading: isinstance(reading, Absent))
    assert send(admin, gone(left)) == [""], "removing what is gone is no failure"


def test_the_broker_refuses_what_the_check_refuses(admin: KafkaSession, lifted: str) -> None:
    """Each entity has its own answer, in the dry run and when it is sent."""
    wrong: list[dict[str, Any]] = [
        {"speed": 1},
        {CONNECT: 1},
        {PRODUCE: 0},
        {PRODUCE: Decimal("1.5")},
        {CONSUME: 2**64},
    ]
    blocks = [declared(c, user=f"{lifted}{n}") for n, c in enumerate(wrong)]
    assert all(judge(changed(block, None)) for block in blocks)
    fine = changed(declared({PRODUCE: 5}, user=lifted), None)
    changes = [*(changed(block, None) for block in blocks), fine]
    for dry in (True, False):
        answers = send(admin, *changes, dry=dry)
        assert answers[-1] == "" and set(answers[:-1]) == {"INVALID_REQUEST"}
    eventually(lambda: read(admin, f"user={lifted}"), lambda seen: isinstance(seen, Observed))


def test_without_rights_quotas_are_hidden(ci: KafkaSession, prefix: str) -> None:
    """With the right's name; nothing is taken for absent, nothing is done."""
    key = f"user={prefix}"
    identity = Identity("kafka", quotas.KIND, key)
    assert read(ci, key) == Hidden(identity, "DescribeConfigs on Cluster")
    assert ci.sweep(quotas.KIND, Depth.NAMES).coverage.kind is CoverageKind.FAILED
    change = changed(declared({PRODUCE: 5}, user=prefix), None)
    for dry in (True, False):
        assert send(ci, change, dry=dry) == ["CLUSTER_AUTHORIZATION_FAILED"]


def test_the_data_source_tells_live_quotas(admin: KafkaSession, lifted: str) -> None:
    """With numbers as numbers, and an id that can be imported."""
    send(
        admin, changed(declared({PERCENT: Decimal("0.5")}, user=lifted, client_id="default"), None)
    )
    asked = declared(user=lifted).without(["config"])
    (told,) = eventually(lambda: admin.query("kafka_quotas", asked)["list"], bool)
    assert told == FrozenMap(
        id=f"user={lifted}|client-id",
        user=lifted,
        client_id="default",
        ip=None,
        config=FrozenMap({PERCENT: Decimal("0.5")}),
    )
