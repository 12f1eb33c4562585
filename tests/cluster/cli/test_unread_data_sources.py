"""Commands that look at a cluster from a configuration folder read no data sources."""

from __future__ import annotations

import io

import pytest

from ...kit.commands.folder import Folder

NOBODY = "127.0.0.1:1"
ELSEWHERE = """
data "kafka_topics" "there" {
  provider = kafka.down
}
resource "kafka_topic" "same" {
  for_each   = toset(data.kafka_topics.there.list[*].topic_name)
  name       = each.value
  partitions = 1
}
"""
LOOKING = (
    ["describe", "brokers"],
    ["explain", "config", "cluster", "message.max.bytes"],
    ["shell"],
)


def test_a_cluster_that_is_down_stops_nobody_who_looks_at_another(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan leaves out what needs the data source of the other one; to describe, to explain and
    to type commands does not need it."""
    block = (folder.path / "provider.kf.hcl").read_text()
    down = block.replace("{", '{\n  alias = "down"', 1).replace(folder.broker.bootstrap, NOBODY)
    folder.write("down.kf.hcl", down)
    folder.write("main.kf.hcl", ELSEWHERE)
    said = folder.fails(8, "plan")
    assert "data.kafka_topics.there cannot be read" in said
    assert "1 resource block is left out" in said and "kafka_topic.same" in said
    for line in LOOKING:
        monkeypatch.setattr("sys.stdin", io.StringIO("describe cluster\n"))
        assert folder.done(*line, "--provider=kafka").out, line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("locals {\n  a = local.b\n}\n", "main.kf.hcl:2:"),
        ('data "kafka_topics" "x" {\n  nme = "a"\n}\n', 'Did you mean "name"?'),
    ],
)
def test_faults_are_still_told(folder: Folder, text: str, told: str) -> None:
    """A configuration that is wrong is not used, although nothing is asked."""
    folder.write("main.kf.hcl", text)
    assert told in folder.fails(1, "describe", "brokers")
