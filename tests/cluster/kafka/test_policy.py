"""Policies of a cluster (KIP-108, KIP-133) and what else a broker forbids: its words arrive.

The policies are class files that the test writes itself, so no compiler is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.change import Action, Evidence, OutcomeStatus
from kafkaform.core.resource import FaultClass
from kafkaform.sandbox import lifecycle
from kafkaform_kafka.protocol.faults import fault_of
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.changes import change, topic
from ...kit.kafka.sessions import apply, batches, connect, eventually, new, preflight, read
from ...kit.kafka.versions import make_options
from .classfile import Rule, policy, write_jar
from .test_error_codes import ACL, FILTER, ask

CREATE, ALTER = "kftest/NoTemporaryTopics", "kftest/NoRetention"
CREATE_SAYS = "topics named tmp- are made by the platform team: see https://wiki/topics"
ALTER_SAYS = "retention.ms is 7 days for everybody here"
_PACKAGE = "org/apache/kafka/server/policy"
CLASSES = {
    CREATE: policy(
        CREATE,
        f"{_PACKAGE}/CreateTopicPolicy",
        Rule("topic", "java/lang/String", "startsWith", "(Ljava/lang/String;)Z", "tmp-"),
        CREATE_SAYS,
    ),
    ALTER: policy(
        ALTER,
        f"{_PACKAGE}/AlterConfigPolicy",
        Rule(
            "configs",
            "java/util/Map",
            "containsKey",
            "(Ljava/lang/Object;)Z",
            "retention.ms",
            interface=True,
        ),
        ALTER_SAYS,
    ),
}


@pytest.fixture(scope="module")
def strict(
    tmp_path_factory: pytest.TempPathFactory, own_brokers: None
) -> Iterator[sandbox.Sandbox]:
    """A broker with both policies, without an authorizer, on which nothing can be deleted."""
    jar = tmp_path_factory.mktemp("policies") / "policies.jar"
    write_jar(jar, CLASSES)
    config = (
        ("create.topic.policy.class.name", CREATE.replace("/", ".")),
        ("alter.config.policy.class.name", ALTER.replace("/", ".")),
        ("delete.topic.enable", "false"),
    )
    name = f"strict-{os.getpid()}"
    options = replace(make_options(name, config=config), classpath=(Path(jar),))
    with pytest.MonkeyPatch.context() as patch:
        logins = lifecycle.configuration._make_login_settings
        patch.setattr(
            lifecycle.configuration, "_make_login_settings", lambda box: _open(logins(box))
        )
        box = sandbox.up(options, count_brokers)
    yield box
    sandbox.down(name)


def _open(settings: Any) -> dict[str, str]:
    """The same logins, and nobody who asks what they may do."""
    return {**settings, "authorizer.class.name": ""}


@pytest.fixture
def session(strict: sandbox.Sandbox) -> Iterator[KafkaSession]:
    """A session on that broker."""
    opened = connect(strict, "admin")
    yield opened
    opened.close()


def test_a_policy_speaks_for_itself_in_the_dry_run(session: KafkaSession) -> None:
    """Error 44 is found before anything is sent, with the policy's own words, whole."""
    (verdict,) = preflight(session, new("tmp-orders"))
    assert verdict.fault is not None and verdict.evidence is Evidence.REMOTE
    assert (verdict.fault.code, verdict.fault.kind) == ("POLICY_VIOLATION", FaultClass.DEFINITE)
    assert CREATE_SAYS in verdict.fault.message
    assert "ask the cluster's operators" in verdict.fault.advice


def test_a_policy_speaks_for_itself_when_it_is_too_late(session: KafkaSession) -> None:
    """The same words, if somebody applies without a dry run."""
    (outcome,) = apply(session, new("tmp-orders"))
    assert outcome.status is OutcomeStatus.FAILED
    assert outcome.fault is not None and CREATE_SAYS in outcome.fault.message


def test_a_policy_on_configs_is_asked_too(session: KafkaSession) -> None:
    """AlterConfigPolicy sees alterations of topics, in the dry run and in earnest."""
    (made,) = apply(session, new("orders"))
    eventually(lambda: read(session, "orders"), lambda found: hasattr(found, "attributes"))
    other = {"max.message.bytes": "2000000"}
    wanted = topic("orders", config={"retention.ms": "1000"})
    alter = change(Action.UPDATE, topic("orders"), wanted, incarnation=made.incarnation)
    fine = change(
        Action.UPDATE, topic("orders"), topic("orders", config=other), incarnation=made.incarnation
    )
    (refused,), (allowed,) = preflight(session, alter), preflight(session, fine)
    assert refused.fault is not None and ALTER_SAYS in refused.fault.message
    assert allowed.fault is None
    (outcome,) = apply(session, alter)
    assert outcome.fault is not None and outcome.fault.code == "POLICY_VIOLATION"


def test_a_cluster_that_forbids_deletions_says_so(session: KafkaSession) -> None:
    """Error 73, and the fact that lets the plan say it before."""
    assert session.facts.recorded_values["delete_topic_enable"] is False
    body = {"topics": [{"name": "orders"}], "timeout_ms": 5000}
    ((code, message),) = ask(session, "DeleteTopics", body)
    assert code == 73
    assert "delete.topic.enable=true" in fault_of("DeleteTopics", code, "orders", message).advice


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("DescribeAcls", FILTER),
        ("CreateAcls", {"creations": [ACL]}),
        ("DeleteAcls", {"filters": [FILTER]}),
    ],
)
def test_a_cluster_without_an_authorizer_says_so(
    session: KafkaSession, api: str, body: dict[str, Any]
) -> None:
    """Error 54 is not "there are no ACLs"."""
    ((code, message),) = ask(session, api, body)
    assert code == 54
    fault = fault_of(api, code, "x", message)
    assert fault.kind is FaultClass.DEFINITE
    assert "configure an authorizer on the brokers" in fault.advice


def test_without_an_authorizer_no_right_is_missing(session: KafkaSession) -> None:
    """Everybody may do everything there, and the check beforehand says nothing else."""
    alter = change(Action.UPDATE, topic("orders"), topic("orders", partitions=9))
    steps = [step for batch in batches(session, [alter]) for step in batch.steps]
    assert session.examine(steps) == ()
