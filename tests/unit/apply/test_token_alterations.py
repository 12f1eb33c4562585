"""Delegation tokens are created, renewed and expired by plans that are approved and logged."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.workflow.model import Applied
from kafkaform_kafka.commands.commanded import alter_delegation_token, ask_delegation_tokens
from kafkaform_kafka.kinds.commanded.resource_types import TOKEN, parse_period
from kafkaform_kafka.kinds.kind import CREATE_TOKEN, END_TOKEN, RENEW_TOKEN
from kafkaform_kafka.memory import Killed, killed_after, killed_before, lost_reply, refused_items

from ...kit.simulated.alterations import apply_alteration
from ...kit.simulated.engine import House, apply, desired, house
from ...kit.simulated.managed_topics import ends

SAID = desired()
ALICE = "User:alice"


def create(where: House, **more: Any) -> Applied:
    given = {"owner": ALICE, "renewer": ["User:bob"], **more}
    return apply_alteration(where, alter_delegation_token(create=True, **given))


def tokens(where: House) -> FrozenMap:
    return FrozenMap(where.cluster.world.of(TOKEN))


def only(where: House) -> str:
    (name,) = tokens(where)
    return str(name)


def test_a_token_is_planned_logged_and_owned_by_nobody() -> None:
    """The plan says whose it will be; the log says which id it got; the state has no object."""
    where = house()
    done = create(where, max_lifetime="2d")
    (shown,) = where.screen.plans
    text = " ".join(render_plan_text(shown).split())
    assert 'owner = "User:alice"' in text and 'max_lifetime = "2d"' in text
    assert "can do all that its owner can" in text
    assert done.report is not None and done.report.complete
    made = tokens(where)[only(where)]
    assert (made.owner, made.renewers) == (ALICE, ("User:bob",))
    assert made.ends - made.issued == 2 * 86_400_000
    (intent,) = where.records("intent")
    (outcome,) = where.records("outcome")
    assert intent.body["phase"] == f"1.90 {CREATE_TOKEN.name}"
    assert intent.body["repeat"] == "never"
    assert outcome.body["incarnation"] == only(where)
    assert not where.state.objects
    where.check_log()


def test_every_create_makes_another_token() -> None:
    """A token that exists already is no reason to create none, not even one that is the same."""
    where = house()
    create(where)
    create(where)
    assert len(tokens(where)) == 2


@pytest.mark.parametrize(("mishap", "count"), [(killed_after(), 1), (killed_before(), 0)])
def test_a_run_that_died_is_recovered(mishap: Any, count: int) -> None:
    """The next run finds out whether the token was created, and creates none itself."""
    where = house()
    where.cluster.faults.schedule(mishap, CREATE_TOKEN.name)
    with pytest.raises(Killed):
        create(where)
    assert len(where.index.open_intents) == 1
    apply(where, SAID)
    assert ends(where) == [("recover", "applied" if count else "failed")]
    (recovered,) = where.records("recover")
    assert recovered.body.get("incarnation") == (only(where) if count else None)
    assert len(tokens(where)) == count and not where.index.open_intents
    where.check_log()


def test_a_lost_answer_is_read() -> None:
    """The token that is new proves that it was created: it is asked for once."""
    where = house()
    where.cluster.faults.schedule(lost_reply(), CREATE_TOKEN.name)
    done = create(where)
    assert done.report is not None and done.report.complete
    assert ends(where) == [("outcome", "applied")] and len(tokens(where)) == 1


@pytest.mark.parametrize("code", [61, 64, 65])
def test_a_refusal_has_kafkas_name(code: int) -> None:
    """Whether tokens are off, the connection is not good enough, or a right is missing."""
    where = house()
    where.cluster.faults.schedule(refused_items(code), CREATE_TOKEN.name)
    done = create(where)
    assert done.report is not None
    (result,) = done.report.results
    assert result.outcome.fault is not None
    assert result.outcome.fault.code.startswith("DELEGATION_TOKEN_")


def test_a_token_is_renewed() -> None:
    """For the period that is asked for, or as long as the brokers allow; an id that is not there is
    refused before anything is sent."""
    where = house()
    create(where)
    name, issued = only(where), tokens(where)[only(where)].issued
    where.clock.advance(3600)
    done = apply_alteration(where, alter_delegation_token([name], renew=True, period="2d"))
    assert done.report is not None and done.report.complete
    text = " ".join(render_plan_text(where.screen.plans[0]).split())
    assert 'renew_period = "2d"' in text and "it expires at" in text
    renewed = tokens(where)[name]
    assert renewed.expires > issued + 2 * 86_400_000
    (_, intent) = where.records("intent")
    assert (intent.body["phase"], intent.body["repeat"]) == (f"1.91 {RENEW_TOKEN.name}", "never")
    apply_alteration(where, alter_delegation_token([name], renew=True))
    assert tokens(where)[name].expires < renewed.expires
    with pytest.raises(UsageError, match="token other does not exist"):
        apply_alteration(where, alter_delegation_token(["other"], renew=True))


def test_a_renewal_by_others_does_not_matter() -> None:
    """The time at which a token expires can change until the plan is applied."""
    where = house()
    create(where)
    name = only(where)

    def others(_: Plan) -> None:
        again = alter_delegation_token([name], renew=True)
        assert again.drafts
        with where.cluster.others():
            token = tokens(where)[name]
            moved = type(token)(**{**_fields(token), "expires": token.expires + 1})
            where.cluster.commit({(TOKEN, name): moved})

    done = apply_alteration(
        where, alter_delegation_token([name], renew=True, period="3h"), gap=others
    )
    assert done.report is not None and done.report.complete


def _fields(token: Any) -> dict[str, Any]:
    return {name: getattr(token, name) for name in token.__struct_fields__}


def test_a_token_expires_now_or_later() -> None:
    """Without a period the token is gone, in the part of the plan that deletes; with one it stays
    until then."""
    where = house()
    create(where)
    name = only(where)
    apply_alteration(where, alter_delegation_token([name], expire=True, period="30min"))
    assert tokens(where)[name].expires - tokens(where)[name].issued < 86_400_000
    done = apply_alteration(where, alter_delegation_token([name], expire=True))
    assert done.report is not None and done.report.complete and not tokens(where)
    phases = [record.body["phase"] for record in where.records("intent")]
    assert phases[1:] == [f"1.92 {END_TOKEN.name}", f"2.60 {END_TOKEN.name}"]
    text = " ".join(render_plan_text(where.screen.plans[0]).split())
    assert "can no longer log in with the token" in text
    assert "clients that are connected with it stay until they must log in again" in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "not clear what to do"),
        ({"create": True, "renew": True}, "not clear what to do"),
        ({"create": True, "ids": ["x"]}, "--create does not take an id"),
        ({"create": True, "period": "1d"}, "--create does not take --period"),
        ({"create": True, "owner": "alice"}, "--owner 'alice' is not a user"),
        ({"create": True, "renewer": ["Group:g"]}, "--renewer 'Group:g' is not a user"),
        ({"create": True, "max_lifetime": "-1"}, "--max-lifetime '-1' is not a period"),
        ({"renew": True}, "no token is named"),
        ({"renew": True, "ids": ["x"], "hmac_file": "f"}, "--renew does not take --hmac-file"),
        ({"expire": True, "ids": ["x"], "owner": ALICE}, "--expire does not take --owner"),
        ({"expire": True, "ids": ["x"], "period": "0s"}, "--period '0s' is not a period"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], said: str) -> None:
    """Before anything connects, with the flag that is wrong."""
    with pytest.raises(UsageError, match=said):
        alter_delegation_token(**given)


def test_a_file_for_the_hmac_is_new(tmp_path: Any) -> None:
    """It is checked before anything connects: no file is overwritten, no link is followed."""
    there = tmp_path / "there"
    there.write_text("kept")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for path, said in (
        (there, "the file exists"),
        (link, "the file exists"),
        (tmp_path / "no" / "file", "no file can be made"),
    ):
        with pytest.raises(UsageError, match=said):
            alter_delegation_token(create=True, hmac_file=str(path))
        with pytest.raises(UsageError, match=said):
            ask_delegation_tokens(["x"], hmac_file=str(path))
    with pytest.raises(UsageError, match="the HMAC of one token"):
        ask_delegation_tokens(["x", "y"], hmac_file=str(tmp_path / "new"))


def test_periods_are_milliseconds() -> None:
    """In the units that people write; nothing else is one."""
    assert [parse_period(text) for text in ("1ms", "2s", "3min", "3m", "4h", "5d")] == [
        1,
        2000,
        180_000,
        180_000,
        14_400_000,
        432_000_000,
    ]
    assert [parse_period(text) for text in ("", "5", "0d", "-1d", "1w", "1.5h")] == [None] * 6
