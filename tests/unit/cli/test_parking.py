"""`lifecycle { park }` on a simulated cluster: access goes first, the object a week later."""

from __future__ import annotations

import time

import pytest

from kafkaform.core.clock import SystemClock
from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster, refused_items
from kafkaform_kafka.protocol.acl import parse_acl_key

from ...kit.commands.here import Here

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
KEPT = 'resource "kafka_topic" "kept" {\n  name = "kept"\n}\n'
LIFECYCLE = '  lifecycle {\n    prevent_destroy = false\n    park            = "7d"\n  }\n'
TOPIC = f'resource "kafka_topic" "orders" {{\n  name = "orders"\n{LIFECYCLE}}}\n'
PROTECTED = TOPIC.replace("    prevent_destroy = false\n", "")
REMOVED = "removed {\n  from = kafka_topic.orders\n  lifecycle {\n    destroy = true\n  }\n}\n"
DENIED = {f"User:*|*|{operation}|Deny|Topic|orders|Literal" for operation in ("Read", "Write")}
DAY = 86_400


def make_user(mechanism: str) -> str:
    return (
        f'resource "kafka_user_scram_credential" "app{mechanism[-3:]}" {{\n  username = "app"\n'
        f'  scram_mechanism = "{mechanism}"\n  password = secret_env("PW")\n{LIFECYCLE}}}\n'
    )


