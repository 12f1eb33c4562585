"""Login tokens: from a file or an endpoint, kept while they are valid, and never let out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.secret import Secret
from kafkaform.provider.http.tokens import (
    LoginToken,
    TokenEndpoint,
    TokenSource,
    fetch_token,
)
from kafkaform_kafka.connection.settings import KafkaSettings
from kafkaform_kafka.connection.tokens import make_endpoint, open_token_source, read_token_file

from ....kit.kafka import doors
from ....kit.kafka.token_endpoint import CLIENT, SECRET, Endpoint, serving


@pytest.fixture(scope="module")
def signer() -> doors.Tokens:
    """Signs tokens; nobody here checks the signature."""
    return doors.Tokens(doors.new_key())


@pytest.fixture
def endpoint(signer: doors.Tokens) -> Iterator[Endpoint]:
    """Gives tokens of ten minutes."""
    with serving(lambda: {"access_token": signer.make(), "expires_in": 600}) as served:
        yield served


def asking(url: str, secret: str = SECRET, **more: Any) -> TokenEndpoint:
    """What a provider block says that gets its token there."""
    usual: dict[str, Any] = {"username": CLIENT, "password": Secret(secret), "token_url": url}
    given = {**usual, **more}
    login = KafkaSettings("kafka", ("b:9092",), "SASL_SSL", "OAUTHBEARER", timeout=5.0, **given)
    return make_endpoint(login)


def fault(call: Any, *arguments: Any) -> ConnectError:
    """Why there is no token."""
    with pytest.raises(ConnectError) as caught:
        call(*arguments)
    assert SECRET not in caught.value.message + caught.value.advice
    assert caught.value.advice
    return caught.value


def test_an_endpoint_gives_a_token_for_id_secret_and_scopes(endpoint: Endpoint) -> None:
    """The names of the Mongey provider mean the client credentials grant."""
    token = fetch_token(asking(endpoint.url, scopes=("kafka.read", "kafka.write")))
    assert token.subject == "admin" and token.text.reveal().count(".") == 2
    assert endpoint.asked == [
        {"grant_type": "client_credentials", "scope": "kafka.read kafka.write"}
    ]


def test_an_endpoint_that_wants_the_secret_in_the_body_gets_it_there(endpoint: Endpoint) -> None:
    """Some servers refuse HTTP Basic; the second way is tried once."""
    endpoint.basic = False
    assert fetch_token(asking(endpoint.url)).subject == "admin"
    assert [sorted(form) for form in endpoint.asked] == [
        ["grant_type"],
        ["client_id", "client_secret", "grant_type"],
    ]


def test_a_wrong_client_secret_is_named_and_not_repeated(endpoint: Endpoint) -> None:
    """The endpoint's description may hold anything, so only its error code is passed on."""
    error = fault(fetch_token, asking(endpoint.url, "wrong"))
    assert "refused to give a token: HTTP 401, invalid_client" in error.message
    assert "sasl_password (client secret)" in error.advice


def test_an_endpoint_that_fails_is_named(endpoint: Endpoint) -> None:
    """The user learns which server to look at."""
    endpoint.status = 503
    error = fault(fetch_token, asking(endpoint.url))
    assert endpoint.url in error.message and "HTTP 503" in error.message


def test_an_endpoint_that_is_down_is_named() -> None:
    """Nobody listens there."""
    error = fault(fetch_token, asking("http://127.0.0.1:1/token?key=hidden"))
    assert "http://127.0.0.1:1/token cannot be reached: Connection refused" in error.message
    assert "hidden" not in error.message and "sasl_token_url" in error.advice


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_secret_goes_to_no_other_place(endpoint: Endpoint, status: int) -> None:
    """A redirection is an error, whatever it promises."""
    with serving(lambda: {"access_token": "stolen"}) as other:
        endpoint.status, endpoint.location = status, other.url
        error = fault(fetch_token, asking(endpoint.url))
        assert f"HTTP {status}" in error.message and other.asked == []


