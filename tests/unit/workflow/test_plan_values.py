"""What the assertions of a test see of a change."""

from __future__ import annotations

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.finding import Block, Harm
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap
from kafkaform.language.values.value import SENSITIVE, Marked
from kafkaform.workflow.testing.suites import describe_change

from ...kit.findings import block, risk

HIDDEN = "hush-hush"


def make_change() -> Change:
    """An update that is blocked, with a value that must not be shown."""
    return Change(
        Identity("box.eu", "box_item", "a"),
        "box_item.a",
        Action.UPDATE,
        before=FrozenMap(size=1, config=FrozenMap(token="old", colour="red")),
        after=FrozenMap(size=2, config=FrozenMap(token=HIDDEN, colour="red")),
        paths=(
            PathChange(("size",), 1, 2),
            PathChange(("config", "token"), "old", HIDDEN, sensitive=True),
        ),
        findings=(
            block(Block.IMPOSSIBLE, "it cannot shrink"),
            risk(Harm.ACCESS_LOST, "z"),
            risk(Harm.MOVE, "x"),
            risk(Harm.MOVE, "y"),
        ),
    )


def test_a_change_has_the_words_of_its_json() -> None:
    """Names and values that docs/testing.md lists."""
    seen = describe_change(make_change())
    assert (seen["type"], seen["key"], seen["instance"]) == ("box_item", "a", "box.eu")
    assert (seen["action"], seen["adopts"]) == ("update", False)
    assert seen["paths"][0] == {"path": "size", "before": 1, "after": 2}
    assert seen["harms"] == ("access-lost", "move")
    assert seen["rules"] == ("some-impossible", "some-access-lost", "some-move")
    assert [row["text"] for row in seen["findings"]] == ["it cannot shrink", "z", "x", "y"]
    assert seen["blocked"] == {"kind": "impossible", "reason": "it cannot shrink", "stops": True}


def test_a_sensitive_value_can_be_compared_and_not_shown() -> None:
    """It is marked wherever it stands; what is beside it is not."""
    seen = describe_change(make_change())
    for value in (seen["after"]["config"]["token"], seen["paths"][1]["after"]):
        assert isinstance(value, Marked)
        assert value.marks == {SENSITIVE}
        assert value.value == HIDDEN
    assert seen["after"]["config"]["colour"] == "red"
    assert seen["after"]["size"] == 2
