"""A provider block of Terraform's Mongey provider: what goes on working, and what is said of the
rest."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.core.errors import ConfigurationError
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.connection.failures import connect_error
from kafkaform_kafka.connection.provider_block import CONFIG, check
from kafkaform_kafka.connection.settings import KafkaSettings, read_settings
from kafkaform_kafka.provider import PROVIDER

from ....kit.kafka.terraform import desired, faults

SERVERS = 'bootstrap_servers = ["b1:9092"]'
SECRETS = {"env:PW": "hunter2", "variable:password": "hunter2"}

ATTRIBUTES = [
    "bootstrap_servers",
    "ca_cert",
    "ca_cert_file",
    "client_cert",
    "client_cert_file",
    "client_key",
    "client_key_file",
    "client_key_passphrase",
    "kafka_version",
    "sasl_aws_access_key",
    "sasl_aws_container_authorization_token_file",
    "sasl_aws_container_credentials_full_uri",
    "sasl_aws_creds_debug",
    "sasl_aws_external_id",
    "sasl_aws_profile",
    "sasl_aws_region",
    "sasl_aws_role_arn",
    "sasl_aws_secret_key",
    "sasl_aws_shared_config_files",
    "sasl_aws_token",
    "sasl_mechanism",
    "sasl_oauth_scopes",
    "sasl_password",
    "sasl_token_url",
    "sasl_username",
    "skip_tls_verify",
    "timeout",
    "tls_enabled",
]
"""Those of its provider block, version 0.13.1."""


def block(*lines: str, servers: str = SERVERS) -> str:
    """A provider block with one broker and these lines."""
    return "\n".join(('provider "kafka" {', servers, *lines, "}", ""))


def config(*lines: str, before: str = "", servers: str = SERVERS) -> FrozenMap:
    """The block's values as a session gets them; the language has no objection."""
    found = desired(block(*lines, servers=servers) + before)
    assert found.diagnostics == ()
    return found.providers["kafka"].config


def opened(*lines: str, before: str = "", servers: str = SERVERS) -> KafkaSettings:
    """The settings that the block means."""
    return read_settings("kafka", config(*lines, before=before, servers=servers), SECRETS)


def objections(*lines: str) -> list[tuple[str, Severity, str, str]]:
    """What the provider says of a block that its schema lets pass."""
    return [
        (name, item.severity, item.summary, item.advice) for name, item in check(config(*lines))
    ]


# ── what goes on working ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_attribute_is_known(name: str) -> None:
    """No attribute of such a block is answered with "there is no argument"."""
    assert CONFIG.find(name) is not None


