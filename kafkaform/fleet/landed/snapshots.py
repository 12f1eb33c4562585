"""Snapshots and registers as they landed: rows, what stands beside them, and what is wrong there.

The checksum is of the bytes that were written, so rows that fail it were changed afterwards, or
are half a file: none of them is believed, or what is missing would look deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import pyspark.sql.functions as F
from msgspec import Struct
from pyspark.sql import Column, DataFrame

from ...core.landing import FORMAT, META, ROWS

_ROW = (
    "kind string, key string, instance string, scope_id string, address string, owner string, "
    "incarnation string, attrs map<string,string>"
)
_META = (
    "source string, subject string, snapshot string, started string, ended string, "
    "complete boolean, rows bigint, sha256 string, scope_id string, coverage map<string,string>, "
    "scopes map<string,string>, error string, format bigint"
)
_META_NEEDS = ("source", "subject", "snapshot", "started", "ended", "complete", "format")
_REGISTER = "format bigint, taken string, clusters string"
CHANGED = "bad_checksum"
"""The reason where rows are not those that were written."""
_REFUSED = "its rows are not those that were written: they are in quarantine"
_NO_MAP = "map<string,string>"
_OF_NOTHING = hashlib.sha256(b"").hexdigest()


def split_lines(files: DataFrame) -> DataFrame:
    """_file, position (from 1), line. files: _file, content."""
    split = F.split(F.col("content").cast("string"), "\n")
    lines = files.select("_file", F.posexplode(_drop_last_empty(split)).alias("at", "line"))
    return lines.select("_file", (F.col("at") + 1).cast("bigint").alias("position"), "line")


def parse_registers(files: DataFrame) -> DataFrame:
    """taken, body, _file, and reason, position, line as `split_lines` has them: one row a file."""
    told = _read_members(files, _REGISTER)
    reason = (
        _find_no_object()
        .when(F.col("told.format") > FORMAT, "newer_format")
        .when(_is_any_null("told", ("format", "taken", "clusters")), "missing_key")
        .when(_parse_time("told.taken").isNull(), "bad_value")
    )
    return told.select(
        "_file",
        "position",
        "line",
        reason.alias("reason"),
        _parse_time("told.taken").alias("taken"),
        F.col("line").alias("body"),
    )


class Snapshots(Struct, frozen=True):
    """metas: the files beside the rows, one row each: told (the members), reason, stem, and
    _file, position, line; files: stem, _file, content of the rows."""

    metas: DataFrame
    files: DataFrame

    @classmethod
    def from_files(cls, metas: DataFrame, rows: DataFrame) -> Snapshots:
        """Each: _file, content."""
        told = _read_members(metas, _META).withColumn("stem", _get_stem(META))
        named = F.concat_ws("/", "told.source", "told.subject", "told.snapshot")
        reason = (
            _find_no_object()
            .when(F.col("told.format") > FORMAT, "newer_format")
            .when(_is_any_null("told", _META_NEEDS), "missing_key")
            .when(
                _parse_time("told.started").isNull() | _parse_time("told.ended").isNull(),
                "bad_value",
            )
            .when(named != F.col("stem"), "bad_value")
        )
        return cls(told.withColumn("reason", reason), rows.withColumn("stem", _get_stem(ROWS)))

    def select_rows(self) -> DataFrame:
        """`snapshot_raw` but for its stamps: of each file all rows, or none if it is not what was
        written. In one pass over the files, which are most of what lands."""
        both = self.files.join(
            F.broadcast(self._select_good().select("stem", "told")), "stem", "inner"
        )
        lines = _drop_last_empty(F.split(F.col("content").cast("string"), "\n"))
        parsed = both.withColumn("found", F.transform(lines, lambda line: F.from_json(line, _ROW)))
        right = (F.sha2("content", 256) == F.col("told.sha256")) & (
            F.size("found") == F.col("told.rows")
        )
        whole = right & ~F.exists("found", _is_bad)
        about = [F.col(f"told.{name}") for name in ("source", "subject", "snapshot")]
        return parsed.select(
            *about,
            _parse_time("told.ended").alias("captured_at"),
            "_file",
            F.inline(F.when(whole, F.col("found"))),
        )

    def find_refused(self, taken: DataFrame) -> tuple[str, ...]:
        """Stems of what must have rows and has not, or not those. taken: _file and n (rows) of
        what `rows` gave, without files of no rows."""
        count = taken.select(F.col("_file"), "n").withColumn("stem", _get_stem(ROWS))
        counted = self._select_good().join(F.broadcast(count.select("stem", "n")), "stem", "left")
        wanted = counted.where(F.col("told.sha256").isNotNull())
        n = F.coalesce("n", F.lit(0))
        # What should have no rows must be of no bytes, too.
        other = (F.col("told.rows") == 0) & (F.col("told.sha256") != _OF_NOTHING)
        right = F.coalesce((n == F.col("told.rows")) & ~other, F.lit(False))
        return tuple(row["stem"] for row in wanted.where(~right).select("stem").collect())

    def find_faults(self) -> DataFrame:
        """What is wrong with files whose rows are refused: _file, reason, position, line; a file
        that is not what was written is one fault. One row a line that is bad."""
        sums = self.files.select(
            "stem",
            "content",
            F.sha2("content", 256).alias("sum"),
            F.size(_drop_last_empty(F.split(F.col("content").cast("string"), "\n"))).alias("n"),
        )
        # Spark passes over files without bytes, as if they were not there.
        total, count = F.coalesce("sum", F.lit(_OF_NOTHING)), F.coalesce("n", F.lit(0))
        right = (total == F.col("told.sha256")) & (count == F.col("told.rows"))
        found = self._select_good().select("stem", "told").join(sums, "stem", how="left")
        judged = found.withColumn("right", F.coalesce(right, F.lit(False)))
        changed = judged.where(~F.col("right")).select(
            F.concat("stem", F.lit(ROWS)).alias("_file"),
            F.lit(CHANGED).alias("reason"),
            F.lit(None).cast("bigint").alias("position"),
            F.col("content").cast("string").alias("line"),
        )
        sound = self.files.join(judged.where("right").select("stem"), "stem", how="left_semi")
        lines = split_lines(sound).withColumn("row", F.from_json("line", _ROW))
        reason = _find_no_object().when(_is_bad(F.col("row")), "missing_key")
        bad = lines.withColumn("reason", reason).where(F.col("reason").isNotNull())
        return changed.unionByName(bad.select("_file", "reason", "position", "line"))

    def make_metas(self, refused: Collection[str]) -> DataFrame:
        """`snapshot` but for its stamps. refused: stems of those that count as failed."""
        bad = _is_among(refused)
        coverage = F.coalesce("told.coverage", F.create_map().cast(_NO_MAP))
        failed = F.transform_values(coverage, lambda _, __: F.lit("failed"))
        return self._select_good().select(
            F.col("told.source"),
            F.col("told.subject"),
            F.col("told.snapshot"),
            _parse_time("told.started").alias("started_at"),
            _parse_time("told.ended").alias("captured_at"),
            (F.col("told.complete") & ~bad).alias("complete"),
            F.when(bad, F.lit(0)).otherwise(F.coalesce("told.rows", F.lit(0))).alias("rows"),
            F.when(~bad, F.col("told.sha256")).alias("sha256"),
            F.col("told.scope_id"),
            F.when(bad, failed).otherwise(coverage).alias("coverage"),
            F.coalesce("told.scopes", F.create_map().cast(_NO_MAP)).alias("scopes"),
            F.when(bad, F.lit(_REFUSED)).otherwise(F.col("told.error")).alias("error"),
            "_file",
        )

    def _select_good(self) -> DataFrame:
        return self.metas.where(F.col("reason").isNull())


def _read_members(files: DataFrame, members: str) -> DataFrame:
    """A file that is one line: _file, position, line, told (its members)."""
    line = F.rtrim(F.col("content").cast("string"), F.lit("\n"))
    lines = files.select("_file", F.lit(1).cast("bigint").alias("position"), line.alias("line"))
    return lines.withColumn("told", F.from_json("line", members))


def _find_no_object() -> Column:
    """The reasons why a line has no members at all."""
    keys = F.json_object_keys("line")
    return F.when(keys.isNull() & F.try_parse_json("line").isNull(), "not_json").when(
        keys.isNull(), "not_a_record"
    )


def _is_bad(row: Column) -> Column:
    return row["kind"].isNull() | row["key"].isNull() | row["attrs"].isNull()


def _is_any_null(struct: str, names: Collection[str]) -> Column:
    found = F.lit(False)
    for name in names:
        found = found | F.col(f"{struct}.{name}").isNull()
    return found


def _parse_time(name: str) -> Column:
    return F.try_to_timestamp(F.col(name))


def _get_stem(ending: str) -> Column:
    return F.regexp_extract("_file", rf"^(.*)\Q{ending}\E\z", 1)


def _is_among(stems: Collection[str]) -> Column:
    return F.col("stem").isin(*stems) if stems else F.lit(False)


def _drop_last_empty(lines: Column) -> Column:
    """What stands after the last newline is no line."""
    ends = F.element_at(lines, -1) == ""
    return F.when(ends, F.slice(lines, F.lit(1), F.size(lines) - 1)).otherwise(lines)
