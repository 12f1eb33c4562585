"""A session on a real broker: what it reads, what it refuses to guess, and what it writes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import (
    Action,
    Change,
    Evidence,
    Outcome,
    OutcomeStatus,
    PathChange,
    add_findings,
)
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Failed,
    FaultClass,
    Hidden,
    Identity,
    Observed,
)
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.protocol.config_keys import config_value
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.configs import describe_configs

from ...kit.kafka.changes import change, topic
from ...kit.kafka.judgement import judge
from ...kit.kafka.logins import Login
from ...kit.kafka.quota_user import account, opened
from ...kit.kafka.sessions import (
    apply,
    connect,
    eventually,
    gone,
    grant,
    limit_mutations,
    new,
    preflight,
    produce,
    read,
    reading,
)


def seen(session: KafkaSession, name: str) -> Observed:
    """The topic as soon as it shows."""
    found = eventually(lambda: read(session, name), lambda r: isinstance(r, Observed))
    assert isinstance(found, Observed)
    return found


def test_a_topic_lives_and_dies(admin: KafkaSession, prefix: str) -> None:
    """Create, read, grow, configure and delete, each with the broker's consent first."""
    create = new(prefix, config={"retention.ms": "1000", "cleanup.policy": "compact,delete"})
    assert [v.fault for v in preflight(admin, create)] == [None]
    (made,) = apply(admin, create)
    assert made.status is OutcomeStatus.APPLIED
    assert made.attributes is not None
    assert made.attributes["config"] == create.after["config"]  # type: ignore[index]

    live = seen(admin, prefix)
    assert live.incarnation == made.incarnation
    assert live.attributes["config"] == create.after["config"]  # type: ignore[index]
    assert (live.attributes["partitions"], live.attributes["replication_factor"]) == (1, 1)
    assert len(live.attributes["replica_assignment"]) == 1

    after = topic(prefix, partitions=3, replication_factor=1, config={"retention.ms": "2000"})
    update = change(Action.UPDATE, dict(live.attributes), after, incarnation=live.incarnation)
    assert [v.fault for v in preflight(admin, update)] == [None, None]
    assert {o.status for o in apply(admin, update)} == {OutcomeStatus.APPLIED}
    eventually(
        lambda: seen(admin, prefix).attributes,
        lambda a: a["partitions"] == 3 and a["config"] == {"retention.ms": "2000"},
    )

    delete = gone(prefix, live.incarnation, 3)
    (verdict,) = preflight(admin, delete)
    assert (verdict.fault, verdict.evidence) == (None, Evidence.LOCAL)
    assert [o.status for o in apply(admin, delete)] == [OutcomeStatus.APPLIED]
    eventually(lambda: read(admin, prefix), lambda r: isinstance(r, Absent))


def test_repeats_converge_instead_of_failing_for_good(admin: KafkaSession, prefix: str) -> None:
    """What is already so is reported as such, so that the engine reads before it judges."""
    (made,) = apply(admin, new(prefix))
    seen(admin, prefix)
    grow = change(
        Action.UPDATE,
        topic(prefix, partitions=1, replication_factor=1),
        topic(prefix, partitions=2, replication_factor=1),
    )
    apply(admin, grow)
    delete = gone(prefix, made.incarnation)
    repeats = [apply(admin, new(prefix)), apply(admin, grow)]
    apply(admin, delete)
    repeats.append(apply(admin, delete))
    faults = [outcomes[0].fault for outcomes in repeats]
    assert [fault.kind for fault in faults if fault] == [FaultClass.CONVERGED] * 3


