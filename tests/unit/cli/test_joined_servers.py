"""A joined text in a list of brokers is split, wherever such a list is read."""

from __future__ import annotations

import json

import pytest

from ...kit.commands.here import Here

LIST = '  bootstrap_servers = ["127.0.0.1:1,127.0.0.1:2"]\n'


@pytest.mark.parametrize(
    "place",
    [
        LIST,
        '  bootstrap_servers = [var.brokers]\n}\nvariable "brokers" {\n'
        '  default = "127.0.0.1:1,127.0.0.1:2"\n',
        '  bootstrap_servers = split(";", "127.0.0.1:1,127.0.0.1:2")\n',
    ],
)
def test_every_way_to_write_the_list(here: Here, place: str) -> None:
    """Both brokers are tried, wherever the joined text comes from."""
    here.write("main.kf.hcl", f'provider "kafka" {{\n{place}}}\n')
    here.write("topic.kf.hcl", 'resource "kafka_topic" "a" {\n  name = "a"\n}\n')
    here.done("validate")
    assert "cannot reach Kafka at 127.0.0.1:1, 127.0.0.1:2: " in _join(here.fails("plan"))


def test_json_environment_and_flags(here: Here) -> None:
    """A folder in JSON, a variable of the environment, a flag and a file of properties."""
    both = "127.0.0.1:1,127.0.0.1:2"
    topic = {"kafka_topic": {"a": {"name": "a"}}}
    block = {"kafka": {"bootstrap_servers": [both]}}
    here.write("main.kf.json", json.dumps({"provider": block, "resource": topic}))
    shown = "cannot reach Kafka at 127.0.0.1:1, 127.0.0.1:2: "
    assert shown in _join(here.fails("plan"))
    here.write("main.kf.json", json.dumps({"resource": topic}))
    here.monkeypatch.setenv("KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS", f" {both}, ")
    assert shown in _join(here.fails("plan"))
    assert shown in _join(here.fails("describe", "topics", f"--bootstrap-server={both}"))
    here.write("client.properties", f"bootstrap.servers={both}\n")
    assert shown in _join(here.fails("describe", "topics", "--command-config=client.properties"))


def _join(text: str) -> str:
    return " ".join(text.replace("│", "").split())
