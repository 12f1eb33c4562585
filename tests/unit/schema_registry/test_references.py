"""Schemas that refer to the newest version of others, through the commands."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform_schema_registry.kinds.schema import KIND
from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.schema_registry.schemas import field, record
from ...kit.schema_registry.systems import open_simulated
from .conftest import Desk, Folder

MONEY = record(field("cents", "long"), name="Money")
MONEY_WITH_CODE = record(field("cents", "long"), field("code", "string", default=""), name="Money")
MONEY_WITH_UNIT = record(field("cents", "long"), field("unit", "string", default=""), name="Money")
MONEY_DEMANDED = record(field("cents", "long"), field("code", "string"), name="Money")
ORDER = record(field("price", "Money"), name="Order")
CHILD = """
resource "schema_registry_schema" "money" {
  subject = "money"
  schema  = file("money.avsc")
}
"""
# The names are in the wrong order: what decides is who refers to whom.
PARENTS = """
resource "schema_registry_schema" "a_cart" {
  subject    = "carts"
  schema     = jsonencode({ type = "array", items = "Order" })
  references = [{ name = "Order", subject = schema_registry_schema.order.subject }]
}
resource "schema_registry_schema" "order" {
  subject    = "orders"
  schema     = file("order.avsc")
  references = [{ name = "Money", subject = "money" }]
}
"""
SHOWN = """
output "money" {
  value = [schema_registry_schema.money.version, schema_registry_schema.money.schema_id]
}
"""


def start(folder: Folder, text: str = CHILD + PARENTS) -> None:
    """Apply the first versions."""
    folder.write(MONEY, "money.avsc")
    folder.write(ORDER, "order.avsc")
    folder.write(text)
    folder.run("apply", "-auto-approve")


def list_references(registry: SimulatedRegistry, subject: str) -> list[list[int]]:
    """The versions that each version of a subject refers to."""
    return [
        [reference["version"] for reference in stored.references]
        for stored in registry.subjects.list_versions(subject)
    ]


def list_registered(calls: Sequence[Call]) -> list[str]:
    """The subjects that got a version, in order."""
    return [
        call.path.split("/")[2]
        for call in calls
        if call.method == "POST" and call.path.endswith("/versions") and "compat" not in call.path
    ]


def test_parents_follow_their_child_in_one_plan(folder: Folder) -> None:
    """However far: each gets a version that refers to the new one, after it. Then nothing is left
    to do."""
    start(folder)
    assert list_registered(folder.registry.calls) == ["money", "orders", "carts"]
    assert "No changes" in folder.run("plan")
    folder.registry.calls.clear()
    folder.write(MONEY_WITH_CODE, "money.avsc")
    text = folder.run("plan")
    assert "version 2 of money is the one that this plan registers" in text
    assert "version 2 of orders is the one that this plan registers" in text
    assert "0 to add, 3 to change" in text
    folder.run("apply", "-auto-approve")
    assert list_registered(folder.registry.calls) == ["money", "orders", "carts"]
    assert list_references(folder.registry, "orders") == [[1], [2]]
    assert list_references(folder.registry, "carts") == [[1], [2]]
    assert "No changes" in folder.run("plan")


def test_the_number_counts_deleted_versions(folder: Folder) -> None:
    """A registry goes on behind what was deleted softly, of a subject and of one version."""
    door = open_simulated(folder.registry)
    for text in (MONEY, MONEY_WITH_CODE):
        door.register("money", text)
    folder.registry.subjects.delete("money", [1, 2])
    start(folder)
    assert list_references(folder.registry, "orders") == [[3]]
    door.register("money", MONEY_WITH_CODE)
    folder.registry.subjects.delete("money", [4])
    assert "No changes" in folder.run("plan")
    folder.write(MONEY_WITH_UNIT, "money.avsc")
    folder.run("apply", "-auto-approve")
    assert list_references(folder.registry, "orders") == [[3], [5]]
    assert "No changes" in folder.run("plan")


def test_a_version_that_is_written_stays(folder: Folder) -> None:
    """Only a reference without a version follows."""
    fixed = PARENTS.replace('subject = "money" }', 'subject = "money", version = 1 }')
    start(folder, CHILD + fixed)
    folder.write(MONEY_WITH_CODE, "money.avsc")
    assert "0 to add, 1 to change" in folder.run("apply", "-auto-approve")
    assert list_references(folder.registry, "orders") == [[1]]


def test_a_subject_of_others_is_followed(folder: Folder) -> None:
    """Its newest version is the live one, and what somebody registers there changes the parents."""
    door = open_simulated(folder.registry)
    door.register("money", MONEY)
    start(folder, PARENTS)
    assert list_references(folder.registry, "orders") == [[1]]
    door.register("money", MONEY_WITH_CODE)
    text = folder.run("plan")
    assert '"subject" = "money", "version" = 2' in text, text
    folder.run("apply", "-auto-approve")
    assert list_references(folder.registry, "orders") == [[1], [2]]
    assert list_references(folder.registry, "carts") == [[1], [2]]
    assert "No changes" in folder.run("plan")


def test_a_subject_that_does_not_exist_is_named(folder: Folder) -> None:
    """With the one that was meant; nothing is sent."""
    folder.write(MONEY, "money.avsc")
    folder.write(ORDER, "order.avsc")
    folder.write(CHILD + PARENTS.replace('"money" }', '"mony" }'))
    text = folder.run("apply", "-auto-approve", code=8)
    assert "orders refers to the newest version of mony, and there is no such subject" in text
    assert 'Did you mean "money"?' in text
    assert not folder.served.writes


def test_a_reference_cannot_name_the_computed_version(folder: Folder) -> None:
    """As it would in Terraform; the message says how a reference follows."""
    folder.write(MONEY, "money.avsc")
    folder.write(ORDER, "order.avsc")
    version = "version = schema_registry_schema.money.version"
    folder.write(CHILD + PARENTS.replace('subject = "money" }', f'subject = "money", {version} }}'))
    text = folder.run("validate", code=1)
    assert "schema_registry_schema.money.version is not known before the apply" in text
    assert "Fix: Leave out version in a reference, which then follows the newest version" in text


def test_a_circle_is_refused(folder: Folder) -> None:
    """It would never end; a version in one of the references ends it."""
    circle = CHILD.replace('file("money.avsc")', 'file("money.avsc")\n  references = [%s]')
    back = '{ name = "Order", subject = "orders" }'
    folder.write(MONEY, "money.avsc")
    folder.write(ORDER, "order.avsc")
    folder.write(circle % back + PARENTS)
    text = folder.run("plan", code=8)
    assert "each of these needs the newest version of the next one: money → orders → money" in text
    # Which of the two comes first then, an expression says.
    parents = PARENTS.replace(
        'subject = "money" }', "subject = schema_registry_schema.money.subject }"
    )
    start(folder, CHILD + parents)
    folder.write(circle % back.replace(" }", ", version = 1 }") + parents)
    folder.run("apply", "-auto-approve")
    assert list_references(folder.registry, "money") == [[], [1]]
    assert list_references(folder.registry, "orders") == [[1], [2]]
    assert "No changes" in folder.run("plan")


def test_what_the_level_refuses_of_a_child_stops_its_parents(folder: Folder) -> None:
    """The plan says why, and nothing is sent."""
    start(folder)
    folder.write(MONEY_DEMANDED, "money.avsc")
    assert "level BACKWARD refuses the new version of money" in folder.run("plan", code=8)
    folder.run("apply", "-auto-approve", code=8)
    assert list_references(folder.registry, "orders") == [[1]]


def test_a_child_that_is_not_managed_blocks_its_parents(folder: Folder) -> None:
    """The version that it would get will not exist."""
    door = open_simulated(folder.registry)
    door.register("money", MONEY_WITH_CODE)
    folder.write(MONEY, "money.avsc")
    folder.write(ORDER, "order.avsc")
    folder.write(CHILD + PARENTS)
    text = folder.run("plan", code=8)
    assert (
        "orders refers to version 2 of money, and schema_registry_schema.money, which would "
        "register it, is blocked" in text
    )


def test_a_run_that_ends_between_child_and_parent_is_finished_by_the_next(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed child holds its parents back; a failed parent has its child's version already."""
    start(folder)
    answer = folder.registry.answer

    def refuse(subject: str) -> None:
        def answer_but(call: Call, user: str = "admin") -> HttpAnswer:
            if list_registered([call]) == [subject]:
                return HttpAnswer(422, {"error_code": 42205, "message": "not now"})
            return answer(call, user)

        monkeypatch.setattr(folder.registry, "answer", answer_but)

    folder.write(MONEY_WITH_CODE, "money.avsc")
    refuse("money")
    text = folder.run("apply", "-auto-approve", code=5)
    assert "skipped" in text and "schema_registry_schema.money" in text
    assert list_references(folder.registry, "orders") == [[1]]
    refuse("orders")
    folder.run("apply", "-auto-approve", code=5)
    assert len(folder.registry.subjects.list_versions("money")) == 2
    assert list_references(folder.registry, "orders") == [[1]]
    monkeypatch.setattr(folder.registry, "answer", answer)
    assert "0 to add, 2 to change" in folder.run("plan")
    folder.run("apply", "-auto-approve")
    assert list_references(folder.registry, "orders") == [[1], [2]]
    assert list_references(folder.registry, "carts") == [[1], [2]]
    assert "No changes" in folder.run("plan")


