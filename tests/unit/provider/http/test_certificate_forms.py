"""Certificates and keys in another form than PEM: the file, the form and the way to convert it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import pkcs7

from kafkaform.provider.http.tls import CertificateFault, tls_context

from ....kit.kafka import doors
from ....kit.kafka.key_stores import KEY, STORE, Client, make_jks, make_pkcs12, new_client, to_der

DER = serialization.Encoding.DER
PEM = serialization.Encoding.PEM
PLAIN = serialization.NoEncryption()
ATTRIBUTES = ("ca_cert", "client_cert", "client_key")


@pytest.fixture(scope="module")
def client() -> Client:
    """Our certificate and its key."""
    return new_client(doors.authority("test authority"))


def load_key(client: Client) -> serialization.PrivateFormat:
    return serialization.load_pem_private_key(client.key.encode(), None)


def write_key(client: Client, style: serialization.PrivateFormat, password: str = "") -> bytes:
    """The key in DER."""
    hidden = serialization.BestAvailableEncryption(password.encode()) if password else PLAIN
    return load_key(client).private_bytes(DER, style, hidden)


def write_request(client: Client) -> bytes:
    name = x509.Name([])
    built = x509.CertificateSigningRequestBuilder().subject_name(name)
    return built.sign(load_key(client), hashes.SHA256()).public_bytes(PEM)


def write_bundle(client: Client, encoding: serialization.Encoding) -> bytes:
    certificate = x509.load_pem_x509_certificate(client.certificate.encode())
    return pkcs7.serialize_certificates([certificate], encoding)


STYLES = serialization.PrivateFormat
FILES: dict[str, tuple[Callable[[Client], bytes], str]] = {
    "empty": (lambda _: b"", "is empty"),
    "blanks": (lambda _: b" \n", "is empty"),
    "DER": (lambda client: to_der(client.certificate), "is a certificate in DER form"),
    "key": (lambda client: write_key(client, STYLES.PKCS8), "is a private key in DER form"),
    "old key": (
        lambda client: write_key(client, STYLES.TraditionalOpenSSL),
        "is a private key in DER form",
    ),
    "encrypted key": (
        lambda client: write_key(client, STYLES.PKCS8, KEY),
        "is a private key in DER form",
    ),
    "PKCS12": (lambda client: make_pkcs12(client, client.authority, STORE), "is a PKCS12 store"),
    "JKS": (
        lambda client: make_jks(STORE, trusted=[client.authority]),
        "is a Java key store (JKS)",
    ),
    "bundle": (lambda client: write_bundle(client, DER), "is a PKCS7 bundle"),
    "bundle in PEM": (lambda client: write_bundle(client, PEM), "is a PKCS7 bundle"),
    "UTF-16": (
        lambda client: b"\xff\xfe" + client.certificate.encode("utf-16-le"),
        "is text in UTF-16",
    ),
    "OpenSSH": (
        lambda client: load_key(client).private_bytes(PEM, STYLES.OpenSSH, PLAIN),
        "is a key of OpenSSH",
    ),
    "request": (write_request, "is a request for a certificate"),
    "text": (lambda _: b"hello", "is not a "),
}


def load(attribute: str, path: str, client: Client) -> None:
    """A context with this file in the place of one of the three."""
    given = {"ca_cert": None, "client_cert": client.certificate, "client_key": client.key}
    given[attribute] = path
    tls_context(*(given[name] for name in ATTRIBUTES), None)


def refuse(attribute: str, path: str, client: Client) -> CertificateFault:
    """The fault of this file, which never shows what is in it."""
    with pytest.raises(CertificateFault) as caught:
        load(attribute, path, client)
    fault = caught.value
    assert fault.advice and "BEGIN PRIV" not in fault.summary and "MII" not in repr(fault)
    return fault


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("name", FILES)
def test_the_file_and_its_form_are_named(
    name: str, attribute: str, client: Client, tmp_path: Path
) -> None:
    """In the place of an authority, of our certificate and of its key."""
    make, form = FILES[name]
    (tmp_path / "it's it").write_bytes(make(client))
    fault = refuse(attribute, str(tmp_path / "it's it"), client)
    assert fault.summary.startswith(f"{attribute} {tmp_path}/it's it {form.split()[0]} ")
    assert form in fault.summary


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("name", ["DER", "key", "old key", "PKCS12", "bundle", "bundle in PEM"])
def test_the_advice_converts_the_file(
    name: str, attribute: str, client: Client, tmp_path: Path
) -> None:
    """The command in it is run as it is, and what it writes is loaded; of a file with something
    else, nothing can be made."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    (tmp_path / "my file.p12").write_bytes(FILES[name][0](client))
    advice = refuse(attribute, str(tmp_path / "my file.p12"), client).advice
    if "`" not in advice:
        assert ("key" in name) != (attribute == "client_key")
        assert advice.startswith("name the file of the ")
        return
    command = advice.split("`")[1]
    if name == "PKCS12":
        command += f" -passin pass:{STORE} -noenc"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    load(attribute, str(tmp_path / "my file.new.pem"), client)


def test_a_key_in_the_place_of_a_certificate(client: Client, tmp_path: Path) -> None:
    """And the other way round, as files and as text."""
    (tmp_path / "c.pem").write_text(client.certificate)
    (tmp_path / "k.pem").write_text(client.key)
    for attribute in ("ca_cert", "client_cert"):
        said = refuse(attribute, str(tmp_path / "k.pem"), client).summary
        assert f"{tmp_path}/k.pem contains a private key and no certificate" in said
    said = refuse("client_key", str(tmp_path / "c.pem"), client).summary
    assert f"{tmp_path}/c.pem contains a certificate and no private key" in said
    said = refuse("ca_cert", client.key, client).summary
    assert said == "ca_cert contains a private key and no certificate"


def test_a_damaged_certificate(client: Client, tmp_path: Path) -> None:
    """The form is right, and the content is not."""
    lines = client.certificate.splitlines()
    (tmp_path / "c.pem").write_text("\n".join((lines[0], *lines[3:])))
    for attribute in ("ca_cert", "client_cert"):
        assert "damaged" in refuse(attribute, str(tmp_path / "c.pem"), client).summary


def test_a_key_of_another_certificate_is_named_with_it(client: Client, tmp_path: Path) -> None:
    """Both files are in the message, and the commands that compare them in the advice."""
    (tmp_path / "c.pem").write_text(client.certificate)
    (tmp_path / "k.pem").write_text(new_client(doors.authority("another")).key)
    with pytest.raises(CertificateFault) as caught:
        tls_context(None, str(tmp_path / "c.pem"), str(tmp_path / "k.pem"), None)
    files = f"client_key {tmp_path}/k.pem is not the key of client_cert {tmp_path}/c.pem"
    assert caught.value.summary == files and "-pubkey" in caught.value.advice


@pytest.mark.timeout(20)
@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("place", ["nothing", "a folder", "a pipe", "a device"])
def test_what_is_no_file(attribute: str, place: str, client: Client, tmp_path: Path) -> None:
    """Nothing waits for a writer, and nothing reads without end."""
    path = tmp_path / "file"
    if place == "a folder":
        path.mkdir()
    elif place == "a pipe":
        os.mkfifo(path)
    elif place == "a device":
        path.symlink_to("/dev/zero")
    reasons = {
        "nothing": "No such file or directory",
        "a folder": "it is a folder",
        "a pipe": "it is a named pipe, not a regular file",
        "a device": "it is a device, not a regular file",
    }
    fault = refuse(attribute, str(path), client)
    assert fault.summary == f"{attribute} {path} cannot be read: {reasons[place]}"
