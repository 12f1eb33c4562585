"""What policies see of a change."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Impact, PathChange
from kafkaform.core.finding import AccessRow, Breadth, Finding, Harm, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import Words
from kafkaform.language.policy.compilation import FIELDS
from kafkaform.language.values.conversion import lower_value
from kafkaform.language.values.value import ObjectVal, marks_of
from kafkaform.workflow.configuration.policies import describe_change

from ...kit.findings import note, risk

LOST = AccessRow("User:ci", "Topic", "orders", "literal", ("Read",), Breadth.ONE, before=("Read",))
CHANGE = Change(
    Identity("kafka.eu", "kafka_topic", "orders"),
    'module.shop["a"].kafka_topic.orders["x"]',
    Action.UPDATE,
    FrozenMap(name="orders", config=FrozenMap({"a.b": "1", "c": "2"})),
    FrozenMap(name="orders", config=FrozenMap({"a.b": "3", "c": "2"})),
    (PathChange(("config", "a.b"), "1", "3"),),
    owner="ann",
    labels=FrozenMap(tier="1"),
    impact=Impact("Deletes.", FrozenMap(bytes=5)),
    findings=(
        risk(Harm.DATA_LOSS, "gone", ("config", "a.b"), FrozenMap(bytes=5)),
        risk(Harm.ACCESS_LOST, "User:ci loses Read", access=(LOST,)),
        risk(Harm.MOVE, "moves"),
        note("look"),
    ),
)
FACTS = Facts("c-1", values=FrozenMap(brokers=3))
WORDS = Words(system="message store")


def see(change: Change = CHANGE, systems: tuple[str, ...] = ("cluster",)) -> ObjectVal:
    return describe_change(change, FACTS, WORDS, systems)


def lower(value: Any) -> Any:
    return lower_value(value)


def test_every_field_is_there() -> None:
    """A name that the check of names knows always has a value, also that of another provider."""
    fields = see().fields
    assert set(fields) == {*FIELDS, "cluster", "message_store"}
    assert lower(fields["message_store"]) == lower(fields["scope_id"]) == "c-1"
    assert lower(fields["cluster"]) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "kafka_topic"),
        ("module", 'module.shop["a"]'),
        ("name", "orders"),
        ("key", "orders"),
        ("instance", "kafka.eu"),
        ("action", "update"),
        ("after", CHANGE.after),
        ("before", CHANGE.before),
        ("paths", (FrozenMap(path="config.a.b", before="1", after="3"),)),
        ("rules", ("some-data-loss", "some-access-lost", "some-move", "some-note")),
        ("harms", ("data-loss", "access-lost", "move")),
        ("gains", ()),
        ("impact", FrozenMap(bytes=5)),
        ("owner", "ann"),
        ("labels", FrozenMap(tier="1")),
        ("park", None),
        ("facts", FrozenMap(brokers=3)),
    ],
)
def test_a_field(name: str, value: Any) -> None:
    """As docs/policies.md describes it."""
    assert lower(see().fields[name]) == value


def test_a_finding_has_its_words_and_figures() -> None:
    """The rule, how much it matters, what it harms, where, how much, and what to do."""
    first, *_ = lower(see().fields["findings"])
    assert dict(first) == {
        "rule": "some-data-loss",
        "level": "danger",
        "harm": "data-loss",
        "text": "gone",
        "path": "config.a.b",
        "figures": FrozenMap(bytes=5),
        "fix": "",
        "accepted": False,
    }


def test_access_that_is_lost_is_a_row() -> None:
    """Who loses what, on which objects, and what stays."""
    (row,) = lower(see().fields["losses"])
    assert (row["principal"], row["resource_type"], row["name"]) == ("User:ci", "Topic", "orders")
    assert (row["operations"], row["breadth"], row["pattern"]) == (("Read",), "one", "literal")
    assert (row["before"], row["after"], row["host"]) == (("Read",), (), "*")


def test_policies_do_not_see_what_policies_found() -> None:
    """A reviewed plan is judged again, and must be judged alike."""
    policy = Finding("policy/x", Level.CAUTION, Harm.NONE, "no")
    again = replace(CHANGE, findings=(*CHANGE.findings, policy))
    assert lower(see(again).fields["findings"]) == lower(see().fields["findings"])


def test_an_object_that_is_gone_or_has_no_block() -> None:
    """A deletion has no `after`; without an address, the name is the identity."""
    gone = replace(CHANGE, action=Action.DELETE, after=None, address="kafka_topic orders (kafka)")
    fields = see(gone).fields
    assert lower(fields["after"]) is None
    assert (lower(fields["module"]), lower(fields["name"])) == ("", "kafka_topic orders (kafka)")


def test_a_sensitive_value_is_marked() -> None:
    """Wherever it is, so that no message can show it; the values beside it are not."""
    hidden = replace(CHANGE, paths=(replace(CHANGE.paths[0], sensitive=True),))
    fields = see(hidden).fields
    for side in (fields["before"], fields["after"]):
        assert isinstance(side, ObjectVal)
        config = side.fields["config"]
        assert isinstance(config, ObjectVal)
        assert marks_of(config.fields["a.b"]) and not marks_of(config.fields["c"])
    assert marks_of(fields["paths"]) and not marks_of(fields["findings"])