def test_a_recreated_topic_is_not_deleted(admin: KafkaSession, prefix: str) -> None:
    """The fresh read before a deletion notices another id under the same name."""
    (first,) = apply(admin, new(prefix))
    seen(admin, prefix)
    apply(admin, gone(prefix, first.incarnation))
    eventually(lambda: read(admin, prefix), lambda r: isinstance(r, Absent))
    (second,) = apply(admin, new(prefix))
    assert seen(admin, prefix).incarnation == second.incarnation
    (verdict,) = preflight(admin, gone(prefix, first.incarnation))
    assert verdict.fault is not None
    assert verdict.fault.code == "RECREATED"
    (outcome,) = apply(admin, gone(prefix, first.incarnation))
    assert outcome.status is OutcomeStatus.FAILED
    assert isinstance(read(admin, prefix), Observed)
    apply(admin, gone(prefix, second.incarnation))


def test_what_may_not_be_seen_is_hidden_and_never_absent(
    broker: Any, admin: KafkaSession, ci: KafkaSession, stranger: Login, prefix: str
) -> None:
    """Without Describe nothing is known; without DescribeConfigs the whole is not."""
    (made,) = apply(admin, new(prefix))
    seen(admin, prefix)
    assert read(ci, prefix) == Hidden(_topic(prefix), f"Describe on Topic {prefix}")
    assert isinstance(read(ci, f"{prefix}-missing"), Hidden)
    revoke = grant(broker, stranger, "Topic", prefix, "DESCRIBE")
    found = eventually(
        lambda: read(ci, prefix),
        lambda r: r != Hidden(_topic(prefix), f"Describe on Topic {prefix}"),
    )
    assert found == Hidden(_topic(prefix), f"DescribeConfigs on Topic {prefix}")
    names = ci.sweep("kafka_topic", Depth.NAMES)
    assert [item.identity.key for item in names.items] == [prefix]
    assert ci.sweep("kafka_topic", Depth.FULL).items == ()
    revoke()
    apply(admin, gone(prefix, made.incarnation))


def _topic(name: str) -> Identity:
    return Identity("kafka", "kafka_topic", name)


def test_a_missing_right_to_write_is_named_in_the_dry_run(
    broker: Any, admin: KafkaSession, ci: KafkaSession, stranger: Login, prefix: str
) -> None:
    """Creates are refused by the broker, deletes by the rights that it reports."""
    (made,) = apply(admin, new(prefix))
    seen(admin, prefix)
    (refused,) = preflight(ci, new(f"{prefix}-new"))
    assert refused.fault is not None
    assert refused.fault.kind is FaultClass.PERMISSION
    assert f"Create on Topic {prefix}-new" in refused.fault.advice
    revoke = grant(broker, stranger, "Topic", prefix, "DESCRIBE")
    (verdict,) = eventually(
        lambda: preflight(ci, gone(prefix, made.incarnation)),
        lambda v: v[0].fault is not None and "Delete on Topic" in v[0].fault.advice,
    )
    assert verdict.fault is not None
    assert verdict.fault.kind is FaultClass.PERMISSION
    (outcome,) = apply(ci, gone(prefix, made.incarnation))
    assert outcome.status is OutcomeStatus.FAILED
    revoke()
    apply(admin, gone(prefix, made.incarnation))


def test_a_creator_who_may_not_look_still_gets_the_id(
    broker: Any, admin: KafkaSession, ci: KafkaSession, stranger: Login, prefix: str
) -> None:
    """Counts and configs come back only with DescribeConfigs, the topic id always."""
    revoke = grant(broker, stranger, "Topic", prefix, "CREATE")
    (made,) = eventually(
        lambda: apply(ci, new(prefix)), lambda found: found[0].status is OutcomeStatus.APPLIED
    )
    revoke()
    assert made.attributes == {"name": prefix}
    assert seen(admin, prefix).incarnation == made.incarnation
    apply(admin, gone(prefix, made.incarnation))


