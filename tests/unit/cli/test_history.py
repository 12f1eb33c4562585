"""`history`, `audit show` and `undo` in a folder whose cluster is simulated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from docs import schemas
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.cli.commands import alter
from kafkaform.provider.registry import Registry
from kafkaform.workflow import history
from kafkaform.workflow.history import RecentChanges
from kafkaform.workflow.stores import open_store
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

jsonschema = pytest.importorskip("jsonschema", reason="pip install -e '.[test]'")
PROVIDER = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("PASSWORD")
}
"""
LOG = "kafkaform.audit.jsonl"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """An empty cluster, which every command reaches."""
    made = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(made))
    return made


@pytest.fixture
def there(here: Here, cluster: SimulatedCluster) -> Here:
    """A folder with a connection to it."""
    here.monkeypatch.setenv("PASSWORD", "hunter2-and-more")
    for name in ("GITHUB_ACTOR", "GITLAB_USER_LOGIN"):
        here.monkeypatch.delenv(name, raising=False)
    here.monkeypatch.setenv("KAFKAFORM_ACTOR", "alice")
    here.write("provider.kf.hcl", PROVIDER)
    return here


def topic(name: str = "orders", partitions: int = 1, **config: str) -> str:
    lines = "".join(f'    "{key.replace("_", ".")}" = "{value}"\n' for key, value in config.items())
    return (
        f'resource "kafka_topic" "{name}" {{\n  name       = "{name}"\n'
        f"  partitions = {partitions}\n  config = {{\n{lines}  }}\n}}\n"
    )


def applied(there: Here, text: str, actor: str = "alice", *flags: str) -> str:
    """Apply this configuration; the id of the run."""
    there.write("main.kf.hcl", text)
    there.monkeypatch.setenv("KAFKAFORM_ACTOR", actor)
    there.done("apply", "--auto-approve", *flags)
    return last_run(there)


def last_run(there: Here) -> str:
    begins = [record for record in records(there) if record["kind"] == "run_begin"]
    return str(begins[-1]["run"])


def records(there: Here) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (there.path / LOG).read_bytes().splitlines()]


def lines_of(document: Any) -> Iterator[tuple[Any, ...]]:
    """(actor, action, path, before, after) of every value of a history."""
    for item in document["objects"]:
        for change in item["changes"]:
            for value in change["values"] or [{"path": "", "before": None, "after": None}]:
                yield (
                    change["actor"],
                    change["action"],
                    value["path"],
                    value["before"],
                    value["after"],
                )


# ── history ─────────────────────────────────────────────────────────────────────────────


def test_every_value_has_its_run_and_what_was_there_before(there: Here) -> None:
    """By address and by name, with who and the run; a path selects."""
    first = applied(there, topic(retention_ms="1000000"))
    second = applied(there, topic(retention_ms="2000000", partitions=3), "bob")
    document = there.json("history", "topic/orders", "--json")
    assert document == {
        **there.json("history", "kafka_topic.orders", "--json"),
        "name": "topic/orders",
    }
    assert ("bob", "update", "partitions", 1, 3) in lines_of(document)
    only = there.json("history", "topic/orders", "--path", "retention.ms", "--json")
    assert [(line[0], *line[2:]) for line in lines_of(only)] == [
        ("alice", "config.retention.ms", None, "1000000"),
        ("bob", "config.retention.ms", "1000000", "2000000"),
    ]
    (item,) = only["objects"]
    assert [change["run"] for change in item["changes"]] == [first, second]
    said = there.done("history", "topic/orders", "--path", "retention.ms").out
    assert "kafka_topic orders on kafka: kafka_topic.orders" in said
    assert second in said and "1000 s → 2000 s (1000000 → 2000000)" in said


def test_a_change_from_outside_stands_between_the_looks_that_enclose_it(
    there: Here, cluster: SimulatedCluster
) -> None:
    """Nobody knows who; the look before and the look that showed it are told."""
    applied(there, topic(retention_ms="1000000"))
    cluster.outside.alter("orders", {"retention.ms": "5"})
    applied(there, topic(retention_ms="1000000"), "bob")
    document = there.json("history", "topic/orders", "--path", "retention.ms", "--json")
    assert list(lines_of(document))[1:] == [
        (None, "outside", "config.retention.ms", "1000000", "5"),
        ("bob", "update", "config.retention.ms", "5", "1000000"),
    ]
    (item,) = document["objects"]
    made, outside, repaired = item["changes"]
    assert made["time"] == outside["since"] < outside["time"] <= repaired["time"]
    assert outside["run"] is None
    said = there.done("history", "topic/orders", "--path", "retention.ms").text
    assert "unknown" in said and "seen" in said


