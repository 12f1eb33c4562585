"""TLS contexts from certificates in files or in PEM text."""

from __future__ import annotations

import errno
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .certificate_forms import (
    CA,
    CERTIFICATE,
    KEY,
    CertificateFault,
    find_form_fault,
    render_name,
    require_files,
)
from .pem import is_pem

_PAIR_ADVICE = (
    "give the certificate and its own key: `openssl x509 -noout -pubkey -in CERTIFICATE` and "
    "`openssl pkey -pubout -in KEY` print the same for both"
)

_DESCRIPTORS = ("/dev/fd", "/proc/self/fd")
"""Folders that have the open files of this process by their numbers."""


def tls_context(
    ca: str | None, certificate: str | None, key: str | None, passphrase: str | None
) -> ssl.SSLContext:
    """A context that verifies the server. Each argument is a path or PEM text. Raises
    CertificateFault for certificates and keys that cannot be loaded."""
    require_files(ca, certificate, key)
    text = ca if is_pem(ca) else None
    path = None if is_pem(ca) else ca
    try:
        context = ssl.create_default_context(cafile=path, cadata=text)
    except (OSError, ValueError):
        raise _explain_authority(ca or "") from None
    if certificate and key:
        _load(context, certificate, key, passphrase)
    return context


def trust_also(context: ssl.SSLContext, ca: str) -> None:
    """Let a context trust these certificates, too: a path or PEM text. Raises CertificateFault."""
    require_files(ca, None, None)
    text = ca if is_pem(ca) else None
    try:
        context.load_verify_locations(cafile=None if text else ca, cadata=text)
    except (OSError, ValueError):
        raise _explain_authority(ca) from None


def _explain_authority(ca: str) -> CertificateFault:
    return find_form_fault(CA, ca) or CertificateFault(
        f"{render_name(CA, ca)} contains a certificate that is damaged", "copy it again", CA
    )


class _Passphrase:
    """Gives OpenSSL the passphrase, and notes that it was asked for: the key is encrypted."""

    # Without a function OpenSSL would ask at the terminal, also in a pipeline, where that waits for
    # ever.
    def __init__(self, text: str | None) -> None:
        self.text = text
        self.asked = False

    def __call__(self) -> str:
        self.asked = True
        return self.text or ""


def _load(context: ssl.SSLContext, certificate: str, key: str, passphrase: str | None) -> None:
    """Load our certificate and its key. Raises CertificateFault."""
    callback = _Passphrase(passphrase)
    try:
        with _offer_path(certificate) as chain, _offer_path(key) as private:
            context.load_cert_chain(chain, private, password=callback)
    except ssl.SSLError as error:
        mismatch = error.reason == "KEY_VALUES_MISMATCH"
        raise _explain_pair(certificate, key, callback, mismatch=mismatch) from None
    except (OSError, ValueError) as error:
        # From a pipe OpenSSL reads without seeking, and Python then reports that for each failure.
        if getattr(error, "errno", None) != errno.ESPIPE:
            raise _explain_pair(certificate, key, callback) from None
        raise CertificateFault(
            "client_cert, client_key and client_key_passphrase do not fit together", _PAIR_ADVICE
        ) from None


def _explain_pair(
    certificate: str, key: str, passphrase: _Passphrase, *, mismatch: bool = False
) -> CertificateFault:
    """The fault of a certificate and a key that OpenSSL refused."""
    fault = find_form_fault(CERTIFICATE, certificate) or find_form_fault(KEY, key)
    if fault is not None:
        return fault
    certificate_name, key_name = render_name(CERTIFICATE, certificate), render_name(KEY, key)
    if mismatch:
        return CertificateFault(
            f"{key_name} is not the key of {certificate_name}", _PAIR_ADVICE, KEY
        )
    if passphrase.asked and not passphrase.text:
        summary = f"{key_name} is encrypted, and client_key_passphrase is missing"
        return CertificateFault(summary, "set client_key_passphrase", KEY)
    if passphrase.asked:
        return CertificateFault(
            f"client_key_passphrase does not open {key_name}, or the key has a cipher that OpenSSL "
            "no longer supports",
            "write the passphrase of this key; for an old cipher, `openssl pkcs8 -topk8 -v2 aes256 "
            "-in KEY -out NEW` makes a new file",
            KEY,
        )
    return CertificateFault(
        f"{certificate_name} or {key_name} is damaged", "copy both files again", CERTIFICATE
    )


@contextmanager
def _offer_path(value: str) -> Iterator[str]:
    """A path at which this value can be read once."""
    # Python's ssl loads authorities from text, but a certificate chain and a key from files only. A
    # file in memory has a path as well (Linux), and so has a pipe. So a key that was not on the
    # disk does not get there.
    if not is_pem(value):
        yield value
        return
    data = value.encode("ascii", "replace")
    with _keep_in_memory(data) if hasattr(os, "memfd_create") else _feed_pipe(data) as number:
        folder = next(filter(os.path.isdir, _DESCRIPTORS), _DESCRIPTORS[0])
        yield f"{folder}/{number}"


@contextmanager
def _keep_in_memory(data: bytes) -> Iterator[int]:
    """The number of an open file without a name."""
    with os.fdopen(os.memfd_create("kafkaform"), "wb") as file:
        file.write(data)
        file.flush()
        yield file.fileno()


@contextmanager
def _feed_pipe(data: bytes) -> Iterator[int]:
    """The number of an open file from which the data come."""
    reader, writer = os.pipe()

    def feed() -> None:
        # OpenSSL may stop reading before the end.
        with suppress(BrokenPipeError), os.fdopen(writer, "wb") as pipe:
            pipe.write(data)

    # A thread, because a pipe takes 64 KB, and OpenSSL reads only after this function.
    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield reader
    finally:
        os.close(reader)
        feeder.join()
