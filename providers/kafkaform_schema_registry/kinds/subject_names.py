"""Names of subjects: given, or made by the strategy with which clients make them.

Source: `TopicNameStrategy`, `RecordNameStrategy` and `TopicRecordNameStrategy` of Confluent's
serializers, whose names other clients use, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafkaform.core.schema import STRING, AttributeSchema
from kafkaform.core.value import FrozenMap

from ..formats.normal_form import FORMATS

TOPIC, RECORD, TOPIC_RECORD = "topic", "record", "topic-record"
STRATEGIES = (TOPIC, RECORD, TOPIC_RECORD)
PARTS = ("key", "value")
VALUE = "value"
MAX_LENGTH = 1000
"""Characters. Registries set no limit, but a name is a part of a URL."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

SUBJECT = AttributeSchema(
    "subject",
    STRING,
    "Name of the subject. Without it, topic and strategy name the subject, and references to it "
    "have that name.",
    names=True,
)
TOPIC_NAME = AttributeSchema("topic", STRING, "Name of the topic whose records have the schema.")
PART = AttributeSchema(
    "part",
    STRING,
    "What part of the records has the schema: TOPIC-key or TOPIC-value. Default: value.",
    choices=PARTS,
)
STRATEGY = AttributeSchema(
    "strategy",
    STRING,
    "How clients name the subject: topic (TOPIC-value), record (the full name of the record) or "
    "topic-record (both). Default: topic.",
    choices=STRATEGIES,
)
CONFLICTS = (("subject", "topic"), ("subject", "part"))


def check_subject(name: str) -> str:
    """The name of a subject as the key of an identity. Raises ValueError."""
    if not name:
        raise ValueError("a subject needs a name")
    # A path with one of these segments leads elsewhere on many servers and proxies.
    if name in (".", ".."):
        raise ValueError(f"{name!r} is no name of a subject")
    if len(name) > MAX_LENGTH:
        raise ValueError(f"a subject's name has at most {MAX_LENGTH:,} characters")
    if _CONTROL.search(name):
        raise ValueError("a subject's name contains a control character")
    return name


def name_subject(attributes: FrozenMap) -> str:
    """The subject that a block declares. Raises ValueError with what is missing."""
    if attributes.get("subject") is not None:
        return check_subject(str(attributes["subject"]))
    strategy = attributes.get("strategy") or TOPIC
    topic = attributes.get("topic")
    if strategy != RECORD and not topic:
        raise ValueError("set subject, or topic from which the subject is named")
    if strategy == TOPIC:
        return check_subject(f"{topic}-{attributes.get('part') or VALUE}")
    record = _find_record(attributes)
    return check_subject(record if strategy == RECORD else f"{topic}-{record}")


def find_topic(attributes: Mapping[str, object]) -> str | None:
    """The topic of a subject, as far as its name tells: `orders` for `orders-value` and for
    `orders-shop.Order`. None if the subject is named by its record alone."""
    subject = str(attributes.get("subject") or "")
    stem, dash, suffix = subject.rpartition("-")
    if dash and stem and suffix in PARTS:
        return stem
    try:
        record = FORMATS[str(attributes["format"])].find_name(str(attributes["schema"]))
    except (KeyError, ValueError):
        return None
    return subject.removesuffix(f"-{record}") if subject.endswith(f"-{record}") else None


def _find_record(attributes: FrozenMap) -> str:
    kind, text = str(attributes.get("format")), str(attributes.get("schema") or "")
    try:
        return FORMATS[kind].find_name(text)
    except ValueError as error:
        raise ValueError(f"the schema does not name the subject: {error}") from None
