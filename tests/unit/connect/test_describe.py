"""`describe connectors` and `explain connector`, for people and as JSON."""

from __future__ import annotations

import pytest
from msgspec import Struct

from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Identity,
    Observed,
    Sweep,
)
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer, PartnerReply
from kafkaform_connect.documents import add_reply
from kafkaform_kafka.commands import describe
from kafkaform_kafka.inspect import groups
from kafkaform_kafka.inspect.groups import GroupQuery
from kafkaform_kafka.protocol import acl
from kafkaform_kafka.protocol.cluster_facts import KafkaFacts
from kafkaform_kafka.provider import KafkaProvider

from ...kit.connect.folder import SECRET, ConnectFolder, connector
from .test_commands import TRACE

SINK = connector(
    "sink",
    **{"class": '"GuardedSink"'},
    config='{ topics = ["a", "b"], "errors.deadletterqueue.topic.name" = "dead" }',
    secret_config='{ pin = secret_env("CONNECT_SECRET") }',
)
LINES = connector("lines", config='{ topic = "orders", file = "/dev/null" }')


@pytest.fixture
def plant(folder: ConnectFolder) -> ConnectFolder:
    """A source, and a sink with a secret."""
    folder.declare(LINES, SINK)
    folder.here.done("apply", "-auto-approve")
    return folder


def list_described(folder: ConnectFolder, *words: str) -> list[str]:
    return [
        row["name"]
        for row in folder.here.json("describe", "connectors", *words, "--json")["connectors"]
    ]


def test_connectors_have_their_tasks(plant: ConnectFolder) -> None:
    """With the class as the workers know it, and where each task runs."""
    document = plant.here.json("describe", "connectors", "--json")
    assert (document["kind"], document["complete"]) == ("connectors", False)
    lines, sink = document["connectors"]
    assert (lines["name"], lines["type"], lines["state"]) == ("lines", "source", "RUNNING")
    assert (sink["name"], sink["type"], sink["cause"]) == ("sink", "sink", None)
    assert [(task["id"], task["state"]) for task in sink["tasks"]] == [(0, "RUNNING")]
    text = plant.here.done("describe", "connectors", "--tasks").text
    assert "2 connectors." in text and "Tasks of sink" in text and "1 of 1 run" in text
    assert "Others may be hidden" in text


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["sink"], ["sink"]),
        (["l*"], ["lines"]),
        (["--name", "*in*"], ["lines", "sink"]),
        (["--state", "running"], ["lines", "sink"]),
        (["--state", "FAILED"], []),
        (["--class", "Guarded*"], ["sink"]),
    ],
)
def test_names_and_filters_choose(plant: ConnectFolder, words: list[str], names: list[str]) -> None:
    """As with the other commands of `describe`."""
    assert list_described(plant, *words) == names


def test_a_name_that_is_none_is_an_error_after_the_others(plant: ConnectFolder) -> None:
    """With the nearest name."""
    said = plant.here.fails("describe", "connectors", "sink", "line")
    assert "1 connector." in said and "there is no connector line" in said
    said = plant.here.fails("explain", "connector", "line")
    assert "there is no connector line" in said and 'Did you mean "lines"?' in said
    assert "exclude each other" in plant.here.fails("describe", "connectors", "a", "--name", "b")


def test_a_failed_task_says_why_without_its_secret(plant: ConnectFolder) -> None:
    """The first line of its trace and the last cause."""
    plant.find("sink").trace = TRACE
    for words in (("describe", "connectors"), ("explain", "connector", "sink")):
        text = " ".join(plant.here.done(*words).text.split())
        assert "task 0 of sink failed on worker" in text, text
        assert "Tolerance exceeded; caused by java.net.ConnectException" in text
        assert SECRET not in text
    assert "1 failed" in plant.here.done("describe", "connectors").text
    assert SECRET not in plant.here.done("explain", "connector", "sink", "--json").text
    # Kafka Connect calls a connector running whose tasks have failed.
    assert list_described(plant, "--state", "RUNNING") == ["lines", "sink"]


def test_a_sink_is_explained_with_its_rights(plant: ConnectFolder) -> None:
    """Its topics, its group and the topic for what fails, and whose login needs rights on them."""
    document = plant.here.json("explain", "connector", "sink", "--json")
    uses = {(row["resource_type"], row["name"]): row["rights"] for row in document["uses"]}
    assert uses == {
        ("topic", "a"): ["Read"],
        ("topic", "b"): ["Read"],
        ("topic", "dead"): ["Write"],
        ("group", "connect-sink"): ["Read"],
    }
    assert (document["group"], document["principal"]) == ("connect-sink", None)
    assert document["lag"]["records"] is None
    assert 'no provider "kafka" block leads to' in document["lag"]["unknown"]
    assert "pin" not in str(document)
    plant.declare(LINES, SINK, provider='  worker_principal = "User:connect"')
    text = plant.here.done("explain", "connector", "sink").text
    assert "User:connect, the login of the workers, needs these rights for it:" in text
    assert 'Which of them it lacks is unknown: no provider "kafka" block leads to' in text


def test_a_source_is_explained_without_a_group(plant: ConnectFolder) -> None:
    """It writes, and nobody has a lag."""
    document = plant.here.json("explain", "connector", "lines", "--json")
    assert [(row["name"], row["rights"]) for row in document["uses"]] == [("orders", ["Write"])]
    assert (document["group"], document["lag"], document["further"]) == (None, None, [])


