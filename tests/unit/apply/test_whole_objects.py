"""What changes meanwhile refuses a saved plan where it refuses an approval, for every kind."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.address import parse_address
from kafkaform.core.canonical import digest
from kafkaform.core.change import Action, Batch, Change, OutcomeStatus
from kafkaform.core.errors import PlanRefused, exit_code
from kafkaform.core.resource import (
    Declared,
    Desired,
    Identity,
    Lifecycle,
    Observed,
    ProviderConfig,
    Removed,
)
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, freeze
from kafkaform.plan.diff import compare
from kafkaform.provider.contract import ResourceType, Session
from kafkaform_connect.memory.provider import ConnectMemoryProvider
from kafkaform_connect.memory.workers import SimulatedWorkers
from kafkaform_schema_registry.memory import SimulatedRegistry, connect_simulated

from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_NOTE
from ...kit.simulated import engine
from ...kit.simulated.engine import House, apply, house, plan, removed
from ...kit.simulated.managed_topics import complete

PASSWORD = SecretRef("env", "LOGIN")
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind of object. first, then: what its block says before and after; hidden: what somebody
    else sets meanwhile, none of which the change writes."""

    name: str
    key: str
    first: Attributes
    then: Attributes
    hidden: Attributes = field(default_factory=dict)
    lifecycle: Lifecycle = Lifecycle()

    @property
    def instance(self) -> str:
        return next(
            p for p in ("kafka_connect", "schema_registry", "kafka") if self.name.startswith(p)
        )


def name_topic(**more: Any) -> Attributes:
    usual = dict.fromkeys(("partitions", "replication_factor", "replica_assignment", "config"))
    rest = {"config_mode": "authoritative", "managed_replication_factor": None}
    return {"name": "a", **usual, **rest, **more}


def configure(name: str | None, key: object, **more: Any) -> Attributes:
    named = {} if name is None else {name: key}
    secrets = {"secret_config": None, "secret_config_version": None}
    broker = secrets if name in (None, "broker_id") else {}
    return {**named, "config_mode": "authoritative", **broker, **more}


def limit(**config: int) -> Attributes:
    parts = dict.fromkeys(("entity_type", "entity_name", "client_id", "ip"))
    return {**parts, "user": "ci", "config": config}


def log_in(**more: Any) -> Attributes:
    usual = {"username": "ci", "scram_mechanism": "SCRAM-SHA-256", "scram_iterations": 4096}
    return {**usual, "password": PASSWORD, "password_wo_version": None, **more}


def connect(**more: Any) -> Attributes:
    config = {"file": "/dev/null", "topic": "a"}
    usual = {"name": "c", "class": SOURCE, "state": "stopped", "config": config}
    return {**usual, "secret_config": None, "secret_config_version": None, **more}


def register(**more: Any) -> Attributes:
    names = {"subject": "s", "topic": None, "part": None, "strategy": None}
    return {**names, "format": "avro", "schema": ORDER, "references": None, **more}


