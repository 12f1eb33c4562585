"""Messages about groups that are newer than kafka-python's: the consumer protocol (KIP-848), share
groups (KIP-932, KIP-1226) and streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage


def _define_message(name: str) -> Any:
    """The class of the message that a JSON file of this name defines."""
    # The metaclass reads the file, and enters a response for the number of its API. kafka-python
    # defines its own messages in the same way, with files of its own.
    return type(ApiMessage)(name, (ApiMessage,), {"__module__": __name__}, load_json=__package__)


ConsumerGroupDescribeRequest = _define_message("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = _define_message("ConsumerGroupDescribeResponse")
ShareGroupDescribeRequest = _define_message("ShareGroupDescribeRequest")
ShareGroupDescribeResponse = _define_message("ShareGroupDescribeResponse")
StreamsGroupDescribeRequest = _define_message("StreamsGroupDescribeRequest")
StreamsGroupDescribeResponse = _define_message("StreamsGroupDescribeResponse")
DescribeShareGroupOffsetsRequest = _define_message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = _define_message("DescribeShareGroupOffsetsResponse")
