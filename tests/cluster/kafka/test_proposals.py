"""`propose placement` on three real brokers in three racks, beside Kafka's own tool."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.errors import KafkaformError
from kafkaform_kafka.connection.settings import make_librdkafka_config
from kafkaform_kafka.inspect.documents import open_source
from kafkaform_kafka.kinds.topic import placement, replica_moves
from kafkaform_kafka.kinds.topic.placement import Assignment
from kafkaform_kafka.placement.proposal import read_layout
from kafkaform_kafka.session import KafkaSession

from ...kit.commands.process_folder import Folder
from ...kit.kafka.java_tools import REASSIGN, run_tool, write_admin_properties
from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import connect, eventually, login
from .test_placement import done

PATIENCE = 300.0
"""Seconds; only a computer that does too much at once needs them."""
OUT = "placement_override.kf.hcl"
Place = tuple[str, int]
"""Topic and partition."""


@pytest.fixture(scope="module")
def three(own_brokers: None) -> Iterator[Any]:
    """Three brokers in racks r1, r2 and r3, for this file alone."""
    name = f"tests-proposals-{os.getpid()}"
    options = sandbox.SandboxOptions(name, brokers=3, ready_within=PATIENCE)
    try:
        yield sandbox.up(options, count_brokers)
    finally:
        sandbox.down(name)


@pytest.fixture
def session(three: Any) -> Iterator[KafkaSession]:
    """The super user, at all three; what a test that fails leaves throttled is freed."""
    opened = connect(three, "admin", servers=tuple(three.bootstrap.split(",")))
    yield opened
    for broker in "123":
        place = placement.ThrottlePlace("broker", broker, placement.RATES, "")
        replica_moves.alter_throttle(opened.context, place, {}, placement.RATES)
    opened.close()


@pytest.fixture
def admin(three: Any) -> Iterator[AdminClient]:
    """Every proposal weighs all topics, so that those of a test are gone after it."""
    client = AdminClient(make_librdkafka_config(login(three, "admin")))
    yield client

    def list_own() -> list[str]:
        return [name for name in client.list_topics(timeout=30).topics if name[:2] != "__"]

    if names := list_own():
        client.delete_topics(names)
    assert eventually(list_own, lambda left: not left, PATIENCE) == []


@pytest.fixture
def folder(three: Any, tmp_path: Path) -> Folder:
    """A configuration folder whose provider names all three."""
    servers = three.bootstrap.replace(",", '", "')
    return Folder(tmp_path, servers, three.admin_password)


def fill(three: Any, name: str, partitions: int) -> None:
    """100 kB that do not compress for each partition."""
    producer = Producer(make_librdkafka_config(login(three, "admin")))
    for number in range(partitions):
        producer.produce(name, os.urandom(100_000), partition=number)
    assert producer.flush(PATIENCE) == 0


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
    fill(three, "orders", 6)
    folder.write(ORDERS % COUNTS, SHOP)
    done(folder.apply())


def propose(folder: Folder, *words: str) -> dict[str, Any]:
    """The document of a proposal. Notes stand beside it."""
    lines = done(folder.run("propose", "placement", "--json", *words)).splitlines()
    found: dict[str, Any] = json.loads(next(line for line in lines if line[:1] == "{"))
    return found


def await_balance(folder: Folder, *words: str) -> dict[str, Any]:
    """The document of the proposal that moves nothing, as soon as the broker that is asked knows
    what the others know."""
    return eventually(
        lambda: propose(folder, *words), lambda found: found["partitions"] == [], PATIENCE
    )


def settle(session: KafkaSession, fits: Callable[[Mapping[str, Assignment]], bool]) -> None:
    """Wait until no replica moves any more, and replicas are where they should be. A broker can
    know an earlier past when it is asked."""

    def read() -> tuple[bool, Mapping[str, Assignment]]:
        seen = read_layout(open_source(session)).topics
        return any(topic.moving for topic in seen), {topic.name: topic.rows for topic in seen}

    eventually(read, lambda seen: not seen[0] and fits(seen[1]), PATIENCE)


def count_loads(rows: Iterable[Sequence[int]]) -> Counter[int]:
    """Broker -> replicas."""
    return Counter(broker for row in rows for broker in row)


def test_a_proposal_is_written_planned_applied_and_then_balanced(
    folder: Folder, three: Any, session: KafkaSession, admin: AdminClient
) -> None:
    """From a broker without replicas to a balanced cluster, without a line edited by hand."""
    # So that the plan says how long the moves take.
    text = 'provider "kafka" {\n  reassignment_throttle = "50MiB"\n}\n'
    (folder.path / "throttle_override.kf.hcl").write_text(text, "utf-8")
    crowd(folder, three)
    before = (folder.path / "main.kf.hcl").read_text("utf-8")
    said = done(folder.run("propose", "placement", "--out", OUT))
    assert "Moves 4 partitions" in said and f"Wrote {OUT}." in said
    assert "kafka_topic.orders" in said
    plan = folder.run("plan", "-detailed-exitcode", "--no-color")
    text = " ".join(plan.out.split())
    assert plan.code == 2
    assert "4 replicas copied, 4 replicas removed; the apply starts the move" in text
    assert "which takes at most" in text and "at the throttle of 50 MiB/s" in text
    assert "Plan: 0 to add, 1 to change, 0 to destroy." in text
    done(folder.apply())
    settle(session, lambda rows: set(count_loads(rows["orders"]).values()) == {4})
    again = await_balance(folder)
    assert again["bytes_copied"] == 0
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
    settle(
        session,
        lambda rows: {n for n in rows if 3 in count_loads(rows[n])} == {"theirs"},
    )
    await_balance(folder, "--drain", "3")
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
    create(admin, "foreign", *[[1, 2]] * 6)
    folder.write()
    found = propose(folder, "--undeclared")
    assert len(found["partitions"]) >= 4
    file = tmp_path / "moves.json"
    file.write_text(json.dumps(found), "utf-8")
    asked = ("--reassignment-json-file", str(file))
    said = run_tool(write_admin_properties(three, tmp_path), REASSIGN, *asked, "--execute")
    assert "Successfully started partition reassignments" in said
    wanted = read_moves(json.dumps(found))
    settle(session, lambda rows: all(rows[t][n] == tuple(row) for (t, n), row in wanted.items()))
    await_balance(folder, "--undeclared")


def count_bytes(session: KafkaSession, rows: Mapping[Place, list[int]]) -> int:
    """The bytes that it takes to bring the replicas there."""
    total = 0
    for topic in read_layout(open_source(session)).topics:
        for number, (row, size) in enumerate(zip(topic.rows, topic.sizes, strict=True)):
            after = rows.get((topic.name, number), row)
            total += (size or 0) * len(set(after) - set(row))
    return total


def count_replicas(
    session: KafkaSession, names: Collection[str], rows: Mapping[Place, list[int]]
) -> list[int]:
    """Replicas of these topics on each broker after the moves."""
    seen = [topic for topic in read_layout(open_source(session)).topics if topic.name in names]
    found = count_loads(
        rows.get((topic.name, number), row)
        for topic in seen
        for number, row in enumerate(topic.rows)
    )
    return [found[broker] for broker in (1, 2, 3)]


def read_moves(text: str) -> dict[Place, list[int]]:
    document = json.loads(text)
    return {(row["topic"], row["partition"]): row["replicas"] for row in document["partitions"]}


@pytest.mark.parametrize("even", [False, True], ids=["a new broker", "balanced already"])
def test_fewer_bytes_than_kafkas_own_proposal(
    folder: Folder,
    three: Any,
    session: KafkaSession,
    admin: AdminClient,
    tmp_path: Path,
    even: bool,
) -> None:
    """kafka-reassign-partitions --generate places all replicas anew. Ours is as even within the
    band, and copies no more than a third of the replicas to a third broker, and nothing if all is
    even."""
    rows = [[1, 2], [2, 3], [3, 1]] if even else [[1, 2], [2, 1]]
    names = [f"{name}-{even}" for name in ("clicks", "logs", "orders")]
    for name in names:
        create(admin, name, *(rows * 6)[:12])
        fill(three, name, 12)
    folder.write()
    ours = propose(folder, "--undeclared", *names)
    file = tmp_path / "topics.json"
    topics = [{"topic": name} for name in names]
    file.write_text(json.dumps({"version": 1, "topics": topics}), "utf-8")
    asked = ("--topics-to-move-json-file", str(file), "--broker-list", "1,2,3", "--generate")
    said = run_tool(write_admin_properties(three, tmp_path), REASSIGN, *asked)
    theirs = read_moves(said.partition("Proposed partition reassignment configuration\n")[2])
    mine = read_moves(json.dumps(ours))
    figures = {
        who: (count_bytes(session, moves), count_replicas(session, names, moves))
        for who, moves in (("kafkaform", mine), ("kafka", theirs))
    }
    copied, loads = figures["kafkaform"]
    assert ours["bytes_copied"] == copied
    # Kafka's choice is random: now and then it gives the new broker too little.
    assert copied <= figures["kafka"][0] or max(loads) < max(figures["kafka"][1])
    assert ours["bytes_copied"] <= 1.1 * ours["bytes_total"] / 3 * (not even)
    assert max(loads) <= 1.1 * 24


def test_sizes_that_cannot_be_read_are_a_refusal(three: Any, admin: AdminClient) -> None:
    """Without Describe on Cluster, nothing is proposed, and the missing right is named."""
    create(admin, "hidden", [1, 2])
    stranger = connect(
        three, Login("ci", three.ci_password, "PLAIN"), servers=tuple(three.bootstrap.split(","))
    )
    try:
        with pytest.raises(KafkaformError) as refused:
            read_layout(open_source(stranger))
    finally:
        stranger.close()
    assert "Describe" in f"{refused.value.message} {refused.value.advice}"


def test_flags_instead_of_a_configuration(
    folder: Folder, three: Any, admin: AdminClient, tmp_path: Path
) -> None:
    """All topics can move; there is no block for a file to override."""
    create(admin, "anybodys", *[[1, 2]] * 6)
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
