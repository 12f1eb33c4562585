"""TLS for kafka-python: certificates from files or from PEM text."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

from .pem import is_pem


def tls_context(
    ca: str | None, certificate: str | None, key: str | None, passphrase: str | None
) -> ssl.SSLContext:
    """A context that verifies the broker. Each argument is a path or PEM text. Raises OSError, of
    which ssl.SSLError is a kind, for certificates and keys that cannot be loaded."""
    for value in (ca, certificate, key):
        _must_exist(value)
    text = ca if is_pem(ca) else None
    path = None if is_pem(ca) else ca
    context = ssl.create_default_context(cafile=path, cadata=text)
    if certificate and key:
        with tempfile.TemporaryDirectory(prefix="kafkaform-") as folder:
            chain = _write_file(certificate, Path(folder, "certificate.pem"))
            private = _write_file(key, Path(folder, "key.pem"))
            # Without a password OpenSSL would ask at the terminal, also in a pipeline, where that
            # waits for ever.
            _load(context, chain, private, lambda: passphrase or "")
    return context


def _load(context: ssl.SSLContext, chain: str, private: str, passphrase: Callable[[], str]) -> None:
    """Load the key. Raises OSError with a readable cause."""
    # OpenSSL calls a wrong passphrase "PEM lib".
    try:
        context.load_cert_chain(chain, private, password=passphrase)
    except ssl.SSLError:
        reason = "client_cert, client_key and client_key_passphrase do not fit together"
        raise OSError(reason) from None


def _must_exist(value: str | None) -> None:
    """Raise FileNotFoundError with the name of the file, which ssl's own error does not have."""
    if value is not None and not is_pem(value):
        Path(value).stat()


def _write_file(value: str, place: Path) -> str:
    """A path for this value."""
    # Python's ssl loads authorities from text, but a certificate chain and a key from files only.
    # The folder belongs to this user alone, and is removed when the context is made.
    if not is_pem(value):
        return value
    place.touch(mode=0o600)
    place.write_text(value, encoding="ascii")
    return str(place)
