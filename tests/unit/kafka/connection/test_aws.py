"""Logins with AWS keys: whose credentials sign, for which region, and what is said without them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import ConfigurationError, ConnectError
from kafkaform.core.installation import render_extra_command
from kafkaform.core.secret import Secret, watch_secrets
from kafkaform.core.value import FrozenMap, SecretRef, freeze
from kafkaform_kafka.connection import provider_block, tokens
from kafkaform_kafka.connection.failures import ConnectionFailure, FailureKind, connect_error
from kafkaform_kafka.connection.login_attributes import AwsLogin, find_region
from kafkaform_kafka.connection.settings import (
    KafkaSettings,
    fence_logs,
    make_client_config,
    make_librdkafka_config,
    read_settings,
)

from ....kit.kafka.aws import (
    REGION,
    ROLE,
    SECRETS,
    TEMPORARY,
    USER,
    Keys,
    Sts,
    check_token,
    leave_aws,
    serving_sts,
    use_keys,
)

ARN = "arn:aws:iam::123456789012:role/kafka"
MSK = "b-1.orders.a1b2c3.c4.kafka.eu-west-1.amazonaws.com:9098"
REFERENCES = {"env:SECRET": Secret(TEMPORARY.secret), "env:TOKEN": Secret(TEMPORARY.token)}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home without credentials."""
    leave_aws(monkeypatch, str(tmp_path))
    return tmp_path


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    """An STS of our own, which gives every role away."""
    with serving_sts() as served:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", served.url)
        yield served


def read(server: str = MSK, **given: Any) -> KafkaSettings:
    """The settings of a block with aws-iam."""
    block = {"bootstrap_servers": [server], "sasl_mechanism": "aws-iam", **given}
    frozen = freeze(block)
    assert isinstance(frozen, FrozenMap)
    return read_settings("kafka", frozen, REFERENCES)


def sign(settings: KafkaSettings) -> str:
    """A token by these settings, as a session gets it."""
    import aws_msk_iam_sasl_signer  # noqa: F401  # without the extra the test is skipped

    source = tokens.open_token_source(settings)
    assert source is not None
    return source.get_token().text.reveal()


def refusal(settings: KafkaSettings) -> str:
    """What is said if there is no token: one line, without secrets."""
    with pytest.raises(ConnectError) as caught:
        sign(settings)
    said = f"{caught.value.message} -> {caught.value.advice}"
    assert said.startswith("no token to log in with: ") and "\n" not in said
    assert not [secret for secret in SECRETS if secret in said]
    return said


def write_profile(home: Path, name: str, keys: Keys) -> None:
    text = f"[{name}]\naws_access_key_id = {keys.access}\naws_secret_access_key = {keys.secret}\n"
    (home / "credentials").write_text(
        text + (f"aws_session_token = {keys.token}\n" if keys.token else "")
    )


# ── what a block means ──────────────────────────────────────────────────────────────────


def test_nothing_more_than_the_mechanism_is_needed() -> None:
    """On the wire it is OAUTHBEARER, over TLS unless the block says otherwise; the region is in
    the names of MSK's brokers, and only the broker knows the principal."""
    settings = read()
    assert (settings.protocol, settings.mechanism) == ("SASL_SSL", "OAUTHBEARER")
    assert settings.aws_login == AwsLogin(region=REGION)
    assert settings.principal is None
    assert make_client_config(settings)["sasl_mechanism"] == "OAUTHBEARER"
    assert make_librdkafka_config(settings)["sasl.mechanism"] == "OAUTHBEARER"


def test_an_explicit_region_wins() -> None:
    """As for a cluster behind a name of one's own, or one in a region that the name conceals."""
    login = read(sasl_aws_region="us-gov-west-1").aws_login
    assert login is not None and login.region == "us-gov-west-1"


@pytest.mark.parametrize(
    ("servers", "region"),
    [
        (["boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098"], "us-east-1"),
        (["b-1.x.c2.kafka.cn-north-1.amazonaws.com.cn:9098"], "cn-north-1"),
        ([MSK, "b-2.orders.a1b2c3.c4.kafka.eu-west-1.amazonaws.com:9098"], REGION),
        (["kafka.example.com:9098", MSK], REGION),
        ([MSK, "b-1.x.c2.kafka.us-east-1.amazonaws.com:9098"], None),
        (["b-1.x.kafka.eu-west-1.amazonaws.com.example.org:9098"], None),
        (["127.0.0.1:9098"], None),
    ],
)
def test_the_region_in_host_names(servers: list[str], region: str | None) -> None:
    """Amazon's names have it; names that only begin like these, or that disagree, do not count."""
    assert find_region(servers) == region


