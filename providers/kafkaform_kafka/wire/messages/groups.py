"""Short, because their JSON files define them: messages about groups that are newer than
kafka-python's, of the consumer protocol (KIP-848), share groups (KIP-932, KIP-1226) and streams
groups (KIP-1071)."""

from __future__ import annotations

from .definition import define_message

ConsumerGroupDescribeRequest = define_message("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = define_message("ConsumerGroupDescribeResponse")
ShareGroupDescribeRequest = define_message("ShareGroupDescribeRequest")
ShareGroupDescribeResponse = define_message("ShareGroupDescribeResponse")
StreamsGroupDescribeRequest = define_message("StreamsGroupDescribeRequest")
StreamsGroupDescribeResponse = define_message("StreamsGroupDescribeResponse")
DescribeShareGroupOffsetsRequest = define_message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = define_message("DescribeShareGroupOffsetsResponse")
