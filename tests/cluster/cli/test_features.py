"""`describe features` and `alter features` on a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaform_kafka.protocol.cluster_facts import FEATURES, LEVELS

from ...conftest import Broker
from ...kit.commands.bare import Bare
from ...kit.kafka.logins import Login

APPROVED = "--auto-approve"
NEWEST = max(LEVELS)


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """A cluster has one set of features."""
    return exclusive_broker


@pytest.fixture
def group_protocol(bare: Bare) -> Iterator[Bare]:
    """The feature group.version, which is on again afterwards."""
    yield bare
    bare.done("alter", "features", "group.version=1", APPROVED)


def test_features_are_those_of_the_broker(bare: Bare) -> None:
    """Their names are known; the sandbox's release is told; nothing is left to raise but what the
    broker leaves off by itself."""
    found = bare.document("features")
    rows = {row["name"]: row for row in found["features"]}
    assert set(rows) <= set(FEATURES), "a new feature: what does it enable, what does it lose?"
    metadata = rows["metadata.version"]
    assert (metadata["level"], metadata["release"]) == (NEWEST, LEVELS[NEWEST])
    assert metadata["supported"]["max"] == NEWEST and metadata["raise_to"] is None
    assert found["complete"] and found["finalized_epoch"] >= 0
    assert [one["id"] for one in found["brokers"]] == [1]
    cluster = bare.document("cluster")["cluster"]
    on = {name: row["level"] for name, row in rows.items() if row["level"]}
    assert cluster["features"] == on
    page = bare.done("describe", "features").text
    assert f"{NEWEST} (Kafka {LEVELS[NEWEST]})" in page and "Finalized epoch" in page


def test_features_need_no_right(bare: Bare, stranger: Login) -> None:
    """Every client learns them when it connects."""
    found = bare.document("features", user=stranger)
    assert {row["name"] for row in found["features"]} >= {"metadata.version", "group.version"}


def test_a_feature_is_switched_off_and_on(group_protocol: Bare) -> None:
    """The plan says what is lost; the log has validate, intent and outcome; the result is
    described; the same again changes nothing."""
    bare = group_protocol
    said = bare.done("alter", "features", "group.version=0", "--downgrade", APPROVED)
    assert "group.version 1 → 0" in said.text and "1 changed" in said.text
    assert "can no longer join their groups" in said.text
    kinds = [record["kind"] for record in bare.records()]
    assert [k for k in kinds if k in ("validate", "intent", "outcome", "verify")] == [
        "validate", "intent", "outcome", "verify",
    ]  # fmt: skip
    rows = {row["name"]: row for row in bare.document("features")["features"]}
    assert (rows["group.version"]["level"], rows["group.version"]["raise_to"]) == (0, 1)
    assert "alter features" in bare.done("describe", "features").text
    same = bare.done("alter", "features", "group.version=0", "--downgrade", APPROVED)
    assert "There is nothing to change" in same.text
    up = bare.done("alter", "features", "group.version=1", APPROVED)
    assert "group.version 0 → 1" in up.text
    (first, second) = bare.records("outcome")
    assert [p["path"] for p in first["body"]["paths"]] == ["level"]
    assert second["body"]["outcome"] == "applied"


def test_a_dry_run_changes_nothing(bare: Bare) -> None:
    """The controller checks it; nothing is written."""
    said = bare.done("alter", "features", "group.version=0", "--downgrade", "--validate")
    assert "Nothing was sent" in said.text
    rows = {row["name"]: row["level"] for row in bare.document("features")["features"]}
    assert rows["group.version"] == 1
    assert not (bare.cluster / "kafkaform.audit.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["group.version=0"], "is a downgrade: consumers with group.protocol=consumer"),
        (["group.versoin=1"], 'Did you mean "group.version"?'),
        (["group.version=9"], "INVALID_UPDATE_VERSION"),
        (["metadata.version=3.9", "--downgrade"], "INVALID_UPDATE_VERSION"),
        (["metadata.version=3.9", "--unsafe-downgrade"], "INVALID_UPDATE_VERSION"),
        (["group.version=1", "--downgrade", "--unsafe-downgrade"], "exclude each other"),
    ],
)
def test_what_is_refused(bare: Bare, words: list[str], told: str) -> None:
    """By the command, or by the controller's dry run; no level changes."""
    before = bare.document("features")["features"]
    assert told in bare.fails(1, "alter", "features", *words, APPROVED)
    assert bare.document("features")["features"] == before


def test_the_right_that_is_missing_is_named(bare: Bare, stranger: Login) -> None:
    """Before anything is sent."""
    words = ("alter", "features", "group.version=0", "--downgrade", APPROVED)
    assert "Alter on Cluster" in bare.fails(1, *words, user=stranger)


def test_several_levels_change_together(group_protocol: Bare) -> None:
    """In one request, and all of them are named in the log."""
    bare = group_protocol
    share = {r["name"]: r for r in bare.document("features")["features"]}["share.version"]
    other = 0 if share["level"] else 1
    flags = ["--downgrade"] if other == 0 else []
    if not flags:
        bare.done("alter", "features", f"share.version={other}", APPROVED)
        other, flags = 0, ["--downgrade"]
    words = ["group.version=0", f"share.version={other}", *flags]
    assert "2 changed" in bare.done("alter", "features", *words, APPROVED).text
    rows = {row["name"]: row["level"] for row in bare.document("features")["features"]}
    assert (rows["group.version"], rows["share.version"]) == (0, other)
    if share["level"]:
        bare.done("alter", "features", f"share.version={share['level']}", APPROVED)
