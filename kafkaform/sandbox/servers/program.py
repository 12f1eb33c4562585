"""The contract of a program that runs with the brokers; a module because both programs import it
and `start` imports both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ...core.progress import Reporter
from ..jars import Source
from ..record import Sandbox, Server


class Program(Struct, frozen=True):
    """How a kind of server is provided and started. All files are in the run folder, which is the
    working directory."""

    title: str
    """The program's name."""
    main: str
    """The class that Java starts."""
    find_class_path: Callable[[Sandbox, Reporter, Source], tuple[Path, ...]]
    """Raises KafkaformError, ConnectError."""
    write_files: Callable[[Sandbox, Server], None]
    """Write what the server reads when it starts."""
    make_options: Callable[[Sandbox, Server], Sequence[str]]
    """Options of Java."""
    make_arguments: Callable[[Sandbox, Server], Sequence[str]]
    """Arguments of the program."""
    ready_path: str
    """A page that is answered with 200 as soon as the server can work."""
    make_headers: Callable[[Sandbox], Mapping[str, str]]
    """The login for that page, as HTTP headers."""
