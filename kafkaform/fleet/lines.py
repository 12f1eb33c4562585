"""Lines of audit logs, taken apart and judged: what a record says, or why a line is none.

A record's hash is over its canonical JSON without the hash itself. Members are sorted there, so
the hashed text is the line without the last `"hash":"…",`, which stands between body and kind.
Whether a record follows the one before it is not asked here: that one may land later (`runs`).
"""

from __future__ import annotations

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
TOPIC = "topic "
"""How the origin of a line from a topic begins."""

# Possessive, or a long text would overflow the stack of Java's matcher.
_TEXT = r'"(?:[^"\\]++|\\.)*+"'
_REST = rf'"kind":"[a-z_]+","prev":"[0-9a-f]{{64}}","run":{_TEXT},"seq":[1-9][0-9]{{0,17}},'
_END = rf'{_REST}"time":"[^"\\]*"\}}\z'
_HASHED = rf'"hash":"[0-9a-f]{{64}}",({_END})'
_BODY = rf'^\{{"actor":{_TEXT},"body":(\{{.*\}}),{_END}'
_CLAIM = rf'"hash":"[0-9a-f]{{64}}",{_END}'
_RECORD = "actor string, hash string, kind string, prev string, run string, seq bigint, time string"
_STEP = (
    "action string, attempt int, instance string, key string, kind string, scope_id string, "
    "step string, paths array<struct<path:string>>"
)
_NEEDED = ("action", "attempt", "instance", "key", "kind", "scope_id", "paths")


def judged(lines: DataFrame) -> DataFrame:
    """lines: with line, lineage (of the place where it was found) and origin, and whatever else.
    Adds the record's members as `audit_raw` has them, and reason: null for a record; the
    members of a line that is none are null."""
    parsed = lines.withColumn("record", F.from_json("line", _RECORD)).withColumn(
        "hashed", F.regexp_replace("line", _HASHED, "$1")
    )
    whole = parsed.withColumn("body", F.regexp_extract("hashed", _BODY, 1))
    known = whole.withColumn("about", F.from_json("body", "lineage string, omitted_bytes bigint"))
    reasoned = known.withColumn("reason", _reason())
    members = ("seq", "time", "run", "actor", "kind", "prev", "hash")
    told = {name: F.when(F.col("reason").isNull(), F.col(f"record.{name}")) for name in members}
    body = F.when(F.col("reason").isNull(), F.col("body"))
    return reasoned.withColumns({**told, "body": body}).drop("record", "hashed", "about")


def claimed_seq() -> Column:
    """The number that a line gives itself, believed or not; null if it gives none."""
    seq = F.regexp_extract("line", r'"seq":([1-9][0-9]{0,17}),"time":"[^"\\]*"\}\z', 1)
    return F.when(F.col("line").rlike(_CLAIM), seq.cast("bigint"))


def _reason() -> Column:
    """The first thing that is wrong. What is newer than this reader is told by its names: its
    hash is checked first where that can be done."""
    keys = F.json_object_keys("line")
    missing = F.size(F.array_except(F.array(*map(F.lit, MEMBERS)), keys)) > 0
    # A topic does not take a record of any size: of a large one its copy has no body.
    cut = F.col("about.omitted_bytes").isNotNull() & F.col("origin").startswith(TOPIC)
    false = F.sha2("hashed", 256) != F.col("record.hash")
    return (
        F.when(keys.isNull() & F.try_parse_json("line").isNull(), "not_json")
        .when(keys.isNull(), "not_a_record")
        .when(missing, "missing_key")
        .when(F.size(keys) > len(MEMBERS), "newer_format")
        .when((F.col("body") == "") | F.col("record.seq").isNull(), "bad_value")
        .when(~cut & false, "bad_hash")
        .when(~F.col("record.kind").isin(*KINDS), "newer_format")
        .when(F.col("about.lineage").isNull(), "missing_key")
        .when(~F.col("about.lineage").eqNullSafe(F.col("lineage")), "bad_value")
        .when(F.try_to_timestamp(F.col("record.time")).isNull(), "bad_value")
        .when(~cut & _lacks(), "missing_key")
    )


def _lacks() -> Column:
    """The record tells of a step, but not all that there is to a step."""
    step = F.from_json("body", _STEP)
    lacks = F.lit(False)
    for name in _NEEDED:
        lacks = lacks | step[name].isNull()
    told = (F.col("record.kind") != "recover") | step["step"].isNotNull()
    return F.col("record.kind").isin(*STEPS) & told & (lacks | step["step"].isNull())
