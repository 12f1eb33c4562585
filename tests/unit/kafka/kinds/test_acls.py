"""`kafka_acl`: its identity, its rules and its requests."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Evidence, Ownership
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.acl import resource_type as acls
from kafkaform_kafka.kinds.acl.resource_type import (
    check_already_done,
    fits_arguments,
    make_acl_sweep,
)
from kafkaform_kafka.kinds.kind import CREATE_ACLS
from kafkaform_kafka.protocol.acl import NAMES, Acl, is_known, parse_acl, parse_acl_key

from ....kit.kafka.changes import FACTS, facts

READ = Acl("User:ci", "*", "Read", "Allow", "Topic", "orders", "Literal")
KEY = "User:ci|*|Read|Allow|Topic|orders|Literal"


def change(acl: Acl, action: Action = Action.CREATE) -> Change:
    """A create or a delete of this rule."""
    made = action is Action.CREATE
    return Change(
        Identity("kafka", acls.KIND, acl.key),
        "kafka_acl.x",
        action,
        before=None if made else acl.attributes,
        after=acl.attributes if made else None,
    )


def test_all_seven_fields_are_the_identity() -> None:
    """A key names one rule, and the import id is the key."""
    assert acls.TYPE.key(READ.attributes) == KEY
    assert acls.TYPE.import_key(KEY) == KEY
    assert parse_acl_key(KEY) == READ == parse_acl(READ.attributes)
    other = {replace(READ, **{name: "x"}).key for name in Acl.__struct_fields__}
    assert len({KEY, *other}) == 8


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("User:ci|*|Read", "acl_principal|acl_host"),
        (KEY.replace("Read", "read"), "'read' is not one of"),
        (KEY.replace("Topic", "Topics"), "'Topics' is not one of"),
        (KEY.replace("Literal", "Any"), "'Any' is not one of"),
        (KEY.replace("Allow", "13"), "'13' is not one of"),
    ],
)
def test_an_import_id_that_is_no_rule_is_refused(text: str, why: str) -> None:
    """It says what was expected."""
    with pytest.raises(ValueError, match="not one of|import id") as caught:
        acls.TYPE.import_key(text)
    assert why in str(caught.value)


def test_one_step_with_the_seven_fields() -> None:
    """Create and delete carry the rule and say what their dry run can prove."""
    for action, api in ((Action.CREATE, "CreateAcls"), (Action.DELETE, "DeleteAcls")):
        (step,) = acls.TYPE.steps(change(READ, action), FACTS)
        assert (step.request.name, step.payload) == (api, READ.attributes)
        assert step.evidence is Evidence.LOCAL
        assert step.group == "Topic|orders|Literal"


@pytest.mark.parametrize("action", [Action.UPDATE, Action.ADOPT, Action.FORGET, Action.NOOP])
def test_nothing_else_sends_anything(action: Action) -> None:
    """Owners and labels are bookkeeping."""
    assert acls.TYPE.steps(replace(change(READ), action=action), FACTS) == ()


def test_denials_are_lifted_last_and_behind_a_gate() -> None:
    """Deletes of ALLOW come first; those of DENY wait for all of them."""
    (allow,) = acls.TYPE.steps(change(READ, Action.DELETE), FACTS)
    (deny,) = acls.TYPE.steps(change(replace(READ, permission="Deny"), Action.DELETE), FACTS)
    assert allow.request.phase < deny.request.phase
    assert deny.request.gated and not allow.request.gated
    assert allow.request.ahead is deny.request.ahead is None


def test_the_literal_order_only_marks_deletes() -> None:
    """Whether a delete goes ahead is decided where the whole plan is known."""
    first = facts(acl_order="delete_first")
    (delete,) = acls.TYPE.steps(change(READ, Action.DELETE), first)
    (create,) = acls.TYPE.steps(change(READ), first)
    assert (delete.request.ahead, delete.request.part) == (55, 2)
    assert create.request == CREATE_ACLS
    assert create.request.phase > 56


# ── listings and filters ────────────────────────────────────────────────────────────────


def test_a_rule_that_is_too_new_is_shown_and_never_named() -> None:
    """Its operation is a number: no block, no import id and no delete can name it."""
    new = replace(READ, operation="16")
    (item,) = make_acl_sweep("kafka", "full", [new]).items  # type: ignore[arg-type]
    assert item.details["unmanageable"]
    assert not is_known(new)
    with pytest.raises(ValueError, match="not one of"):
        acls.TYPE.import_key(item.identity.key)


def test_what_a_fresh_look_refuses() -> None:
    """A create of what is there, a delete of what is not; not a create of what is shared."""
    change = Change(Identity("kafka", acls.TYPE.name, KEY), "kafka_acl.a", Action.CREATE)
    change = replace(change, after=READ.attributes)
    (step,) = acls.TYPE.steps(change, FACTS)
    assert (
        check_already_done("CreateAcls", step, False)
        is check_already_done("DeleteAcls", step, True)
        is None
    )
    for api, there in (("CreateAcls", True), ("DeleteAcls", False)):
        fault = check_already_done(api, step, there)
        assert fault and KEY in fault.message
    shared = replace(change, row_after=Ownership(("kafka_acl.a",), "shared"))
    (step,) = acls.TYPE.steps(shared, FACTS)
    assert check_already_done("CreateAcls", step, True) is None


PREFIX = replace(READ, resource_name="ord", pattern_type="Prefixed")
WILD = replace(READ, resource_name="*")
OTHER = replace(READ, resource_name="carts", principal="User:shop")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({}, [READ, PREFIX, WILD, OTHER]),
        ({"acl_principal": "User:ci"}, [READ, PREFIX, WILD]),
        ({"resource_name": "orders"}, [READ]),
        ({"resource_name": "ord"}, [PREFIX]),
        ({"resource_name": "orders", "resource_pattern_type_filter": "Any"}, [READ]),
        (
            {"resource_name": "orders", "resource_pattern_type_filter": "Match"},
            [READ, PREFIX, WILD],
        ),
        ({"resource_name": "orders", "resource_pattern_type_filter": "Prefixed"}, []),
        ({"resource_pattern_type_filter": "Prefixed"}, [PREFIX]),
        ({"resource_pattern_type_filter": "Match"}, [READ, PREFIX, WILD, OTHER]),
        ({"acl_operation": "Write"}, []),
        ({"acl_permission_type": "Allow", "acl_host": "*", "resource_type": "Group"}, []),
    ],
)
def test_filters_are_kafkas(arguments: dict[str, Any], found: list[Acl]) -> None:
    """Any is both pattern types, Match every pattern that covers the name (KIP-290)."""
    given = FrozenMap({**dict.fromkeys(NAMES), **arguments})
    assert [acl for acl in (READ, PREFIX, WILD, OTHER) if fits_arguments(acl, given)] == found
