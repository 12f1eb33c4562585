"""Make a certificate authority and a server certificate for the loopback address, in PEM."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..core.storage import make_private_folder
from . import record
from .record import HOST

_DAYS = 397
_PEM = serialization.Encoding.PEM


def create_certificates(folder: Path) -> None:
    """Write ca.pem and server.pem into this folder."""
    # Kafka reads only keys in PKCS #8 ("BEGIN PRIVATE KEY"), and from one file with the certificate
    # and its authority (KIP-651). The key of the authority is never written: nobody can sign with
    # it.
    ca_key, key = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 2048)
    ca = _make_authority(ca_key).public_bytes(_PEM).decode()
    certificate = _make_server_certificate(key.public_key(), ca_key).public_bytes(_PEM).decode()
    private = key.private_bytes(
        _PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    make_private_folder(folder, parents=True)
    record.write_private(folder / "ca.pem", ca)
    record.write_private(folder / "server.pem", private.decode() + certificate + ca)


def _make_authority(key: rsa.RSAPrivateKey) -> x509.Certificate:
    key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _make_builder(_AUTHORITY, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS_CERTIFICATES, critical=True)
        .add_extension(key_id, critical=False)
        .sign(key, hashes.SHA256())
    )


def _make_server_certificate(key: rsa.RSAPublicKey, ca_key: rsa.RSAPrivateKey) -> x509.Certificate:
    ca_key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(HOST))]
    return (
        _make_builder(_make_name("localhost"), key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(ca_key_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _make_builder(subject: x509.Name, key: rsa.RSAPublicKey) -> x509.CertificateBuilder:
    # Valid since yesterday: clocks of containers and virtual machines differ.
    moment = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .issuer_name(_AUTHORITY)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - datetime.timedelta(days=1))
        .not_valid_after(moment + datetime.timedelta(days=_DAYS))
    )


def _make_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


_AUTHORITY = _make_name("kafkaform sandbox authority")
_SIGNS_CERTIFICATES = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)
