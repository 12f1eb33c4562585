"""The blocks of fleet.hcl: what may stand in each, and what no value may be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from ...core.errors import UsageError
from ...core.schema import ANY, BOOL, NUMBER, STRING, Attribute, ObjectSchema, list_of, schema
from ...fleet.datasets.policy_conditions import ConditionFault, parse, pattern_fault
from ..stores import seconds_of

_DAYS = re.compile(r"(\d+(?:\.\d+)?)d")
_DAY_SECONDS = 86_400.0
_CATEGORY = re.compile(r"(\\\\)|\\[pP]\{[CLMNPSZ][a-z]?\}")


def seconds(text: str) -> float:
    """`36h`, `2m`, `3d` in seconds. Raises UsageError."""
    match = _DAYS.fullmatch(text.strip())
    return float(match[1]) * _DAY_SECONDS if match else seconds_of(text, "The value")


def _no_duration(value: Any) -> Iterator[tuple[str, str]]:
    try:
        seconds(value)
    except UsageError:
        yield f"{value!r} is not a duration", "Write it as 90s, 2m, 36h or 3d."


def _no_date(value: Any) -> Iterator[tuple[str, str]]:
    try:
        date.fromisoformat(value)
    except ValueError:
        yield f"{value!r} is not a date", "Write it as 2026-12-31: the last day on which it holds."


def _no_condition(value: Any) -> Iterator[tuple[str, str]]:
    try:
        parse(value)
    except ConditionFault as fault:
        advice = fault.advice or "docs/fleet/register.md says what can stand in a condition."
        yield f'"where" cannot be read: {fault.message}', advice


def _no_pattern(value: Any) -> Iterator[tuple[str, str]]:
    """Spark's workers read it, which are Java; `re` knows all that is meant but categories."""
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415  # few registers have such a rule

    fault = pattern_fault(_CATEGORY.sub(lambda found: found[1] or ".", value))
    try:
        regex.compile(value)
    except regex.error as error:
        fault = f"cannot be read ({error})"
    if fault:
        yield (
            f"{value!r} is not a regular expression: it {fault.rstrip(',')}",
            r"Use what Python and Java read alike, and \p{L} or \p{Lu} for kinds of characters.",
        )


def _no_share(value: Any) -> Iterator[tuple[str, str]]:
    if not 0 <= value <= 1:
        yield f"{value} is no share", "Write a number from 0 to 1: 0.001 is one line in a thousand."


def _negative(value: Any) -> Iterator[tuple[str, str]]:
    if value < 0:
        yield f"{value} is less than 0", "Write 0 or more."


def _duration(name: str, doc: str) -> Attribute:
    return Attribute(name, STRING, doc, refuses=_no_duration)


def _count(name: str, doc: str) -> Attribute:
    return Attribute(name, NUMBER, doc, whole=True, refuses=_negative)


def _rate(name: str) -> Attribute:
    return Attribute(name, NUMBER, f"Cost of one {name} a month.", refuses=_negative)


FLEET = schema(
    "Where the landing files and tables are, and the numbers by which everything is judged.",
    Attribute("root", STRING, "A folder, or a URL such as s3://bucket/fleet."),
    _duration("stale_after", "Age from which on a snapshot tells nothing any more."),
    _duration("skew", "How far the clocks of a runner and of a snapshot may lie apart."),
    _count("grace_days", "How many days a topic may be idle before it counts as unused."),
    Attribute(
        "max_corrupt",
        NUMBER,
        "Share of bad lines from which on a build fails.",
        refuses=_no_share,
    ),
    _count("short_prefix", "Characters up to which the prefix of an ACL is said to be short."),
    Attribute("principals", list_of(STRING), "Known principals that no owner names."),
)
CLUSTER = schema(
    "A cluster that snapshots are taken of.",
    Attribute("env", STRING, "Its environment, such as prod."),
    Attribute("region", STRING, "Where it is."),
    Attribute("owner", STRING, "Who runs it."),
    Attribute(
        "super_users",
        list_of(STRING),
        "The brokers' super.users, which they do not tell. Left out: not known, which is not none.",
    ),
    Attribute(
        "allow_if_no_acl",
        BOOL,
        "The brokers' allow.everyone.if.no.acl.found. Left out: not known.",
    ),
    _count("limit_replicas", "How many replicas the cluster is meant to hold."),
)
STATE = schema(
    "A state of kafkaform, and the folder of its configuration.",
    Attribute(
        "location",
        STRING,
        "Where it is, as --state says it. Left out: as the folder's configuration says.",
    ),
    Attribute("folder", STRING, "The folder of its configuration. Left out: nobody knows it."),
    Attribute("var_files", list_of(STRING), "Variable files, as --var-file from the folder."),
    Attribute("vars", ANY, "Variables by name, which win over the files."),
    Attribute("owner", STRING, "Who answers for it."),
)
OWNER = schema(
    "Whose topics and principals are whose.",
    Attribute("topics", list_of(STRING), "Names, in which * stands for any text."),
    Attribute("principals", list_of(STRING), "As ACLs write them, such as User:orders."),
)
RATES = schema(
    "What things cost.",
    Attribute("currency", STRING, "Such as EUR.", required=True),
    *map(_rate, ("topic", "partition", "replica", "gigabyte")),
)
RULE = schema(
    "A condition that nothing should meet.",
    Attribute(
        "severity", STRING, "How bad it is.", required=True, choices=("high", "medium", "low")
    ),
    Attribute("kind", STRING, "Which kinds it is about; * stands for any text.", required=True),
    Attribute(
        "where",
        STRING,
        "SQL condition over a row that is true for what breaks the rule.",
        required=True,
        refuses=_no_condition,
    ),
    Attribute("message", STRING, "What people are told.", required=True),
    Attribute("source", STRING, "Which rows.", default="live", choices=("live", "desired")),
    Attribute("owner", STRING, "Who answers for it, if not the object's owner."),
)
WAIVER = schema(
    "Where a rule does not count, and until when.",
    Attribute("cluster", STRING, "Which clusters; * stands for any text.", default="*"),
    Attribute("key", STRING, "Which objects; * stands for any text.", default="*"),
    Attribute("until", STRING, "The last day, as 2026-12-31.", required=True, refuses=_no_date),
    Attribute("reason", STRING, "Why.", required=True),
)
NAMING = schema(
    "How keys of a kind must look.",
    Attribute("kind", STRING, "Such as kafka_topic.", required=True),
    Attribute(
        "pattern",
        STRING,
        "Regular expression that the whole key must match.",
        required=True,
        refuses=_no_pattern,
    ),
    Attribute("cluster", STRING, "Which clusters; * stands for any text.", default="*"),
)
BLOCKS: Mapping[str, ObjectSchema] = {
    "fleet": FLEET,
    "cluster": CLUSTER,
    "state": STATE,
    "owner": OWNER,
    "rates": RATES,
    "rule": RULE,
    "naming": NAMING,
}
NAMED = ("cluster", "state", "owner", "rule")
"""Blocks with one label; each label stands for one block of its type."""
ONCE = ("fleet", "rates")
INNER: Mapping[str, tuple[str, ...]] = {"cluster": ("connection",), "rule": ("waiver",)}
"""Blocks inside them that are read on their own."""
