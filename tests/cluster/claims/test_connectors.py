"""What the rules of connectors claim, tried with a real worker, files and records."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import confluent_kafka
import pytest

from kafkaform_connect.definitions import GIVEN

from ...kit.commands.fixtures import admin, folder  # noqa: F401  # pytest finds them here
from ...kit.kafka.logins import admin_login
from ...kit.kafka.versions import get_choice
from ...kit.servers import wait_until
from ..connect.conftest import PROVIDER as SYSTEM
from ..connect.conftest import Stream, stream  # noqa: F401  # pytest finds it here

FILE = "org.apache.kafka.connect.file.FileStream"
STRING = "org.apache.kafka.connect.storage.StringConverter"
RIGHTS = "\n".join(
    f"""
resource "kafka_acl" "{kind.lower()}s" {{
  acl_principal                = "User:connect"
  acl_host                     = "*"
  acl_operation                = "All"
  acl_permission_type          = "Allow"
  resource_type                = "{kind}"
  resource_name                = "{name}"
  resource_pattern_type_filter = "Prefixed"
}}
"""
    for kind, name in (("Topic", "PREFIX-"), ("Group", "connect-PREFIX-"))
)
BEFORE = "depends_on = [kafka_acl.topics, kafka_acl.groups]"
QUIET_SECONDS = 3.0
"""Long enough for a worker that copies something, which takes it a fraction of a second."""


def read_release() -> tuple[int, ...]:
    """The release of Kafka of the worker: (4, 3)."""
    return tuple(map(int, get_choice().kafka_version.split(".")[:2]))


def topic(name: str) -> str:
    return f'resource "kafka_topic" "{name}" {{\n  name = "PREFIX-{name}"\n  partitions = 1\n}}\n'


def source(name: str, path: Path, to: str = "lines", more: str = "") -> str:
    """A connector that writes each line of a file to a topic."""
    return _write_block(name, f"{FILE}SourceConnector", f'topic = "PREFIX-{to}"', path, more)


def sink(name: str, path: Path, topics: str = "PREFIX-lines", config: str = "") -> str:
    """A connector that writes each record to a file."""
    return _write_block(name, f"{FILE}SinkConnector", f'topics = "{topics}"\n{config}', path, "")


def _write_block(name: str, class_: str, config: str, path: Path, more: str) -> str:
    return f"""
