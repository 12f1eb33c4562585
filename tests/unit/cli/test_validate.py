"""`validate` for people and for programs, offline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ...kit.commands.here import Here

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
TOPIC = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'


def test_a_sound_configuration(here: Here) -> None:
    """People get one line, programs Terraform's report without diagnostics."""
    here.write("main.kf.hcl", PROVIDER + TOPIC)
    assert here.done("validate").out == "The configuration is valid: 1 object declared.\n"
    assert here.json("validate", "-json") == {
        "format_version": "1.0",
        "valid": True,
        "error_count": 0,
        "warning_count": 0,
        "diagnostics": [],
    }


TOLD = {
    'resource "kafka_topic" "a" {\n  name = "my topic"\n}\n': ("2:10", "topic name 'my topic'"),
    'resource "kafka_topic" "a" {\n  name = "a"\n  config = { "retention.mss" = "1" }\n}\n': (
        "3:14",
        'Did you mean "retention.ms"?',
    ),
    'resource "kafka_topic_config" "a" {\n  topic = "a"\n'
    '  config = { "retention.mss" = "1" }\n}\n': (
        "3:14",
        'Did you mean "retention.ms"?',
    ),
    'resource "kafka_topic" "a" {\n  name = "a"\n  config = {\n    "retention.ms" = "1"\n'
    '    "cleanup.policy" = ["compct", "delete"]\n  }\n}\n': ("5:5", 'Did you mean "compact"?'),
    'resource "kafka_topic" "a" {\n  name = "a"\n'
    '  config = { "compression.type" = "zstdd" }\n}\n': (
        "3:14",
        'Did you mean "zstd"?',
    ),
    'resource "kafka_topic" "a" {\n  name = "a"\n  config = { "retention.ms" = "7d" }\n}\n': (
        "3:14",
        'or retention("7d"), for example',
    ),
    'resource "kafka_topic_config" "a" {\n  topic = "a"\n'
    '  config = { "preallocate" = "yes" }\n}\n': ("3:14", "Write true or false."),
    'resource "kafka_broker_config" "a" {\n  broker_id = 1\n'
    '  config = { "log.cleaner.thraeds" = 2 }\n}\n': (
        "3:14",
        'Did you mean "log.cleaner.threads"?',
    ),
    'resource "kafka_cluster_config" "a" {\n  config = { "log.cleanup.policy" = "delet" }\n}\n': (
        "2:14",
        'Did you mean "delete"?',
    ),
    'resource "kafka_group_config" "a" {\n  group = "a"\n'
    '  config = { "share.isolation.level" = "read_comitted" }\n}\n': (
        "3:14",
        'Did you mean "read_committed"?',
    ),
    'resource "kafka_group_config" "a" {\n  group = "a"\n'
    '  config = { "consumer.session.timeout" = 1 }\n}\n': (
        "3:14",
        'Did you mean "consumer.session.timeout.ms"?',
    ),
    'resource "kafka_client_metrics" "a" {\n  name = "a"\n'
    '  config = { "interval.ms" = 300000, match = ["client_idd=x"] }\n}\n': (
        "3:38",
        'Did you mean "client_id"?',
    ),
    'resource "kafka_acl" "a" {\n  resource_name = "a"\n  resource_type = "Topic"\n'
    '  acl_principal = "User:a"\n  acl_host = "*"\n  acl_operation = "Raed"\n'
    '  acl_permission_type = "Allow"\n}\n': ("6:19", 'Did you mean "Read"?'),
    'resource "kafka_user_scram_credential" "a" {\n  username = "a"\n'
    '  scram_mechanism = "SCRAM-SHA-255"\n  password = secret_env("A")\n}\n': (
        "3:21",
        'Did you mean "SCRAM-SHA-256"?',
    ),
    'resource "kafka_topic" "a" {\n  name = "a"\n  partitions = 1.5\n}\n': (
        "3:16",
        "Write 1 or 2.",
    ),
    'resource "kafka_topic" "a" {\n  name = "a"\n  partitions = "3x"\n}\n': (
        "3:16",
        "Write digits, such as 3.",
    ),
    'resource "kafka_quota" "a" {\n  ip = "300.1.1.1"\n'
    "  config = { connection_creation_rate = 1 }\n}\n": (
        "2:8",
        "'300.1.1.1' is not an IP address",
    ),
    'provider "kafka" {\n  bootstrap_servers = ["a:9092", "kafka-1"]\n}\n': (
        "2:3",
        "'kafka-1' in bootstrap_servers has no port",
    ),
    "locals {\n<<<<<<< HEAD\n  a = 1\n=======\n  a = 2\n>>>>>>> other\n}\n": (
        "2:1",
        "Conflict marker",
    ),
    "<<<<<<< HEAD\nlocals {}\n=======\n": ("1:1", "Conflict marker"),
}