def test_a_throttled_create_says_how_long_to_wait(
    broker: Any, admin: KafkaSession, prefix: str
) -> None:
    """Error 89 means that nothing happened, and reads go on once the broker allows."""
    lift = limit_mutations(admin, prefix, 1.0)
    creates = [new(f"{prefix}-{number}", partitions=9) for number in range(6)]
    with account(broker, prefix) as settings, opened(settings) as session:
        outcomes = eventually(
            lambda: apply(session, *creates),
            lambda found: any(o.fault and _throttled(o) for o in found),
        )
        assert isinstance(read(session, f"{prefix}-nothing"), Absent)
    (first, *_) = [outcome for outcome in outcomes if _throttled(outcome)]
    assert first.fault is not None
    assert first.fault.kind is FaultClass.NOT_APPLIED
    assert first.fault.retry_after > 0
    lift()
    for item in admin.sweep("kafka_topic", Depth.NAMES).items:
        if item.identity.key.startswith(prefix):
            apply(admin, gone(item.identity.key, item.incarnation))


def _throttled(outcome: Outcome) -> bool:
    return outcome.fault is not None and outcome.fault.code == "THROTTLING_QUOTA_EXCEEDED"


def test_sweeps_say_how_far_they_can_be_trusted(admin: KafkaSession, prefix: str) -> None:
    """Even the super user's listing counts as what is visible, with names or whole."""
    (made,) = apply(admin, new(prefix, config={"retention.ms": "7"}))
    seen(admin, prefix)
    for depth, keys in ((Depth.NAMES, 3), (Depth.FULL, 5)):
        sweep = admin.sweep("kafka_topic", depth)
        assert sweep.coverage.kind is CoverageKind.VISIBLE_ONLY
        (found,) = [item for item in sweep.items if item.identity.key == prefix]
        assert found.incarnation == made.incarnation
        assert len(found.attributes) == keys
    apply(admin, gone(prefix, made.incarnation))


def test_a_listing_reads_what_it_is_asked_for(admin: KafkaSession, prefix: str) -> None:
    """One listing instead of two: it shows the topic in full, as a read does, and leaves out what
    is not there."""
    (made,) = apply(admin, new(prefix, config={"retention.ms": "7"}))
    whole, other = seen(admin, prefix), replace(seen(admin, prefix).identity, key=f"{prefix}-other")
    sweep = admin.sweep("kafka_topic", Depth.NAMES, full=[whole.identity, other])
    assert sweep.full == {whole.identity}
    found = {item.identity: item for item in sweep.items}
    assert found[whole.identity] == whole
    assert other not in found
    assert not admin.sweep("kafka_topic", Depth.NAMES).full
    apply(admin, gone(prefix, made.incarnation))


def test_a_listing_leaves_what_it_may_not_read_to_a_read(
    broker: Any, admin: KafkaSession, stranger: Login, prefix: str
) -> None:
    """Somebody who may describe a topic and not its configs sees its name, and the read says which
    right is missing."""
    (made,) = apply(admin, new(prefix))
    whole = seen(admin, prefix)
    revoke = grant(broker, stranger, "Topic", prefix, "DESCRIBE")
    half = connect(broker, stranger)

    def list_names() -> dict[Identity, Observed]:
        sweep = half.sweep("kafka_topic", Depth.NAMES, full=[whole.identity])
        assert not sweep.full
        return {item.identity: item for item in sweep.items}

    eventually(list_names, lambda items: whole.identity in items)
    assert isinstance(read(half, prefix), Hidden)
    half.close()
    revoke()
    apply(admin, gone(prefix, made.incarnation))


def test_one_broker_can_be_asked_alone(broker: Any, admin: KafkaSession, prefix: str) -> None:
    """Verification asks each live broker; one that is not there makes the read fail."""
    (made,) = apply(admin, new(prefix))
    seen(admin, prefix)
    assert isinstance(read(admin, prefix, at=admin.facts.nodes[0]), Observed)
    hasty = connect(broker, "admin", timeout=3.0)
    absent = read(hasty, prefix, at="4711")
    assert isinstance(absent, Failed)
    assert absent.fault.kind is FaultClass.NOT_APPLIED
    hasty.close()
    apply(admin, gone(prefix, made.incarnation))


