"""Messages that kafka-python does not have, read and written as another implementation does."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.consumer_group_describe import v0 as consumer_0
from kio.schema.consumer_group_describe import v1 as consumer_1
from kio.schema.describe_share_group_offsets import v0 as offsets_0
from kio.schema.describe_share_group_offsets import v1 as offsets_1
from kio.schema.errors import ErrorCode
from kio.schema.share_group_describe import v1 as share_1
from kio.schema.streams_group_describe import v0 as streams_0
from kio.serial import entity_reader, entity_writer

from kafkaform_kafka.wire import groups

NO_TIME: Any = timedelta(0)
ID: Any = UUID(int=7)


def encode(message: Any) -> bytes:
    """The bytes of a message as kio writes it."""
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (groups.ConsumerGroupDescribeRequest, consumer_0.ConsumerGroupDescribeRequest),
        (groups.ConsumerGroupDescribeRequest, consumer_1.ConsumerGroupDescribeRequest),
        (groups.ShareGroupDescribeRequest, share_1.ShareGroupDescribeRequest),
        (groups.StreamsGroupDescribeRequest, streams_0.StreamsGroupDescribeRequest),
    ],
)
def test_requests_for_groups(ours: Any, theirs: Any) -> None:
    """Another implementation reads them as they were meant."""
    request = ours(group_ids=["a", "b"], include_authorized_operations=False)
    data = request.encode(version=int(theirs.__version__))
    assert data == encode(theirs(group_ids=("a", "b"), include_authorized_operations=False))


@pytest.mark.parametrize("version", [offsets_0, offsets_1])
def test_a_request_for_all_offsets_of_a_share_group(version: Any) -> None:
    """No list of topics means all of them, and an empty list none."""
    row = groups.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    request = groups.DescribeShareGroupOffsetsRequest(groups=[row(group_id="g", topics=None)])
    kind = version.DescribeShareGroupOffsetsRequest
    data = request.encode(version=int(kind.__version__))
    found, _ = entity_reader(kind)(bytes(data), 0)
    assert (found.groups[0].group_id, found.groups[0].topics) == ("g", None)


@pytest.mark.parametrize("version", [consumer_0, consumer_1])
def test_groups_of_the_consumer_protocol(version: Any) -> None:
    """Versions 0 and 1, which adds the type of a member (KIP-1099)."""
    mine = version.response.Assignment(
        topic_partitions=(
            version.response.TopicPartitions(topic_id=ID, topic_name="t", partitions=(0, 3)),
        )
    )
    more = {"member_type": 1} if version is consumer_1 else {}
    member = version.response.Member(
        member_id="m",
        instance_id="i",
        rack_id=None,
        member_epoch=2,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("t",),
        subscribed_topic_regex=None,
        assignment=mine,
        target_assignment=mine,
        **more,
    )
    group = version.response.DescribedGroup(
        error_code=ErrorCode.none,
        error_message=None,
        group_id="g",
        group_state="Stable",
        group_epoch=5,
        assignment_epoch=5,
        assignor_name="uniform",
        members=(member, member),
        authorized_operations=-1,
    )
    sent = version.ConsumerGroupDescribeResponse(throttle_time=NO_TIME, groups=(group, group))
    answer = groups.ConsumerGroupDescribeResponse.decode(
        encode(sent), version=int(sent.__version__)
    )
    first, second = answer.groups
    assert (first.group_id, first.group_epoch, first.assignor_name) == ("g", 5, "uniform")
    assert second.members[1].assignment.topic_partitions[0].partitions == [0, 3]
    assert (second.members[1].instance_id, second.members[1].rack_id) == ("i", None)


def test_share_groups() -> None:
    """The stable version of KIP-932."""
    kinds: Any = share_1.response
    mine = kinds.Assignment(
        topic_partitions=(kinds.TopicPartitions(topic_id=ID, topic_name="t", partitions=(1,)),)
    )
    member = kinds.Member(
        member_id="m",
        rack_id="r",
        member_epoch=2,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("t",),
        assignment=mine,
    )
    group = kinds.DescribedGroup(
        error_code=ErrorCode.group_authorization_failed,
        error_message="no",
        group_id="g",
        group_state="Stable",
        group_epoch=5,
        assignment_epoch=5,
        assignor_name="simple",
        members=(member,),
        authorized_operations=-1,
    )
    sent = share_1.ShareGroupDescribeResponse(throttle_time=NO_TIME, groups=(group,))
    answer = groups.ShareGroupDescribeResponse.decode(encode(sent), version=1)
    (found,) = answer.groups
    assert (found.error_code, found.error_message, found.members[0].rack_id) == (30, "no", "r")
    assert found.members[0].assignment.topic_partitions[0].topic_name == "t"


def test_streams_groups() -> None:
    """With a topology and without one, which a group has that cannot be described."""
    kinds: Any = streams_0.response
    tasks = kinds.Assignment(
        active_tasks=(kinds.TaskIds(subtopology_id="0", partitions=(1, 2)),),
        standby_tasks=(),
        warmup_tasks=(),
    )
    member = kinds.Member(
        member_id="m",
        member_epoch=2,
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="/h",
        topology_epoch=0,
        process_id="p",
        user_endpoint=kinds.Endpoint(host="h", port=1),
        client_tags=(kinds.KeyValue(key="k", value="v"),),
        task_offsets=(kinds.TaskOffset(subtopology_id="0", partition=1, offset=9),),
        task_end_offsets=(),
        assignment=tasks,
        target_assignment=tasks,
        is_classic=False,
    )
    inner = kinds.TopicInfo(name="x", partitions=1, replication_factor=1, topic_configs=())
    topology = kinds.Topology(
        epoch=0,
        subtopologies=(
            kinds.Subtopology(
                subtopology_id="0",
                source_topics=("t",),
                repartition_sink_topics=(),
                state_changelog_topics=(inner,),
                repartition_source_topics=(inner,),
            ),
        ),
    )
    group = kinds.DescribedGroup(
        error_code=ErrorCode.none,
        error_message=None,
        group_id="g",
        group_state="Stable",
        group_epoch=1,
        assignment_epoch=1,
        topology=topology,
        members=(member,),
        authorized_operations=-1,
    )
    bare = replace(group, topology=None, members=())
    sent = streams_0.StreamsGroupDescribeResponse(throttle_time=NO_TIME, groups=(group, bare))
    answer = groups.StreamsGroupDescribeResponse.decode(encode(sent), version=0)
    first, second = answer.groups
    assert first.topology.subtopologies[0].source_topics == ["t"]
    assert first.members[0].assignment.active_tasks[0].partitions == [1, 2]
    assert (second.group_id, second.topology, second.members) == ("g", None, [])


@pytest.mark.parametrize("version", [offsets_0, offsets_1])
def test_offsets_of_share_groups(version: Any) -> None:
    """Version 1 adds the lag (KIP-1226)."""
    kinds = version.response
    more = {"lag": 12} if version is offsets_1 else {}
    part = kinds.DescribeShareGroupOffsetsResponsePartition(
        partition_index=3,
        start_offset=40,
        leader_epoch=1,
        error_code=ErrorCode.none,
        error_message=None,
        **more,
    )
    topic = kinds.DescribeShareGroupOffsetsResponseTopic(
        topic_name="t", topic_id=ID, partitions=(part,)
    )
    group = kinds.DescribeShareGroupOffsetsResponseGroup(
        group_id="g", topics=(topic,), error_code=ErrorCode.none, error_message=None
    )
    sent = version.DescribeShareGroupOffsetsResponse(throttle_time=NO_TIME, groups=(group,))
    answer = groups.DescribeShareGroupOffsetsResponse.decode(
        encode(sent), version=int(sent.__version__)
    )
    (found,) = answer.groups[0].topics[0].partitions
    assert (found.partition_index, found.start_offset) == (3, 40)
    assert found.lag == (12 if version is offsets_1 else -1)
