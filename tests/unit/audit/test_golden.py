"""The log's format is a contract: the golden file may only change on purpose.

KAFKAFORM_UPDATE_GOLDEN=1 rewrites it; the difference is then read, not trusted.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kafkaform.audit.records import KINDS, RecordKind, decode, encode, verify_log

from ...kit import audit_story as story

OUTCOME = {
    "lineage",
    "instance",
    "scope_id",
    "step",
    "address",
    "kind",
    "key",
    "action",
    "incarnation",
    "paths",
    "plan",
    "approval",
    "phase",
    "attempt",
    "owners",
    "outcome",
    "error",
    "duration_ms",
}


@pytest.fixture(scope="module")
def golden() -> list[bytes]:
    return story.GOLDEN.read_bytes().splitlines()


def test_the_code_writes_the_golden_file(tmp_path: Path) -> None:
    """The story, written today, is byte for byte the golden file."""
    data = story.written(tmp_path / "log.jsonl")
    if os.environ.get("KAFKAFORM_UPDATE_GOLDEN"):
        story.GOLDEN.write_bytes(data)
    assert data == story.GOLDEN.read_bytes()


def test_the_golden_file_reads_and_verifies(golden: list[bytes]) -> None:
    """Every line decodes, encodes to the same bytes and follows the one before."""
    assert [encode(decode(line)) for line in golden] == golden
    verdict = verify_log(golden)
    assert verdict.ok
    assert verdict.records == len(golden)


def test_every_kind_occurs(golden: list[bytes]) -> None:
    """The contract covers every kind of record."""
    assert {decode(line).kind for line in golden} == set(KINDS)


def test_outcomes_have_what_later_readers_rely_on(golden: list[bytes]) -> None:
    """Each outcome, recovered ones too, has the members of architecture §6."""
    bodies = [json.loads(line)["body"] for line in golden if b'"outcome":"' in line]
    steps = [body for body in bodies if "step" in body]
    assert len(steps) == 4
    assert all(body.keys() >= OUTCOME for body in steps)
    assert {"path", "before", "after", "sensitive"} == steps[0]["paths"][0].keys()


def test_sensitive_paths_carry_no_values(golden: list[bytes]) -> None:
    """Neither intent nor outcome holds what a sensitive path is or was, not even by name."""
    records = [decode(line) for line in golden if b"scram" in line]
    assert not any(b"env:" in line for line in golden if b"scram" in line)
    [intent] = [record for record in records if record.kind == RecordKind.INTENT]
    assert intent.body["target"] == {
        "username": "ada",
        "password": None,
        "password_wo_version": "2",
    }
    [path] = [path for path in intent.body["paths"] if path["sensitive"]]
    assert (path["before"], path["after"]) == (None, None)