MISPLACED = {
    ("kafka_topic", "retention_ms"): 'Write config = { "retention.ms" = … }.',
    ("kafka_topic", "min_insync_replicas"): 'Write config = { "min.insync.replicas" = … }.',
    ("kafka_quota", "producer_byte_rate"): 'Write config = { "producer_byte_rate" = … }.',
    ("kafka_broker_config", "log_retention_ms"): 'Write config = { "log.retention.ms" = … }.',
    ("kafka_client_metrics", "interval_ms"): 'Write config = { "interval.ms" = … }.',
    ("kafka_topic", "producer_byte_rate"): "It is a key of config in a kafka_quota block: "
    'config = { "producer_byte_rate" = … }.',
    ("kafka_quota", "retention_ms"): "It is a key of config in a kafka_topic block: "
    'config = { "retention.ms" = … }.',
    ("kafka_topic", "replicas"): 'Did you mean "replication_factor"?',
}


@pytest.mark.parametrize(("kind", "argument"), MISPLACED)
def test_a_config_beside_config_is_told_where_it_belongs(
    here: Here, kind: str, argument: str
) -> None:
    """Also one of another kind of object; and what users of another tool call an argument."""
    here.write("main.kf.hcl", f'resource "{kind}" "a" {{\n  {argument} = 1\n}}\n')
    faults = here.json("validate", "-json", code=1)["diagnostics"]
    (fault,) = (one for one in faults if one["summary"].endswith(f'"{argument}"'))
    assert fault["advice"] == MISPLACED[kind, argument]


def test_an_argument_in_config_is_told_where_it_belongs(here: Here) -> None:
    """A broker would refuse it, or a plugin would take it and ignore it."""
    topic = 'resource "kafka_topic" "a" {\n  name = "a"\n  config = { partitions = "3" }\n}\n'
    here.write("main.kf.hcl", topic)
    (fault,) = here.json("validate", "-json", code=1)["diagnostics"]
    assert fault["summary"] == '"partitions" is an argument of kafka_topic.a and no key of config'
    assert fault["advice"] == "Write partitions = … beside config."


UNKNOWN = """\
resource "kafka_topic" "a" {
  name   = "a"
  config = {
    "confluent.value.schema.validation" = true
    "redpanda.remote.read"              = "true"
    "retention.local.target.bytes"      = 1
  }
}

resource "kafka_group_config" "a" {
  group  = "a"
  config = { "pool.lag.limit" = 5 }
}

resource "kafka_cluster_config" "a" {
  config = { "confluent.balancer.enable" = true }
}
"""


def test_what_another_broker_can_know_stays_possible(here: Here) -> None:
    """Keys and words that look like none of Kafka's are valid offline; a broker decides."""
    here.write("main.kf.hcl", UNKNOWN)
    here.done("validate")


@pytest.mark.parametrize("text", TOLD)
def test_what_needs_no_cluster_is_told_without_one(here: Here, text: str) -> None:
    """What no cluster takes, and marks that git left, with the line and what to do."""
    here.write("main.kf.hcl", text)
    place, told = TOLD[text]
    said = here.fails("validate")
    assert (
        f"on main.kf.hcl:{place}" in said and told in said and ("Fix:" in said or "Hint:" in said)
    ), said
    assert "heredoc" not in said


def test_what_a_newer_broker_may_know_is_sound(here: Here) -> None:
    """A key that looks like none of ours, a host's name as an address, and heredocs."""
    here.write(
        "main.kf.hcl",
        'resource "kafka_topic" "a" {\n  name = "a"\n  config = { "frobnicate" = "1" }\n}\n'
        'resource "kafka_quota" "q" {\n  ip = "build.example"\n'
        "  config = { connection_creation_rate = 1 }\n}\n"
        "locals {\n  a = <<EOT\n<<<<<<< x\nEOT\n}\n",
    )
    here.done("validate")


