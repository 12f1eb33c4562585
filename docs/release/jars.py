"""The class path of a Kafka broker, pinned: Maven resolves it, and each jar gets its SHA-256."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kafkaform.sandbox.jars import Jar

from .lock import ROOT

FOLDER = ROOT / "kafkaform/sandbox/class_paths"
# Connect brings Jetty and Jersey, which none of the commands uses that a sandbox needs.
POM = """\
<project><modelVersion>4.0.0</modelVersion>
<groupId>kafkaform</groupId><artifactId>broker</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>{version}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
<version>{version}</version><exclusions><exclusion><groupId>org.apache.kafka</groupId>
<artifactId>connect-runtime</artifactId></exclusion></exclusions></dependency>
{more}</dependencies></project>
"""
BINDING = """\
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
<version>{version}</version></dependency>
"""
BINDINGS = frozenset(("log4j-slf4j-impl", "slf4j-reload4j"))
LOG4J = "2.25.4"
"""For a Kafka whose POMs name none."""
HEAD = """\
# The class path of a Kafka {version} broker with its command-line tools: kafka_2.13 and kafka-tools
# with everything they need at run time except Connect, plus the binding that makes it log.
# Made by `python -m docs.release jars {version}`.
# group:artifact:version[:classifier] SHA-256 bytes
"""
_RESOLVED = re.compile(
    r"^ +(?P<group>[\w.-]+):(?P<artifact>[\w.-]+):jar:(?:(?P<classifier>[\w.-]+):)?"
    r"(?P<version>[\w.-]+):(?:compile|runtime):(?P<path>\S+)",
    re.MULTILINE,
)


def write_class_path(version: str) -> str:
    """Resolve the jars of this Kafka with Maven, and write the list with their checksums."""
    # Only Kafka's archive has the binding of its logging since version 4, not its POMs; without one
    # a broker that fails says nothing.
    jars = list(_resolve_jars(version, ""))
    versions = {jar.artifact: jar.version for jar in jars}
    if BINDINGS.isdisjoint(versions):
        log4j = versions.get("log4j-core", LOG4J)
        jars = list(_resolve_jars(version, BINDING.format(version=log4j)))
    file = FOLDER / f"{version}.txt"
    lines = sorted(f"{jar.coordinate} {jar.sha256} {jar.size}\n" for jar in jars)
    file.write_text(HEAD.format(version=version) + "".join(lines))
    return f"{file.relative_to(ROOT)}: {len(lines)} jars"


def _resolve_jars(version: str, more: str) -> Iterator[Jar]:
    maven = shutil.which("mvn")
    if maven is None:
        sys.exit("the list of jars is resolved with Maven: install `mvn` first")
    with tempfile.TemporaryDirectory() as folder:
        pom, listing = Path(folder, "pom.xml"), Path(folder, "listing.txt")
        pom.write_text(POM.format(version=version, more=more))
        command = [maven, "--batch-mode", "--quiet", "--file", str(pom), "dependency:list"]
        options = ["includeScope=runtime", "outputAbsoluteArtifactFilename=true"]
        options.append(f"outputFile={listing}")
        subprocess.run([*command, *(f"-D{option}" for option in options)], check=True)
        for found in _RESOLVED.finditer(listing.read_text()):
            content = Path(found["path"]).read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            names = (found["group"], found["artifact"], found["version"])
            yield Jar(*names, found["classifier"] or "", sha256, len(content))
