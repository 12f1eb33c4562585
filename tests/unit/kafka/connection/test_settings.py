"""The provider block: one meaning for both clients, and nothing unsafe by omission."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kafkaform.core.errors import ConfigurationError, KafkaformError
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef, freeze
from kafkaform.provider.block_checks import parse_seconds
from kafkaform_kafka.connection.login_attributes import KerberosSettings
from kafkaform_kafka.connection.provider_block import CONFIG
from kafkaform_kafka.connection.settings import (
    KafkaSettings,
    make_client_config,
    make_librdkafka_config,
    read_settings,
)
from kafkaform_kafka.publishing import publish
from kafkaform_kafka.wire.connections import TokenScram, prepare_kerberos

from ....kit.kafka.terraform import desired

SECRETS = {"env:PW": Secret("hunter2")}
LOGIN = {"sasl_username": "ci", "sasl_password": SecretRef("env", "PW")}


def read(**given: Any) -> KafkaSettings:
    """Settings of a block with one broker."""
    block = {"bootstrap_servers": ["b1:9092", "b2:9092"], **given}
    frozen = freeze(block)
    assert isinstance(frozen, FrozenMap)
    return read_settings("kafka.eu", frozen, SECRETS)


@pytest.mark.parametrize(
    ("given", "protocol"),
    [
        ({}, "PLAINTEXT"),
        (LOGIN, "SASL_SSL"),
        ({**LOGIN, "tls_enabled": False}, "SASL_PLAINTEXT"),
        ({**LOGIN, "tls_enabled": True}, "SASL_SSL"),
        ({"tls_enabled": True}, "SSL"),
        ({"ca_cert": "ca.pem"}, "SSL"),
        ({**LOGIN, "security_protocol": "SASL_PLAINTEXT"}, "SASL_PLAINTEXT"),
    ],
)
def test_the_protocol_follows_from_what_is_given(given: dict[str, Any], protocol: str) -> None:
    """A password goes out in the clear only if the block says so."""
    assert read(**given).protocol == protocol


@pytest.mark.parametrize(
    ("written", "mechanism"),
    [
        (None, "PLAIN"),
        ("plain", "PLAIN"),
        ("scram-sha256", "SCRAM-SHA-256"),
        ("scram-sha512", "SCRAM-SHA-512"),
        ("SCRAM-SHA-512", "SCRAM-SHA-512"),
    ],
)
def test_mechanisms_have_two_spellings(written: str | None, mechanism: str) -> None:
    """Configurations of the Mongey provider keep their words."""
    assert read(**LOGIN, sasl_mechanism=written).mechanism == mechanism


URL = "https://login.example.com/token"
ENDPOINT = {**LOGIN, "sasl_mechanism": "oauthbearer", "sasl_token_url": URL}
FILE = {"sasl_mechanism": "OAUTHBEARER", "sasl_token_file": "token"}

TICKET = {"sasl_mechanism": "gssapi"}
KEYTAB = {
    **TICKET,
    "sasl_kerberos_principal": "ci@EXAMPLE.COM",
    "sasl_kerberos_keytab": "ci.keytab",
}

REFUSED = [
    ({"bootstrap_servers": []}, "bootstrap_servers is empty"),
    ({"skip_tls_verify": True}, "others on the network"),
    ({"security_protocol": "TLS"}, "unknown"),
    ({"sasl_mechanism": "DIGEST-MD5"}, "not supported"),
    ({**LOGIN, "sasl_mechanism": "gssapi"}, "sasl_username has no effect with gssapi"),
    ({**TICKET, "security_protocol": "SSL"}, "sasl_mechanism has no effect with SSL"),
    ({**TICKET, "sasl_kerberos_keytab": "a"}, "needs sasl_kerberos_principal"),
    (
        {**KEYTAB, "sasl_kerberos_ticket_cache": "b"},
        "sasl_kerberos_keytab and sasl_kerberos_ticket_cache exclude each other",
    ),
    ({**TICKET, "sasl_kerberos_service_name": "kafka/b1"}, "the first part of a principal"),
    ({**LOGIN, "sasl_kerberos_keytab": "a"}, 'belongs to sasl_mechanism = "gssapi"'),
    ({**LOGIN, "sasl_token_auth": True}, "needs a SCRAM mechanism"),
    ({"sasl_mechanism": "oauthbearer"}, "needs either sasl_token_url or sasl_token_file"),
    ({**ENDPOINT, "sasl_token_file": "token"}, "not both"),
    ({**ENDPOINT, "sasl_username": None}, "needs a client id"),
    ({**ENDPOINT, "security_protocol": "SSL"}, "no effect"),
    ({**FILE, **LOGIN}, "sasl_username has no effect with sasl_token_file"),
    ({**FILE, "security_protocol": "PLAINTEXT"}, "sasl_mechanism has no effect"),
    ({**LOGIN, "sasl_oauth_scopes": ["kafka"]}, "belongs to"),
    ({"security_protocol": "SASL_SSL"}, "needs a login"),
    ({**LOGIN, "security_protocol": "SSL"}, "no effect"),
    ({"client_cert": "c.pem"}, "belong together"),
    ({"operation_timeout": 0}, "not a duration"),
    ({"operation_timeout": "soon"}, "not a duration"),
    ({**LOGIN, "sasl_password": SecretRef("env", "OTHER")}, "env:OTHER, which has no value"),
]


@pytest.mark.parametrize(("given", "expected"), REFUSED)
def test_unusable_settings_are_refused_with_advice(given: dict[str, Any], expected: str) -> None:
    """Each fault names the provider instance and what to do."""
    with pytest.raises(ConfigurationError) as caught:
        read(**given)
    assert any(expected in item.summary for item in caught.value.diagnostics)
    assert all(item.advice and "kafka.eu" in item.summary for item in caught.value.diagnostics)


UNSAFE = [
    "http://login.example.com/token",
    "http://10.0.0.1/token",
    "http://127.0.0.1.example.com/token",
    "http://localhost.example.com/token",
    "https://user:key@login.example.com/token",
    "https://",
    "//login.example.com/token",
    "file:///etc/passwd",
    "ftp://localhost/token",
    "http://[::1",
    "https://login.example.com:port/",
]


@pytest.mark.parametrize("url", UNSAFE)
def test_a_client_secret_goes_to_https_only(url: str) -> None:
    """Who writes another address gets an error before anything is sent."""
    with pytest.raises(ConfigurationError) as caught:
        read(**{**ENDPOINT, "sasl_token_url": url})
    assert "must begin with https://" in caught.value.diagnostics[0].summary


@pytest.mark.parametrize(
    "url", [URL, "http://127.0.0.1:9/t", "http://localhost/t", "http://[::1]:9/t"]
)
def test_a_token_endpoint_is_https_or_here(url: str) -> None:
    """On this very computer nobody reads along."""
    settings = read(**{**ENDPOINT, "sasl_token_url": url}, sasl_oauth_scopes=["a", "b"])
    assert (settings.token_url, settings.scopes) == (url, ("a", "b"))
    assert (settings.protocol, settings.mechanism) == ("SASL_SSL", "OAUTHBEARER")
    assert settings.principal is None


def test_a_token_file_is_a_login() -> None:
    """With nothing said about TLS a token travels over TLS, as a password does."""
    settings = read(**FILE)
    assert (settings.protocol, settings.token_file) == ("SASL_SSL", "token")
    assert make_librdkafka_config(settings)["sasl.mechanism"] == "OAUTHBEARER"
    assert make_client_config(settings)["sasl_mechanism"] == "OAUTHBEARER"


def test_a_ticket_is_a_login() -> None:
    """It travels over TLS by default, like a password. Only the broker knows the principal."""
    settings = read(**KEYTAB)
    assert (settings.protocol, settings.mechanism) == ("SASL_SSL", "GSSAPI")
    assert settings.kerberos == KerberosSettings("kafka", "ci@EXAMPLE.COM", "ci.keytab")
    assert settings.principal is None and settings.username is None
    assert read(**KEYTAB, principal="User:ci").principal == "User:ci"
    assert read(**TICKET).kerberos == KerberosSettings("kafka")


def test_a_delegation_token_is_a_login() -> None:
    """With the id as user and the HMAC as password; only the broker knows the owner."""
    settings = read(**LOGIN, sasl_mechanism="scram-sha256", sasl_token_auth=True)
    assert settings.token_auth and settings.principal is None
    assert not read(**LOGIN, sasl_mechanism="scram-sha256", sasl_token_auth=False).token_auth


def test_a_token_is_told_from_a_user() -> None:
    """SCRAM's first message has the extension of KIP-48, which the proof covers (RFC 5802)."""
    scram = TokenScram("token-id", "hmac", "SCRAM-SHA-256")
    first = scram.auth_bytes()
    assert first.startswith(b"n,,n=token-id,r=") and first.endswith(b",tokenauth=true")
    assert scram._scram_client.auth_message == first.removeprefix(b"n,,")


