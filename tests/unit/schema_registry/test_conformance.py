"""The types keep every promise of the contract on the simulated registry, as each product."""

from __future__ import annotations

import pytest

from kafkaform.provider.testing.conformance import CHECKS, Check, select_checks
from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.schema_registry.systems import (
    CONFLUENT_SYSTEMS,
    SYSTEMS,
    Door,
    System,
    open_simulated,
)

CASES = [(system, check) for system in SYSTEMS for check in CHECKS]
CONFLUENT_CASES = [
    (system, check)
    for system in CONFLUENT_SYSTEMS
    for check in CHECKS
    if check.__name__ not in system.unfit
]


@pytest.fixture(params=(False, True), ids=("confluent", "apicurio"))
def door(request: pytest.FixtureRequest) -> Door:
    """A registry whose own level is BACKWARD."""
    registry = SimulatedRegistry(apicurio=request.param)
    registry.level = "BACKWARD"
    return open_simulated(registry)


@pytest.mark.parametrize(
    ("system", "check"),
    [(system, check) for system, check in CASES if check.__name__ not in system.unfit],
    ids=lambda thing: thing.__name__,
)
def test_conformance(system: type[System], check: Check, door: Door) -> None:
    """Each promise holds that can apply to the type."""
    check(system(door))  # type: ignore[arg-type]  # the types have the rest of a fixture


@pytest.mark.parametrize(("system", "check"), CONFLUENT_CASES, ids=lambda thing: thing.__name__)
def test_conformance_of_data_contracts(system: type[System], check: Check) -> None:
    """And of what only Confluent's registry has."""
    check(system(open_simulated(SimulatedRegistry())))  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_left_out_has_a_reason(system: type[System], door: Door) -> None:
    """`select_checks` refuses an unknown name, a missing reason, and a reason that does not fit."""
    assert len(select_checks(system(door))) == len(CHECKS) - len(system.unfit)  # type: ignore[arg-type]  # as above