resource "kafka_connect_connector" "{name}" {{
  name  = "PREFIX-{name}"
  class = "{class_}"
  config = {{
    {config}
    file              = "{path}"
    "value.converter" = "{STRING}"
  }}
  {more}
  {BEFORE}
}}
"""


def apply(stream: Stream, *blocks: str) -> str:  # noqa: F811  # the fixture's value
    """Apply these blocks with the rights; what the plan before it says."""
    stream.declare(RIGHTS, *blocks)
    text = stream.folder.done("plan").text
    stream.folder.run("apply", "-auto-approve")
    return " ".join(text.replace(stream.prefix, "PREFIX-").split())


def wait_running(stream: Stream, name: str) -> None:  # noqa: F811
    wait_until(lambda: stream.has_state(name, "RUNNING", 1))


def stays(read: Callable[[], str]) -> str:
    """What is read, which a while does not change."""
    before = read()
    time.sleep(QUIET_SECONDS)
    assert read() == before
    return before


def log_in(stream: Stream) -> dict[str, str | int | bool]:  # noqa: F811
    """The settings of a client with all rights."""
    login = admin_login(stream.folder.broker)
    return {
        "bootstrap.servers": stream.folder.broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": login.mechanism,
        "sasl.username": login.user,
        "sasl.password": login.password,
    }


def list_records(stream: Stream, name: str) -> list[str]:  # noqa: F811
    """All records of a topic, in order."""
    consumer = confluent_kafka.Consumer(
        {
            **log_in(stream),
            "group.id": f"reads-{stream.prefix}",
            "enable.auto.commit": False,
        }
    )
    place = confluent_kafka.TopicPartition(f"{stream.prefix}{name}", 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=30)
    consumer.assign([place])
    values: list[str] = []
    while len(values) < end:
        record = consumer.poll(30)
        assert record is not None and record.error() is None
        values.append(record.value().decode())
    consumer.close()
    return values


def produce(stream: Stream, name: str, *values: str) -> None:  # noqa: F811
    """Write these records as another client."""
    producer = confluent_kafka.Producer(log_in(stream))
    for value in values:
        producer.produce(f"{stream.prefix}{name}", value.encode())
    assert producer.flush(60) == 0


def test_a_renamed_connector_starts_over(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """A source reads its file again, and a sink, with a new group, copies all records again."""
    lines, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    lines.write_text("1\n2\n")
    apply(stream, topic("lines"), source("source", lines), sink("sink", copy))
    wait_until(lambda: copy.exists() and copy.read_text() == "1\n2\n")
    text = apply(stream, topic("lines"), source("other", lines), sink("sink", copy))
    assert "PREFIX-other looks like PREFIX-source, which this plan deletes" in text
    assert "it has no offsets, so it reads everything again" in text
    wait_until(lambda: list_records(stream, "lines") == ["1", "2", "1", "2"])
    wait_until(lambda: copy.read_text() == "1\n2\n1\n2\n")
    text = apply(stream, topic("lines"), source("other", lines), sink("drain", copy))
    assert "its group connect-PREFIX-drain has no offsets, so it copies everything again" in text
    wait_until(lambda: copy.read_text() == "1\n2\n1\n2\n" * 2)


def test_a_renamed_connector_takes_its_offsets_along(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """With `offsets_from`, source and sink go on where they were, and copy nothing twice. Without a
    connector of that name, they start over. Workers before 3.7 cannot, and the plan says so."""
    lines, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    lines.write_text("1\n2\n")
    apply(stream, topic("lines"), source("source", lines), sink("sink", copy))
    wait_until(lambda: copy.exists() and copy.read_text() == "1\n2\n")
    other = source("other", lines, more='offsets_from = "PREFIX-source"')
    drain = sink("drain", copy).replace("class =", 'offsets_from = "PREFIX-sink"\n  class =', 1)
    if read_release() < (3, 7):
        stream.declare(RIGHTS, topic("lines"), other, drain)
        text = " ".join(stream.folder.fails(8, "plan").split())
        assert "workers of Kafka 3.6 cannot create a connector that gets its offsets" in text
        return
    text = apply(stream, topic("lines"), other, drain)
    assert "PREFIX-other goes on where PREFIX-source ends" in text
    assert "PREFIX-drain goes on where PREFIX-sink ends" in text
    for name in ("other", "drain"):
        wait_running(stream, name)
    with lines.open("a") as file:
        file.write("3\n")
    wait_until(lambda: copy.read_text() == "1\n2\n3\n")
    assert stays(lambda: " ".join(list_records(stream, "lines"))) == "1 2 3"
    again = source("again", lines, more='offsets_from = "PREFIX-source"')
    text = apply(stream, topic("lines"), again, drain)
    assert "there is no connector PREFIX-source to take offsets from: it has no offsets" in text
    wait_until(lambda: list_records(stream, "lines") == ["1", "2", "3", "1", "2", "3"])


def test_a_deleted_connector_stops_and_its_offsets_stay(
    stream: Stream,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Nothing is copied after the deletion, and a connector of the same name goes on."""
    lines = tmp_path / "lines.txt"
    lines.write_text("1\n")
    apply(stream, topic("lines"), source("source", lines))
    wait_until(lambda: list_records(stream, "lines") == ["1"])
    # Workers commit the offsets of a source every minute, and when it is stopped in order.
    text = apply(stream, topic("lines"))
    assert "the connector PREFIX-source copies no more records" in text
    assert "its offsets stay in Kafka" in text
    with lines.open("a") as file:
        file.write("2\n")
    stays(lambda: " ".join(list_records(stream, "lines")))
    apply(stream, topic("lines"), source("source", lines))
    wait_until(lambda: list_records(stream, "lines") == ["1", "2"])


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_a_halted_connector_copies_nothing(
    stream: Stream,  # noqa: F811
    tmp_path: Path,
    state: str,
) -> None:
    """It goes on where it was."""
    lines = tmp_path / "lines.txt"
    lines.write_text("1\n")
    apply(stream, topic("lines"), source("source", lines))
    wait_until(lambda: list_records(stream, "lines") == ["1"])
    halted = source("source", lines, more=f'state = "{state}"')
    text = apply(stream, topic("lines"), halted)
    assert f"the connector PREFIX-source copies no records while it is {state}" in text
    wait_until(lambda: stream.has_state("source", state.upper()))
    with lines.open("a") as file:
        file.write("2\n")
    stays(lambda: " ".join(list_records(stream, "lines")))
    apply(stream, topic("lines"), source("source", lines))
    wait_until(lambda: list_records(stream, "lines") == ["1", "2"])


