"""What `describe transactions` makes of the answers of brokers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.provider.commands import Answer
from kafkaform.render.text import render_page
from kafkaform_kafka.commands.describe import ask_transactions
from kafkaform_kafka.inspect.transactions import (
    TransactionQuery,
    find_hanging,
    hanging_page,
    read_transactions,
    transactions_page,
)

from .....kit.kafka.scripted_wire import LOST, TOO_OLD, script

HAS = {"error_code": 0}
MINUTE = 60_000


def ago(minutes: float) -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000 - minutes * MINUTE)


def listed(**states: str) -> dict[str, Any]:
    """The answer to ListTransactions. states: transactional id -> state; the producer's id is 7."""
    return {
        **HAS,
        "transaction_states": [
            {"transactional_id": name, "producer_id": 7, "transaction_state": state}
            for name, state in states.items()
        ],
    }


def described(name: str, state: str, minutes: float, **topics: list[int]) -> dict[str, Any]:
    """One transaction of an answer to DescribeTransactions."""
    return {
        **HAS,
        "transactional_id": name,
        "transaction_state": state,
        "producer_id": 7,
        "producer_epoch": 2,
        "transaction_timeout_ms": MINUTE,
        "transaction_start_time_ms": ago(minutes) if minutes else -1,
        "topics": [{"topic": topic, "partitions": parts} for topic, parts in topics.items()],
    }


NO_TOPIC = {"": {"topics": [{"name": "__transaction_state", "error_code": 3, "partitions": []}]}}


def make_two() -> dict[str, Any]:
    """An open transaction and one that has not begun. Its age counts from now."""
    return {
        "ListTransactions": {"": listed(old="Ongoing", new="Empty")},
        "DescribeTransactions": {
            "": {
                "transaction_states": [
                    described("old", "Ongoing", 20, orders=[1, 0]),
                    described("new", "Empty", 0),
                ]
            }
        },
        "Metadata": NO_TOPIC,
    }


def describe(answers: Any, nodes: tuple[str, ...] = ("1",), **query: Any) -> Answer:
    source, _ = script(answers, nodes)
    return read_transactions(source, TransactionQuery(**query))


def names(answer: Answer) -> list[str]:
    return [row["transactional_id"] for row in answer.document["transactions"]]


def test_transactions_with_their_age_and_partitions() -> None:
    """An open one has an age; one that has not begun has neither a start nor an age."""
    answer = describe(make_two())
    new, old = answer.document["transactions"]
    assert answer.fault is None
    assert 20 * MINUTE <= old["duration_ms"] < 30 * MINUTE and old["started"].endswith("Z")
    assert old["partitions"][0]["partitions"] == (0, 1)
    assert (old["producer_id"], old["producer_epoch"], old["coordinator"]) == (7, 2, 1)
    assert (new["started"], new["duration_ms"], new["partitions"]) == (None, None, ())
    text = "\n".join(render_page(transactions_page(answer.document)))
    assert "orders 0,1" in text and " 20" in text and "2 transactional ids." in text
    assert "Others may be hidden: Kafka leaves out transactional ids" in text


def test_filters() -> None:
    """By name, state, topic and age; the state is sent along."""
    source, wire = script({**make_two(), "ListTransactions": {"": listed(old="Ongoing")}})
    found = read_transactions(source, TransactionQuery(states=("Ongoing",)))
    assert names(found) == ["old"]
    (request,) = (request for api, _, request in wire.sent if api == "ListTransactions")
    assert request.state_filters == ["Ongoing"]
    assert names(describe(make_two(), name="n*")) == ["new"]
    assert names(describe(make_two(), topic="ord*")) == ["old"]
    assert names(describe(make_two(), older_than_ms=15 * MINUTE)) == ["old"]
    assert names(describe(make_two(), older_than_ms=25 * MINUTE)) == []


