"""What `describe groups` makes of the answers of brokers."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.provider.commands import Answer
from kafkaform.render.text import render_page
from kafkaform_kafka.commands.describe import ask_groups
from kafkaform_kafka.inspect.groups import GroupQuery, groups_page, read_groups

from .....kit.kafka.scripted_wire import LOST, TOO_OLD, script

HAS = {"error_code": 0}


def assignment(topic: str, *partitions: int) -> bytes:
    """A ConsumerProtocolAssignment."""
    name = topic.encode()
    head = struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, len(partitions))
    return head + struct.pack(f">{len(partitions)}i", *partitions) + struct.pack(">i", -1)


def listed(*groups: tuple[str, str, str]) -> dict[str, Any]:
    """The answer to ListGroups. groups: name, type, state."""
    rows = [
        {"group_id": name, "protocol_type": "consumer", "group_state": state, "group_type": type_}
        for name, type_, state in groups
    ]
    return {**HAS, "groups": rows}


def topics(**leaders: tuple[int, ...]) -> Any:
    """How brokers answer Metadata. leaders: topic -> broker of partition 0, 1, …"""

    def answer(request: Any) -> dict[str, Any]:
        return {"topics": [_describe(each.name) for each in request.topics]}

    def _describe(name: str) -> dict[str, Any]:
        if name == "hidden":
            return {"name": name, "error_code": 29, "partitions": []}
        if name not in leaders:
            return {"name": name, "error_code": 3, "partitions": []}
        parts = [
            {
                "partition_index": number,
                "leader_id": leader,
                "replica_nodes": [1],
                "isr_nodes": [1],
                "offline_replicas": [],
            }
            for number, leader in enumerate(leaders[name])
        ]
        return {**HAS, "name": name, "partitions": parts}

    return {"": answer}


def committed(group: str, **offsets: dict[int, int]) -> dict[str, Any]:
    """One group of an OffsetFetch answer. offsets: topic -> partition -> offset."""
    rows = [
        {
            "name": topic,
            "partitions": [
                {"partition_index": n, "committed_offset": offset, "committed_leader_epoch": 4}
                for n, offset in parts.items()
            ],
        }
        for topic, parts in offsets.items()
    ]
    return {**HAS, "group_id": group, "topics": rows}


def ends(request: Any) -> dict[str, Any]:
    """Every log ends at 100."""
    rows = [
        {
            "name": topic.name,
            "partitions": [
                {**HAS, "partition_index": part.partition_index, "offset": 100}
                for part in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"topics": rows}


CLASSIC = {
    **HAS,
    "group_id": "app",
    "group_state": "Stable",
    "protocol_type": "consumer",
    "protocol_data": "range",
    "members": [
        {
            "member_id": "m-1",
            "client_id": "c-1",
            "client_host": "/192.0.2.7",
            "group_instance_id": "i-1",
            "member_assignment": assignment("orders", 0, 1),
        }
    ],
}
ONE_GROUP = {
    "ListGroups": {"": listed(("app", "Classic", "Stable"))},
    "DescribeGroups": {"": {"groups": [CLASSIC]}},
    "OffsetFetch": {"": {"groups": [committed("app", orders={0: 40, 1: 100})]}},
    "Metadata": topics(orders=(1, 1)),
    "ListOffsets": {"": ends},
}


def describe(answers: Any, nodes: tuple[str, ...] = ("1",), **query: Any) -> Answer:
    source, _ = script(answers, nodes)
    return read_groups(source, GroupQuery(**query))


def page(answer: Answer) -> str:
    return "\n".join(render_page(groups_page(answer.document)))


def test_lag_is_what_lies_between_the_committed_offset_and_the_end() -> None:
    """Per partition, with the member that reads it, and in total."""
    answer = describe(ONE_GROUP, members=True, offsets=True)
    (group,) = answer.document["groups"]
    assert answer.fault is None
    assert (group["type"], group["state"], group["assignor"]) == ("classic", "Stable", "range")
    assert (group["lag"], group["lag_complete"], group["topics"]) == (60, True, ("orders",))
    assert [
        (row["partition"], row["committed_offset"], row["end_offset"], row["lag"], row["member_id"])
        for row in group["offsets"]
    ] == [(0, 40, 100, 60, "m-1"), (1, 100, 100, 0, "m-1")]
    (member,) = group["members"]
    assert (member["host"], member["instance_id"]) == ("192.0.2.7", "i-1")
    assert member["assignment"][0]["partitions"] == (0, 1)
    text = page(answer)
    assert "c-1     192.0.2.7  i-1       m-1     orders 0,1" in text
    assert "orders          0         40  100   60      4  c-1" in text


def test_a_group_alone_is_shown_without_members_and_offsets() -> None:
    """The list has one line for each group, and says what Kafka leaves out without a word."""
    text = page(describe(ONE_GROUP))
    assert text.splitlines()[1].split() == ["app", "classic", "Stable", "1", "1", "60", "orders"]
    assert "Members of" not in text and "Offsets of" not in text
    assert "Others may be hidden: Kafka leaves out the offsets of topics" in text
    source, _ = script(ONE_GROUP, rights=())
    hidden = read_groups(source, GroupQuery()).document["hidden"]
    assert "groups that this principal may not describe" in hidden


def test_a_broker_without_an_answer_makes_the_list_incomplete() -> None:
    """Its groups are missing: the page says so, and the command fails after it has shown it."""
    answers = {**ONE_GROUP, "ListGroups": {**ONE_GROUP["ListGroups"], "2": LOST}}
    answer = describe(answers, ("1", "2"))
    assert [group["name"] for group in answer.document["groups"]] == ["app"]
    (gap,) = answer.document["gaps"]
    assert (gap["broker"], gap["code"]) == (2, "CLIENT_TIMED_OUT")
    assert isinstance(answer.fault, KafkaformError) and "incomplete" in str(answer.fault)
    assert "Incomplete: the groups of broker 2 are missing: no answer to ListGroups" in page(answer)


def test_without_any_broker_there_is_no_list() -> None:
    """An empty list would mean that there are no groups."""
    with pytest.raises(KafkaformError, match="no answer to ListGroups"):
        describe({**ONE_GROUP, "ListGroups": {"": LOST}})


def test_groups_that_no_broker_coordinates_are_missing() -> None:
    """A partition of Kafka's own topic without a leader is a gap in every list."""
    answer = describe(
        {**ONE_GROUP, "Metadata": topics(orders=(1, 1), __consumer_offsets=(1, -1, -1))}
    )
    assert "2 of 3 partitions of __consumer_offsets have no leader" in page(answer)
    assert answer.fault is not None


