"""The files for Spark clusters, as far as a computer without such a cluster can tell."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from kafkaform import __version__

from ...kit.fleet.hadoop_store import JARS
from ...test_docs import parse

HERE = Path(__file__).parents[3] / "examples" / "fleet" / "spark"
JOB = "fleet_job.py"


def submitted() -> Iterator[tuple[str, list[str]]]:
    """File, and what follows the job in it."""
    for name in ("yarn.sh", "README.md"):
        for line in (HERE / name).read_text().replace("\\\n", " ").splitlines():
            if re.search(rf"spark-submit .* {JOB} ", line):
                words = shlex.split(line)
                yield name, words[words.index(JOB) + 1 :]
    (application,) = yaml.safe_load_all((HERE / "kubernetes.yaml").read_text())
    spec = application["spec"]["template"]
    assert Path(spec["mainApplicationFile"]).name == JOB
    yield "kubernetes.yaml", spec["arguments"]


def test_what_is_submitted_can_be_typed() -> None:
    """Each command line after the job is one of `kafkaform fleet`."""
    found = dict(submitted())
    assert found.keys() == {"yarn.sh", "README.md", "kubernetes.yaml"}
    for words in found.values():
        parse(["fleet", *words])


def test_scripts_are_sound() -> None:
    subprocess.run(["sh", "-n", HERE / "yarn.sh"], check=True)


def jars() -> dict[str, str]:
    """Artifact -> version, as pom.xml names them."""
    pom = ElementTree.parse(HERE / "pom.xml")
    known = {f"${{{node.tag}}}": node.text or "" for node in pom.findall("properties/*")}
    found = {}
    for node in pom.findall("dependencies/dependency"):
        number = node.findtext("version", "")
        found[node.findtext("artifactId", "")] = known.get(number, number)
    return found


def test_jars_for_s3_are_those_that_builds_are_tested_with() -> None:
    lines = JARS.read_text().splitlines()
    pinned = dict(line.split()[0].split(":")[1:] for line in lines if line[0] != "#")
    wanted = {name: number for name, number in jars().items() if not name.startswith("delta-")}
    assert "hadoop-aws" in wanted and wanted.items() <= pinned.items()


def test_versions_are_those_of_what_is_installed() -> None:
    """Of Spark, Delta Lake and kafkaform."""
    named = jars()
    spark, delta = version("pyspark"), version("delta-spark")
    assert named.pop(f"delta-spark_{spark.rpartition('.')[0]}_2.13") == delta
    assert named.pop("delta-storage") == delta
    image = (HERE / "Dockerfile").read_text()
    assert f"FROM apache/spark:{spark}-" in image
    assert f"kafkaform[fleet]=={__version__}" in image
    assert f"sparkVersion: {spark}\n" in (HERE / "kubernetes.yaml").read_text()


def test_hadoop_for_s3_is_the_hadoop_of_spark() -> None:
    """Another one fails with classes that are not there."""
    pyspark = pytest.importorskip("pyspark")
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    assert re.findall(r"-([\d.]+)\.jar", jar.name) == [jars()["hadoop-aws"]]