def test_a_refresh_shows_what_it_took_in(there: Here, cluster: SimulatedCluster) -> None:
    """A value that others set, and one that they removed; what is as before is not told."""
    applied(there, topic(retention_ms="1000000", segment_ms="700000"))
    cluster.outside.alter("orders", {"retention.ms": "5", "segment.ms": None})
    there.done("apply", "--refresh-only", "--auto-approve")
    (item,) = there.json("history", "topic/orders", "--json")["objects"]
    made, seen = item["changes"]
    assert (seen["action"], seen["actor"], seen["since"]) == ("outside", None, made["time"])
    assert [(v["path"], v["before"], v["after"]) for v in seen["values"]] == [
        ("config.retention.ms", "1000000", "5"),
        ("config.segment.ms", "700000", None),
    ]
    there.done("apply", "--auto-approve")
    changes = there.json("history", "topic/orders", "--json")["objects"][0]["changes"]
    assert [change["action"] for change in changes] == ["create", "outside", "update"]


def test_a_refresh_of_an_adopted_topic_tells_no_old_values_of_others(
    there: Here, cluster: SimulatedCluster
) -> None:
    """An override that was there before the adoption was not set between two looks."""
    cluster.outside.create("orders")
    cluster.outside.alter("orders", {"segment.ms": "700000"})
    applied(there, topic(retention_ms="1000000"), "alice", "--adopt", "*")
    cluster.outside.alter("orders", {"retention.ms": "5"})
    there.done("apply", "--refresh-only", "--auto-approve")
    assert [
        line[2:]
        for line in lines_of(there.json("history", "topic/orders", "--json"))
        if not line[0]
    ] == [("config.retention.ms", "1000000", "5")]


def test_objects_that_are_gone_or_renamed_keep_their_history(there: Here) -> None:
    """A deleted object is found by its name, an address that was moved by both."""
    applied(there, topic() + topic("old"))
    there.done("state", "mv", "kafka_topic.orders", "kafka_topic.sales")
    moved = topic("orders").replace('"kafka_topic" "orders"', '"kafka_topic" "sales"')
    removed = "removed {\n  from = kafka_topic.old\n  lifecycle {\n    destroy = true\n  }\n}\n"
    applied(there, moved + removed)
    for name in ("kafka_topic.orders", "kafka_topic.sales"):
        (item,) = there.json("history", name, "--json")["objects"]
        assert item["addresses"] == ["kafka_topic.orders", "kafka_topic.sales"]
        assert "state mv" in [change["action"] for change in item["changes"]]
    (gone,) = there.json("history", "topic/old", "--json")["objects"]
    assert gone["recorded"] is False and gone["changes"][-1]["action"] == "delete"
    assert "The state does not have it any more." in there.done("history", "topic/old").out


def test_the_pull_request_and_the_commit_are_told(there: Here) -> None:
    """As far as the pipeline and Git know them."""
    there.write(".git/HEAD", "a1" * 20)
    there.monkeypatch.setenv("KAFKAFORM_PULL_REQUEST", "12")
    applied(there, topic())
    (item,) = there.json("history", "topic/orders", "--json")["objects"]
    (change,) = item["changes"]
    assert (change["commit"], change["pull_request"]) == ("a1" * 20, "12")
    assert "a1a1a1a1a #12" in there.done("history", "topic/orders").out


def test_what_programs_read_fits_its_schema(there: Here, cluster: SimulatedCluster) -> None:
    """Also a change from outside, an edit of the state and an undo."""
    applied(there, topic(retention_ms="1000000"))
    cluster.outside.alter("orders", {"retention.ms": "5"})
    applied(there, topic(retention_ms="1000000"))
    undone(there, "--last")
    there.done("state", "mv", "kafka_topic.orders", "kafka_topic.sales")
    fits("history", [there.json("history", "topic/orders", "--json")])
    changes = there.done("audit", "show", "--json").lines
    assert {item["action"] for item in changes} == {"create", "update", "state mv"}
    fits("change", changes)
    fits("run", there.done("undo", "--json").lines)


