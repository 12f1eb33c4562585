"""Both types keep every promise of the contract."""

from __future__ import annotations

import pytest
from textstore_systems import FileSystem, LinkSystem

from kafkaform.provider.testing.conformance import CHECKS, Check, select_checks
from kafkaform_textstore.server import Server

SYSTEMS = (FileSystem, LinkSystem)
CASES = [(system, check) for system in SYSTEMS for check in CHECKS]


@pytest.mark.parametrize(
    ("system", "check"),
    [(system, check) for system, check in CASES if check.__name__ not in system.unfit],
    ids=lambda thing: thing.__name__,
)
def test_conformance(
    system: type[FileSystem] | type[LinkSystem], check: Check, server: Server
) -> None:
    """Each promise holds that can apply to the type."""
    check(system(server))


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_left_out_has_a_reason(
    system: type[FileSystem] | type[LinkSystem], server: Server
) -> None:
    """`select_checks` refuses an unknown name, a missing reason, and a reason that does not fit."""
    assert len(select_checks(system(server))) == len(CHECKS) - len(system.unfit)
