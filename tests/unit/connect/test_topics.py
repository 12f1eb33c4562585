"""Connectors and the topics that they use, in one plan of two providers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.address import parse_address
from kafkaform.core.change import Change
from kafkaform.core.errors import DryRunRefused
from kafkaform.core.finding import Harm
from kafkaform.core.resource import Declared, Depth, Desired, Identity, ProviderConfig, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import Call
from kafkaform_connect.connector import KIND
from kafkaform_connect.memory.provider import ConnectMemoryProvider
from kafkaform_connect.memory.workers import SimulatedWorkers
from kafkaform_kafka.memory.session import MemorySession
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol.acl import Acl

from ...kit.simulated import engine
from ...kit.simulated.engine import PLACE, House, removed, topic

CONNECT = "kafka_connect"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
AUTHORIZER = FrozenMap(super_users=("User:admin",), allow_if_no_acl=False)
WORKER = "User:worker"
MISSING = "used-object-missing"


def connector(name: str, topics: str) -> Declared:
    """A source that writes to these topics."""
    return declare(name, SOURCE, topic=topics)


def declare(name: str, class_: str, **config: str) -> Declared:
    """Keyword `topics_regex` is the config `topics.regex`."""
    said = FrozenMap({key.replace("_", "."): value for key, value in config.items()})
    attributes = FrozenMap(name=name, **{"class": class_}, config=said, state="stopped")
    identity = Identity(CONNECT, KIND, name)
    return Declared(identity, parse_address(f"{KIND}.{name}"), attributes, PLACE)


def both(*declared: Declared, worker: str | None = None, **said: object) -> Desired:
    """A configuration with both providers. worker: the principal of the workers."""
    kafka = engine.desired(*declared, **said)  # type: ignore[arg-type]
    block = ProviderConfig(CONNECT, CONNECT, FrozenMap(worker_principal=worker), PLACE)
    return replace(kafka, providers={**kafka.providers, CONNECT: block})


def make_house(cluster_id: str = "") -> tuple[House, SimulatedWorkers]:
    """A Kafka cluster, and workers that use it, or the cluster with this id."""
    house = engine.house()
    workers = SimulatedWorkers(house.clock, cluster_id or house.cluster.id)
    house.providers = {**house.providers, CONNECT: ConnectMemoryProvider(workers)}
    return house, workers


def find(changes: tuple[Change, ...], address: str) -> Change:
    return next(change for change in changes if change.address == address)


def test_a_topic_is_created_before_the_connector_that_uses_it() -> None:
    """Without a reference in the configuration; and it is deleted after it."""
    house, workers = make_house()
    said = both(connector("lines", "orders"), topic("orders"), topic("kept"))
    change = find(engine.plan(house, said).changes, f"{KIND}.lines")
    assert change.depends_on == ("kafka_topic.orders",)
    engine.apply(house, said)
    assert "lines" in workers.connectors
    gone = (
        removed(f"{KIND}.lines", destroy=True),
        removed("kafka_topic.orders", destroy=True),
    )
    plan = engine.plan(house, both(topic("kept"), removed=gone))
    # Deletions are sent in reverse order of what depends on what.
    assert find(plan.changes, f"{KIND}.lines").depends_on == ("kafka_topic.orders",)
    engine.apply(house, both(topic("kept"), removed=gone))
    assert not workers.connectors and "orders" not in house.cluster.topics


def test_deleting_a_topic_names_the_connectors_that_use_it() -> None:
    """Declared ones, and those that nobody manages."""
    house, workers = make_house()
    engine.apply(house, both(connector("lines", "orders"), topic("orders"), topic("kept")))
    config = {"connector.class": SOURCE, "topic": "orders"}
    workers.handle(Call("POST", "/connectors", {"name": "other", "config": config}), "somebody")
    gone = (removed("kafka_topic.orders", destroy=True),)
    plan = engine.plan(house, both(connector("lines", "orders"), topic("kept"), removed=gone))
    findings = find(plan.changes, "kafka_topic.orders").findings
    (named,) = (finding.text for finding in findings if finding.harm is Harm.AVAILABILITY)
    assert f"{KIND}.lines writes to it" in named
    assert f"{KIND} other (not managed) writes to it" in named


def test_a_topic_of_another_cluster_is_not_meant() -> None:
    """Workers say which Kafka cluster they use."""
    house, _ = make_house("another-cluster")
    plan = engine.plan(house, both(connector("lines", "orders"), topic("orders")))
    assert not find(plan.changes, f"{KIND}.lines").depends_on


def test_a_wrong_configuration_is_refused_before_its_topic_is_created() -> None:
    """Although a connector waits for its topic, its configuration is checked first."""
    house, workers = make_house()
    bad = connector("lines", "orders")
    bad = replace(bad, attributes=bad.attributes.with_items({"config": FrozenMap(file="x")}))
    wanted = replace(bad, depends_on=(parse_address("kafka_topic.orders"),))
    with pytest.raises(DryRunRefused) as refused:
        engine.apply(house, both(wanted, topic("orders")))
    assert "Missing required configuration" in str(refused.value.diagnostics)
    assert not workers.connectors and "orders" not in house.cluster.topics


def test_a_pattern_stands_for_the_topics_that_fit() -> None:
    """Order and impact, as if each of them were named; a sink goes on without one of them."""
    house, _ = make_house()
    sink = declare("all", SINK, topics_regex="ord.*", file="/tmp/x")
    said = both(sink, topic("orders"), topic("kept"))
    change = find(engine.plan(house, said).changes, f"{KIND}.all")
    assert change.depends_on == ("kafka_topic.orders",)
    engine.apply(house, said)
    gone = both(sink, topic("kept"), removed=(removed("kafka_topic.orders", destroy=True),))
    change = find(engine.plan(house, gone).changes, "kafka_topic.orders")
    assert f"{KIND}.all reads it" in [finding.text for finding in change.findings]


@pytest.mark.parametrize("pattern", ["(", "(o+)+x", ""])
def test_a_pattern_that_cannot_be_used_stands_for_nothing(pattern: str) -> None:
    """A fault of the pattern is for the workers to tell, and one that never ends costs no plan."""
    house, _ = make_house()
    sink = declare("all", SINK, topics_regex=pattern, file="/tmp/x")
    made = engine.plan(house, both(sink, topic("o" * 60)))
    assert not find(made.changes, f"{KIND}.all").depends_on


def allow(operation: str, kind: str, name: str, pattern: str = "Literal") -> Declared:
    rule = Acl(WORKER, "*", operation, "Allow", kind, name, pattern)
    address = parse_address(f"kafka_acl.{operation}_{kind}_{name}".lower())
    return Declared(engine.identity(rule.key, acls.KIND), address, rule.attributes, PLACE)


SINKS = (declare("out", SINK, topics="orders,returns", file="/tmp/x"), topic("orders"))


def list_warnings(house: House, *declared: Declared, **said: object) -> tuple[str, ...]:
    """What a plan tells about the rights of the connector."""
    change = find(engine.plan(house, both(*declared, **said)).changes, f"{KIND}.out")
    return tuple(f.text for f in change.findings if f.rule != MISSING)


def test_a_topic_that_does_not_exist_is_told() -> None:
    """With the nearest name, before the connector fails; not if it is declared, live, or matched by
    a pattern."""
    house, _ = make_house()
    sinks = declare("out", SINK, topics="ordres,new", file="/tmp/x")
    changes = engine.plan(house, both(sinks, topic("orders"), topic("new"))).changes
    (finding,) = (f for f in find(changes, f"{KIND}.out").findings if f.rule == MISSING)
    assert finding.text == "it reads kafka_topic ordres, which is neither declared nor live"
    assert finding.fix == 'Did you mean "orders"?'
    engine.apply(house, both(topic("orders")))
    for made in (
        declare("out", SINK, topics="orders", file="/tmp/x"),
        declare("out", SINK, topics_regex="ordres.*", file="/tmp/x"),
    ):
        changes = engine.plan(house, both(made, topic("orders"))).changes
        assert MISSING not in {f.rule for f in find(changes, f"{KIND}.out").findings}


def test_a_plan_tells_the_rights_that_the_workers_lack() -> None:
    """Before the connector fails; those that the same plan gives are there."""
    house, _ = make_house()
    told = list_warnings(house, *SINKS, worker=WORKER, authorizer=AUTHORIZER)
    lacks = "Read on Group connect-out, Read on Topic orders, Read on Topic returns"
    assert told == (f"it fails: {WORKER} lacks {lacks}",)
    given = (allow("Read", "Topic", "orders"), allow("All", "Group", "connect-", "Prefixed"))
    told = list_warnings(house, *SINKS, *given, worker=WORKER, authorizer=AUTHORIZER)
    assert told == (f"it fails: {WORKER} lacks Read on Topic returns",)
    given = (*given, allow("Read", "Topic", "returns"))
    assert not list_warnings(house, *SINKS, *given, worker=WORKER, authorizer=AUTHORIZER)


def test_what_nobody_declares_is_told_as_a_doubt() -> None:
    """The rules of the authorizer can permit what no ACL does."""
    house, _ = make_house()
    source = declare("out", SOURCE, topic="orders")
    (told,) = list_warnings(house, source, topic("orders"), worker=WORKER)
    assert told.startswith(f"it fails: {WORKER} lacks Write on Topic orders, unless it is a super ")


def test_nothing_is_told_of_a_principal_that_nobody_names() -> None:
    """Without `worker_principal`, and for a connector that logs in as somebody else."""
    house, _ = make_house()
    assert not list_warnings(house, *SINKS, authorizer=AUTHORIZER)
    other = {"consumer_override_sasl_mechanism": "PLAIN"}
    own = declare("out", SINK, topics="orders", file="/tmp/x", **other)
    assert not list_warnings(house, own, SINKS[1], worker=WORKER, authorizer=AUTHORIZER)


def test_the_acls_are_listed_once_for_all_connectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster has many of them, and each connector has a finding of its own."""
    house, _ = make_house()
    swept: list[str] = []
    sweep = MemorySession.sweep

    def count(session: MemorySession, kind: str, depth: Depth, **how: Any) -> Sweep:
        swept.append(kind)
        return sweep(session, kind, depth, **how)

    monkeypatch.setattr(MemorySession, "sweep", count)
    sinks = [declare(f"s{n}", SINK, topics=f"t{n}", file="/tmp/x") for n in range(5)]
    said = both(*sinks, topic("orders"), worker=WORKER, authorizer=AUTHORIZER)
    made = engine.plan(house, said).changes
    assert swept.count(acls.KIND) == 1
    for n in range(5):
        (finding,) = (f for f in find(made, f"{KIND}.s{n}").findings if f.rule != MISSING)
        assert finding.text.endswith(f"lacks Read on Group connect-s{n}, Read on Topic t{n}")


