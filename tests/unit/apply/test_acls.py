"""ACLs through the whole engine, on a simulated cluster: what travels together, and when."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import OutcomeStatus
from kafkaform.core.resource import Declared, Desired
from kafkaform.core.value import FrozenMap
from kafkaform.plan.lower import lower_plan
from kafkaform_kafka.memory import killed_after, refused_items
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol.acl import Acl

from ...kit.simulated.engine import (
    PLACE,
    House,
    apply,
    desired,
    identity,
    parse_address,
    plan,
    removed,
)
from ...kit.simulated.managed_topics import built, complete, statuses


def acl(name: str, operation: str = "Read", permission: str = "Allow", user: str = "ci") -> Acl:
    """A rule on the topic of this name."""
    return Acl(f"User:{user}", "*", operation, permission, "Topic", name, "Literal")


def block(rule: Acl, name: str = "") -> Declared:
    """The rule as a block declares it."""
    label = name or f"{rule.permission}_{rule.operation}_{rule.resource_name}".lower()
    return Declared(
        identity(rule.key, acls.KIND),
        parse_address(f"kafka_acl.{label}"),
        rule.attributes,
        PLACE,
    )


AUTHORIZER = FrozenMap(super_users=("User:admin",), allow_if_no_acl=False)
"""Without it nobody knows what the last rule of a resource keeps out, and no plan deletes it."""


def declared(*blocks: Declared, **settings: Any) -> Desired:
    return desired(*blocks, authorizer=AUTHORIZER, **settings)


def said(*rules: Acl, **settings: Any) -> Desired:
    return declared(*map(block, rules), **settings)


def live(where: House) -> set[str]:
    return set(where.cluster.world.of(acls.KIND))


def phases(where: House) -> list[str]:
    """The phases of the intents of the last run, in order, each once."""
    runs = [r.body["phase"] for r in where.records("intent")]
    return list(dict.fromkeys(runs))


def test_a_rule_is_made_and_removed_with_its_block() -> None:
    """Created, nothing to do, then deleted when the block is gone."""
    where = built(said(acl("a"), acl("b")))
    assert live(where) == {acl("a").key, acl("b").key}
    assert not plan(where, said(acl("a"), acl("b"))).effective
    assert complete(apply(where, said(acl("a"))))
    assert live(where) == {acl("a").key}


def test_another_field_is_another_rule_made_before_the_old_one_goes() -> None:
    """There is no update: one create and one delete, the create first."""
    old, new = acl("a"), acl("a", "Write")
    where = built(declared(block(old, "x"), block(acl("b"))))
    wanted = plan(where, declared(block(new, "x"), block(acl("b"))))
    assert [str(c.action) for c in wanted.effective] == ["delete", "create"]
    assert [b.request.name for w in lower_plan(wanted) for b in w.batches] == [
        "CreateAcls",
        "DeleteAcls",
    ]
    assert complete(apply(where, declared(block(new, "x"), block(acl("b")))))
    assert live(where) == {new.key, acl("b").key}


def test_delete_first_is_kip_4s_order_where_a_resource_gets_new_rules() -> None:
    """The old rule of the topic goes before its new one comes; a topic that only loses rules
    waits for the end."""
    where = built(said(acl("a"), acl("b"), acl("c"), acl_order="delete_first"))
    count = len(where.records("intent"))
    after = said(acl("a", "Write"), acl("c"), acl_order="delete_first")
    assert complete(apply(where, after))
    sent = [(r.body["phase"], r.body["key"]) for r in where.records("intent")[count:]]
    assert sent == [
        ("1.55 DeleteAcls", acl("a").key),
        ("1.60 CreateAcls", acl("a", "Write").key),
        ("2.10 DeleteAcls", acl("b").key),
    ]
    assert live(where) == {acl("a", "Write").key, acl("c").key}


def test_a_delete_that_fails_first_does_not_stop_the_create() -> None:
    """In the literal order too, every item stands for itself; part 2 is not begun."""
    where = built(said(acl("a"), acl("b"), acl("c"), acl_order="delete_first"))
    where.cluster.faults.schedule(refused_items(31), "DeleteAcls")
    done = apply(where, said(acl("a", "Write"), acl("c"), acl_order="delete_first"))
    by_key = statuses(done)
    assert by_key[f"{acl('a').key}#1"] is OutcomeStatus.FAILED
    assert by_key[f"{acl('a', 'Write').key}#1"] is OutcomeStatus.APPLIED
    assert by_key[f"{acl('b').key}#1"] is OutcomeStatus.SKIPPED


def test_the_order_is_part_of_what_is_approved() -> None:
    """The same wish in another order is another approval."""
    where = built(said(acl("a"), acl("c")))
    one = plan(where, said(acl("c")))
    two = plan(where, said(acl("c"), acl_order="delete_first"))
    assert one.approval != two.approval


@pytest.mark.parametrize("order", ["create_first", "delete_first"])
def test_the_plan_says_the_order(order: str) -> None:
    """Whoever reviews reads what happens in between."""
    where = built(said(acl("a"), acl("c")))
    seen = plan(where, said(acl("a", "Write"), acl("c"), acl_order=order))
    assert any(f'acl_order = "{order}"' in item.text for item in seen.instances["kafka"].findings)


def test_denials_come_first_and_a_resource_in_one_request() -> None:
    """All rules of a topic travel together, what is denied at their head."""
    where = built(said())
    wanted = plan(where, said(acl("a"), acl("b"), acl("a", "Write", "Deny"), acl("a", "Alter")))
    ((batch,),) = [w.batches for w in lower_plan(wanted)]
    assert [acls.parse_acl(s.payload).permission for s in batch.steps] == ["Deny", *["Allow"] * 3]


def test_what_is_denied_stays_denied_while_an_allow_remains() -> None:
    """One ALLOW that could not be deleted keeps every DENY."""
    rules = (acl("a"), acl("b"), acl("a", "All", "Deny"))
    where = built(said(*rules, acl("z")))
    where.cluster.faults.schedule(refused_items(31, f"*{acl('b').key[5:]}"), "DeleteAcls")
    done = apply(where, said(acl("z")))
    by_key = statuses(done)
    assert by_key[f"{acl('a').key}#1"] is OutcomeStatus.APPLIED
    assert by_key[f"{acl('b').key}#1"] is OutcomeStatus.FAILED
    assert by_key[f"{acl('a', 'All', 'Deny').key}#1"] is OutcomeStatus.SKIPPED
    assert acl("a", "All", "Deny").key in live(where)
    assert complete(apply(where, said(acl("z"))))
    assert live(where) == {acl("z").key}


def test_a_rule_that_somebody_else_deleted_is_a_deletion_done() -> None:
    """The filter matches nothing, a look shows that the rule is gone, and that was the wish."""
    where = built(said(acl("a"), acl("z")))

    def meanwhile(records: Any) -> None:
        if records[0].kind == "intent":
            where.sink.after_append = lambda records: None
            with where.cluster.others():
                where.cluster.commit({(acls.KIND, acl("a").key): None})

    where.sink.after_append = meanwhile
    assert complete(apply(where, said(acl("z"))))
    assert live(where) == {acl("z").key}


def test_a_killed_delete_is_taken_up_by_the_next_run() -> None:
    """The process dies after the request: the next run reads and finishes."""
    where = built(said(acl("a"), acl("z")))
    where.cluster.faults.schedule(killed_after(), "DeleteAcls")
    with pytest.raises(BaseException, match="died"):
        apply(where, said(acl("z")))
    assert complete(apply(where, said(acl("z"))))
    assert live(where) == {acl("z").key}
    assert not plan(where, said(acl("z"))).effective


def test_an_unmanaged_rule_is_left_alone() -> None:
    """What others made is counted and not touched."""
    where = built(said(acl("a")))
    with where.cluster.others():
        where.cluster.commit({(acls.KIND, acl("x").key): acl("x")})
    seen = plan(where, said(acl("a")))
    assert not seen.effective
    assert [(u.kind, u.count) for u in seen.instances["kafka"].unmanaged] == [(acls.KIND, 1)]


def test_a_removed_block_forgets_or_deletes() -> None:
    """As with every other kind."""
    where = built(said(acl("a"), acl("b"), acl("z")))
    kept = declared(
        block(acl("z")),
        removed=(
            removed("kafka_acl.allow_read_a"),
            removed("kafka_acl.allow_read_b", destroy=True),
        ),
    )
    assert complete(apply(where, kept))
    assert live(where) == {acl("a").key, acl("z").key}
