"""Reads the HMAC of a delegation token, and writes it to a file that only its owner can read.

With a token's id and HMAC anybody can log in as its owner. So kafkaform never shows an HMAC; it
writes one only to a file that is named for it.
"""

from __future__ import annotations

import os
from pathlib import Path

from kafkaform.core.errors import KafkaformError, StorageError, UsageError
from kafkaform.core.resource import Fault
from kafkaform.core.secret import Secret
from kafkaform.core.text.display import inline
from kafkaform.provider.contract import Session

from ..kinds.token.requests import list_rows
from ..session import KafkaSession
from .source import make_read_error

FLAG = "--hmac-file"


def check_hmac_file(text: str | None) -> Path | None:
    """The file to write to, None without one. Raises UsageError for a file that cannot be made."""
    # Before anything is sent: a token whose HMAC nobody has got is of no use.
    if text is None:
        return None
    path = Path(text)
    if path.exists() or path.is_symlink():
        raise UsageError(f"{FLAG} {inline(text)}: the file exists", "Name a new file.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(
            f"{FLAG} {inline(text)}: no file can be made in that folder", "Name another folder."
        )
    return path


def write_hmac(session: Session, token_id: str, path: Path) -> None:
    """Write the HMAC of this token to a new file with mode 0600, in base64 and with a line end.
    Raises KafkaformError, StorageError."""
    hmac = _read_hmac(session, token_id)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o600), "w", encoding="ascii") as file:  # noqa: PTH123  # Path.open cannot set the mode
            file.write(f"{hmac.reveal()}\n")
    except OSError as error:
        raise StorageError(
            f"the HMAC of token {inline(token_id)} cannot be written to {inline(str(path))}: "
            f"{error.strerror}",
            f"`kafkaform describe delegation-tokens {inline(token_id)} {FLAG} FILE` writes it to "
            "another file.",
        ) from None


def _read_hmac(session: Session, token_id: str) -> Secret:
    if not isinstance(session, KafkaSession):
        raise UsageError("only Kafka clusters have delegation tokens", "Choose a kafka provider.")
    rows = list_rows(session.context)
    if isinstance(rows, Fault):
        raise make_read_error(rows)
    for row in rows:
        if row.token_id == token_id:
            return row.hmac
    raise KafkaformError(
        f"token {inline(token_id)} does not exist, or this principal may not see it",
        "`kafkaform describe delegation-tokens` lists the tokens that it can see.",
    )
