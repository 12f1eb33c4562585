"""Each product on its own terms: what the provider asks, plans and sends there."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change, Evidence, OutcomeStatus, Step
from kafkaform.core.finding import Level
from kafkaform.core.resource import Absent, Depth, FaultClass, Observed
from kafkaform.core.value import Value
from kafkaform_schema_registry import requests
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.registry import RegistryFacts
from kafkaform_schema_registry.kinds.subject_settings import REGISTRY_CONFIG, SUBJECT_CONFIG
from kafkaform_schema_registry.session import identify_product

from ...kit.schema_registry.judgement import judge, list_rules
from ...kit.schema_registry.products import PRODUCTS, ProductRegistry
from ...kit.schema_registry.schemas import (
    ID,
    NOTE,
    ORDER,
    ORDER_WITH_AMOUNT,
    ORDER_WITH_NOTE,
    field,
    record,
)
from .conftest import Desk, open_desk

NAME, USER = "orders-value", "carts-value"
CART = record(field("order", "Order"), name="Cart")
CART_WITH_NOTE = record(field("order", "Order"), NOTE, name="Cart")
CART_WITH_ID = record(field("order", "Order"), ID, name="Cart")
REFERENCE = {"name": "Order", "subject": NAME, "version": 1}
APICURIO = ("apicurio 2", "apicurio 3")
WITH_MODES = ("confluent", "redpanda")


@pytest.fixture(params=PRODUCTS)
def product(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def open_product(product: str, **config: Value) -> Desk:
    return open_desk(ProductRegistry(product), **config)


def plan_cart(desk: Desk, text: str, kind: str = "avro") -> tuple[Change, tuple[Step, ...]]:
    """A second version of a schema that refers to another one."""
    desk.door.register(NAME, ORDER)
    desk.door.register(USER, CART, "avro", REFERENCE)
    return desk.plan(
        schema.KIND,
        Action.UPDATE,
        subject=USER,
        format=kind,
        schema=text,
        references=(REFERENCE,),
    )


def test_each_product_is_recognized(product: str) -> None:
    """Behind any path, by what it answers; only Confluent's has an id."""
    desk = open_product(product)
    found = identify_product(desk.session._context.client, "https://gateway/registry")  # type: ignore[attr-defined]
    assert (found.id is not None) is (product == "confluent")
    assert found.apicurio is (product in APICURIO)
    assert RegistryFacts.of(desk.session.facts).modes is (product in WITH_MODES)
    profile = desk.session.facts.profile
    assert profile.startswith("Apicurio") is (product in APICURIO)
    assert profile == "" or product not in WITH_MODES


def test_a_subject_is_registered_changed_and_deleted(product: str) -> None:
    """The same requests lead to the same end everywhere."""
    desk = open_product(product)
    for action, text in ((Action.CREATE, ORDER), (Action.UPDATE, ORDER_WITH_NOTE)):
        _, steps = desk.plan(schema.KIND, action, subject=NAME, schema=text)
        assert [verdict.fault for verdict in desk.check(steps)] == [None]
        assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    live = desk.read(schema.KIND, NAME)
    assert isinstance(live, Observed) and live.details["version"] == 2
    _, steps = desk.plan(SUBJECT_CONFIG, Action.CREATE, subject=NAME, compatibility="FULL")
    assert [step.request.name for step in steps] == ["SetCompatibility"]
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    _, steps = desk.plan(schema.KIND, Action.DELETE, subject=NAME, schema=ORDER_WITH_NOTE)
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    assert isinstance(desk.read(schema.KIND, NAME), Absent)


def test_an_incompatible_version_is_refused(product: str) -> None:
    """In the dry run, whichever check the product has, and by the write, whatever its code."""
    desk = open_product(product)
    desk.door.register(NAME, ORDER)
    _, steps = desk.plan(schema.KIND, Action.UPDATE, subject=NAME, schema=ORDER_WITH_AMOUNT)
    (verdict,) = desk.check(steps)
    assert verdict.fault is not None and verdict.fault.code == "INCOMPATIBLE_SCHEMA"
    call = requests.register(steps[0].payload)
    fault = requests.judge_refusal(desk.registry.answer(call), call)
    assert fault.kind is FaultClass.DEFINITE and fault.code in ("409", "40901")
    assert "first give the subject another level" in fault.advice


# ── levels and modes ────────────────────────────────────────────────────────────────────


