"""In: nothing. Out: requests and responses that kafka-python does not have, as its own classes. The
JSON files have the names, types and versions of Kafka 4.3.1's message definitions
(`clients/src/main/resources/common/message`). Must not know: what is asked, and why.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage


def define_message(name: str) -> Any:
    """The class of the message that a JSON file of this name defines."""
    # The metaclass reads the file, and enters a response for the number of its API.
    return type(ApiMessage)(name, (ApiMessage,), {"__module__": __package__}, load_json=__package__)
