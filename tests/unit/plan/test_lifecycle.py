"""What happens to one object, for every way in which declared, recorded and live can meet."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Ownership
from kafkaform.core.finding import Block, Level
from kafkaform.core.resource import Absent, Desired, Identity, Lifecycle, Observed, Reading, Remark
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Mode, Options
from kafkaform.state.model import Row

from ...kit.findings import list_notes
from ...kit.simulated.engine import desired, imported, moved, removed, topic, topic_config
from .worlds import absent, decided, facts, failed, hidden, live, pending, planned, row, state

MS = {"retention.ms": "1000"}
GONE = desired()
PLAIN = desired(topic("a"))
ADOPT = desired(topic("a", lifecycle=Lifecycle(adopt=True)))
IMPORT = desired(topic("a"), imports=(imported("kafka_topic.a", "a"),))
DESTROYED = desired(removed=(removed("kafka_topic.a", destroy=True),))
FORGOTTEN = desired(removed=(removed("kafka_topic.a"),))
GLOB = Options(adopt=("kafka_topic.*",))
DESTROY = Options(Mode.DESTROY)

# (what is said, what is live, what is recorded, options) -> (action, why it is blocked, adopts)
TABLE: dict[str, tuple[Desired, Reading, Row | None, Options, Action, Block | None, bool]] = {
    "declared, not there": (PLAIN, absent(), None, Options(), Action.CREATE, None, False),
    "declared, there, not ours": (
        *(PLAIN, live(), None, Options()),
        *(Action.ADOPT, Block.UNMANAGED, True),
    ),
    "adopted by its block": (ADOPT, live(), None, Options(), Action.ADOPT, None, True),
    "adopted by a flag": (PLAIN, live(), None, GLOB, Action.ADOPT, None, True),
    "adopted and changed": (
        *(ADOPT, live(partitions=1, config=MS), None, Options()),
        *(Action.ADOPT, None, True),
    ),
    "imported": (IMPORT, live(), None, Options(), Action.IMPORT, None, True),
    "imported, not there": (
        *(IMPORT, absent(), None, Options()),
        *(Action.CREATE, Block.IMPOSSIBLE, False),
    ),
    "imported before": (IMPORT, live(), row(), Options(), Action.NOOP, None, False),
    "ours and the same": (PLAIN, live(), row(), Options(), Action.NOOP, None, False),
    "ours and different": (
        *(PLAIN, live(config=MS), row(), Options()),
        *(Action.UPDATE, None, False),
    ),
    "deleted outside": (PLAIN, absent(), row(), Options(), Action.CREATE, None, False),
    "recreated outside": (
        *(PLAIN, live(id="id-2"), row(), Options()),
        *(Action.ADOPT, Block.UNMANAGED, True),
    ),
    "recreated outside, adopted": (
        *(ADOPT, live(id="id-2"), row(), Options()),
        *(Action.ADOPT, None, True),
    ),
    "declared, hidden": (
        *(PLAIN, hidden(), None, Options()),
        *(Action.NOOP, Block.UNREADABLE, False),
    ),
    "declared, failed": (
        *(PLAIN, failed(), row(), Options()),
        *(Action.NOOP, Block.UNREADABLE, False),
    ),
    "block gone, protected": (
        *(GONE, live(), row(), Options()),
        *(Action.DELETE, Block.PROTECTED, False),
    ),
    "block gone, never protected": (
        *(GONE, live(), row(protected="no"), Options()),
        *(Action.DELETE, None, False),
    ),
    "block gone, object too": (GONE, absent(), row(), Options(), Action.FORGET, None, False),
    "block gone, hidden": (
        *(GONE, hidden(), row(), Options()),
        *(Action.NOOP, Block.UNREADABLE, False),
    ),
    "block gone, recreated outside": (
        *(GONE, live(id="id-2"), row(protected="no"), Options()),
        *(Action.FORGET, None, False),
    ),
    "removed and destroyed": (DESTROYED, live(), row(), Options(), Action.DELETE, None, False),
    "removed and destroyed, explicit": (
        *(DESTROYED, live(), row(protected="explicit"), Options()),
        *(Action.DELETE, Block.PROTECTED, False),
    ),
    "removed and destroyed, failed": (
        *(DESTROYED, failed(), row(), Options()),
        *(Action.NOOP, Block.UNREADABLE, False),
    ),
    "removed and destroyed, recreated outside": (
        *(DESTROYED, live(id="id-2"), row(), Options()),
        *(Action.FORGET, None, False),
    ),
    "forgotten": (FORGOTTEN, live(), row(), Options(), Action.FORGET, None, False),
    "forgotten, though hidden": (FORGOTTEN, hidden(), row(), Options(), Action.FORGET, None, False),
    "forgotten, though explicit": (
        *(FORGOTTEN, live(), row(protected="explicit"), Options()),
        *(Action.FORGET, None, False),
    ),
    "block gone, shared": (
        *(GONE, live(), row(protected="shared"), Options()),
        *(Action.FORGET, None, False),
    ),
    "block gone, shared, failed": (
        *(GONE, failed(), row(protected="shared"), Options()),
        *(Action.FORGET, None, False),
    ),
    "removed and destroyed, shared": (
        *(DESTROYED, live(), row(protected="shared"), Options()),
        *(Action.FORGET, None, False),
    ),
    "destroy forgets shared": (
        *(PLAIN, live(), row(protected="shared"), DESTROY),
        *(Action.FORGET, None, False),
    ),
    "destroy lifts default": (PLAIN, live(), row(), DESTROY, Action.DELETE, None, False),
    "destroy keeps explicit": (
        *(PLAIN, live(), row(protected="explicit"), DESTROY),
        *(Action.DELETE, Block.PROTECTED, False),
    ),
}


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_every_row_of_the_decision_table(case: str) -> None:
    """Each meeting of declared, recorded and live has the decision of the table."""
    said, reading, recorded, options, action, block, adopts = TABLE[case]
    change = decided(said, reading, recorded, options=options)
    assert (change.action, change.blocked and change.blocked.block, change.adopts) == (
        action,
        block,
        adopts,
    )


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_the_row_before_is_the_recorded_one(case: str) -> None:
    """Whatever is decided, freshness can compare the row that the decision started from."""
    said, reading, recorded, options, *_ = TABLE[case]
    change = decided(said, reading, recorded, options=options)
    expected = Ownership(recorded.owners, recorded.protected) if recorded else Ownership()
    assert change.row_before == expected


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_a_block_says_what_to_do(case: str) -> None:
    """A blocked change has a reason and an advice."""
    said, reading, recorded, options, *_ = TABLE[case]
    change = decided(said, reading, recorded, options=options)
    assert change.blocked is None or (change.blocked.text and change.blocked.fix)


# ── declared ────────────────────────────────────────────────────────────────────────────


def test_an_adoption_keeps_undeclared_overrides_and_says_so() -> None:
    """What the block does not name stays at the adoption; the next plan shows it as removed."""
    config = {"retention.ms": "1000", "cleanup.policy": "compact"}
    said = desired(topic("a", config={"retention.ms": "5"}, lifecycle=Lifecycle(adopt=True)))
    change = decided(said, live(config=config))
    assert change.action is Action.UPDATE
    assert [(item.path, item.after) for item in change.paths] == [(("config", "retention.ms"), "5")]
    assert list_notes(change) == (
        "config.cleanup.policy is not declared; it is kept until the next plan",
    )
    later = decided(said, live(config=config), row(config=config))
    assert ("config", "cleanup.policy") in [c.path for c in later.paths if c.after is None]


def test_an_adopted_topic_is_protected_even_where_topics_are_not() -> None:
    """protect_topics = false concerns what is made under it, not what is taken over."""
    change = decided(ADOPT, live(), known=facts(protect=False))
    assert change.row_after.protected == "default"
    assert decided(PLAIN, absent(), known=facts(protect=False)).row_after.protected == "no"


def test_a_pending_create_counts_as_ours_if_it_is_exactly_that() -> None:
    """A topic that an interrupted run was making is not called unmanaged by `plan`."""
    target = decided(PLAIN, absent()).after or FrozenMap()
    mine = decided(PLAIN, live(), open_intent=pending("create", target))
    assert mine.blocked is None and not mine.adopts
    assert list_notes(mine) == ("its change is unresolved since run run-1",)
    other = decided(PLAIN, live(partitions=9), open_intent=pending("create", target))
    assert other.blocked is not None and other.blocked.block is Block.UNMANAGED


def test_a_pending_recreation_counts_as_ours_too() -> None:
    """A topic that was deleted outside and was just being made again has another id."""
    target = decided(PLAIN, absent(), row()).after or FrozenMap()
    mine = decided(PLAIN, live(id="id-2"), row(), open_intent=pending("create", target))
    assert mine.blocked is None and not mine.adopts and mine.incarnation == "id-2"


def test_a_pending_delete_makes_nothing_ours() -> None:
    """Only a create proves anything about an object that the state does not have."""
    change = decided(PLAIN, live(), open_intent=pending("delete", FrozenMap()))
    assert change.blocked is not None and change.blocked.block is Block.UNMANAGED


def test_ignored_paths_are_left_as_they_are_and_are_no_drift() -> None:
    """ignore_changes keeps the live value, whoever set it."""
    said = desired(
        topic("a", config=MS, lifecycle=Lifecycle(ignore_changes=("config.retention.*",)))
    )
    change = decided(said, live(config={"retention.ms": "7"}), row(config=MS))
    assert change.action is Action.NOOP and change.drift == ()
    everything = desired(topic("a", 5, lifecycle=Lifecycle(ignore_changes=("*",))))
    assert decided(everything, live(config=MS), row()).action is Action.NOOP


def test_all_but_the_named_paths_are_left_as_they_are() -> None:
    """ignore_changes_except manages what it names and nothing else of a live object."""
    only = Lifecycle(ignore_changes_except=("config.retention.*",))
    change = decided(
        desired(topic("a", 5, config=MS, lifecycle=only)),
        live(config={"retention.ms": "7", "segment.ms": "9"}),
        row(config=MS),
    )
    assert [(p.path, p.before, p.after) for p in change.paths] == [
        (("config", "retention.ms"), "7", "1000")
    ]


def test_drift_shows_recorded_against_live() -> None:
    """A value that somebody changed shows both, whether or not it is wished that way now."""
    added = decided(desired(topic("a")), live(config=MS), row())
    assert [(d.path, d.before, d.after) for d in added.drift] == [
        (("config", "retention.ms"), None, "1000")
    ]
    drifted = decided(
        desired(topic("a", config=MS)), live(config={"retention.ms": "7"}), row(config=MS)
    )
    assert [(d.path, d.before, d.after) for d in drifted.drift] == [
        (("config", "retention.ms"), "1000", "7")
    ]
    wanted = decided(
        desired(topic("a", config={"retention.ms": "7"})),
        live(config={"retention.ms": "7"}),
        row(config=MS),
    )
    assert wanted.action is Action.NOOP and wanted.drift


def test_what_the_target_leaves_alone_is_no_drift() -> None:
    """With config_mode = additive, overrides of other people are their own business."""
    said = desired(topic("a", config_mode="additive"))
    change = decided(said, live(config=MS), row())
    assert change.action is Action.NOOP and change.drift == ()


def test_an_omitted_count_is_the_systems_choice() -> None:
    """No partitions in the block: the default for a new topic, the live number for an old one."""
    said = desired(topic("a", None))
    assert (decided(said, absent()).after or {})["partitions"] == 1
    assert decided(said, live(partitions=6), row(partitions=6)).action is Action.NOOP
    unknown = decided(said, absent(), known=facts(default_partitions=None))
    assert unknown.after is not None and unknown.after["partitions"] is None


def test_an_override_that_goes_shows_what_takes_effect() -> None:
    """The path that is removed carries the broker's fallback."""
    change = decided(PLAIN, live(config=MS), row(config=MS))
    (path,) = change.paths
    assert (path.after, path.effective) == (None, "default")


