"""Which cluster of a fleet a folder means, before anything was applied there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.resource import Desired, ProviderConfig
from kafkaform.core.value import FrozenMap, freeze
from kafkaform.workflow.connection import COMMAND_LINE
from kafkaform.workflow.fleet.entries import ClusterEntry, StateEntry
from kafkaform.workflow.fleet.states import StateReading
from kafkaform_kafka.provider import PROVIDER


def make_block(**given: Any) -> ProviderConfig:
    """A provider block with these arguments."""
    config = freeze(given)
    assert isinstance(config, FrozenMap)
    return ProviderConfig("kafka", "kafka", config, COMMAND_LINE)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (["a:1", "b:1"], ["b:1"], True),
        (["a:1,b:1"], ["b:1"], True),
        (["b:1"], ["a:1, b:1 "], True),
        (["a:1,b:1"], ["a:1,c:1"], True),
        (["a:1"], ["b:1,c:1"], False),
        ([","], [","], False),
    ],
)
def test_brokers_in_common(ours: list[str], theirs: list[str], same: bool) -> None:
    """Also if one text names several brokers."""
    blocks = {"kafka": make_block(bootstrap_servers=ours)}
    desired = Desired(declared=(), providers=blocks)
    known = StateReading(StateEntry("s", None, Path()), desired=desired)
    entry = ClusterEntry("c", make_block(bootstrap_servers=theirs), PROVIDER)
    assert known.find_scopes([(entry, "id")]) == ({"kafka": "id"} if same else {})