def test_a_group_that_we_may_not_describe_is_shown_as_unknown() -> None:
    """Who may describe the cluster sees its name; members and lag are unknown and not none."""
    denied = {"error_code": 30, "group_id": "app"}
    answer = describe(
        {
            **ONE_GROUP,
            "DescribeGroups": {"": {"groups": [{**CLASSIC, "error_code": 30, "members": []}]}},
            "OffsetFetch": {"": {"groups": [{**denied, "topics": []}]}},
        },
        members=True,
        offsets=True,
    )
    (group,) = answer.document["groups"]
    unknown = ("member_count", "lag", "topics", "members", "offsets")
    assert [group[name] for name in unknown] == [None] * 5
    assert group["state"] == "Stable"
    assert "grant Describe on Group app" in group["error"]["advice"]
    assert "app: a right on the group is missing" in page(answer)
    assert answer.fault is not None and "1 group could not be read in full" in str(answer.fault)


@pytest.mark.parametrize(
    ("code", "nodes", "told"),
    [
        (69, ("1",), "there is no such group"),
        (16, ("1",), "there is no such group"),
        (30, ("1",), "a right on the group is missing"),
        (16, ("1", "2"), "but the list is incomplete"),
    ],
    ids=["gone", "elsewhere", "hidden", "incomplete"],
)
def test_a_named_group_that_is_not_listed(code: int, nodes: tuple[str, ...], told: str) -> None:
    """It does not exist only if it could have been seen; the others are shown all the same."""
    answers = {
        **ONE_GROUP,
        "ListGroups": {"": listed(("app", "Classic", "Stable")), "2": LOST},
        "DescribeGroups": {
            "": lambda request: {
                "groups": [
                    CLASSIC
                    if name == "app"
                    else {**CLASSIC, "group_id": name, "error_code": code, "members": []}
                    for name in request.groups
                ]
            }
        },
    }
    answer = describe(answers, nodes, exact=("app", "nope"))
    assert [group["name"] for group in answer.document["groups"]] == ["app", "nope"]
    assert answer.document["groups"][0]["lag"] == 60
    assert told in str(answer.fault) and 'group "nope"' in str(answer.fault)


