"""`fleet unused`: unused topics go to their end step by step, each step judged anew."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.inventory.landing import render_row
from kafkaform.inventory.live import list_recorded_rows
from kafkaform.provider.registry import Registry
from kafkaform.state.backends.local import LocalBackend
from kafkaform.workflow.fleet.proposals import TextEdit, apply_edits
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.fixtures import here as here
from ...kit.commands.here import Here
from ...kit.fleet.lake import NOW
from ...kit.fleet.unused import BLOCK, DAY, FLEET, World, tell
from ...kit.fleet.unused import world as world

# ── the whole way ───────────────────────────────────────────────────────────────────────


def test_a_topic_goes_step_by_step_to_its_end(world: World) -> None:
    """Candidate, told, a change that says park, its removal, parked, due; each after the facts."""
    here = world.here
    assert world.find("clicks")["step"] == "candidate"
    assert "shop: 1 topic, told by told/shop.md" in tell(world)
    topic = world.find("clicks")
    assert (topic["step"], topic["until"]) == ("told", "2026-12-06T05:00:00Z")
    assert topic["next"] == "wait until 2026-12-06: its owner can object"
    world.build(days=13)
    assert world.list("--propose", "early")["files"] == []
    assert not (here.path / "early").exists()
    world.build(days=1)
    assert world.find("clicks")["proposal"] == "park"
    here.done("fleet", "unused", "--propose", "review1")
    apply_patch(here, "review1/shop.patch")
    assert 'park = "7d"' in (here.path / "shop/main.kf.hcl").read_text()
    world.park = ("clicks",)
    world.build(days=1)
    assert world.find("clicks")["proposal"] == "remove"
    here.done("fleet", "unused", "--propose", "review2")
    apply_patch(here, "review2/shop.patch")
    text = (here.path / "shop/main.kf.hcl").read_text()
    assert "removed {\n  from = kafka_topic.clicks\n" in text
    assert 'resource "kafka_topic" "clicks"' not in text
    world.declared = ()
    world.build(days=0.5)
    assert world.find("clicks")["next"].startswith("its block is gone: run `kafkaform apply` in")
    world.closed = {"clicks": world.now}
    world.build(days=1)
    topic = world.find("clicks")
    assert (topic["step"], topic["until"], topic["proposal"]) == (
        "parked",
        f"{world.closed['clicks'] + 7 * DAY:%Y-%m-%dT%H:%M:%SZ}",
        None,
    )
    world.build(days=6)
    assert world.find("clicks")["step"] == "due"
    world.topics, world.recorded, world.closed = {}, (), {}
    world.build(days=1)
    assert world.drop("clicks") == "the cluster does not show it any more"


def apply_patch(here: Here, name: str) -> None:
    subprocess.run(
        ["patch", "-p1", "-d", "shop", "-i", str(here.path / name)], check=True, cwd=here.path
    )


def test_the_table_says_what_to_do_next(world: World) -> None:
    world.add("old", owner=None, bytes=9_000_000)
    world.build()
    lines = world.here.done("fleet", "unused").out.splitlines()
    assert lines[0].split()[:4] == ["cluster", "topic", "owner", "bytes"]
    assert [line.split()[1] for line in lines[1:3]] == ["old", "clicks"]
    assert "tell its owner: `kafkaform fleet unused --tell-file DIR`" in lines[1]
    assert world.list("--owner", "shop")["topics"] == [world.find("clicks")]
    assert world.list("--cluster", "us")["topics"] == []


# ── why a topic drops out ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {"verdict": "in_use", "evidence": ["read, as shown on 2026-11-23", "nothing written"]},
            "it is in use: read, as shown on 2026-11-23",
        ),
        (
            {"verdict": "too_new", "evidence": ["a", "b", "appeared on 2026-11-23"]},
            "it is too new: appeared on 2026-11-23",
        ),
        (
            {"verdict": "insufficient_evidence", "evidence": ["written: watched since 2026-11-23"]},
            "its use was not watched all the time: written: watched since 2026-11-23",
        ),
    ],
)
def test_use_takes_a_topic_off_the_list(
    world: World, columns: Mapping[str, Any], reason: str
) -> None:
    tell(world)
    world.topics["clicks"].update(columns)
    world.build(days=20)
    assert world.drop("clicks") == reason
    assert world.list("--propose", "review")["files"] == []


def test_an_exception_keeps_a_topic(world: World) -> None:
    """From the moment on at which fleet.hcl says so, up to its last day."""
    tell(world)
    keep = 'keep {\n  topic = "cli*"\n  until = "2026-12-07"\n  reason = "read once a year"\n}\n'
    world.here.write("fleet.hcl", FLEET + keep)
    world.build(days=15)
    assert world.drop("clicks") == "fleet.hcl keeps it until 2026-12-07: read once a year"
    world.build(days=1)
    assert world.find("clicks")["proposal"] == "park"


def test_what_fleet_hcl_says_now_counts(world: World) -> None:
    """The build knows the exceptions of its day."""
    world.topics["clicks"] |= {"verdict": "kept", "kept": "fleet.hcl keeps it until 2027-01-01: r"}
    world.build()
    assert world.find("clicks")["step"] == "candidate"


def test_an_exception_of_another_cluster_keeps_nothing(world: World) -> None:
    keep = 'keep {\n  topic = "*"\n  cluster = "us"\n  until = "2027-01-01"\n  reason = "r"\n}\n'
    world.here.write("fleet.hcl", FLEET + keep)
    assert world.find("clicks")["step"] == "candidate"


def test_a_keep_block_without_a_reason_is_a_fault(world: World) -> None:
    world.here.write("fleet.hcl", FLEET + 'keep {\n  topic = "*"\n  until = "2027-01-01"\n}\n')
    assert '"reason"' in world.here.fails("fleet", "unused")


@pytest.mark.parametrize("status", ["stale", "failed", "never"])
def test_a_cluster_that_was_not_read_lets_nothing_go_on(world: World, status: str) -> None:
    """Exit code 5: what is not known is named."""
    tell(world)
    world.cluster = {"status": status, "error": "no answer"}
    world.build(days=20)
    assert world.drop("clicks", code=5) == f"the cluster was not read: {status}"


def test_old_snapshots_let_nothing_go_on(world: World) -> None:
    """A build can be old as a whole: by its own clock nothing in it is stale."""
    tell(world)
    world.build(days=20)
    world.now += 2 * DAY
    assert world.drop("clicks") == "the cluster was last read on 2026-12-12"
    assert world.list("--propose", "review")["files"] == []


def test_nothing_is_proposed_without_a_snapshot_after_the_notice(world: World) -> None:
    world.now += DAY
    tell(world)
    text = world.list("--notice-days", "0")["topics"][0]["next"]
    assert text == "no snapshot shows its use since the notice: run `kafkaform fleet snapshot`"


@pytest.mark.parametrize(
    "columns", [{"incarnation": "id2"}, {"idle_since": NOW + DAY}], ids=["recreated", "used"]
)
def test_a_notice_is_about_one_topic_and_one_rest(world: World, columns: Mapping[str, Any]) -> None:
    """After a new creation or a later use, its owner is told again, and the time begins anew."""
    tell(world)
    world.topics["clicks"].update(columns)
    world.build(days=70)
    assert world.find("clicks")["step"] == "candidate"
    assert "shop: 1 topic, told" in tell(world)
    assert world.find("clicks")["since"] == "2027-01-31T05:00:00Z"


# ── proposals ───────────────────────────────────────────────────────────────────────────


def propose(world: World, name: str = "review") -> Mapping[str, str]:
    """Tell, let the time pass, propose; the files that were written, by name."""
    tell(world)
    world.build(days=15)
    world.here.run("fleet", "unused", "--propose", name)
    folder = world.here.path / name
    return {path.name: path.read_text() for path in folder.iterdir()} if folder.exists() else {}


def test_a_proposal_changes_nothing_in_place(world: World) -> None:
    """Not the configuration, not what landed; and it overwrites no files."""
    before = (world.here.path / "shop/main.kf.hcl").read_bytes()
    files = propose(world)
    assert files.keys() == {"shop.patch", "README.md"}
    assert (world.here.path / "shop/main.kf.hcl").read_bytes() == before
    assert files["shop.patch"].startswith("--- a/main.kf.hcl\n+++ b/main.kf.hcl\n")
    assert "nothing read since 2026-08-01" in files["README.md"]
    text = world.here.fails("fleet", "unused", "--propose", "review")
    assert "the folder has files" in text


@pytest.mark.parametrize(
    ("lifecycle", "line"),
    [
        ("", '+    park = "7d"\n'),
        ("  lifecycle {\n    prevent_destroy = false\n  }\n", '+    park            = "7d"\n'),
        ("  lifecycle { prevent_destroy = false }\n", '+    park            = "7d"\n'),
        ("  lifecycle {}\n", '+    park = "7d"\n'),
    ],
)
def test_park_is_written_wherever_the_block_has_its_lifecycle(
    world: World, lifecycle: str, line: str
) -> None:
    text = BLOCK.replace("  partitions = 1\n", f"  partitions = 1\n{lifecycle}")
    world.here.write("shop/main.kf.hcl", text)
    assert line in propose(world)["shop.patch"]
    apply_patch(world.here, "review/shop.patch")
    world.here.done("fmt", "--check", "shop")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            BLOCK.replace("}", "  lifecycle {\n    prevent_destroy = true\n  }\n}", 1),
            "prevent_destroy protects kafka_topic.clicks: set it to false first",
        ),
        (
            BLOCK.replace("}", '  lifecycle {\n    park = "7d"\n  }\n}', 1),
            "the block of kafka_topic.clicks says park: apply it, and take a snapshot after that",
        ),
        (BLOCK.replace("clicks", "other"), "no file of the folder declares kafka_topic.clicks"),
        ("resource {", "the configuration cannot be read"),
    ],
)
def test_what_cannot_be_written_is_named(world: World, text: str, reason: str) -> None:
    world.here.write("shop/main.kf.hcl", text)
    tell(world)
    world.build(days=15)
    (skipped,) = world.list("--propose", "review")["skipped"]
    assert skipped["reason"].startswith(reason)
    assert not (world.here.path / "review").exists()


def test_a_removal_that_another_block_needs_is_not_proposed(world: World) -> None:
    """The folder is tried out with the change; other topics of the folder still get theirs."""
    user = 'output "name" {\n  value = kafka_topic.clicks.name\n}\n'
    world.here.write("shop/main.kf.hcl", BLOCK + user)
    world.add("orders")
    world.recorded = world.park = ("clicks", "orders")
    world.build()
    tell(world)
    world.build(days=15)
    document = world.list("--propose", "review")
    (skipped,) = document["skipped"]
    assert skipped["topic"] == "clicks"
    assert skipped["reason"].startswith("the configuration would have a fault: main.kf.hcl: ")
    patch = (world.here.path / "review/shop.patch").read_text()
    assert "+  from = kafka_topic.orders\n" in patch
    assert "kafka_topic.clicks\n" not in patch.replace(" kafka_topic.clicks.name", "")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ('kafka_topic.all["clicks"]', "the block declares several objects: take kafka_topic.all"),
        ("module.m.kafka_topic.clicks", "module.m.kafka_topic.clicks is in a module"),
    ],
)
def test_objects_of_one_block_and_of_modules_need_a_hand(
    world: World, address: str, reason: str
) -> None:
    world.addresses = {"clicks": address}
    tell(world)
    world.build(days=15)
    (skipped,) = world.list("--propose", "review")["skipped"]
    assert skipped["reason"].startswith(reason)


def test_two_states_with_one_topic_propose_nothing(world: World) -> None:
    world.lineages = ("l", "m")
    assert propose(world) == {}
    assert "several states record it (shop, shop)" in world.find("clicks")["next"]


def test_a_topic_without_a_state_is_imported_first(world: World) -> None:
    """Only what a state has is deleted."""
    world.recorded = ()
    world.add("2-clicks")
    world.add("2.clicks")
    world.build()
    files = propose(world)
    assert files.keys() == {"import-eu.kf.hcl", "README.md"}
    text = files["import-eu.kf.hcl"]
    assert 'import {\n  to = kafka_topic.clicks\n  id = "clicks"\n}' in text
    assert "kafka_topic.topic_2_clicks\n" in text
    assert "kafka_topic.topic_2_clicks_2\n" in text
    shutil.copy(world.here.path / "review/import-eu.kf.hcl", world.here.path / "shop")
    world.here.write("shop/main.kf.hcl", "")
    world.here.done("--chdir", "shop", "validate")


def test_the_blocks_of_an_import_change_nothing_of_the_topic(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their apply takes it over as it is. The state then says for how long it is parked."""
    cluster = SimulatedCluster()
    cluster.outside.create("clicks", partitions=3, config={"retention.ms": "1000000"})
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    topic = cluster.topics["clicks"]
    world.recorded = ()
    propose(world)
    shutil.copy(world.here.path / "review/import-eu.kf.hcl", world.here.path / "shop")
    world.here.write("shop/main.kf.hcl", "")
    world.here.done("--chdir", "shop", "apply", "--auto-approve")
    assert cluster.topics["clicks"] == topic
    state = LocalBackend(world.here.path / "shop/kafkaform.state.json").load().state
    assert state is not None
    (landed,) = list_recorded_rows(state)
    assert json.loads(render_row(landed))["park"] == 604_800_000
    text = world.here.done("plan").text
    assert "No changes" in text, text