def test_the_mode_of_the_registry_is_none_of_a_subject(product: str) -> None:
    """Some products show it for every subject. Nobody has set it there, and no plan removes it."""
    desk = open_product(product)
    desk.door.register(NAME, ORDER)
    assert isinstance(desk.read(SUBJECT_CONFIG, NAME), Absent)
    _, steps = desk.plan(SUBJECT_CONFIG, Action.CREATE, subject=NAME, compatibility="FULL")
    desk.send(steps)
    live = desk.read(SUBJECT_CONFIG, NAME)
    assert isinstance(live, Observed) and live.attributes["mode"] == "INHERITED"


def test_a_mode_that_nobody_can_set_is_blocked(product: str) -> None:
    """Also where modes can be read."""
    desk = open_product(product)
    for kind, block in ((SUBJECT_CONFIG, {"subject": NAME}), (REGISTRY_CONFIG, {})):
        change, _ = desk.plan(kind, Action.CREATE, mode="READONLY", **block)
        blocked = "schema-mode-unsupported" in list_rules(judge(desk.session, change))
        assert blocked is (product not in WITH_MODES)


def test_two_requests_read_what_a_subject_has_of_its_own(product: str) -> None:
    """One where it has no mode."""
    desk = open_product(product)
    for number in range(3):
        desk.door.register(f"s{number}", ORDER)
    counted: list[str] = []
    answer = desk.registry.answer
    desk.registry.answer = lambda call, user="admin": (  # type: ignore[method-assign]
        counted.append(call.path),
        answer(call, user),
    )[1]
    desk.session.sweep(SUBJECT_CONFIG, Depth.FULL)
    per_subject = [path for path in counted if path.endswith(("/s0", "/s1", "/s2"))]
    assert len(per_subject) == (6 if product in WITH_MODES else 3)


@pytest.mark.parametrize("mode", ["READONLY_OVERRIDE", "FORWARD"])
def test_modes_of_confluent_alone(mode: str) -> None:
    """READONLY_OVERRIDE and FORWARD can be read and set there; Redpanda refuses them, and nothing
    is believed to be set."""
    for product in WITH_MODES:
        desk = open_product(product)
        change, steps = desk.plan(REGISTRY_CONFIG, Action.UPDATE, mode=mode)
        assert steps[0].request.phase == 40, "schemas are registered before"
        (out,) = desk.send(steps)
        assert (out.status is OutcomeStatus.APPLIED) is (product == "confluent")
        assert desk.registry.mode == (mode if product == "confluent" else "READWRITE")
        live = desk.read(REGISTRY_CONFIG, "global")
        assert isinstance(live, Observed) and live.attributes["mode"] == desk.registry.mode
        if product == "confluent":
            _, steps = desk.plan(schema.KIND, Action.CREATE, subject=NAME, schema=ORDER)
            fault = desk.send(steps)[0].fault
            assert fault is not None and fault.code == "42205"


# ── references ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", [CART_WITH_NOTE, CART_WITH_ID])
@pytest.mark.parametrize("product", APICURIO)
def test_what_apicurio_cannot_be_asked_is_judged_by_the_write(product: str, text: str) -> None:
    """Its check leaves references out and would refuse every new version. The plan says so, the dry
    run does not claim to have asked, and the registry decides when the version is registered."""
    desk = open_product(product)
    change, steps = plan_cart(desk, text)
    rule = "schema-compatibility-unasked"
    (finding,) = (item for item in judge(desk.session, change) if item.rule == rule)
    assert finding.level is Level.CAUTION
    assert "level BACKWARD allows the new version of carts-value cannot be asked" in finding.text
    before = len(desk.registry.calls)
    (verdict,) = desk.check(steps)
    assert (verdict.fault, verdict.evidence) == (None, Evidence.LOCAL)
    assert not any("compatibility" in call.path for call in desk.registry.calls[before:])
    (out,) = desk.send(steps)
    versions = desk.registry.subjects.list_versions(USER)
    if text == CART_WITH_NOTE:
        assert out.status is OutcomeStatus.APPLIED and len(versions) == 2
    else:
        assert out.status is OutcomeStatus.FAILED and len(versions) == 1
        assert out.fault is not None and out.fault.kind is FaultClass.DEFINITE
        assert "change the schema so that it is compatible" in out.fault.advice


def test_other_registries_are_asked_about_references(product: str) -> None:
    """The check of the others resolves them, and level NONE needs none."""
    desk = open_product(product)
    change, steps = plan_cart(desk, CART_WITH_NOTE)
    asked = product not in APICURIO
    assert ("schema-compatibility-unasked" in list_rules(judge(desk.session, change))) is not asked
    assert desk.check(steps)[0].evidence is (Evidence.REMOTE if asked else Evidence.LOCAL)
    desk.registry.level = "NONE"
    assert "schema-compatibility-unasked" not in list_rules(judge(desk.session, change))