def test_kerberos_needs_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names the extra; and a keytab that is not there, or that nobody writes to."""
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigurationError, match="needs the Python package gssapi") as caught:
        prepare_kerberos(KerberosSettings("kafka"))
    assert "[kerberos]" in caught.value.advice
    monkeypatch.setitem(sys.modules, "gssapi", ModuleType("gssapi"))
    with pytest.raises(ConfigurationError, match="nowhere.keytab cannot be read"):
        prepare_kerberos(KerberosSettings("kafka", "ci@EXAMPLE.COM", "nowhere.keytab"))
    os.mkfifo(tmp_path / "pipe")
    for place in ({"keytab": str(tmp_path / "pipe")}, {"ticket_cache": f"FILE:{tmp_path}/pipe"}):
        with pytest.raises(ConfigurationError, match="cannot be read: it is a named pipe"):
            prepare_kerberos(KerberosSettings("kafka", "ci@EXAMPLE.COM", **place))


def test_records_are_not_published_with_a_login_that_librdkafka_lacks() -> None:
    """A named refusal, before anything connects."""
    config = FrozenMap(bootstrap_servers=("b:1",), **TICKET)
    with pytest.raises(ConfigurationError, match="cannot publish records"):
        publish("kafka", config, {}, "topic", "key", [])


DANGEROUS = [
    "plugin.library.paths",
    "plugin_library_paths",
    "ssl.engine.location",
    "ssl.engine.id",
    "ssl.provider",
    "ssl.providers",
    "ssl.keystore.location",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
    "sasl.jaas.config",
    "sasl_jaas_config",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.service.name",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.jwt.template.file",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "enable.sasl.oauthbearer.unsecure.jwt",
    "https.ca.location",
    "security.providers",
    "metric.reporters",
    "interceptor.classes",
    "socket_factory",
    "debug",
    "log_cb",
]


@pytest.mark.parametrize("name", DANGEROUS)
def test_settings_of_a_client_that_could_do_harm_do_not_exist(name: str) -> None:
    """A provider block takes what its schema names, and the clients get what the mapping names:
    no plug-in, command, foreign file or unverified TLS gets through."""
    assert name not in CONFIG.attributes
    assert not any(name in item.aliases for item in CONFIG.attributes.values())
    everything = read(**ENDPOINT, ca_cert=None, client_key_passphrase=SecretRef("env", "PW"))
    assert name not in make_librdkafka_config(everything) and name not in make_client_config(
        everything
    )


def test_an_unknown_setting_is_refused_at_its_line() -> None:
    """Nothing is passed on because somebody wrote it down."""
    text = 'provider "kafka" {\n  bootstrap_servers = ["b:1"]\n  sasl_jaas_config = "x"\n}\n'
    (found,) = desired(text).diagnostics
    assert found.range is not None and found.range.line == 3
    assert "sasl_jaas_config" in found.summary


def test_all_faults_are_said_at_once() -> None:
    """Nobody wants to meet them one by one."""
    with pytest.raises(ConfigurationError) as caught:
        read(bootstrap_servers=[], skip_tls_verify=True, operation_timeout=-1)
    assert len(caught.value.diagnostics) == 3


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (30, 30.0),
        ("30s", 30.0),
        ("500ms", 0.5),
        ("2m", 120.0),
        ("1.5", 1.5),
        (0, None),
        ("-1", None),
        ("0s", None),
        ("0.1ms", None),
        ("1ms", 0.001),
        ("2h", None),
        (999999999, None),
        (True, None),
        (None, None),
        ("nan", None),
    ],
)
def test_durations(written: Any, expected: float | None) -> None:
    """A timeout of zero or less has no meaning on the wire and is never sent."""
    assert parse_seconds(written) == expected


def test_the_principal_is_derived_from_a_login_and_nothing_else() -> None:
    """A certificate's principal depends on rules that only the broker knows."""
    assert read(**LOGIN).principal == "User:ci"
    assert read(tls_enabled=True).principal is None
    assert read(tls_enabled=True, principal="User:CN=ci").principal == "User:CN=ci"


