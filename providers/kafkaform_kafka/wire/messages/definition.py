"""Short, because kafka-python does the work: define a class of a message by its JSON file, as
kafka-python defines its own."""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage


def define_message(name: str) -> Any:
    """The class of the message that a JSON file of this name defines."""
    # The metaclass reads the file, and enters a response for the number of its API.
    return type(ApiMessage)(name, (ApiMessage,), {"__module__": __package__}, load_json=__package__)
