"""What counts as a secret of a connector."""

from __future__ import annotations

import pytest

from kafkaform_connect.definitions import is_masked, is_reference, is_secret

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password='


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connection.password", "x"),
        ("clientSecret", "x"),
        ("splunk.hec.token", "x"),
        ("aws.secret.access.key", "x"),
        ("ssl.keystore.key", "x"),
        ("value.converter.basic.auth.user.info", "user:x"),
        ("producer.override.sasl.jaas.config", f'{JAAS}"x";'),
        ("gcp.credentials.json", "{}"),
        ("connection.url", "jdbc:postgresql://db/orders?user=me&password=x"),
        ("connection.url", "mongodb://me:x@db"),
        ("connection.password", "${file:/etc/a:b}x"),
        ("sasl.jaas.config", f'{JAAS}"x" client.secret="${{file:a:b}}";'),
    ],
)
def test_a_secret_is_recognised(key: str, value: str) -> None:
    """By the end of its name, or by a login in the value."""
    assert is_secret(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tasks.max", "1"),
        ("key.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("primary.key", "id"),
        ("aws.access.key.id", "x"),
        ("s3.credentials.provider.class", "x"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login.example/token"),
        ("ssl.keystore.location", "/etc/x"),
        ("errors.tolerance", "all"),
        ("topic", "secrets"),
        ("connection.url", "https://db:8443/a?user=me"),
        ("connection.password", "${file:/etc/a:b}"),
        ("connection.url", "mongodb://me:${env:PASSWORD}@db"),
        ("sasl.jaas.config", f'{JAAS}"${{file:/etc/a:b}}";'),
    ],
)
def test_other_configs_are_shown(key: str, value: str) -> None:
    """Also those whose name has a word of secrets in its middle, and references of config
    providers."""
    assert not is_secret(key, value)


def test_a_plugin_knows_its_own_secrets() -> None:
    """PASSWORD in its definition decides, whatever the name is; a reference stays text."""
    assert is_secret("pin", "1", {"pin"}) and not is_secret("pin", "1")
    assert not is_secret("pin", "${vault:a:b}", {"pin"})


def test_a_mask_is_recognised() -> None:
    """Some services show asterisks in place of a secret; nobody must send them back."""
    assert is_masked("****************") and is_masked("[hidden]") and not is_masked("*")
    assert is_reference("${a:b}${c:d}") and not is_reference("${a:b} c")