def test_a_cluster_without_an_authorizer_gets_a_second_time_to_object(world: World) -> None:
    """Nobody's access can be taken away there, so the removal is proposed without parking."""
    world.cluster_attrs = {"has_authorizer": "false"}
    assert propose(world) == {}
    assert world.find("clicks")["next"] == (
        "the cluster has no authorizer, so access cannot be taken away first: wait until "
        "2026-12-20, a second time to object"
    )
    world.build(days=14)
    world.here.done("fleet", "unused", "--propose", "review")
    assert "+removed {" in (world.here.path / "review/shop.patch").read_text()


def test_a_state_whose_rows_were_changed_is_refused(world: World) -> None:
    """A removal without parking must not follow from a damaged file."""
    tell(world)
    world.build(days=15)
    (newest,) = sorted((world.here.path / "data/landing/state/l").glob("*.jsonl"))[-1:]
    newest.write_text('{"kind":"kafka_topic"}\n')
    assert "it does not match its checksum" in world.here.fails("fleet", "unused", code=9)


def test_edits_keep_the_rest_of_a_file() -> None:
    """Also in a file that is not in the standard layout, and with CRLF."""
    text = 'a   = 1\r\nb = "\u2028"\r\n'
    assert apply_edits({"f": text}, [TextEdit("f", 9, 9, "c = 3\r\n")]) == {
        "f": 'a   = 1\r\nc = 3\r\nb = "\u2028"\r\n'
    }
