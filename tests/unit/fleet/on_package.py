"""Delta Lake, MERGE and an Arrow function, to see a Java work.

`python -m tests.unit.fleet.on_package TABLE` prints what came out and which Java it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from kafkaform.fleet.spark.session import SparkSetup, build_session
from kafkaform.sandbox.record import get_cache_folder
from kafkaform.workflow.fleet.runs import add_jars


def home(spark: SparkSession) -> Path:
    """Where the session's Java is."""
    asked = "SELECT java_method('java.lang.System', 'getProperty', 'java.home')"
    return Path(spark.sql(asked).collect()[0][0])


def used(spark: SparkSession, table: Path) -> tuple[list[tuple[str, int]], str]:
    """Rows that were written, merged and doubled, and where Java is."""
    rows = spark.createDataFrame([("a", 1), ("b", 2)], "name string, n int")
    rows.write.format("delta").save(str(table))
    rows.where("n = 2").createOrReplaceTempView("more")
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING more m ON t.name = m.name "
        "WHEN MATCHED THEN UPDATE SET n = 7 WHEN NOT MATCHED THEN INSERT *"
    )
    spark.catalog.dropTempView("more")
    written = spark.read.format("delta").load(str(table))
    doubled = written.groupBy("name").applyInArrow(_twice, "name string, n int")
    return sorted((row["name"], row["n"]) for row in doubled.collect()), str(home(spark))


def _twice(some: pa.Table) -> pa.Table:
    return pa.concat_tables([some, some])


if __name__ == "__main__":
    session = build_session(add_jars(SparkSetup("local[1]", get_cache_folder())))
    print(json.dumps(used(session, Path(sys.argv[1]))))
    session.stop()