def test_what_is_wrong_with_an_offset() -> None:
    """Gone and hidden topics, missing partitions and leaders are told apart, and the total is a
    lower bound."""
    offsets = committed(
        "app", orders={0: 40, 1: 0, 2: 101, 9: 5}, gone={0: 1}, hidden={0: 1}, silent={0: 1}
    )
    answer = describe(
        {
            **ONE_GROUP,
            "OffsetFetch": {"": {"groups": [offsets]}},
            "Metadata": topics(orders=(1, -1, 1), silent=(2,)),
            "ListOffsets": {"": ends, "2": LOST},
        },
        offsets=True,
    )
    (group,) = answer.document["groups"]
    assert {(row["topic"], row["partition"]): row["problem"] for row in group["offsets"]} == {
        ("gone", 0): "topic_missing",
        ("hidden", 0): "topic_hidden",
        ("orders", 0): None,
        ("orders", 1): "no_leader",
        ("orders", 2): "ahead_of_end",
        ("orders", 9): "partition_missing",
        ("silent", 0): "no_end_offset",
    }
    assert (group["lag"], group["lag_complete"]) == (60, False)
    text = page(answer)
    assert "at least 60" in text and "the topic is gone" in text and "and 1 more" in text


def test_a_partition_without_a_committed_offset_has_no_lag() -> None:
    """Where its member begins is decided by the member: neither 0 nor the whole log is true."""
    answer = describe(
        {**ONE_GROUP, "OffsetFetch": {"": {"groups": [committed("app")]}}}, offsets=True
    )
    (group,) = answer.document["groups"]
    assert [(row["committed_offset"], row["lag"]) for row in group["offsets"]] == [(None, None)] * 2
    assert (group["lag"], group["lag_complete"]) == (None, False)


@pytest.mark.parametrize(
    ("change", "protocol"),
    [
        ({"group_state": "PreparingRebalance"}, "consumer"),
        ({"protocol_type": "connect"}, "connect"),
    ],
)
def test_an_assignment_that_nobody_tells_is_unknown(change: dict[str, Any], protocol: str) -> None:
    """During a rebalance, and in groups of Kafka Connect: members do not look idle."""
    group = {**CLASSIC, **change, "members": [{**CLASSIC["members"][0], "member_assignment": b""}]}
    answers = {
        **ONE_GROUP,
        "ListGroups": {"": listed(("app", "Classic", change.get("group_state", "Stable")))},
        "DescribeGroups": {"": {"groups": [group]}},
    }
    answers["ListGroups"][""]["groups"][0]["protocol_type"] = protocol
    answer = describe(answers, members=True)
    (found,) = answer.document["groups"]
    assert found["members"][0]["assignment"] is None and found["member_count"] == 1
    assert "nothing" not in page(answer)


