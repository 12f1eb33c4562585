"""Parse and verify what has landed, snapshots, registers and lines of audit logs; choose the newest
snapshots, and name their clusters.

A snapshot is a file of rows, and a `.meta.json` with the checksum of the rows. Rows that do not
match were changed after they were written, or the file is cut short. Then none of them is used:
rows that are missing would look like deleted objects. Files contain scope ids; tables show the
names of clusters.

The hash of a log's record is computed over its canonical JSON without the hash member. Members are
sorted, so the hashed text is the line minus the last `"hash":"…",`, which is between body and kind.
Whether a record continues the chain is not checked here, because its predecessor may land later
(`datasets.runs` checks it).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from functools import reduce
from operator import and_, or_

import pyspark.sql.functions as F
from msgspec import Struct
from pyspark.sql import Column, DataFrame, Window

from ...core.landing import FORMAT, META, REGISTER, ROWS
from ...core.resource import CoverageKind

# Explicit schemas: inference reads every file twice, and a build could see other types than the
# last.
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
_REGISTER_NAME = f"'{REGISTER}/'yyyyMMdd'T'HHmmss.SSSSSS'Z.json'"
"""The file of a register, as `inventory.landing` names it after `taken`."""
_COVERAGE = tuple(kind.value for kind in CoverageKind)
_KIND = r"\A[A-Za-z_][A-Za-z0-9_-]{0,127}\z"
CHANGED = "bad_checksum"
"""Reason of a file of rows that is not the one that was written."""
_REFUSAL = "its rows are damaged or were changed; they are in quarantine"
_NO_MAP = "map<string,string>"
_EMPTY_CHECKSUM = hashlib.sha256(b"").hexdigest()
"""Checksum of a file without bytes."""
_GLOB = re.compile(r"([\[\]{}*?\\])")
CHECKSUM_COLUMN = "sha256"
"""Column of `snapshot` that is null if the snapshot failed: then it has no rows that can be
trusted."""
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
_SEQ_MARK = '"seq":'
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


def keep_apart(value: Column) -> Column:
    """Return the value as an `explode` of one: conditions on it are not pushed into its expression,
    which would then be planned and computed for each mention of it."""
    return F.explode(F.array(value))


def split_lines(files: DataFrame) -> DataFrame:
    """Return _file, position (counted from 1) and line. files: _file, content."""
    split = F.split(_read_text(), "\n")
    # The position makes a finding useful: an editor can jump to the line.
    lines = files.select("_file", F.posexplode(_drop_last_empty(split)).alias("at", "line"))
    return lines.select("_file", (F.col("at") + 1).cast("bigint").alias("position"), "line")


def parse_registers(files: DataFrame) -> DataFrame:
    """Return taken, body, _file and, as in `split_lines`, position and line; reason: why the
    register is rejected. One row per file."""
    parsed = _read_members(files, _REGISTER)
    reason = (
        _find_no_object()
        .when(F.col("parsed.format") > FORMAT, "newer_format")
        .when(_is_any_null("parsed", ("format", "taken", "clusters")), "missing_key")
        .when((F.col("parsed.format") < 1) | _has_repeated_member(), "bad_value")
        .when(_parse_time("parsed.taken").isNull(), "bad_value")
        # As with snapshots, path and members must agree. A copy under another name would have the
        # same key as the original, and a key that occurs twice fails the build.
        .when(
            F.col("_file") != F.date_format(_parse_time("parsed.taken"), _REGISTER_NAME),
            "bad_value",
        )
    )
    return parsed.select(
        "_file",
        "position",
        "line",
        keep_apart(reason).alias("reason"),
        _parse_time("parsed.taken").alias("taken"),
        F.col("line").alias("body"),
    )


class Snapshots(Struct, frozen=True):
    """The snapshots among some landing files."""

    metas: DataFrame
    """The `.meta.json` files, one row each: parsed (the members), reason, stem, _file, position,
    line. The stem is the path without its ending, which pairs the two files of a snapshot."""
    files: DataFrame
    """The files of rows: stem, _file, content."""

    @classmethod
    def from_files(cls, metas: DataFrame, rows: DataFrame) -> Snapshots:
        """Pair the files. metas, rows: _file, content."""
        parsed = _read_members(metas, _META).withColumn("stem", _get_stem(META))
        named = F.concat_ws("/", "parsed.source", "parsed.subject", "parsed.snapshot")
        # wrong: coverage or scopes are not maps, or coverage has an unknown word.
        # `from_json` makes null of what is not a map, and null would mean the same as an empty map.
        wrong = F.lit(False)
        for name in ("coverage", "scopes"):
            is_there = F.array_contains(F.json_object_keys("line"), name)
            wrong = wrong | (is_there & F.col(f"parsed.{name}").isNull())
        words = F.coalesce(F.map_values("parsed.coverage"), F.array().cast("array<string>"))
        reason = (
            _find_no_object()
            .when(F.col("parsed.format") > FORMAT, "newer_format")
            .when(_is_any_null("parsed", _META_NEEDS), "missing_key")
            .when((F.col("parsed.format") < 1) | _has_repeated_member(), "bad_value")
            .when(
                _parse_time("parsed.started").isNull() | _parse_time("parsed.ended").isNull(),
                "bad_value",
            )
            # Members and path must agree. Otherwise a file copied to another cluster's folder would
            # count for that cluster.
            .when(named != F.col("stem"), "bad_value")
            .when(
                wrong | F.exists(words, lambda word: word.isNull() | ~word.isin(*_COVERAGE)),
                "bad_value",
            )
        )
        judged = parsed.withColumn("reason", keep_apart(reason))
        return cls(judged, rows.withColumn("stem", _get_stem(ROWS)))

    def select_rows(self) -> DataFrame:
        """Return the rows for `snapshot_raw`, without stamps: all rows of a file, or none if the
        file fails its checksum. It reads each file once; these files are most of what lands."""
        # Inner, on broadcast metas: rows without a `.meta.json` are an unfinished snapshot, not a
        # small one.
        paired = self.files.join(
            F.broadcast(self._select_good().select("stem", "parsed")), "stem", "inner"
        )
        lines = _drop_last_empty(F.split(_read_text(), "\n"))
        # One array per file instead of one row per line: the checksum and the count decide for the
        # file as a whole, without a second read and without grouping its lines again.
        parsed = paired.withColumn(
            "found", F.transform(lines, lambda line: F.from_json(line, _ROW))
        )
        # The count is compared as well: a checksum says nothing about how the bytes split into rows
        # here.
        is_unchanged = (F.sha2("content", 256) == F.col("parsed.sha256")) & (
            F.size("found") == F.col("parsed.rows")
        )
        is_sound = is_unchanged & ~F.exists(
            "found", lambda row: _lacks_members(row) | _has_wrong_kind(row)
        )
        names = [F.col(f"parsed.{name}") for name in ("source", "subject", "snapshot")]
        return parsed.withColumn("sound", F.when(is_sound, F.col("found"))).select(
            *names,
            _parse_time("parsed.ended").alias("captured_at"),
            "_file",
            # `inline` of null gives no rows, which is exactly "nothing of this file".
            F.inline("sound"),
        )

    def find_refused(self, row_counts: DataFrame) -> tuple[str, ...]:
        """Return the stems of snapshots whose rows are missing or rejected.

        row_counts: _file and n, the number of rows that `select_rows` gave for each file that has
        any.
        """
        count = row_counts.select(F.col("_file"), "n").withColumn("stem", _get_stem(ROWS))
        counted = self._select_good().join(F.broadcast(count.select("stem", "n")), "stem", "left")
        # Without a checksum the cluster could not be read; its `.meta.json` says so, and no rows
        # are due.
        with_rows = counted.where(F.col("parsed.sha256").isNotNull())
        n = F.coalesce("n", F.lit(0))
        # What should have no rows must be of no bytes, too.
        is_not_empty = (F.col("parsed.rows") == 0) & (F.col("parsed.sha256") != _EMPTY_CHECKSUM)
        # A null count would make the comparison null, and `~null` would hide the fault.
        is_complete = F.coalesce((n == F.col("parsed.rows")) & ~is_not_empty, F.lit(False))
        return tuple(row["stem"] for row in with_rows.where(~is_complete).select("stem").collect())

    def find_faults(self) -> DataFrame:
        """Return what is wrong with files whose rows were rejected: _file, reason, position, line.
        One row per bad line; a file that fails its checksum gives a single row."""
        sums = self.files.select(
            "stem",
            "content",
            F.sha2("content", 256).alias("sum"),
            F.size(_drop_last_empty(F.split(_read_text(), "\n"))).alias("n"),
        )
        # Spark passes over files without bytes, as if they were not there.
        total, count = F.coalesce("sum", F.lit(_EMPTY_CHECKSUM)), F.coalesce("n", F.lit(0))
        is_unchanged = (total == F.col("parsed.sha256")) & (count == F.col("parsed.rows"))
        checked = self._select_good().select("stem", "parsed").join(sums, "stem", how="left")
        judged = checked.withColumn("right", F.coalesce(is_unchanged, F.lit(False)))
        changed = judged.where(~F.col("right")).select(
            F.concat("stem", F.lit(ROWS)).alias("_file"),
            F.lit(CHANGED).alias("reason"),
            F.lit(None).cast("bigint").alias("position"),
            _read_text().alias("line"),
        )
        # left_semi: only lines of files that pass the checksum are looked at one by one.
        sound = self.files.join(judged.where("right").select("stem"), "stem", how="left_semi")
        lines = split_lines(sound).withColumn("row", F.from_json("line", _ROW))
        row = F.col("row")
        reason = (
            _find_no_object()
            .when(_lacks_members(row), "missing_key")
            .when(_has_wrong_kind(row), "bad_value")
        )
        bad = lines.withColumn("reason", reason).where(F.col("reason").isNotNull())
        return changed.unionByName(bad.select("_file", "reason", "position", "line"))

    def make_metas(self, refused: Collection[str]) -> DataFrame:
        """Return the rows for `snapshot`, without stamps. refused: stems of snapshots that count as
        failed."""
        bad = F.col("stem").isin(*refused) if refused else F.lit(False)
        coverage = F.coalesce("parsed.coverage", F.create_map().cast(_NO_MAP))
        # Every kind becomes `failed`: the rows are gone, and a kind that stays `complete` without
        # rows would prove that all of its objects were deleted.
        failed = F.map_from_arrays(
            F.map_keys(coverage), F.array_repeat(F.lit("failed"), F.size(coverage))
        )
        return self._select_good().select(
            F.col("parsed.source"),
            F.col("parsed.subject"),
            F.col("parsed.snapshot"),
            _parse_time("parsed.started").alias("started_at"),
            _parse_time("parsed.ended").alias("captured_at"),
            (F.col("parsed.complete") & ~bad).alias("complete"),
            # An unread cluster is never an empty one: `sha256` (CHECKSUM_COLUMN) becomes null, too.
            F.when(bad, F.lit(0).cast("bigint"))
            .otherwise(F.coalesce("parsed.rows", F.lit(0).cast("bigint")))
            .alias("rows"),
            F.when(~bad, F.col("parsed.sha256")).alias("sha256"),
            F.col("parsed.scope_id"),
            F.when(bad, failed).otherwise(coverage).alias("coverage"),
            F.coalesce("parsed.scopes", F.create_map().cast(_NO_MAP)).alias("scopes"),
            F.when(bad, F.lit(_REFUSAL)).otherwise(F.col("parsed.error")).alias("error"),
            "_file",
        )

    def _select_good(self) -> DataFrame:
        return self.metas.where(F.col("reason").isNull())


def _read_text() -> Column:
    """Return the content of a file as valid UTF-8: delta-rs and Arrow refuse a whole table because
    of one bad byte, and Sail any text with one. The landing file keeps the original bytes."""
    return F.make_valid_utf8(F.col("content"))


def _read_members(files: DataFrame, members: str) -> DataFrame:
    """Parse files of one line: _file, position, line, parsed (the members)."""
    line = F.rtrim(_read_text(), F.lit("\n"))
    # `explode`: Sail would test conditions about the line while it lists files, where it has no
    # content yet.
    line = F.explode(F.array(line)).alias("line")
    lines = files.select("_file", F.lit(1).cast("bigint").alias("position"), line)
    return lines.withColumn("parsed", F.from_json("line", members))


def _has_repeated_member() -> Column:
    # `from_json` takes one of two equal members, and other readers may take the other.
    keys = F.json_object_keys("line")
    return F.size(keys) != F.size(F.array_distinct(keys))


def _find_no_object() -> Column:
    """Return the reason of a line that is not a JSON object."""
    # `from_json` gives a struct of nulls for `[]` and `3`, so the keys decide what an object is.
    keys = F.json_object_keys("line")
    return F.when(keys.isNull() & F.try_parse_json("line").isNull(), "not_json").when(
        keys.isNull(), "not_a_record"
    )


def _lacks_members(row: Column) -> Column:
    return row["kind"].isNull() | row["key"].isNull() | row["attrs"].isNull()


def _has_wrong_kind(row: Column) -> Column:
    # `snapshot_raw` has a folder for each kind. A text that cannot be the name of a folder would
    # fail the build for all clusters, and Delta Lake reads an empty one as null.
    return ~row["kind"].rlike(_KIND)


def _is_any_null(struct: str, names: Collection[str]) -> Column:
    is_null = F.lit(False)
    for name in names:
        is_null = is_null | F.col(f"{struct}.{name}").isNull()
    return is_null


def _parse_time(name: str) -> Column:
    # ANSI mode is on: a plain cast would fail the build because of one bad time.
    return F.try_to_timestamp(F.col(name))


def _get_stem(ending: str) -> Column:
    return F.left("_file", F.length("_file") - len(ending))


def _drop_last_empty(lines: Column) -> Column:
    """Drop the empty text after the last newline, which is not a line."""
    ends = F.element_at(lines, -1) == ""
    return F.when(ends, F.slice(lines, F.lit(1), F.size(lines) - 1)).otherwise(lines)


def select_newest(frame: DataFrame, keys: Sequence[str], *order: Column) -> DataFrame:
    """Keep the first row of each key. order: must be total, so that each build picks the same
    row."""
    # Not dropDuplicates: it keeps an arbitrary row, so two builds of the same input could differ.
    ranked = Window.partitionBy(*keys).orderBy(*order)
    first = frame.withColumn("_rank", F.row_number().over(ranked)).where(F.col("_rank") == 1)
    return first.drop("_rank")


def select_latest_snapshots(snapshot: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Keep the newest snapshot of each key. Of two with the same time, the greater name wins."""
    return select_newest(snapshot, keys, F.desc("captured_at"), F.desc("snapshot"), F.desc("_file"))