def test_a_source_with_another_topic_goes_on_there(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """What it has read already is in the old topic only."""
    lines = tmp_path / "lines.txt"
    lines.write_text("1\n")
    topics = (topic("lines"), topic("others"))
    apply(stream, *topics, source("source", lines))
    wait_until(lambda: list_records(stream, "lines") == ["1"])
    text = apply(stream, *topics, source("source", lines, "others"))
    assert "the connector PREFIX-source writes to PREFIX-others from now on" in text
    wait_running(stream, "source")
    with lines.open("a") as file:
        file.write("2\n")
    wait_until(lambda: list_records(stream, "others") == ["2"])
    assert list_records(stream, "lines") == ["1"]


def test_a_sink_reads_new_topics_from_the_beginning_and_leaves_others(
    stream: Stream,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Records that were there before count, those of a topic that it leaves do not."""
    copy, topics = tmp_path / "copy.txt", (topic("lines"), topic("others"))
    apply(stream, *topics)
    produce(stream, "others", "old")
    produce(stream, "lines", "1")
    apply(stream, *topics, sink("sink", copy))
    wait_until(lambda: copy.exists() and copy.read_text() == "1\n")
    text = apply(stream, *topics, sink("sink", copy, "PREFIX-others"))
    assert "the connector PREFIX-sink copies no more records of PREFIX-lines" in text
    assert "the connector PREFIX-sink reads PREFIX-others: all records that are there" in text
    wait_until(lambda: copy.read_text() == "1\nold\n")
    produce(stream, "lines", "2")
    assert stays(copy.read_text) == "1\nold\n"


def test_a_sink_that_tolerates_errors_skips_records(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """A record that is no JSON is nowhere, and the sink goes on after it."""
    copy = tmp_path / "copy.txt"
    apply(stream, topic("lines"))
    produce(stream, "lines", '"1"', "no JSON", '"2"')
    config = '"errors.tolerance" = "all"\n"value.converter.schemas.enable" = false'
    block = sink("sink", copy, config=config).replace(
        STRING, STRING.replace("storage.String", "json.Json")
    )
    text = apply(stream, topic("lines"), block)
    assert "the connector PREFIX-sink skips records that it cannot convert" in text
    wait_until(lambda: copy.exists() and copy.read_text() == "1\n2\n")
    assert stream.has_state("sink", "RUNNING", 1)


def test_a_sink_of_a_missing_topic_runs_and_copies_nothing(
    stream: Stream,  # noqa: F811
    tmp_path: Path,
) -> None:
    """`used-object-missing`: no worker complains about a name that is misspelt."""
    copy = tmp_path / "copy.txt"
    text = apply(stream, topic("lines"), sink("sink", copy, "PREFIX-linse"))
    assert "it reads kafka_topic PREFIX-linse, which is neither declared nor live" in text
    wait_running(stream, "sink")
    produce(stream, "lines", "1")
    assert stays(lambda: copy.read_text() if copy.exists() else "") == ""
    assert stream.has_state("sink", "RUNNING", 1)


def test_a_sink_without_its_topic_copies_nothing_more(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """`object-in-use`: it works as long as the topic is there."""
    copy = tmp_path / "copy.txt"
    apply(stream, topic("lines"), sink("sink", copy))
    produce(stream, "lines", "1")
    wait_until(lambda: copy.exists() and copy.read_text() == "1\n")
    removed = "removed {\n  from = kafka_topic.lines\n  lifecycle { destroy = true }\n}\n"
    text = apply(stream, sink("sink", copy), removed)
    assert "kafka_connect_connector.sink reads it" in text
    assert stays(copy.read_text) == "1\n"


def test_a_sink_without_a_right_fails(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """`right-missing`: its task ends with the broker's refusal."""
    copy, worker = tmp_path / "copy.txt", stream.worker
    provider = SYSTEM.format(url=worker.url, user=worker.username)
    named = provider.replace("url ", 'worker_principal = "User:connect"\n  url ')
    stream.folder.write("connect.kf.hcl", named)
    block = sink("sink", copy).replace(BEFORE, "depends_on = [kafka_acl.groups]")
    _, groups = RIGHTS.split('resource "kafka_acl" "groups"')
    stream.declare('resource "kafka_acl" "groups"' + groups, topic("lines"), block)
    said = stream.folder.done("plan").text.replace(stream.prefix, "PREFIX-")
    text = " ".join(said.split())
    assert "it fails: User:connect lacks Read on Topic PREFIX-lines" in text
    stream.folder.run("apply", "-auto-approve")
    produce(stream, "lines", "1")

    def has_failed() -> bool:
        status = stream.ask("GET", f"/connectors/{stream.prefix}sink/status")
        return isinstance(status, dict) and [t["state"] for t in status["tasks"]] == ["FAILED"]

    wait_until(has_failed)
    assert not copy.exists() or copy.read_text() == ""


def ask_worker(stream: Stream, **config: str) -> tuple[int, str]:  # noqa: F811
    """Status and text of the answer to the creation of a connector by another client."""
    name = f"{stream.prefix}asked"
    keys = {"class": "connector.class", "tasks": "tasks.max", "sizes": "batch.sizes"}
    body = {"name": name, "config": {keys.get(key, key): value for key, value in config.items()}}
    answers: list[tuple[int, object]] = []

    def is_answered() -> bool:
        answers[:] = [stream.worker.open_client().ask("POST", "/connectors", body)]
        return answers[0][0] != 409

    wait_until(is_answered)
    return answers[0][0], str(answers[0][1])


def test_workers_refuse_a_connector_without_tasks(stream: Stream) -> None:  # noqa: F811
    """And text in place of a number."""
    for tasks in ("0", "-1", "many"):
        status, text = ask_worker(stream, **{"class": "FileStreamSource"}, topic="t", tasks=tasks)
        assert status == 400 and "tasks.max" in text


@pytest.mark.parametrize("name", ["100%", "a/b", "a\\b"])
def test_workers_serve_no_connector_with_such_a_name(stream: Stream, name: str) -> None:  # noqa: F811
    """Encoded as it must be, the path is refused before anybody looks for the connector. Workers of
    Kafka 3 find nothing under a slash and serve the others, which are refused all the same: the
    connector would be lost with their upgrade."""
    path = f"/connectors/{quote(name, safe='')}"
    status, _ = stream.worker.open_client().ask("GET", path)
    assert status == (400 if read_release() >= (4, 0) else 404)


def test_a_create_with_braces_in_the_name_looks_failed(stream: Stream) -> None:  # noqa: F811
    """The connector is there all the same."""
    body = {"name": "{b}", "config": {"connector.class": "FileStreamSource", "topic": "t"}}
    statuses: list[int] = []

    def is_answered() -> bool:
        statuses[:] = [stream.worker.open_client().ask("POST", "/connectors", body)[0]]
        return statuses[0] != 409

    wait_until(is_answered)
    assert statuses == [500]
    wait_until(lambda: "{b}" in (stream.ask("GET", "/connectors") or ()))  # type: ignore[operator]
    wait_until(lambda: stream.worker.open_client().ask("DELETE", "/connectors/%7Bb%7D")[0] == 204)


def test_workers_refuse_an_unknown_plugin(stream: Stream) -> None:  # noqa: F811
    """They name those that they have."""
    status, text = ask_worker(stream, **{"class": "FileStreamSorce"}, topic="t")
    assert status in (400, 500) and "Failed to find any class" in text


def test_workers_accept_an_unknown_config(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """They store it and say nothing; the plan names the config that was probably meant."""
    config = {"class": "FileStreamSource", "topic": f"{stream.prefix}t", "sizes": "7"}
    status, _ = ask_worker(stream, **config, file=str(tmp_path / "x"))
    assert status == 201
    configs: list[object] = []

    def is_stored() -> bool:
        configs[:] = [stream.ask("GET", f"/connectors/{stream.prefix}asked/config")]
        return isinstance(configs[0], dict)

    wait_until(is_stored)
    assert isinstance(configs[0], dict) and configs[0]["batch.sizes"] == "7"
    misspelt = source("source", tmp_path / "x").replace("file  ", '"batch.sizes" = 7\nfile  ')
    stream.declare(RIGHTS, topic("lines"), misspelt)
    text = " ".join(stream.folder.done("plan").text.split())
    assert f'the plugin {FILE}SourceConnector declares no config "batch.sizes"' in text


def test_workers_accept_another_class_under_the_same_name(
    stream: Stream,  # noqa: F811
    tmp_path: Path,
) -> None:
    """A source becomes a sink, which has no use for the offsets of the source."""
    lines, copy = tmp_path / "lines.txt", tmp_path / "copy.txt"
    lines.write_text("1\n")
    apply(stream, topic("lines"), source("source", lines))
    wait_until(lambda: list_records(stream, "lines") == ["1"])
    text = apply(stream, topic("lines"), sink("source", copy))
    assert f"PREFIX-source runs {FILE}SinkConnector in place of {FILE}SourceConnector" in text
    wait_until(lambda: copy.exists() and copy.read_text() == "1\n")


@pytest.mark.parametrize(
    ("class_", "own"),
    [("FileStreamSource", {"file", "topic", "batch.size"}), ("FileStreamSink", {"file"})],
)
def test_what_workers_give_to_connectors_is_no_misspelt_config(
    stream: Stream,  # noqa: F811
    class_: str,
    own: set[str],
) -> None:
    """The worker's definition has the plugin's own configs, and those that each connector of its
    type has: the table of the latter is that of the worker."""
    definition = stream.ask("GET", f"/connector-plugins/{class_}/config")
    config = {"connector.class": class_, "name": "x", "topics": "t", "topic": "t"}
    body = stream.ask("PUT", f"/connector-plugins/{class_}/config/validate", config)
    assert isinstance(definition, list) and isinstance(body, dict)
    validated = {item["definition"]["name"] for item in body["configs"] if item["definition"]}
    declared = {item["name"] for item in definition}
    assert own <= declared
    assert declared | validated <= GIVEN | own | {"name", "connector.class"}, (declared, validated)


def test_a_sink_reads_the_topics_that_fit_and_leaves_others(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """A pattern that fits less takes topics away."""
    copy, topics = tmp_path / "copy.txt", (topic("lines"), topic("others"))
    both, one = (
        sink("sink", copy).replace("topics =", '"topics.regex" =').replace("PREFIX-lines", pattern)
        for pattern in ("PREFIX-(lines|others)", "PREFIX-l.*")
    )
    apply(stream, *topics)
    produce(stream, "lines", "1")
    apply(stream, *topics, both)
    wait_until(lambda: copy.exists() and copy.read_text() == "1\n")
    produce(stream, "others", "2")
    wait_until(lambda: copy.read_text() == "1\n2\n")
    text = apply(stream, *topics, one)
    assert 'reads the topics that fit "PREFIX-l.*" instead of the topics that fit' in text
    wait_running(stream, "sink")
    produce(stream, "others", "3")
    stays(copy.read_text)
    produce(stream, "lines", "4")
    wait_until(lambda: copy.read_text() == "1\n2\n4\n")


def test_a_connector_has_no_more_tasks_than_it_may(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """This sink has as many as it may."""
    copy = tmp_path / "copy.txt"
    apply(stream, topic("lines"), sink("sink", copy, config='"tasks.max" = 3'))
    wait_until(lambda: stream.has_state("sink", "RUNNING", 3) and count_tasks(stream, "sink") == 3)
    text = apply(stream, topic("lines"), sink("sink", copy, config='"tasks.max" = 1'))
    assert "the connector PREFIX-sink has at most 1 task instead of 3" in text
    wait_until(lambda: count_tasks(stream, "sink") == 1)


def count_tasks(stream: Stream, name: str) -> int:  # noqa: F811
    status = stream.ask("GET", f"/connectors/{stream.prefix}{name}/status")
    return len(status["tasks"]) if isinstance(status, dict) else 0


def test_workers_create_a_stopped_connector_since_3_7(stream: Stream, tmp_path: Path) -> None:  # noqa: F811
    """Older ones refuse the request as a whole (`--kafka-version 3.6.2`)."""
    name, config = f"{stream.prefix}halted", {"connector.class": "FileStreamSource", "topic": "t"}
    body = {"name": name, "config": config, "initial_state": "STOPPED"}
    created = stream.ask("POST", "/connectors", body) is not None
    assert created is (read_release() >= (3, 7))
    if created:
        wait_until(lambda: stream.has_state("halted", "STOPPED", 0))