MS, SEGMENT = "retention.ms", "segment.ms"
NUMBERS = ("1000", "60000")
BROKER, GROUP = (
    ("log.retention.ms", "num.io.threads"),
    (
        "consumer.session.timeout.ms",
        "consumer.heartbeat.interval.ms",
    ),
)
METRICS = ("interval.ms", "metrics")
KINDS = (
    Kind(
        "kafka_topic",
        "a",
        name_topic(partitions=1),
        name_topic(partitions=2),
        {"config": {MS: "1000"}},
    ),
    Kind(
        "kafka_topic",
        "a",
        name_topic(config={MS: "1000"}),
        name_topic(config={MS: "2000"}),
        {"partitions": 5},
    ),
    Kind(
        "kafka_topic_config",
        "t",
        {"topic": "t", "config": {MS: "1000"}},
        {"topic": "t", "config": {MS: "2000"}},
        {"config": {MS: "1000", SEGMENT: "60000"}},
    ),
    Kind(
        "kafka_broker_config",
        "1",
        configure("broker_id", 1, config={"log.cleaner.threads": "2"}),
        configure("broker_id", 1, config={"log.cleaner.threads": "3"}),
        {"config": {"log.cleaner.threads": "2", "num.io.threads": "9"}},
    ),
    Kind(
        "kafka_cluster_config",
        "default",
        configure(None, "", config={"log.cleaner.threads": "2"}),
        configure(None, "", config={"log.cleaner.threads": "3"}),
        {"config": {"log.cleaner.threads": "2", "num.io.threads": "9"}},
    ),
    Kind(
        "kafka_group_config",
        "g",
        configure("group", "g", config={GROUP[0]: "50000"}),
        configure("group", "g", config={GROUP[0]: "51000"}),
        {"config": {GROUP[0]: "50000", GROUP[1]: "6000"}},
    ),
    Kind(
        "kafka_client_metrics",
        "m",
        configure("name", "m", config={METRICS[0]: "60000"}),
        configure("name", "m", config={METRICS[0]: "70000"}),
        {"config": {METRICS[0]: "60000", METRICS[1]: "org.apache.kafka."}},
    ),
    Kind(
        "kafka_quota",
        "user=ci",
        limit(producer_byte_rate=1000),
        limit(producer_byte_rate=2000),
        {"config": {"producer_byte_rate": 1000, "consumer_byte_rate": 7}},
    ),
    Kind(
        "kafka_user_scram_credential",
        "",
        log_in(),
        log_in(password_wo_version="2"),
        {"scram_iterations": 8192},
    ),
    Kind(
        "kafka_connect_connector",
        "c",
        connect(),
        connect(state="paused"),
        {"config": {"file": "/dev/null", "topic": "a", "batch.size": "9"}},
    ),
    Kind(
        "kafka_connect_connector",
        "c",
        connect(),
        connect(config={"file": "/dev/null", "topic": "b"}),
        {"state": "paused"},
    ),
    Kind(
        "schema_registry_schema",
        "s",
        register(),
        register(schema=ORDER_WITH_NOTE),
        {"schema": ORDER_WITH_NOTE},
    ),
    Kind(
        "schema_registry_subject_config",
        "s",
        {"subject": "s", "topic": None, "part": None, "compatibility": "FULL", "mode": None},
        {"subject": "s", "topic": None, "part": None, "compatibility": "NONE", "mode": None},
        {"mode": "READONLY"},
    ),
    Kind(
        "schema_registry_config",
        "global",
        {"compatibility": "FULL", "mode": "READWRITE"},
        {"compatibility": "NONE", "mode": "READWRITE"},
        {"mode": "READONLY"},
        Lifecycle(adopt=True),
    ),
)


# ── a world of all three providers ──────────────────────────────────────────────────────


@pytest.fixture(autouse=True)
def _know_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        engine.Configuration,
        "find_secrets",
        lambda self, refs: dict.fromkeys(refs, Secret("a-password")),
    )


def build(brokers: int = 1) -> House:
    """A cluster with a topic `t`, workers and a registry."""
    where = house(brokers=brokers)
    where.providers = {
        **where.providers,
        "kafka_connect": ConnectMemoryProvider(SimulatedWorkers(where.clock), "admin"),
        "schema_registry": connect_simulated(SimulatedRegistry("registry")),
    }
    with where.cluster.others() as others:
        others.create("t")
    return where


def declare(kind: Kind, attributes: Attributes) -> Declared:
    given = FrozenMap({name: freeze(value) for name, value in attributes.items()})
    version = attributes.get("password_wo_version")
    return Declared(
        identify(kind),
        parse_address(f"{kind.name}.x"),
        given,
        engine.PLACE,
        kind.lifecycle,
        secret_version=version,
    )


def identify(kind: Kind) -> Identity:
    types = build_types()
    return Identity(kind.instance, kind.name, types[kind.name].key(freeze(dict(kind.first))))


def build_types() -> Mapping[str, Any]:
    return {name: t for p in build().providers.values() for name, t in p.types.items()}