def test_a_saved_plan_keeps_the_versions_that_it_shows(folder: Folder) -> None:
    """It is applied as it was reviewed, and refused once the child is another one."""
    start(folder)
    folder.write(MONEY_WITH_CODE, "money.avsc")
    folder.run("plan", "-out", "reviewed.plan")
    open_simulated(folder.registry).register("money", MONEY_WITH_UNIT)
    text = folder.run("apply", "reviewed.plan", code=4)
    assert "the plan is stale: schema_registry_schema.money: schema" in text
    folder.registry.subjects.delete("money", [2])
    text = folder.run("apply", "reviewed.plan", code=8)
    assert "orders refers to version 2 of money, and it has 1 version" in text
    assert list_references(folder.registry, "orders") == [[1]]
    folder.run("apply", "-auto-approve")
    assert list_references(folder.registry, "orders") == [[1], [3]]
    assert "No changes" in folder.run("plan")


def test_version_and_id_are_known_where_nothing_changes(folder: Folder) -> None:
    """Outputs have them after the apply that changes them, and in the plan of every other one."""
    start(folder, CHILD + PARENTS + SHOWN)
    state = folder.path / "kafkaform.state.json"
    assert json.loads(state.read_text())["outputs"]["money"]["value"] == [1, 1]
    plain = CHILD + PARENTS + SHOWN.replace("[", "[0, ")
    folder.write(plain)
    assert "money = [1, 1] → [0, 1, 1]" in folder.run("plan")
    folder.write(CHILD + PARENTS + SHOWN)
    folder.write(MONEY_WITH_CODE, "money.avsc")
    assert "money = [1, 1] → (known after apply)" in folder.run("plan")
    folder.run("apply", "-auto-approve")
    assert json.loads(state.read_text())["outputs"]["money"]["value"] == [2, 4]
    assert "No changes" in folder.run("plan")


