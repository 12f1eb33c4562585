"""Commands that look at a cluster from a configuration folder read no data sources."""

from __future__ import annotations

import io

import pytest

from .folder import Folder

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


def second(folder: Folder, alias: str, more: tuple[str, str]) -> None:
    """A second provider block, like the first one but for one text."""
    block = (folder.path / "provider.kf.hcl").read_text()
    block = block.replace("{", f'{{\n  alias = "{alias}"', 1)
    assert more[0] in block
    folder.write(f"{alias}.kf.hcl", block.replace(*more))


@pytest.mark.parametrize(
    "line",
    [
        ["describe", "brokers"],
        ["explain", "config", "cluster", "message.max.bytes"],
        ["shell"],
    ],
)
def test_a_cluster_that_is_down_stops_nobody_who_looks_at_another(
    folder: Folder, line: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data source of the other one is never asked, whatever depends on it."""
    second(folder, "down", (folder.broker.bootstrap, NOBODY))
    folder.write("main.kf.hcl", ELSEWHERE)

    monkeypatch.setattr("sys.stdin", io.StringIO("describe brokers\n"))
    said = folder.done(*line, "--provider=kafka")
    assert "Error" not in said.text and said.out


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
