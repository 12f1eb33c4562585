"""Take in what has landed: read landing files and topics into the bronze tables, each line once,
and find the clusters that have new input. Only their rows are recomputed.

Files are read as bytes, because a checksum covers bytes, and so that a line keeps its number. A
line that cannot be read goes to `quarantine` and is left out. If too many lines are bad, the build
fails.

Of a topic, Spark's checkpoint records which offsets it is about to read, and Delta Lake records the
batch with its rows. A run that dies between the two reads the same offsets again, and Delta Lake
skips the batch that it already has.

Two results depend on the build's time (`BuildContext.as_of`) and not on new rows alone: whether a
snapshot is stale (table `cluster`, which every build recomputes) and whether a waiver still counts.
Everything else about a cluster is judged as of its own newest snapshot. The `as_of` in the drift of
an unreadable cluster is the time at which it was last judged.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial, reduce
from hashlib import sha256
from typing import Any

import pyspark.sql.functions as F
from msgspec import Struct
from msgspec.structs import replace
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from ...core.errors import KafkaformError, UsageError
from ...core.landing import AUDIT, LIVE, META, REGISTER, ROOT, ROWS, SOURCES
from ...core.objects import Objects
from ..landed import topic_source
from ..landed.register import Register, read_register
from ..landed.snapshots import (
    CHANGED,
    FILE,
    TOPIC,
    Snapshots,
    escape_pattern,
    judge_lines,
    parse_records,
    parse_registers,
    split_lines,
)
from ..spark.store import TableStore, hadoop_address
from ..tables.definitions import SCHEMA_VERSION, TABLES, Frames
from ..tables.manifest import ALL_CLUSTERS, Clusters
from .workspace import run_at_once

BRONZE = ("audit_raw", "snapshot_raw", "snapshot", "register_raw", "quarantine")
LINE_CHARACTERS = 2048
"""How many characters of a bad line `quarantine` keeps."""
_NO_FILES = "SELECT CAST(NULL AS STRING) AS _file, CAST(NULL AS BINARY) AS content WHERE false"
_PATH_DEPTHS: Mapping[str, int] = {REGISTER: 2}
"""Landing folder -> number of parts of a path below the landing root, if it is not 3."""
_ENDINGS: Mapping[str, str] = {AUDIT: ROWS, REGISTER: ".json", **dict.fromkeys(SOURCES, META)}
"""Landing folder -> ending of the files that are complete by themselves. Files of rows are not:
their `.meta.json` comes last."""
Write = Callable[[str, DataFrame], DataFrame]
"""Adds rows to a table; returns the rows that this build has added to it."""
_ADVICE = (
    "Check the topic's name, the connection and the right to read it. If records were deleted "
    "before they were read, land the log itself with `kafkaform fleet snapshot`, remove the folder "
    "`checkpoints` below the root, and run again: what is read twice counts once."
)
_WORKER_ADVICE = (
    "The environment of this process reaches neither the workers of a Spark cluster nor a Connect "
    "server. Set the variable there, as docs/fleet/running.md says, or land the log with "
    "`kafkaform fleet snapshot`."
)
"""Advice if a worker does not know how to reach the brokers."""
_SLOW_WORKER = "Python worker failed to connect back"
"""Spark's error if a worker takes more than 10 s to start, as on a busy machine. The limit is
fixed. Trying again is safe, because no batch is added twice."""
_TRIES = 4
Row = Mapping[str, Any]
Rows = Mapping[str, Row]
Views = tuple[DataFrame, DataFrame]
"""A table as the previous build left it, and as this build has made it."""
_BEGIN = "run_begin"


class BuildStamp(Struct, frozen=True):
    """What every new row is marked with."""

    build: str
    read_at: datetime
    """When the row was read (UTC)."""


def list_ready(listed: Iterable[str], known_files: Container[str]) -> tuple[str, ...]:
    """Return the files to read, sorted: paths below the landing folder.

    listed: all files; known_files: those that were read before. Rows come with their `.meta.json`:
    without it the snapshot is not finished, and the rows must be listed again.
    """
    all_files = set(listed)
    # Files that are known are never read again: they cannot change.
    new = {
        name
        for name in all_files
        if name not in known_files and name.endswith(_ENDINGS.get(get_source(name), ()))
    }
    rows = {name.removesuffix(META) + ROWS for name in new if name.endswith(META)}
    return tuple(sorted(new | (rows & all_files)))


def take_in(
    spark: SparkSession,
    landing: str,
    files: Sequence[str],
    stamp: BuildStamp,
    max_corrupt: float,
    bronze: Frames,
    write: Write,
) -> None:
    """Write the new rows of each bronze table.

    landing: path or URL of the landing folder; files: from `list_ready`; max_corrupt: the largest
    share of bad lines that is allowed; bronze: `audit_raw` and `quarantine`, if a topic has brought
    lines that must be judged, else empty.

    A snapshot fails as a whole if its rows do not match their checksum or have a bad line. Each
    file is read once; files with bad lines are read again to find the reasons. Raises
    KafkaformError, naming the worst file, if too many lines are bad. By then some tables are
    written; the next build takes that back.
    """
    # Each file once, even if it is listed twice, or its rows would be doubled.
    reader = _Files(spark, landing, tuple(dict.fromkeys(files)))

    def write_all(**tables: DataFrame) -> list[DataFrame]:
        tasks = [partial(write, name, _stamp_rows(name, tables[name], stamp)) for name in tables]
        return run_at_once(tasks, spark.interruptAll)

    snapshots, registers = (
        Snapshots.from_files(reader.read_metas(), reader.read_rows()),
        parse_registers(reader.read_folder(REGISTER)),
    )
    # Side by side: most of the time goes into planning, which uses one core.
    lines, rows, _ = write_all(
        audit_raw=parse_records(_read_audit_lines(reader.read_folder(AUDIT))),
        snapshot_raw=snapshots.select_rows(),
        register_raw=registers.where(F.col("reason").isNull()),
    )
    lines = lines.where(F.col("origin") == FILE)
    # The verdict comes from the rows that were written. Verifying first would read all files twice.
    refused = snapshots.find_refused(_count_rows(rows)) if reader.has(META) else ()
    unparsed = lines.where(F.col("seq").isNull()).select("_file").distinct()
    bad_logs = tuple(row["_file"] for row in unparsed.collect()) if reader.has(AUDIT) else ()
    bad_files = {*bad_logs, *(stem + end for stem in refused for end in (META, ROWS))}
    bad_reader = replace(reader, names=tuple(name for name in reader.names if name in bad_files))
    bad = (
        *(_select_bad_of_files(bad_reader) if bad_files else ()),
        _select_bad(snapshots.metas),
        _select_bad(registers),
        *_select_bad_of_topics(bronze),
    )
    # `snapshot` last: it must say `failed` for files whose rows were refused.
    quarantine, _ = write_all(
        quarantine=reduce(DataFrame.unionByName, bad), snapshot=snapshots.make_metas(refused)
    )
    _weigh_bad(quarantine, lines, rows, max_corrupt)


def make_audit_rows(lines: DataFrame, stamp: BuildStamp) -> DataFrame:
    """Return the rows of `audit_raw` for parsed lines."""
    return _stamp_rows("audit_raw", lines, stamp)


class _Files(Struct, frozen=True):
    spark: SparkSession
    landing: str
    names: tuple[str, ...]

    def has(self, name: str) -> bool:
        """True if there are files in this folder, or with this ending."""
        return any(n.startswith(f"{name}/") or n.endswith(name) for n in self.names)

    def read_folder(self, folder: str) -> DataFrame:
        names = [name for name in self.names if name.startswith(f"{folder}/")]
        return self._read(names, _PATH_DEPTHS.get(folder, 3))

    def read_metas(self) -> DataFrame:
        return self._read([name for name in self.names if name.endswith(META)])

    def read_rows(self) -> DataFrame:
        folders = tuple(f"{source}/" for source in SOURCES)
        return self._read([n for n in self.names if n.startswith(folders) and n.endswith(ROWS)])

    def _read(self, names: Sequence[str], depth: int = 3) -> DataFrame:
        """Return _file and content. Spark reports absolute paths; `_file` is below the landing
        folder."""
        if not names:
            return self.spark.sql(_NO_FILES)
        base = self.landing.rstrip("/")
        paths = [escape_pattern(f"{base}/{name}") for name in names]
        # Not the text reader: it accepts any line ending and replaces bad bytes, so no checksum
        # would match.
        loaded = self.spark.read.format("binaryFile").load(paths)
        # Counted from the right: schemes and mounts give the same file several absolute forms.
        below = F.substring_index("path", "/", -depth)
        return loaded.select(below.alias("_file"), "content")


def _read_audit_lines(files: DataFrame) -> DataFrame:
    lineage = F.split_part(F.col("_file"), F.lit("/"), F.lit(2))
    return split_lines(files).withColumns({"lineage": lineage, "origin": F.lit(FILE)})


def _count_rows(rows: DataFrame) -> DataFrame:
    """Return _file and n, the number of rows, for each file that has any."""
    return rows.groupBy("_file").agg(F.count(F.lit(1)).alias("n"))


def _weigh_bad(
    quarantine: DataFrame, lines: DataFrame, rows: DataFrame, max_corrupt: float
) -> None:
    """Raises KafkaformError: too many of the lines are bad. Files that fail their checksum do not
    count here, since such a snapshot counts as failed."""
    of_files = (F.col("source") != "topic") & (F.col("reason") != CHANGED)
    # The share is of lines, so that one cut file in a large fleet does not stop the build.
    files = quarantine.where(of_files).groupBy("_file").agg(F.count(F.lit(1)).alias("bad"))
    # At most one row per file with bad lines, and usually none: safe to collect.
    listed = files.orderBy(F.desc("bad"), "_file").collect()
    if not listed:
        return
    bad = sum(row["bad"] for row in listed)
    # `audit_raw` has the bad lines of logs, too; the other tables have good lines only.
    other_bad = sum(row["bad"] for row in listed if not row["_file"].startswith(f"{AUDIT}/"))
    total = lines.count() + rows.count() + other_bad
    if bad > max_corrupt * total:
        raise KafkaformError(
            f"{bad} of {total} landed lines cannot be read, more than the allowed share of "
            f"{max_corrupt:g}; {listed[0]['bad']} of them are in {listed[0]['_file']}",
            "Find out what changed that file and restore it. Or raise max_corrupt: then the bad "
            "lines go to the table `quarantine`, and the rest is used.",
        )


def _select_bad_of_files(bad_reader: _Files) -> tuple[DataFrame, DataFrame]:
    """Return the bad lines of logs and of the rows of snapshots. bad_reader: of files that have
    some: usually there is none, and planning what finds nothing takes longer than the rest."""
    logs = _read_audit_lines(bad_reader.read_folder(AUDIT))
    rows = Snapshots.from_files(bad_reader.read_metas(), bad_reader.read_rows())
    return _select_bad(judge_lines(logs)), _select_bad(rows.find_faults())


def _select_bad(frame: DataFrame) -> DataFrame:
    """Return the rows for `quarantine`. frame: with reason, position, line and _file; the first
    part of the path names the source."""
    return _set_aside(frame, F.split_part(F.col("_file"), F.lit("/"), F.lit(1)))


def _set_aside(frame: DataFrame, source: Column) -> DataFrame:
    text = F.substring("line", 1, LINE_CHARACTERS)
    bad = frame.where(F.col("reason").isNotNull())
    return bad.select(source.alias("source"), "reason", "position", text.alias("text"), "_file")


def _select_bad_of_topics(bronze: Frames) -> list[DataFrame]:
    """Return the rejected lines of topics that are not in quarantine yet."""
    if not bronze:
        return []
    raw = bronze["audit_raw"].where(F.col("seq").isNull() & F.col("origin").startswith(TOPIC))
    offset = F.element_at(F.split("origin", "/"), -1).cast("bigint")
    lines = judge_lines(raw.select("line", "lineage", "origin", "_file", offset.alias("position")))
    quarantined = bronze["quarantine"].where(F.col("source") == "topic")
    # A retried batch may have brought an offset twice.
    bad = _set_aside(lines.dropDuplicates(["_file", "position"]), F.lit("topic"))
    return [bad.join(quarantined, ["_file", "position"], how="left_anti")]


def _stamp_rows(table: str, rows: DataFrame, stamp: BuildStamp) -> DataFrame:
    stamps = {"_build": F.lit(stamp.build), "_ingested_at": F.lit(stamp.read_at)}
    return rows.withColumns(stamps).select(*TABLES[table].names)


def list_inputs(objects: Objects) -> Mapping[str, int]:
    """Return path below the landing folder -> size in bytes."""
    return {e.key.removeprefix(f"{ROOT}/"): e.size for e in objects.names(f"{ROOT}/")}


def get_source(file: str) -> str:
    """Return the folder of a file: register, live, state, desired or audit."""
    return file.split("/", 1)[0]


def get_subject(file: str) -> str:
    """Return the cluster or lineage that a file is about."""
    return file.split("/", 2)[1]


def compute_fingerprint(files: Mapping[str, int], options: Iterable[object]) -> str:
    """Return the SHA-256 of everything that decides what a build makes. Landing files never change,
    so name and size determine their bytes."""
    lines = sorted(f"{name} {size}" for name, size in files.items())
    about = (f"schema {SCHEMA_VERSION}", *map(str, options))
    return sha256("\n".join((*lines, *about)).encode()).hexdigest()


def read_newest_register(objects: Objects, files: Iterable[str]) -> Register | None:
    """Return the newest register among these files; None: there is none."""
    # Names are times of equal width, so they sort by time.
    names = sorted(name for name in files if get_source(name) == REGISTER)
    register_object = objects.read(f"{ROOT}/{names[-1]}") if names else None
    return None if register_object is None else read_register(register_object.data.decode())


def read_current_register(objects: Objects, files: Iterable[str]) -> Register:
    """Return the newest register. Raises UsageError: nothing has landed."""
    register = read_newest_register(objects, files)
    if register is None:
        raise UsageError(
            f"{objects.location}: there are no landing files",
            "Run `kafkaform fleet snapshot` first; it reads the clusters and writes landing files.",
        )
    return register


def make_follower(topic: str) -> Callable[[TableStore, str], None]:
    """Return a function that appends what is new in the topic to `audit_raw`, for a build.

    The connection is in `topic_source.SETTINGS`, which must be in the environment before the
    session starts, and in that of every worker. Raises KafkaformError: the topic cannot be read, or
    has lost records that were not read yet.
    """

    def follow(store: TableStore, build: str) -> None:
        stamp = BuildStamp(build, datetime.now(UTC))
        store.ensure("audit_raw")
        # Workers of a cluster, and a Connect server, need not have kafkaform: the module travels
        # with the query. By reference, they would have to import it.
        cloudpickle.register_pickle_by_value(topic_source)  # type: ignore[no-untyped-call]  # has no types
        store.spark.dataSource.register(topic_source.TopicSource)
        stream = store.spark.readStream.format(topic_source.NAME).option("topic", topic).load()
        file = F.concat(F.lit(f"{TOPIC}{topic}/"), F.col("number").cast("string"))
        lines = stream.select(
            "line",
            "lineage",
            F.concat(file, F.lit("/"), F.col("place").cast("string")).alias("origin"),
            file.alias("_file"),
        )
        rows = make_audit_rows(parse_records(lines), stamp)
        table, checkpoint = store.path("audit_raw"), checkpoint_path(store.root, topic)
        for tries_left in reversed(range(_TRIES)):
            # One checkpoint per topic, below the root: two topics in one would mix their offsets.
            # To delete it is safe but slow: the topic is read again, and a repeated line counts
            # once.
            writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
            # availableNow ends when the offsets of the start are reached. `foreachBatch` is not
            # used: through Connect, its function runs on the server.
            query = writer.outputMode("append").trigger(availableNow=True).start(table)
            try:
                query.awaitTermination()
                return
            except PySparkException as error:
                if not tries_left or _SLOW_WORKER not in str(error):
                    raise _make_refusal(topic, str(error)) from error

    return follow


def checkpoint_path(root: str, topic: str) -> str:
    """Return where Spark records how far the topic was read."""
    return f"{hadoop_address(root)}/checkpoints/topic-{topic}"


def _make_refusal(topic: str, message: str) -> KafkaformError:
    """Use our own message if there is one; Spark wraps it in its own."""
    match = re.search(rf"{re.escape(topic_source.PREFIX)}[^\n]*", message)
    cause = (
        match[0] if match else f"{topic_source.PREFIX}{topic}: {message.strip().splitlines()[0]}"
    )
    return KafkaformError(cause, _WORKER_ADVICE if topic_source.SETTINGS in cause else _ADVICE)


class ChangedClusters(Struct, frozen=True):
    """What a build has to recompute."""

    clusters: Clusters
    """Their rows are recomputed."""
    renamed: bool
    """Old audit records may belong to other clusters now: a name or an id is new or gone, or two
    names have the same id."""
    lineages: Clusters = frozenset()
    """Lineages that have a new state or configuration, maybe an old one that landed late."""


EVERYTHING = ChangedClusters(ALL_CLUSTERS, True, ALL_CLUSTERS)


def find_changed_clusters(
    files: Iterable[str],
    clusters: Views,
    lineages: Views,
    lines: DataFrame,
    landed: DataFrame,
    ended: DataFrame,
) -> ChangedClusters:
    """Compare the tables `cluster` and `lineage` with those of the previous build.

    files: new ones, below the landing folder; lines: rows of `audit_raw` that no earlier build has
    seen; landed: lineage and scope of each new state and configuration; ended: rows of
    `policy_findings` whose waiver has ended since.

    A cluster has new input if it has a new snapshot; if its row changes, such as its status, or
    that of another cluster with the same id; if a lineage that concerns it (now or before) has a
    new state or configuration; if a record is about it; or if a waiver has ended. A lineage that
    may concern any cluster causes all clusters to be recomputed when it has something new, and when
    it becomes, or stops being, such a lineage.
    """
    # A run may have changed clusters without a recorded step, so all of its scopes count.
    run_scopes = F.when(F.col("kind") == _BEGIN, F.get_json_object("body", "$.scopes"))
    scopes = F.to_json(F.array("scope_id", run_scopes))
    clusters_before, clusters_now, lineages_before, lineages_now, line_scopes, new, waived = (
        _collect_parts(
            *(_select_rows(view, "cluster") for view in clusters),
            *(_select_rows(view, "lineage") for view in lineages),
            _select_part(lines.select(scopes.alias("key")).distinct(), F.col("key")),
            _select_part(landed.distinct(), F.to_json(F.array("lineage", "scope"))),
            _select_part(ended.select("cluster").distinct(), F.col("cluster")),
        )
    )
    renamed = _is_renamed(clusters_before, clusters_now)
    landed_scopes = [json.loads(text) for text in new]
    new_lineages = frozenset(name for name, _ in landed_scopes)
    # A state that lands late leaves the row of its lineage as it is, but not the past.
    changed = _find_changes(lineages_before, lineages_now, new_lineages)
    if any(
        _reaches_all(old) != _reaches_all(now) or (name in new_lineages and _lacks_scopes(now))
        for name, (old, now) in changed.items()
    ):
        return ChangedClusters(ALL_CLUSTERS, renamed, new_lineages)
    views = (clusters_before, clusters_now)
    names = _find_changes(clusters_before, clusters_now).keys() | waived.keys()
    # A new snapshot counts even if no column of `cluster` changes: its rows may be other ones.
    names |= {get_subject(key) for key in files if get_source(key) == LIVE}
    scopes_of_states = {*_list_lineage_scopes(changed), *(scope for _, scope in landed_scopes)}
    all_scopes = {*scopes_of_states, *_list_line_scopes(line_scopes)} - {None}
    names |= _find_names(views, names, all_scopes)
    if changed:
        # Any unread state may be about a cluster that never said which one it is.
        names |= {name for name in clusters_now if not _list_ids(views, name)}
    # ALL_CLUSTERS instead of a list of every name: a table is then overwritten, which is
    # cheaper than replacing all of its clusters one by one.
    return ChangedClusters(
        ALL_CLUSTERS if names >= clusters_now.keys() else frozenset(names), renamed, new_lineages
    )


def _is_renamed(previous: Rows, current: Rows) -> bool:
    """True if names and ids are paired differently now, or if two names share an id."""
    named = [
        sorted((row["cluster_id"], name) for name, row in view.items() if row.get("cluster_id"))
        for view in (previous, current)
    ]
    shared = any(len(dict(ids)) < len(ids) for ids in named)
    return shared or named[0] != named[1]


def _find_names(views: Sequence[Rows], changed: Iterable[str], scopes: Iterable[str]) -> set[str]:
    """Return the names of these scopes and all names that share an id with a changed cluster, since
    rows may move from one name to the other."""
    names: dict[str, set[str]] = defaultdict(set)
    for name in {name for view in views for name in view}:
        for scope in _list_ids(views, name):
            names[scope].add(name)
    all_scopes = {*scopes, *(scope for name in changed for scope in _list_ids(views, name))}
    return {name for scope in all_scopes for name in names.get(scope, {scope})}


def _list_ids(views: Sequence[Rows], name: str) -> frozenset[str]:
    ids = (view.get(name, {}).get("cluster_id") for view in views)
    return frozenset(cluster_id for cluster_id in ids if cluster_id)


def _find_changes(
    previous: Rows, current: Rows, always: Container[str] = ()
) -> Mapping[str, tuple[Row, Row]]:
    """Return key -> the row before and after; empty: there is none. always: these keys, too."""
    keys = previous.keys() | current.keys()
    rows = {key: (previous.get(key, {}), current.get(key, {})) for key in keys}
    return {key: pair for key, pair in rows.items() if pair[0] != pair[1] or key in always}


def _reaches_all(lineage: Row) -> bool:
    """True if the lineage could not be read and may concern any cluster. `drift` uses the same rule
    to call an object `unknown`."""
    if not lineage or (lineage["desired_known"] and lineage.get("state_at")):
        return False
    return _lacks_scopes(lineage)


def _lacks_scopes(lineage: Row) -> bool:
    """True if nobody knows which clusters the lineage concerns."""
    scopes = lineage["scopes"].values()
    return not scopes or None in scopes


def _list_lineage_scopes(changed: Mapping[str, tuple[Row, Row]]) -> Iterator[str | None]:
    """Yield the scopes of lineages, before and after."""
    for versions in changed.values():
        for row in versions:
            yield from row.get("scopes", {}).values()


def _list_line_scopes(line_scopes: Iterable[str]) -> Iterator[str]:
    """Yield the scope of each step, and all scopes of each run that begins."""
    for text in line_scopes:
        step, run = json.loads(text)
        if step is not None:
            yield step
        if run is not None:
            yield from map(str, filter(None, json.loads(run).values()))


# ── one query for all of it ─────────────────────────────────────────────────────────────


def _select_rows(view: DataFrame, key: str) -> DataFrame:
    """Return whole rows as JSON: two reads of a table can differ in types, but not in that text."""
    return _select_part(view, F.col(key), F.to_json(F.struct("*")))


def _select_part(rows: DataFrame, key: Column, row: Column | None = None) -> DataFrame:
    return rows.select(key.alias("key"), (F.lit("{}") if row is None else row).alias("row"))


def _collect_parts(*queries: DataFrame) -> tuple[Rows, ...]:
    """Return the rows of each part by key. One query for all parts: planning six would take
    longer."""
    # The driver may collect here: one small row per cluster, lineage and distinct scope.
    numbered = (query.withColumn("part", F.lit(n)) for n, query in enumerate(queries))
    rows: tuple[dict[str, Row], ...] = tuple({} for _ in queries)
    for key, row, query in reduce(DataFrame.unionByName, numbered).collect():
        rows[query][key] = json.loads(row)
    return rows
