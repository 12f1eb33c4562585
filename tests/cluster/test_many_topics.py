"""Two thousand topics at once on a real broker, and what became of each of them."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kafkaform.audit.records import Record
from kafkaform.sandbox import Sandbox

from ..kit.commands.process_folder import Folder
from ..kit.kafka.clusters import own_sandbox
from ..kit.kafka.truth import observe
from ..kit.promises import pairs

TOPICS, PARTITIONS = 2_000, 3
CONFIG = {"cleanup.policy": "delete", "retention.ms": "604800000", "segment.bytes": "1048576"}
MAX_RECORDS = 5_000
"""Half of what the controller takes as one atomic batch (10,000 records)."""

DECLARED = f"""
resource "kafka_topic" "many" {{
  for_each = toset([for n in range({TOPICS}) : format("proof.scale-%04d", n)])

  name       = each.key
  partitions = {PARTITIONS}
  config = {{
    "cleanup.policy" = "delete"
    "retention.ms"   = retention("7d")
    "segment.bytes"  = "1048576"
  }}
}}
"""


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Sandbox]:
    """A broker of its own: it keeps a file open for each of the partitions."""
    with own_sandbox(f"scale-{os.getpid()}") as sandbox:
        yield sandbox


def batches(records: Sequence[Record]) -> dict[str, int]:
    """Time of the append of intents -> metadata records that the controller makes of it: one a
    topic, one a partition, one an override."""
    sizes: dict[str, int] = defaultdict(int)
    for record in records:
        if record.kind == "intent":
            target = record.body["target"]
            sizes[record.time] += 1 + target["partitions"] + len(target["config"])
    return sizes


@pytest.mark.timeout(300)
def test_two_thousand_topics(box: Sandbox, tmp_path: Path) -> None:
    """2,000 topics with 6,000 partitions and 6,000 overrides are applied in one run whose
    requests stay clear of the controller's record limit; after it there is nothing to do."""
    folder = Folder(tmp_path, box.bootstrap, box.admin_password, timeout="120s")
    folder.write(DECLARED)

    begun = time.monotonic()
    made = folder.apply()
    applied = time.monotonic()
    assert made.code == 0, made.out[-2000:]

    records = folder.records()
    ends = [record.body for record in records if record.kind == "outcome"]
    assert Counter(body["outcome"] for body in ends) == {"applied": TOPICS}
    assert {body["attempt"] for body in ends} == {1}, "a request was refused and sent again"
    intents, ended = pairs(records)
    assert intents == ended
    sizes = batches(records)
    assert sum(sizes.values()) == TOPICS * (1 + PARTITIONS + len(CONFIG))
    assert max(sizes.values()) <= MAX_RECORDS

    live, state = observe(box).topics("proof.scale-"), folder.state()
    assert len(live) == TOPICS
    assert all(topic.partitions == PARTITIONS for topic in live.values())
    assert all(topic.config == CONFIG for topic in live.values())
    assert state is not None
    rows = {identity.key: row.incarnation for identity, row in state.objects.items()}
    assert rows == {name: topic.topic_id for name, topic in live.items()}

    checked = time.monotonic()
    again = folder.plan()
    assert again.code == 0, again.out[-2000:]
    print(f"apply {applied - begun:.1f} s, plan {time.monotonic() - checked:.1f} s, ", end="")
    print(f"{len(sizes)} batches of at most {max(sizes.values())} records")
