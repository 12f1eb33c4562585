"""A root in an object store, read without Spark: manifests and tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stores import s3

from .lake import publish

ROOT = "s3://bucket/fleet"
PATIENCE = 300.0


class Ranged(s3.Bucket):
    """Answers for a part of an object, too (RFC 9110, section 14)."""

    def serve(self, request: s3.Request) -> s3.Answer:
        answer, wanted = super().serve(request), request.headers.get("range")
        if not wanted or answer.status != 200 or request.method != "GET":
            return answer
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        size = len(answer.body)
        start = int(first) if first else max(0, size - int(last))
        end = min(int(last), size - 1) if first and last else size - 1
        about = {**answer.headers, "Content-Range": f"bytes {start}-{end}/{size}"}
        return s3.Answer(206, answer.body[start : end + 1], about)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranged]:
    """What is in `bucket` at the address of the environment."""
    made = Ranged()
    with s3.serving(made) as address:
        for name, text in {**s3.ENVIRONMENT, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, text)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield made


def put(folder: Path, bucket: Ranged) -> None:
    """All files of a root."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            key = f"fleet/{path.relative_to(folder).as_posix()}"
            bucket.serve(s3.Request("PUT", key, {}, {}, path.read_bytes()))


def fleet(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafkaform", "fleet", *words, "--root", ROOT],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def queried(sql: str) -> list[dict[str, Any]]:
    """Another process asks: delta-rs lets no other thread of its own run while it waits for a
    store, and the store is one."""
    done = fleet("query", sql, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def test_a_build_in_a_store_is_read_without_spark(tmp_path: Path, bucket: Ranged) -> None:
    """The commands that read take its address; `doctor` writes there and leaves nothing."""
    registered = {"cluster": "a", "registered": True, "status": "read", "coverage": {"x": "y"}}
    publish(tmp_path, "b1", {"cluster": [registered]})
    put(tmp_path, bucket)
    before = dict(bucket.objects)
    sql = "select cluster, coverage from cluster"
    assert queried(sql) == [{"cluster": "a", "coverage": {"x": "y"}}]
    for command, told in (("status", "Build b1: coverage complete"), ("doctor", "its promises")):
        done = fleet(command)
        assert done.returncode == 0 and told in done.stdout, done.stdout + done.stderr
    assert bucket.objects == before
