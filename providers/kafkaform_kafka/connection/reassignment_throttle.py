"""The provider block's `reassignment_throttle`: how fast brokers may copy for a move."""

from __future__ import annotations

from kafkaform.core.schema import ANY, AttributeSchema
from kafkaform.core.value import Value

from ..protocol.sizes import parse_size

ATTRIBUTE = AttributeSchema(
    "reassignment_throttle",
    ANY,
    "Bytes a second that each broker may copy for a move, such as 50MiB; set before a move starts "
    "and removed after it. Left out: moves are not throttled.",
    policy=True,
)


def find_fault(value: Value) -> tuple[bool, str, str, str]:
    """Whether the value is wrong, and what to say of it."""
    return (
        value is not None and parse_size(value) is None,
        ATTRIBUTE.name,
        f"reassignment_throttle {str(value)[:40]!r} is not a number of bytes over 0",
        'write bytes a second, or text such as "50MiB"',
    )
