"""Offsets of groups are reset and deleted by plans that are approved, logged and recovered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import KafkaformError, PlanRefused, UsageError
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.workflow.model import Applied
from kafkaform_kafka.commands.group_offsets import GroupFlags, alter_offsets, read_offset_file
from kafkaform_kafka.kinds.commanded.group_offsets import GroupMember
from kafkaform_kafka.kinds.commanded.simulation import (
    SimulatedGroup,
    SimulatedLog,
    group_key,
    log_key,
)
from kafkaform_kafka.kinds.kind import (
    ALTER_SHARE_OFFSETS,
    COMMIT_OFFSETS,
    DELETE_GROUP,
    DELETE_OFFSETS,
    DELETE_SHARE_OFFSETS,
)
from kafkaform_kafka.memory import Killed, killed_after, killed_before, lost_reply

from ...kit.simulated.alterations import apply_alteration
from ...kit.simulated.engine import House, apply, desired, house
from ...kit.simulated.managed_topics import ends

SAID = desired()
NAME, ORDERS = "billing", "orders"
MINUTE = 60_000
START = 1_700_000_000_000
MEMBER = GroupMember("app-1-x", "app", "10.0.0.7")


def make_house(
    offsets: dict[str, int] | None = None,
    type_: str = "classic",
    members: tuple[GroupMember, ...] = (),
) -> House:
    """A cluster with a topic of two partitions with 100 records, one a minute, and a group."""
    where = house()
    where.cluster.outside.create(ORDERS, 2)
    log = SimulatedLog(10, 110, START, START + 99 * MINUTE)
    changes: dict[Any, Any] = {log_key((ORDERS, number)): log for number in (0, 1)}
    if offsets is not None:
        changes[group_key(NAME)] = SimulatedGroup(type_, FrozenMap(offsets), members)
    where.cluster.commit(changes)
    return where


BOTH = {"orders:0": 60, "orders:1": 110}


def group(where: House) -> SimulatedGroup | None:
    stored: SimulatedGroup | None = where.cluster.world.get(group_key(NAME))
    return stored


def read_offsets(where: House) -> dict[str, int]:
    stored = group(where)
    assert stored is not None
    return dict(stored.offsets)


def alter(where: House, gap: Any = None, **flags: Any) -> Applied:
    return apply_alteration(where, alter_offsets([NAME], GroupFlags(**flags)), gap)


def show(where: House) -> str:
    (plan,) = where.screen.plans
    return " ".join(render_plan_text(plan).split())


ALL = {"reset": True, "all_topics": True}
RESETS: tuple[tuple[dict[str, Any], dict[str, int]], ...] = (
    ({"earliest": True}, {"orders:0": 10, "orders:1": 10}),
    ({"latest": True}, {"orders:0": 110, "orders:1": 110}),
    ({"offset": "70"}, {"orders:0": 70, "orders:1": 70}),
    ({"offset": "7"}, {"orders:0": 10, "orders:1": 10}),
    ({"offset": "7000"}, {"orders:0": 110, "orders:1": 110}),
    ({"shift": "-20"}, {"orders:0": 40, "orders:1": 90}),
    ({"shift": "20"}, {"orders:0": 80, "orders:1": 110}),
    ({"datetime": "2023-11-14T22:23:20+00:00"}, {"orders:0": 20, "orders:1": 20}),
    ({"datetime": "2023-11-14T22:23:20"}, {"orders:0": 20, "orders:1": 20}),
    ({"datetime": "2123-11-14T22:23:20Z"}, {"orders:0": 110, "orders:1": 110}),
    ({"duration": "1h"}, {"orders:0": 110, "orders:1": 110}),
)


@pytest.mark.parametrize(("flags", "offsets"), RESETS)
def test_a_reset_sets_all_offsets(flags: dict[str, Any], offsets: dict[str, int]) -> None:
    """Each way leads to an offset that the log has."""
    where = make_house(BOTH)
    done = alter(where, **ALL, **flags)
    assert read_offsets(where) == offsets
    assert done.report is not None and done.report.complete
    where.check_log()


def test_the_plan_says_what_is_read_again_and_skipped() -> None:
    """With number, lag and time, as text and as figures; the log has an intent, the state none."""
    where = make_house(BOTH)
    alter(where, reset=True, offset="100", topics=(ORDERS,))
    text = show(where)
    assert "orders: 40 records in 1 partition are skipped: the group never reads them" in text
    assert "orders: 10 records in 1 partition are read again" in text
    assert "orders: 50 records behind now, 20 afterwards" in text
    assert "the first record after it is of 2023-11-14T23:43:20Z" in text
    (change,) = where.screen.plans[0].changes
    figures = {finding.rule: finding.figures for finding in change.findings}
    assert figures["group-records-skipped"]["records"] == 40
    assert figures["group-records-read-again"]["offsets"] == ("orders:1: 110 → 100",)
    lag = figures["group-lag-changed"]
    assert (lag["lag"], lag["lag_after"], lag["seconds"]) == (50, 20, 40 * 60)
    assert lag["offsets"][0] == "orders:0: 60 → 100; the log has 10 to 110"
    (intent,) = where.records("intent")
    assert intent.body["phase"] == f"1.110 {COMMIT_OFFSETS.name}"
    assert intent.body["repeat"] == "verify"
    assert not where.state.objects


def test_only_the_named_partitions_change() -> None:
    """Others may move until the plan is applied."""

    def move(_: Plan) -> None:
        stored = SimulatedGroup(offsets=FrozenMap({**BOTH, "orders:1": 109}))
        where.cluster.commit({group_key(NAME): stored})

    where = make_house(BOTH)
    alter(where, move, reset=True, earliest=True, topics=("orders:0",))
    assert read_offsets(where) == {"orders:0": 10, "orders:1": 109}


def test_an_offset_that_moved_since_makes_the_plan_stale() -> None:
    """Nothing is sent then."""

    def move(_: Plan) -> None:
        stored = SimulatedGroup(offsets=FrozenMap({**BOTH, "orders:0": 61}))
        where.cluster.commit({group_key(NAME): stored})

    where = make_house(BOTH)
    with pytest.raises(PlanRefused, match="orders:0 was 60 and is 61 now"):
        alter(where, move, reset=True, earliest=True, topics=(ORDERS,))
    assert where.cluster.requests[COMMIT_OFFSETS.name] == 0


@pytest.mark.parametrize(
    "flags",
    [{**ALL, "earliest": True}, {"forget": True, "all_topics": True}, {"delete": True}],
)
def test_a_group_with_members_is_refused(flags: dict[str, Any]) -> None:
    """With who they are; nothing is sent."""
    where = make_house(BOTH, members=(MEMBER,))
    with pytest.raises(KafkaformError):
        alter(where, **flags)
    assert where.screen.plans == [] or "app at 10.0.0.7 (app-1-x)" in show(where)
    assert read_offsets(where) == BOTH and not where.records("intent")


def test_a_member_that_joins_meanwhile_stops_the_request() -> None:
    """The dry run finds it before anything is sent."""

    def join(_: Plan) -> None:
        stored = SimulatedGroup(offsets=FrozenMap(BOTH), members=(MEMBER,))
        where.cluster.commit({group_key(NAME): stored})

    where = make_house(BOTH)
    with pytest.raises(PlanRefused, match="app at"):
        alter(where, join, **ALL, earliest=True)
    assert read_offsets(where) == BOTH


@pytest.mark.parametrize(("mishap", "applied"), [(killed_after(), True), (killed_before(), False)])
def test_a_run_that_died_is_recovered(mishap: Any, applied: bool) -> None:
    """The next run reads the offsets, and sets none itself."""
    where = make_house(BOTH)
    where.cluster.faults.schedule(mishap, COMMIT_OFFSETS.name)
    with pytest.raises(Killed):
        alter(where, **ALL, shift="-10")
    apply(where, SAID)
    assert ends(where) == [("recover", "applied" if applied else "failed")]
    assert read_offsets(where)["orders:0"] == (50 if applied else 60)
    where.check_log()


def test_a_lost_answer_is_read() -> None:
    """The offsets prove that they were set: they are sent once."""
    where = make_house(BOTH)
    where.cluster.faults.schedule(lost_reply(), COMMIT_OFFSETS.name)
    done = alter(where, **ALL, earliest=True)
    assert done.report is not None and done.report.complete
    assert where.cluster.requests[COMMIT_OFFSETS.name] == 1


def test_a_reset_creates_a_group() -> None:
    """And says so, because the name may be misspelt."""
    where = make_house()
    alter(where, reset=True, earliest=True, topics=(ORDERS,))
    assert read_offsets(where) == {"orders:0": 10, "orders:1": 10}
    assert "there is no group billing, so it is created" in show(where)


def test_offsets_are_deleted_by_topic() -> None:
    """The plan says where members begin then."""
    where = make_house({**BOTH, "other:0": 5})
    alter(where, forget=True, topics=(ORDERS,))
    assert read_offsets(where) == {"other:0": 5}
    assert "the offsets in 2 partitions are deleted" in show(where)
    assert where.cluster.requests[DELETE_OFFSETS.name] == 1


def test_a_group_is_deleted() -> None:
    """With all of its offsets."""
    where = make_house(BOTH)
    alter(where, delete=True)
    assert group(where) is None and where.cluster.requests[DELETE_GROUP.name] == 1
    (intent,) = where.records("intent")
    assert intent.body["phase"] == f"2.70 {DELETE_GROUP.name}"


def test_share_groups_have_their_own_requests() -> None:
    """Their offsets are set by partition and deleted by topic."""
    where = make_house({"orders:0": 60}, "share")
    alter(where, reset=True, earliest=True, topics=(ORDERS,))
    assert read_offsets(where) == {"orders:0": 10, "orders:1": 10}
    alter(where, forget=True, topics=(ORDERS,))
    assert read_offsets(where) == {}
    sent = where.cluster.requests
    assert (sent[ALTER_SHARE_OFFSETS.name], sent[DELETE_SHARE_OFFSETS.name]) == (1, 1)
    assert not sent[COMMIT_OFFSETS.name] and not sent[DELETE_OFFSETS.name]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"reset": True, "earliest": True, "topics": ("nope",)}, "there is no topic nope"),
        ({"reset": True, "earliest": True, "topics": ("orders:7",)}, "no partition 7"),
        ({"forget": True, "topics": ("nope",)}, "has no offsets of nope"),
    ],
)
def test_what_is_not_there_is_named(flags: dict[str, Any], message: str) -> None:
    """Before anything is sent."""
    where = make_house(BOTH)
    with pytest.raises(UsageError, match=message):
        alter(where, **flags)


@pytest.mark.parametrize(
    "flags", [{**ALL, "earliest": True}, {"forget": True, "all_topics": True}, {"delete": True}]
)
def test_a_group_that_is_not_there_has_nothing_to_change(flags: dict[str, Any]) -> None:
    """Only a reset of named topics creates one."""
    with pytest.raises(UsageError, match="group billing"):
        alter(make_house(), **flags)


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"earliest": True}, "--to-earliest belongs to --reset-offsets"),
    ({"topics": ("a",)}, "--topic belongs to --reset-offsets"),
    ({"reset": True, "delete": True}, "--reset-offsets and --delete exclude each other"),
    ({**ALL}, "not clear where to reset offsets to"),
    ({**ALL, "earliest": True, "latest": True}, "--to-earliest, --to-latest"),
    ({"reset": True, "earliest": True}, "not clear which offsets are meant"),
    ({"reset": True, "earliest": True, "topics": ("a:x",)}, "'a:x' is not a topic"),
    ({**ALL, "datetime": "yesterday"}, "'yesterday' is not a time"),
    ({**ALL, "duration": "soon"}, "'soon' is not a duration"),
    ({**ALL, "duration": "-1"}, "is not a duration"),
    ({**ALL, "shift": "0"}, "'0' is not a number of records"),
    ({**ALL, "offset": "-3"}, "'-3' is not an offset"),
    ({"forget": True, "earliest": True}, "--delete-offsets does not take --to-earliest"),
    ({"delete": True, "topics": ("a",)}, "--delete does not take --topic"),
)


@pytest.mark.parametrize(("flags", "message"), WRONG)
def test_flags_that_do_not_fit_are_refused(flags: dict[str, Any], message: str) -> None:
    """Before anything connects."""
    with pytest.raises(UsageError, match=message):
        alter_offsets([NAME], GroupFlags(**flags))


def test_a_file_of_kafkas_tool_is_read(tmp_path: Path) -> None:
    """With the group in front or without; other groups are left out."""
    file = tmp_path / "offsets.csv"
    file.write_text('"billing","orders",0,20\n"other","orders",1,30\n')
    assert read_offset_file(file, [NAME]) == {NAME: ("orders:0=20",)}
    where = make_house(BOTH)
    alter(where, reset=True, file=str(file))
    assert read_offsets(where) == {"orders:0": 20, "orders:1": 110}
    file.write_text("orders,1,x\n")
    with pytest.raises(UsageError, match="line 1: it is not topic,partition,offset"):
        read_offset_file(file, [NAME])
    file.write_text("other,orders,1,2\n")
    with pytest.raises(UsageError, match="no offsets of the group billing"):
        read_offset_file(file, [NAME])