def fits(name: str, documents: list[Any]) -> None:
    schema = json.loads((schemas.FOLDER / f"{name}.schema.json").read_text("utf-8"))
    for document in documents:
        jsonschema.Draft202012Validator(schema).validate(document)


def test_a_typing_error_gets_the_nearest_name(there: Here) -> None:
    """Whatever form was typed."""
    applied(there, topic())
    assert 'Did you mean "topic/orders"?' in there.fails("history", "topic/ordesr")
    assert 'Did you mean "kafka_topic.orders"?' in there.fails("history", "kafka_topic.ordres")
    assert "principal/ci" in there.fails("history", "orders")


def test_times_select(there: Here) -> None:
    """A span, a date and a time; anything else is explained."""
    applied(there, topic())
    assert list(lines_of(there.json("history", "topic/orders", "--json", "--since", "1h")))
    assert not list(lines_of(there.json("history", "topic/orders", "--json", "--until", "1h")))
    assert "12h, 7d" in there.fails("history", "topic/orders", "--since", "yesterday")


# ── audit show ──────────────────────────────────────────────────────────────────────────


def test_one_line_for_each_change_and_filters(there: Here) -> None:
    """When, who, run, outcome, action, object, values; the newest are last."""
    first = applied(there, topic(retention_ms="1000000") + topic("old"))
    second = applied(there, topic(retention_ms="2000000") + topic("old"), "bob")
    lines = there.done("audit", "show").out.splitlines()
    assert len(lines) == 3
    assert lines[-1].split()[2:7] == ["bob", second, "applied", "update", "kafka_topic.orders"]
    assert lines[-1].endswith("config.retention.ms 1000 s → 2000 s (1000000 → 2000000)")
    assert there.done("audit", "show", "--last", "1").out.splitlines()[0].split() == (
        lines[-1].split()
    )
    for words, number in (
        (("topic/old",), 1),
        (("kafka_topic.orders",), 2),
        (("--actor", "bob"), 1),
        (("--action", "create"), 2),
        (("--outcome", "failed"), 0),
        (("--run", first), 2),
        (("--since", "1h"), 3),
        (("--until", "1h"), 0),
        (("principal/ci",), 0),
    ):
        said = there.done("audit", "show", *words)
        assert len(said.out.splitlines()) == number, words
    assert 'Did you mean "update"?' in there.fails("audit", "show", "--action", "updates")
    found = there.done("audit", "show", "--json", "--run", second).lines
    assert [(item["actor"], item["run"], item["command"]) for item in found] == [
        ("bob", second, "apply")
    ]
    assert "No changes of run nobody" in there.done("audit", "show", "--run", "nobody").err


def test_a_long_value_widens_its_own_line_only(there: Here) -> None:
    """In a pipe, where no line is broken."""
    keys = "retention_ms segment_ms flush_ms flush_messages delete_retention_ms max_message_bytes"
    many = dict.fromkeys(keys.split(), "1000000")
    applied(there, topic(retention_ms="1000000"))
    applied(there, topic(retention_ms="1000000") + topic("other", **many))
    short, long = there.done("audit", "show").out.splitlines()
    assert len(long) > 300 and len(short) < 200
    _, head, *rows = there.done("history", "topic/orders").out.splitlines()
    assert all(len(row) < 150 for row in (head, *rows))


def test_records_are_shown_as_they_are(there: Here) -> None:
    """All kinds, of a run, and whole as JSON; filters of changes do not go with them."""
    run = applied(there, topic())
    shown = there.done("audit", "show", "--records", "--run", run).out.splitlines()
    assert len(shown) == len(records(there)) and "run_begin" in shown[0]
    (last,) = there.done("audit", "show", "--records", "--json", "--last", "1").lines
    assert last == records(there)[-1]
    assert "--records goes with" in there.fails("audit", "show", "--records", "--actor", "bob")


