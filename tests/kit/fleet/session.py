"""One Spark session for all tests of the pipeline that a process runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two threads on this machine, with Delta. It and later ones start from classes that are kept,
    which take as long to keep as a few of them save. KAFKAFORM_FLEET_MASTER=embedded runs the same
    tests on Sail."""
    from kafkaform.fleet.spark.session import (
        EMBEDDED,
        SparkSetup,
        build_session,
        make_start_options,
    )
    from kafkaform.sandbox.record import get_cache_folder
    from kafkaform.workflow.fleet.runs import add_jars

    master = os.environ.get("KAFKAFORM_FLEET_MASTER", "local[2]")
    if master != EMBEDDED and not make_start_options(get_cache_folder()):
        command = [sys.executable, "-m", "kafkaform", "fleet", "prepare", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    session = build_session(add_jars(SparkSetup(master, get_cache_folder())))
    yield session
    session.stop()