def test_what_no_config_names_is_said(folder: ConnectFolder) -> None:
    """A pattern stands for topics that can come and go."""
    folder.declare(
        connector("all", **{"class": '"GuardedSink"'}, config='{ "topics.regex" = "shop[.].*" }')
    )
    folder.here.done("apply", "-auto-approve")
    document = folder.here.json("explain", "connector", "all", "--json")
    assert [row["name"] for row in document["uses"] if row["pattern"]] == ["shop[.].*"]
    assert document["further"] == []


class ClusterSession(Struct, frozen=True):
    """As much of a session of Kafka as the command line needs."""

    facts: Facts
    acls: Sweep | None = None

    def sweep(self, kind: str, _: Depth) -> Sweep:
        assert self.acls is not None and kind == self.acls.kind
        return self.acls

    def close(self) -> None:
        """Nothing is open."""


def test_the_lag_comes_from_the_cluster_of_the_workers(
    plant: ConnectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block that leads there is asked, and one that leads nowhere hides nothing."""
    blocks = ("", '  alias = "other"\n', '  alias = "own"\n')
    text = 'provider "kafka" {{\n{}  bootstrap_servers = ["k:1"]\n}}\n'
    plant.here.write("kafka.kf.hcl", "".join(map(text.format, blocks)))
    ids = {"kafka.other": "another-cluster", "kafka.own": plant.workers.cluster_id}
    opened: list[str] = []

    def open_session(_: KafkaProvider, instance: str, *__: object) -> ClusterSession:
        opened.append(instance)
        if instance not in ids:
            raise ConnectError("k:1 does not answer")
        return ClusterSession(Facts(ids[instance]))

    def read_groups(source: ClusterSession, query: GroupQuery) -> Answer:
        assert source.facts.scope_id == plant.workers.cluster_id
        row = {"lag": 7, "lag_complete": False, "state": "Stable", "member_count": 1}
        groups = tuple(FrozenMap(name=name, **row, error=None) for name in query.exact)
        return Answer(FrozenMap(groups=groups))

    monkeypatch.setattr(KafkaProvider, "open", open_session)
    monkeypatch.setattr(describe, "open_source", lambda session: session)
    monkeypatch.setattr(groups, "read_groups", read_groups)
    text = plant.here.done("explain", "connector", "sink").text
    assert "at least 7 records; the group is Stable with 1 member" in text
    assert opened == ["kafka", "kafka.other", "kafka.own"]
    ids.clear()
    assert "unknown: k:1 does not answer" in plant.here.done("explain", "connector", "sink").text


@pytest.mark.parametrize(
    ("group", "lag"),
    [
        (
            {"lag": 12, "lag_complete": True, "state": "Stable", "member_count": 1, "error": None},
            {"records": 12, "complete": True, "state": "Stable", "members": 1, "unknown": None},
        ),
        (
            {"error": FrozenMap(code="X", message="Describe is missing", advice="")},
            {"records": None, "complete": False, "unknown": "Describe is missing"},
        ),
    ],
)
def test_the_lag_is_that_of_the_group(group: dict[str, object], lag: dict[str, object]) -> None:
    """As `describe groups` has it, and unknown if the cluster does not say it."""
    answer = PartnerReply(FrozenMap(groups=(FrozenMap(group),)))
    document = FrozenMap(group="connect-sink", lag=None, principal=None)
    assert add_reply(document, answer)["lag"] == FrozenMap(lag)
    assert add_reply(document, PartnerReply(reason="no way"))["lag"]["unknown"] == "no way"


def test_missing_rights_are_computed(plant: ConnectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the ACLs of the workers' cluster, for a source as well; without all ACLs, nothing is
    called missing."""
    plant.here.write("kafka.kf.hcl", 'provider "kafka" {\n  bootstrap_servers = ["k:1"]\n}\n')
    acls = [
        acl.Acl("User:connect", "*", *words, "Literal")
        for words in (
            ("Read", "Allow", "Topic", "a"),
            ("Write", "Allow", "Topic", "orders"),
            ("All", "Allow", "Group", "connect-sink"),
        )
    ]
    coverage = Coverage(CoverageKind.COMPLETE)

    def open_session(*_: object) -> ClusterSession:
        values = KafkaFacts(authorizer_settings=())
        items = tuple(
            Observed(Identity("kafka", acl.KIND, item.key), item.attributes) for item in acls
        )
        facts = Facts(plant.workers.cluster_id, values=values)
        return ClusterSession(facts, Sweep(acl.KIND, Depth.FULL, items, coverage))

    monkeypatch.setattr(KafkaProvider, "open", open_session)
    monkeypatch.setattr(describe, "open_source", lambda session: session)
    monkeypatch.setattr(groups, "read_groups", lambda *_: Answer(FrozenMap(groups=())))
    plant.declare(LINES, SINK, provider='  worker_principal = "User:connect"')
    text = plant.here.done("explain", "connector", "sink").text
    assert "It lacks: Read on Topic b Write on Topic dead" in " ".join(text.split())
    assert "It has all of them." in plant.here.done("explain", "connector", "lines").text
    acls.clear()
    document = plant.here.json("explain", "connector", "lines", "--json")
    assert document["missing_rights"] == [{"right": "Write on Topic orders", "doubt": None}]
    coverage = Coverage(CoverageKind.VISIBLE_ONLY)
    document = plant.here.json("explain", "connector", "lines", "--json")
    assert document["missing_rights"] is None
    assert document["rights_unknown"] == "this login may not see all of them"