def say(kind: Kind, *declared: Declared, gone: tuple[Removed, ...] = ()) -> Desired:
    """A configuration with these blocks and one that stays as it is."""
    declared = (*declared, engine.topic("stays"))
    blocks = {
        name: ProviderConfig(name, name, configure_provider(name), engine.PLACE)
        for name in {kind.instance, engine.KAFKA}
    }
    return Desired(declared, blocks, removed=gone, digest=digest((declared, gone)))


def configure_provider(name: str) -> FrozenMap:
    return FrozenMap(operation_timeout=engine.TIMEOUT) if name == engine.KAFKA else EMPTY


def open_session(where: House, kind: Kind) -> Session:
    config = configure_provider(kind.instance)
    return where.providers[kind.instance].open(kind.instance, config, {})


def alter(where: House, kind: Kind, given: Attributes) -> None:
    """Somebody else sets these attributes of the live object."""
    # More partitions have replicas that the live object does not name yet.
    new = {"replica_assignment": None} if "partitions" in given else {}
    send_outside(where, kind, lambda live: live.with_items(freeze({**new, **given})))


def meet(where: House, kind: Kind) -> None:
    """Somebody else makes the very change of the plan."""
    then = {name: value for name, value in kind.then.items() if value is not None}
    rest = ("config_mode", "password", "password_wo_version", "entity_type", "user")
    alter(where, kind, {name: value for name, value in then.items() if name not in rest})


def delete(where: House, kind: Kind) -> None:
    send_outside(where, kind, lambda live: None)


def send_outside(where: House, kind: Kind, make: Callable[[FrozenMap], FrozenMap | None]) -> None:
    """Somebody else changes the live object. make: its attributes -> what becomes of them."""
    session, identity = open_session(where, kind), identify(kind)
    of_kind = where.providers[kind.instance].types[kind.name]
    live = session.read([identity])[identity]
    assert isinstance(live, Observed)
    after = make(live.attributes)
    action = Action.DELETE if after is None else Action.UPDATE
    send_steps(session, of_kind, identity, action, live, after)


def send_steps(
    session: Session,
    of_kind: ResourceType,
    identity: Identity,
    action: Action,
    live: Observed | None,
    after: FrozenMap | None,
) -> None:
    before = live.attributes if live else None
    change = Change(
        identity,
        "somebody",
        action,
        before,
        after,
        compare(before, after, schema=of_kind.schema),
        incarnation=live.incarnation if live else None,
    )
    steps = of_kind.steps(change, session.facts)
    assert steps, "nothing is changed outside"
    for step in steps:
        (end,) = session.apply(Batch("1", identity.instance, step.request, (step,)), {})
        assert end.status is OutcomeStatus.APPLIED, end
    session.close()


def create(where: House, kind: Kind) -> None:
    """Somebody else makes the object of the block."""
    session = open_session(where, kind)
    of_kind = where.providers[kind.instance].types[kind.name]
    after = of_kind.target(freeze(dict(kind.first)), None, session.facts, False)
    send_steps(session, of_kind, identify(kind), Action.CREATE, None, after)


Gap = Callable[[House, Kind], None]


SCHEMA = Kind("schema_registry_schema", "s", register(), register())


def build_applied(kind: Kind, first: Desired) -> House:
    """A house where this was applied an hour ago."""
    where = build()
    if kind.name == "schema_registry_subject_config":
        create(where, SCHEMA)
    assert complete(apply(where, first))
    where.clock.advance(3600)
    return where


def collect_codes(
    kind: Kind, first: Desired, then: Desired, gap: Gap, prepare: Gap = lambda where, kind: None
) -> tuple[list[int], str]:
    """The exit codes of `apply PLAN`, of `apply --expect` and of an apply that was approved before
    the gap, and what the first one says. prepare: happens before the plan."""
    codes, text = [], ""
    for way in ("saved", "expect", "approved"):
        where = build_applied(kind, first)
        prepare(where, kind)
        reviewed = plan(where, then)
        assert reviewed.effective and not any(c.blocked for c in reviewed.changes), reviewed.changes
        number = len(where.records("intent"))
        meanwhile = partial(gap, where, kind)
        try:
            if way == "approved":
                done = apply(where, then, gap=lambda _, act=meanwhile: act())
            else:
                meanwhile()
                how: Any = {"saved": reviewed} if way == "saved" else {"expect": reviewed.token}
                done = apply(where, then, **how)
            assert complete(done)
            codes.append(0)
        except PlanRefused as error:
            codes.append(exit_code(error))
            text = text or str(error)
            assert len(where.records("intent")) == number
    return codes, text