def test_a_fault_for_programs(here: Here) -> None:
    """A diagnostic has Terraform's members; bytes count from the file's start, columns in code
    points, offsets in bytes of the snippet."""
    text = (
        PROVIDER + '# é\nresource "kafka_topic" "ä" {\n  name = "e" # é\n/* é */ partitons = 3\n}\n'
    )
    here.write("main.kf.hcl", text)
    report = here.json("validate", "-json", code=1)
    assert (report["valid"], report["error_count"], report["warning_count"]) == (False, 1, 0)
    (fault,) = report["diagnostics"]
    assert fault["severity"] == "error"
    assert "partitons" in fault["summary"]
    assert fault["advice"] == 'Did you mean "partitions"?'
    start = fault["range"]["start"]
    assert fault["range"]["filename"] == "main.kf.hcl"
    assert (start["line"], start["column"]) == (7, 9)
    data = text.encode()
    assert data[start["byte"] : fault["range"]["end"]["byte"]] == b"partitons"
    snippet = fault["snippet"]
    assert snippet["code"] == "/* é */ partitons = 3"
    assert snippet["context"] == 'resource "kafka_topic" "ä"'
    assert (snippet["start_line"], snippet["values"]) == (7, [])
    marked = slice(snippet["highlight_start_offset"], snippet["highlight_end_offset"])
    assert snippet["code"].encode()[marked] == b"partitons"


@pytest.mark.parametrize(
    "text",
    ['a = "x\n', "resource {}\n", "locals { a = nope() }\n", "provider kafka {", "\ufeffx=\n"],
)
def test_every_range_is_inside_its_file(here: Here, text: str) -> None:
    """Offsets never leave the file or the snippet, whatever the error is."""
    here.write("main.kf.hcl", text)
    report = here.json("validate", "--json", code=1)
    assert report["error_count"] == len(report["diagnostics"]) > 0
    for fault in report["diagnostics"]:
        start, end = fault["range"]["start"]["byte"], fault["range"]["end"]["byte"]
        assert 0 <= start <= end <= len(text.encode())
        code = fault["snippet"]["code"].encode()
        marks = fault["snippet"]["highlight_start_offset"], fault["snippet"]["highlight_end_offset"]
        assert 0 <= marks[0] <= marks[1] <= len(code)


ENTITY = 'entity_type = "user"\n  entity_name = "u"'
LOGIN = 'username = "u"\n  scram_mechanism = "SCRAM-SHA-256"\n  password = secret_env("PW")'
RULE = (
    'resource_name = "a"\n  resource_type = "Topic"\n  acl_principal = "User:u"\n'
    '  acl_host = "*"\n  acl_permission_type = "Allow"'
)


@pytest.mark.parametrize(
    ("kind", "given", "wrong", "told"),
    [
        ("kafka_topic", 'name = "a"', "partitions = -1", "a topic has at least 1"),
        ("kafka_topic", 'name = "a"', "partitions = 0", "a topic has at least 1"),
        ("kafka_topic", 'name = "a"', "replication_factor = 0", "must be 1 to 32767"),
        ("kafka_topic", 'name = "a"', "replication_factor = 40000", "must be 1 to 32767"),
        ("kafka_quota", ENTITY, "config = { producer_byte_rate = 0 }", "a number above 0"),
        ("kafka_quota", ENTITY, "config = { producer_byte_rat = 1 }", "is not a quota"),
        ("kafka_quota", 'ip = "::1"', "config = { connection_creation_rate = 1.5 }", "not a whole"),
        ("kafka_user_scram_credential", LOGIN, "scram_iterations = 1", "accepts 4096 to 16384"),
        ("kafka_broker_config", "broker_id = 1", 'config = { "log.dirs" = "/x" }', "read-only"),
        ("kafka_cluster_config", "", 'config = { "log.dirs" = "/x" }', "read-only"),
        ("kafka_acl", RULE, 'acl_operation = "Raed"', "acl_operation"),
    ],
)
def test_values_that_no_cluster_takes(
    here: Here, kind: str, given: str, wrong: str, told: str
) -> None:
    """They are told without a broker, with the line; the same block without them is sound."""
    limit = "connection_creation_rate" if given.startswith("ip") else "producer_byte_rate"
    sound = {
        "kafka_quota": f"config = {{ {limit} = 1024 }}",
        "kafka_acl": 'acl_operation = "Read"',
    }.get(kind, "")
    for line, code in ((sound, 0), (wrong, 1)):
        text = f'resource "{kind}" "a" {{\n  {given}\n  {line}\n}}\n'
        here.write("main.kf.hcl", PROVIDER + text)
        report = here.json("validate", "-json", code=code)
        assert report["error_count"] == code, report
    (fault,) = report["diagnostics"]
    assert told in fault["summary"]
    assert fault["snippet"]["code"].strip() == wrong


