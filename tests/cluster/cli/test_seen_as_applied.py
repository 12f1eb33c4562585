"""An apply ends with 0 only for what the brokers show: configs that a broker keeps, rights that the
run takes from itself, and configs that brokers report although nobody sets them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kio.static.primitive import i8

from kafkaform.core.progress import ignore_event
from kafkaform.sandbox import Sandbox, brokers, lifecycle
from kafkaform.sandbox.process import is_alive

from ...conftest import Broker
from ...kit.commands.folder import Folder
from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.logins import finish, new_login
from ...kit.proxy.frames import Asked, answer, answered
from ...kit.proxy.proxy import Proxy, proxying
from ...kit.proxy.rewrite import error

UNKNOWN_TOPIC = 3
OWN, TOPIC = 1, 2
"""The source of a topic's own configs, and the type of the resource, in the protocol."""
UNSET = ("compression.type", "max.message.bytes", "retention.bytes", "segment.bytes", "segment.ms")
KEPT = "60000"


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    """A broker that is restarted."""
    with own_sandbox("seen-as-applied") as box:
        yield box


@pytest.fixture
def broker(box: Sandbox) -> Broker:
    return Broker(box.bootstrap, box.cluster_id, box.admin_password)


def restart(folder: Folder, box: Sandbox) -> Sandbox:
    """Stop the broker in order and start it again; the sandbox with the new process."""
    (broker,) = box.brokers
    assert broker.process is not None
    os.kill(broker.process.pid, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while is_alive(broker.process):
        assert time.monotonic() < deadline, "the broker does not stop"
        time.sleep(0.1)
    runtime = lifecycle._find_runtime(box.make_options(), ignore_event)
    box = brokers._launch_broker(box, broker, runtime)
    folder.until(lambda: folder.run("describe", "cluster").code == 0)
    return box


def test_configs_of_a_deleted_topic_that_come_back(folder: Folder, box: Sandbox) -> None:
    """Somebody created a topic with configs and deleted it; ours has the same name. After a restart
    the broker shows the old configs and takes their removal for done. The apply repairs that."""
    name = f"{folder.prefix}a"
    finish(
        lambda: folder.admin.create_topics(
            [NewTopic(name, 1, 1, config={"retention.ms": KEPT, "segment.ms": "70000"})]
        )
    )
    folder.until(lambda: "a" in folder.topics())
    finish(lambda: folder.admin.delete_topics([name]))
    folder.until(lambda: "a" not in folder.topics())
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    folder.done("plan", "--detailed-exitcode")
    box = restart(folder, box)
    assert "retention.ms" in folder.fails(2, "plan", "--detailed-exitcode")
    assert folder.config("a")["retention.ms"] == KEPT
    said = folder.done("apply", "-auto-approve")
    assert "stayed without effect on 1 object" in said.text
    assert "1 changed" in said.out
    assert folder.config("a")["retention.ms"] != KEPT
    steps = [row["body"]["step"].rpartition("#")[2] for row in folder.records("intent")]
    assert steps[-3:] == ["2", "2~set", "2~remove"]
    folder.done("plan", "--detailed-exitcode")
    folder.done("audit", "verify")
    restart(folder, box)
    folder.done("plan", "--detailed-exitcode")


@pytest.fixture
def proxy(broker: Broker, folder: Folder) -> Iterator[Proxy]:
    """Before the broker, with the folder connected to it."""
    with proxying(int(broker.bootstrap.rpartition(":")[2])) as proxy:
        folder.connect(bootstrap=proxy.bootstrap)
        yield proxy


@dataclass
class Lag:
    """A broker that shows one topic more in each second. names: in the order in which it shows
    them; most: what it shows at most."""

    names: tuple[str, ...]
    most: int
    begun: float = 0.0

    def __call__(self, request: Asked, data: bytes) -> bytes:
        if request.api == "CreateTopics" and not request.dry:
            self.begun = time.monotonic()
        if request.api != "Metadata" or not self.begun:
            return data
        shown = self.names[: min(int(time.monotonic() - self.begun), self.most)]
        body = answer(request, data)
        rows = tuple(
            row
            if row.name in shown or row.name not in self.names
            else replace(row, error_code=error(UNKNOWN_TOPIC), partitions=())
            for row in body.topics
        )
        return answered(request, replace(body, topics=rows))


def test_a_broker_is_waited_for_as_long_as_it_makes_progress(folder: Folder, proxy: Proxy) -> None:
    """With a time limit of 3 s, 8 s of progress are waited for. One that stops to make progress
    ends the run with 6; the next one looks again, and changes nothing."""
    block = (folder.path / "provider.kf.hcl").read_text()
    folder.write("provider.kf.hcl", block.replace('"5s"', '"3s"'))
    keys = [f"t{number}" for number in range(8)]
    names = tuple(folder.prefix + key for key in keys)
    proxy.tamper = Lag(names, len(names))
    folder.declare(*keys)
    assert "applied, not yet visible" not in folder.done("apply", "-auto-approve").text
    proxy.tamper = None
    more = [f"u{number}" for number in range(4)]
    folder.declare(*keys, *more)
    lag = Lag(tuple(folder.prefix + key for key in more), 2)
    proxy.tamper = lag
    said = folder.run("apply", "-auto-approve")
    assert said.code == 6, said.text
    assert "kafka_topic.u3: applied, not yet visible on broker 1" in said.text
    assert "2 objects were applied, but not every live broker shows them as applied" in said.text
    intents = len(folder.records("intent"))
    lag.most = len(more)
    said = folder.done("apply", "-auto-approve")
    assert "No changes" in said.text
    assert len(folder.records("intent")) == intents
    assert folder.records("verify")[-1]["body"]["invisible"] == []


def report_unset(request: Asked, data: bytes) -> bytes:
    """Five configs that nobody sets are marked as overrides, as some brokers do."""
    if request.api != "DescribeConfigs":
        return data
    body = answer(request, data)
    results = tuple(
        replace(
            result,
            configs=tuple(
                replace(row, config_source=i8(OWN)) if row.name in UNSET else row
                for row in result.configs
            ),
        )
        if result.resource_type == TOPIC
        else result
        for result in body.results
    )
    return answered(request, replace(body, results=results))


def test_configs_that_brokers_report_although_nobody_sets_them(
    folder: Folder, proxy: Proxy
) -> None:
    """Their removal is sent once. Then neither they nor those of a new topic are a difference, and
    a real change of one of them is."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    proxy.tamper = report_unset
    assert all(key in folder.fails(2, "plan", "--detailed-exitcode") for key in UNSET)
    folder.done("apply", "-auto-approve")
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    assert "outside" not in folder.done("plan", "--detailed-exitcode").text
    sent = [row["body"]["key"][-1] for row in folder.records("intent")]
    assert sent == ["a", "a", "b"]
    folder.alter("a", "segment.ms", "70000")
    told = folder.fails(2, "plan", "--detailed-exitcode")
    assert "segment.ms" in told and "segment.bytes" not in told
    folder.done("apply", "-auto-approve")
    folder.done("plan", "--detailed-exitcode")


def test_a_right_that_is_gone_when_the_apply_looks(
    broker: Broker, folder: Folder, proxy: Proxy
) -> None:
    """It is named, with operation, resource and principal; the change itself is applied."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    name = f"{folder.prefix}a"
    with new_login(broker) as user:
        place = (ResourceType.TOPIC, name, ResourcePatternType.LITERAL, user.principal, "*")
        needed = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
        acls = [AclBinding(*place, operation, AclPermissionType.ALLOW) for operation in needed]
        finish(lambda: folder.admin.create_acls(acls))
        seen = AclBindingFilter(*place, AclOperation.DESCRIBE, AclPermissionType.ALLOW)

        def revoke(request: Asked, data: bytes) -> bytes:
            if request.api == "IncrementalAlterConfigs" and not request.dry:
                finish(lambda: folder.admin.delete_acls([seen]))
            return data

        folder.connect(user, bootstrap=proxy.bootstrap)
        proxy.tamper = revoke
        folder.declare("a", more=f'config = {{ "retention.ms" = "{KEPT}" }}')
        said = folder.run("apply", "-auto-approve")
    assert said.code == 6, said.text
    gone = f"{user.principal} no longer has the right Describe on Topic {name}"
    assert f"kafka_topic.a was applied, but cannot be seen: {gone}" in said.text
    assert "not yet visible" not in said.text
    assert folder.config("a")["retention.ms"] == KEPT