def add_cluster_names(frame: DataFrame, cluster: DataFrame) -> DataFrame:
    """Add the column `cluster`: the name that belongs to `scope_id`, or the scope id if there is
    none.

    cluster: the silver table.
    """
    # One row per cluster: small enough to broadcast at any size of fleet, which avoids a shuffle of
    # the large side. A left join keeps rows of clusters that no register names.
    named = frame.join(F.broadcast(list_cluster_names(cluster)), "scope_id", how="left")
    return named.withColumn("cluster", F.coalesce("_name", "scope_id")).drop("_name")


def list_cluster_names(cluster: DataFrame) -> DataFrame:
    """Return scope_id and _name, one row per scope id.

    If two clusters of fleet.hcl have the same id, the one that was read last names the rows.
    """
    # A cluster that never answered has no id. In a join null equals nothing, so its rows would only
    # cost.
    identified = cluster.where(F.col("cluster_id").isNotNull())
    order = (F.desc("registered"), F.desc_nulls_last("captured_at"), F.asc("cluster"))
    chosen = select_newest(identified, ["cluster_id"], *order)
    return chosen.select(F.col("cluster_id").alias("scope_id"), F.col("cluster").alias("_name"))


def escape_pattern(path: str) -> str:
    """Escape glob characters, because Spark's readers expand every path that contains them."""
    return _GLOB.sub(r"\\\1", path)