def test_a_deleted_object_falls_back_to_nothing() -> None:
    """A topic that goes has no defaults any more."""
    change = decided(DESTROYED, live(config=MS), row(config=MS))
    assert change.action is Action.DELETE and change.paths
    assert not [path for path in change.paths if path.effective is not None]


# ── protection ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("recorded", "said", "protect_topics", "expected", "action"),
    [
        ("default", None, True, "default", Action.NOOP),
        ("default", None, False, "default", Action.NOOP),
        ("no", None, True, "default", Action.UPDATE),
        ("no", None, False, "no", Action.NOOP),
        ("default", True, True, "explicit", Action.UPDATE),
        ("explicit", True, False, "explicit", Action.NOOP),
        ("explicit", False, True, "no", Action.UPDATE),
        ("default", False, True, "no", Action.UPDATE),
        ("explicit", None, True, "default", Action.UPDATE),
        ("explicit", None, False, "no", Action.UPDATE),
    ],
)
def test_protection_changes_only_by_a_shown_change(
    recorded: str, said: bool | None, protect_topics: bool, expected: str, action: Action
) -> None:
    """Raising and lowering is a change of its own that sends nothing."""
    wish = desired(topic("a", lifecycle=Lifecycle(prevent_destroy=said)))
    change = decided(wish, live(), row(protected=recorded), known=facts(protect=protect_topics))
    assert (change.row_after.protected, change.action, change.paths) == (expected, action, ())


