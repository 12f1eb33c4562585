"""Delegation tokens on a real broker: `describe`, `alter`, and Kafka's refusals by name."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kafkaform_kafka.wire.security import (
    AT_ONCE,
    BROKER_DEFAULT,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)

from ...conftest import Broker
from ...kit.commands.bare import Bare
from ...kit.kafka.logins import Login, new_login
from ...kit.kafka.sessions import connect, eventually

APPROVED = "--auto-approve"
SECONDS = 20.0


def listed(bare: Bare, *words: str, user: Login | None = None) -> Mapping[str, Any]:
    """Id -> row of `describe delegation-tokens`."""
    rows = bare.document("delegation-tokens", *words, user=user)["delegation-tokens"]
    return {row["token_id"]: row for row in rows}


def create(bare: Bare, *words: str, user: Login) -> str:
    """The id of a new token of this user."""
    before = set(listed(bare, user=user))
    bare.done("alter", "delegation-token", "--create", APPROVED, *words, user=user)
    (made,) = set(listed(bare, user=user)) - before
    return made


def test_a_token_is_created_shown_and_logged(bare: Bare, stranger: Login) -> None:
    """Whoever creates a token for himself needs no right. The token is shown afterwards, its HMAC
    is only in the file, and the log has its id."""
    file = bare.folder.path / "token.hmac"
    said = bare.done(
        "alter", "delegation-token", "--create", APPROVED,
        "--renewer", "User:renewer", "--max-lifetime", "2d", "--hmac-file", str(file),
        user=stranger,
    )  # fmt: skip
    ((token_id, row),) = listed(bare, user=stranger).items()
    assert token_id in said.out and "1 delegation token." in said.out
    assert (row["owner"], row["requester"]) == (stranger.principal, stranger.principal)
    assert row["renewers"] == ["User:renewer"] and row["expires"] < row["ends"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    hmac = file.read_text().strip()
    assert len(hmac) == 88  # 64 bytes of HMAC-SHA-512 in base64
    log = (bare.cluster / "kafkaform.audit.jsonl").read_text()
    assert hmac not in said.text and hmac not in log
    (outcome,) = bare.records("outcome")
    assert outcome["body"]["incarnation"] == token_id
    assert json.loads((bare.cluster / "kafkaform.state.json").read_text())["objects"] == []


def test_the_hmac_can_be_had_later(bare: Bare, stranger: Login) -> None:
    """`describe` writes it to a file, never to the terminal; a file that exists stays as it is."""
    token_id = create(bare, user=stranger)
    file = bare.folder.path / "later.hmac"
    words = ("describe", "delegation-tokens", token_id, "--hmac-file", str(file))
    said = bare.done(*words, user=stranger)
    hmac = file.read_text().strip()
    assert len(hmac) == 88 and hmac not in said.text
    assert hmac not in bare.done("describe", "delegation-tokens", "--json", user=stranger).text
    assert "the file exists" in bare.fails(1, *words, user=stranger)
    missing = ("describe", "delegation-tokens", "nosuchtoken", "--hmac-file", f"{file}2")
    assert "token nosuchtoken does not exist" in bare.fails(1, *missing, user=stranger)


def test_two_tokens_of_one_owner(bare: Bare, stranger: Login) -> None:
    """Each create makes one more, and the one that is shown is the new one."""
    first, second = create(bare, user=stranger), create(bare, user=stranger)
    assert first != second and set(listed(bare, user=stranger)) == {first, second}
    assert set(listed(bare, second, user=stranger)) == {second}
    assert not listed(bare, "--owner", "User:nobody-*", user=stranger)


def test_a_token_is_renewed_and_ended(bare: Bare, stranger: Login) -> None:
    """By its id alone. It expires sooner or later than before, and then at once."""
    token_id = create(bare, "--max-lifetime", "3d", user=stranger)
    before = listed(bare, user=stranger)[token_id]
    alter = ("alter", "delegation-token", token_id, APPROVED)

    def wait(shown: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        # A broker acknowledges a new time before it shows it, and no plan can compare a period.
        found: dict[str, Any] = eventually(lambda: listed(bare, user=stranger)[token_id], shown)
        return found

    said = bare.done(*alter, "--renew", "--period", "1h", user=stranger)
    assert 'renew_period = "1h"' in said.text and token_id in said.out
    sooner = wait(lambda now: now["expires"] < before["expires"])
    assert sooner["ends"] == before["ends"]
    bare.done(*alter, "--renew", user=stranger)
    wait(lambda now: now["expires"] >= before["expires"])
    bare.done(*alter, "--expire", "--period", "30min", user=stranger)
    wait(lambda now: now["expires"] < sooner["expires"])
    words = " ".join(bare.done(*alter, "--expire", user=stranger).text.split())
    assert f"can no longer log in with the token {token_id} [token-ended]" in words
    assert not listed(bare, user=stranger)
    assert "does not exist" in bare.fails(1, *alter, "--renew", user=stranger)
    phases = [record["body"]["phase"] for record in bare.records("intent")]
    assert [phase.split()[1] for phase in phases] == [
        "CreateDelegationToken",
        "RenewDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "ExpireDelegationToken",
    ]


def test_validate_sends_nothing(bare: Bare, stranger: Login) -> None:
    """No token is created, and no file."""
    file = bare.folder.path / "token.hmac"
    words = ("alter", "delegation-token", "--create", "--validate", "--hmac-file", str(file))
    assert "Nothing was sent" in bare.done(*words, user=stranger).text
    assert not listed(bare, user=stranger) and not file.exists()


def test_a_token_for_somebody_else(bare: Bare, broker: Broker, stranger: Login) -> None:
    """Needs CreateTokens on that user (KIP-373), whose name the error says; a super user may. The
    owner sees it, and others do not."""
    words = ("alter", "delegation-token", "--create", APPROVED, "--owner", stranger.principal)
    with new_login(broker) as other:
        said = bare.fails(5, *words, user=other)
        assert "DELEGATION_TOKEN_AUTHORIZATION_FAILED" in said
        assert f"Grant CreateTokens on User {stranger.principal}" in " ".join(said.split())
        bare.done(*words)
        (row,) = listed(bare, user=stranger).values()
        assert (row["owner"], row["requester"]) == (stranger.principal, "User:admin")
        assert not listed(bare, user=other)


def test_who_may_see_a_token_may_not_end_it(bare: Bare, broker: Broker, stranger: Login) -> None:
    """The super user sees a token, and is refused by name because it is neither owner nor
    renewer."""
    token_id = create(bare, user=stranger)
    said = bare.fails(5, "alter", "delegation-token", token_id, "--expire", APPROVED)
    assert "DELEGATION_TOKEN_OWNER_MISMATCH" in said
    assert "Run as its owner or as one of its renewers" in " ".join(said.split())
    assert token_id in listed(bare, user=stranger)


def test_a_token_that_is_gone_meanwhile(broker: Broker, stranger: Login) -> None:
    """Kafka's own name for it (error 62)."""
    session = connect(broker, stranger)
    wire = session.context.wire
    made = create_token(wire, None, (), BROKER_DEFAULT, SECONDS)

    def rows() -> Mapping[str, Any]:
        return {row.token_id: row for row in describe_tokens(wire, SECONDS).rows}

    row = eventually(rows, lambda found: made.token_id in found)[made.token_id]
    assert expire_token(wire, row.hmac, AT_ONCE, SECONDS).code == 0
    assert expire_token(wire, row.hmac, AT_ONCE, SECONDS).code == 62
    assert renew_token(wire, row.hmac, BROKER_DEFAULT, SECONDS).code == 62
    session.close()


@pytest.fixture
def without_tokens(exclusive_broker: Broker, bare: Bare) -> Bare:
    """A folder beside a broker without delegation.token.secret.key."""
    bare.folder.broker = exclusive_broker
    bare.config = bare.properties(Login("admin", exclusive_broker.admin_password, "PLAIN"))
    return bare


def test_tokens_are_off(without_tokens: Bare) -> None:
    """`describe` fails and `alter` sends nothing, with the name of the broker's property."""
    said = without_tokens.fails(1, "describe", "delegation-tokens")
    assert "DELEGATION_TOKEN_AUTH_DISABLED" in said and "delegation.token.secret.key" in said
    said = without_tokens.fails(8, "alter", "delegation-token", "--create", APPROVED)
    assert "DELEGATION_TOKEN_AUTH_DISABLED" in said and "delegation.token.secret.key" in said