def collect_update_codes(kind: Kind, gap: Gap) -> tuple[list[int], str]:
    first, then = (say(kind, declare(kind, given)) for given in (kind.first, kind.then))
    return collect_codes(kind, first, then, gap)


def name_kind(kind: Kind) -> str:
    return f"{kind.name}-{[*kind.hidden][0]}"


# ── every kind ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS, ids=name_kind)
def test_what_the_change_does_not_write_counts_too(kind: Kind) -> None:
    """Somebody sets another value of the object, which the plan hid as unchanged: nothing is sent,
    and the refusal has the value before and after, and who."""
    codes, text = collect_update_codes(kind, lambda where, kind: alter(where, kind, kind.hidden))
    assert codes == [4, 4, 4]
    assert f"{kind.name}.x: " in text and " was " in text
    # Whoever set the object last may never have set this value.
    assert re.search(
        r" now \(changed outside kafkaform; (last set here 2025-06-15|never set)", text
    )


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name != "kafka_user_scram_credential"], ids=name_kind
)
def test_the_very_change_by_somebody_else_counts_too(kind: Kind) -> None:
    """Whoever made it may have more in mind: the plan is no longer what would be done."""
    codes, text = collect_update_codes(kind, meet)
    assert codes == [4, 4, 4]
    assert f"{kind.name}.x: " in text and "changed outside kafkaform" in text


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name != "schema_registry_config"], ids=name_kind
)
def test_a_deletion_by_somebody_else_counts_too(kind: Kind) -> None:
    """An update does not make the object again."""
    codes, text = collect_update_codes(kind, delete)
    assert codes == [4, 4, 4]
    assert f"{kind.name}.x: it no longer exists (changed outside kafkaform" in text


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name != "schema_registry_config"], ids=name_kind
)
def test_a_deletion_is_of_the_object_that_was_shown(kind: Kind) -> None:
    """What was set on it meanwhile may be why it is needed."""
    first = say(kind, declare(kind, kind.first))
    then = say(kind, gone=(removed(f"{kind.name}.x", destroy=True),))
    codes, _ = collect_codes(kind, first, then, lambda w, k: alter(w, k, k.hidden))
    assert codes == [4, 4, 4]


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name != "schema_registry_config"], ids=name_kind
)
def test_what_exists_meanwhile_is_not_created(kind: Kind) -> None:
    """Also if it is exactly as declared."""
    nothing = say(kind)
    then = say(kind, declare(kind, kind.first))
    codes, text = collect_codes(kind, nothing, then, create)
    assert codes == [4, 4, 4]
    assert "it exists now (changed outside kafkaform" in text


# ── what others may change ──────────────────────────────────────────────────────────────

ADDITIVE = {"config_mode": "additive"}
THEIRS: Mapping[str, tuple[Attributes, Attributes, Lifecycle]] = {
    "a key more beside an additive block": (
        {**ADDITIVE, "config": {MS: "1000"}},
        {"config": {MS: "1000", SEGMENT: "60000"}},
        Lifecycle(),
    ),
    "a key that the block leaves as it is": (
        {"config": {MS: "1000", SEGMENT: None}},
        {"config": {MS: "1000", SEGMENT: "60000"}},
        Lifecycle(),
    ),
    "a key that is ignored": (
        {"config": {MS: "1000"}},
        {"config": {MS: "1000", SEGMENT: "60000"}},
        Lifecycle(ignore_changes=("config.segment.*",)),
    ),
}