@pytest.mark.parametrize(
    "answer",
    [{}, {"access_token": 7}, {"access_token": ""}, {"access_token": "a\x01auth=b"}],
)
def test_an_answer_without_a_usable_token_is_refused(answer: dict[str, Any]) -> None:
    """What is no bearer token must not become part of a login."""
    with serving(lambda: answer) as served:
        assert "without an access_token" in fault(fetch_token, asking(served.url)).message


def test_the_endpoint_is_verified_and_may_have_the_authority_of_ca_cert(
    signer: doors.Tokens, tmp_path: Path
) -> None:
    """https means a certificate that somebody believes; the company's own authority counts."""
    own = doors.authority("company")
    certificate, key = own.issue("login")
    store = tmp_path / "server.pem"
    store.write_text(key + certificate)
    with serving(lambda: {"access_token": signer.make()}, store) as served:
        assert served.url.startswith("https://")
        refused = fault(fetch_token, asking(served.url))
        assert "its certificate is refused: " in refused.message
        assert "ca_cert" in refused.advice
        assert served.asked == []
        assert fetch_token(asking(served.url, ca=own.pem)).subject == "admin"


def test_a_token_is_kept_until_it_is_old_and_then_fetched_again() -> None:
    """Two clients and many connections ask the endpoint once; nobody logs in with an old token."""
    now, given = [1000.0], []

    def fetch() -> LoginToken:
        given.append(now[0])
        return LoginToken(Secret(f"token-{len(given)}"), now[0] + 100)

    tokens = TokenSource(fetch, clock=lambda: now[0])
    assert {tokens.get_token().text.reveal() for _ in range(5)} == {"token-1"}
    now[0] = 1079.0
    assert tokens.get_token().text.reveal() == "token-1"
    now[0] = 1081.0
    assert tokens.get_token().text.reveal() == "token-2"


def test_a_file_is_read_again_when_its_token_gets_old(signer: doors.Tokens, tmp_path: Path) -> None:
    """An orchestrator replaces the file; a long apply logs in with the new one."""
    file, now = tmp_path / "token", [0.0]
    file.write_text(signer.make("first") + "\n")
    settings = KafkaSettings("kafka", ("b:9092",), "SASL_SSL", "OAUTHBEARER", token_file=str(file))
    found = open_token_source(settings)
    assert found is not None
    tokens = TokenSource(found._fetch, clock=lambda: now[0])
    now[0] = tokens.get_token().expires - 601
    assert tokens.get_token().subject == "first"
    file.write_text(signer.make("second"))
    now[0] += 10_000
    assert tokens.get_token().subject == "second"


OTHER_FILES = [
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG\n",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "aaaa.bbbb.cccc",
    "",
    "x" * 100_000,
    "\N{SNOWMAN}",
]


@pytest.mark.parametrize("content", OTHER_FILES)
def test_a_file_that_holds_no_token_is_not_sent_away(content: str, tmp_path: Path) -> None:
    """A reviewed block cannot make the broker receive a key or a password file."""
    file = tmp_path / "secret"
    file.write_text(content)
    error = fault(read_token_file, str(file))
    known = "does not contain a JSON web token", "it has more than 65,536 bytes"
    assert any(cause in error.message for cause in known)
    assert content[:20].strip() == "" or content[:20] not in error.message


def test_a_file_that_is_missing_or_old_is_named(signer: doors.Tokens, tmp_path: Path) -> None:
    """Both are known without asking the broker."""
    gone, old = tmp_path / "gone", tmp_path / "old"
    old.write_text(signer.make(seconds=-5))
    assert f"{gone} cannot be read: No such file" in fault(read_token_file, str(gone)).message
    assert f"sasl_token_file {old} has expired" in fault(read_token_file, str(old)).message


def test_a_token_is_not_shown_by_accident(signer: doors.Tokens) -> None:
    """Neither by printing it nor by printing who holds it."""
    token = LoginToken(Secret(signer.make()), 5.0)
    assert token.text.reveal() not in repr(token)
