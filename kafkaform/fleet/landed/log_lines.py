"""Parse and verify audit-log lines; say why a line is rejected.

A record's hash is computed over its canonical JSON without the hash member. Members are sorted, so
the hashed text is the line minus the last `"hash":"…",`, which is between body and kind.
Whether a record continues the chain is not checked here, because its predecessor may land later
(`datasets.runs` checks it).
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

MEMBERS = ("actor", "body", "hash", "kind", "prev", "run", "seq", "time")
"""The members of a record, in the order of canonical JSON."""
STEPS = ("intent", "outcome", "recover")
"""Kinds of records that are about a step. A `recover` without a step seals a torn append."""
KINDS = (
    *("run_begin", "plan", "approval", "validate", "intent", "outcome", "verify", "state"),
    *("obligation", "discharged", "recover", "run_end", "checkpoint"),
)
"""Every kind of record. The list repeats the audit log's own; a test compares the two."""
FILE = "file"
"""`origin` of a line that was read from a landing file."""
TOPIC = "topic "
"""Prefix of `origin` of a line that was read from a Kafka topic."""

_HASH_MARK = '"hash":"'
_HASH_CHARACTERS = 64
"""Length of a hash in characters."""
# Possessive (`++`, `*+`): backtracking over a long text overflows the stack of Java's matcher.
_TEXT = r'"(?:[^"\\]++|\\.)*+"'
_BEGIN = rf'^\{{"actor":{_TEXT},"body":'
_REST = rf'"kind":"[a-z_]+","prev":"[0-9a-f]{{64}}","run":{_TEXT},"seq":[1-9][0-9]{{0,17}},'
_END = rf'^[0-9a-f]{{64}}",{_REST}"time":"[^"\\]*"\}}\z'
_CLAIM = rf'"hash":"[0-9a-f]{{64}}",{_REST}"time":"[^"\\]*"\}}\z'
_HELPER_COLUMNS = ("parsed", "tail", "head", "begin", "sound")
"""Helper columns; see `_split_parts`."""
_COPIED_MEMBERS = ("seq", "time", "run", "actor", "kind", "prev", "hash")
_STEP_MEMBERS = ("action", "attempt", "instance", "key", "kind", "scope_id", "paths")
# An explicit schema: inference costs a pass over all lines and may differ between builds.
_RECORD = (
    "actor string, hash string, kind string, prev string, run string, seq bigint, time string, "
    "body struct<lineage:string,omitted_bytes:bigint,action:string,attempt:int,instance:string,"
    "key:string,kind:string,scope_id:string,step:string,paths:array<struct<path:string>>>"
)


def parse_records(lines: DataFrame) -> DataFrame:
    """Add the record's members (the columns of `audit_raw`) and the scope_id of its step.

    lines: with line, lineage (of the log that it was found in), origin, and any other columns. All
    members are null if the line is rejected.
    """
    return _read_members(_split_parts(lines)).drop(*_HELPER_COLUMNS)


def judge_lines(lines: DataFrame) -> DataFrame:
    """Like `parse_records`, and add `reason`: why the line is rejected, or null. It parses a line
    several times, so call it only for the few lines that were rejected."""
    parsed = _read_members(_split_parts(lines))
    reason = F.when(F.col("seq").isNull(), F.coalesce(_find_reason(), F.lit("bad_value")))
    return parsed.withColumn("reason", reason).drop(*_HELPER_COLUMNS)


def _split_parts(lines: DataFrame) -> DataFrame:
    """Add parsed (the line as a struct), tail (the text after the last hash marker), head (the text
    before it), begin (the length of the text before the body) and sound."""
    # From the right: a body may contain the marker as text, but nothing after the record's own hash
    # can.
    tail = F.substring_index("line", _HASH_MARK, -1)
    # PERMISSIVE: a line that is not JSON gives null members instead of failing the whole job.
    split = lines.select("*", tail.alias("tail"), F.from_json("line", _RECORD).alias("parsed"))
    head = F.left("line", F.length("line") - F.length("tail") - len(_HASH_MARK))
    headed = split.withColumn("head", head)
    begin = F.length(F.regexp_extract("head", _BEGIN, 0))
    parsed = F.col("parsed")
    # `from_json` accepts repeated and unknown members. Counting the keys and matching the text
    # exactly rejects both.
    conditions = (
        _has_shape(),
        F.size(F.json_object_keys("line")) == len(MEMBERS),
        _is_cut() | ~_has_wrong_hash(),
        parsed["kind"].isin(*KINDS),
        parsed["body"]["lineage"] == F.col("lineage"),
        # `try_`: under ANSI mode, the plain cast of a bad time fails the job and takes all logs
        # with it.
        parsed["seq"].isNotNull() & F.try_to_timestamp(parsed["time"]).isNotNull(),
        _is_cut() | ~_lacks_members(),
    )
    # A null in any condition means that something is missing. `sound` is used without negation and
    # negated, so it must not be null.
    return headed.withColumn("begin", begin).withColumn(
        "sound", F.coalesce(reduce(and_, conditions), F.lit(False))
    )


