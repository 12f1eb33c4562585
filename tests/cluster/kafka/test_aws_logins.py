"""Logins with AWS keys at a real broker, whose proxy checks the signatures as Amazon MSK does."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform.core.value import EMPTY, freeze
from kafkaform_kafka.connection.settings import KafkaSettings, read_settings
from kafkaform_kafka.publishing import NumberedRecord, publish
from kafkaform_kafka.review import list_live_groups
from kafkaform_kafka.session import KafkaSession, open_session

from ...kit.kafka import doors
from ...kit.kafka.aws import (
    REGION,
    ROLE,
    SECRETS,
    TEMPORARY,
    USER,
    leave_aws,
    serving_sts,
    use_keys,
)
from ...kit.kafka.doors import Doors
from ...kit.kafka.msk import Msk, serving_msk
from ...kit.kafka.sessions import eventually

ARN = "arn:aws:iam::123456789012:role/kafka"


@pytest.fixture(scope="module")
def house(own_brokers: None) -> Iterator[Doors]:
    """A broker whose clients log in with tokens, again every 2 seconds."""
    import aws_msk_iam_sasl_signer  # noqa: F401  # without the extra all tests are skipped

    with doors.opened(f"aws-{os.getpid()}") as opened:
        yield opened


@pytest.fixture
def msk(house: Doors, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Msk]:
    """A proxy that takes AWS signatures, and no credentials of whoever runs the tests."""
    leave_aws(monkeypatch, str(tmp_path))
    with serving_msk(house) as served:
        yield served


def settings(msk: Msk, **given: Any) -> KafkaSettings:
    """Those of a provider block with aws-iam, for this proxy."""
    block = {
        "bootstrap_servers": [msk.proxy.bootstrap],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "aws-iam",
        "sasl_aws_region": REGION,
        "operation_timeout": 5,
        **given,
    }
    frozen = freeze(block)
    assert isinstance(frozen, type(EMPTY))
    return read_settings("kafka", frozen, {})


def works(session: KafkaSession) -> None:
    """The session is answered as a super user."""
    assert "Alter" in session.facts.recorded_values["rights"]
    names = session.sweep("kafka_topic", Depth.NAMES)
    assert names.coverage.kind is not CoverageKind.FAILED
    assert list_live_groups(session.context, {"none"}, 10) is not None


def test_a_session_logs_in_once(msk: Msk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the environment: the signature on the token is right, and one client logs in."""
    use_keys(monkeypatch, TEMPORARY)
    session = open_session(settings(msk))
    works(session)
    session.close()
    assert msk.forged == [] and set(msk.logins) == {TEMPORARY.access}
    assert len(msk.logins) == 1


def test_over_tls(house: Doors, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As with MSK, which takes such logins over TLS only."""
    leave_aws(monkeypatch, str(tmp_path))
    use_keys(monkeypatch, USER)
    certificate, key = house.authority.issue("broker")
    (tmp_path / "server.pem").write_text(key + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with serving_msk(house, tls=context) as msk:
        given = settings(msk, security_protocol=None, ca_cert=house.authority.pem)
        assert given.protocol == "SASL_SSL"
        session = open_session(given)
        works(session)
        session.close()
    assert set(msk.logins) == {USER.access}


def test_a_role(msk: Msk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What logs in is the role, and not who assumed it."""
    use_keys(monkeypatch, USER)
    with serving_sts() as sts:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        session = open_session(settings(msk, sasl_aws_role_arn=ARN))
        works(session)
        session.close()
    assert set(msk.logins) == {ROLE.access} and len(sts.forms) == 1


def test_a_run_that_outlives_its_tokens(msk: Msk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker wants a new login every 2 seconds (KIP-368) and a signature lives for 3: a session
    that outlives several signs anew each time, and still reads."""
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as signer

    monkeypatch.setattr(signer, "DEFAULT_TOKEN_EXPIRY_SECONDS", 3)
    use_keys(monkeypatch, USER)
    session = open_session(settings(msk))
    for _ in range(3):
        before = len(set(msk.tokens))
        until = time.monotonic() + 120
        while len(set(msk.tokens)) == before:
            assert time.monotonic() < until, "nobody logs in again"
            time.sleep(0.3)
            eventually(lambda: session.sweep("kafka_topic", Depth.NAMES).coverage.fault, _is_none)
            eventually(lambda: list_live_groups(session.context, {"none"}, 10), _is_some)
    works(session)
    session.close()
    assert len(set(msk.tokens)) >= 4 and set(msk.logins) == {USER.access}


def _is_none(found: object) -> bool:
    return found is None


def _is_some(found: object) -> bool:
    return found is not None


def refusal(given: KafkaSettings) -> str:
    """Message and advice of a connection that fails, without secrets."""
    with pytest.raises(ConnectError) as caught:
        open_session(given)
    said = f"{caught.value.message} -> {caught.value.advice}"
    assert "\n" not in said and not [secret for secret in SECRETS if secret in said]
    return said


def test_a_signature_for_another_region(msk: Msk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker refuses it, and the region is among what to check; the token is not repeated."""
    use_keys(monkeypatch, USER)
    said = refusal(settings(msk, sasl_aws_region="us-east-1"))
    assert msk.proxy.bootstrap in said and "sasl_aws_region is its region" in said
    assert msk.forged and "host" in msk.forged[0] and msk.tokens[0] not in said


def test_an_identity_that_may_not_connect(msk: Msk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signature is right, and the cluster does not let this identity in: whose policy is to be
    looked at is said."""
    use_keys(monkeypatch, USER)
    msk.barred = USER.access
    said = refusal(settings(msk))
    assert "the policy of AWS's default credentials allows kafka-cluster:Connect" in said
    assert msk.forged == []


def test_without_credentials_nobody_is_asked(msk: Msk) -> None:
    """The error comes before the first connection."""
    said = refusal(settings(msk))
    assert "no token to log in with: there are no AWS credentials" in said
    assert msk.proxy.opened == 0


def test_publishing_logs_in_too(msk: Msk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer and a consumer of the native client get the token as well: what is said is that
    the topic is missing, and not that the login failed."""
    use_keys(monkeypatch, USER)
    block = freeze(
        {
            "bootstrap_servers": [msk.proxy.bootstrap],
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "aws-iam",
            "sasl_aws_region": REGION,
        }
    )
    assert isinstance(block, type(EMPTY))
    with pytest.raises(Exception, match="no-such-topic") as caught:
        publish("kafka", block, {}, "no-such-topic", "key", [NumberedRecord(1, b"x")])
    assert "login" not in str(caught.value)
    assert set(msk.logins) == {USER.access}
