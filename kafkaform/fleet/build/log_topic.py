"""Append new records of an audit log's topic to `audit_raw`, each once.

Spark's checkpoint records which offsets it is about to read, and Delta Lake records the batch with
its rows. A run that dies between the two reads the same offsets again, and Delta Lake skips the
batch that it already has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pyspark.sql.functions as F
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ...core.errors import KafkaformError
from ..landed import topic_source
from ..landed.log_lines import TOPIC, parse_records
from ..spark.store import TableStore, hadoop_address
from .intake import BuildStamp, make_audit_rows

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


def make_follower(topic: str) -> Callable[[TableStore, str], None]:
    """Return a function that appends what is new in the topic to `audit_raw`, for a build.

    The connection is in `topic_source.SETTINGS`, which must be in the environment before the
    session starts, and in that of every worker. Raises KafkaformError: the topic cannot be read, or
    has lost records that were not read yet.
    """

    def follow(store: TableStore, build: str) -> None:
        stamp = BuildStamp(build, datetime.now(UTC))
        lines = _stream_lines(store.spark, topic)
        rows = make_audit_rows(parse_records(lines), stamp)
        _append_rows(rows, store.path("audit_raw"), checkpoint_path(store.root, topic), topic)

    return follow


def checkpoint_path(root: str, topic: str) -> str:
    """Return where Spark records how far the topic was read."""
    return f"{hadoop_address(root)}/checkpoints/topic-{topic}"


def _stream_lines(spark: SparkSession, topic: str) -> DataFrame:
    """Return line, lineage, origin and _file."""
    # Workers of a cluster, and a Connect server, need not have kafkaform: the module travels with
    # the query. By reference, they would have to import it.
    cloudpickle.register_pickle_by_value(topic_source)  # type: ignore[no-untyped-call]  # has no types
    spark.dataSource.register(topic_source.TopicSource)
    stream = spark.readStream.format(topic_source.NAME).option("topic", topic).load()
    file = F.concat(F.lit(f"{TOPIC}{topic}/"), F.col("number").cast("string"))
    return stream.select(
        "line",
        "lineage",
        F.concat(file, F.lit("/"), F.col("place").cast("string")).alias("origin"),
        file.alias("_file"),
    )


def _append_rows(rows: DataFrame, table: str, checkpoint: str, topic: str) -> None:
    for tries_left in reversed(range(_TRIES)):
        # One checkpoint per topic, below the root: two topics in one would mix their offsets. To
        # delete it is safe but slow: the topic is read again, and a repeated line counts once.
        writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
        # availableNow ends when the offsets of the start are reached. `foreachBatch` is not used:
        # through Connect, its function runs on the server.
        query = writer.outputMode("append").trigger(availableNow=True).start(table)
        try:
            query.awaitTermination()
            return
        except PySparkException as error:
            if not tries_left or _SLOW_WORKER not in str(error):
                raise _make_refusal(topic, str(error)) from error


def _make_refusal(topic: str, message: str) -> KafkaformError:
    """Use our own message if there is one; Spark wraps it in its own."""
    match = re.search(rf"{re.escape(topic_source.PREFIX)}[^\n]*", message)
    cause = (
        match[0] if match else f"{topic_source.PREFIX}{topic}: {message.strip().splitlines()[0]}"
    )
    return KafkaformError(cause, _WORKER_ADVICE if topic_source.SETTINGS in cause else _ADVICE)
