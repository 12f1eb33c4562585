"""`propose placement` on three real brokers in three racks, beside Kafka's own tool."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.errors import KafkaformError
from kafkaform_kafka.connection.clients import native_config
from kafkaform_kafka.inspect.cluster_layout import read_layout
from kafkaform_kafka.session import KafkaSession

from ...kit.commands.process_folder import Folder
from ...kit.kafka.java_tools import REASSIGN, run_tool, write_admin_properties
from ...kit.kafka.sessions import connect, eventually, login
from .test_placement import done, fill, settled

OUT = "placement_override.kf.hcl"
Place = tuple[str, int]
"""Topic and partition."""


@pytest.fixture(scope="module")
def three(own_brokers: None) -> Iterator[Any]:
    """Three brokers in racks r1, r2 and r3, for this file alone."""
    name = f"tests-proposals-{os.getpid()}"
    try:
        yield sandbox.up(sandbox.SandboxOptions(name, brokers=3), count_brokers)
    finally:
        sandbox.down(name)


@pytest.fixture
def session(three: Any) -> Iterator[KafkaSession]:
    """The super user, at all three."""
    opened = connect(three, "admin", servers=tuple(three.bootstrap.split(",")))
    yield opened
    opened.close()


@pytest.fixture
def admin(three: Any) -> Iterator[AdminClient]:
    """Every proposal weighs all topics, so that those of a test are gone after it."""
    client = AdminClient(native_config(login(three, "admin")))
    yield client

    def list_own() -> list[str]:
        return [name for name in client.list_topics(timeout=30).topics if name[:2] != "__"]

    if names := list_own():
        client.delete_topics(names)
    assert eventually(list_own, lambda left: not left) == []


@pytest.fixture
def folder(three: Any, tmp_path: Path) -> Folder:
    """A configuration folder whose moves are throttled, so that plans say how long they take."""
    servers = three.bootstrap.replace(",", '", "')
    made = Folder(tmp_path, servers, three.admin_password, "3s")
    text = 'provider "kafka" {\n  reassignment_throttle = "50MiB"\n}\n'
    (tmp_path / "throttle_override.kf.hcl").write_text(text, "utf-8")
    return made


def create(admin: AdminClient, name: str, *rows: list[int]) -> None:
    """A topic that nobody declares, with its replicas on these brokers."""
    admin.create_topics([NewTopic(name, len(rows), replica_assignment=list(rows))])[name].result(60)


ORDERS = """\
resource "kafka_topic" "orders" {
  name = "orders"
  %s
}
"""
SHOP = """\
resource "kafka_topic" "shop" {
  for_each           = toset(["carts", "refunds"])
  name               = "shop.${each.key}"
  partitions         = 3
  replication_factor = 1
}
"""
COUNTS = "partitions = 6\n  replication_factor = 2"


def crowd(folder: Folder, three: Any) -> None:
    """Declare topics whose replicas are all on brokers 1 and 2, with data."""
    folder.write(ORDERS % "replica_assignment = [for n in range(6) : [1, 2]]")
    done(folder.apply())
    fill(three, "orders")
    folder.write(ORDERS % COUNTS, SHOP)
    done(folder.apply())


def propose(folder: Folder, *words: str) -> dict[str, Any]:
    """The document of a proposal."""
    found: dict[str, Any] = json.loads(done(folder.run("propose", "placement", "--json", *words)))
    return found


def settle(session: KafkaSession) -> None:
    """Wait until no replica moves."""
    eventually(
        lambda: read_layout(session.context), lambda seen: not any(t.moving for t in seen.topics)
    )


def test_a_proposal_is_written_planned_applied_and_then_balanced(
    folder: Folder, three: Any, session: KafkaSession, admin: AdminClient
) -> None:
    """From a broker without replicas to a balanced cluster, without a line edited by hand."""
    crowd(folder, three)
    before = (folder.path / "main.kf.hcl").read_text("utf-8")
    said = done(folder.run("propose", "placement", "--out", OUT))
    assert "Moves 4 partitions" in said and f"Wrote {OUT}." in said
    assert "kafka_topic.orders" in said
    plan = folder.run("plan", "-detailed-exitcode", "--no-color")
    assert plan.code == 2
    assert "replicas copied; the apply starts the move and does not wait" in plan.out
    assert "at the throttle of 50 MiB/s" in plan.out
    assert "0 to add, 1 to change, 0 to destroy" in plan.out or "to change" in plan.out
    done(folder.apply())
    settle(session)
    rows = settled(session, "orders", 2)
    loads = Counter(broker for row in rows for broker in row)
    assert set(loads.values()) == {4}
    again = propose(folder)
    assert again["partitions"] == [] and again["bytes_copied"] == 0
    assert again["evenness"]["replicas"]["after"] <= 10
    said = done(folder.run("propose", "placement", "--out", OUT))
    assert "already balanced" in said and "Nothing to write" in said
    done(folder.apply())
    done(folder.plan())
    assert (folder.path / "main.kf.hcl").read_text("utf-8") == before
    # Without the file, the replicas stay where they are.
    (folder.path / OUT).unlink()
    done(folder.plan())


def test_a_broker_is_drained(
    folder: Folder, three: Any, session: KafkaSession, admin: AdminClient
) -> None:
    """Declared topics leave it; what others have there is named, and moves if that is asked."""
    folder.write(
        ORDERS % "replica_assignment = [for n in range(6) : [1 + n % 3, 1 + (n + 1) % 3]]", SHOP
    )
    done(folder.apply())
    create(admin, "theirs", [3])
    said = done(folder.run("propose", "placement", "--drain", "3", "--out", OUT))
    assert "Broker 3 keeps 1 replica of theirs." in said
    done(folder.apply())
    settle(session)
    seen = read_layout(session.context)
    holders = {topic.name for topic in seen.topics for row in topic.rows if 3 in row}
    assert holders == {"theirs"}
    assert propose(folder, "--drain", "3")["partitions"] == []
    [change] = propose(folder, "--drain", "3", "--undeclared")["partitions"]
    assert (change["topic"], change["before"], change["declared"]) == ("theirs", [3], None)


def test_names_choose_what_moves(
    folder: Folder, three: Any, session: KafkaSession, admin: AdminClient
) -> None:
    """A glob leaves everything else where it is; a name that nothing has is a typing error."""
    crowd(folder, three)
    found = propose(folder, "shop.*", "--brokers", "3")
    assert {row["topic"] for row in found["partitions"]} == {"shop.carts", "shop.refunds"}
    assert {broker for row in found["partitions"] for broker in row["replicas"]} == {3}
    ended = folder.run("propose", "placement", "order")
    assert ended.code == 1 and "matches order" in ended.out


def test_kafkas_own_tool_executes_a_proposal(
    folder: Folder, three: Any, session: KafkaSession, admin: AdminClient, tmp_path: Path
) -> None:
    """For topics without a block, the document of --json is a file that the tool takes."""
    create(admin, "theirs", *[[1, 2]] * 6)
    folder.write()
    found = propose(folder, "--undeclared")
    assert len(found["partitions"]) >= 4
    file = tmp_path / "moves.json"
    file.write_text(json.dumps(found), "utf-8")
    asked = ("--reassignment-json-file", str(file))
    said = run_tool(write_admin_properties(three, tmp_path), REASSIGN, *asked, "--execute")
    assert "Successfully started partition reassignments" in said
    settle(session)
    assert propose(folder, "--undeclared")["partitions"] == []


def count_bytes(session: KafkaSession, rows: Mapping[Place, list[int]]) -> int:
    """The bytes that it takes to bring the replicas there."""
    total = 0
    for topic in read_layout(session.context).topics:
        for number, (row, size) in enumerate(zip(topic.rows, topic.sizes, strict=True)):
            after = rows.get((topic.name, number), row)
            total += (size or 0) * len(set(after) - set(row))
    return total


def count_replicas(session: KafkaSession, rows: Mapping[Place, list[int]]) -> list[int]:
    """Replicas of each broker after the moves."""
    found = Counter({1: 0, 2: 0, 3: 0})
    for topic in read_layout(session.context).topics:
        for number, row in enumerate(topic.rows):
            found.update(rows.get((topic.name, number), list(row)))
    return [found[broker] for broker in (1, 2, 3)]


def read_moves(text: str) -> dict[Place, list[int]]:
    document = json.loads(text)
    return {(row["topic"], row["partition"]): row["replicas"] for row in document["partitions"]}


def test_fewer_bytes_than_kafkas_own_proposal(
    folder: Folder, three: Any, session: KafkaSession, admin: AdminClient, tmp_path: Path
) -> None:
    """kafka-reassign-partitions --generate places all replicas anew. Ours is as even, and copies
    at most what it must: a third of the replicas for a third broker."""
    names = ["clicks", "logs", "orders"]
    for name in names:
        create(admin, name, *[[1, 2] if n % 2 else [2, 1] for n in range(12)])
        fill(three, name, partitions=12, megabytes=6)
    folder.write()
    ours = propose(folder, "--undeclared")
    file = tmp_path / "topics.json"
    topics = [{"topic": name} for name in names]
    file.write_text(json.dumps({"version": 1, "topics": topics}), "utf-8")
    asked = ("--topics-to-move-json-file", str(file), "--broker-list", "1,2,3", "--generate")
    said = run_tool(write_admin_properties(three, tmp_path), REASSIGN, *asked)
    theirs = read_moves(said.partition("Proposed partition reassignment configuration\n")[2])
    mine = read_moves(json.dumps(ours))
    figures = {
        who: (count_bytes(session, rows), count_replicas(session, rows))
        for who, rows in (("kafkaform", mine), ("kafka", theirs))
    }
    print(figures, ours["bytes_total"])
    assert ours["bytes_copied"] == figures["kafkaform"][0] <= figures["kafka"][0]
    assert ours["bytes_copied"] <= 1.1 * ours["bytes_total"] / 3
    assert max(figures["kafkaform"][1]) <= 1.1 * sum(figures["kafkaform"][1]) / 3


def test_sizes_that_cannot_be_read_are_a_refusal(three: Any, admin: AdminClient) -> None:
    """Without Describe on Cluster, nothing is proposed, and the missing right is named."""
    create(admin, "theirs", [1, 2])
    stranger = connect(three, "ci", servers=tuple(three.bootstrap.split(",")))
    try:
        with pytest.raises(KafkaformError) as refused:
            read_layout(stranger.context)
    finally:
        stranger.close()
    assert "Describe" in f"{refused.value.message} {refused.value.advice}"


def test_flags_instead_of_a_configuration(
    folder: Folder, three: Any, admin: AdminClient, tmp_path: Path
) -> None:
    """All topics can move; there is no block for a file to override."""
    create(admin, "theirs", *[[1, 2]] * 6)
    login_file = tmp_path / "client.properties"
    login_file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=admin\n"
        f"sasl.password={three.admin_password}\n",
        "utf-8",
    )
    flags = ("--bootstrap-server", three.bootstrap, "--command-config", str(login_file))
    said = done(folder.run("propose", "placement", *flags))
    assert "Moves 4 partitions" in said and "kafka-reassign-partitions.sh" in said
    ended = folder.run("propose", "placement", *flags, "--out", OUT)
    assert ended.code == 1 and "flags name the system" in ended.out
