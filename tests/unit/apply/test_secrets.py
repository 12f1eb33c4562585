"""Passwords: sent when they must be, never told, and never taken for sent when nobody can know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from msgspec.structs import replace

from kafkaform.apply.secrets import resolve_instance_secrets
from kafkaform.core.address import parse_address
from kafkaform.core.canonical import dumps
from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.errors import ConfigurationError, OutcomeUnknown
from kafkaform.core.resource import Declared, ProviderConfig
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.plan.model import Mode, Options
from kafkaform_kafka.kinds.user import resource_type as scram
from kafkaform_kafka.kinds.user.simulation import Credential, credential_key
from kafkaform_kafka.memory import (
    Killed,
    Mishap,
    killed_after,
    killed_before,
    late_effect,
    lost_reply,
    lost_request,
)

from ...kit.findings import list_notes
from ...kit.simulated import engine
from ...kit.simulated.engine import House, apply, desired, house, identity, plan, removed, topic
from ...kit.simulated.managed_topics import codes, complete, ends, statuses
from .older import older, rewritten

SHA = "SCRAM-SHA-256"
KEY = f"ci|{SHA}"
STEP = f"{KEY}#1"
SECRETS = {"P1": "first-pass", "P2": "second-pass", "P3": "third-pass"}
LOST: dict[str, Mishap] = {"lost after": lost_reply(), "killed after": killed_after()}
NEVER: dict[str, Mishap] = {"lost before": lost_request(), "killed before": killed_before()}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment that secrets come from."""
    there = dict(SECRETS)
    monkeypatch.setattr(
        engine.Configuration,
        "find_secrets",
        lambda _, refs: {r: Secret(there[r.name]) if r.name in there else None for r in refs},
    )
    yield there


def login(version: int | None = 1, iterations: int = 4096) -> Declared:
    """A login whose password is P1 in version 1, P2 in version 2 and so on."""
    attributes = FrozenMap(
        username="ci",
        scram_mechanism=SHA,
        scram_iterations=iterations,
        password=SecretRef("env", f"P{version or 1}"),
        password_wo_version=None if version is None else str(version),
    )
    return Declared(
        identity(KEY, scram.KIND),
        parse_address(f"{scram.KIND}.ci"),
        attributes,
        engine.PLACE,
        secret_version=None if version is None else str(version),
    )


def password(where: House) -> str | None:
    """What one can log in with."""
    credential: Credential | None = where.cluster.world.get(credential_key("ci", SHA))
    return None if credential is None else credential.password


def version(where: House) -> str | None:
    row = where.row(KEY, scram.KIND)
    return None if row is None else row.secret_version


def sent(where: House) -> int:
    return where.cluster.requests[scram.API]


def made() -> House:
    """A house where version 1 was applied, an hour ago."""
    where = house()
    assert complete(apply(where, desired(login())))
    where.clock.advance(3600)
    return where


def cut_off(mishap: Mishap, second: Declared) -> House:
    """A house where the answer to the request for this login was lost."""
    where = made()
    where.cluster.faults.schedule(mishap, scram.API)
    with suppress(Killed):
        apply(where, desired(second))
    assert len(where.index.open_intents) == 1
    return where


# ── what is sent, and what is told ──────────────────────────────────────────────────────


def test_a_new_login_has_the_password_and_nobody_else_has() -> None:
    """Not the plan, the state or the log; the state lacks even the reference."""
    where = house()
    shown = plan(where, desired(login()))
    (change,) = shown.changes
    (hidden,) = (path for path in change.paths if path.sensitive)
    assert (hidden.path, hidden.after) == (("password",), SecretRef("env", "P1"))
    assert complete(apply(where, desired(login())))
    assert (password(where), version(where)) == ("first-pass", "1")
    row = where.row(KEY, scram.KIND)
    assert row is not None and "password" not in row.attributes
    log = b"".join(where.sink.lines()).decode()
    told = (dumps(shown), log, repr(where.state), repr(where.cluster.world.of(scram.KIND)))
    assert "first-pass" not in "".join(told)
    assert plan(where, desired(login())).changes == ()


def test_another_version_sends_the_password() -> None:
    """One step, whose effect nobody can see; the row then has the new version."""
    where = made()
    (change,) = plan(where, desired(login(2))).changes
    assert (change.action, change.paths) == (Action.UPDATE, ())
    assert [step.request.name for step in change.steps] == [scram.API]
    assert complete(apply(where, desired(login(2))))
    assert (password(where), version(where), sent(where)) == ("second-pass", "2", 2)
    assert plan(where, desired(login(2))).changes == ()


def test_another_reference_alone_sends_nothing() -> None:
    """The version decides; a renamed variable holds the same password as far as anybody knows."""
    where, same = made(), login()
    other = same.attributes.with_items({"password": SecretRef("env", "P3")})
    assert plan(where, desired(replace(same, attributes=other))).changes == ()


def test_a_missing_secret_stops_before_anything_is_written(known: dict[str, str]) -> None:
    """No request, no intent, no run: every missing one is named at once."""
    where = made()
    before = len(where.sink.records)
    del known["P2"]
    with pytest.raises(ConfigurationError) as refused:
        apply(where, desired(login(2)))
    assert "P2" in refused.value.diagnostics[0].advice
    assert sent(where) == 1 and len(where.sink.records) == before


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("admin", "Set the variable with KF_VAR_admin or in a variables file."),
        (
            'passwords["x"][0]',
            'Set the variable passwords including its element ["x"][0], with KF_VAR_passwords or '
            "in a variables file.",
        ),
    ],
)
def test_a_missing_variable_is_named_as_it_is_given(name: str, advice: str) -> None:
    """A map is given whole, so the element that is missing is no part of the variable's name."""
    block = ProviderConfig(
        "kafka", "kafka", FrozenMap(sasl_password=SecretRef("variable", name)), engine.PLACE
    )
    with pytest.raises(ConfigurationError) as refused:
        resolve_instance_secrets(block, dict.fromkeys)
    assert refused.value.diagnostics[0].advice == f"{advice} Nothing was sent."


