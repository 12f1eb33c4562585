"""Lines of audit logs, taken apart and judged: what a record says, or why a line is none.

A record's hash is over its canonical JSON without the hash itself. Members are sorted there, so
the hashed text is the line without the last `"hash":"…",`, which stands between body and kind.
Whether a record follows the one before it is not asked here: that one may land later (`runs`).
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

MEMBERS = ("actor", "body", "hash", "kind", "prev", "run", "seq", "time")
STEPS = ("intent", "outcome", "recover")
"""Kinds of records that tell of a step; a `recover` without one seals a torn append."""
KINDS = (
    *("run_begin", "plan", "approval", "validate", "intent", "outcome", "verify", "state"),
    *("obligation", "discharged", "recover", "run_end"),
)
"""The same as the log's own; a test compares them."""
FILE = "file"
"""The origin of a line from a file."""
TOPIC = "topic "
"""How the origin of a line from a topic begins."""

_MARK = '"hash":"'
_HASH = 64
"""Characters of a hash."""
# Possessive, or a long text would overflow the stack of Java's matcher.
_TEXT = r'"(?:[^"\\]++|\\.)*+"'
_BEGIN = rf'^\{{"actor":{_TEXT},"body":'
_REST = rf'"kind":"[a-z_]+","prev":"[0-9a-f]{{64}}","run":{_TEXT},"seq":[1-9][0-9]{{0,17}},'
_END = rf'^[0-9a-f]{{64}}",{_REST}"time":"[^"\\]*"\}}\z'
_CLAIM = rf'"hash":"[0-9a-f]{{64}}",{_REST}"time":"[^"\\]*"\}}\z'
_PARTS = ("told", "tail", "head", "begin", "sound")
_TOLD = ("seq", "time", "run", "actor", "kind", "prev", "hash")
_NEEDED = ("action", "attempt", "instance", "key", "kind", "scope_id", "paths")
_RECORD = (
    "actor string, hash string, kind string, prev string, run string, seq bigint, time string, "
    "body struct<lineage:string,omitted_bytes:bigint,action:string,attempt:int,instance:string,"
    "key:string,kind:string,scope_id:string,step:string,paths:array<struct<path:string>>>"
)


def parse_records(lines: DataFrame) -> DataFrame:
    """lines: with line, lineage (of the place where it was found) and origin, and whatever else.
    Adds the record's members as `audit_raw` has them, and scope_id: of a record that tells of a
    step. All are null for a line that is no record."""
    return _read_members(_split_parts(lines)).drop(*_PARTS)


def judge_lines(lines: DataFrame) -> DataFrame:
    """The same, with reason: why a line is no record, null for one. It looks at a line several
    times: for the few that are none."""
    told = _read_members(_split_parts(lines))
    reason = F.when(F.col("seq").isNull(), F.coalesce(_find_reason(), F.lit("bad_value")))
    return told.withColumn("reason", reason).drop(*_PARTS)


def _split_parts(lines: DataFrame) -> DataFrame:
    """Adds told (the line as JSON), tail (what stands behind the mark of its hash), head (what
    stands before), begin (where the body does) and sound."""
    tail = F.substring_index("line", _MARK, -1)
    split = lines.select("*", tail.alias("tail"), F.from_json("line", _RECORD).alias("told"))
    head = F.left("line", F.length("line") - F.length("tail") - len(_MARK))
    found = split.withColumn("head", head)
    begin = F.length(F.regexp_extract("head", _BEGIN, 0))
    return found.withColumn("begin", begin).withColumn("sound", _is_sound())


def _read_members(parts: DataFrame) -> DataFrame:
    is_sound = F.col("sound")
    size = F.length("head") - F.col("begin") - 1
    members = {name: F.when(is_sound, F.col(f"told.{name}")) for name in _TOLD}
    body = F.when(is_sound, F.substring("head", F.col("begin") + 1, size))
    return parts.withColumns(
        {**members, "body": body, "scope_id": F.when(is_sound, F.col("told.body.scope_id"))}
    )


def parse_claimed_seq() -> Column:
    """The number that a line gives itself, believed or not; null if it gives none."""
    seq = F.regexp_extract("line", r'"seq":([1-9][0-9]{0,17}),"time":"[^"\\]*"\}\z', 1)
    return F.when(F.col("line").rlike(_CLAIM), seq.cast("bigint"))


def _is_sound() -> Column:
    told = F.col("told")
    conditions = (
        _has_shape(),
        F.size(F.json_object_keys("line")) == len(MEMBERS),
        _is_cut() | ~_has_wrong_hash(),
        told["kind"].isin(*KINDS),
        told["body"]["lineage"] == F.col("lineage"),
        told["seq"].isNotNull() & F.try_to_timestamp(told["time"]).isNotNull(),
        _is_cut() | ~_lacks_members(),
    )
    return F.coalesce(reduce(and_, conditions), F.lit(False))


def _has_shape() -> Column:
    """Members in their order, none twice, each of its kind."""
    return (F.col("begin") > 0) & F.col("head").endswith("},") & F.col("tail").rlike(_END)


def _is_cut() -> Column:
    """A topic does not take a record of any size: of a large one its copy has no body."""
    omitted = F.col("told.body.omitted_bytes")
    return omitted.isNotNull() & F.col("origin").startswith(TOPIC)


def _has_wrong_hash() -> Column:
    hashed = F.concat("head", F.substring("tail", _HASH + 3, 1 << 30))
    return F.sha2(hashed, 256) != F.left("tail", F.lit(_HASH))


def _lacks_members() -> Column:
    """The record tells of a step, but not all that there is to a step."""
    told = F.col("told")
    lacks = reduce(or_, (told["body"][name].isNull() for name in _NEEDED))
    is_step = (told["kind"] != "recover") | told["body"]["step"].isNotNull()
    return told["kind"].isin(*STEPS) & is_step & (lacks | told["body"]["step"].isNull())


def _find_reason() -> Column:
    """The first thing that is wrong. What is newer than this reader is told by its names: its
    hash is checked first where that can be done."""
    keys, told = F.json_object_keys("line"), F.col("told")
    missing = F.size(F.array_except(F.array(*map(F.lit, MEMBERS)), keys)) > 0
    return (
        F.when(keys.isNull() & F.try_parse_json("line").isNull(), "not_json")
        .when(keys.isNull(), "not_a_record")
        .when(missing, "missing_key")
        .when(F.size(keys) > len(MEMBERS), "newer_format")
        .when(~_has_shape() | told["seq"].isNull(), "bad_value")
        .when(~_is_cut() & _has_wrong_hash(), "bad_hash")
        .when(~told["kind"].isin(*KINDS), "newer_format")
        .when(told["body"]["lineage"].isNull(), "missing_key")
        .when(told["body"]["lineage"] != F.col("lineage"), "bad_value")
        .when(F.try_to_timestamp(told["time"]).isNull(), "bad_value")
        .when(~_is_cut() & _lacks_members(), "missing_key")
    )