@pytest.mark.parametrize("what", THEIRS)
@pytest.mark.parametrize("written", [{"partitions": 2}, {"config": {MS: "2000"}}], ids=str)
def test_what_belongs_to_others_refuses_nothing(what: str, written: Attributes) -> None:
    """It may come and go; a saved plan is not stricter than an approval."""
    given, hidden, lifecycle = THEIRS[what]
    more = {
        **given,
        **{n: {**given.get(n, {}), **v} if n == "config" else v for n, v in written.items()},
    }
    kind = Kind(
        "kafka_topic",
        "a",
        name_topic(**{"partitions": 1, **given}),
        name_topic(**{"partitions": 1, **more}),
        hidden,
        lifecycle,
    )
    assert collect_update_codes(kind, lambda w, k: alter(w, k, k.hidden))[0] == [0, 0, 0]


def test_a_release_leaves_to_others_what_they_set_meanwhile() -> None:
    """It takes away what is recorded and nothing else, whatever else there is."""
    kind = Kind("kafka_quota", "", limit(producer_byte_rate=1000), {})
    before, after = ({"producer_byte_rate": 1000, "consumer_byte_rate": n} for n in (7, 8))
    codes, _ = collect_codes(
        kind,
        say(kind, declare(kind, kind.first)),
        say(kind, gone=(removed("kafka_quota.x", destroy=True),)),
        lambda w, k: alter(w, k, {"config": {**after, "request_percentage": 50}}),
        prepare=lambda w, k: alter(w, k, {"config": before}),
    )
    assert codes == [0, 0, 0]


def test_what_is_ignored_and_not_of_others_counts() -> None:
    """An attribute that the block ignores is shown in the plan as it was."""
    kind = Kind(
        "kafka_topic",
        "a",
        name_topic(partitions=1, config={MS: "1000"}),
        name_topic(partitions=1, config={MS: "2000"}),
        {"partitions": 5},
        Lifecycle(ignore_changes=("partitions",)),
    )
    assert collect_update_codes(kind, lambda w, k: alter(w, k, k.hidden))[0] == [4, 4, 4]


# ── what only the state learns ──────────────────────────────────────────────────────────


TOPIC = KINDS[0]


def test_a_takeover_is_of_the_object_that_was_shown() -> None:
    """An adoption that sends nothing records the object as it was reviewed."""
    nothing, kind = say(TOPIC), replace_lifecycle(TOPIC, Lifecycle(adopt=True))
    then = say(kind, declare(kind, kind.first))
    codes, text = collect_codes(
        kind, nothing, then, lambda w, k: alter(w, k, {"partitions": 3}), prepare=create
    )
    assert codes == [4, 4, 4] and "partitions was 1 and is 3 now" in text


def replace_lifecycle(kind: Kind, lifecycle: Lifecycle) -> Kind:
    return dataclasses.replace(kind, lifecycle=lifecycle)


def test_what_came_back_is_not_forgotten() -> None:
    """A row leaves the state because its object is gone; an object without an id that is made again
    is the same one."""
    kind = next(kind for kind in KINDS if kind.name == "kafka_quota")
    first = say(kind, declare(kind, kind.first))
    then = say(kind, gone=(removed(f"{kind.name}.x", destroy=True),))
    codes, text = collect_codes(kind, first, then, create, prepare=delete)
    assert codes == [4, 4, 4] and "that is no longer certain" in text


def test_what_is_let_go_on_request_may_change() -> None:
    """Nobody looks at it: an object that nobody can see can be let go, too."""
    first, then = (
        say(TOPIC, declare(TOPIC, TOPIC.first)),
        say(TOPIC, gone=(removed("kafka_topic.x"),)),
    )
    for gap in (lambda w, k: alter(w, k, k.hidden), delete):
        assert collect_codes(TOPIC, first, then, gap)[0] == [0, 0, 0]


def test_an_applied_plan_is_only_found_applied_as_a_whole() -> None:
    """A pipeline that is started twice ends with 0 only if the object still is as it was left, also
    in what the change did not write."""
    where = build_applied(TOPIC, say(TOPIC, declare(TOPIC, TOPIC.first)))
    then = say(TOPIC, declare(TOPIC, TOPIC.then))
    saved = plan(where, then)
    assert complete(apply(where, then, saved=saved))
    assert (
        apply(where, then, saved=saved).already and apply(where, then, expect=saved.token).already
    )
    alter(where, TOPIC, TOPIC.hidden)
    for how in ({"saved": saved}, {"expect": saved.token}):
        with pytest.raises(PlanRefused):
            apply(where, then, **how)


