"""A state in an object store: what each command asks of it, and what it notices before it sends."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kafkaform.core import progress

from ...kit.commands.here import Here
from ...kit.sources import ROOT
from ...kit.stores import s3
from ...reliability.hostile import edited
from ...test_cases import cluster_of

TOPIC = 'resource "kafka_topic" "{0}" {{\n  name = "{0}"\n}}\n'
PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
DENIED = s3.refusal(403, "AccessDenied")


@pytest.fixture
def bucket(here: Here) -> Iterator[s3.Bucket]:
    """A store with the state of a folder whose cluster is simulated."""
    made = s3.Bucket()
    for name, value in s3.ENVIRONMENT.items():
        here.monkeypatch.setenv(name, value)
    edited.simulate(here.monkeypatch, cluster_of())
    here.write("main.kf.hcl", PROVIDER + TOPIC.format("a"))
    with s3.serving(made) as address:
        query = f"endpoint={address}&region=us-east-1&use_path_style=true&timeout=3s"
        here.monkeypatch.setenv("KAFKAFORM_STATE", f"s3://bucket/prod?{query}")
        yield made


def count_pieces(bucket: s3.Bucket) -> int:
    return sum(re.fullmatch(r"prod/log/\d+\.jsonl", key) is not None for key in bucket.objects)


def read_costs() -> dict[str, int]:
    """Command -> its requests without those for the pieces of the log, by the documentation."""
    page = (ROOT / "docs/remote-state.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \| (\d+)(?: and one for each piece| \|)", page, re.MULTILINE)
    return {command: int(number) for command, number in rows}


def test_the_documented_requests(here: Here, bucket: s3.Bucket) -> None:
    """The table of the documentation is what a store sees, request by request."""
    costs = read_costs()
    here.done("init")
    here.done("apply", "--auto-approve")
    here.write("more.kf.hcl", TOPIC.format("b"))
    for command, words in (
        ("`plan`", "plan"),
        ("`apply` with one batch", "apply --auto-approve"),
        ("`apply` that finds nothing to do", "apply --auto-approve"),
        ("`init`", "init"),
        ("`lock show`", "lock show"),
    ):
        pieces = count_pieces(bucket)
        bucket.requests.clear()
        here.done(*words.split())
        read = 0 if command == "`lock show`" else pieces
        assert bucket.requests.total() == costs[command] + read, command


@pytest.mark.parametrize("method", ["GET", "PUT", "LIST"])
def test_a_history_without_rights(here: Here, bucket: s3.Bucket, method: str) -> None:
    """A save that cannot keep the earlier state fails, and it would fail after the requests: so it
    is noticed before, and nothing is sent or logged as sent."""
    here.done("apply", "--auto-approve")
    before = dict(bucket.objects)

    def deny(_: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        listed = method == "LIST" and not request.key and "history" in str(request.query)
        touched = request.method == method and "/history/" in request.key
        return DENIED if listed or touched else None

    bucket.always.append(deny)
    here.write("more.kf.hcl", TOPIC.format("b"))
    text = " ".join(here.fails("apply", "--auto-approve", code=9).replace("│", "").split())
    assert "the state could not be saved, so nothing is sent" in text
    assert bucket.objects["prod/state.json"] == before["prod/state.json"]
    written = b"".join(bucket.objects[key].data for key in bucket.objects.keys() - before.keys())
    assert b'"intent"' not in written
    bucket.always.clear()
    here.done("apply", "--auto-approve")


@pytest.mark.parametrize(
    "command", ["plan", "plan --json", "apply --auto-approve", "audit show --json", "audit verify"]
)
def test_a_slow_store_is_no_silent_one(here: Here, bucket: s3.Bucket, command: str) -> None:
    """Whoever reads a log for long is told on stderr how far it is; standard output stays what
    programs read."""
    here.done("apply", "--auto-approve")
    quick = here.done(*command.split())
    assert "Reading the audit log" not in quick.err
    here.monkeypatch.setattr(progress, "PATIENCE", -1.0)
    slow = here.done(*command.split())
    assert "Reading the audit log from s3://bucket/prod/log/: 1 of " in slow.err
    assert "Reading the audit log" not in slow.out