@pytest.mark.parametrize(
    ("recorded", "shared", "expected", "action"),
    [
        ("default", True, "shared", Action.UPDATE),
        ("shared", True, "shared", Action.NOOP),
        ("shared", False, "default", Action.UPDATE),
    ],
)
def test_sharing_changes_only_by_a_shown_change(
    recorded: str, shared: bool, expected: str, action: Action
) -> None:
    """Only the last folder that has an object says that it is not shared any more."""
    wish = desired(topic("a", lifecycle=Lifecycle(adopt=shared, shared=shared)))
    change = decided(wish, live(), row(protected=recorded))
    assert (change.row_after.protected, change.action, change.paths) == (expected, action, ())


def test_a_plan_says_that_a_shared_object_stays() -> None:
    """Its access or its limits remain, which is worth a caution."""
    change = decided(GONE, live(), row(protected="shared"))
    (finding,) = change.findings
    assert (finding.rule, finding.level) == ("object-shared-stays", Level.CAUTION)
    assert "let the last one declare it without `shared`" in finding.fix


def test_a_shared_object_stays_when_its_block_names_another_one() -> None:
    """The old one is forgotten, and the new one is created."""
    said = desired(
        topic("b", address="kafka_topic.a", lifecycle=Lifecycle(adopt=True, shared=True))
    )
    plan = planned(said, [live(), absent("b")], state(row(protected="shared")))
    assert {change.identity.key: change.action for change in plan.changes} == {
        "a": Action.FORGET,
        "b": Action.CREATE,
    }
    assert not any(change.blocked for change in plan.changes)


