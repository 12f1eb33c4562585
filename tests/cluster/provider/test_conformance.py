"""The simulated cluster and the real broker pass one and the same acceptance suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isfunction
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Batch, Evidence, Outcome, OutcomeStatus, Verdict
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Secrets, Session
from kafkaform.provider.testing import conformance, judgements
from kafkaform.provider.testing.conformance import CHECKS, Check
from kafkaform.provider.testing.workbench import Fixture, Violation
from kafkaform_kafka.kinds.simulation import TOPIC_DEFAULTS
from kafkaform_kafka.protocol.config_keys import TOPIC_KEYS

from ...conftest import Broker
from ...kit.kafka.logins import Login
from ...kit.kafka.topic_systems import SimulatedSystem, real_system
from ...kit.needs import BROKER

SYSTEMS = ("memory", "memory-lagging", BROKER)


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> Fixture:
    """One of the systems; the real one is the session's sandbox."""
    if request.param == "broker":
        return real_system(*map(request.getfixturevalue, ("broker", "stranger")))
    lagging = request.param == "memory-lagging"
    return SimulatedSystem(brokers=3, lag=2) if lagging else SimulatedSystem()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Check, system: Fixture) -> None:
    """Each promise of the contract holds on each system."""
    check(system)


class Lying:
    """A session that is honest but for what a test replaces."""

    def __init__(self, honest: Session, **lies: Callable[..., Any]) -> None:
        self._honest = honest
        vars(self).update(lies)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)


class LyingSystem(SimulatedSystem):
    """lie: session -> methods that replace the session's own."""

    def __init__(self, lie: Callable[[Session], dict[str, Callable[..., Any]]]) -> None:
        super().__init__()
        self._lie = lie

    def open(self, *, privileged: bool) -> Session:
        session = super().open(privileged=privileged)
        return Lying(session, **self._lie(session))


def absent_for_hidden(session: Session) -> dict[str, Callable[..., Any]]:
    def read(ids: Sequence[Identity], **how: Any) -> dict[Identity, Reading]:
        found = session.read(ids, **how)
        return {i: Absent(i) if isinstance(r, Hidden) else r for i, r in found.items()}

    return {"read": read}


def always_complete(session: Session) -> dict[str, Callable[..., Any]]:
    def sweep(kind: str, depth: Depth, **how: Any) -> Sweep:
        return replace(session.sweep(kind, depth, **how), coverage=Coverage(CoverageKind.COMPLETE))

    return {"sweep": sweep}