def test_both_clients_get_the_same_connection() -> None:
    """One mapping: what one client uses, the other uses too."""
    settings = read(**LOGIN, tls_enabled=False, sasl_mechanism="scram-sha512")
    native, pure = make_librdkafka_config(settings), make_client_config(settings)
    assert native["bootstrap.servers"].split(",") == pure["bootstrap_servers"]
    assert native["security.protocol"] == pure["security_protocol"] == "SASL_PLAINTEXT"
    assert native["sasl.mechanism"] == pure["sasl_mechanism"] == "SCRAM-SHA-512"
    assert native["sasl.password"] == pure["sasl_plain_password"] == "hunter2"


def test_secrets_are_not_in_the_settings_text() -> None:
    """Printing settings by accident shows no password."""
    assert "hunter2" not in repr(read(**LOGIN))


def test_a_missing_certificate_is_named() -> None:
    """The file that is not there is in the message."""
    with pytest.raises(KafkaformError, match="no-such-ca.pem"):
        make_client_config(read(ca_cert="no-such-ca.pem"))


def test_pem_text_that_holds_no_certificate_is_refused() -> None:
    """Broken certificates are a fault of the settings, not a traceback."""
    with pytest.raises(ConfigurationError, match="ca_cert is not a certificate in PEM form"):
        make_client_config(read(ca_cert="-----BEGIN nonsense"))


def test_every_setting_is_documented_and_secrets_are_marked() -> None:
    """Passwords are secret references; the reference docs come from this schema."""
    assert all(item.doc for item in CONFIG.attributes.values())
    secret = {name for name, item in CONFIG.attributes.items() if item.secret}
    keys = {"sasl_aws_secret_key", "sasl_aws_token"}
    stores = {"ssl_truststore_password", "ssl_keystore_password"}
    assert secret == {"sasl_password", "client_key_passphrase", *keys, *stores}
