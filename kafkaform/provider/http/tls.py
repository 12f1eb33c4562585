"""TLS contexts from certificates in files or in PEM text, and what is wrong with one that is
refused.

OpenSSL calls almost everything "PEM lib". A file is looked at only after OpenSSL has refused it, to
say what it contains and how to convert it.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from ...core.storage import read_named_file, require_regular_file
from ..block_checks import is_pem

CA, CERTIFICATE, KEY = "ca_cert", "client_cert", "client_key"
"""The attributes that name certificates and a key."""
STORES = frozenset({"is a Java key store (JKS)", "is a PKCS12 store"})
"""Forms in which Java keeps certificates and keys."""

_LARGEST = 16 << 20
"""Bytes. All authorities of an operating system have 250 KB."""
_PATH_ADVICE = "correct the path, or give this user the right to read the file"


class CertificateFault(Exception):
    """A certificate or key cannot be used. No text repeats anything of it.

    attribute: which one; form: what is wrong with it, as in `STORES`; advice: what to do.
    """

    def __init__(self, summary: str, advice: str, attribute: str = "", form: str = "") -> None:
        super().__init__(summary)
        self.summary = summary
        self.advice = advice
        self.attribute = attribute
        self.form = form


class _Form(Struct, frozen=True):
    text: str
    """What the file is, for a sentence that begins with its name."""
    fits: Callable[[bytes], bool]
    commands: Mapping[str, str] = {}
    """Attribute -> the command that makes PEM of it. Without one, another file has to be named."""
    spoils: bool = False
    """OpenSSL does not read what the attribute names in it either."""


_X509 = "openssl x509 -inform DER -in {path} -out {new}"
_PKCS7 = "openssl pkcs7 -inform {kind} -print_certs -in {{path}} -out {{new}}"
_PKCS12 = {
    CA: "openssl pkcs12 -in {path} -nokeys -out {new}",
    CERTIFICATE: "openssl pkcs12 -in {path} -clcerts -nokeys -out {new}",
    KEY: "openssl pkcs12 -in {path} -nocerts -out {new}",
}
_TO_PKCS12 = (
    "keytool -importkeystore -srckeystore {path} -destkeystore {store} -deststoretype PKCS12"
)
_STORE_CHECK = b"\x02\x01\x03"  # the version of a PFX (RFC 7292 §4)
_KEY_VERSIONS = (b"\x02\x01\x00", b"\x02\x01\x01")  # PKCS #1, PKCS #8 and SEC 1
_ENCRYPTED = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05"  # the OID of PKCS #5
_SIGNED = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07"  # the OID of PKCS #7


def _open_sequence(data: bytes) -> bytes:
    """What a SEQUENCE of DER contains, empty for anything else."""
    if len(data) < 2 or data[0] != 0x30:
        return b""
    return data[2:] if data[1] < 0x80 else data[2 + data[1] - 0x80 :]


def _is_der_certificate(data: bytes) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=data)
    except (ssl.SSLError, ValueError):
        return False
    return data.startswith(b"\x30")


def _has_block(*labels: str) -> Callable[[bytes], bool]:
    pattern = "|".join(map(re.escape, labels)).encode()
    block = re.compile(rb"-----BEGIN (?:[A-Z0-9 ]+ )?(?:" + pattern + rb")-----")
    return lambda data: block.search(data) is not None


_FORMS = (
    _Form("is empty", lambda data: not data.strip()),
    _Form(
        "is a Java key store (JKS)",
        lambda data: data.startswith((b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")),
        {
            CA: "keytool -list -rfc -keystore {path} > {new}",
            CERTIFICATE: f"{_TO_PKCS12} && {_PKCS12[CERTIFICATE].replace('{path}', '{store}')}",
            KEY: f"{_TO_PKCS12} && {_PKCS12[KEY].replace('{path}', '{store}')}",
        },
    ),
    _Form(
        "is a PKCS12 store",
        lambda data: _open_sequence(data).startswith(_STORE_CHECK),
        _PKCS12,
    ),
    _Form(
        "is a private key in DER form",
        lambda data: (
            _open_sequence(data).startswith(_KEY_VERSIONS)
            or _open_sequence(_open_sequence(data)).startswith(_ENCRYPTED)
        ),
        {KEY: "openssl pkey -inform DER -in {path} -out {new}"},
    ),
    _Form(
        "is a PKCS7 bundle",
        lambda data: _open_sequence(data).startswith(_SIGNED),
        dict.fromkeys((CA, CERTIFICATE), _PKCS7.format(kind="DER")),
    ),
    _Form(
        "is a certificate in DER form",
        _is_der_certificate,
        dict.fromkeys((CA, CERTIFICATE), _X509),
    ),
    _Form(
        "is text in UTF-16",
        lambda data: data.startswith((b"\xff\xfe", b"\xfe\xff")),
        dict.fromkeys((CA, CERTIFICATE, KEY), "iconv -f UTF-16 -t ASCII {path} > {new}"),
    ),
    _Form(
        "is a PKCS7 bundle",
        _has_block("PKCS7"),
        dict.fromkeys((CA, CERTIFICATE), _PKCS7.format(kind="PEM")),
    ),
    _Form(
        "is a key of OpenSSH",
        _has_block("OPENSSH PRIVATE KEY"),
        {KEY: "cp {path} {new} && ssh-keygen -p -m PEM -f {new}"},
        spoils=True,
    ),
    _Form(
        "is a request for a certificate, and not a certificate", _has_block("CERTIFICATE REQUEST")
    ),
)
_BLOCKS = {
    CA: ("certificate", _has_block("CERTIFICATE")),
    CERTIFICATE: ("certificate", _has_block("CERTIFICATE")),
    KEY: ("private key", _has_block("PRIVATE KEY")),
}
"""Attribute -> what it names, and whether PEM text contains that."""


def require_files(ca: str | None, certificate: str | None, key: str | None) -> None:
    """Raises CertificateFault for a path at which there is no file, or where reading might never
    end. Each argument is a path or PEM text."""
    for attribute, value in ((CA, ca), (CERTIFICATE, certificate), (KEY, key)):
        if value is not None and not is_pem(value):
            try:
                require_regular_file(value)
            except OSError as error:
                raise _make_unread_fault(attribute, value, error) from None


def find_form_fault(attribute: str, value: str) -> CertificateFault | None:
    """What is wrong with the form of a certificate or key, None if it looks right. value: a path
    or PEM text."""
    if is_pem(value):
        data = value.encode("utf-8", "replace")
    else:
        try:
            data = read_named_file(value, _LARGEST)
        except OSError as error:
            return _make_unread_fault(attribute, value, error)
    expected, contains = _BLOCKS[attribute]
    name = render_name(attribute, value)
    form = next((form for form in _FORMS if form.fits(data)), None)
    if form is not None and (form.spoils or not contains(data)):
        advice = _advise_conversion(form, attribute, value)
        return CertificateFault(f"{name} {form.text}", advice, attribute, form.text)
    if contains(data):
        return None
    actual = next(
        (name for name, is_in in _BLOCKS.values() if name != expected and is_in(data)), ""
    )
    text = (
        f"contains a {actual} and no {expected}" if actual else f"is not a {expected} in PEM form"
    )
    advice = f"name the file of the {expected}, which begins with -----BEGIN"
    return CertificateFault(f"{name} {text}", advice, attribute, text)


def render_name(attribute: str, value: str) -> str:
    """The attribute and the path in it, for messages."""
    return attribute if is_pem(value) else f"{attribute} {value}"


def _advise_conversion(form: _Form, attribute: str, path: str) -> str:
    command = form.commands.get(attribute)
    if command is None:
        return f"name the file of the {_BLOCKS[attribute][0]}, in PEM form"
    new, store = (shlex.quote(str(Path(path).with_suffix(end))) for end in (".new.pem", ".p12"))
    command = command.format(path=shlex.quote(path), new=new, store=store)
    return f"convert it with `{command}`, and name {new}"


def _make_unread_fault(attribute: str, path: str, error: OSError) -> CertificateFault:
    reason = error.strerror or type(error).__name__
    return CertificateFault(
        f"{attribute} {path} cannot be read: {reason}", _PATH_ADVICE, attribute, reason
    )


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
