"""Every type and data source stands in an example, and the one about topics of others works."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform.sandbox import Sandbox
from kafkaform_providers.kafka.provider import PROVIDER

from ..proof.cluster import client, make, own_sandbox, read
from .test_examples import EXAMPLES, one

CHANGELOG = "wordcount-store-changelog"


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with own_sandbox(f"others-{os.getpid()}") as made:
        yield made


def test_every_type_has_an_example() -> None:
    """Resources and data sources; a new one must be shown somewhere too."""
    files = [path for path in EXAMPLES.rglob("*") if path.suffix in (".hcl", ".tf")]
    text = "\n".join(path.read_text("utf-8") for path in files)
    shown = {
        word: set(re.findall(rf'^{word} "(\w+)"', text, re.M)) for word in ("resource", "data")
    }
    assert set(PROVIDER.types) <= shown["resource"]
    assert set(PROVIDER.data) <= shown["data"]


def test_topics_of_others(tmp_path: Path, box: Sandbox) -> None:
    """A topic that is missing is an error; configs are taken over and kept, one more changelog is
    one more change, and a destroy leaves the topics."""
    example = one("15-topics-of-others", tmp_path, box)
    example.run("fmt", "--check")
    assert "words" in example.run("plan", expect=1)
    make(client(box), {"words": (3, {}), CHANGELOG: (1, {"cleanup.policy": "compact"})})
    example.run("apply", "--auto-approve", "--adopt", "kafka_topic_config.*")
    assert "No changes." in example.run("plan", "--detailed-exitcode")
    live = read(client(box))
    assert live["word-counts"].partitions == 3
    assert live[CHANGELOG].config["max.message.bytes"] == str(2 * 1024 * 1024)
    outputs = json.loads(example.run("output", "--json"))
    assert outputs["changelogs"]["value"] == [CHANGELOG]
    make(client(box), {"wordcount-other-changelog": (1, {})})
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in example.run("plan")
    example.run("destroy", "--confirm", box.cluster_id)
    left = read(client(box))
    assert {"words", CHANGELOG} <= set(left) and "word-counts" not in left
    assert left[CHANGELOG].config == {}
