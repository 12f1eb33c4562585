"""TLS contexts from certificates in files or in PEM text."""

from __future__ import annotations

import errno
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...core.storage import require_regular_file
from .pem import is_pem

_DESCRIPTORS = ("/dev/fd", "/proc/self/fd")
"""Folders that have the open files of this process by their numbers."""


def tls_context(
    ca: str | None, certificate: str | None, key: str | None, passphrase: str | None
) -> ssl.SSLContext:
    """A context that verifies the server. Each argument is a path or PEM text. Raises OSError, of
    which ssl.SSLError is a kind, for certificates and keys that cannot be loaded."""
    for value in (ca, certificate, key):
        _must_exist(value)
    text = ca if is_pem(ca) else None
    path = None if is_pem(ca) else ca
    context = ssl.create_default_context(cafile=path, cadata=text)
    if certificate and key:
        with _offer_path(certificate) as chain, _offer_path(key) as private:
            _load(context, chain, private, passphrase)
    return context


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


def _load(context: ssl.SSLContext, chain: str, private: str, passphrase: str | None) -> None:
    """Load the key. Raises OSError with a readable cause."""
    given = _Passphrase(passphrase)
    try:
        context.load_cert_chain(chain, private, password=given)
    except ssl.SSLError as error:
        raise OSError(_explain_key(error, given)) from None
    except OSError as error:
        # From a pipe OpenSSL reads without seeking, and Python then reports that for each failure.
        if error.errno != errno.ESPIPE:
            raise
        reason = "client_cert, client_key and client_key_passphrase do not fit together"
        raise OSError(reason) from None


def _explain_key(error: ssl.SSLError, given: _Passphrase) -> str:
    # OpenSSL calls almost everything "PEM lib".
    if error.reason == "KEY_VALUES_MISMATCH":
        return "client_key is not the key of client_cert"
    if given.asked and not given.text:
        return "client_key is encrypted, and client_key_passphrase is missing"
    if given.asked:
        return (
            "client_key_passphrase does not open client_key, or the key has a cipher that OpenSSL "
            "no longer supports"
        )
    return "client_cert or client_key is not PEM"


def _must_exist(value: str | None) -> None:
    """Raise OSError for a file that OpenSSL cannot read, or would wait for."""
    if value is not None and not is_pem(value):
        require_regular_file(value)


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