def test_only_what_groups_do_with_a_topic() -> None:
    """--topic leaves out other groups, and other topics of the group."""
    other = committed("app", orders={0: 90}, payments={0: 10})
    answers = {
        **ONE_GROUP,
        "OffsetFetch": {"": {"groups": [other]}},
        "Metadata": topics(orders=(1, 1), payments=(1,)),
    }
    (group,) = describe(answers, topic="pay*").document["groups"]
    assert (group["topics"], group["lag"]) == (("payments",), 90)
    assert describe(answers, topic="nobody").document["groups"] == ()


def test_filters_need_no_request_for_other_groups() -> None:
    """Only the groups of that state and type are described."""
    answers = {
        **ONE_GROUP,
        "ListGroups": {
            "": listed(
                ("app", "Classic", "Stable"), ("b", "Classic", "Empty"), ("c", "Share", "Stable")
            )
        },
    }
    source, wire = script(answers)
    found = read_groups(source, GroupQuery(states=("Stable",), types=("classic",))).document
    assert [group["name"] for group in found["groups"]] == ["app"]
    (asked,) = (request for api, _, request in wire.sent if api == "DescribeGroups")
    assert asked.groups == ["app"]


def test_requests_have_a_limited_size() -> None:
    """A hundred groups in one request, and each at the broker that coordinates them."""
    names = [f"g-{number:03}" for number in range(250)]

    def answer(request: Any) -> dict[str, Any]:
        return {"groups": [{**CLASSIC, "group_id": name} for name in request.groups]}

    source, wire = script(
        {
            **ONE_GROUP,
            "ListGroups": {
                "1": listed(*((name, "Classic", "Stable") for name in names[:150])),
                "2": listed(*((name, "Classic", "Stable") for name in names[150:])),
            },
            "DescribeGroups": {"": answer},
            "OffsetFetch": {
                "": lambda request: {
                    "groups": [committed(row.group_id, orders={0: 1}) for row in request.groups]
                }
            },
        },
        ("1", "2"),
    )
    found = read_groups(source, GroupQuery()).document["groups"]
    assert [(row["name"], row["lag"]) for row in found] == [(name, 99) for name in names]
    asked = [
        (node, len(request.groups))
        for api, node, request in wire.sent
        if api in ("DescribeGroups", "OffsetFetch")
    ]
    assert sorted(asked) == [("1", 50)] * 2 + [("1", 100)] * 2 + [("2", 100)] * 2


def test_groups_of_the_newer_protocols() -> None:
    """Each type is described by its own request; a share group's lag is the cluster's own."""
    mine = {"topic_partitions": [{"topic_name": "orders", "partitions": [0]}]}
    member = {
        "member_id": "m",
        "client_id": "c",
        "client_host": "/h",
        "member_epoch": 1,
        "subscribed_topic_names": ["orders"],
        "assignment": mine,
    }
    group = {**HAS, "group_state": "Stable", "group_epoch": 3, "members": [member]}
    tasks = [{"subtopology_id": "0", "partitions": [1, 0]}]
    streams = {
        "member_id": "s",
        "client_id": "c",
        "client_host": "/h",
        "assignment": {"active_tasks": tasks, "standby_tasks": [], "warmup_tasks": []},
    }
    share = {
        "group_id": "sh",
        "topics": [
            {
                "topic_name": "orders",
                "partitions": [
                    {**HAS, "partition_index": 0, "start_offset": 10, "leader_epoch": 0, "lag": 7},
                    {**HAS, "partition_index": 1, "start_offset": -1, "leader_epoch": 0, "lag": -1},
                ],
            }
        ],
    }
    answer = describe(
        {
            **ONE_GROUP,
            "ListGroups": {
                "": listed(
                    ("co", "Consumer", "Stable"), ("sh", "Share", "Stable"), ("st", "Streams", "")
                )
            },
            "ConsumerGroupDescribe": {
                "": {"groups": [{**group, "group_id": "co", "assignor_name": "uniform"}]}
            },
            "ShareGroupDescribe": {
                "": {"groups": [{**group, "group_id": "sh", "assignor_name": "simple"}]}
            },
            "StreamsGroupDescribe": {
                "": {
                    "groups": [
                        {
                            **group,
                            "group_id": "st",
                            "group_state": "NotReady",
                            "members": [streams],
                            "topology": {"subtopologies": [{"source_topics": ["clicks"]}]},
                        }
                    ]
                }
            },
            "OffsetFetch": {
                "": {"groups": [committed("co", orders={0: 1}), committed("st", orders={0: 98})]}
            },
            "DescribeShareGroupOffsets": {"": {"groups": [{**HAS, **share}]}},
        },
        members=True,
        offsets=True,
    )
    assert answer.fault is None
    found = {group["name"]: group for group in answer.document["groups"]}
    assert (found["co"]["lag"], found["co"]["assignor"], found["co"]["epoch"]) == (99, "uniform", 3)
    assert [
        (row["start_offset"], row["lag"], row["member_id"]) for row in found["sh"]["offsets"]
    ] == [(10, 7, None), (None, None, None)]
    assert (found["sh"]["lag"], found["sh"]["lag_complete"]) == (7, False)
    assert (found["st"]["state"], found["st"]["topics"]) == ("NotReady", ("clicks", "orders"))
    assert found["st"]["members"][0]["tasks"]["active"] == ("0_0", "0_1")
    text = page(answer)
    assert "active 0_0,0_1" in text and "Start" in text