def test_a_transaction_that_cannot_be_read_passes_every_filter() -> None:
    """It can be what was asked for; the error says so."""
    denied = {**described("old", "", 0), "error_code": 53}
    answer = describe(
        {**make_two(), "DescribeTransactions": {"": {"transaction_states": [denied]}}},
        older_than_ms=MINUTE,
        name="old",
    )
    (row,) = answer.document["transactions"]
    assert (row["state"], row["partitions"]) == ("Ongoing", None)
    assert "grant Describe on TransactionalId old" in row["error"]["advice"]
    assert "1 transaction could not be read" in str(answer.fault)


def test_a_broker_without_an_answer_makes_the_list_incomplete() -> None:
    """Its transactions are missing, and the command fails."""
    answers = {**make_two(), "ListTransactions": {**make_two()["ListTransactions"], "2": LOST}}
    answer = describe(answers, ("1", "2"))
    assert names(answer) == ["new", "old"]
    assert answer.document["gaps"][0]["what"] == "the transactions of broker 2 are missing"
    assert "incomplete" in str(answer.fault)


def test_an_old_cluster_has_no_such_request() -> None:
    """The error names the request and the version."""
    with pytest.raises(KafkaformError, match="ListTransactions, which needs Kafka 3.0"):
        describe({**make_two(), "ListTransactions": {"": TOO_OLD}})


@pytest.mark.parametrize(
    ("code", "nodes", "told"),
    [
        (105, ("1",), "there is no such transactional id"),
        (53, ("1",), "a right on the transactional id is missing"),
        (105, ("1", "2"), "the list is incomplete"),
    ],
    ids=["gone", "hidden", "incomplete"],
)
def test_a_named_id_that_is_not_listed(code: int, nodes: tuple[str, ...], told: str) -> None:
    """It does not exist only if it could have been seen."""

    def answer(request: Any) -> Mapping[str, Any]:
        rows = [
            described("old", "Ongoing", 20, orders=[0])
            if name == "old"
            else {**described(name, "", 0), "error_code": code}
            for name in request.transactional_ids
        ]
        return {"transaction_states": rows}

    answers = {
        **make_two(),
        "ListTransactions": {"": listed(old="Ongoing"), "2": LOST},
        "DescribeTransactions": {"": answer},
    }
    found = describe(answers, nodes, exact=("old", "nope"))
    assert names(found) == ["nope", "old"]
    assert told in str(found.fault) and '"nope"' in str(found.fault)


# ── hanging transactions ────────────────────────────────────────────────────────────────


def partition(number: int, leader: int) -> dict[str, Any]:
    return {
        "partition_index": number,
        "leader_id": leader,
        "replica_nodes": [1],
        "isr_nodes": [1],
        "offline_replicas": [],
    }


def metadata(request: Any) -> dict[str, Any]:
    """`orders` has two partitions, `dark` has no leader."""
    rows = [
        {**HAS, "name": "orders", "partitions": [partition(0, 1), partition(1, 1)]},
        {**HAS, "name": "dark", "partitions": [partition(0, -1)]},
    ]
    return {"topics": rows if request.topics is None else NO_TOPIC[""]["topics"]}


def producers(offset: int = 40, minutes: float = 30, **more: Any) -> dict[str, Any]:
    """Partition 0 has a producer with an open transaction, partition 1 one without."""
    row = {
        "producer_id": 7,
        "producer_epoch": 2,
        "last_timestamp": ago(minutes),
        "coordinator_epoch": 0,
        "current_txn_start_offset": offset,
    }
    idle = {**row, "producer_id": 8, "current_txn_start_offset": -1}
    parts = [
        {**HAS, "partition_index": 0, "active_producers": [row], **more},
        {**HAS, "partition_index": 1, "active_producers": [idle]},
    ]
    return {"topics": [{"name": "orders", "partitions": parts}]}


HANGING = {
    "Metadata": {"": metadata},
    "DescribeProducers": {"": producers()},
    "ListTransactions": {"": listed()},
    "DescribeTransactions": {"": {"transaction_states": []}},
}