def test_the_newest_lines_need_the_end_of_the_log_only(
    there: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How far back is read depends on what is asked for, and not on the log."""
    run = applied(there, topic())
    for number in range(2, 6):
        applied(there, topic(partitions=number))
    asked: list[int] = []
    lines = LocalSink.lines

    def watch(self: LocalSink, after: int = 0) -> Any:
        asked.append(after)
        return lines(self, after)

    monkeypatch.setattr(LocalSink, "lines", watch)
    monkeypatch.setattr(history, "_WINDOWS", (10, 20))
    size = len(records(there))
    there.done("audit", "show", "--last", "1")
    assert asked == [size - 10]
    asked.clear()
    assert there.done("audit", "show", "--run", run).out.count(run) == 1
    assert asked == [size - 10, size - 20, 0]


# ── undo ────────────────────────────────────────────────────────────────────────────────


def undone(there: Here, *words: str) -> Any:
    """Undo with approval; what was said."""
    there.monkeypatch.setenv("KAFKAFORM_ACTOR", "carol")
    return there.done("undo", *words, "--auto-approve")


def test_a_config_comes_back_and_the_next_plan_says_who_undid_it(
    there: Here, cluster: SimulatedCluster
) -> None:
    """The run is like any other in the log, the state stays the owner, and Git has to follow."""
    applied(there, topic(retention_ms="1000000", max_message_bytes="2000"))
    run = applied(there, topic(retention_ms="2000000"), "bob")
    said = undone(there, run)
    assert "The configuration still says otherwise" in said.text
    assert f"undo of run {run}" in said.text
    assert configs(cluster) == {"retention.ms": "1000000", "max.message.bytes": "2000"}
    begin = [record for record in records(there) if record["kind"] == "run_begin"][-1]
    assert (begin["body"]["command"], begin["body"]["undoes"]) == ("undo", run)
    assert "kafka_topic.orders" in there.done("state", "list").out
    planned = there.done("plan").text
    assert f"undone by run {begin['run']}" in planned and "carol" in planned
    assert "changed outside" not in planned.lower()
    assert there.run("undo", run, "--auto-approve").text.count("There is nothing to change.") == 1


def test_an_undo_is_undone(there: Here, cluster: SimulatedCluster) -> None:
    """By its own run."""
    applied(there, topic(retention_ms="1000000"))
    applied(there, topic(retention_ms="2000000"))
    undone(there, "--last")
    assert configs(cluster) == {"retention.ms": "1000000"}
    undone(there, "--last")
    assert configs(cluster) == {"retention.ms": "2000000"}
    assert "No changes" in there.done("plan").text


def test_what_somebody_changed_since_is_left_out(there: Here, cluster: SimulatedCluster) -> None:
    """By another run, which is named, and from outside, where nobody knows who."""
    applied(there, topic(retention_ms="1", max_message_bytes="1000", segment_ms="100000"))
    run = applied(
        there, topic(retention_ms="2", max_message_bytes="2000", segment_ms="200000"), "bob"
    )
    later = applied(
        there, topic(retention_ms="3", max_message_bytes="2000", segment_ms="200000"), "dan"
    )
    cluster.outside.alter("orders", {"max.message.bytes": "3000"})
    said = undone(there, run).text
    assert "Not undone: kafka_topic.orders config.retention.ms: dan changed it since" in said
    assert f"run {later}" in said
    assert "Not undone: kafka_topic.orders config.max.message.bytes: it was changed outside" in said
    assert configs(cluster) == {
        "retention.ms": "3",
        "max.message.bytes": "3000",
        "segment.ms": "100000",
    }
    planned = there.done("plan").text
    assert "Changed outside kafkaform" in planned and f"(run {run})" in planned


def test_partitions_that_were_added_stay(there: Here, cluster: SimulatedCluster) -> None:
    """It says so, and brings the rest back."""
    applied(there, topic(retention_ms="1000000"))
    run = applied(there, topic(retention_ms="2000000", partitions=3))
    said = undone(there, run).text
    assert "Not undone: kafka_topic.orders partitions: it cannot come back" in said
    assert configs(cluster) == {"retention.ms": "1000000"}


def test_a_created_topic_goes_if_it_is_ours_and_not_protected(
    there: Here, cluster: SimulatedCluster
) -> None:
    """With the proof of the log; prevent_destroy and a later change keep it."""
    applied(there, topic())
    run = applied(there, topic() + topic("new"))
    undone(there, run)
    assert names(cluster) == ["orders"]
    held = topic("new").replace(
        "  config", "  lifecycle {\n    prevent_destroy = true\n  }\n  config"
    )
    run = applied(there, topic() + held)
    said = there.fails("undo", run, "--auto-approve", code=8)
    assert "prevent_destroy" in said and names(cluster) == ["new", "orders"]
    there.done("state", "rm", "kafka_topic.new")
    said = there.done("undo", run, "--auto-approve").text
    assert "Not undone: kafka_topic.new" in said and names(cluster) == ["new", "orders"]


def test_a_deleted_topic_comes_back_empty_at_its_address(
    there: Here, cluster: SimulatedCluster
) -> None:
    """With its configs and its protection; the plan says that its data does not."""
    applied(there, topic() + topic("old", partitions=3, retention_ms="1000000"))
    removed = "removed {\n  from = kafka_topic.old\n  lifecycle {\n    destroy = true\n  }\n}\n"
    run = applied(there, topic() + removed)
    assert names(cluster) == ["orders"]
    said = undone(there, run).text
    assert "created again, without the data that it had" in said
    assert configs(cluster, "old") == {"retention.ms": "1000000"}
    assert "kafka_topic.old" in there.done("state", "list").out
    assert f"undone by run {last_run(there)}" in there.done("plan").text


def test_only_runs_that_are_finished_and_known(there: Here) -> None:
    """A typing error gets the nearest id; without a run the last ones are listed."""
    assert "No runs" in there.done("undo").err
    run = applied(there, topic())
    assert f'Did you mean "{run}"?' in there.fails("undo", run[:-1] + "_")
    assert "exclude each other" in there.fails("undo", run, "--last")
    listed = there.done("undo")
    assert run in listed.out and "create kafka_topic.orders" in listed.out
    (document,) = there.done("undo", "--json").lines
    assert (document["run"], document["complete"]) == (run, True)


def test_a_run_that_was_killed_is_finished_first(there: Here) -> None:
    """Nobody knows yet what it did; the next apply finds out."""
    applied(there, topic(retention_ms="1000000"))
    state = there.path / "kafkaform.state.json"
    before = state.read_bytes()
    run = applied(there, topic(retention_ms="2000000"))
    log = there.path / LOG
    lines = log.read_bytes().splitlines(keepends=True)
    end = max(n for n, line in enumerate(lines) if b'"kind":"intent"' in line)
    log.write_bytes(b"".join(lines[: end + 1]))
    state.write_bytes(before)
    said = there.fails("undo", run, "--auto-approve", code=4)
    assert f"run {run} is not finished" in said and "kafkaform apply" in said
    there.done("apply", "--auto-approve")


def test_validate_sends_nothing(there: Here, cluster: SimulatedCluster) -> None:
    """It shows the plan and its dry run."""
    applied(there, topic(retention_ms="1000000"))
    applied(there, topic(retention_ms="2000000"))
    size = len(records(there))
    assert "Nothing was sent." in there.done("undo", "--last", "--validate").text
    assert configs(cluster) == {"retention.ms": "2000000"} and len(records(there)) == size


def test_an_alter_without_a_folder_is_undone(
    there: Here, cluster: SimulatedCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With the flags that named the cluster; its runs are listed, and nothing else is needed."""
    home = tmp_path_factory.mktemp("state")
    there.monkeypatch.setenv("XDG_STATE_HOME", str(home))
    (there.path / "provider.kf.hcl").unlink()
    flags = ("--bootstrap-server", "localhost:9092")
    there.monkeypatch.setattr(alter, "_show_documents", lambda *_, **__: None)
    cluster.outside.create("orders")
    cluster.outside.alter("orders", {"retention.ms": "1000000"})
    assert "No runs" in there.done("undo", *flags).err and not list(home.iterdir())
    added = ("--add-config", "retention.ms=2000000,segment.ms=700000")
    there.done("alter", "topic", "orders", *flags, "--auto-approve", *added)
    listed = there.done("undo", *flags)
    assert "alter" in listed.out and "update" in listed.out
    assert "Nothing was sent." in there.done("undo", "--last", "--validate", *flags).text
    assert configs(cluster)["retention.ms"] == "2000000"
    said = there.done("undo", "--last", "--auto-approve", *flags).text
    assert "Not undone" not in said
    assert configs(cluster) == {"retention.ms": "1000000"}
    there.done("undo", "--last", "--auto-approve", *flags)
    assert configs(cluster) == {"retention.ms": "2000000", "segment.ms": "700000"}
    assert "goes with the configuration" in there.fails("undo", "--state", "x", *flags)


def test_an_alter_beside_an_empty_configuration_is_undone(
    there: Here, cluster: SimulatedCluster
) -> None:
    """No block and no row names the cluster: the run does."""
    there.monkeypatch.setattr(alter, "_show_documents", lambda *_, **__: None)
    cluster.outside.create("orders")
    there.done("alter", "topic", "orders", "--auto-approve", "--add-config", "retention.ms=2000000")
    assert configs(cluster) == {"retention.ms": "2000000"}
    assert "Not undone" not in there.done("undo", "--last", "--auto-approve").text
    assert configs(cluster) == {}


def configs(cluster: SimulatedCluster, name: str = "orders") -> dict[str, str]:
    return {key: str(value) for key, value in cluster.topics[name].config.items()}


def names(cluster: SimulatedCluster) -> list[str]:
    return sorted(cluster.topics)


# ── the editor and completion ───────────────────────────────────────────────────────────


def test_an_editor_shows_the_last_three_changes(
    there: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest first; as long as the log stays the same, it is read once."""
    for number in range(1, 6):
        run = applied(there, topic(partitions=number), f"user-{number}")
    reads: list[int] = []
    lines = LocalSink.lines

    def watch(self: LocalSink, after: int = 0) -> Any:
        reads.append(after)
        return lines(self, after)

    monkeypatch.setattr(LocalSink, "lines", watch)
    recent = RecentChanges()
    for _ in range(3):
        first, *others = recent.list_lines(there.path, "kafka_topic.orders")
        assert f"user-5, run {run}: update partitions 4 → 5 (applied)" in first
        assert len(others) == 2
    assert not recent.list_lines(there.path, "kafka_topic.other")
    assert len(reads) == 1
    assert not recent.list_lines(there.path / "nowhere", "kafka_topic.orders")


def test_names_and_runs_are_completed(there: Here) -> None:
    """Addresses, kinds with names, and the ids of runs."""
    run = applied(there, topic())
    store = open_store()
    names = {
        spelling
        for identity, addresses in history.list_recent_names(store).items()
        for spelling in history.list_spellings(identity, addresses)
    }
    assert names == {"kafka_topic.orders", "topic/orders"}
    assert [summary.facts.run for summary in history.list_recent_runs(store)[0]] == [run]


USER = """
resource "kafka_user_scram_credential" "ada" {
  username            = "ada"
  scram_mechanism     = "SCRAM-SHA-512"
  password_wo         = secret_env("ADA")
  password_wo_version = "%s"
}
"""


def test_passwords_never_come_back(there: Here) -> None:
    """What sent one, and what deleted a user with one, is named; a user that was created goes."""
    there.monkeypatch.setenv("ADA", "s3cret-of-ada")
    applied(there, topic())
    first = applied(there, topic() + USER % 1)
    second = applied(there, topic() + USER % 2)
    said = there.done("undo", second, "--auto-approve").text
    assert "kafka_user_scram_credential.ada" in said and "nothing comes back" in said
    third = applied(there, topic())
    said = there.done("undo", third, "--auto-approve").text
    assert "secrets are not recorded: declare it again" in said
    fourth = applied(there, topic() + USER % 3)
    assert "1 destroyed" in undone(there, fourth).text
    for words in (("history", "user/ada", "--json"), ("history", "principal/ada"), ("undo",)):
        assert "s3cret" not in there.done(*words).text
    assert first in there.done("history", "user/ada").out


def test_an_adoption_stays_ours(there: Here, cluster: SimulatedCluster) -> None:
    """Its values come back, the object stays managed; an adoption alone sent nothing."""
    cluster.outside.create("orders", 1)
    run = applied(there, topic(), "bob", "--adopt", "*")
    assert "sent nothing" in there.done("undo", run, "--auto-approve").text
    there.done("state", "rm", "kafka_topic.orders")
    cluster.outside.alter("orders", {"retention.ms": "7"})
    run = applied(there, topic(retention_ms="1000000"), "bob", "--adopt", "*")
    undone(there, run)
    assert configs(cluster) == {"retention.ms": "7"}
    assert "kafka_topic.orders" in there.done("state", "list").out
