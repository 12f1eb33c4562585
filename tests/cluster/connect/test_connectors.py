"""Connectors of a real worker: from nothing to running records, and what can go wrong."""

from __future__ import annotations

import json
from pathlib import Path

from ...kit.servers import wait_until
from .conftest import Stream

TOPIC = """
resource "kafka_topic" "lines" {
  name       = "PREFIX-lines"
  partitions = 1
}
"""
WRITER = """
resource "kafka_access" "writer" {
  principal = "User:connect"
  role      = "producer"
  topics    = [kafka_topic.lines.name]
}
"""
READER = """
resource "kafka_access" "reader" {
  principal = "User:connect"
  role      = "consumer"
  topics    = [kafka_topic.lines.name]
  group     = "connect-PREFIX-sink"
}
"""
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"


def source(path: Path, more: str = "", config: str = "") -> str:
    return f"""
resource "kafka_connect_connector" "source" {{
  name  = "PREFIX-source"
  class = "FileStreamSource"
  config = {{
    topic             = "PREFIX-lines"
    file              = "{path}"
    "value.converter" = "{STRING}"
    {config}
  }}
  {more}
}}
"""


def sink(path: Path, more: str = "", config: str = "") -> str:
    return f"""
resource "kafka_connect_connector" "sink" {{
  name  = "PREFIX-sink"
  class = "{SINK}"
  config = {{
    topics            = ["PREFIX-lines"]
    file              = "{path}"
    "value.converter" = "{STRING}"
    {config}
  }}
  {more}
}}
"""


def test_a_stream_runs_from_file_to_file(stream: Stream, tmp_path: Path) -> None:
    """One apply makes topic, rights and connectors, in an order in which all of it works; the plan
    after it finds nothing to do, and connectors without blocks are deleted."""
    lines, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    lines.write_text("first\nsecond\n")
    rights = "depends_on = [kafka_access.writer, kafka_access.reader]"
    stream.declare(TOPIC, WRITER, READER, source(lines, rights), sink(copy, rights))
    folder = stream.folder
    folder.done("apply", "-auto-approve")
    wait_until(lambda: copy.exists() and copy.read_text() == "first\nsecond\n")
    folder.until(lambda: "No changes" in folder.done("plan").text)
    stream.declare(TOPIC, WRITER, READER)
    assert "its offsets stay" in folder.done("apply", "-auto-approve").text
    assert stream.ask("GET", f"/connectors/{stream.prefix}sink") is None
    assert stream.ask("GET", f"/connectors/{stream.prefix}source") is None


def test_a_connector_is_changed_halted_and_resumed(stream: Stream, tmp_path: Path) -> None:
    """Each state is reached, and no plan wants anything after it."""
    rights = "depends_on = [kafka_access.writer]"
    path = tmp_path / "lines.txt"
    path.write_text("")
    folder = stream.folder
    for state, tasks in (("stopped", 0), ("running", 1), ("paused", 1), ("stopped", 0)):
        more = f'{rights}\n  state = "{state}"'
        stream.declare(TOPIC, WRITER, source(path, more, '"batch.size" = 7'))
        folder.done("apply", "-auto-approve")
        wait_until(lambda: stream.has_state("source", state.upper(), tasks))  # noqa: B023  # at once
        folder.until(lambda: "No changes" in folder.done("plan").text)
    stream.declare(TOPIC, WRITER, source(path, more))
    text = folder.done("plan").text
    assert '- "batch.size" = "7"' in text and "2000" in text
    folder.done("apply", "-auto-approve")
    found = stream.ask("GET", f"/connectors/{stream.prefix}source/config")
    assert isinstance(found, dict) and "batch.size" not in found


def test_a_failure_is_told_and_restarted_after_its_cause_is_gone(
    stream: Stream, tmp_path: Path
) -> None:
    """Without its rights a sink fails: the apply that grants them restarts it, and says why it had
    failed."""
    copy = tmp_path / "copy.txt"
    stream.declare(TOPIC, sink(copy))
    folder = stream.folder
    folder.run("apply", "-auto-approve")
    wait_until(lambda: _has_failed_task(stream))
    text = folder.done("plan").text
    assert "task 0 failed on worker" in text and "uthoriz" in text
    stream.declare(TOPIC, READER, sink(copy, "depends_on = [kafka_access.reader]"))
    folder.run("apply", "-auto-approve")
    wait_until(lambda: stream.has_state("sink", "RUNNING", 1))
    folder.until(lambda: "No changes" in folder.done("plan").text)


