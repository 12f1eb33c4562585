"""`fleet unused`: unused topics go to their end step by step, each step judged anew."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import StorageError
from kafkaform.fleet.answers.unused import NoticeOutcome
from kafkaform.inventory.landing import open_place
from kafkaform.workflow.fleet import notices
from kafkaform.workflow.fleet.channels import TOKEN_VARIABLE
from kafkaform.workflow.fleet.proposals import TextEdit, apply_edits

from ...kit.commands.fixtures import here as here
from ...kit.commands.here import Here
from ...kit.fleet.lake import NOW, publish
from ...kit.fleet.landings import Landing, row
from ...kit.http.server import Request, serving
from ...test_format_schemas import make_validator

DAY = timedelta(1)
FLEET = """
fleet {
  root = "data"
}
cluster "eu" {
  connection {
    bootstrap_servers = ["127.0.0.1:1"]
  }
}
state "shop" {
  folder = "shop"
}
"""
PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["127.0.0.1:1"]\n}\n'
BLOCK = """\
# clicks of the shop
resource "kafka_topic" "clicks" {
  name       = "clicks"
  partitions = 1
}

resource "kafka_topic" "orders" {
  name = "orders"
}
"""
EVIDENCE = (
    *("nothing written since 2026-08-01", "nothing read since 2026-08-01"),
    *("holds records", "nobody but its owner may read or write it", "first seen on 2026-08-01"),
)
TOLD = ("--tell-file", "told")


@dataclass
class World:
    """A fleet of one cluster with topics, as builds see it. topics: name -> columns of
    `unused_topics`; recorded: topics that the state shop has; park: those whose row says park;
    closed: since when access was taken away."""

    here: Here
    now: datetime = NOW
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    cluster: dict[str, Any] = field(default_factory=dict)
    cluster_attrs: dict[str, str] = field(default_factory=dict)
    recorded: tuple[str, ...] = ()
    declared: tuple[str, ...] | None = None
    park: tuple[str, ...] = ()
    closed: dict[str, datetime] = field(default_factory=dict)
    lineages: tuple[str, ...] = ("l",)
    addresses: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, **columns: Any) -> None:
        usual = {"verdict": "candidate", "owner": "shop", "bytes": 4096, "evidence": EVIDENCE}
        self.topics[name] = {**usual, "idle_since": NOW - 90 * DAY, "incarnation": "id1", **columns}

    def build(self, **days: float) -> None:
        """Make the build of a day, this long after the last one."""
        self.now += timedelta(**days)
        at, cluster = {"captured_at": self.now}, {"cluster": "eu", "kind": "kafka_topic"}
        rows = [
            {"cluster": "eu", "topic": name, **columns, "as_of": self.now}
            for name, columns in self.topics.items()
        ]
        ids = {row_["topic"]: row_.pop("incarnation") for row_ in rows}
        state = {"cluster": "eu", "instance": "kafka"}
        names = self.recorded if self.declared is None else self.declared
        acls = [
            (name, f'kafka_topic.{name}/park["{operation}"]')
            for name in self.closed
            for operation in ("Read", "Write")
        ]
        publish(
            self.here.path / "data",
            f"b-{self.now:%Y%m%dT%H%M%S}",
            {
                "unused_topics": rows,
                "cluster": [
                    {**cluster_row(), **at, **self.cluster},
                ],
                "live": [
                    *(
                        {**cluster, "key": n, "incarnation": ids[n], "snapshot": "s", **at}
                        for n in ids
                    ),
                    {"cluster": "eu", "kind": "cluster", "key": "c1", "attrs": self.cluster_attrs}
                    | {"snapshot": "s", **at},
                ],
                "lineage": [
                    {"lineage": name, "name": "shop", "desired_known": True, "scopes": {}}
                    for name in self.lineages
                ],
                "recorded": [
                    *(
                        {**cluster, "key": n, "lineage": lineage, **at}
                        | {"address": self.addresses.get(n, f"kafka_topic.{n}")}
                        for n in self.recorded
                        for lineage in self.lineages
                    ),
                    *(
                        {**state, "kind": "kafka_acl", "key": a, "lineage": "l", "address": a, **at}
                        for _, a in acls
                    ),
                ],
                "desired": [{**cluster, "key": n, "lineage": "l", **at} for n in names],
                "event": [
                    {"event_id": a, "cluster": "eu", "lineage": "l", "ts": self.closed[n], "key": a}
                    | {"address": a, "action": "create", "outcome": "applied", "record": "outcome"}
                    for n, a in acls
                ],
            },
            self.now,
        )
        landed = [row("kafka_topic", n, {}, instance="kafka", park=604_800_000) for n in self.park]
        Landing(self.here.path / "data/landing").snapshot(
            "state", "l", self.now.timestamp() / 3600, landed, scopes={"kafka": "c1"}
        )

    def list(self, *flags: str, code: int = 0) -> dict[str, Any]:
        """The document of a run, which fits its schema."""
        document: dict[str, Any] = self.here.json("fleet", "unused", "--json", *flags, code=code)
        make_validator("fleet-unused").validate(document)
        for file in (self.here.path / "data/notices").glob("*.jsonl"):
            for line in file.read_text().splitlines():
                make_validator("fleet-notice").validate(json.loads(line))
        return document

    def find(self, name: str) -> dict[str, Any]:
        (topic,) = (t for t in self.list()["topics"] if t["topic"] == name)
        return dict(topic)

    def drop(self, name: str, *flags: str, code: int = 0) -> str:
        """Why a topic has dropped out."""
        document = self.list(*flags, code=code)
        assert name not in {topic["topic"] for topic in document["topics"]}
        (topic,) = (t for t in document["dropped"] if t["topic"] == name)
        return str(topic["reason"])


def cluster_row() -> dict[str, Any]:
    return {"cluster": "eu", "cluster_id": "c1", "registered": True, "status": "read"}


@pytest.fixture
def world(here: Here, monkeypatch: pytest.MonkeyPatch) -> World:
    """A candidate that the state shop records, in a folder that declares it."""
    made = World(here)
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: made.now.timestamp()))
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    here.write("fleet.hcl", FLEET)
    here.write("shop/provider.kf.hcl", PROVIDER)
    here.write("shop/main.kf.hcl", BLOCK)
    made.add("clicks")
    made.recorded = ("clicks",)
    made.build()
    return made


def tell(world: World, *flags: str) -> str:
    return world.here.done("fleet", "unused", *(flags or TOLD)).text


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


# ── telling ─────────────────────────────────────────────────────────────────────────────


def test_nobody_is_told_twice_of_the_same(world: World) -> None:
    """A topic that is new goes to its owner; --again repeats everything."""
    tell(world)
    assert tell(world) == ""
    world.add("carts")
    world.build(days=1)
    assert "shop: 1 topic, told" in tell(world)
    assert "shop: 2 topics, told" in tell(world, *TOLD, "--again")
    text = (world.here.path / "told/shop.md").read_text()
    assert text.count("| `eu` |") == 2
    assert world.find("clicks")["until"] == "2026-12-06T05:00:00Z", "the first notice counts"


def test_each_owner_gets_a_file_that_says_everything(world: World) -> None:
    world.add("audit|log", owner="a/b")
    world.add("lost", owner=None, bytes=None, evidence=["x\ny"])
    world.build()
    tell(world)
    texts = {path.name: path.read_text() for path in (world.here.path / "told").iterdir()}
    assert texts.keys() == {"shop.md", "nobody.md", "a-b-c14cddc0.md"}
    assert "2026-12-06" in texts["shop.md"]
    assert "nothing read since 2026-08-01" in texts["shop.md"]
    assert 'topic   = "clicks"' in texts["shop.md"]
    assert "audit\\|log" in texts["a-b-c14cddc0.md"]
    assert "x\\ny" in texts["nobody.md"]
    assert "clicks" not in texts["nobody.md"]


def test_what_is_sent_is_recorded_before(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that dies while it sends leaves a notice of which nobody knows whether it arrived: it
    is not repeated, and it does not count as told."""

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkaform.workflow.fleet.channels.save_file", die)
    assert world.here.run("fleet", "unused", *TOLD).code == 130
    monkeypatch.undo()
    world_clock(world, monkeypatch)
    (notice,) = notices.read_notices(open_place("data"))
    assert (notice.topic, notice.outcome) == ("clicks", NoticeOutcome.UNKNOWN)
    assert "nobody knows whether the file of 2026-11-22 arrived" in world.find("clicks")["next"]
    assert tell(world) == ""
    assert "told by" in tell(world, *TOLD, "--again")
    assert world.find("clicks")["step"] == "told"


