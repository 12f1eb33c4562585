"""Functions that compute digests of texts; `files` uses them for files."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable

from ..values.faults import FunctionFault
from ..values.value import Val
from .spec import Function, make_string_param

Digest = Callable[[bytes], str]


def _compute_digest(algorithm: str, content: bytes) -> bytes:
    import hashlib  # noqa: PLC0415  # it loads OpenSSL, which few configurations need

    # In FIPS mode, systems refuse MD5 and SHA-1 unless they are declared as not for security.
    return hashlib.new(algorithm, content, usedforsecurity=False).digest()


def _make_hex_digest(algorithm: str) -> Digest:
    return lambda content: _compute_digest(algorithm, content).hex()


def _make_base64_digest(algorithm: str) -> Digest:
    return lambda content: b2a_base64(_compute_digest(algorithm, content), newline=False).decode()


DIGESTS: tuple[tuple[str, str, Digest], ...] = (
    *(
        (name, f"The {name.upper()} digest of {{}}, in hexadecimal digits.", _make_hex_digest(name))
        for name in ("md5", "sha1", "sha256", "sha512")
    ),
    *(
        (
            f"base64{name}",
            f"The {name.upper()} digest of {{}}, in base64.",
            _make_base64_digest(name),
        )
        for name in ("sha256", "sha512")
    ),
)
"""Name, documentation with a gap for what is digested, and the digest."""

_NAMESPACES = ("dns", "url", "oid", "x500")


def _uuidv5(namespace: str, name: str) -> Val:
    import uuid  # noqa: PLC0415  # loading it looks at the platform, and one function needs it

    constant = f"NAMESPACE_{namespace.upper()}"
    try:
        space = getattr(uuid, constant) if namespace in _NAMESPACES else uuid.UUID(namespace)
    except ValueError:
        namespaces = ", ".join(_NAMESPACES)
        raise FunctionFault(f"the namespace must be {namespaces} or a UUID", 0) from None
    return str(uuid.uuid5(space, name))


def _make_text_digest(digest: Digest) -> Callable[[str], Val]:
    return lambda source: digest(source.encode())


FUNCTIONS = (
    *(
        Function(n, doc.format("the text"), _make_text_digest(d), (make_string_param(),))
        for n, doc, d in DIGESTS
    ),
    Function(
        "uuidv5",
        "The UUID of a name in a namespace (dns, url, oid, x500 or a UUID), always the same.",
        _uuidv5,
        (make_string_param("namespace"), make_string_param("name")),
    ),
)