def test_fallbacks_are_what_a_removal_would_bring_back(admin: KafkaSession, prefix: str) -> None:
    """The plan can show the value that takes effect when an override goes."""
    config = {"retention.ms": "1", "segment.bytes": "2000000", "flush.ms": "5"}
    (made,) = apply(admin, new(prefix, config=config))
    live = seen(admin, prefix)
    assert live.fallbacks.keys() >= {f"config.{key}" for key in config}
    remove = change(Action.UPDATE, dict(live.attributes), {**live.attributes, "config": {}})
    apply(admin, remove)
    eventually(lambda: seen(admin, prefix).attributes["config"], lambda c: c == {})
    effective = _effective(admin, prefix)
    below = {key: live.fallbacks.get(f"config.{key}") for key in effective}
    told = {key: value for key, value in below.items() if value is not None}
    assert told == {key: config_value(key, effective[key]) for key in told}
    apply(admin, gone(prefix, made.incarnation))


def _effective(session: KafkaSession, name: str) -> dict[str, str | None]:
    answer = describe_configs(session.context.wire, "topic", [name], 10)[name]
    return {entry.name: entry.value for entry in answer.configs or ()}


def test_topic_configs_live_without_owning_the_topic(admin: KafkaSession, prefix: str) -> None:
    """The object comes with the first override and goes with the last."""
    (made,) = apply(admin, new(prefix))
    seen(admin, prefix)
    kind = "kafka_topic_config"
    assert isinstance(read(admin, prefix, kind), Absent)
    wanted = {"topic": prefix, "config": {"retention.ms": "5"}}
    create = change(Action.CREATE, None, wanted, kind=kind)
    assert [v.fault for v in preflight(admin, create)] == [None]
    apply(admin, create)
    found = eventually(lambda: read(admin, prefix, kind), lambda r: isinstance(r, Observed))
    assert isinstance(found, Observed)
    assert found.attributes == wanted
    apply(admin, change(Action.DELETE, wanted, None, kind=kind))
    eventually(lambda: read(admin, prefix, kind), lambda r: isinstance(r, Absent))
    apply(admin, gone(prefix, made.incarnation))
    eventually(lambda: read(admin, prefix), lambda r: isinstance(r, Absent))
    assert isinstance(read(admin, prefix, kind), Absent)


def test_the_facts_of_a_cluster(admin: KafkaSession, ci: KafkaSession) -> None:
    """A user without rights still knows where it is, but not the defaults."""
    assert admin.facts.scope_id == ci.facts.scope_id
    assert admin.facts.nodes == ci.facts.nodes
    assert admin.facts.principal == "User:admin"
    assert admin.facts.recorded_values["default_partitions"] >= 1
    assert admin.facts.recorded_values["delete_topic_enable"] is True
    assert ci.facts.recorded_values["default_partitions"] is None
    assert ci.facts.recorded_values["rights"] == ()
    assert "Alter" in admin.facts.recorded_values["rights"]


def test_impact_of_a_deletion(admin: KafkaSession, prefix: str) -> None:
    """An empty topic destroys nothing, and only deletions are asked about."""
    (made,) = apply(admin, new(prefix))
    seen(admin, prefix)
    delete = gone(prefix, made.incarnation)
    # A broker lists a new topic before it lists the topic's log.
    impacts = eventually(
        lambda: admin.assess([delete, new("x")]),
        lambda found: "bytes" in found[delete.identity].figures,
    )
    assert impacts[delete.identity].figures == {"bytes": 0, "offsets": 0, "groups": "none"}
    apply(admin, delete)


def test_impact_counts_data_and_live_readers(broker: Any, admin: KafkaSession, prefix: str) -> None:
    """Bytes, offsets and the groups that read the topic at this moment are shown."""
    (made,) = apply(admin, new(prefix, partitions=2))
    seen(admin, prefix)
    delete = gone(prefix, made.incarnation, 2)
    produce(broker, prefix, 50)
    with reading(broker, prefix, f"{prefix}-group"):
        figures = admin.assess([delete])[delete.identity].figures
    assert figures["offsets"] == 50
    assert figures["bytes"] > 0
    assert figures["groups"] == f"{prefix}-group"
    apply(admin, delete)