def test_a_change_under_protect_topics_false_lowers_default() -> None:
    """protect_topics = false concerns rows that are changed under it."""
    change = decided(desired(topic("a", 2)), live(), row(), known=facts(protect=False))
    assert change.row_after.protected == "no"


# ── owners ──────────────────────────────────────────────────────────────────────────────

TWO = row(owners=("kafka_topic.a", "kafka_topic.b"))


def test_an_object_of_two_blocks_has_both_as_owners() -> None:
    """One row, however many blocks; the strictest protection of them counts."""
    said = desired(
        topic("a"),
        topic("a", address="kafka_topic.b", lifecycle=Lifecycle(prevent_destroy=True)),
    )
    change = decided(said, absent())
    assert change.row_after == Ownership(("kafka_topic.a", "kafka_topic.b"), "explicit")


def test_an_object_goes_with_its_last_owner() -> None:
    """A removed block of one owner takes that owner away; of both, it deletes."""
    gone = removed("kafka_topic.b", destroy=True)
    one_left = decided(desired(topic("a"), removed=(gone,)), live(), TWO)
    assert one_left.action is Action.UPDATE
    assert one_left.row_after.owners == ("kafka_topic.a",)
    nobody = desired(removed=(gone, removed("kafka_topic.a", destroy=True)))
    assert decided(nobody, live(), TWO).action is Action.DELETE


def test_two_removed_blocks_that_differ_forget() -> None:
    """Destroying needs everybody's word."""
    said = desired(removed=(removed("kafka_topic.b", destroy=True), removed("kafka_topic.a")))
    assert decided(said, live(), TWO).action is Action.FORGET


def test_a_removed_block_of_one_owner_alone_deletes_nothing() -> None:
    """The other owner's block is merely gone, so protection holds."""
    change = decided(desired(removed=(removed("kafka_topic.b", destroy=True),)), live(), TWO)
    assert change.blocked is not None and change.blocked.block is Block.PROTECTED


def test_a_removed_block_covers_all_instances() -> None:
    """`from = kafka_topic.x` names every key of for_each."""
    recorded = row(owners=('kafka_topic.x["a"]',))
    gone = desired(removed=(removed("kafka_topic.x", destroy=True),))
    assert decided(gone, live(), recorded).action is Action.DELETE
    other = desired(removed=(removed('kafka_topic.x["b"]', destroy=True),))
    assert decided(other, live(), recorded).blocked is not None


