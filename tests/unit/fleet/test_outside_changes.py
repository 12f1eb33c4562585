"""Who changed a drifted object, as far as a build's tables know."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.audit.history import OUTSIDE, LoggedChange, LoggedValue, RunFacts, ToldChanges
from kafkaform.core.change import Change, PathChange
from kafkaform.core.resource import Identity
from kafkaform.fleet.answers.history import find_outside_changes
from kafkaform.plan.model import Mode, Options
from kafkaform.workflow.history import read_history
from kafkaform.workflow.outside_changes import ROOT, list_later_changes, name_writers
from kafkaform.workflow.stores import Store
from kafkaform_kafka.memory import SimulatedCluster

from ...kit.commands.fixtures import here
from ...kit.commands.here import Here
from ...kit.fleet.lake import NOW, publish
from ...kit.simulated.engine import apply, desired, plan, topic
from ...kit.simulated.managed_topics import MS, built
from ..cli.test_history import applied, cluster, fits, there
from ..cli.test_history import topic as managed_topic
from ..plan.worlds import decided, live, row

__all__ = ["cluster", "here", "there"]

HOUR = timedelta(hours=1)
IT = Identity("kafka", "kafka_topic", "orders")
SCOPES = {"kafka": "id-1"}


def make_change(path: tuple[str, ...] = ("config", "retention.ms")) -> Change:
    change = decided(desired(topic("a")), live(), row())
    return replace(change, identity=IT, drift=(PathChange(path, "1", "2"),))


def make_row(end: datetime, verdict: str = "out_of_band", **members: Any) -> Mapping[str, Any]:
    usual = {"cluster": "prod", "kind": "kafka_topic", "key": "orders", "verdict": verdict}
    window = {"window_start": end - HOUR, "window_end": end, "path": "config.retention.ms"}
    return {**usual, **window, **members}


def ask(root: Path, *rows: Mapping[str, Any], last: datetime | None = None) -> str | None:
    clusters = [{"cluster": "prod", "cluster_id": "id-1"}, {"cluster": "dev", "cluster_id": "id-2"}]
    publish(root, "b-1", {"change_attribution": rows, "cluster": clusters})
    times = {} if last is None else {IT: last.isoformat()}
    return find_outside_changes(str(root), SCOPES, [make_change()], times).get(IT)


def test_the_newest_change_of_a_drifted_path_is_told(tmp_path: Path) -> None:
    """The window between two snapshots is known, and that nobody's log has the change."""
    said = ask(tmp_path, make_row(NOW - HOUR), make_row(NOW))
    assert said == (
        "changed between 2026-11-22 04:00 and 2026-11-22 05:00 UTC without kafkaform, so nothing "
        "says by whom"
    )


def test_the_run_of_another_state_has_a_name(tmp_path: Path) -> None:
    """Its log landed in the fleet, so who ran it is known."""
    said = ask(tmp_path, make_row(NOW, "applied", actor="ann", run="r-7"), last=NOW - 9 * HOUR)
    assert said is not None and said.endswith("05:00 UTC by ann (run r-7)")