REFUSED = [
    ({"sasl_username": "a"}, "sasl_username has no effect with aws-iam"),
    ({"sasl_aws_access_key": "AKIA"}, "no effect without sasl_aws_secret_key"),
    ({"sasl_aws_secret_key": SecretRef("env", "SECRET")}, "without sasl_aws_access_key"),
    ({"sasl_aws_external_id": "x"}, "no effect without sasl_aws_role_arn"),
    ({"sasl_aws_role_session_name": "x1"}, "no effect without sasl_aws_role_arn"),
    ({"sasl_aws_region": "evil.example/?"}, "is not an AWS region"),
    ({"sasl_aws_role_arn": ARN, "sasl_aws_role_session_name": "a b"}, "is not a name of a session"),
    ({"sasl_token_url": "https://a/t"}, 'sasl_token_url belongs to sasl_mechanism = "oauthbearer"'),
    ({"security_protocol": "SSL"}, "sasl_mechanism has no effect with SSL"),
    (
        {
            "sasl_aws_profile": "a",
            "sasl_aws_access_key": "AKIA",
            "sasl_aws_secret_key": SecretRef("env", "SECRET"),
        },
        "exclude each other",
    ),
]


@pytest.mark.parametrize(("given", "expected"), REFUSED)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], expected: str) -> None:
    """One fault each, at an attribute of the schema, with advice."""
    block = {"bootstrap_servers": (MSK,), "sasl_mechanism": "aws-iam", **given}
    ((name, fault),) = provider_block.check(block)
    assert name in provider_block.CONFIG.attributes
    assert expected in fault.summary and fault.advice


# ── whose credentials sign ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", [USER, TEMPORARY])
def test_keys_from_the_environment(monkeypatch: pytest.MonkeyPatch, keys: Keys) -> None:
    """AWS's own variables, with a session token or without; the signature is right."""
    use_keys(monkeypatch, keys)
    assert check_token(sign(read())) == keys


def test_keys_from_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """They win over the environment; the secret parts are references."""
    use_keys(monkeypatch, USER)
    settings = read(
        sasl_aws_access_key=TEMPORARY.access,
        sasl_aws_secret_key=SecretRef("env", "SECRET"),
        sasl_aws_token=SecretRef("env", "TOKEN"),
    )
    assert TEMPORARY.secret not in repr(settings) and TEMPORARY.token not in repr(settings)
    assert check_token(sign(settings)) == TEMPORARY