@pytest.mark.parametrize(
    "block",
    [
        'resource "kafka_topic" "a" {\n  name = "a"\n  replication_factor = -1\n}\n',
        'resource "kafka_quota" "a" {\n  user = "u"\n'
        "  config = { producer_byte_rate = null, request_percentage = 0.5 }\n}\n",
        'resource "kafka_broker_config" "a" {\n  broker_id = 1\n'
        '  config = { "log.dirs" = null, "log.cleaner.threads" = 2 }\n}\n',
    ],
)
def test_what_only_looks_wrong(here: Here, block: str) -> None:
    """-1 leaves the factor to the cluster, null leaves a value alone."""
    here.write("main.kf.hcl", PROVIDER + block)
    assert here.json("validate", "-json")["valid"]


def test_what_stops_the_reading_is_json_too(here: Here) -> None:
    """Programs find an unreadable variable file where they find every other fault."""
    here.write("main.kf.hcl", PROVIDER + TOPIC)
    report = here.json("validate", "-json", "-var-file=nope.kfvars.hcl", code=1)
    assert "nope.kfvars.hcl" in report["diagnostics"][0]["summary"]
    assert "nope.kfvars.hcl" in here.fails("validate", "-var-file=nope.kfvars.hcl")


def test_a_fault_in_a_module(here: Here) -> None:
    """The place is in the module's file, and its block is named."""
    here.write("main.kf.hcl", PROVIDER + 'module "m" {\n  source = "./m"\n}\n')
    here.write("m/main.kf.hcl", 'resource "kafka_topic" "t" {\n  name = "t"\n  nope = 1\n}\n')
    (fault,) = here.json("validate", "-json", code=1)["diagnostics"]
    assert fault["range"]["filename"] == "m/main.kf.hcl"
    assert fault["snippet"]["context"] == 'resource "kafka_topic" "t"'


def test_no_secret_is_in_the_report(here: Here) -> None:
    """The line of a password is not repeated when something on it is wrong."""
    here.write("main.kf.hcl", 'provider "kafka" {\n  sasl_password = "hunter2" + \n}\n' + TOPIC)
    said = here.run("validate", "-json")
    assert said.code == 1
    assert "hunter2" not in said.out + said.err
    assert json.loads(said.out)["diagnostics"]


def test_the_report_in_the_documents(here: Here) -> None:
    """docs/commands.md shows what comes out for the line that it shows."""
    page = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = json.loads(page.split("```json\n", 1)[1].split("```", 1)[0])
    code = shown["diagnostics"][0]["snippet"]["code"]
    text = f'resource "kafka_topic" "orders" {{\n  name = "orders"\n{code}\n}}\n'
    here.write("main.kf.hcl", text)
    here.write("provider.kf.hcl", PROVIDER)
    report = here.json("validate", "-json", code=1)
    for each in (report, shown):
        assert each["diagnostics"][0].pop("detail").startswith("It takes name, partitions, ")
    assert report == shown


def test_a_missing_provider_block_is_a_warning(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a plan will need is said before somebody has a cluster at hand; a block or the
    environment is enough, because jobs get their connection from there."""
    variable = "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS"
    monkeypatch.delenv(variable, raising=False)
    topic = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
    here.write("main.kf.hcl", topic)
    for command in ("validate", "init"):
        warned = here.done(command)
        assert 'There is no block provider "kafka"' in warned.text and variable in warned.text
    monkeypatch.setenv(variable, "kafka:9092")
    assert "no block" not in here.done("validate").text
    monkeypatch.delenv(variable)
    here.write("main.kf.hcl", topic + 'provider "kafka" {}\n')
    assert "no block" not in here.done("validate").text