@pytest.mark.parametrize(
    "other",
    [
        {"path": "partitions"},
        {"key": "payments"},
        {"cluster": "dev"},
        {"verdict": "not_effective"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_other_changes_say_nothing(tmp_path: Path, other: dict[str, str]) -> None:
    """Only a change that was made to this path of this object of this cluster counts."""
    assert ask(tmp_path, make_row(NOW, **other)) is None


def test_what_happened_before_our_last_write_explains_nothing(tmp_path: Path) -> None:
    """Neither an earlier change, nor the snapshot that shows our own write."""
    assert ask(tmp_path, make_row(NOW), last=NOW + HOUR) is None
    own = make_row(NOW, "applied", actor="ci", run="r-1")
    assert ask(tmp_path, own, last=NOW - HOUR / 2) is None


def test_tables_that_cannot_be_read_do_not_stop_a_plan(tmp_path: Path) -> None:
    """The plan says so, and is complete without them."""
    said = find_outside_changes(str(tmp_path), SCOPES, [make_change()], {})[IT]
    assert said.startswith("the fleet's tables cannot be read: there is no build yet")


def test_a_plan_asks_the_fleet_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both the log's word and the tables' stand at the drifted object."""
    monkeypatch.setenv(ROOT, str(tmp_path))
    said = desired(topic("a", 1, MS))
    where = built(said)
    with where.cluster.others() as others:
        others.alter("a", {"retention.ms": "5"})
    seen = make_row(datetime.fromisoformat("2100-01-01T00:00:00Z"), key="a")
    cluster = {"cluster": "prod", "cluster_id": where.cluster.id}
    publish(tmp_path, "b-1", {"change_attribution": [seen], "cluster": [cluster]})
    [change] = plan(where, said, Options(Mode.REFRESH)).changes
    assert change.last_set.startswith("last set here ")
    assert "; changed between 2099-12-31 23:00 and 2100-01-01 00:00 UTC" in change.last_set


# ── histories ───────────────────────────────────────────────────────────────────────────

OWN = RunFacts("own-1", "ci", "2026-11-22T00:00:00Z")


def see_outside(*paths: str, since: datetime | None = NOW - HOUR) -> ToldChanges:
    """A log of one run, and a look that showed these paths of an object changed."""
    values = tuple(LoggedValue(path, "1", "2") for path in paths)
    looked = since.isoformat() if since else None
    seen = LoggedChange(
        9, NOW.isoformat(), IT, "kafka_topic.orders", OUTSIDE, "applied", values, since=looked
    )
    return ToldChanges([seen], {OWN.run: OWN})


def name(root: Path, told: ToldChanges, *rows: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """(who, run, paths) of each change of a history."""
    clusters = [{"cluster": "prod", "cluster_id": "id-1"}, {"cluster": "dev", "cluster_id": "id-2"}]
    publish(root, "b-1", {"change_attribution": rows, "cluster": clusters})
    named = name_writers(told, SCOPES, str(root))
    return [(c.actor, c.run, tuple(v.path for v in c.values)) for c in named]


def test_a_change_between_two_looks_gets_its_writer(tmp_path: Path) -> None:
    """Of each value the newest run of another state that set it in this time."""
    told = see_outside("config.retention.ms", "partitions", "config.segment.ms")
    rows = (
        make_row(NOW - HOUR / 2, "applied", actor="bob", run="r-6"),
        make_row(NOW, "applied", actor="ann", run="r-7"),
        make_row(NOW, "applied", actor="eve", run="r-8", path="partitions"),
        make_row(NOW, path="config.segment.ms"),
    )
    assert name(tmp_path, told, *rows) == [
        ("ann", "r-7", ("config.retention.ms",)),
        ("eve", "r-8", ("partitions",)),
        (None, None, ("config.segment.ms",)),
    ]


@pytest.mark.parametrize(
    "row",
    [
        make_row(NOW - 2 * HOUR, "applied", actor="ann", run="r-7"),
        make_row(NOW + 2 * HOUR, "applied", actor="ann", run="r-7"),
        make_row(NOW, "applied", actor="ci", run=OWN.run),
        make_row(NOW, "applied", actor="ann", run="r-7", cluster="dev"),
        make_row(NOW, "applied", actor="ann", run="r-7", key="payments"),
    ],
    ids=["before", "after", "our own run", "another cluster", "another object"],
)
def test_nobody_is_named_for_what_they_did_not_do(tmp_path: Path, row: Mapping[str, Any]) -> None:
    """The writer of a change from outside stays unknown."""
    told = see_outside("config.retention.ms")
    assert name(tmp_path, told, row) == [(None, None, ("config.retention.ms",))]


def test_a_history_without_tables_is_as_before(tmp_path: Path) -> None:
    """No root, no build, and an instance whose cluster nobody knows."""
    told = see_outside("config.retention.ms", since=None)
    assert name_writers(told, SCOPES, None) == told.changes
    assert name_writers(told, SCOPES, str(tmp_path)) == told.changes
    row = make_row(NOW, "applied", actor="ann", run="r-7")
    assert name(tmp_path, told, row)[0][:2] == ("ann", "r-7")
    assert name_writers(told, {}, str(tmp_path)) == told.changes


def test_later_changes_are_those_after_the_last_look(tmp_path: Path) -> None:
    """By other states' runs and by nobody; not what the log has seen, nor what it did itself."""
    told = see_outside("config.retention.ms")
    later = {"window_start": NOW, "before": "2", "after": "3"}
    rows = (
        make_row(NOW, "applied", actor="bob", run="r-6"),
        make_row(NOW + HOUR, "applied", **later, actor="ann", run="r-7"),
        make_row(NOW + 2 * HOUR, **later, path="partitions"),
        make_row(NOW + HOUR, "applied", **later, actor="ci", run=OWN.run),
        make_row(NOW + HOUR, "not_effective", **later, actor="ann", run="r-8"),
        make_row(NOW + HOUR, "applied", **later, actor="ann", run="r-9", key="payments"),
        make_row(NOW + HOUR, "applied", actor="ann", run="r-5", window_start=None),
    )
    clusters = [{"cluster": "prod", "cluster_id": "id-1"}]
    publish(tmp_path, "b-1", {"change_attribution": rows, "cluster": clusters})
    found = list_later_changes(told, {IT}, SCOPES, str(tmp_path))
    assert [(c.actor, c.run, c.action, c.values) for c in found] == [
        ("ann", "r-7", OUTSIDE, (LoggedValue("config.retention.ms", "2", "3"),)),
        (None, None, OUTSIDE, (LoggedValue("partitions", "2", "3"),)),
    ]
    assert (found[0].since, found[0].time) == (
        "2026-11-22T05:00:00.000000Z",
        "2026-11-22T06:00:00.000000Z",
    )
    assert list_later_changes(told, {IT}, SCOPES, None) == []
    assert list_later_changes(told, {IT}, SCOPES, str(tmp_path / "nowhere")) == []


def test_the_command_asks_the_fleet_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`history` tells who changed a topic from another state, in which run, and what they set."""
    monkeypatch.setenv(ROOT, str(tmp_path))
    said = desired(topic("a", 1, MS))
    where = built(said)
    with where.cluster.others() as others:
        others.alter("a", {"retention.ms": "5"})
    apply(where, said)
    seen = make_row(datetime.fromisoformat("2100-01-01T00:00:00Z"), "applied", key="a")
    seen = {**seen, "window_start": None, "actor": "ann", "run": "r-7"}
    cluster = {"cluster": "prod", "cluster_id": where.cluster.id}
    publish(tmp_path, "b-1", {"change_attribution": [seen], "cluster": [cluster]})
    store = Store(tmp_path, where.backend, where.sink)
    (item,) = read_history(store, "topic/a").objects
    (outside,) = [change for change in item.changes if change.action == OUTSIDE]
    assert (outside.actor, outside.run) == ("ann", "r-7")
    assert [(v.path, v.after) for v in outside.values] == [("config.retention.ms", "5")]


def test_an_undo_names_who_changed_a_value_since(
    tmp_path: Path, there: Here, cluster: SimulatedCluster
) -> None:
    """Another state's run has a name, as a run of this one would."""
    root = tmp_path / "fleet"
    applied(there, managed_topic(retention_ms="1000000"))
    run = applied(there, managed_topic(retention_ms="2000000"))
    cluster.outside.alter("orders", {"retention.ms": "5"})
    there.done("apply", "--refresh-only", "--auto-approve")
    assert "who is unknown" in there.done("undo", run, "--auto-approve").text
    seen = make_row(datetime.fromisoformat("2100-01-01T00:00:00Z"), "applied")
    seen = {**seen, "window_start": None, "actor": "ann", "run": "r-7"}
    cluster_row = {"cluster": "prod", "cluster_id": cluster.id}
    publish(root, "b-1", {"change_attribution": [seen], "cluster": [cluster_row]})
    there.monkeypatch.setenv(ROOT, str(root))
    said = there.done("undo", run, "--auto-approve").text
    assert "config.retention.ms: ann changed it from another state since" in said
    assert "run r-7" in said


def test_a_history_ends_with_what_only_the_tables_know(
    tmp_path: Path, there: Here, cluster: SimulatedCluster
) -> None:
    """No record shows it; it is told like all others, for people and for programs."""
    root = tmp_path / "fleet"
    applied(there, managed_topic(retention_ms="1000000"))
    time = datetime.fromisoformat("2100-01-01T00:00:00Z")
    values = {"before": "1000000", "after": "5", "actor": "ann", "run": "r-7"}
    seen = make_row(time, "applied", **values)
    clusters = [{"cluster": "prod", "cluster_id": cluster.id}]
    publish(root, "b-1", {"change_attribution": [seen], "cluster": clusters})
    there.monkeypatch.setenv(ROOT, str(root))
    document = there.json("history", "topic/orders", "--path", "retention.ms", "--json")
    fits("history", [document])
    own, later = document["objects"][0]["changes"]
    assert own["record"] > 0 and later["record"] is None
    assert (later["actor"], later["run"], later["action"]) == ("ann", "r-7", OUTSIDE)
    last = there.done("history", "topic/orders").out.splitlines()[-1]
    assert last.startswith("2099-12-31 23:00:00 – 2100-01-01 00:00:00  ann")
    assert "outside config.retention.ms" in last and last.endswith("(1000000 → 5)")