class Days:
    """The clock of all commands, which a test can turn."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> float:
        return time.time() + self.passed * DAY


@pytest.fixture
def days(monkeypatch: pytest.MonkeyPatch) -> Days:
    made = Days()
    monkeypatch.setattr(SystemClock, "now", staticmethod(made.now))
    return made


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """An empty cluster, which every command reaches."""
    made = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(made))
    monkeypatch.setenv("PW", "a-password-of-the-test")
    return made


@pytest.fixture
def there(here: Here, cluster: SimulatedCluster, days: Days) -> Here:
    """A folder whose topic `orders` is to be parked."""
    here.write("provider.kf.hcl", PROVIDER)
    apply(here, TOPIC)
    return here


def apply(there: Here, text: str, *flags: str) -> str:
    there.write("main.kf.hcl", KEPT + text)
    return there.done("apply", "--auto-approve", *flags).out


def list_topics(cluster: SimulatedCluster) -> set[str]:
    return {*cluster.world.of("kafka_topic")}


def list_acls(cluster: SimulatedCluster) -> set[str]:
    return {*cluster.world.of("kafka_acl")}


def test_access_goes_first_and_the_topic_a_week_later(
    there: Here, cluster: SimulatedCluster, days: Days
) -> None:
    output = apply(there, "")
    assert "the first apply that runs 7 d after that deletes it" in " ".join(output.split())
    assert list_acls(cluster) == DENIED
    days.passed = 6.9
    output = apply(there, "")
    assert "it is parked since" in output
    assert "orders" in list_topics(cluster)
    days.passed = 7.1
    output = apply(there, "")
    assert list_topics(cluster) == {"kept"}
    assert not list_acls(cluster)
    lines = [line for line in output.splitlines() if "applied" in line]
    # Nobody can write to the topic before it is gone.
    assert "kafka_topic.orders" in lines[0]
    assert "No changes" in there.done("plan").out


def test_a_parked_topic_is_no_work(there: Here) -> None:
    """Neither a change nor a failure: pipelines stay green while it waits."""
    apply(there, "")
    assert there.run("plan", "--detailed-exitcode").code == 0
    assert "1 blocked" in there.done("plan").out


def test_the_block_that_comes_back_gives_the_access_back(
    there: Here, cluster: SimulatedCluster, days: Days
) -> None:
    apply(there, "")
    days.passed = 8
    output = apply(there, TOPIC)
    assert "what it parks is declared again" in output
    assert list_topics(cluster) == {"kept", "orders"}
    assert not list_acls(cluster)
    days.passed = 9
    apply(there, "")
    assert "orders" in list_topics(cluster), "the time begins anew"


def test_the_time_begins_anew_if_somebody_gives_the_access_back(
    there: Here, cluster: SimulatedCluster, days: Days
) -> None:
    apply(there, "")
    days.passed = 8
    cluster.commit({("kafka_acl", min(DENIED)): None})
    apply(there, "")
    assert list_acls(cluster) == DENIED
    assert "orders" in list_topics(cluster)
    days.passed = 14
    apply(there, "")
    assert "orders" in list_topics(cluster)
    days.passed = 15.1
    apply(there, "")
    assert list_topics(cluster) == {"kept"}


def test_a_clock_that_goes_back_deletes_nothing(
    there: Here, cluster: SimulatedCluster, days: Days
) -> None:
    apply(there, "")
    days.passed = -400
    apply(there, "")
    assert "orders" in list_topics(cluster)


def test_a_protected_topic_is_not_parked(there: Here, cluster: SimulatedCluster) -> None:
    apply(there, PROTECTED)
    apply(there, "")
    assert not list_acls(cluster)


def test_a_removed_block_is_needed_only_until_it_is_parked(
    there: Here, cluster: SimulatedCluster, days: Days
) -> None:
    """The approval of the parking is that of the deletion."""
    apply(there, PROTECTED)
    apply(there, REMOVED)
    assert list_acls(cluster) == DENIED
    apply(there, "")
    assert list_acls(cluster) == DENIED
    days.passed = 7.1
    apply(there, "")
    assert list_topics(cluster) == {"kept"}


def test_a_removed_block_without_destroy_gives_the_access_back(
    there: Here, cluster: SimulatedCluster
) -> None:
    apply(there, "")
    apply(there, REMOVED.replace("true", "false"))
    assert "orders" in list_topics(cluster)
    assert not list_acls(cluster)


@pytest.mark.parametrize("parked", [True, False])
def test_accept_deletes_at_once(there: Here, cluster: SimulatedCluster, parked: bool) -> None:
    if parked:
        apply(there, "")
    output = apply(there, "", "--accept", "object-parked=kafka_topic.orders")
    assert list_topics(cluster) == {"kept"}
    assert not list_acls(cluster)
    text = "deleted before its time is over" if parked else "without being parked first"
    assert text in " ".join(output.split())


def test_destroy_parks_too(there: Here, cluster: SimulatedCluster, days: Days) -> None:
    flags = ("--target", "kafka_topic.orders", "--confirm", cluster.id)
    there.done("destroy", *flags)
    assert "orders" in list_topics(cluster)
    assert list_acls(cluster) == DENIED
    days.passed = 7.1
    there.done("destroy", *flags)
    assert list_topics(cluster) == {"kept"}
    assert not list_acls(cluster)


def test_a_target_includes_what_takes_the_access(there: Here, cluster: SimulatedCluster) -> None:
    apply(there, "", "--target", "kafka_topic.orders")
    assert list_acls(cluster) == DENIED


def test_a_topic_that_is_gone_leaves_nothing_behind(there: Here, cluster: SimulatedCluster) -> None:
    apply(there, "")
    cluster.outside.delete("orders")
    apply(there, "")
    assert not list_acls(cluster)


def test_a_saved_plan_parks_and_deletes(there: Here, cluster: SimulatedCluster, days: Days) -> None:
    there.write("main.kf.hcl", KEPT)
    for passed in (0.0, 7.1):
        days.passed = passed
        there.done("plan", "--out", "saved.json")
        there.done("apply", "saved.json", "--auto-approve")
    assert list_topics(cluster) == {"kept"}
    assert not list_acls(cluster)


def test_a_refresh_leaves_it_parked(there: Here, cluster: SimulatedCluster) -> None:
    apply(there, "")
    there.done("apply", "--refresh-only", "--auto-approve")
    assert list_acls(cluster) == DENIED
    assert 'kafka_topic.orders/park["Read"]' in there.done("state", "list").out


def test_a_user_can_do_nothing_before_its_login_goes(
    there: Here, cluster: SimulatedCluster, days: Days
) -> None:
    apply(there, make_user("SCRAM-SHA-256"))
    apply(there, "")
    acls = [parse_acl_key(key) for key in list_acls(cluster) if key not in DENIED]
    assert {acl.principal for acl in acls} == {"User:app"}
    assert {acl.operation for acl in acls} == {"All"}
    assert {acl.resource_type for acl in acls} == {"Topic", "Group", "Cluster", "TransactionalID"}
    assert cluster.world.of("kafka_user_scram_credential")
    days.passed = 7.1
    apply(there, "")
    assert not cluster.world.of("kafka_user_scram_credential")
    assert not list_acls(cluster)


def test_a_user_that_keeps_another_login_is_not_locked_out(
    there: Here, cluster: SimulatedCluster
) -> None:
    both = TOPIC + make_user("SCRAM-SHA-256") + make_user("SCRAM-SHA-512")
    apply(there, both)
    there.write("main.kf.hcl", KEPT + TOPIC + make_user("SCRAM-SHA-512"))
    plan = there.run("plan")
    assert plan.code == 8
    assert '"app" keeps another credential' in " ".join(plan.out.split())
    assert "kafka_acl" not in plan.out
    apply(there, both)
    apply(there, TOPIC)
    assert len(list_acls(cluster)) == 4, "both credentials go, so one set of rules serves both"


def _use_days(text: str) -> str:
    return TOPIC.replace('"7d"', text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_use_days('"soon"'), '"park" is not a time'),
        (_use_days('"0d"'), "must be between 1 ms and 3650 days"),
        (_use_days('"-1"'), "must be between 1 ms and 3650 days"),
        (_use_days('"4000d"'), "must be between 1 ms and 3650 days"),
        (
            f'resource "kafka_quota" "q" {{\n  user = "a"\n  config = {{}}\n{LIFECYCLE}}}\n',
            "A kafka_quota cannot be parked",
        ),
    ],
)
def test_wrong_values_are_told(here: Here, text: str, message: str) -> None:
    here.write("provider.kf.hcl", PROVIDER)
    here.write("main.kf.hcl", text)
    result = here.run("validate")
    assert result.code == 1
    assert message in result.text
    assert "main.kf.hcl:" in result.text


def test_the_time_is_recorded_shown_and_changed(there: Here) -> None:
    assert "7 d (604800000)" in there.done("state", "show", "kafka_topic.orders").out
    output = apply(there, _use_days('"30d"'))
    assert "park" in output
    assert "30 d" in output
    assert "No changes" in there.done("plan").out


def test_a_cluster_without_access_rules_parks_nothing(
    there: Here, cluster: SimulatedCluster
) -> None:
    for api in ("ListAcls", "DescribeAcls"):
        cluster.faults.schedule(refused_items(54), api, times=100)
    there.write("main.kf.hcl", KEPT)
    plan = there.run("plan")
    assert plan.code == 8, "what somebody asks for is not done"
    assert "it cannot be parked" in plan.out
    assert "object-not-parkable" in plan.out
    assert "kafka_acl" not in plan.out
    apply(there, "", "--accept", "object-parked")
    assert list_topics(cluster) == {"kept"}


def test_an_unreadable_topic_stays_parked(there: Here, cluster: SimulatedCluster) -> None:
    """A read that failed gives no access back."""
    apply(there, "")
    cluster.faults.schedule(refused_items(29), "DescribeTopics", times=100)
    there.run("apply", "--auto-approve")
    assert list_acls(cluster) == DENIED
