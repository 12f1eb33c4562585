"""Topic ids (KIP-516) as Kafka writes them: 22 characters of base64url."""

from __future__ import annotations

import base64
import binascii
import uuid
from sys import intern

NONE = uuid.UUID(int=0)


def id_text(topic_id: uuid.UUID | None) -> str | None:
    """The text of an id; None for the all-zero id, which means that there is none."""
    # Metadata gives this id to a topic that is not there.
    if topic_id is None or topic_id == NONE:
        return None
    return intern(base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode("ascii"))


def parse_id(text: str) -> uuid.UUID:
    """The id that this text means. Raises ValueError."""
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except (binascii.Error, ValueError):
        raise ValueError(f"{text!r} is not a topic id") from None
