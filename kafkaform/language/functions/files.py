"""Functions that read files, and functions that compute digests of texts and of files."""

from __future__ import annotations

import base64
import hashlib
import uuid
from binascii import b2a_base64
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ...core.schema import STRING
from ..values.faults import FunctionFault
from ..values.limits import LIMITS
from ..values.value import Val, make_set, normalise_text
from .file_reader import Read
from .spec import Function, make_string_param

Digest = Callable[[bytes], str]


def _compute_digest(algorithm: str, content: bytes) -> bytes:
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
    constant = f"NAMESPACE_{namespace.upper()}"
    try:
        space = getattr(uuid, constant) if namespace in _NAMESPACES else uuid.UUID(namespace)
    except ValueError:
        namespaces = ", ".join(_NAMESPACES)
        raise FunctionFault(f"the namespace must be {namespaces} or a UUID", 0) from None
    return str(uuid.uuid5(space, name))


def _make_text_digest(digest: Digest) -> Callable[[str], Val]:
    return lambda source: digest(source.encode())


_Answer = TypeVar("_Answer")


def file_functions(read: Read | None) -> tuple[Function, ...]:
    """The functions with this reader. Without one, each of them fails and says that it is turned
    off (as with --untrusted)."""
    path = make_string_param("path")
    uses: tuple[tuple[str, str, Callable[[bytes], Val]], ...] = (
        ("file", "The text of a file (UTF-8).", _decode_text),
        ("filebase64", "The bytes of a file in base64.", _encode_base64),
        *((f"file{name}", doc.format("a file"), use) for name, doc, use in DIGESTS),
    )
    return (
        *(
            Function(name, doc, partial(_use_content, read, _keep_results(use)), (path,), steps=50)
            for name, doc, use in uses
        ),
        Function(
            "fileexists",
            "Whether there is such a file.",
            partial(_is_there, read),
            (path,),
            steps=50,
        ),
        Function(
            "fileset",
            "The files below a folder that match a pattern with `*`, `**`, `?`, `[a-z]`, `{a,b}`.",
            partial(_find_names, read),
            (path, make_string_param("pattern")),
            steps=600,
        ),
    )


def _keep_results(use: Callable[[bytes], Val]) -> Callable[[bytes, str], Val]:
    """The same function, which keeps its results by path."""
    # A hundred instances may use the digest of one large file.
    results: dict[str, Val] = {}

    def run(content: bytes, path: str) -> Val:
        if path not in results:
            results[path] = use(content)
        return results[path]

    return run


def _use_content(read: Read | None, use: Callable[[bytes, str], Val], path: str) -> Val:
    try:
        return use(_look_up(lambda: _require_reader(read).content(path)), path)
    except FileNotFoundError:
        raise FunctionFault(f'there is no file "{path}"', 0) from None


def _is_there(read: Read | None, path: str) -> Val:
    # By reading it, so that its digest becomes part of the plan's configuration digest.
    try:
        _look_up(lambda: _require_reader(read).content(path))
    except FileNotFoundError:
        return False
    return True


def _find_names(read: Read | None, folder: str, pattern: str) -> Val:
    try:
        return make_set(
            STRING,
            map(normalise_text, _look_up(lambda: _require_reader(read).names(folder, pattern))),
        )
    except FileNotFoundError:
        raise FunctionFault(f'there is no folder "{folder}"', 0) from None


def _require_reader(read: Read | None) -> Read:
    if read is None:
        raise FunctionFault("reading files is turned off for this run")
    return read


def _look_up(look: Callable[[], _Answer]) -> _Answer:
    try:
        return look()
    except FileNotFoundError:
        raise
    except OSError as fault:
        raise FunctionFault(str(fault), 0) from None


def _decode_text(content: bytes) -> Val:
    if len(content) > LIMITS.characters * 4:
        raise FunctionFault("the file is too large", 0)
    try:
        return normalise_text(content.decode())
    except UnicodeDecodeError:
        raise FunctionFault("the file is not UTF-8 text", 0) from None


def _encode_base64(content: bytes) -> Val:
    return base64.b64encode(content).decode()


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
