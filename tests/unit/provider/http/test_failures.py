"""Why a registry or worker cannot be connected to: what is wrong, and which argument mends it."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.connection import explain_failure
from kafkaform_connect import session as workers
from kafkaform_schema_registry import session as registry

from ....kit.kafka import doors
from ....kit.kafka.doors import Authority
from ....kit.kafka.token_endpoint import CLIENT
from ....kit.tls_listener import listening, make_context

SYSTEMS = {"worker": workers.open_session, "registry": registry.open_session}
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
WANTED = "the server requires a client certificate"


@pytest.fixture(scope="module")
def own() -> Authority:
    """The company's authority, which no operating system knows."""
    return doors.authority("company")


def refuse(system: str, url: str, **given: str) -> str:
    """Message and advice of a connection that fails."""
    with pytest.raises(ConnectError) as caught:
        SYSTEMS[system](system, FrozenMap(url=url, operation_timeout=5, **given), {})
    assert url in caught.value.message
    return f"{caught.value.message} -> {caught.value.advice}"


@pytest.mark.parametrize("system", SYSTEMS)
def test_certificates_that_are_refused(system: str, own: Authority, tmp_path: Path) -> None:
    """An authority that is unknown or another one, a name that is another one, a time that is
    over: each has its own argument."""
    with listening(make_context(own, tmp_path)) as address:
        for given in ({}, {"ca_cert": doors.authority("another").pem}):
            said = refuse(system, f"https://{address}", **given)
            assert "its certificate is refused: " in said
            assert "-> give the certificate of the server's authority in ca_cert" in said
    with listening(make_context(own, tmp_path, host="kafka.example.com")) as address:
        said = refuse(system, f"https://{address}", ca_cert=own.pem)
        assert "certificate is not valid for '127.0.0.1'" in said
        assert "-> write the name from the certificate into url, or have" in said
    with listening(make_context(own, tmp_path, days=-2)) as address:
        said = refuse(system, f"https://{address}", ca_cert=own.pem)
        assert "certificate has expired -> have the server's certificate renewed" in said


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_client_certificate_that_is_missing(
    system: str, version: ssl.TLSVersion, own: Authority, tmp_path: Path
) -> None:
    """It is what the server wants, in TLS 1.3 after the handshake."""
    with listening(make_context(own, tmp_path, mutual=True, newest=version)) as address:
        said = refuse(system, f"https://{address}", ca_cert=own.pem)
    assert f"{WANTED} -> give client_cert and client_key" in said


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_client_certificate_that_is_refused(
    system: str, version: ssl.TLSVersion, own: Authority, tmp_path: Path
) -> None:
    """Of an authority that the server does not trust, or too old."""
    with listening(make_context(own, tmp_path, mutual=True, newest=version)) as address:
        for authority, days, cause in (
            (doors.authority("another"), 30, "the server refuses our client certificate: "),
            (own, -2, "our client certificate has expired -> renew client_cert"),
        ):
            certificate, key = authority.issue("ci", None, days)
            given = {"client_cert": certificate, "client_key": key}
            said = refuse(system, f"https://{address}", ca_cert=own.pem, **given)
            assert cause in said


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_mix_up_of_protocols(system: str, own: Authority, tmp_path: Path) -> None:
    """https to a server without TLS, and http to one with it."""
    with listening() as address:
        said = refuse(system, f"https://{address}")
        assert "the server there does not speak TLS -> " in said
    # As OpenSSL, Java and nginx answer to plain text.
    with listening(answer=lambda _: b"\x15\x03\x01\x00\x02\x02\x46") as address:
        said = refuse(system, f"http://{address}")
        assert "the server speaks TLS, and url says http -> write https:// in url" in said


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_port_where_nobody_listens(system: str) -> None:
    """The server may be down, too."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    said = refuse(system, f"http://127.0.0.1:{port}")
    assert "Connection refused -> check host and port in url, and whether the server runs" in said


ENDED = ssl.SSLEOFError(8, "EOF occurred in violation of protocol")


@pytest.mark.parametrize(
    ("error", "certified", "advice"),
    [
        (socket.gaierror(-2, "Name or service not known"), False, "check the host name in url"),
        (OSError("Tunnel connection failed: 407 Who?"), False, "check the proxy in https_proxy"),
        (ConnectionResetError(104, "reset"), False, "give client_cert and client_key"),
        (ENDED, False, "if it requires a client certificate, give client_cert and client_key"),
        (ENDED, True, "check that it trusts that of client_cert"),
    ],
)
def test_other_causes(error: Exception, certified: bool, advice: str) -> None:
    """What the operating system and a server that just closes say."""
    assert advice in explain_failure(error, tls=True, certified=certified).advice


@pytest.mark.parametrize("system", SYSTEMS)
def test_files_of_certificates(system: str, tmp_path: Path, own: Authority) -> None:
    """The file, its form, and the command that converts it, before anything is sent."""
    der = ssl.PEM_cert_to_DER_cert(own.pem)
    (tmp_path / "ca.crt").write_bytes(der)
    said = refuse(system, "https://127.0.0.1:1", ca_cert=str(tmp_path / "ca.crt"))
    assert f"ca_cert {tmp_path}/ca.crt is a certificate in DER form -> convert it with" in said
    said = refuse(system, "https://127.0.0.1:1", ca_cert=str(tmp_path / "none"))
    assert f"ca_cert {tmp_path}/none cannot be read: No such file or directory" in said
    certificate, key = own.issue("ci", None)[0], doors.private(doors.new_key())
    given = {"client_cert": certificate, "client_key": key}
    said = refuse(system, "https://127.0.0.1:1", **given)
    assert "client_key is not the key of client_cert" in said


def test_the_authority_of_a_token_endpoint(own: Authority, tmp_path: Path) -> None:
    """It is looked at in the same way, although the system itself is asked without TLS."""
    given = {"oauth_client_id": CLIENT, "oauth_client_secret": "x"}
    (tmp_path / "ca.crt").write_bytes(ssl.PEM_cert_to_DER_cert(own.pem))
    with listening() as address, listening(make_context(own, tmp_path)) as endpoint:
        given["oauth_token_url"] = f"https://{endpoint}/token"
        said = refuse("worker", f"http://{address}", ca_cert=str(tmp_path / "ca.crt"), **given)
        assert f"ca_cert {tmp_path}/ca.crt is a certificate in DER form" in said
        said = refuse("worker", f"http://{address}", **given)
        assert "give the certificate of the endpoint's authority in ca_cert" in said