def world_clock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.now += timedelta(seconds=1)
    monkeypatch.chdir(world.here.path)
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: world.now.timestamp()))


def test_a_file_that_cannot_be_written_is_not_told(world: World) -> None:
    world.here.write("told", "a file")
    text = world.here.fails("fleet", "unused", *TOLD, code=5)
    assert "shop: 1 topic, NOT told: told: " in text
    assert world.find("clicks")["step"] == "candidate"
    (world.here.path / "told").unlink()
    world.now += timedelta(seconds=1)
    assert "told by told/shop.md" in tell(world)


def test_a_notice_that_cannot_be_recorded_is_not_sent(world: World) -> None:
    world.here.write("data/notices", "a file")
    world.here.fails("fleet", "unused", *TOLD, code=9)
    assert not (world.here.path / "told").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.jsonl", "{"),
        ("x.jsonl", '{"format":1}'),
        ("x.outcome.json", "[]"),
        ("x.outcome.json", '{"outcome":"told","at":"2026-11-22T05:00:00Z","format":2}'),
    ],
)
def test_damaged_notices_are_named(world: World, name: str, text: str) -> None:
    """Without them, an owner could be told twice, or a topic go on without a notice."""
    line = dict.fromkeys(("owner", "topic_id", "idle_since")) | {"evidence": []}
    line |= {"at": "2026-11-22T05:00:00Z", "channel": "file", "cluster": "eu", "topic": "clicks"}
    world.here.write("data/notices/x.jsonl", json.dumps(line) + "\n")
    assert len(notices.read_notices(open_place("data"))) == 1
    world.here.write(f"data/notices/{name}", text + "\n")
    with pytest.raises(StorageError, match=f"notices/{name} cannot be used"):
        notices.read_notices(open_place("data"))


