"""Landing files become rows of the bronze tables: each file once, and nothing typed away.

Files are read as bytes: a checksum is of bytes, and a line keeps its number. What cannot be read
goes to `quarantine` and is left out; where that is too much, nothing is taken in at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession

from ..core.errors import KafkaformError
from ..core.landing import AUDIT, META, REGISTER, ROWS, SOURCES
from .dataset import Frames
from .landed import Snapshots, lines_of, registers, stem_of
from .lines import TOPIC, judged
from .tables import TABLES

BRONZE = ("audit_raw", "snapshot_raw", "snapshot", "register_raw", "quarantine")
LONGEST = 2048
"""Characters of a bad line that are shown."""
_CONTENTS = "_file string, content binary"
_PARTS: Mapping[str, int] = {REGISTER: 2}
"""How many parts the path of a file below the landing folder has, if it is not 3."""
_GLOB = re.compile(r"([\[\]{}*?\\])")


@dataclass(frozen=True)
class Stamp:
    """On every new row. now: when it was taken in (UTC)."""

    build: str
    now: datetime


def ready(listed: Iterable[str], known: Container[str]) -> tuple[str, ...]:
    """The files to take in, sorted, of all that are listed: paths below the landing folder.
    known: those taken in before. Rows come with the `.meta.json` beside them: without it they
    are not there yet, and must be listed again."""
    there = set(listed)
    new = {name for name in there if name not in known and _closed(name)}
    rows = {name.removesuffix(META) + ROWS for name in new if name.endswith(META)}
    return tuple(sorted(new | (rows & there)))


def _closed(name: str) -> bool:
    folder = name.partition("/")[0]
    wanted = {AUDIT: ROWS, REGISTER: ".json", **dict.fromkeys(SOURCES, META)}
    return folder in wanted and name.endswith(wanted[folder])


def take_in(
    spark: SparkSession,
    landing: str,
    files: Sequence[str],
    stamp: Stamp,
    max_corrupt: float,
    bronze: Frames,
) -> Mapping[str, DataFrame]:
    """The new rows of each table in BRONZE, to be appended.

    landing: path or URL of the landing folder; files: what `ready` says; max_corrupt: largest
    share of bad lines; bronze: `audit_raw` and `quarantine` as they stand, of which the lines are
    judged that a topic has brought since (empty: no topic is read).

    A snapshot whose rows are not what its checksum says, or have a bad line, counts as failed.
    Raises KafkaformError, naming the worst file, where too many lines are bad.
    """
    read = _Files(spark, landing, tuple(dict.fromkeys(files)))
    audit = judged(_audit_lines(read.of(AUDIT)))
    taken = registers(read.of(REGISTER))
    snapshots = Snapshots.of(read.metas(), read.rows())
    unsound = tuple(row[0] for row in snapshots.unsound().select("stem").collect())
    rows = snapshots.judged_rows(unsound)
    judged_all = (audit, rows, snapshots.metas, taken)
    holed = _weighed(judged_all, max_corrupt)
    refused = (*unsound, *map(stem_of, holed))
    # Only files that are known to have bad lines are read for them once more.
    of_holed = [frame.where(_of(holed)) for frame in judged_all]
    bad = [_bad(frame, _source()) for frame in of_holed] + [snapshots.unsound_files()]
    new = {
        "snapshot_raw": snapshots.rows_without(rows, refused),
        "snapshot": snapshots.metas_with(refused),
        "register_raw": taken.where(F.col("reason").isNull()),
        "quarantine": reduce(DataFrame.unionByName, bad + _bad_of_topics(bronze)),
    }
    stamped = {table: _stamped(table, frame, stamp) for table, frame in new.items()}
    return {"audit_raw": audit_rows(audit, stamp), **stamped}


def audit_rows(lines: DataFrame, stamp: Stamp) -> DataFrame:
    """`audit_raw` of judged lines."""
    return _stamped("audit_raw", lines.withColumn("line", _printable(F.col("line"))), stamp)


@dataclass(frozen=True)
class _Files:
    spark: SparkSession
    landing: str
    names: tuple[str, ...]

    def of(self, folder: str) -> DataFrame:
        found = [name for name in self.names if name.startswith(f"{folder}/")]
        return self._read(found, _PARTS.get(folder, 3))

    def metas(self) -> DataFrame:
        return self._read([name for name in self.names if name.endswith(META)])

    def rows(self) -> DataFrame:
        mine = tuple(f"{source}/" for source in SOURCES)
        return self._read([n for n in self.names if n.startswith(mine) and n.endswith(ROWS)])

    def _read(self, names: Sequence[str], parts: int = 3) -> DataFrame:
        """_file, content. Spark names files with all that stands before the landing folder."""
        if not names:
            return self.spark.createDataFrame([], _CONTENTS)
        base = self.landing.rstrip("/")
        # Spark takes what looks like a pattern for one.
        paths = [_GLOB.sub(r"\\\1", f"{base}/{name}") for name in names]
        found = self.spark.read.format("binaryFile").load(paths)
        below = F.substring_index("path", "/", -parts)
        return found.select(below.alias("_file"), "content")


def _audit_lines(files: DataFrame) -> DataFrame:
    lineage = F.split_part(F.col("_file"), F.lit("/"), F.lit(2))
    return lines_of(files).withColumns({"lineage": lineage, "origin": F.lit("file")})


def _weighed(frames: Iterable[DataFrame], max_corrupt: float) -> tuple[str, ...]:
    """The files that have bad lines. frames: with _file and reason, one row a line.
    Raises KafkaformError: too many lines are bad."""
    lines = reduce(DataFrame.unionByName, (frame.select("_file", "reason") for frame in frames))
    files = lines.groupBy("_file").agg(F.count("*").alias("all"), F.count("reason").alias("bad"))
    worst = F.array_sort(F.collect_list(F.when(F.col("bad") > 0, F.struct(-F.col("bad"), "_file"))))
    total = files.agg(F.sum("all"), F.sum("bad"), worst).collect()[0]
    lines_in_all, bad, listed = total[0] or 0, total[1] or 0, total[2]
    if bad > max_corrupt * lines_in_all:
        most, file = listed[0]
        raise KafkaformError(
            f"{bad} of {lines_in_all} landed lines cannot be read, which is more than the share of "
            f"{max_corrupt:g} that may be; {-most} of them are in {file}",
            "Find out what changed that file and put it back, or raise max_corrupt: then the "
            "lines are kept apart in the table `quarantine`, and the rest is taken in.",
        )
    return tuple(file for _, file in listed)


def _of(files: Collection[str]) -> Column:
    return F.col("_file").isin(*files) if files else F.lit(False)


def _bad(frame: DataFrame, source: Column) -> DataFrame:
    """What goes to quarantine. frame: with reason, position, line and _file."""
    text = F.substring(_printable(F.col("line")), 1, LONGEST)
    bad = frame.where(F.col("reason").isNotNull())
    return bad.select(source.alias("source"), "reason", "position", text.alias("text"), "_file")


def _bad_of_topics(bronze: Frames) -> list[DataFrame]:
    """What topics have brought that is no record, and that is not in quarantine yet."""
    if not bronze:
        return []
    raw = bronze["audit_raw"].where(F.col("seq").isNull() & F.col("origin").startswith(TOPIC))
    offset = F.element_at(F.split("origin", "/"), -1).cast("bigint")
    lines = judged(raw.select("line", "lineage", "origin", "_file", offset.alias("position")))
    known = bronze["quarantine"].where(F.col("source") == "topic")
    bad = _bad(lines.dropDuplicates(["_file", "position"]), F.lit("topic"))
    return [bad.join(known, ["_file", "position"], how="left_anti")]


def _source() -> Column:
    """The folder that a file is in, which is named after what it is."""
    return F.split_part(F.col("_file"), F.lit("/"), F.lit(1))


def _printable(text: Column) -> Column:
    """Text that every reader of the tables can read; what is not is in the landing file still."""
    return F.make_valid_utf8(text)


def _stamped(table: str, rows: DataFrame, stamp: Stamp) -> DataFrame:
    stamps = {"_build": F.lit(stamp.build), "_ingested_at": F.lit(stamp.now)}
    return rows.withColumns(stamps).select(*TABLES[table].names)
