"""Read the logs of the brokers and servers: the last lines, and new lines as they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.errors import Failure, make_detailed_error
from .record import Sandbox

_POLL = 0.3


def read_tail(path: Path, lines: int) -> tuple[str, ...]:
    """The last lines of a file, none if it does not exist."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return tuple(line.rstrip("\n") for line in deque(file, lines))
    except FileNotFoundError:
        return ()


def make_log_error(kind: type[Failure], summary: str, lines: Sequence[str], advice: str) -> Failure:
    """An error that shows these lines of a log. lines: none if nothing was written."""
    return make_detailed_error(kind, summary, lines or ("It wrote no log.",), advice)


def read_last_lines(sandbox: Sandbox, lines: int) -> tuple[str, ...]:
    """The last lines of each log. If there are several, each line has the broker or server."""
    return tuple(
        f"{label}{line}" for label, path in _list_files(sandbox) for line in read_tail(path, lines)
    )


def follow_logs(sandbox: Sandbox, lines: int) -> Iterator[str]:
    """The last lines, then all new ones until the run folder is removed."""
    positions = {path: path.stat().st_size for _, path in _list_files(sandbox) if path.exists()}
    yield from read_last_lines(sandbox, lines)
    while sandbox.folder.exists():
        for label, path in _list_files(sandbox):
            text, positions[path] = _read_new_lines(path, positions.get(path, 0))
            yield from (f"{label}{line}" for line in text.splitlines())
        time.sleep(_POLL)


def _list_files(sandbox: Sandbox) -> Iterator[tuple[str, Path]]:
    several = len(sandbox.brokers) > 1 or sandbox.zookeeper or bool(sandbox.servers)
    for broker in sandbox.brokers:
        yield f"[{broker.id}] " if several else "", sandbox.get_log_file(broker)
    if sandbox.zookeeper:
        yield "[zookeeper] ", sandbox.get_log_file(None)
    for server in sandbox.servers:
        yield f"[{server.kind}] ", sandbox.get_log_file(server)


def _read_new_lines(path: Path, position: int) -> tuple[str, int]:
    """Whole lines after this byte, and the byte where they end."""
    # A file that has become shorter belongs to a new start: it is read from its beginning.
    try:
        with path.open("rb") as file:
            file.seek(position if position <= path.stat().st_size else 0)
            start = file.tell()
            content = file.read()
    except FileNotFoundError:
        return "", 0
    complete = content[: content.rfind(b"\n") + 1]
    return complete.decode("utf-8", "replace"), start + len(complete)