def test_a_scram_login_needs_no_change() -> None:
    """A password in a sensitive variable, its mechanism in lower case, a timeout in seconds."""
    variable = 'variable "password" {\n  sensitive = true\n  default   = "hunter2"\n}\n'
    settings = opened(
        'sasl_mechanism = "scram-sha512"',
        'sasl_username = "terraform"',
        "sasl_password = var.password",
        "timeout = 90",
        before=variable,
    )
    assert (settings.protocol, settings.mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (settings.username, settings.password) == ("terraform", Secret("hunter2"))
    assert settings.timeout == 90.0


@pytest.mark.parametrize("suffix", ["", "_file"])
def test_mutual_tls_needs_no_change(suffix: str) -> None:
    """Certificates under their old names and their new ones."""
    settings = opened(
        "tls_enabled = true",
        f'ca_cert{suffix} = "ca.pem"',
        f'client_cert{suffix} = "client.pem"',
        f'client_key{suffix} = "client.key"',
        "skip_tls_verify = false",
    )
    assert settings.protocol == "SSL"
    assert (settings.ca, settings.certificate) == ("ca.pem", "client.pem")
    assert settings.key == "client.key"


def test_a_module_without_a_login_gives_empty_texts() -> None:
    """Empty text counts as left out, as there, even where a reference leads to it."""
    values = config(
        'sasl_username = ""',
        "sasl_password = var.password",
        'ca_cert = ""',
        'sasl_token_url = ""',
        "sasl_aws_creds_debug = false",
        before='variable "password" {\n  sensitive = true\n  default   = ""\n}\n',
    )
    assert check(values) == ()
    settings = read_settings("kafka", values, {"variable:password": ""})
    assert (settings.protocol, settings.username, settings.ca) == ("PLAINTEXT", None, None)


def test_servers_from_a_split_text_are_trimmed() -> None:
    """Blanks around a server and a comma too many do no harm."""
    servers = 'bootstrap_servers = split(",", "b1:9092, b2:9092,")'
    assert opened(servers=servers).servers == ("b1:9092", "b2:9092")


def test_the_version_is_ignored_with_a_note() -> None:
    """kafka_version changes nothing, and the user is told so."""
    assert objections('kafka_version = "3.6.0"') == [
        (
            "kafka_version",
            Severity.WARNING,
            "kafka_version has no effect: versions are negotiated with each broker",
            "remove it",
        )
    ]
    assert opened('kafka_version = "3.6.0"').servers == ("b1:9092",)


def test_a_mechanism_without_a_user_is_noted() -> None:
    """The connection has no login then, there as here; here somebody says so."""
    ((name, severity, summary, _),) = objections('sasl_mechanism = "plain"')
    assert (name, severity) == ("sasl_mechanism", Severity.WARNING)
    assert summary == "sasl_mechanism has no effect without sasl_username"


# ── what must change ────────────────────────────────────────────────────────────────────


def test_a_literal_password_is_refused_at_its_line_and_not_repeated() -> None:
    """The one change that most blocks need says what to write instead."""
    text = block('sasl_username = "ci"', 'sasl_password = "hunter2"')
    (found,) = desired(text).diagnostics
    assert found.range is not None and found.range.line == 4
    assert "secret_env(" in found.advice and "sensitive = true" in found.advice
    assert "hunter2" not in repr(found)


def test_both_names_of_one_certificate_are_refused() -> None:
    """There the newer name wins; here nobody has to know that."""
    text = block('ca_cert = "a.pem"', 'ca_cert_file = "b.pem"')
    assert faults(text) == ['4: "ca_cert_file" and "ca_cert" are the same argument']


AWS = (
    'sasl_mechanism = "aws-iam"',
    'sasl_aws_region = "eu-west-1"',
    'sasl_aws_role_arn = "arn:aws:iam::1:role/kafka"',
)
OAUTH = ('sasl_mechanism = "oauthbearer"', 'sasl_token_url = "https://login/token"')
OAUTH_LOGIN = ('sasl_username = "id"', 'sasl_password = secret_env("PW")')
REFUSED = [
    (
        (*AWS, 'sasl_aws_shared_config_files = ["aws.ini"]'),
        "sasl_aws_shared_config_files",
        "is not supported",
        "set AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE in the environment",
    ),
    (
        (*AWS, 'sasl_aws_container_credentials_full_uri = "http://a/b"'),
        "sasl_aws_container_credentials_full_uri",
        "is not supported",
        "set AWS_CONTAINER_CREDENTIALS_FULL_URI in the environment",
    ),
    (OAUTH, "sasl_token_url", "needs a client id and its secret", "sasl_username and"),
    (
        OAUTH[:1],
        "sasl_mechanism",
        "needs either sasl_token_url or sasl_token_file",
        "token endpoint",
    ),
    (OAUTH[1:], "sasl_token_url", 'sasl_mechanism = "oauthbearer"', "or remove it"),
    (AWS[1:2], "sasl_aws_region", 'belongs to sasl_mechanism = "aws-iam"', "or remove it"),
    (("skip_tls_verify = true",), "skip_tls_verify", "others on the network", "ca_cert"),
    (("timeout = 0",), "operation_timeout", "not a duration", "30s"),
]


@pytest.mark.parametrize(("lines", "name", "summary", "advice"), REFUSED)
def test_what_is_not_supported_is_named_with_the_way_out(
    lines: tuple[str, ...], name: str, summary: str, advice: str
) -> None:
    """The schema takes the word; the check blames that attribute, and no session is opened."""
    ((blamed, severity, said, todo),) = objections(*lines)
    assert (blamed, severity) == (name, Severity.ERROR)
    assert summary in said and advice in todo
    with pytest.raises(ConfigurationError) as caught:
        opened(*lines)
    assert summary in caught.value.diagnostics[0].summary


def test_each_fault_stands_at_its_line() -> None:
    """Everything that is wrong with a block is told in one run, at the arguments to change."""
    text = block(
        "skip_tls_verify = true",
        'sasl_aws_region = "eu-west-1"',
        "sasl_aws_creds_debug = true",
        'kafka_version = "3.6.0"',
        "timeout = 0",
    )
    assert faults(text, checked=True) == [
        "3: skip_tls_verify = true is refused: others on the network could read the password",
        '4: sasl_aws_region belongs to sasl_mechanism = "aws-iam"',
        "5: sasl_aws_creds_debug has no effect: a login that AWS refuses says whose credentials it "
        "used",
        "6: kafka_version has no effect: versions are negotiated with each broker",
        "7: operation_timeout '0' is not a duration over 0 and up to an hour",
    ]


def test_a_login_with_aws_keys_needs_no_change() -> None:
    """Region and role under their old names; the secret parts of a key are references."""
    login = opened(*AWS).aws_login
    assert login is not None
    assert (login.region, login.role) == ("eu-west-1", "arn:aws:iam::1:role/kafka")
    key = ('sasl_aws_access_key = "AKIA"', 'sasl_aws_secret_key = secret_env("PW")')
    login = opened(AWS[0], AWS[1], *key).aws_login
    assert login is not None and login.secret_key == Secret("hunter2")


def test_keys_of_aws_are_references_and_never_shown() -> None:
    """Even an attribute that has no effect does not bring its value into the open."""
    text = block('sasl_aws_secret_key = "hunter2"')
    assert "hunter2" not in repr(desired(text).diagnostics)
    values = config('sasl_aws_secret_key = secret_env("PW")')
    assert "hunter2" not in repr(check(values))
    assert [name for name, _ in check(values)] == ["sasl_aws_secret_key"]


def test_a_password_without_a_user_is_refused_once_it_is_known() -> None:
    """It would be left out of the login without a word."""
    with pytest.raises(ConfigurationError, match="sasl_password has no effect"):
        opened('sasl_password = secret_env("PW")')


def test_every_blamed_attribute_is_in_the_schema() -> None:
    """Whoever shows these faults can find their place."""
    files = 'sasl_aws_shared_config_files = ["a"]'
    lines = [*AWS, files, *OAUTH[1:], "skip_tls_verify = true", "timeout = -1"]
    lines.append('kafka_version = "2"')
    blamed = [name for name, *_ in objections(*lines, 'client_cert = "c.pem"')]
    assert len(blamed) == 6
    assert set(blamed) <= CONFIG.attributes.keys()
    nowhere = FrozenMap({"bootstrap_servers": ()})
    assert PROVIDER.check(nowhere)[0][0] == "bootstrap_servers"


# ── what there came from the environment ────────────────────────────────────────────────


def test_a_failed_connection_names_variables_that_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A block that relied on the environment is told which attributes to write."""
    for name in ("KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"):
        monkeypatch.setenv(name, "hunter2")
    bare = KafkaSettings("kafka", ("b1:9092",), "PLAINTEXT")
    advice = connect_error(bare, {}).advice
    assert "KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD" in advice
    assert "write sasl_username, sasl_password into it" in advice
    assert "tls_enabled = true" in advice
    assert "hunter2" not in advice


def test_a_block_that_says_everything_hears_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the block gives is what counts, there too."""
    monkeypatch.setenv("KAFKA_SASL_USERNAME", "other")
    full = KafkaSettings("kafka", ("b1:9092",), "SASL_SSL", "PLAIN", "ci", Secret("hunter2"))
    advice = connect_error(full, {}).advice
    assert "KAFKA_SASL_USERNAME" not in advice and "tls_enabled" not in advice
