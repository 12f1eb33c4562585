"""Changes that somebody names himself: what they become, and that they own nothing."""

from __future__ import annotations

from kafkaform.apply.ledger import commit_step
from kafkaform.core.change import Action, Outcome, OutcomeStatus, Ownership, PathChange
from kafkaform.core.finding import Block
from kafkaform.core.resource import Absent, Facts, Hidden, Identity, Observed, Reading
from kafkaform.core.value import FrozenMap
from kafkaform.plan.build import Edit, amend
from kafkaform_kafka.kinds.topic.configs import TYPE

FACTS = Facts("c", ("1",))
IT = Identity("kafka", TYPE.name, "orders")
ADDRESS = 'kafka_topic_config.alter["orders"]'


def seen(**config: str) -> Observed:
    attributes = FrozenMap({"topic": "orders", "config": FrozenMap(config)})
    return Observed(IT, attributes, fallbacks=FrozenMap({"config.a": "0"}))


def config(**wanted: str) -> Edit:
    return lambda _: FrozenMap({"topic": "orders", "config": FrozenMap(wanted)})


def change(reading: Reading, edit: Edit, version: str | None = None):  # type: ignore[no-untyped-def]
    return amend(IT, ADDRESS, reading, TYPE, FACTS, edit, version)


def test_what_an_edit_becomes() -> None:
    """Made, changed, removed, or nothing, by what is there and what shall be."""
    assert change(Absent(IT), config(a="1")).action is Action.CREATE
    assert change(seen(a="1"), config(a="2")).action is Action.UPDATE
    assert change(seen(a="1"), lambda _: None).action is Action.DELETE
    assert change(seen(a="1"), config(a="1")).action is Action.NOOP
    assert change(Absent(IT), lambda _: None).action is Action.NOOP


def test_only_what_differs_is_written() -> None:
    """The other configs are no part of the change; a removal says what takes effect then."""
    (path,) = change(seen(a="1", b="2"), config(b="2")).paths
    assert (path.path, path.before, path.after, path.effective) == (("config", "a"), "1", None, "0")


def test_settings_show_what_is_in_effect_without_them() -> None:
    """Where a first value is set, and where all of them go."""
    below = FrozenMap({"config.a": "0"})
    (_, path) = sorted(change(Absent(IT, fallbacks=below), config(a="1")).paths, key=_get_depth)
    assert (path.effective_before, path.before, path.after) == ("0", None, "1")
    (_, path) = sorted(change(seen(a="1"), lambda _: None).paths, key=_get_depth)
    assert (path.before, path.after, path.effective) == ("1", None, "0")


def _get_depth(path: PathChange) -> int:
    return len(path.path)


def test_what_cannot_be_seen_is_blocked() -> None:
    """The missing right is named."""
    blocked = change(Hidden(IT, "Describe on Topic orders"), config(a="1")).blocked
    assert blocked.block is Block.UNREADABLE
    assert "Describe on Topic orders" in blocked.fix


def test_a_secret_alone_is_a_change() -> None:
    """With a version of its own there is something to send, though nothing to be seen differs."""
    found = change(seen(a="1"), config(a="1"), "alter-1")
    assert (found.action, found.paths) == (Action.UPDATE, ())
    assert found.row_after == Ownership(secret_version="alter-1")


def test_nothing_is_owned_afterwards() -> None:
    """An applied change without owners leaves no row, so that no plan ever deletes its object."""
    found = change(seen(a="1"), config(a="2"))
    applied = Outcome("step", OutcomeStatus.APPLIED)
    assert commit_step(None, found, (("config", "a"),), applied, 7) is None