def names_as_full(session: Session) -> dict[str, Callable[..., Any]]:
    def sweep(kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        found = session.sweep(kind, depth)
        return replace(found, full=frozenset(full) & {item.identity for item in found.items})

    return {"sweep": sweep}


def dry_run_that_applies(session: Session) -> dict[str, Callable[..., Any]]:
    def preflight(batch: Batch) -> list[Verdict]:
        return [Verdict(o.step, Evidence.REMOTE, o.fault) for o in session.apply(batch, {})]

    return {"preflight": preflight}


def deletes_by_name(session: Session) -> dict[str, Callable[..., Any]]:
    def apply(batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        readings = session.read([step.identity for step in batch.steps])
        living = {i: r.incarnation for i, r in readings.items() if isinstance(r, Observed)}
        steps = (
            replace(step, payload=step.payload.with_items({"topic_id": living[step.identity]}))
            if "topic_id" in step.payload
            else step
            for step in batch.steps
        )
        return session.apply(replace(batch, steps=tuple(steps)), secrets)

    return {"apply": apply}


def always_applied(session: Session) -> dict[str, Callable[..., Any]]:
    def apply(batch: Batch, secrets: Secrets) -> list[Outcome]:
        session.apply(batch, secrets)
        return [Outcome(s.id, OutcomeStatus.APPLIED, incarnation="x") for s in batch.steps]

    return {"apply": apply}


def shuffled_outcomes(session: Session) -> dict[str, Callable[..., Any]]:
    return {"apply": lambda batch, secrets: list(reversed(session.apply(batch, secrets)))}


def missing_for_hidden(session: Session) -> dict[str, Callable[..., Any]]:
    def query(data: str, arguments: FrozenMap) -> FrozenMap:
        try:
            return session.query(data, arguments)
        except KafkaformError:
            raise KafkaformError(f"there is no {arguments.get('name')}", "look again") from None

    return {"query": query}


def invents_what_is_missing(session: Session) -> dict[str, Callable[..., Any]]:
    def query(data: str, arguments: FrozenMap) -> FrozenMap:
        try:
            return session.query(data, arguments)
        except KafkaformError:
            return EMPTY

    return {"query": query}


def tells_too_little(session: Session) -> dict[str, Callable[..., Any]]:
    def query(data: str, arguments: FrozenMap) -> FrozenMap:
        return session.query(data, arguments).without(["complete", "internal"])

    return {"query": query}


def tells_wrong_types(session: Session) -> dict[str, Callable[..., Any]]:
    def query(data: str, arguments: FrozenMap) -> FrozenMap:
        told = session.query(data, arguments)
        topics = told.get("list", ())
        spelt = (topic.with_items({"internal": "no"}) for topic in topics)
        return told.with_items({"list": tuple(spelt)}) if topics else told

    return {"query": query}


@pytest.mark.parametrize(
    ("lie", "caught_by"),
    [
        (absent_for_hidden, conformance.what_is_hidden_is_never_absent),
        (always_complete, conformance.a_listing_is_honest),
        (names_as_full, conformance.a_listing_is_honest),
        (dry_run_that_applies, conformance.preflight_changes_nothing),
        (deletes_by_name, conformance.delete_takes_only_that_incarnation),
        (always_applied, conformance.creating_what_exists_is_never_applied),
        (always_applied, conformance.a_created_object_has_an_incarnation),
        (always_applied, conformance.an_object_named_twice_is_not_made_twice),
        (always_applied, conformance.what_is_forbidden_fails_as_such),
        (always_applied, conformance.edits_end_as_expected),
        (shuffled_outcomes, conformance.one_bad_item_leaves_the_others_alone),
        (missing_for_hidden, judgements.a_query_does_not_guess),
        (invents_what_is_missing, judgements.a_query_does_not_guess),
        (invents_what_is_missing, conformance.after_close_nothing_happens),
        (tells_too_little, judgements.a_query_answers_as_its_schema_says),
        (tells_wrong_types, judgements.a_query_answers_as_its_schema_says),
    ],
    ids=lambda thing: thing.__name__,
)
def test_a_provider_that_breaks_a_promise_is_found(
    lie: Callable[[Session], dict[str, Callable[..., Any]]], caught_by: Check
) -> None:
    """The suite is no rubber stamp: each of these lies makes its check fail."""
    caught_by(SimulatedSystem())
    with pytest.raises(Violation):
        caught_by(LyingSystem(lie))


def test_the_suite_is_complete() -> None:
    """Every check that is written is in the table that the systems are run against."""
    written = {
        name
        for module in (conformance, judgements)
        for name, thing in vars(module).items()
        if isfunction(thing) and thing.__module__ == module.__name__ and name[0] != "_"
    }
    helpers = {conformance.select_checks.__name__, judgements.find_block.__name__}
    assert written == {check.__name__ for check in CHECKS} | helpers


def test_simulated_defaults_are_a_real_brokers(broker: Broker, stranger: Login) -> None:
    """What a topic inherits in the simulated cluster is what it inherits from a real broker."""
    real = real_system(broker, stranger)
    attributes = real.fresh(EMPTY)
    real.make(attributes)
    effective = real.effective_configs(attributes)
    assert {key: effective[key] for key in TOPIC_KEYS} == dict(TOPIC_DEFAULTS)