def test_a_plan_of_another_configuration_is_compared_strictly() -> None:
    """Only the configuration knows what belongs to others, and it says something else now."""
    kind = Kind("kafka_topic", "a", *(name_topic(partitions=n, **ADDITIVE) for n in (1, 2)))
    where = build_applied(kind, say(kind, declare(kind, kind.first)))
    saved = plan(where, say(kind, declare(kind, kind.then)))
    alter(where, kind, {"config": {SEGMENT: "60000"}})
    with pytest.raises(PlanRefused, match=r"config\.segment\.ms was not set"):
        apply(where, say(kind, declare(kind, name_topic(partitions=3))), saved=saved)


def test_a_record_that_changed_is_named_with_both_values() -> None:
    """The owner and labels of a block are in the plan, and another run may have changed them."""
    where = build_applied(TOPIC, say(TOPIC, declare(TOPIC, TOPIC.first)))
    then = say(TOPIC, declare(TOPIC, TOPIC.then))
    saved = plan(where, then)
    owned = replace(declare(TOPIC, TOPIC.first), owner="team-a", labels=FrozenMap(tier="gold"))
    assert complete(apply(where, say(TOPIC, owned)))
    with pytest.raises(PlanRefused) as refusal:
        apply(where, then, saved=saved)
    assert (
        "its record in the state changed: owner was none and is team-a now, labels.tier was none "
        "and is gold now (changed 2025-06-15 " in str(refusal.value)
    )
    with pytest.raises(PlanRefused):
        apply(where, then, expect=saved.token)


# ── brokers that disagree ───────────────────────────────────────────────────────────────


def make_disputed_house() -> tuple[House, Desired, Any]:
    """A topic of which broker 1 shows another value for a minute, and a plan from before that."""
    where = build(brokers=3)
    assert complete(apply(where, say(TOPIC, declare(TOPIC, TOPIC.first))))
    where.clock.advance(3600)
    then = say(TOPIC, declare(TOPIC, TOPIC.then))
    return where, then, plan(where, then)


def test_brokers_that_disagree_are_named_with_their_values() -> None:
    """The plan is not called stale: nobody knows what the object is."""
    where, then, saved = make_disputed_house()
    for broker in (2, 3):
        where.cluster.lag(seconds=60, broker=broker)
    alter(where, TOPIC, {"config": {MS: "60000"}})
    begun = where.clock.monotonic()
    with pytest.raises(PlanRefused) as refusal:
        apply(where, then, saved=saved)
    assert refusal.value.message == (
        "the brokers disagree: kafka_topic.x: config.retention.ms is 1 min (60000) on broker 1, "
        "and not set on broker 2, 3"
    )
    assert "kafkaform alter" in refusal.value.advice and exit_code(refusal.value) == 4
    assert where.clock.monotonic() - begun <= 5


def test_a_broker_that_lags_behind_is_waited_for() -> None:
    """Broker 1 shows what was there before the last apply, and a moment later what the plan saw."""
    where = build(brokers=3)
    assert complete(apply(where, say(TOPIC, declare(TOPIC, TOPIC.first))))
    where.cluster.lag(seconds=2, broker=1)
    alter(where, TOPIC, {"config": {MS: "60000"}})
    where.cluster.lag()
    said = name_topic(partitions=2, config={MS: "60000"})
    then = say(TOPIC, declare(TOPIC, said))
    assert complete(apply(where, then))
    assert where.cluster.topics["a"].partitions == 2


def test_a_broker_that_does_not_answer_is_no_disagreement() -> None:
    """The others show what counts."""
    where, then, saved = make_disputed_house()
    where.cluster.hang(3)
    alter(where, TOPIC, TOPIC.hidden)
    with pytest.raises(PlanRefused, match="the plan is stale: .* was not set and is"):
        apply(where, then, saved=saved)
