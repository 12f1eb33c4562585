"""Provider blocks of HTTP systems: one meaning, and nothing unsafe by omission."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.errors import ConfigurationError
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.provider.http.settings import (
    ATTRIBUTES,
    BasicLogin,
    BearerToken,
    HttpSettings,
    find_faults,
    read_settings,
)
from kafkaform.provider.http.tokens import TokenEndpoint

PW = SecretRef("env", "PW")
SECRETS = {"env:PW": Secret("hunter2-pw")}


def block(**given: Any) -> FrozenMap:
    """A provider block: every attribute, None for what is left out, and the defaults."""
    usual = {one.name: one.default for one in ATTRIBUTES}
    return FrozenMap({**usual, "url": "https://r:8081", **given})


def read(**given: Any) -> HttpSettings:
    return read_settings("registry", block(**given), SECRETS)


def test_an_address_is_enough() -> None:
    """Without a login, verified TLS, thirty seconds, eight calls at once."""
    assert read() == HttpSettings(("https://r:8081",))


def test_what_a_block_means() -> None:
    """Several addresses, a duration as text, and each kind of login."""
    settings = read(url="https://a/x/, https://b", operation_timeout="2m", concurrency=3)
    assert (settings.urls, settings.timeout, settings.concurrency) == (
        ("https://a/x", "https://b"),
        120.0,
        3,
    )
    basic = read(username="ci", password=PW).auth
    assert isinstance(basic, BasicLogin) and basic.password == SECRETS["env:PW"]
    assert isinstance(read(token=PW).auth, BearerToken)
    oauth = read(
        oauth_token_url="https://t", oauth_client_id="ci", oauth_client_secret=PW, ca_cert="x"
    ).auth
    assert isinstance(oauth, TokenEndpoint) and oauth.ca == "x"


FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "no address": ("url", {"url": " , "}),
    "no scheme": ("url", {"url": "r:8081"}),
    "another scheme": ("url", {"url": "ftp://r"}),
    "a port that is none": ("url", {"url": "https://r:x"}),
    "a space": ("url", {"url": "https://r /x"}),
    "a query": ("url", {"url": "https://r?x=1"}),
    "a login in the address": ("url", {"url": "https://ci:pw@r"}),
    "a login in the clear": ("url", {"url": "http://r", "username": "ci", "password": PW}),
    "a token in the clear": ("url", {"url": "http://r", "token": PW}),
    "no password": ("username", {"username": "ci"}),
    "no user": ("username", {"password": PW}),
    "two logins": ("token", {"username": "ci", "password": PW, "token": PW}),
    "a colon": ("username", {"username": "a:b", "password": PW}),
    "headers in the clear": ("url", {"url": "http://r", "headers": FrozenMap(a=PW)}),
    "two logins of which one is a header": (
        "headers",
        {"headers": FrozenMap(authorization=PW), "token": PW},
    ),
    "a header of HTTP itself": ("headers", {"headers": FrozenMap({"Content-Length": PW})}),
    "a header for another host": ("headers", {"headers": FrozenMap(Host=PW)}),
    "a header twice": ("headers", {"headers": FrozenMap(A=PW, a=PW)}),
    "no name of a header": ("headers", {"headers": FrozenMap({"a b": PW})}),
    "no client": ("oauth_token_url", {"oauth_token_url": "https://t", "oauth_client_id": "c"}),
    "scopes alone": ("oauth_token_url", {"oauth_scopes": ("a",)}),
    "an endpoint in the clear": (
        "oauth_token_url",
        {"oauth_token_url": "http://t", "oauth_client_id": "c", "oauth_client_secret": PW},
    ),
    "a key alone": ("client_key", {"client_key": "k.pem"}),
    "a certificate without TLS": (
        "client_cert",
        {"url": "http://127.0.0.1:1", "client_cert": "c", "client_key": "k"},
    ),
    "no duration": ("operation_timeout", {"operation_timeout": "soon"}),
    "no concurrency": ("concurrency", {"concurrency": 0}),
    "too much of it": ("concurrency", {"concurrency": 65}),
}


@pytest.mark.parametrize(("name", "given"), FAULTS.values(), ids=FAULTS)
def test_each_fault_names_its_attribute(name: str, given: dict[str, Any]) -> None:
    """And what to do; opening refuses what the check finds, and neither shows a login."""
    found = find_faults(block(**given))
    assert [one for one, _ in found][:1] == [name]
    assert all(fault.advice for _, fault in found)
    with pytest.raises(ConfigurationError) as caught:
        read(**given)
    said = caught.value.message + caught.value.advice
    assert 'provider "registry"' in said and "hunter2" not in said and "ci:pw" not in said


def test_headers_are_secrets_by_name() -> None:
    """Or the lines of one secret, as a variable of the environment has them; also a login of
    another kind."""
    named = FrozenMap({"target-sr-cluster": PW, "Authorization": PW})
    assert read(headers=named).headers == dict.fromkeys(named, SECRETS["env:PW"])
    lines = {"env:PW": Secret("target-sr-cluster: lsrc-1\nConfluent-Identity-Pool-Id: pool:2\n\n")}
    assert read_settings("registry", block(headers=PW), lines).headers == {
        "target-sr-cluster": Secret("lsrc-1"),
        "Confluent-Identity-Pool-Id": Secret("pool:2"),
    }
    with pytest.raises(ConfigurationError, match="target-sr-cluster in headers refers to env:PW"):
        read_settings("registry", block(headers=named), {})


@pytest.mark.parametrize("value", ["", " pool-9", "a\r\nX: y", "ü", "a" * 8200])
def test_a_value_that_no_header_can_carry_is_not_repeated(value: str) -> None:
    """Known once the secret is there, and before anything is sent."""
    headers = FrozenMap({"target-sr-cluster": PW})
    with pytest.raises(ConfigurationError, match="'target-sr-cluster' in headers") as caught:
        read_settings("registry", block(headers=headers), {"env:PW": Secret(value)})
    assert not value or value not in caught.value.message + caught.value.advice


@pytest.mark.parametrize("lines", ["Bearer abcdef", "abcdef", "x-pool: 9\nabcdef"])
def test_a_line_without_a_name_is_not_repeated(lines: str) -> None:
    """It may be the secret alone."""
    with pytest.raises(ConfigurationError, match="is no name of a header") as caught:
        read_settings("registry", block(headers=PW), {"env:PW": Secret(lines)})
    assert "abcdef" not in caught.value.message + caught.value.advice


@pytest.mark.parametrize("token", ["Bearer a.b.c", "x y", "a\r\nX: y", "ü"])
def test_a_token_that_no_header_can_carry_is_not_repeated(token: str) -> None:
    """Known once the secret is there, and before anything is sent."""
    with pytest.raises(ConfigurationError, match="token contains characters") as caught:
        read_settings("registry", block(token=PW), {"env:PW": Secret(token)})
    assert token not in caught.value.message + caught.value.advice


def test_plain_http_is_for_this_computer_or_without_a_login() -> None:
    """A sandbox has no certificates."""
    for url in ("http://127.0.0.1:8081", "http://localhost:1", "http://[::1]:1"):
        assert not find_faults(block(url=url, username="ci", password=PW))
    assert not find_faults(block(url="http://registry.internal"))


def test_a_reference_without_a_value_is_named() -> None:
    """It is not an empty password."""
    with pytest.raises(ConfigurationError, match="password refers to env:PW"):
        read_settings("registry", block(username="ci", password=PW), {})