def test_brokers_before_kafka_3_8_do_not_list_types() -> None:
    """What DescribeGroups knows is classic; a group of the preview of KIP-848 is unknown, although
    that request calls it dead."""
    answers = {
        **ONE_GROUP,
        "ListGroups": {"": listed(("app", "", "Stable"), ("new", "", "Stable"))},
        "DescribeGroups": {
            "": {
                "groups": [
                    CLASSIC,
                    {**HAS, "group_id": "new", "group_state": "Dead", "members": []},
                ]
            }
        },
        "OffsetFetch": {"": {"groups": [committed("app", orders={0: 1}), committed("new")]}},
    }
    answer = describe(answers)
    known, new = answer.document["groups"]
    assert (known["type"], known["member_count"]) == ("classic", 1)
    assert (new["type"], new["member_count"], new["state"]) == (None, None, "Stable")
    assert "Kafka 3.8" in new["error"]["advice"]


def test_an_old_broker_is_named_with_the_version_that_it_lacks() -> None:
    """In plain words: which request, and since when there is one."""
    answers = {
        **ONE_GROUP,
        "ListGroups": {"": listed(("sh", "Share", "Stable"))},
        "ShareGroupDescribe": {"": TOO_OLD},
        "DescribeShareGroupOffsets": {"": TOO_OLD},
    }
    (group,) = describe(answers).document["groups"]
    assert "does not support ShareGroupDescribe, which needs Kafka 4.1" in group["error"]["message"]


def test_a_group_that_ends_while_it_is_described() -> None:
    """It is dead and has no error; so nobody looks for a fault."""
    gone = {**CLASSIC, "error_code": 69, "group_state": "", "members": []}
    answer = describe(
        {
            **ONE_GROUP,
            "DescribeGroups": {"": {"groups": [gone]}},
            "OffsetFetch": {"": {"groups": [committed("app")]}},
        }
    )
    (group,) = answer.document["groups"]
    assert (group["state"], group["member_count"], group["error"]) == ("Dead", 0, None)
    assert answer.fault is None


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"state": ["stabel"]}, 'Did you mean "Stable"?'),
        ({"type_": ["x"]}, "classic, consumer, share, streams"),
        ({"names": [""]}, "no group has an empty name"),
    ],
)
def test_typing_errors(typed: dict[str, Any], told: str) -> None:
    """They are found before anything connects."""
    with pytest.raises(UsageError) as error:
        ask_groups(**typed)
    assert told in f"{error.value} {error.value.advice}"