def hang(answers: Any, topic: str = "orders", nodes: tuple[str, ...] = ("1",)) -> Answer:
    source, _ = script(answers, nodes)
    return find_hanging(source, topic, 15 * MINUTE)


def test_a_transaction_that_no_coordinator_knows_hangs() -> None:
    """The page says how to end it."""
    answer = hang(HANGING)
    (row,) = answer.document["hanging"]
    assert (row["topic"], row["partition"], row["start_offset"]) == ("orders", 0, 40)
    assert (row["reason"], row["transactional_id"]) == ("no_transaction", None)
    assert answer.document["partitions_searched"] == 2 and answer.fault is None
    text = "\n".join(render_page(hanging_page(answer.document)))
    assert "no coordinator knows its producer" in text and "kafka-transactions.sh abort" in text
    assert "1 hanging transaction without a write for 15 min.\n2 partitions were searched." in text


@pytest.mark.parametrize(
    ("mine", "reason"),
    [
        (described("t", "Ongoing", 30, orders=[0]), None),
        (described("t", "PrepareAbort", 30, orders=[0]), None),
        (described("t", "Ongoing", 1, orders=[1]), "other_transaction"),
        (described("t", "CompleteAbort", 30), "other_transaction"),
        ({**described("t", "", 0), "error_code": 105}, "no_transaction"),
        ({**described("t", "", 0), "error_code": 53}, "undecided"),
    ],
)
def test_the_coordinator_decides(mine: dict[str, Any], reason: str | None) -> None:
    """What a coordinator will end does not hang, however old it is."""
    answer = hang(
        {
            **HANGING,
            "ListTransactions": {"": listed(t="Ongoing")},
            "DescribeTransactions": {"": {"transaction_states": [mine]}},
        }
    )
    assert [row["reason"] for row in answer.document["hanging"]] == [reason] * bool(reason)


def test_a_young_transaction_does_not_hang() -> None:
    """It may be that its coordinator has just heard of it."""
    assert (
        hang({**HANGING, "DescribeProducers": {"": producers(minutes=1)}}).document["hanging"] == ()
    )


@pytest.mark.parametrize("later", [producers(offset=-1), producers(offset=90)])
def test_a_transaction_that_ends_during_the_search_does_not_hang(later: dict[str, Any]) -> None:
    """Its partition is asked again after its coordinator."""
    answers = [producers(), later]
    answer = hang({**HANGING, "DescribeProducers": {"": lambda _: answers.pop(0)}})
    assert answer.document["hanging"] == () and not answers


def test_without_all_coordinators_it_is_undecided() -> None:
    """The coordinator of its producer can be the one that does not answer."""
    answers = {**HANGING, "ListTransactions": {"": listed(), "2": LOST}}
    answer = hang(answers, nodes=("1", "2"))
    assert [row["reason"] for row in answer.document["hanging"]] == ["undecided"]
    assert "the search for hanging transactions is incomplete" in str(answer.fault)


def test_partitions_that_were_not_searched_are_counted() -> None:
    """Those without a leader, and those that we may not read."""
    denied = producers(error_code=29, active_producers=[])
    answer = hang({**HANGING, "DescribeProducers": {"": denied}}, topic="*")
    assert [gap["what"] for gap in answer.document["gaps"]] == ["1 partition was not searched"] * 2
    assert "grant Read on Topic orders" in answer.document["gaps"][1]["advice"]
    assert answer.document["partitions_searched"] == 1 and answer.fault is not None


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"hanging": True, "ids": ["x"]}, "Narrow the search with --topic"),
        ({"older_than": -1}, "Give a number of minutes"),
        ({"state": ["ongoign"]}, 'Did you mean "Ongoing"?'),
        ({"ids": [""]}, "no transactional id is empty"),
    ],
)
def test_typing_errors(typed: dict[str, Any], told: str) -> None:
    """They are found before anything connects."""
    with pytest.raises(UsageError) as error:
        ask_transactions(**typed)
    assert told in f"{error.value} {error.value.advice}"
