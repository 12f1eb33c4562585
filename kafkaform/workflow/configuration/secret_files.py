"""Read secrets from files, and warn of files that other users of the computer can read."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from ...core.diagnostics import Diagnostic, Range, Severity
from ...core.resource import Desired
from ...core.secret import NoSecret, Secret
from ...core.value import FrozenMap, find_references

MAX_SECRET_BYTES = 1 << 16
SecretUser: TypeAlias = tuple[str, Range, FrozenMap]
"""Something that can get a secret from a file: what it is called, its block, its arguments."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_file_secret(path: Path) -> Secret | NoSecret | None:
    """The content of a file without the line break at its end; None if there is no such file."""
    try:
        # A device such as /dev/zero would never end.
        if not path.is_file():
            return NoSecret("It is not a regular file.") if path.exists() else None
        with path.open("rb") as file:
            data = file.read(MAX_SECRET_BYTES + 1)
    except OSError as fault:
        reason = (fault.strerror or "").lower()
        return NoSecret(f"The file cannot be read: {reason}.")
    if len(data) > MAX_SECRET_BYTES:
        return NoSecret(f"The file has more than {MAX_SECRET_BYTES:,} bytes.")
    text = decode_secret(data, "The file contains")
    return Secret(text) if isinstance(text, str) else text


def decode_secret(data: bytes, origin: str) -> str | NoSecret:
    """The text without the line break at its end. found: the beginning of a sentence about it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return NoSecret(f"{origin} something that is not UTF-8 text.")
    # Windows ends a line with two characters.
    line = text.removesuffix("\n")
    return line.removesuffix("\r") if line != text else text


def list_users(desired: Desired) -> Iterator[SecretUser]:
    """Everything in a configuration that can get a secret from a file."""
    for block in desired.providers.values():
        yield f'provider "{block.instance}"', block.range, block.config
    for item in desired.declared:
        yield str(item.address), item.range, item.attributes


def find_exposed_files(users: Iterable[SecretUser], folder: Path) -> Iterator[Diagnostic]:
    """A warning for each file of a secret that its group or everybody can read. folder: where
    relative paths start."""
    reported: set[str] = set()
    for user, location, attributes in users:
        for name in _list_files(attributes):
            if name not in reported and _is_exposed(folder / name):
                yield Diagnostic(
                    Severity.WARNING,
                    f"other users of this computer can read {name}, which contains a secret",
                    f"{user} gets a secret from it.",
                    range=location,
                    # As the configuration names it: a plan tells nothing about the computer.
                    advice=f"Run `chmod 600 {shlex.quote(name)}` in the configuration's folder.",
                )
            reported.add(name)


def _list_files(attributes: FrozenMap) -> Iterator[str]:
    return (ref.name for ref in find_references(attributes) if ref.source == "file")


def _is_exposed(path: Path) -> bool:
    # The rule of ssh (sshkey_perm_ok in OpenSSH's authfile.c): who gets a file from somebody else,
    # as a container gets its secrets, cannot change its mode.
    if os.name == "nt":
        return False  # the mode says nothing about who can read a file there
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return status.st_uid == os.getuid() and bool(status.st_mode & _OTHERS)