# ── moved ───────────────────────────────────────────────────────────────────────────────


def test_a_move_changes_owners_and_nothing_else() -> None:
    """A renamed block with `moved` is a bookkeeping change, so the state learns the new name."""
    said = desired(
        topic("a", address="kafka_topic.new"), moved=(moved("kafka_topic.a", "kafka_topic.new"),)
    )
    change = decided(said, live(), row())
    assert (change.action, change.paths) == (Action.UPDATE, ())
    assert change.row_before.owners == ("kafka_topic.a",)
    assert change.row_after.owners == ("kafka_topic.new",)
    assert planned(said, [live()], state(row())).changes[0].steps == ()


def test_a_chain_of_moves_is_followed() -> None:
    """a → b → c, in the order in which the blocks stand."""
    moves = (moved("kafka_topic.a", "kafka_topic.b"), moved("kafka_topic.b", "kafka_topic.c"))
    said = desired(topic("a", address="kafka_topic.c"), moved=moves)
    assert decided(said, live(), row()).row_after.owners == ("kafka_topic.c",)


def test_a_move_reaches_instances_and_removed_blocks() -> None:
    """A key moves with its block, and `removed` may name the new address."""
    moves = (moved("kafka_topic.old", "kafka_topic.new"),)
    recorded = row(owners=('kafka_topic.old["k"]',))
    said = desired(removed=(removed('kafka_topic.new["k"]', destroy=True),), moved=moves)
    change = decided(said, live(), recorded)
    assert (change.action, change.address) == (Action.DELETE, 'kafka_topic.new["k"]')


# ── bookkeeping ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("recorded", "paths"),
    [
        ({}, [(("labels", "team"), None, "shop"), (("owner",), None, "ann")]),
        ({"owner": "bob"}, [(("labels", "team"), None, "shop"), (("owner",), "bob", "ann")]),
        ({"owner": "ann", "labels": FrozenMap(team="shop")}, []),
        (
            {"owner": "ann", "labels": FrozenMap(team="shop", tier="1")},
            [(("labels", "tier"), "1", None)],
        ),
    ],
)
def test_owner_and_labels_are_changes_that_send_nothing(
    recorded: dict[str, Any], paths: list[Any]
) -> None:
    """They are shown path by path, and cost no request."""
    said = desired(topic("a", owner="ann", labels={"team": "shop"}))
    plan = planned(said, [live()], state(row(**recorded)))
    shown = [(p.path, p.before, p.after) for c in plan.changes for p in c.paths]
    assert shown == paths
    assert all(change.steps == () for change in plan.changes)


def test_an_object_without_incarnation_is_known_by_its_name() -> None:
    """Configs have no id: a recorded row makes them ours."""
    said = desired(topic_config("t", MS))
    item = said.declared[0]
    recorded = Row(item.identity, ("kafka_topic_config.t",), 3, item.attributes)
    there = Observed(item.identity, item.attributes)
    assert decided(said, there, recorded).action is Action.NOOP
    assert decided(said, Absent(item.identity), recorded).action is Action.CREATE


def test_remarks_name_their_objects_and_spare_what_is_declared() -> None:
    """A condition of several objects is said once; who declares the value knows it."""
    remark = Remark("it is throttled", ("config", "x"))
    always = Remark("it is uneven")
    readings = [
        replace(live(name=name), remarks=(remark, always) if name != "c" else (remark,))
        for name in "abc"
    ]
    declared = desired(topic("a"), topic("b"), topic("c", config={"x": "1"}))
    made = planned(declared, readings, state(*(row(name=name) for name in "abc")))
    assert tuple(finding.text for finding in made.instances["kafka"].findings) == (
        "kafka_topic.a, kafka_topic.b: it is throttled",
        "kafka_topic.a, kafka_topic.b: it is uneven",
    )


def test_what_lacks_its_container_is_blocked_until_somebody_creates_that() -> None:
    """Configs of a topic that does not exist were planned as "1 to add"."""
    reading = Absent(Identity("kafka", "kafka_topic_config", "a"), lacks='topic "a"')
    change = decided(desired(topic_config("a", MS)), reading)
    assert change.action is Action.NOOP and change.blocked is not None
    assert change.blocked.block is Block.IMPOSSIBLE
    assert change.blocked.text == 'topic "a" does not exist'
