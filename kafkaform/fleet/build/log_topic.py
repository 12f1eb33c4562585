"""New lines of an audit log's copy in a Kafka topic go into `audit_raw`, each once.

Spark notes the offsets that it is about to read before it reads them, and Delta Lake notes the
batch with its rows. A run that dies between the two reads the same offsets again, and Delta Lake
sees that it has them.
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
_ELSEWHERE = (
    "What is set here reaches no worker of a Spark cluster and no Connect server: set it in their "
    "own environment, as docs/fleet/running.md says, or land the log with `fleet snapshot`."
)
"""Where a worker does not know how to reach the brokers."""

_SLOW = "Python worker failed to connect back"
"""What Spark says when a worker takes more than 10 s to start, as on a busy machine. That limit is
fixed; to try again is safe, since nothing is taken in twice."""
_TRIES = 4


def make_follower(topic: str) -> Callable[[TableStore, str], None]:
    """What adds to `audit_raw` what the topic has new, in the name of a build.

    How to reach the brokers is in topicsource.SETTINGS, which must be in the environment before
    the session starts, and in that of every worker. Raises KafkaformError: the topic cannot be
    read, or has lost records that were not read yet.
    """

    def follow(store: TableStore, build: str) -> None:
        stamp = BuildStamp(build, datetime.now(UTC))
        lines = _stream_lines(store.spark, topic)
        rows = make_audit_rows(parse_records(lines), stamp)
        _append_rows(rows, store.path("audit_raw"), checkpoint_path(store.root, topic), topic)

    return follow


def checkpoint_path(root: str, topic: str) -> str:
    """Where it is noted how far the topic was read."""
    return f"{hadoop_address(root)}/checkpoints/topic-{topic}"


def _stream_lines(spark: SparkSession, topic: str) -> DataFrame:
    """line, lineage, origin, _file."""
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


def _append_rows(rows: DataFrame, table: str, noted: str, topic: str) -> None:
    for left in reversed(range(_TRIES)):
        writer = rows.writeStream.format("delta").option("checkpointLocation", noted)
        query = writer.outputMode("append").trigger(availableNow=True).start(table)
        try:
            query.awaitTermination()
            return
        except PySparkException as error:
            if not left or _SLOW not in str(error):
                raise _make_refusal(topic, str(error)) from error


def _make_refusal(topic: str, said: str) -> KafkaformError:
    """In our own words where it is our own message, which Spark wraps."""
    told = re.search(rf"{re.escape(topic_source.TOLD)}[^\n]*", said)
    why = told[0] if told else f"{topic_source.TOLD}{topic}: {said.strip().splitlines()[0]}"
    return KafkaformError(why, _ELSEWHERE if topic_source.SETTINGS in why else _ADVICE)
