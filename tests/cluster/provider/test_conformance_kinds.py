"""ACLs, quotas, configs and logins pass the acceptance suite, simulated and on the real broker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaform.provider.testing.conformance import CHECKS, Check, select_checks
from kafkaform.provider.testing.workbench import Violation

from ...kit.kafka.kind_systems import ALWAYS, SAMPLES, KindSystem, System
from ...kit.kafka.subjects import SUBJECTS
from ...kit.kafka.topic_systems import RealSystem, SimulatedSystem, real_system
from ...kit.kafka.versions import get_choice
from ...kit.needs import BROKER

CASES = [
    pytest.param(kind, check, id=f"{kind}-{check.__name__}")
    for kind, sample in SAMPLES.items()
    for check in CHECKS
    if check.__name__ not in {**ALWAYS, **sample.unfit}
]


@pytest.fixture(params=["memory", "memory-lagging", BROKER])
def system(request: pytest.FixtureRequest) -> System:
    """One of the systems; the real one is the session's sandbox."""
    if request.param == "broker":
        return real_system(*map(request.getfixturevalue, ("broker", "stranger")))
    lagging = request.param == "memory-lagging"
    return SimulatedSystem(brokers=3, lag=2) if lagging else SimulatedSystem()


@pytest.mark.parametrize(("kind", "check"), CASES)
def test_conformance(kind: str, check: Check, system: System) -> None:
    """Each promise of the contract that can apply to the kind holds on each system."""
    if isinstance(system, RealSystem):
        _skip_what_is_not_there(kind)
    fixture = KindSystem(system, SAMPLES[kind])
    try:
        check(fixture)
    finally:
        fixture.clean()


def _skip_what_is_not_there(kind: str) -> None:
    """That such a kind is refused by name is the subject of `cluster/versions`."""
    (subject,) = (each for each in SUBJECTS if each.kind == kind)
    if not subject.is_in(get_choice()):
        pytest.skip(f"Kafka {get_choice().title} has no {subject.title}")


@pytest.mark.parametrize("kind", SAMPLES)
def test_what_is_left_out_is_declared(kind: str) -> None:
    """Every check of the suite is run, or is declared unfit with a reason: and then it could not
    pass."""
    fixture = KindSystem(SimulatedSystem(), SAMPLES[kind])
    fit = select_checks(fixture)
    assert {check.__name__ for check in fit} | fixture.unfit.keys() == {c.__name__ for c in CHECKS}
    for check in CHECKS:
        if check not in fit:
            with pytest.raises(Violation):
                check(fixture)


@pytest.mark.parametrize(
    "unfit",
    [
        {**ALWAYS, "no_such_check": "because"},
        {**ALWAYS, "what_is_missing_is_absent": ""},
        {name: why for name, why in ALWAYS.items() if "incarnation" not in name},
    ],
)
def test_a_declaration_that_cannot_be_is_refused(unfit: dict[str, str]) -> None:
    """No check is left out by a typing error, without a reason, or against `incarnations`."""
    fixture = KindSystem(SimulatedSystem(), replace(next(iter(SAMPLES.values())), unfit={}))
    fixture.unfit = unfit
    with pytest.raises(Violation):
        select_checks(fixture)


def test_topics_are_left_nothing_out() -> None:
    """The kind with incarnations passes all of it."""
    assert select_checks(SimulatedSystem()) == CHECKS
