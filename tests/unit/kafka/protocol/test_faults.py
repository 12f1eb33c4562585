"""The error table: every code has a class, and the class says what happened to the request."""

from __future__ import annotations

import pytest

from kafkaform.core.resource import FaultClass
from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.protocol.faults import (
    code_name,
    error_codes,
    fault_of,
    lost_answer_fault,
    not_sent_fault,
)

EFFECTS = [
    ("CreateTopics", 7, FaultClass.AMBIGUOUS),
    ("CreateTopics", 41, FaultClass.AMBIGUOUS),
    ("CreateTopics", -1, FaultClass.AMBIGUOUS),
    ("CreateTopics", 89, FaultClass.NOT_APPLIED),
    ("CreateTopics", 36, FaultClass.CONVERGED),
    ("CreateTopics", 37, FaultClass.DEFINITE),
    ("CreatePartitions", 37, FaultClass.CONVERGED),
    ("CreatePartitions", 36, FaultClass.DEFINITE),
    ("DeleteTopics", 3, FaultClass.CONVERGED),
    ("DeleteTopics", 100, FaultClass.CONVERGED),
    ("DeleteTopics", 73, FaultClass.DEFINITE),
    ("IncrementalAlterConfigs", 3, FaultClass.DEFINITE),
    ("IncrementalAlterConfigs", 40, FaultClass.DEFINITE),
    ("IncrementalAlterConfigs", 44, FaultClass.DEFINITE),
    ("DeleteTopics", 29, FaultClass.PERMISSION),
    ("CreateTopics", 9999, FaultClass.AMBIGUOUS),
    ("OffsetCommit", 22, FaultClass.DEFINITE),
    ("CreateTopics", 23, FaultClass.AMBIGUOUS),
]


@pytest.mark.parametrize(("api", "code", "kind"), EFFECTS)
def test_an_error_says_what_happened(api: str, code: int, kind: FaultClass) -> None:
    """A code is judged by the request that it answers, and unknown ones are never "nothing"."""
    assert fault_of(api, code, "orders").kind is kind


def test_the_table_has_every_code_of_the_protocol() -> None:
    """Codes -1 and 1 to 133 are all there, with distinct names and a meaning."""
    assert sorted(error_codes()) == [-1, *range(1, 134)]
    assert len({code.name for code in error_codes().values()}) == len(error_codes())
    assert all(code.meaning for code in error_codes().values())


def test_every_definite_admin_error_of_a_topic_says_what_to_do() -> None:
    """An error that a topic request can return comes with advice."""
    answers = (3, 17, 29, 36, 37, 38, 39, 40, 41, 42, 44, 60, 73, 89, 100, 7, -1)
    assert all(fault_of("CreateTopics", code, "orders").advice for code in answers)


def test_a_missing_right_is_named_with_the_object() -> None:
    """The advice names the very ACL that is missing."""
    fault = fault_of("CreatePartitions", 29, "orders")
    assert "Alter on Topic orders" in fault.advice
    create = fault_of("CreateTopics", 29, "orders")
    assert "Create on Cluster" in create.advice


def test_the_brokers_own_words_are_passed_on() -> None:
    """A policy's message reaches the user as the policy wrote it."""
    assert (
        "names start with team-"
        in fault_of("CreateTopics", 44, "x", "names start with team-").message
    )


def test_no_guess_is_added_to_what_the_broker_says() -> None:
    """ "Unable to replicate the partition 3 time(s)" was followed by a cause that was wrong."""
    for code in (38, 40, 42, 44):
        fault = fault_of("CreateTopics", code, "x", "said by the broker")
        assert fault.message.endswith(": said by the broker")
        assert "likely cause" in fault_of("CreateTopics", code, "x").message


def test_a_dump_of_the_brokers_objects_is_not_passed_on() -> None:
    """A refusal that prints the request as Java does says no more than its code."""
    message = "Request Request(processor=2, connectionId=x) needs DESCRIBE permission."
    fault = fault_of("DescribeAcls", 31, "", message)
    assert (
        fault.message
        == f"a right on the cluster is missing (likely cause: {error_codes()[31].cause})"
    )
    assert "Describe on Cluster" in fault.advice


def test_only_a_request_that_did_nothing_is_worth_waiting_for() -> None:
    """The throttle time of an answer counts for the throttled item and for no other."""
    assert fault_of("CreateTopics", 89, "x", wait=2.5).retry_after == 2.5
    assert fault_of("CreateTopics", 7, "x", wait=2.5).retry_after is None


@pytest.mark.parametrize("api", ["CreateTopics", "CreatePartitions", "DeleteTopics"])
def test_a_throttled_request_is_refused_for_now_even_without_a_time(api: str) -> None:
    """KIP-599: the quota can be refilled before the broker has sent its answer."""
    assert fault_of(api, 89, "x").is_for_now
    others = [fault_of(api, code, "x", wait=2.5) for code in error_codes() if code != 89]
    assert not any(fault.is_for_now for fault in others)


def test_a_lost_answer_is_ambiguous_and_an_unsent_request_is_not() -> None:
    """A request that left may have worked; one that never left has not."""
    assert lost_answer_fault("CreateTopics", "socket closed").kind is FaultClass.AMBIGUOUS
    assert not_sent_fault("CreateTopics", "no broker").kind is FaultClass.NOT_APPLIED


def test_converged_codes_exist() -> None:
    """Each exception to the table refers to a code of the table."""
    assert {code for api in APIS.values() for code in api.converged} <= set(error_codes())


def test_a_code_newer_than_the_table_still_has_a_name() -> None:
    """An unknown code is shown by its number."""
    assert code_name(4242) == "ERROR_4242"
