"""What is sent for a change, what the dry run finds, and what becomes of a lost answer."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.resource import Absent, CoverageKind, Depth, FaultClass, Observed
from kafkaform.core.value import EMPTY
from kafkaform_schema_registry import requests
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.subject_settings import (
    REGISTRY_CONFIG,
    REGISTRY_CONFIG_TYPE,
    REGISTRY_KEY,
    SUBJECT_CONFIG,
)
from kafkaform_schema_registry.memory import RegistryMishap, SimulatedRegistry

from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_AMOUNT, ORDER_WITH_NOTE
from .conftest import Desk, open_desk

NAME = "orders-value"


def test_nothing_is_registered_twice(desk: Desk) -> None:
    """A subject that has the schema already, in whatever spelling, gets no second version."""
    _, steps = desk.plan(schema.KIND, Action.CREATE, subject=NAME, schema=ORDER)
    desk.door.register(NAME, ORDER.replace(" ", ""))
    (out,) = desk.send(steps)
    assert out.status is OutcomeStatus.APPLIED
    assert len(desk.registry.subjects.list_versions(NAME)) == 1


@pytest.mark.parametrize("spelling", [ORDER, ORDER.replace(" ", "")])
def test_apicurio_gets_no_version_for_another_spelling(
    apicurio: SimulatedRegistry, spelling: str
) -> None:
    """There, two texts of one schema are two versions, so such a text is not sent."""
    desk = open_desk(apicurio)
    _, steps = desk.plan(schema.KIND, Action.CREATE, subject=NAME, schema=ORDER)
    desk.door.register(NAME, spelling)
    assert desk.send(steps)[0].status is OutcomeStatus.APPLIED
    assert len(apicurio.subjects.list_versions(NAME)) == 1


@pytest.mark.parametrize("product", ["confluent", "apicurio"])
def test_an_older_version_cannot_become_the_latest(product: str) -> None:
    """A registry would answer with the old id and change nothing: the plan would never end. It is
    refused in the dry run and before the write."""
    registry = SimulatedRegistry(apicurio=product == "apicurio")
    registry.level = "NONE"
    desk = open_desk(registry)
    # As kafkaform itself has registered it.
    _, steps = desk.plan(schema.KIND, Action.CREATE, subject=NAME, schema=ORDER)
    desk.send(steps)
    desk.door.register(NAME, ORDER_WITH_AMOUNT)
    _, steps = desk.plan(schema.KIND, Action.UPDATE, subject=NAME, schema=ORDER)
    (verdict,), (out,) = desk.check(steps), desk.send(steps)
    assert verdict.fault is not None and verdict.fault.code == "OLDER_VERSION"
    assert "version 1 of orders-value, and version 2 is the latest" in verdict.fault.message
    assert out.status is OutcomeStatus.FAILED
    assert [call for call in registry.calls if not call.reads][-1].body["schema"] != ORDER


def test_a_registry_without_the_newer_check_is_asked_the_older_way(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Karapace and old registries compare with one version only."""
    routes = SimulatedRegistry._routes

    def older(self: SimulatedRegistry) -> dict[tuple[str, str], object]:
        return {
            r: s for r, s in routes(self).items() if r[1] != "compatibility/subjects/*/versions"
        }

    monkeypatch.setattr(SimulatedRegistry, "_routes", older)
    desk.door.register(NAME, ORDER)
    _, steps = desk.plan(schema.KIND, Action.UPDATE, subject=NAME, schema=ORDER_WITH_AMOUNT)
    (verdict,) = desk.check(steps)
    assert verdict.fault is not None and verdict.fault.code == "INCOMPATIBLE_SCHEMA"
    assert "field amount" in verdict.fault.message


@pytest.mark.parametrize(
    ("mishap", "status", "registered"),
    [
        (RegistryMishap.UNSENT, OutcomeStatus.FAILED, False),
        (RegistryMishap.DROPPED, OutcomeStatus.UNKNOWN, False),
        (RegistryMishap.UNANSWERED, OutcomeStatus.UNKNOWN, True),
    ],
)
def test_a_lost_answer_is_read_and_not_repeated(
    desk: Desk, mishap: RegistryMishap, status: OutcomeStatus, registered: bool
) -> None:
    """One request leaves; only a read says what became of it."""
    _, steps = desk.plan(schema.KIND, Action.CREATE, subject=NAME, schema=ORDER)
    desk.mishaps.append(mishap)
    (out,) = desk.send(steps)
    assert out.status is status and out.fault is not None
    found = desk.read(schema.KIND, NAME)
    assert isinstance(found, Observed if registered else Absent)
    writes = [call for call in desk.registry.calls if not call.reads]
    assert len(writes) == (1 if registered else 0)


def test_a_deletion_is_soft_unless_the_provider_says_otherwise(registry: SimulatedRegistry) -> None:
    """Permanently means twice: first softly, then for ever."""
    desk = open_desk(registry)
    desk.door.register(NAME, ORDER)
    _, steps = desk.plan(schema.KIND, Action.DELETE, subject=NAME, schema=ORDER)
    assert [step.request.name for step in steps] == ["DeleteSubject"]
    hard = open_desk(registry, hard_delete=True)
    change, steps = hard.plan(schema.KIND, Action.DELETE, subject=NAME, schema=ORDER)
    soft, purge = steps
    assert purge.after == (soft.id,)
    assert hard.session.assess([change])[change.identity].text == "Deletes 1 version."
    assert {one.status for one in hard.send(steps)} == {OutcomeStatus.APPLIED}
    assert not registry.subjects.list_names(deleted=True)