def test_keys_of_a_profile(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A profile that the block names wins over the environment."""
    use_keys(monkeypatch, USER)
    write_profile(home, "ops", TEMPORARY)
    assert check_token(sign(read(sasl_aws_profile="ops"))) == TEMPORARY


def test_keys_of_a_role(monkeypatch: pytest.MonkeyPatch, home: Path, sts: Sts) -> None:
    """The role is assumed with the profile's keys; its name, session and external id are sent, and
    what signs is the role's."""
    write_profile(home, "ops", USER)
    settings = read(
        sasl_aws_profile="ops",
        sasl_aws_role_arn=ARN,
        sasl_aws_role_session_name="plan-17",
        sasl_aws_external_id="x-1",
    )
    assert check_token(sign(settings)) == ROLE
    (form,) = sts.forms
    assert sts.users == [USER.access]
    assert (form["Action"], form["RoleArn"]) == ("AssumeRole", ARN)
    assert (form["RoleSessionName"], form["ExternalId"]) == ("plan-17", "x-1")


def test_a_role_without_more_has_a_session_name(monkeypatch: pytest.MonkeyPatch, sts: Sts) -> None:
    """AWS's log says who it was."""
    use_keys(monkeypatch, USER)
    assert check_token(sign(read(sasl_aws_role_arn=ARN))) == ROLE
    assert sts.forms[0]["RoleSessionName"] == "kafkaform" and "ExternalId" not in sts.forms[0]


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_region_of_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Where no broker's name says it."""
    use_keys(monkeypatch, USER)
    monkeypatch.setenv(variable, "us-east-1")
    assert check_token(sign(read("127.0.0.1:9098")), "us-east-1") == USER


def test_the_region_of_a_profile(home: Path) -> None:
    """The last one that is looked at."""
    write_profile(home, "ops", USER)
    (home / "config").write_text("[profile ops]\nregion = ap-south-1\n")
    settings = read("127.0.0.1:9098", sasl_aws_profile="ops")
    assert check_token(sign(settings), "ap-south-1") == USER


def test_a_token_lives_for_fifteen_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is signed again when a fifth of its life is left, and not before."""
    use_keys(monkeypatch, USER)
    source = tokens.open_token_source(read())
    assert source is not None
    first = source.get_token()
    assert source.get_token() is first
    now = first.expires - 900
    monkeypatch.setattr(source, "_clock", lambda: now + 800)
    assert source.get_token() is not first


# ── what is said if there are none ──────────────────────────────────────────────────────


def test_no_credentials_at_all() -> None:
    """Three ways out are named."""
    said = refusal(read())
    assert "there are no AWS credentials -> set AWS_ACCESS_KEY_ID" in said
    assert "sasl_aws_profile" in said


def test_a_profile_that_does_not_exist() -> None:
    """It is named."""
    assert "there is no AWS profile prod -> correct sasl_aws_profile" in refusal(
        read(sasl_aws_profile="prod")
    )


def test_half_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The half that is missing is named."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER.access)
    assert "AWS credentials are incomplete: AWS_SECRET_ACCESS_KEY is missing" in refusal(read())


def test_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signature is for one region, and nothing guesses it."""
    use_keys(monkeypatch, USER)
    said = refusal(read("127.0.0.1:9098"))
    assert "the AWS region of the cluster is unknown -> set sasl_aws_region" in said


def test_a_role_that_is_refused(monkeypatch: pytest.MonkeyPatch, sts: Sts) -> None:
    """AWS's code is repeated, and not its text, which contains the session token."""
    sts.refused = True
    use_keys(monkeypatch, TEMPORARY)
    said = refusal(read(sasl_aws_role_arn=ARN))
    assert "AWS refused AssumeRole: AccessDenied -> check the credentials" in said


def test_an_sts_that_is_down(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """The network is to blame, and not the credentials, whether the block or a profile names the
    role."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    write_profile(home, "base", USER)
    (home / "config").write_text(
        f"[profile ops]\nregion = {REGION}\nsource_profile = base\nrole_arn = {ARN}\n"
    )
    for given in (
        {"sasl_aws_profile": "base", "sasl_aws_role_arn": ARN},
        {"sasl_aws_profile": "ops"},
    ):
        assert "AWS cannot be reached to get credentials" in refusal(read(**given))


def test_a_role_of_a_profile(home: Path, sts: Sts) -> None:
    """As `aws` itself takes it; nothing in the block names the role."""
    write_profile(home, "base", USER)
    (home / "config").write_text(
        f"[profile ops]\nregion = {REGION}\nsource_profile = base\nrole_arn = {ARN}\n"
    )
    assert check_token(sign(read(sasl_aws_profile="ops"))) == ROLE
    assert sts.users == [USER.access] and sts.forms[0]["RoleArn"] == ARN


def test_a_program_that_gives_no_credentials(home: Path) -> None:
    """What it prints can be a secret: only its kind is named."""
    (home / "config").write_text(
        f"[default]\ncredential_process = sh -c 'echo {USER.secret} >&2; exit 1'\n"
    )
    assert "AWS credentials cannot be read (custom-process)" in refusal(read())


def test_nobody_is_asked_for_a_code(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile with MFA would wait at the terminal, in whichever thread needs a token."""
    write_profile(home, "base", USER)
    (home / "config").write_text(
        f"[profile ops]\nregion = {REGION}\nsource_profile = base\nrole_arn = {ARN}\n"
        "mfa_serial = arn:aws:iam::1:mfa/me\n"
    )
    said = refusal(read(sasl_aws_profile="ops"))
    assert "the AWS profile asks for an MFA code -> get temporary credentials" in said


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever did not install the extra is told how, before anything is connected."""
    monkeypatch.delitem(sys.modules, "kafkaform_kafka.connection.aws_tokens", raising=False)
    for name in ("aws_msk_iam_sasl_signer", "aws_msk_iam_sasl_signer.MSKAuthTokenProvider"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigurationError) as caught:
        tokens.open_token_source(read())
    assert 'sasl_mechanism = "aws-iam" needs the Python package' in caught.value.message
    assert caught.value.advice == f"run `{render_extra_command('aws')}`"


# ── secrets ─────────────────────────────────────────────────────────────────────────────


def test_secrets_are_masked_and_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sts: Sts
) -> None:
    """Keys that no reference names are masked as well, those of the role too; botocore, which logs
    what it signs, is silent even if everything is logged."""
    caplog.set_level(logging.DEBUG)
    fence_logs()
    use_keys(monkeypatch, TEMPORARY)
    with watch_secrets() as known:
        token = sign(read(sasl_aws_role_arn=ARN))
        text = " ".join((TEMPORARY.secret, TEMPORARY.token, ROLE.secret, ROLE.token, token))
        assert set(known.mask_secrets(text).split()) == {"(secret)"}
    assert not [secret for secret in (*SECRETS, token) if secret in caplog.text]


@pytest.mark.parametrize(
    ("login", "who"),
    [
        (AwsLogin(), "AWS's default credentials"),
        (AwsLogin(profile="ops"), "the AWS profile ops"),
        (AwsLogin(access_key="AKIA"), "the given access key"),
        (AwsLogin(profile="ops", role=ARN), ARN),
    ],
)
def test_a_refused_login_says_whose_credentials_it_used(login: AwsLogin, who: str) -> None:
    """The policy to look at is that of this identity."""
    settings = replace(read(), aws_login=login)
    refusal = ConnectionFailure(FailureKind.REFUSED_LOGIN, "Access denied")
    advice = connect_error(settings, dict.fromkeys(settings.servers, refusal)).advice
    assert f"check that the policy of {who} allows kafka-cluster:Connect" in advice