def test_a_registry_that_cannot_be_asked_about_references_checks_them_itself(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apicurio calls every schema with references invalid in its check, and registers it."""
    monkeypatch.setattr(folder.registry, "apicurio", True)
    start(folder)
    folder.write(MONEY_WITH_CODE, "money.avsc")
    folder.registry.level = "BACKWARD"
    text = folder.run("plan")
    assert text.count("the registry will check") == 1
    assert text.count("will be checked locally") == 2
    folder.run("apply", "-auto-approve")
    assert list_references(folder.registry, "orders") == [[1], [2]]
    assert "No changes" in folder.run("plan")


@pytest.mark.parametrize("apicurio", [False, True])
@pytest.mark.parametrize("hard", [False, True])
def test_a_family_is_deleted_in_one_run(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, *, apicurio: bool, hard: bool
) -> None:
    """Those that refer to others go first, for good if the provider block says so: with Apicurio,
    what is deleted softly refers to others still."""
    monkeypatch.setattr(folder.registry, "apicurio", apicurio)
    start(folder)
    folder.write(MONEY_WITH_CODE, "money.avsc")
    folder.run("apply", "-auto-approve")
    setting = "  hard_delete = true\n" if hard else ""
    provider = f'provider "schema_registry" {{\n  url = "{folder.served.url}"\n{setting}}}\n'
    (folder.path / "main.kf.hcl").write_text(provider + CHILD + PARENTS)
    state = json.loads((folder.path / "kafkaform.state.json").read_text())
    folder.registry.calls.clear()
    confirmation = "--confirm", state["providers"]["schema_registry"]
    if apicurio and not hard:
        text = folder.run("destroy", *confirmation, code=8)
        assert "orders refers to money" in text and "set hard_delete = true" in text
        assert not [call for call in folder.registry.calls if call.method == "DELETE"]
        return
    assert "3 destroyed" in folder.run("destroy", *confirmation)
    assert not folder.registry.subjects.list_names()
    assert bool(folder.registry.subjects.list_names(deleted=True)) is not hard
    deletions = [call.path for call in folder.registry.calls if call.method == "DELETE"]
    each = [f"/subjects/{name}" for name in ("carts", "orders", "money")]
    assert deletions == [path for path in each for _ in range(1 + hard)]


DATA = """
data "schema_registry_schema" "money" {
  subject = %s
}
output "read" {
  value = [data.schema_registry_schema.money.subject, data.schema_registry_schema.money.latest]
}
"""


@pytest.mark.parametrize(
    "subject",
    [
        "schema_registry_schema.money.subject",
        '"money"\n  depends_on = [schema_registry_schema.money]',
    ],
)
def test_a_data_source_waits_for_the_subject_that_the_plan_creates(
    folder: Folder, subject: str
) -> None:
    """Its answer is known after the apply, and in each later plan."""
    folder.write(MONEY, "money.avsc")
    folder.write(CHILD + DATA % subject)
    assert "+ read = (known after apply)" in folder.run("plan")
    assert 'read = ["money", 1]' in folder.run("apply", "-auto-approve")
    assert "No changes" in folder.run("plan")


def test_a_data_source_that_nothing_creates_is_an_error(folder: Folder) -> None:
    """Without a dependency in the plan, otherwise after the apply; and nobody can use its answer in
    a block."""
    folder.write(MONEY, "money.avsc")
    folder.write(CHILD + DATA % '"money"')
    text = folder.run("plan", code=1)
    assert "data.schema_registry_schema.money cannot be read: the subject money does not" in text
    assert "subject = schema_registry_schema.NAME.subject" in text
    folder.write(CHILD + DATA % '"mony"\n  depends_on = [schema_registry_schema.money]')
    text = folder.run("apply", "-auto-approve", code=1)
    assert "data.schema_registry_schema.money cannot be read: the subject mony does not" in text
    assert folder.registry.subjects.list_names() == ["money"], text


def test_no_block_can_use_an_answer_that_is_not_there_yet(folder: Folder) -> None:
    """It says so, and nothing is sent."""
    folder.write(MONEY, "money.avsc")
    reader = PARENTS.replace('subject = "money" }', 'subject = "money", version = %s }')
    folder.write(ORDER, "order.avsc")
    folder.write(
        CHILD
        + DATA % "schema_registry_schema.money.subject"
        + reader % "data.schema_registry_schema.money.latest"
    )
    text = folder.run("plan", code=1)
    assert "data.schema_registry_schema.money.latest is not known before the apply" in text, text


def test_a_version_that_is_not_there_is_found_before_the_parent_is_sent(desk: Desk) -> None:
    """Also in the dry run; a registry that cannot be asked now is no proof."""
    order = {"subject": "orders", "schema": ORDER}
    reference = FrozenMap(name="Money", subject="money", version=2)
    desk.door.register("money", MONEY)
    _, steps = desk.plan(KIND, Action.CREATE, **order, references=(reference,))
    (verdict,), (outcome,) = desk.check(steps), desk.send(steps)
    assert verdict.fault is not None and outcome.fault is not None
    assert verdict.fault.message == "it refers to version 2 of money, which does not exist"
    assert (outcome.status, outcome.fault.code) == (OutcomeStatus.FAILED, "REFERENCE_MISSING")
    desk.door.register("money", MONEY_WITH_CODE)
    assert [end.status for end in desk.send(steps)] == [OutcomeStatus.APPLIED]
