"""Provide Delta Lake's jars: pinned files, whatever Java Spark starts on."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec.structs import replace

from ...core.progress import Reporter, ignore_event
from ...fleet.spark.session import SparkPlace, is_submitted
from ...sandbox.jars import Jar, ensure_jars, open_repository

_JARS = re.compile(r"^[ \t]*spark\.jars(?:[ \t]*[=:][ \t]*|[ \t]+)(\S.*)$", re.MULTILINE)
"""`spark.jars` in spark-defaults.conf."""
DELTA = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
        9_515_916,
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
        113_863,
    ),
)
"""The jars, with checksum and size."""


def add_jars(place: SparkPlace, report: Reporter = ignore_event) -> SparkPlace:
    """Return the place with the paths of Delta's jars, each of them verified.

    Ivy would accept whatever a repository answers, and does not know this computer's certificates.
    If the user names jars or a mirror, or Spark's server has its own jars, those are used. Raises
    ConnectError: they cannot be downloaded; KafkaformError: a file is not the pinned one.
    """
    if place.jars or place.ivy or place.connect or is_submitted():
        return place
    jars = ensure_jars(DELTA, report, open_repository, "Delta Lake")
    return replace(place, jars=(*map(str, jars), *_read_default_jars()))


def _read_default_jars() -> tuple[str, ...]:
    """Return the jars of `spark-defaults.conf`, such as those for a store. Jars that are set in the
    session replace that setting, so they are passed on."""
    folder = os.environ.get("SPARK_CONF_DIR", "")
    file = Path(folder, "spark-defaults.conf")
    if not folder or not file.is_file():
        return ()
    found = _JARS.findall(file.read_text("utf-8"))
    return tuple(name.strip() for name in found[-1].split(",")) if found else ()