# ── an answer that never came ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("mishap", [*LOST.values(), *NEVER.values()], ids=repr)
def test_nobody_guesses_whether_a_password_arrived(mishap: Mishap) -> None:
    """The state keeps the old version, and no later run plans on top of it."""
    where = cut_off(mishap, login(2))
    assert version(where) == "1"
    for _ in range(2):
        start, before = where.clock.monotonic(), sent(where)
        with pytest.raises(OutcomeUnknown) as unresolved:
            apply(where, desired(login(2)))
        assert "apply --expect " in unresolved.value.advice
        assert "another version" in unresolved.value.advice
        assert sent(where) == before and where.clock.monotonic() == start
    assert "unresolved since run" in str(list_notes(plan(where, desired(login(2))).changes[0]))


@pytest.mark.parametrize("mishap", [*LOST.values(), *NEVER.values()], ids=repr)
def test_the_same_approval_sends_it_once_more(mishap: Mishap) -> None:
    """The same version of the secret, under a new intent; the old one is superseded."""
    where = cut_off(mishap, login(2))
    with pytest.raises(OutcomeUnknown) as unresolved:
        apply(where, desired(login(2)))
    token = unresolved.value.advice.split("--expect ")[1].split("`")[0]
    before = sent(where)
    done = apply(where, desired(login(2)), expect=token)
    assert complete(done) and "Resuming run" in where.screen.notes[0]
    assert ends(where)[-2:] == [("recover", "failed"), ("outcome", "applied")]
    assert (password(where), version(where)) == ("second-pass", "2")
    assert sent(where) == before + 1
    assert plan(where, desired(login(2))).changes == ()


@pytest.mark.parametrize("mishap", [late_effect(3.0), killed_after(3.0)], ids=repr)
def test_a_raised_version_wins_over_what_may_still_land(mishap: Mishap) -> None:
    """Nothing is sent until the request of before is over, so it cannot undo the new password."""
    where = cut_off(mishap, login(2))
    assert complete(apply(where, desired(login(3))))
    where.clock.advance(3600)
    assert (password(where), version(where)) == ("third-pass", "3")
    assert plan(where, desired(login(3))).changes == ()


def test_the_version_of_before_is_no_way_out() -> None:
    """The state says that it is there, so nothing would be sent, whatever there is."""
    where = cut_off(LOST["lost after"], login(2))
    with pytest.raises(OutcomeUnknown):
        apply(where, desired(login(1)))
    with pytest.raises(OutcomeUnknown):
        apply(where, desired(login(None)))


def test_a_login_that_goes_needs_no_answer() -> None:
    """Whether the password arrived does not matter any more."""
    for said, options in (
        (desired(topic("t"), removed=(removed(f"{scram.KIND}.ci", destroy=True),)), Options()),
        (desired(login(2)), Options(Mode.DESTROY)),
    ):
        where = cut_off(LOST["lost after"], login(2))
        assert complete(apply(where, said, options))
        assert password(where) is None and where.row(KEY, scram.KIND) is None


@pytest.mark.parametrize("mishap", LOST.values(), ids=LOST)
def test_what_can_be_seen_is_judged_by_what_is_seen(mishap: Mishap) -> None:
    """A new login, and other iterations, are there or are not: neither is sent twice."""
    where = house()
    where.cluster.faults.schedule(mishap, scram.API)
    for said in (desired(login()), desired(login(1, 8192))):
        try:
            apply(where, said)
        except Killed:
            assert complete(apply(where, said))
        where.cluster.faults.schedule(mishap, scram.API)
    assert sent(where) == 2 and version(where) == "1"
    where.cluster.faults.clear()
    assert plan(where, desired(login(1, 8192))).changes == ()


def test_an_outcome_that_nobody_can_read_is_not_waited_for() -> None:
    """Reading for half a minute would not tell either."""
    where = made()
    where.cluster.faults.schedule(lost_reply(), scram.API)
    start = where.clock.monotonic()
    done = apply(where, desired(login(2)))
    assert statuses(done) == {STEP: OutcomeStatus.UNKNOWN} and codes(done)
    assert done.report is not None
    error = done.report.make_error()
    assert isinstance(error, OutcomeUnknown) and "same approval again" in error.advice
    assert where.clock.monotonic() == start


def test_a_login_that_is_gone_is_made_again() -> None:
    """An absence is seen: the intent of before failed, and the next plan creates."""
    where = cut_off(LOST["lost after"], login(2))
    where.cluster.commit({credential_key("ci", SHA): None})
    assert complete(apply(where, desired(login(2))))
    assert ends(where)[-2:] == [("recover", "failed"), ("outcome", "applied")]
    assert (password(where), version(where)) == ("second-pass", "2")


def test_a_secret_that_an_older_version_left_open_needs_another_version() -> None:
    """Its approval cannot be applied again, so the advice does not name it, and nothing is sent."""
    where = cut_off(killed_after(), login(2))
    made = where.screen.plans[-1]
    rewritten(where, made, older(made))
    with pytest.raises(OutcomeUnknown) as unresolved:
        apply(where, desired(login(2)), expect=older(made).token)
    assert unresolved.value.advice.startswith("Give the secret another version.")
    assert complete(apply(where, desired(login(3)))) and version(where) == "3"
