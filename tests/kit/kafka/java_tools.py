"""Kafka's own command-line tools, from the jars of the sandbox: what they print is what
kafkaform must show."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkaform.sandbox import jars
from kafkaform.sandbox.jars import find_archive, list_start_options
from kafkaform.sandbox.versions import find_java

CONFIGS = "kafka.admin.ConfigCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
STREAMS_GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
GROUPS = "org.apache.kafka.tools.GroupsCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
SECONDS = 240.0
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

Row = dict[str, str]


def class_path() -> tuple[Path, ...]:
    """The jars from which the run's broker was started."""
    return jars.find_class_path(lambda _: None, _no_repository)


def run_tool(config: Path, tool: str, *words: str) -> str:
    """What a tool prints. config: a file of client properties that has the brokers, too."""
    servers = next(
        line.partition("=")[2]
        for line in config.read_text("utf-8").splitlines()
        if line.startswith("bootstrap.servers=")
    )
    java, jar_files = find_java(), class_path()
    command = [java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    # The classes that the broker was started from.
    command += list_start_options(find_archive(java, jar_files))
    command += ["-cp", os.pathsep.join(map(str, jar_files)), tool]
    command += ["--bootstrap-server", servers, "--command-config", str(config), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, errors="replace"
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def write_admin_properties(box: Any, folder: Path) -> Path:
    """A file of client properties with which a tool is the administrator of a sandbox."""
    properties = folder / "admin.properties"
    properties.write_text(
        f"bootstrap.servers={box.bootstrap}\n"
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_LOGIN} required username="admin" password="{box.admin_password}";\n',
        "utf-8",
    )
    return properties


def read_tables(text: str) -> Iterator[Row]:
    """The rows of the tables that a tool prints: heading -> value. Headings are in capitals, or
    have none of the blanks that divide columns."""
    names: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split()]
        if not cells:
            continue
        if cells[0] in ("GROUP", "TransactionalId", "CoordinatorId", "Topic", "ProducerId"):
            names = cells
        elif len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def _no_repository(*_: object) -> Any:
    raise AssertionError("the jars are there: the run's broker was started from them")
