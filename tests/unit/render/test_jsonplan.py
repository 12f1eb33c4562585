"""The plan as JSON in Terraform's shape."""

from __future__ import annotations

import json
from typing import Any

from kafkaform.core.canonical import dumps
from kafkaform.core.change import Action, Change
from kafkaform.core.finding import AccessRow, Block, Breadth, Harm
from kafkaform.plan.model import Plan
from kafkaform.render.terraform import to_json

from ...kit.findings import block, risk
from . import plans
from .plans import change, frozen, path, plan


def data(subject: Plan) -> Any:
    return json.loads(dumps(to_json(subject)))


def only(subject: Change) -> Any:
    return data(plan(subject))["resource_changes"][0]


def test_a_create_has_no_before() -> None:
    """Terraform's fields say what comes, with the object's address taken apart."""
    entry = only(plans.CREATED)
    assert entry["change"]["actions"] == ["create"]
    assert entry["change"]["before"] is None
    assert entry["change"]["after"]["config"]["cleanup.policy"] == "compact"
    assert (entry["type"], entry["name"], entry["mode"]) == ("kafka_topic", "payments", "managed")
    assert entry["provider_name"] == "kafka"


def test_addresses_are_taken_apart() -> None:
    """Module and key of an address stand in fields of their own."""
    entry = only(change('module.eu["a"].kafka_topic.x[3]', "x", Action.FORGET))
    assert entry["module_address"] == 'module.eu["a"]'
    assert (entry["name"], entry["index"]) == ("x", 3)


def test_an_address_that_is_none_is_kept() -> None:
    """An owner that cannot be parsed does not lose the change."""
    entry = only(change("odd one.thing", "x", Action.DELETE, before=frozen(a=1)))
    assert entry["address"] == entry["name"] == "odd one.thing"


def test_a_blocked_change_is_a_no_op_with_its_reason() -> None:
    """A policy that counts deletes does not count those that will not happen."""
    entry = only(plans.PROTECTED)
    assert entry["change"]["actions"] == ["no-op"]
    assert entry["change"]["after"] == entry["change"]["before"]
    assert entry["kafkaform"]["action"] == "delete"
    assert entry["kafkaform"]["blocked"] == {
        "kind": "protected",
        "reason": "the topic is protected (default)",
        "advice": plans.REMOVED_ADVICE,
        "stops": False,
        "waiver": None,
        "unmet": False,
    }


def test_losses_and_waivers_are_told() -> None:
    """A policy can count who loses what, and see which flag a blocked change asks for."""
    row = AccessRow("User:app", "Topic", "orders", "literal", ("Read",), Breadth.ONE)
    lost = risk(Harm.ACCESS_LOST, "User:app loses Read on Topic orders", access=(row,))
    guard = block(Block.GUARD, "it is the last ACL", "keep one", accept=True)
    entry = only(change("kafka_acl.a", "a", Action.DELETE, risks=(lost,), blocked=guard))
    (loss,) = entry["kafkaform"]["losses"]
    assert (loss["principal"], loss["operations"]) == ("User:app", ["Read"])
    assert entry["kafkaform"]["blocked"]["waiver"] == "some-guard"
    assert [item["rule"] for item in entry["kafkaform"]["findings"]] == [
        "some-guard",
        "some-access-lost",
    ]


def test_an_adoption_is_a_no_op_that_imports() -> None:
    """Nothing is written, and the object that is taken over is named."""
    entry = only(plans.ADOPTED)
    assert entry["change"]["actions"] == ["no-op"]
    assert entry["change"]["importing"] == {"id": "metrics"}
    assert entry["kafkaform"]["adopts"] is True


def test_an_adoption_that_writes_is_an_update() -> None:
    """The same with a difference is an update that imports."""
    entry = only(plans.ADOPTED_WRITING)
    assert entry["change"]["actions"] == ["update"]
    assert entry["change"]["importing"] == {"id": "client=web"}


def test_a_forgotten_object_has_terraforms_word() -> None:
    """`forget` is neither a delete nor a no-op."""
    assert only(plans.FORGOTTEN)["change"]["actions"] == ["forget"]


def test_sensitive_values_are_masked_and_marked() -> None:
    """The value is replaced wherever it stands, and the marks say where."""
    before, after = (
        frozen(config={"a": "1", "key": "old-hunter2"}),
        frozen(config={"a": "2", "key": "new-hunter2"}),
    )
    paths = (
        path("config.a", "1", "2"),
        path("config.key", "old-hunter2", "new-hunter2", sensitive=True),
    )
    entry = only(change("kafka_x.s", "s", Action.UPDATE, before=before, after=after, paths=paths))
    assert entry["change"]["after"] == {"config": {"a": "2", "key": "(sensitive)"}}
    assert entry["change"]["after_sensitive"] == {"config": {"key": True}}
    assert "hunter2" not in json.dumps(entry)


def test_a_secret_is_a_reference() -> None:
    """A secret shows where it comes from, is marked, and has no value to leak."""
    entry = only(plans.CREDENTIAL)
    assert entry["change"]["after"]["password"] == {"$secret": "env:APP_PASSWORD"}
    assert entry["change"]["after_sensitive"] == {"password": True}
    assert entry["change"]["before_sensitive"] == {}


def test_drift_holds_the_recorded_and_the_live_value() -> None:
    """Only what was changed outside is listed under resource_drift."""
    drift = data(plan(plans.drifted(1)))["resource_drift"]
    assert drift[0]["change"]["before"] == {"config": {"retention.ms": "1000"}, "partitions": 3}
    assert drift[0]["change"]["after"] == {"config": {"retention.ms": "2000"}, "partitions": 6}


def test_outputs_are_masked_or_deferred() -> None:
    """Sensitive outputs have no value, deferred ones are unknown until after the apply."""
    outputs = data(plans.everything())["output_changes"]
    assert outputs["token"]["after"] == "(sensitive)" and outputs["token"]["after_sensitive"]
    assert outputs["topic_id"]["after_unknown"] is True
    assert outputs["names"]["actions"] == ["update"] and outputs["gone"]["actions"] == ["delete"]


def test_gates_find_their_figures() -> None:
    """Deletes, token and counts are on top, so that a CI gate needs no loop."""
    about = data(plans.everything())["kafkaform"]
    assert about["has_deletes"] is True
    assert about["token"] == plan().token
    assert about["counts"]["destroy"] == 1 and about["counts"]["drift"] == 23


def test_a_protected_delete_is_not_a_delete() -> None:
    """A gate on deletes lets a plan pass whose only delete is blocked."""
    assert data(plan(plans.PROTECTED))["kafkaform"]["has_deletes"] is False


def test_a_partial_or_blocked_plan_says_so() -> None:
    """`complete` and `applyable` mean what they mean in Terraform."""
    partial, blocked = data(plans.everything()), data(plans.impossible())
    assert (partial["complete"], partial["applyable"]) == (False, True)
    assert (blocked["complete"], blocked["applyable"]) == (True, False)


def test_a_changes_evidence_is_its_weakest_steps() -> None:
    """One step that can only be checked locally weakens the whole change."""
    assert only(plans.DELETED)["kafkaform"]["evidence"] == "local"
    assert only(plans.UPDATED)["kafkaform"]["evidence"] == "remote"