READ_ORDERS = allow("Read", "Topic", "orders")
READ_GROUP = allow("All", "Group", "connect-", "Prefixed")


def test_a_right_that_a_plan_takes_away_is_told_at_the_connector() -> None:
    """Which stays as it is; and not again by a plan that takes nothing away."""
    house, _ = make_house()
    sink = declare("out", SINK, topics="orders", file="/tmp/x")
    said = {"worker": WORKER, "authorizer": AUTHORIZER}
    engine.apply(house, both(sink, SINKS[1], READ_ORDERS, READ_GROUP, **said))
    gone = both(
        sink,
        SINKS[1],
        READ_GROUP,
        removed=(removed("kafka_acl.read_topic_orders", destroy=True),),
        **said,
    )
    change = find(engine.plan(house, gone).changes, f"{KIND}.out")
    assert not change.effective
    (finding,) = change.findings
    assert finding.harm is Harm.AVAILABILITY
    loses = f"{WORKER} loses Read on Topic orders"
    assert finding.text == f"it fails as soon as this plan is applied: {loses}"
    engine.apply(house, gone)
    again = engine.plan(house, gone).changes
    assert not [one for one in again if one.address == f"{KIND}.out"]


def test_the_topics_that_fit_a_pattern_are_checked() -> None:
    """Those that are there and those that the plan makes; a consumer leaves out the others."""
    house, _ = make_house()
    house.cluster.outside.create("orders-old", 1, 1, FrozenMap())
    sink = declare("out", SINK, topics_regex="orders.*", file="/tmp/x")
    said = {"worker": WORKER, "authorizer": AUTHORIZER}
    told = list_warnings(house, sink, topic("orders-new"), topic("other"), READ_GROUP, **said)
    lacks = "Read on Topic orders-new, Read on Topic orders-old"
    assert told == (f"it leaves out what it may not read: {WORKER} lacks {lacks}",)
    prefix = allow("Read", "Topic", "orders", "Prefixed")
    assert not list_warnings(house, sink, topic("orders-new"), READ_GROUP, prefix, **said)


def test_transactional_ids_are_named_and_not_promised() -> None:
    """Only of a source that requires exactly-once support: with it, the workers have that."""
    house, _ = make_house()
    said = {"worker": WORKER, "authorizer": AUTHORIZER}
    write = allow("Write", "Topic", "orders")
    plain = declare("out", SOURCE, topic="orders")
    assert not list_warnings(house, plain, write, **said)
    once = declare("out", SOURCE, topic="orders", exactly_once_support="required")
    (note,) = list_warnings(house, once, write, **said)
    assert "Write and Describe on the transactional id GROUP-out-N of each task N" in note
    assert not list_warnings(house, once, write, authorizer=AUTHORIZER)