def _read_members(lines: DataFrame) -> DataFrame:
    is_sound = F.col("sound")
    size = F.length("head") - F.col("begin") - 1
    # All or nothing: a rejected line must not leave a time or a key that later tables could use.
    members = {name: F.when(is_sound, F.col(f"parsed.{name}")) for name in _COPIED_MEMBERS}
    body = F.when(is_sound, F.substring("head", F.col("begin") + 1, size))
    return lines.withColumns(
        {**members, "body": body, "scope_id": F.when(is_sound, F.col("parsed.body.scope_id"))}
    )


def parse_claimed_seq() -> Column:
    """Return the sequence number that a line claims, whether or not it verifies; null if it has
    none."""
    # 18 digits at most, so that the ANSI cast to bigint cannot overflow and fail the job.
    seq = F.regexp_extract("line", r'"seq":([1-9][0-9]{0,17}),"time":"[^"\\]*"\}\z', 1)
    return F.when(F.col("line").rlike(_CLAIM), seq.cast("bigint"))


def _has_shape() -> Column:
    """True if the members are in canonical order, each once and with a plausible value."""
    return (F.col("begin") > 0) & F.col("head").endswith("},") & F.col("tail").rlike(_END)


def _is_cut() -> Column:
    """True for a record whose copy in a topic lacks its body, because topics limit the size of a
    record. Its hash cannot be recomputed."""
    omitted = F.col("parsed.body.omitted_bytes")
    return omitted.isNotNull() & F.col("origin").startswith(TOPIC)


def _has_wrong_hash() -> Column:
    # Its closing quote and a comma follow the hash; substring counts from 1.
    """True if the text does not hash to the hash in the line."""
    hashed = F.concat("head", F.substring("tail", _HASH_CHARACTERS + 3, 1 << 30))
    return F.sha2(hashed, 256) != F.left("tail", F.lit(_HASH_CHARACTERS))


def _lacks_members() -> Column:
    """True if the record is about a step but lacks members that every step has."""
    parsed = F.col("parsed")
    lacks = reduce(or_, (parsed["body"][name].isNull() for name in _STEP_MEMBERS))
    is_step = (parsed["kind"] != "recover") | parsed["body"]["step"].isNotNull()
    return parsed["kind"].isin(*STEPS) & is_step & (lacks | parsed["body"]["step"].isNull())


def _find_reason() -> Column:
    """Return the first thing that is wrong.

    The hash is checked before unknown kinds: a record of a newer version verifies, while an altered
    one does not, and only the former is `newer_format`.
    """
    keys, parsed = F.json_object_keys("line"), F.col("parsed")
    missing = F.size(F.array_except(F.array(*map(F.lit, MEMBERS)), keys)) > 0
    return (
        # `json_object_keys` is null for anything but an object, so valid JSON needs a second look.
        F.when(keys.isNull() & F.try_parse_json("line").isNull(), "not_json")
        .when(keys.isNull(), "not_a_record")
        .when(missing, "missing_key")
        .when(F.size(keys) > len(MEMBERS), "newer_format")
        .when(~_has_shape() | parsed["seq"].isNull(), "bad_value")
        .when(~_is_cut() & _has_wrong_hash(), "bad_hash")
        .when(~parsed["kind"].isin(*KINDS), "newer_format")
        .when(parsed["body"]["lineage"].isNull(), "missing_key")
        .when(parsed["body"]["lineage"] != F.col("lineage"), "bad_value")
        .when(F.try_to_timestamp(parsed["time"]).isNull(), "bad_value")
        .when(~_is_cut() & _lacks_members(), "missing_key")
    )
