"""Which answers say for how long a broker throttles the client (KIP-219)."""

from __future__ import annotations

import dataclasses
from typing import Any

from kio.index import load_response_schema

from kafkaform_kafka.protocol.apis import APIS

NEWEST = 20
"""No version of an API that kafkaform uses is higher."""


def _load_newest(key: int) -> Any:
    for version in range(NEWEST, -1, -1):
        try:
            return load_response_schema(key, version)
        except Exception:  # noqa: BLE001,S112  # kio raises errors of its own for a missing version
            continue
    raise AssertionError(f"no version of API {key}")


def test_every_answer_but_one_has_a_throttle_time() -> None:
    """The map said that all have one."""
    without = {
        api.name
        for api in APIS.values()
        if "throttle_time" not in {f.name for f in dataclasses.fields(_load_newest(api.key))}
    }
    assert without == {"DescribeQuorum"}