def shorten(
    session: KafkaSession, before: dict[str, str], after: dict[str, str], name: str
) -> Change:
    """A change of a topic's configs, with what rules find."""
    paths = tuple(
        PathChange(("config", key), before.get(key), value) for key, value in after.items()
    )
    sides = (FrozenMap(name=name, config=FrozenMap(side)) for side in (before, after))
    identity = Identity("kafka", "kafka_topic", name)
    made = Change(identity, "kafka_topic.t", Action.UPDATE, *sides, paths)
    return add_findings(made, *judge(made, session.facts))


def test_impact_of_a_retention_cut(broker: Any, admin: KafkaSession, prefix: str) -> None:
    """What is older or larger than the new limits is measured, and what is within them is not."""
    (made,) = apply(admin, new(prefix, partitions=2))
    seen(admin, prefix)
    produce(broker, prefix, 50)
    week, day, none = ({"retention.ms": value} for value in ("604800000", "86400000", "0"))
    long_ago = shorten(admin, week, day, prefix)
    size = shorten(admin, week, {**week, "retention.bytes": "1"}, prefix)
    now = shorten(admin, week, none, prefix)
    figures = [admin.assess([one])[one.identity].figures for one in (long_ago, size, now)]
    assert (figures[0]["bytes"], figures[0]["offsets"], figures[0]["of_offsets"]) == (0, 0, 50)
    assert 0 < figures[1]["bytes"] < figures[1]["of_bytes"]
    # Offsets are counted by age, and here the size decides.
    assert "offsets" not in figures[1] and "of_offsets" not in figures[1]
    assert figures[2]["bytes"] == figures[2]["of_bytes"] > 0 and figures[2]["offsets"] == 50
    apply(admin, gone(prefix, made.incarnation, 2))


def test_impact_of_an_override_that_a_block_brings(
    broker: Any, admin: KafkaSession, prefix: str
) -> None:
    """A new `kafka_topic_config` is measured like an update: its topic has records already."""
    (made,) = apply(admin, new(prefix))
    seen(admin, prefix)
    produce(broker, prefix, 20)
    after = FrozenMap(topic=prefix, config=FrozenMap({"retention.ms": "0"}))
    path = PathChange(("config", "retention.ms"), None, "0")
    identity = Identity("kafka", "kafka_topic_config", prefix)
    block = Change(identity, "kafka_topic_config.t", Action.CREATE, None, after, (path,))
    block = add_findings(block, *judge(block, admin.facts))
    assert admin.assess([block])[identity].figures["offsets"] == 20
    apply(admin, gone(prefix, made.incarnation))


def test_a_wrong_password_is_said_within_seconds_and_without_the_password(broker: Any) -> None:
    """The error names the broker, the cause and what to check, and shows no secret."""
    with pytest.raises(ConnectError) as caught:
        connect(broker, "admin", password="wrong-hunter2")
    assert broker.bootstrap in caught.value.message
    assert "wrong username or password (PLAIN, as admin)" in caught.value.message
    assert "sasl_password" in caught.value.advice
    assert "hunter2" not in caught.value.message


def test_an_unreachable_broker_is_said_within_seconds(broker: Any) -> None:
    """Nobody listens on port 1."""
    with pytest.raises(ConnectError, match="localhost:1"):
        connect(broker, "admin", servers=("localhost:1",))


def test_a_plain_connection_to_a_secured_listener_says_what_to_check(
    broker: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """The broker just hangs up, and the client writes nothing to the terminal about it."""
    with pytest.raises(ConnectError) as caught:
        connect(broker, "admin", protocol="PLAINTEXT", username=None, password=None)
    assert "security_protocol" in caught.value.advice
    out, err = capfd.readouterr()
    # A producer that another test left in this process may write about its own broker.
    lines = [line for line in err.splitlines() if "|kafkaform#producer-" not in line]
    assert (out, lines) == ("", [])