def test_what_others_refer_to_cannot_be_deleted(desk: Desk) -> None:
    """The registry refuses it."""
    desk.door.register(NAME, ORDER)
    reference = {"name": "Order", "subject": NAME, "version": 1}
    desk.door.register("carts", '{"type":"array","items":"Order"}', "avro", reference)
    change, steps = desk.plan(schema.KIND, Action.DELETE, subject=NAME, schema=ORDER)
    impact = desk.session.assess([change])[change.identity]
    assert impact.text == "Deletes 1 version."
    (out,) = desk.send(steps)
    assert out.fault is not None and out.fault.kind is FaultClass.DEFINITE
    assert "first change or delete the subjects that refer to it" in out.fault.advice


def test_a_subject_that_is_gone_makes_its_deletion_converge(desk: Desk) -> None:
    """Somebody else was faster: nothing is wrong."""
    desk.door.register(NAME, ORDER)
    _, steps = desk.plan(schema.KIND, Action.DELETE, subject=NAME, schema=ORDER)
    desk.door.write(requests.delete_subject(NAME, permanent=False))
    for fault in (desk.check(steps)[0].fault, desk.send(steps)[0].fault):
        assert fault is not None and fault.kind is FaultClass.CONVERGED


# ── levels and modes ────────────────────────────────────────────────────────────────────


def test_levels_and_modes_of_a_subject(desk: Desk) -> None:
    """Both are set, changed and removed, each by a request of its own; what is left out is the
    registry's."""
    kind = SUBJECT_CONFIG
    _, steps = desk.plan(kind, Action.CREATE, subject=NAME, compatibility="FULL", mode="READONLY")
    assert [step.request.name for step in steps] == ["SetCompatibility", "SetMode"]
    assert {p for step in steps for p in step.paths} == {
        ("subject",),
        ("compatibility",),
        ("mode",),
    }
    desk.send(steps)
    assert (desk.registry.levels, desk.registry.modes) == ({NAME: "FULL"}, {NAME: "READONLY"})
    _, steps = desk.plan(kind, Action.UPDATE, subject=NAME, compatibility="NONE")
    assert [step.request.name for step in steps] == ["SetCompatibility", "DeleteMode"]
    desk.send(steps)
    assert (desk.registry.levels, desk.registry.modes) == ({NAME: "NONE"}, {})
    _, steps = desk.plan(kind, Action.DELETE, subject=NAME)
    assert [step.request.name for step in steps] == ["DeleteCompatibility"]
    desk.send(steps)
    assert isinstance(desk.read(kind, NAME), Absent)


def test_a_mode_that_refuses_writes_comes_after_the_schemas(desk: Desk) -> None:
    """And one that lets them in before."""

    def phase(mode: str) -> int:
        _, (step,) = desk.plan(SUBJECT_CONFIG, Action.CREATE, subject=NAME, mode=mode)
        return step.request.phase

    _, (register,) = desk.plan(schema.KIND, Action.CREATE, subject=NAME, schema=ORDER)
    assert phase("READWRITE") < register.request.phase < phase("READONLY")


def test_a_subject_can_have_a_level_before_its_first_schema(desk: Desk) -> None:
    """It is found by name, and by no listing, which says so."""
    kind = SUBJECT_CONFIG
    _, steps = desk.plan(kind, Action.CREATE, subject=NAME, compatibility="FULL")
    desk.send(steps)
    assert isinstance(desk.read(kind, NAME), Observed)
    sweep = desk.session.sweep(kind, Depth.FULL)
    assert (sweep.items, sweep.coverage.kind) == ((), CoverageKind.VISIBLE_ONLY)


def test_further_settings_are_not_removed_with_a_level(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Confluent's registry deletes all of a subject's config, which can have an alias and rules."""
    desk.registry.levels[NAME] = "FULL"
    read = SimulatedRegistry._read_level
    monkeypatch.setattr(
        SimulatedRegistry, "_read_level", lambda *given: {**read(*given), "alias": "other"}
    )
    _, steps = desk.plan(SUBJECT_CONFIG, Action.DELETE, subject=NAME)
    (out,) = desk.send(steps)
    assert out.fault is not None and out.fault.code == "OTHER_SETTINGS"
    assert "alias" in out.fault.message
    assert desk.registry.levels == {NAME: "FULL"}


def test_the_level_of_the_registry(desk: Desk) -> None:
    """It is set as a whole, and leaving it to others sends nothing."""
    kind = REGISTRY_CONFIG
    _, steps = desk.plan(kind, Action.UPDATE, compatibility="NONE", mode="READONLY")
    desk.send(steps)
    assert (desk.registry.level, desk.registry.mode) == ("NONE", "READONLY")
    left = REGISTRY_CONFIG_TYPE.left
    assert left is not None
    live = desk.read(kind, REGISTRY_KEY)
    assert isinstance(live, Observed)
    assert left(live.attributes, EMPTY) == live.attributes


def test_a_read_only_subject_refuses_a_version(desk: Desk) -> None:
    """With advice that names the mode."""
    _, steps = desk.plan(schema.KIND, Action.CREATE, subject=NAME, schema=ORDER_WITH_NOTE)
    desk.registry.modes[NAME] = "READONLY"
    (out,) = desk.send(steps)
    assert out.fault is not None and out.fault.kind is FaultClass.DEFINITE
    assert "set mode READWRITE first" in out.fault.advice
