"""`alter connector` on real workers: where a stopped connector goes on, and how that is undone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...kit.servers import wait_until
from .conftest import Stream
from .test_connectors import READER, TOPIC, WRITER, sink, source

APPROVED = "--auto-approve"
STOPPED = 'state = "stopped"'
RIGHTS = "depends_on = [kafka_access.writer, kafka_access.reader]"
BLOCKED, PARTIAL, BAD_REQUEST = 8, 5, 400
DELETER = """
resource "kafka_acl" "deleter" {
  resource_name       = "connect-PREFIX-sink"
  resource_type       = "Group"
  acl_principal       = "User:connect"
  acl_host            = "*"
  acl_operation       = "Delete"
  acl_permission_type = "Allow"
}
"""


def list_offsets(stream: Stream, name: str) -> Any:
    """What the workers tell another client."""
    document = stream.ask("GET", f"/connectors/{stream.prefix}{name}/offsets")
    assert isinstance(document, dict)
    return document["offsets"]


def last_run(stream: Stream) -> str:
    return str(stream.folder.records("run_begin")[-1]["run"])


def test_offsets_are_set_reset_and_come_back(stream: Stream, tmp_path: Path) -> None:
    """A source reads its second line again, and a sink copies everything again."""
    lines, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    lines.write_text("first\nsecond\n")
    folder, name = stream.folder, f"{stream.prefix}source"
    stream.declare(TOPIC, WRITER, READER, source(lines, RIGHTS), sink(copy, RIGHTS))
    folder.done("apply", APPROVED)
    wait_until(lambda: copy.exists() and copy.read_text() == "first\nsecond\n")
    stopped = (source(lines, f"{RIGHTS}\n{STOPPED}"), sink(copy, f"{RIGHTS}\n{STOPPED}"))
    stream.declare(TOPIC, WRITER, READER, *stopped)
    folder.done("apply", APPROVED)
    wait_until(
        lambda: stream.has_state("source", "STOPPED") and stream.has_state("sink", "STOPPED")
    )
    end = [{"partition": {"filename": str(lines)}, "offset": {"position": 13}}]
    wait_until(lambda: list_offsets(stream, "source") == end)
    text = folder.done("alter", "connector", name, "--reset-offsets", APPROVED).text
    assert f"{name} has no offsets in 1 partition then, so it starts over" in text
    assert list_offsets(stream, "source") == []
    folder.done("undo", last_run(stream), APPROVED)
    assert list_offsets(stream, "source") == end
    back = tmp_path / "back.json"
    back.write_text(json.dumps({"offsets": [{**end[0], "offset": {"position": 6}}]}))
    folder.done("alter", "connector", name, "--set-offsets", str(back), APPROVED)
    sink_name = f"{stream.prefix}sink"
    refused = folder.run("alter", "connector", sink_name, "--reset-offsets", APPROVED)
    assert refused.code == PARTIAL and "needs Delete on its group" in refused.text
    stream.declare(TOPIC, WRITER, READER, DELETER, *stopped)
    folder.done("apply", APPROVED)
    folder.done("alter", "connector", sink_name, "--reset-offsets", APPROVED)
    assert list_offsets(stream, "sink") == []
    stream.declare(TOPIC, WRITER, READER, DELETER, source(lines, RIGHTS), sink(copy, RIGHTS))
    folder.done("apply", APPROVED)
    again = "first\nsecond\n" * 2 + "second\n"
    wait_until(lambda: copy.read_text() == again)


def test_offsets_of_a_connector_that_runs_stay(stream: Stream, tmp_path: Path) -> None:
    """The plan is blocked, and workers refuse the request."""
    lines = tmp_path / "lines.txt"
    lines.write_text("first\n")
    folder, name = stream.folder, f"{stream.prefix}source"
    stream.declare(TOPIC, WRITER, source(lines, "depends_on = [kafka_access.writer]"))
    folder.done("apply", APPROVED)
    wait_until(lambda: list_offsets(stream, "source") != [])
    before = list_offsets(stream, "source")
    refused = folder.run("alter", "connector", name, "--reset-offsets", APPROVED)
    assert refused.code == BLOCKED and "[connector-not-stopped]" in refused.text
    client, path = stream.worker.open_client(), f"/connectors/{name}/offsets"
    assert client.ask("PATCH", path, {"offsets": before})[0] == BAD_REQUEST
    assert client.ask("DELETE", path)[0] == BAD_REQUEST
    assert list_offsets(stream, "source") == before