def parse_records(lines: DataFrame) -> DataFrame:
    """Add the record's members (the columns of `audit_raw`) and the scope_id of its step.

    lines: with line, lineage (of the log that it was found in), origin, and any other columns. All
    members are null if the line is rejected.
    """
    return _read_record_members(_split_parts(lines)).drop(*_HELPER_COLUMNS)


def judge_lines(lines: DataFrame) -> DataFrame:
    """Like `parse_records`, and add `reason`: why the line is rejected, or null. It parses a line
    several times, so call it only for the few lines that were rejected."""
    parsed = _read_record_members(_split_parts(lines))
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
    begin = F.length("head") - F.length(F.regexp_replace("head", _BEGIN, ""))
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
        _is_cut() | ~_lacks_record_members(),
    )
    # A null in any condition means that something is missing. `sound` is used without negation and
    # negated, so it must not be null.
    return headed.withColumn("begin", begin).withColumn(
        "sound", F.coalesce(reduce(and_, conditions), F.lit(False))
    )


def _read_record_members(lines: DataFrame) -> DataFrame:
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
    # `_CLAIM` allows 18 digits, so that the ANSI cast to bigint cannot overflow and fail the job.
    seq = F.substring_index(F.substring_index("line", _SEQ_MARK, -1), ",", 1)
    return F.when(F.col("line").rlike(_CLAIM), seq.try_cast("bigint"))


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


def _lacks_record_members() -> Column:
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
    missing = ~reduce(and_, (F.array_contains(keys, name) for name in MEMBERS))
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
        .when(~_is_cut() & _lacks_record_members(), "missing_key")
    )
