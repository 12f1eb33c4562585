"""Who changed a drifted object, as far as a build's tables know."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Change, PathChange
from kafkaform.core.resource import Identity
from kafkaform.fleet.answers.history import find_outside_changes
from kafkaform.plan.model import Mode, Options
from kafkaform.workflow.planning import ROOT

from ...kit.fleet.lake import NOW, publish
from ...kit.simulated.engine import desired, plan, topic
from ...kit.simulated.managed_topics import MS, built
from ..plan.worlds import decided, live, row

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