def _has_failed_task(stream: Stream) -> bool:
    found = stream.ask("GET", f"/connectors/{stream.prefix}sink/status")
    return isinstance(found, dict) and any(t["state"] == "FAILED" for t in found["tasks"])


def test_secrets_reach_the_worker_and_no_file(stream: Stream, tmp_path: Path) -> None:
    """One by reference, and one that the worker takes from a file of its own."""
    secret, folder = "geheim-am-rand", stream.folder
    folder.monkeypatch.setenv("SINK_PASSWORD", secret)
    stream.worker.secrets.mkdir(parents=True, exist_ok=True)
    properties = stream.worker.secrets / f"{stream.prefix}db.properties"
    properties.write_text("user=me\n")
    more = 'state = "stopped"\n  secret_config = { "db.password" = secret_env("SINK_PASSWORD") }'
    config = f'"db.user" = "$${{file:{properties}:user}}"'
    stream.declare(TOPIC, sink(tmp_path / "copy.txt", more, config))
    said = folder.done("apply", "-auto-approve").text
    folder.until(lambda: "No changes" in folder.done("plan").text)
    stream.declare(TOPIC, sink(tmp_path / "other.txt", more, config))
    said += folder.done("apply", "-auto-approve").text
    found = stream.ask("GET", f"/connectors/{stream.prefix}sink/config")
    assert isinstance(found, dict)
    assert found["db.password"] == secret and found["db.user"] == f"${{file:{properties}:user}}"
    assert found["file"].endswith("other.txt")
    left = [one.read_text() for one in folder.path.rglob("kafkaform.*") if one.is_file()]
    assert secret not in said + "".join(left)


def test_a_worker_refuses_a_configuration_before_anything_is_sent(
    stream: Stream, tmp_path: Path
) -> None:
    """Each wrong config is named, the topic of the same plan is not created either."""
    stream.declare(TOPIC, sink(tmp_path / "copy.txt", config='"errors.retry.timeout" = "soon"'))
    text = stream.folder.fails(1, "apply", "-auto-approve")
    assert 'config["errors.retry.timeout"]: Invalid value soon' in text
    stream.declare(TOPIC, sink(tmp_path / "x").replace(SINK, "com.example.NoSuchConnector"))
    text = stream.folder.fails(8, "plan")
    assert "no worker has the plugin com.example.NoSuchConnector" in text


def test_everything_that_runs_can_be_imported(stream: Stream, tmp_path: Path) -> None:
    """A plan with the written configuration imports and changes nothing."""
    config = {
        "connector.class": SINK,
        "topics": f"{stream.prefix}lines",
        "file": str(tmp_path / "copy.txt"),
    }
    body = {"name": f"{stream.prefix}sink", "config": config, "initial_state": "STOPPED"}
    assert stream.ask("POST", "/connectors", body) is not None
    folder = stream.folder
    wait_until(lambda: stream.has_state("sink", "STOPPED"))
    folder.done("import", "--all", "--type", "kafka_connect_connector", "--out", "found.kf.hcl")
    text = (folder.path / "found.kf.hcl").read_text()
    assert f'name  = "{stream.prefix}sink"' in text and '"stopped"' in text


def test_the_group_of_the_workers_is_proven(stream: Stream, tmp_path: Path) -> None:
    """A worker refuses a sink that would join its own group, and so tells its group."""
    folder = stream.folder
    text = (folder.path / "connect.kf.hcl").read_text()
    folder.write("connect.kf.hcl", text.replace("operation", 'group_id = "other"\n  operation'))
    stream.declare(TOPIC, sink(tmp_path / "copy.txt"))
    assert "the group.id of the workers is not other" in folder.fails(8, "plan")


def test_data_sources_show_what_the_worker_has(stream: Stream, tmp_path: Path) -> None:
    """The plugins, by their type."""
    stream.declare(
        TOPIC,
        'data "kafka_connect_plugins" "sinks" {\n  type = "sink"\n}\n'
        'output "sinks" {\n  value = data.kafka_connect_plugins.sinks.plugins[*].class\n}\n',
    )
    stream.folder.done("apply", "-auto-approve")
    found = json.loads(stream.folder.done("output", "-json").out)
    assert SINK in found["sinks"]["value"]
