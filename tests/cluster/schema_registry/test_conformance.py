"""The types keep every promise of the contract on a real registry."""

from __future__ import annotations

import pytest

from kafkaform.provider.testing.conformance import CHECKS, Check

from ...kit.schema_registry.systems import SYSTEMS, Door, System

CASES = [(system, check) for system in SYSTEMS for check in CHECKS]


@pytest.mark.parametrize(
    ("system", "check"),
    [(system, check) for system, check in CASES if check.__name__ not in system.unfit],
    ids=lambda thing: thing.__name__,
)
def test_conformance(system: type[System], check: Check, door: Door) -> None:
    """Each promise holds that can apply to the type."""
    check(system(door))  # type: ignore[arg-type]  # the types have the rest of a fixture
