"""Kafka's own command-line tools, run with the Java and the jars of the sandbox."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from kafkaform.core.progress import ignore_event
from kafkaform.sandbox import lifecycle

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
"""kafka-reassign-partitions.sh"""
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def run_tool(box: Any, folder: Path, main: str, *arguments: str) -> str:
    """What a tool prints when the administrator of a sandbox runs it. Fails if the tool does."""
    properties = folder / "admin.properties"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_LOGIN} required username="admin" password="{box.admin_password}";\n',
        "utf-8",
    )
    runtime = lifecycle._find_runtime(box.make_options(), ignore_event)
    command = [str(runtime.java), "-cp", os.pathsep.join(map(str, runtime.class_path))]
    where = ("--bootstrap-server", box.bootstrap, "--command-config", str(properties))
    ended = subprocess.run(
        [*command, main, *where, *arguments], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
