"""The checker of the five promises sees each of them broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kafkaform.audit.records import decode

from ...kit import audit_story, promises
from ...kit.lane import APPLY
from ...kit.promises import Before, Name, Reached, Thing, World
from . import lanes
from .lanes import Town, Written, find_rewritten

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Round:
    """A round in which everything holds. stay: an object that it does not change."""

    folder: Path
    before: Before
    world: World
    stay: Name

    def faults(
        self,
        before: Before | None = None,
        world: World | None = None,
        wanted: World | None = None,
        reached: Sequence[Reached] | None = None,
    ) -> tuple[str, ...]:
        """What the checker says if some of that were otherwise."""
        live = self.world if world is None else world
        before = before or self.before
        return promises.broken(
            self.folder, lambda: live, before, wanted=wanted, reached=reached, patience=0
        )


@pytest.fixture(scope="module")
def whole(town: Town, tmp_path_factory: pytest.TempPathFactory) -> Round:
    """A round that nothing disturbs."""
    lane = lanes.lane(town, tmp_path_factory.mktemp("whole"), "whole")
    assert not lane.settle()
    lane.declare()
    assert lane.run(APPLY).code == 0
    made = Round(lane.folder.path, lane.before, lane.world(), ("kafka_topic", f"{lane.prefix}stay"))
    assert not made.faults()
    return made


def test_a_change_without_an_intent(whole: Round) -> None:
    """What differs from before, or is new or gone, and was not intended (NL1)."""
    stay = whole.world[whole.stay]
    other = Thing({**stay.attributes, "partitions": 7}, stay.incarnation)
    for world in (
        {**whole.before.world, whole.stay: other},
        _without(whole.before.world, whole.stay),
    ):
        found = whole.faults(before=replace(whole.before, world=world))
        assert any(fault.startswith("NL1") for fault in found), found
    found = whole.faults(world=_without(whole.world, whole.stay))
    assert any("deleted without an intent" in fault for fault in found), found


def test_a_state_that_differs(whole: Round) -> None:
    """An object that is not as recorded, is missing, or was made and is not recorded (NL2)."""
    name = next(name for name in whole.world if name not in whole.before.world)
    changed = Thing({**whole.world[whole.stay].attributes, "partitions": 7}, "another-id")
    worlds = (_without(whole.world, name), {**whole.world, whole.stay: changed})
    for world in worlds:
        assert any(fault.startswith("NL2") for fault in whole.faults(world=world))
    assert any("not wanted" in fault for fault in whole.faults(wanted=_without(whole.world, name)))


def test_something_twice(whole: Round) -> None:
    """A topic that was recreated, and requests that came twice or too early (NL3, NL1)."""
    stay = whole.world[whole.stay]
    old = {**whole.before.world, whole.stay: Thing(stay.attributes, "another-id")}
    found = whole.faults(before=replace(whole.before, world=old))
    assert any("NL3" in fault and "recreated" in fault for fault in found), found
    created = next(
        name for name in whole.world if name not in whole.before.world and name[0] == "kafka_topic"
    )
    once = Reached("CreateTopics", created, intents=1)
    assert not whole.faults(reached=[once])
    assert any("NL3" in fault for fault in whole.faults(reached=[once, once]))
    assert any("NL1" in fault for fault in whole.faults(reached=[replace(once, intents=0)]))


def test_files_that_are_not_whole(whole: Round, tmp_path: Path) -> None:
    """A log with another byte, a log that was cut, an intent without an end, half a state and a
    state that is gone (NL4, NL5)."""
    assert any(
        "NL4" in fault
        for fault in whole.faults(before=replace(whole.before, left=frozenset({("r", "s", 1)})))
    )
    spoiled: tuple[tuple[str, Callable[[bytes], bytes] | None, str], ...] = (
        (promises.LOG, lambda data: data.replace(b"applied", b"APPLIED", 1), "NL4"),
        (promises.LOG, lambda data: b"".join(data.splitlines(keepends=True)[:-1]), "NL4"),
        (promises.STATE, lambda data: data[: len(data) // 2], "NL5"),
        (promises.STATE, None, "NL5"),
    )
    for name, spoil, wanted in spoiled:
        for file in (promises.STATE, promises.LOG):
            (tmp_path / file).write_bytes((whole.folder / file).read_bytes())
        assert not promises.kept(tmp_path, whole.before)
        if spoil is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_bytes(spoil((tmp_path / name).read_bytes()))
        found = promises.kept(tmp_path, whole.before)
        assert any(fault.startswith(wanted) for fault in found), (name, found)


def test_what_a_second_recovery_may_write(tmp_path: Path) -> None:
    """That work has ended which the first one left under way, once; no other record, and no
    state."""
    lines = audit_story.written(tmp_path / "log").splitlines(keepends=True)
    kinds = [decode(line).kind for line in lines]
    end = lines[kinds.index("discharged")]
    going, ended = (
        b"".join(lines[: kinds.index(kind) + 1]) for kind in ("obligation", "discharged")
    )

    def find(first: bytes, *more: bytes, state: bytes = b"1") -> list[str]:
        second = Written(state, first + b"".join(more))
        return list(find_rewritten(Written(b"1", first), second))

    assert not find(going) and not find(going, end)
    assert find(going, end, end) and find(ended, end)
    assert find(going, lines[kinds.index("verify")])
    assert find(going, state=b"2") and find(going, end, state=b"2")
    assert list(find_rewritten(Written(b"1", ended), Written(b"1", going)))


def _without(world: World, name: Name) -> World:
    return {key: thing for key, thing in world.items() if key != name}
