"""The Kafka Connect provider keeps the promises of the contract, on simulated workers."""

from __future__ import annotations

import pytest

from kafkaform.provider.testing.conformance import Check, select_checks

from .connector_systems import make_simulated_system


@pytest.mark.parametrize(
    "check", select_checks(make_simulated_system()), ids=lambda check: check.__name__
)
def test_conformance(check: Check) -> None:
    """Each promise holds that can apply to a connector."""
    check(make_simulated_system())
