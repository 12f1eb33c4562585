"""The schemas of the blocks in fleet.hcl, and checks of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from ...core.errors import UsageError
from ...core.schema import (
    ANY,
    BOOL,
    NUMBER,
    STRING,
    AttributeSchema,
    ObjectSchema,
    list_of,
    make_schema,
)
from ...fleet.datasets.policy_conditions import ConditionFault, find_pattern_fault, parse_condition
from ..stores import parse_duration

_DAYS = re.compile(r"(\d+(?:\.\d+)?)d")
_DAY_SECONDS = 86_400.0
_CATEGORY = re.compile(r"(\\\\)|\\[pP]\{[CLMNPSZ][a-z]?\}")


def parse_seconds(text: str) -> float:
    """Parse a duration such as `36h`, `2m` or `3d` to seconds. Raises UsageError."""
    match = _DAYS.fullmatch(text.strip())
    return float(match[1]) * _DAY_SECONDS if match else parse_duration(text, "The value")


def _check_duration(value: Any) -> Iterator[tuple[str, str]]:
    try:
        parse_seconds(value)
    except UsageError:
        yield f"{value!r} is not a duration", "Write it as 90s, 2m, 36h or 3d."


def _check_date(value: Any) -> Iterator[tuple[str, str]]:
    try:
        date.fromisoformat(value)
    except ValueError:
        yield f"{value!r} is not a date", "Write it as 2026-12-31: the last day on which it holds."


def _check_condition(value: Any) -> Iterator[tuple[str, str]]:
    try:
        parse_condition(value)
    except ConditionFault as fault:
        advice = fault.advice or "docs/fleet/register.md says what can stand in a condition."
        yield f'"where" cannot be read: {fault.message}', advice


def _check_pattern(value: Any) -> Iterator[tuple[str, str]]:
    # Spark evaluates the pattern in Java, where some of Python's syntax means something else. `re`
    # lacks only Unicode categories (\p{Lu}), so these are replaced for the comparison.
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415  # few registers have such a rule

    fault = find_pattern_fault(_CATEGORY.sub(lambda found: found[1] or ".", value))
    try:
        regex.compile(value)
    except regex.error as error:
        fault = f"cannot be read ({error})"
    if fault:
        yield (
            f"{value!r} is not a regular expression: it {fault.rstrip(',')}",
            r"Use what Python and Java read alike, and \p{L} or \p{Lu} for kinds of characters.",
        )


def _check_share(value: Any) -> Iterator[tuple[str, str]]:
    if not 0 <= value <= 1:
        yield f"{value} is no share", "Write a number from 0 to 1: 0.001 is one line in a thousand."


def _check_not_negative(value: Any) -> Iterator[tuple[str, str]]:
    if value < 0:
        yield f"{value} is less than 0", "Write 0 or more."


def _make_duration(name: str, doc: str) -> AttributeSchema:
    return AttributeSchema(name, STRING, doc, refuses=_check_duration)


def _make_count(name: str, doc: str) -> AttributeSchema:
    return AttributeSchema(name, NUMBER, doc, whole=True, refuses=_check_not_negative)


def _make_rate(name: str) -> AttributeSchema:
    return AttributeSchema(
        name, NUMBER, f"Cost of one {name} a month.", refuses=_check_not_negative
    )


FLEET = make_schema(
    "Where the landing files and tables are, and the numbers by which everything is judged.",
    AttributeSchema("root", STRING, "A folder, or a URL such as s3://bucket/fleet."),
    _make_duration("stale_after", "Age from which on a snapshot tells nothing any more."),
    _make_duration("skew", "How far the clocks of a runner and of a snapshot may lie apart."),
    _make_count("grace_days", "How many days a topic may be idle before it counts as unused."),
    AttributeSchema(
        "max_corrupt",
        NUMBER,
        "Share of bad lines from which on a build fails.",
        refuses=_check_share,
    ),
    _make_count("short_prefix", "Characters up to which the prefix of an ACL is said to be short."),
    AttributeSchema("principals", list_of(STRING), "Known principals that no owner names."),
)
CLUSTER = make_schema(
    "A cluster that snapshots are taken of.",
    AttributeSchema("env", STRING, "Its environment, such as prod."),
    AttributeSchema("region", STRING, "Where it is."),
    AttributeSchema("owner", STRING, "Who runs it."),
    AttributeSchema(
        "super_users",
        list_of(STRING),
        "The brokers' super.users, which they do not tell. Left out: not known, which is not none.",
    ),
    AttributeSchema(
        "allow_if_no_acl",
        BOOL,
        "The brokers' allow.everyone.if.no.acl.found. Left out: not known.",
    ),
    _make_count("limit_replicas", "How many replicas the cluster is meant to hold."),
)
STATE = make_schema(
    "A state of kafkaform, and the folder of its configuration.",
    AttributeSchema(
        "location",
        STRING,
        "Where it is, as --state says it. Left out: as the folder's configuration says.",
    ),
    AttributeSchema(
        "folder", STRING, "The folder of its configuration. Left out: nobody knows it."
    ),
    AttributeSchema("var_files", list_of(STRING), "Variable files, as --var-file from the folder."),
    AttributeSchema("vars", ANY, "Variables by name, which win over the files."),
    AttributeSchema("owner", STRING, "Who answers for it."),
)
OWNER = make_schema(
    "Whose topics and principals are whose.",
    AttributeSchema("topics", list_of(STRING), "Names, in which * stands for any text."),
    AttributeSchema("principals", list_of(STRING), "As ACLs write them, such as User:orders."),
)
RATES = make_schema(
    "What things cost.",
    AttributeSchema("currency", STRING, "Such as EUR.", required=True),
    *map(_make_rate, ("topic", "partition", "replica", "gigabyte")),
)
RULE = make_schema(
    "A condition that nothing should meet.",
    AttributeSchema(
        "severity", STRING, "How bad it is.", required=True, choices=("high", "medium", "low")
    ),
    AttributeSchema(
        "kind", STRING, "Which kinds it is about; * stands for any text.", required=True
    ),
    AttributeSchema(
        "where",
        STRING,
        "SQL condition over a row that is true for what breaks the rule.",
        required=True,
        refuses=_check_condition,
    ),
    AttributeSchema("message", STRING, "What people are told.", required=True),
    AttributeSchema("source", STRING, "Which rows.", default="live", choices=("live", "desired")),
    AttributeSchema("owner", STRING, "Who answers for it, if not the object's owner."),
)
WAIVER = make_schema(
    "Where a rule does not count, and until when.",
    AttributeSchema("cluster", STRING, "Which clusters; * stands for any text.", default="*"),
    AttributeSchema("key", STRING, "Which objects; * stands for any text.", default="*"),
    AttributeSchema(
        "until", STRING, "The last day, as 2026-12-31.", required=True, refuses=_check_date
    ),
    AttributeSchema("reason", STRING, "Why.", required=True),
)
NAMING = make_schema(
    "How keys of a kind must look.",
    AttributeSchema("kind", STRING, "Such as kafka_topic.", required=True),
    AttributeSchema(
        "pattern",
        STRING,
        "Regular expression that the whole key must match.",
        required=True,
        refuses=_check_pattern,
    ),
    AttributeSchema("cluster", STRING, "Which clusters; * stands for any text.", default="*"),
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
"""Blocks with one label, which is unique among the blocks of the type."""
ONCE = ("fleet", "rates")
INNER: Mapping[str, tuple[str, ...]] = {"cluster": ("connection",), "rule": ("waiver",)}
"""Nested blocks that are read separately."""