# ── webhooks ────────────────────────────────────────────────────────────────────────────


def test_a_webhook_gets_one_request_for_each_owner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a bearer token from the environment; its answer need not be JSON."""
    monkeypatch.setenv(TOKEN_VARIABLE, "token-of-the-hook")
    world.add("lost", owner=None)
    world.build()
    with serving(lambda request: (200, "ok")) as served:
        text = tell(world, "--tell-webhook", f"{served.url}/services/secret-part?sig=secret-sig")
    assert "shop: 1 topic, told by the webhook at 127.0.0.1" in text
    assert [request.body["owner"] for request in served.asked] == [None, "shop"]
    (first, _) = served.asked
    assert (first.method, first.path) == ("POST", "/services/secret-part?sig=secret-sig")
    assert first.login == "Bearer token-of-the-hook"
    assert [topic["topic"] for topic in served.asked[1].body["topics"]] == ["clicks"]
    assert "Unused topics of `shop`" in served.asked[1].body["text"]
    files = "".join(path.read_text() for path in (world.here.path / "data/notices").iterdir())
    for secret in ("secret-part", "secret-sig", "token-of-the-hook"):
        assert secret not in text + files


@pytest.mark.parametrize(
    ("status", "code", "sentence"),
    [
        (404, 5, "NOT told: the webhook at 127.0.0.1 answered with 404"),
        (302, 5, "NOT told: the webhook at 127.0.0.1 answered with 302"),
        (429, 5, "NOT told: the webhook at 127.0.0.1 answered with 429"),
        (502, 6, "nobody knows whether it was told: the webhook at 127.0.0.1 answered with 502"),
    ],
)
def test_what_a_webhook_refuses_is_not_told(
    world: World, status: int, code: int, sentence: str
) -> None:
    """A refusal is tried again by the next run; an error that may come after the effect is not."""
    with serving(lambda request: (status, {"message": request.path})) as served:
        hook = ("--tell-webhook", f"{served.url}/secret-part")
        text = world.here.fails("fleet", "unused", *hook, code=code)
        assert sentence in text
        assert "secret-part" not in text
        world.now += timedelta(seconds=1)
        world.here.run("fleet", "unused", *hook)
    assert len(served.asked) == (2 if code == 5 else 1)


def test_one_owner_that_fails_keeps_no_other_from_being_told(world: World) -> None:
    world.add("lost", owner="ops")
    world.build()

    def answer(request: Request) -> tuple[int, Any]:
        return (400 if request.body["owner"] == "ops" else 200), {}

    with serving(answer) as served:
        document = world.list("--tell-webhook", served.url, code=5)
    assert {d["owner"]: d["outcome"] for d in document["deliveries"]} == {
        "ops": "failed",
        "shop": "told",
    }
    assert {t["topic"]: t["step"] for t in world.list()["topics"]} == {
        "lost": "candidate",
        "clicks": "told",
    }


def test_a_webhook_that_nobody_serves_is_not_told(world: World) -> None:
    with serving() as served:
        url = served.url
    assert "NOT told" in world.here.fails("fleet", "unused", "--tell-webhook", url, code=5)


@pytest.mark.parametrize(
    "url", ["http://example.com/x", "https://u:p@example.com/x", "example.com", "https://"]
)
def test_an_unsafe_webhook_is_refused(world: World, url: str) -> None:
    text = world.here.fails("fleet", "unused", "--tell-webhook", url)
    assert "--tell-webhook is not an address that can be used" in text
    assert url not in text or url == "https://"
    assert not (world.here.path / "data/notices").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((*TOLD, "--propose", "p"), "--tell-file and --propose exclude each other"),
        (("--again",), "--again tells nobody by itself"),
        (("--root", "nowhere"), "there is no build yet"),
        (("--file", "none.hcl"), "none.hcl cannot be read"),
    ],
)
def test_wrong_flags_are_refused(world: World, flags: tuple[str, ...], sentence: str) -> None:
    assert sentence in " ".join(world.here.fails("fleet", "unused", *flags).split())


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
