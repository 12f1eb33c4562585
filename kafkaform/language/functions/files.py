"""Functions that read files; how, and how far they may reach, is decided by who passes `read`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NoReturn

from ..faults import FunctionFault
from ..limits import LIMITS
from ..values import Val, text
from .spec import Function, string

Read = Callable[[str], bytes]
"""The content of a file below the root. Raises FileNotFoundError, or PermissionError saying why
a path is refused."""

_NAMES = ("file", "fileexists", "filesha256")


def file_functions(read: Read | None) -> tuple[Function, ...]:
    """The functions over this reader; without one each of them says that it is turned off."""
    if read is None:
        return tuple(Function(name, _off, (string("path"),)) for name in _NAMES)

    def content(path: str) -> Val:
        return text(decoded(path, fetched(read, path)))

    def exists(path: str) -> Val:
        try:
            read(path)
        except FileNotFoundError:
            return False
        except OSError as fault:
            raise FunctionFault(str(fault), 0) from None
        return True

    def digest(path: str) -> Val:
        return hashlib.sha256(fetched(read, path)).hexdigest()

    calls = dict(zip(_NAMES, (content, exists, digest), strict=True))
    return tuple(Function(name, call, (string("path"),)) for name, call in calls.items())


def _off(_: str) -> NoReturn:
    raise FunctionFault("reading files is turned off for this run")


def fetched(read: Read, path: str) -> bytes:
    """The bytes of a file. Raises FunctionFault."""
    try:
        return read(path)
    except FileNotFoundError:
        raise FunctionFault(f'there is no file "{path}"', 0) from None
    except OSError as fault:
        raise FunctionFault(str(fault), 0) from None


def decoded(path: str, content: bytes) -> str:
    """The bytes as text. Raises FunctionFault."""
    if len(content) > LIMITS.characters * 4:
        raise FunctionFault(f'the file "{path}" is too large', 0)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise FunctionFault(f'the file "{path}" is not UTF-8 text', 0) from None
