"""The class paths of the sandbox's programs, pinned: Maven resolves them, and each jar gets its
SHA-256."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kafkaform.sandbox.jars import Jar, open_repository

from .lock import ROOT

SANDBOX = ROOT / "kafkaform/sandbox"
POM = """\
<project><modelVersion>4.0.0</modelVersion>
<groupId>kafkaform</groupId><artifactId>sandbox</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>
{dependencies}</dependencies></project>
"""
DEPENDENCY = """\
<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version>{more}</dependency>
"""
# Connect brings Jetty and Jersey, which a broker and its tools do not need.
WITHOUT_CONNECT = """\
<exclusions><exclusion><groupId>org.apache.kafka</groupId>
<artifactId>connect-runtime</artifactId></exclusion></exclusions>"""
KAFKA, LOGGING, LOGGING_BINDING = "org.apache.kafka", "org.apache.logging.log4j", "log4j-slf4j-impl"
BINDINGS = frozenset((LOGGING_BINDING, "slf4j-reload4j"))
LOG4J = "2.25.4"
"""For a Kafka whose POMs name none."""
REGISTRY = ("io.apicurio", "apicurio-registry-app")
HEAD = """\
# {about}
# Made by `python -m docs.release jars {version}`.
# group:artifact:version[:classifier] SHA-256 bytes
"""


class ClassPath(NamedTuple):
    """One of the lists for a version of Kafka."""

    folder: Path
    about: str
    artifacts: dict[str, str]
    """Artifact of Kafka's -> what else its dependency says."""


CLASS_PATHS = (
    ClassPath(
        SANDBOX / "class_paths",
        "The class path of a Kafka {version} broker with its command-line tools: kafka_2.13 and "
        "kafka-tools\n# with everything they need at run time except Connect, plus the binding "
        "that makes it log.",
        {"kafka_2.13": "", "kafka-tools": WITHOUT_CONNECT},
    ),
    ClassPath(
        SANDBOX / "servers/class_paths",
        "The class path of a Kafka Connect {version} worker with the connectors of Kafka itself: "
        "for files and\n# MirrorMaker's. Plus basic authentication, and the binding that makes it "
        "log.",
        dict.fromkeys(
            (
                "connect-runtime",
                "connect-json",
                "connect-file",
                "connect-mirror",
                "connect-basic-auth-extension",
            ),
            "",
        ),
    ),
)
REGISTRY_LIST = SANDBOX / "servers/class_paths/schema-registry.txt"
REGISTRY_HEAD = """\
# The archive of Apicurio Registry, and the jars in it.
# Made by `python -m docs.release registry VERSION`.
# group:artifact:version:classifier SHA-256 bytes, then file SHA-256 bytes
"""
_RESOLVED = re.compile(
    r"^ +(?P<group>[\w.-]+):(?P<artifact>[\w.-]+):jar:(?:(?P<classifier>[\w.-]+):)?"
    r"(?P<version>[\w.-]+):(?:compile|runtime):(?P<path>\S+)",
    re.MULTILINE,
)


def write_class_paths(version: str) -> str:
    """Resolve the jars of this Kafka with Maven, and write the lists with their checksums."""
    return "\n".join(_write_class_path(each, version) for each in CLASS_PATHS)


def write_registry_list(version: str) -> str:
    """Write the list of the schema registry's archive and the files in it."""
    unknown = Jar(*REGISTRY, version, "all", "", 0, "tar.gz")
    with tempfile.TemporaryDirectory() as folder, open_repository() as fetch:
        archive = fetch(unknown, Path(folder))
        lines = sorted(_list_members(archive))
        own = f"{unknown.coordinate} {_hash_content(archive.read_bytes())}\n"
    return _write_list(REGISTRY_LIST, REGISTRY_HEAD, [own, *lines])


def _write_class_path(wanted: ClassPath, version: str) -> str:
    # Only Kafka's archive has the binding of its logging since version 4, not its POMs; without one
    # a program that fails says nothing.
    dependencies = [
        DEPENDENCY.format(group=KAFKA, artifact=artifact, version=version, more=more)
        for artifact, more in wanted.artifacts.items()
    ]
    jars = list(_resolve_jars(dependencies))
    versions = {jar.artifact: jar.version for jar in jars}
    if BINDINGS.isdisjoint(versions):
        log4j = versions.get("log4j-core", LOG4J)
        binding = DEPENDENCY.format(group=LOGGING, artifact=LOGGING_BINDING, version=log4j, more="")
        jars = list(_resolve_jars([*dependencies, binding]))
    head = HEAD.format(about=wanted.about.format(version=version), version=version)
    lines = sorted(f"{jar.coordinate} {jar.sha256} {jar.size}\n" for jar in jars)
    return _write_list(wanted.folder / f"{version}.txt", head, lines)


def _write_list(file: Path, head: str, lines: list[str]) -> str:
    file.parent.mkdir(exist_ok=True)
    file.write_text(head + "".join(lines))
    return f"{file.relative_to(ROOT)}: {len(lines)} files"


def _list_members(archive: Path) -> Iterator[str]:
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.name.endswith(".jar") else None
            if file is not None:
                yield f"{member.name} {_hash_content(file.read())}\n"


def _hash_content(content: bytes) -> str:
    """The checksum and the size, as in a list."""
    return f"{hashlib.sha256(content).hexdigest()} {len(content)}"


def _resolve_jars(dependencies: list[str]) -> Iterator[Jar]:
    maven = shutil.which("mvn")
    if maven is None:
        sys.exit("the list of jars is resolved with Maven: install `mvn` first")
    with tempfile.TemporaryDirectory() as folder:
        pom, listing = Path(folder, "pom.xml"), Path(folder, "listing.txt")
        pom.write_text(POM.format(dependencies="".join(dependencies)))
        command = [maven, "--batch-mode", "--quiet", "--file", str(pom), "dependency:list"]
        options = ["includeScope=runtime", "outputAbsoluteArtifactFilename=true"]
        options.append(f"outputFile={listing}")
        subprocess.run([*command, *(f"-D{option}" for option in options)], check=True)
        for found in _RESOLVED.finditer(listing.read_text()):
            content = Path(found["path"]).read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            names = (found["group"], found["artifact"], found["version"])
            yield Jar(*names, found["classifier"] or "", sha256, len(content))
